//! From events to steps: what detectors want to know about an event, computed once for all of them.
//!
//! A [`Feed`] reads events in the observed order and hands out [`Step`]s. It
//!
//! * compacts addresses to dense variable numbers. A variable is a run of bytes inside an aligned 8-byte granule; as
//!   long as a granule is always accessed in the same way it is one variable. When an access with other bounds comes,
//!   the granule is cut into single bytes and each byte *inherits* what was known about the whole ([`Step::splits`]).
//!   So overlapping accesses of different sizes meet exactly in the bytes they share, and the usual case costs one
//!   lookup;
//! * compacts locks and all other carriers of synchronisation (conditions, semaphores, ...: [`ChannelIx`]). After an
//!   object is initialised or destroyed its address stands for a new object;
//! * reduces the many operations to a few: acquire and release of a lock in a mode, fork, join, send and receive over a
//!   channel;
//! * keeps the locks that each thread holds.

use crate::allocations::{Allocation, Allocations, Moment};
use crate::granules::{GRANULE_BYTES, Granule, Granules};
use crate::report::{Report, Subject};
use raddle_findings::What;
use raddle_trace::{Addr, AtomicKind, ContextIx, Event, LocationIx, ObjectId, Op, ThreadIx, ops_about};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A variable of the trace, dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarIx(pub u32);

/// A lock of the trace, dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockIx(pub u32);

/// Something over which threads synchronise other than a lock, dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelIx(pub u32);

/// No variable: not looked up, or not by the short way.
pub const NO_VAR: VarIx = VarIx(u32::MAX);

macro_rules! index {
    ($($name:ident),*) => {$(
        impl $name {
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
index!(VarIx, LockIx, ChannelIx);

/// What an event does to the order between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    None,
    /// The thread now holds the lock (in read mode if `read`).
    Acquire {
        lock: LockIx,
        read: bool,
    },
    Release {
        lock: LockIx,
        read: bool,
    },
    Fork(ThreadIx),
    Join(ThreadIx),
    /// What comes after knows what was sent before.
    Receive(ChannelIx),
    Send(ChannelIx),
    /// Receives, then sends: an atomic read-modify-write.
    Exchange(ChannelIx),
}

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub lock: LockIx,
    pub read: bool,
    /// How many times its holder took it again for reading and has not given it back.
    pub again: u32,
    /// Where it was acquired.
    pub position: u64,
    pub location: LocationIx,
    pub context: ContextIx,
}

/// Locks held by a thread, in order of acquisition.
pub type HeldLocks = SmallVec<[Held; 4]>;

/// One event with what was computed about it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Place in the observed order.
    pub position: u64,
    pub event: &'a Event,
    /// Variables that an access touches; empty for other events.
    pub vars: &'a [VarIx],
    pub sync: Sync,
    /// Locks the thread holds while it does this: before an acquisition and before a release.
    pub held: &'a [Held],
    /// Variables that came into being by cutting another: (old, new). To be applied before the step.
    pub splits: &'a [(VarIx, VarIx)],
    /// Variables whose memory begins a new life. To be reset before the step.
    pub reborn: &'a [VarIx],
}

impl Step<'_> {
    #[inline]
    pub fn thread(&self) -> ThreadIx {
        self.event.thread
    }

    /// Is it a plain access, and does it write?
    #[inline]
    pub fn plain_access(&self) -> Option<bool> {
        match self.event.op {
            Op::Read { .. } => Some(false),
            Op::Write { .. } => Some(true),
            Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | ops_about!(Sync) => None,
        }
    }
}

/// Larger accesses are cut off here; a library call that touches more in one go is counted in [`Feed::truncated`].
pub const ACCESS_BYTES_MAX: u64 = 1 << 20;

/// Turns events into steps; see the module's text.
#[derive(Debug, Default)]
pub struct Feed {
    position: u64,
    granules: Granules,
    var_addrs: Vec<Addr>,
    locks: FxHashMap<ObjectId, LockIx>,
    lock_objects: Vec<(ObjectId, What)>,
    allocations: Allocations,
    forks: FxHashMap<ThreadIx, Fork>,
    channels: FxHashMap<(bool, u64), ChannelIx>,
    channel_count: u32,
    held: Vec<HeldLocks>,
    vars: Vec<VarIx>,
    /// Variables of the coming events, as far as they were looked up ahead; see [`Feed::look_ahead`].
    ahead: Vec<VarIx>,
    ahead_next: usize,
    splits: Vec<(VarIx, VarIx)>,
    reborn: Vec<VarIx>,
    /// Copy of the acting thread's locks, so that a step can be handed out while `held` changes.
    now_held: HeldLocks,
    truncated: u64,
}

impl Feed {
    pub fn new() -> Feed {
        Feed::default()
    }

    /// Events seen so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Accesses that were larger than [`ACCESS_BYTES_MAX`].
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// First byte of a variable.
    pub fn addr(&self, var: VarIx) -> Addr {
        self.var_addrs[var.index()]
    }

    pub fn lock_object(&self, lock: LockIx) -> ObjectId {
        self.lock_objects[lock.index()].0
    }

    /// What the numbers of the steps so far stand for.
    pub fn into_names(self) -> Names {
        Names {
            vars: self.var_addrs,
            locks: self.lock_objects,
            allocations: self.allocations,
            forks: self.forks,
        }
    }

    /// Looks up the variables of events that will come next, and returns them. Looking up many in a row, each
    /// independent of the others, keeps the memory busy where one event at a time would wait for it.
    #[inline]
    pub fn look_ahead(&mut self, events: &[Event]) -> &[VarIx] {
        self.ahead.clear();
        self.ahead_next = 0;
        let granules = &self.granules;
        self.ahead.extend(events.iter().map(|event| match event.op {
            Op::Read { addr, size, .. } | Op::Write { addr, size, .. } => {
                granules.usual(addr.0, u64::from(size)).unwrap_or(NO_VAR)
            }
            Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | ops_about!(Sync) => NO_VAR,
        }));
        &self.ahead
    }

    /// The next event.
    #[inline(always)]
    pub fn step<'a>(&'a mut self, event: &'a Event) -> Step<'a> {
        let position = self.position;
        self.position += 1;
        if !self.splits.is_empty() {
            self.splits.clear();
        }
        if !self.reborn.is_empty() {
            self.reborn.clear();
        }
        let ahead = self.ahead_next;
        self.ahead_next += 1;
        let thread = event.thread.index();
        if self.held.len() <= thread {
            self.held.resize(thread + 1, HeldLocks::new());
        }
        match event.op {
            Op::Read { addr, size, .. } | Op::Write { addr, size, .. } => {
                let usual = self.ahead.get(ahead).is_some_and(|&var| var != NO_VAR);
                if !usual {
                    self.vars.clear();
                    self.resolve(addr, u64::from(size));
                }
                let vars = if usual { std::slice::from_ref(&self.ahead[ahead]) } else { &self.vars[..] };
                Step {
                    position,
                    event,
                    vars,
                    sync: Sync::None,
                    held: &self.held[thread],
                    splits: &self.splits,
                    reborn: &[],
                }
            }
            Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | ops_about!(Sync) => {
                self.vars.clear();
                self.now_held.clone_from(&self.held[thread]);
                let sync = self.sync(position, event);
                Step {
                    position,
                    event,
                    vars: &self.vars,
                    sync,
                    held: &self.now_held,
                    splits: &self.splits,
                    reborn: &self.reborn,
                }
            }
        }
    }

    fn new_var(&mut self, addr: Addr) -> VarIx {
        self.var_addrs.push(addr);
        VarIx(u32::try_from(self.var_addrs.len() - 1).expect("fewer than 2^32 variables"))
    }

    /// Finds the variables of an access.
    #[inline]
    fn resolve(&mut self, addr: Addr, size: u64) {
        match self.granules.usual(addr.0, size) {
            Some(var) => self.vars.push(var),
            None => self.resolve_slowly(addr, size),
        }
    }

    fn resolve_slowly(&mut self, addr: Addr, size: u64) {
        let mut size = size;
        if size > ACCESS_BYTES_MAX {
            self.truncated += 1;
            size = ACCESS_BYTES_MAX;
        }
        let end = addr.0.saturating_add(size);
        let mut at = addr.0;
        while at < end {
            let first = at % GRANULE_BYTES;
            let len = (GRANULE_BYTES - first).min(end - at);
            self.resolve_in_granule(at / GRANULE_BYTES, first as u8, len as u8);
            at = match at.checked_add(len) {
                Some(next) => next,
                None => break,
            };
        }
    }

    fn resolve_in_granule(&mut self, key: u64, first: u8, len: u8) {
        // What was looked up ahead may be wrong after a cut.
        self.ahead.clear();
        let start = key * GRANULE_BYTES;
        match self.granules.get(key) {
            Granule::Unknown => {
                let var = self.new_var(Addr(start + u64::from(first)));
                self.granules.set(key, Granule::Whole { first, len, var });
                self.vars.push(var);
            }
            Granule::Whole { first: f, len: l, var } if (f, l) == (first, len) => self.vars.push(var),
            Granule::Whole { first: f, len: l, var } => {
                let base = self.new_var(Addr(start));
                for byte in 1..GRANULE_BYTES {
                    self.new_var(Addr(start + byte));
                }
                for byte in f..f + l {
                    self.splits.push((var, VarIx(base.0 + u32::from(byte))));
                }
                self.granules.set(key, Granule::Bytes { base });
                self.vars.extend((first..first + len).map(|byte| VarIx(base.0 + u32::from(byte))));
            }
            Granule::Bytes { base } => {
                self.vars.extend((first..first + len).map(|byte| VarIx(base.0 + u32::from(byte))));
            }
        }
    }

    /// Memory was allocated: what was known about these addresses concerns something else.
    fn rebirth(&mut self, addr: Addr, size: u64) {
        let (from, to) = (addr.0 / GRANULE_BYTES, addr.0.saturating_add(size.max(1) - 1) / GRANULE_BYTES);
        self.ahead.clear();
        let reborn = &mut self.reborn;
        self.granules.forget(from, to, |granule| match granule {
            Granule::Whole { var, .. } => reborn.push(var),
            Granule::Bytes { base } => {
                reborn.extend((0..GRANULE_BYTES as u32).map(|byte| VarIx(base.0 + byte)));
            }
            Granule::Unknown => {}
        });
    }

    fn lock(&mut self, object: ObjectId) -> LockIx {
        *self.locks.entry(object).or_insert_with(|| {
            self.lock_objects.push((object, What::Mutex));
            LockIx(u32::try_from(self.lock_objects.len() - 1).expect("fewer than 2^32 locks"))
        })
    }

    fn channel(&mut self, memory: bool, id: u64) -> ChannelIx {
        *self.channels.entry((memory, id)).or_insert_with(|| {
            self.channel_count += 1;
            ChannelIx(self.channel_count - 1)
        })
    }

    #[inline(never)]
    fn sync(&mut self, position: u64, event: &Event) -> Sync {
        let thread = event.thread.index();
        match event.op {
            Op::Lock { lock, flags } | Op::ReadLock { lock, flags } => {
                let lock = self.lock(lock);
                let read = matches!(event.op, Op::ReadLock { .. });
                if flags.rwlock || read {
                    self.lock_objects[lock.index()].1 = What::Rwlock;
                }
                let held = self.held[thread].iter_mut().find(|held| held.lock == lock);
                if flags.nested || held.is_some() {
                    if let Some(held) = held.filter(|held| held.read && read && !flags.nested) {
                        held.again += 1;
                    }
                    return Sync::None;
                }
                let (location, context) = (event.location, event.context);
                self.held[thread].push(Held { lock, read, again: 0, position, location, context });
                Sync::Acquire { lock, read }
            }
            Op::Unlock { lock, flags } => {
                let lock = self.lock(lock);
                let place = self.held[thread].iter().position(|held| held.lock == lock);
                match place {
                    Some(place) if !flags.nested && self.held[thread][place].again > 0 => {
                        self.held[thread][place].again -= 1;
                        Sync::None
                    }
                    Some(place) if !flags.nested => {
                        let held = self.held[thread].remove(place);
                        Sync::Release { lock, read: held.read }
                    }
                    _ => Sync::None,
                }
            }
            Op::Atomic { addr, size, kind, .. } => {
                self.resolve(addr, u64::from(size));
                let channel = self.channel(true, addr.0);
                match kind {
                    AtomicKind::Load | AtomicKind::CasFailed => Sync::Receive(channel),
                    AtomicKind::Store => Sync::Send(channel),
                    AtomicKind::Rmw => Sync::Exchange(channel),
                }
            }
            Op::Alloc { addr, size } => {
                self.rebirth(addr, size);
                let &Event { thread, location, context, .. } = event;
                let (addr, bytes) = (addr.0, size);
                self.allocations.push(Allocation { addr, bytes, position, thread, location, context });
                Sync::None
            }
            Op::Fork { child } => {
                let &Event { thread, location, context, .. } = event;
                self.forks.insert(child, Fork { thread, location, context });
                Sync::Fork(child)
            }
            Op::Join { child } => Sync::Join(child),
            Op::Signal { cond: object }
            | Op::Broadcast { cond: object }
            | Op::BarrierEnter { barrier: object }
            | Op::SemPost { sem: object }
            | Op::Send { channel: object }
            | Op::Release { object } => Sync::Send(self.channel(false, object.0)),
            Op::Wait { cond: object, .. }
            | Op::BarrierExit { barrier: object }
            | Op::SemWait { sem: object }
            | Op::Receive { channel: object }
            | Op::Acquire { object } => Sync::Receive(self.channel(false, object.0)),
            // The control word is an atomic as well: compilers look at the guards of function-local statics by an acquire
            // load of their own.
            Op::OnceEnd { once } => Sync::Send(self.channel(true, once.0)),
            Op::OncePassed { once } => Sync::Receive(self.channel(true, once.0)),
            Op::FutexWake { word, .. } => Sync::Send(self.channel(false, word.0)),
            Op::FutexWait { word } => Sync::Receive(self.channel(false, word.0)),
            Op::Init { object, .. } | Op::Destroy { object, .. } => {
                // Held locks keep their number until they are released.
                let held = self.locks.get(&object).copied();
                if !self.held.iter().flatten().any(|h| Some(h.lock) == held) {
                    self.locks.remove(&object);
                }
                self.channels.remove(&(false, object.0));
                Sync::None
            }
            Op::Read { .. }
            | Op::Write { .. }
            | Op::Fence { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | Op::Start { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::End
            | Op::LockFailed { .. }
            | Op::ReadLockFailed { .. }
            | Op::Request { .. }
            | Op::WaitBegin { .. }
            | Op::WaitFailed { .. }
            | Op::BarrierInit { .. }
            | Op::SemInit { .. }
            | Op::SemWaitFailed { .. }
            | Op::SemRequest { .. }
            | Op::OnceBegin { .. }
            | Op::FutexWaitFailed { .. }
            | Op::Custom { .. }
            | Op::BenignRace { .. }
            | ops_about!(Nothing, Signal) => Sync::None,
        }
    }
}

/// Who created a thread, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    pub thread: ThreadIx,
    pub location: LocationIx,
    pub context: ContextIx,
}

/// What dense numbers stand for, for findings after the pass.
#[derive(Clone, Debug, Default)]
pub struct Names {
    vars: Vec<Addr>,
    locks: Vec<(ObjectId, What)>,
    allocations: Allocations,
    forks: FxHashMap<ThreadIx, Fork>,
}

impl Names {
    pub fn var(&self, var: VarIx) -> Addr {
        self.vars[var.index()]
    }

    /// The object of a lock, and whether it is a mutex or a read-write lock.
    pub fn lock(&self, lock: LockIx) -> Subject {
        let (object, what) = self.locks[lock.index()];
        Subject::Object(object, what)
    }

    /// The object that a subject stands for. A variable is memory by its address.
    pub fn object(&self, subject: Subject) -> (ObjectId, What) {
        match subject {
            Subject::Variable(var) => (ObjectId(self.var(var).0), What::Memory),
            Subject::Lock(lock) => self.locks[lock.index()],
            Subject::Object(object, what) => (object, what),
        }
    }

    pub fn address(&self, subject: Subject) -> u64 {
        self.object(subject).0.0
    }

    /// Keeps the allocations of what these reports are about, and forgets all others.
    pub fn keep_allocations(&mut self, reports: &[Report]) {
        let mut allocations = std::mem::take(&mut self.allocations);
        allocations.keep(reports.iter().flat_map(|report| crate::builder::moments(report, self)));
        self.allocations = allocations;
    }

    /// The block of the heap that a report means.
    pub fn allocation(&self, moment: Moment) -> Option<&Allocation> {
        self.allocations.get(moment)
    }

    /// Who created a thread.
    pub fn fork(&self, thread: ThreadIx) -> Option<Fork> {
        self.forks.get(&thread).copied()
    }
}

/// One value a variable, following cuts and rebirths.
#[derive(Clone, Debug, Default)]
pub struct PerVar<T>(Vec<T>);

impl<T: Clone + Default> PerVar<T> {
    /// Applies what the step says about variables; to be called before any access of the step is looked at.
    #[inline]
    pub fn follow(&mut self, step: &Step<'_>) {
        if !step.splits.is_empty() || !step.reborn.is_empty() {
            self.follow_slowly(step);
        }
    }

    #[cold]
    fn follow_slowly(&mut self, step: &Step<'_>) {
        for &(old, new) in step.splits {
            *self.get_mut(new) = self.get_mut(old).clone();
        }
        for &var in step.reborn {
            *self.get_mut(var) = T::default();
        }
    }

    /// The value, if there is one already.
    #[inline]
    pub fn get(&self, var: VarIx) -> Option<&T> {
        self.0.get(var.index())
    }

    #[inline]
    pub fn get_mut(&mut self, var: VarIx) -> &mut T {
        if self.0.len() <= var.index() {
            self.grow(var);
        }
        &mut self.0[var.index()]
    }

    #[cold]
    fn grow(&mut self, var: VarIx) {
        self.0.resize(var.index() + 1, T::default());
    }

    pub fn iter(&self) -> impl Iterator<Item = (VarIx, &T)> {
        self.0.iter().enumerate().map(|(index, value)| (VarIx(index as u32), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::{AccessFlags, ContextIx};

    fn write(addr: u64, size: u32) -> Event {
        let op = Op::Write { addr: Addr(addr), size, flags: AccessFlags::default() };
        Event { thread: ThreadIx(0), location: LocationIx(0), context: ContextIx::ROOT, kept_calls: 0, op }
    }

    #[test]
    fn accesses_meet_in_the_bytes_they_share() {
        let mut feed = Feed::new();
        let first = feed.step(&write(16, 4)).vars.to_vec();
        assert_eq!(first.len(), 1);
        assert_eq!(feed.step(&write(16, 4)).vars, first.as_slice());
        let event = write(18, 1);
        let step = feed.step(&event);
        assert_eq!(step.vars.len(), 1);
        assert_eq!(step.splits.len(), 4);
        assert!(step.splits.contains(&(first[0], step.vars[0])));
        assert_eq!(feed.step(&write(16, 16)).vars.len(), 9);
        assert_eq!(feed.step(&write(u64::MAX - 1, 8)).vars.len(), 1);
    }

    #[test]
    fn a_lock_taken_twice_for_reading_is_held_until_the_second_release() {
        let mut feed = Feed::new();
        let (lock, flags) = (ObjectId(1), raddle_trace::LockFlags { rwlock: true, ..Default::default() });
        let mut sync = |op| feed.step(&Event { op, ..write(0, 0) }).sync;
        assert_eq!(sync(Op::ReadLock { lock, flags }), Sync::Acquire { lock: LockIx(0), read: true });
        assert_eq!(sync(Op::ReadLock { lock, flags }), Sync::None);
        assert_eq!(sync(Op::Unlock { lock, flags }), Sync::None);
        assert_eq!(sync(Op::Unlock { lock, flags }), Sync::Release { lock: LockIx(0), read: true });
    }

    #[test]
    fn values_follow_cuts() {
        let mut feed = Feed::new();
        let mut values: PerVar<u32> = PerVar::default();
        let event = write(16, 4);
        *values.get_mut(feed.step(&event).vars[0]) = 7;
        let event = write(19, 2);
        let step = feed.step(&event);
        values.follow(&step);
        let found: Vec<u32> = step.vars.iter().map(|&var| *values.get_mut(var)).collect();
        assert_eq!(found, [7, 0]);
    }
}
