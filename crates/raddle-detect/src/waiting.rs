//! Who waits for what at the moment: the common part of the detectors for deadlocks and blocked threads.

use crate::race::Site;
use crate::report::{Holding, PartAction, Subject};
use crate::step::{Step, Sync};
use raddle_findings::{Wait, What};
use raddle_trace::{ObjectId, Op, ThreadIx, ops_about};
use rustc_hash::FxHashMap;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    Lock { lock: ObjectId, read: bool, what: What },
    Condition(ObjectId),
    Semaphore(ObjectId),
    Barrier(ObjectId),
}

impl WaitsFor {
    /// As a part of a report.
    pub fn action(self, holder: Option<ThreadIx>) -> PartAction {
        let (wait, subject) = match self {
            WaitsFor::Lock { lock, read: false, what } => (Wait::Lock, Subject::Object(lock, what)),
            WaitsFor::Lock { lock, read: true, what } => (Wait::ReadLock, Subject::Object(lock, what)),
            WaitsFor::Condition(cond) => (Wait::Signal, Subject::Object(cond, What::Condition)),
            WaitsFor::Semaphore(sem) => (Wait::Semaphore, Subject::Object(sem, What::Semaphore)),
            WaitsFor::Barrier(barrier) => (Wait::Barrier, Subject::Object(barrier, What::Barrier)),
        };
        PartAction::Waits { wait, subject, holder }
    }
}

/// A mutex, or a read-write lock.
pub(crate) fn lock_kind(rwlock: bool) -> What {
    if rwlock { What::Rwlock } else { What::Mutex }
}

/// Who holds a lock, and how.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    pub thread: ThreadIx,
    /// Where it was acquired.
    pub site: Site,
    pub read: bool,
    pub what: What,
}

/// A thread that waits for a lock, in a cycle of such threads.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub thread: ThreadIx,
    pub what: WaitsFor,
    pub site: Site,
    /// The thread of the next link.
    pub holder: ThreadIx,
}

#[derive(Clone, Copy, Debug, Default)]
struct Actor {
    waits: Option<(WaitsFor, Site)>,
    ended: bool,
    seen: bool,
}

/// Follows waits and holders through a trace.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    actors: Vec<Actor>,
    holders: FxHashMap<ObjectId, Vec<Holder>>,
}

impl Waiting {
    pub fn step(&mut self, step: &Step<'_>) {
        let thread = step.thread();
        if self.actors.len() <= thread.index() {
            self.actors.resize(thread.index() + 1, Actor::default());
        }
        let site = Site::of(step);
        let actor = &mut self.actors[thread.index()];
        actor.seen = true;
        // Whatever a thread does, it does not wait any more; the exceptions follow.
        actor.waits = match step.event.op {
            Op::Request { lock, read, flags } => {
                Some((WaitsFor::Lock { lock, read, what: lock_kind(read || flags.rwlock) }, site))
            }
            Op::WaitBegin { cond, .. } => Some((WaitsFor::Condition(cond), site)),
            Op::SemRequest { sem } => Some((WaitsFor::Semaphore(sem), site)),
            Op::BarrierEnter { barrier } => Some((WaitsFor::Barrier(barrier), site)),
            // Back from the wait, the thread needs the mutex again.
            Op::Wait { lock, .. } | Op::WaitFailed { lock, .. } => {
                Some((WaitsFor::Lock { lock, read: false, what: What::Mutex }, site))
            }
            Op::Lock { .. }
            | Op::LockFailed { .. }
            | Op::ReadLock { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::BarrierInit { .. }
            | Op::BarrierExit { .. }
            | Op::SemInit { .. }
            | Op::SemWait { .. }
            | Op::SemWaitFailed { .. }
            | Op::SemPost { .. }
            | ops_about!(Memory, Nothing, Thread, Once, Futex, Annotated, Signal, Channel, Life) => None,
        };
        match (step.event.op, step.sync) {
            (Op::End, _) => actor.ended = true,
            (Op::Lock { lock, flags } | Op::ReadLock { lock, flags }, Sync::Acquire { read, .. }) => {
                let what = lock_kind(read || flags.rwlock);
                self.holders.entry(lock).or_default().push(Holder { thread, site, read, what });
            }
            (Op::Unlock { lock, .. }, Sync::Release { .. }) => {
                self.holders.entry(lock).or_default().retain(|holder| holder.thread != thread);
            }
            _ => {}
        }
    }

    /// Threads that wait, for what, and where.
    pub fn waiting(&self) -> impl Iterator<Item = (ThreadIx, WaitsFor, Site)> + '_ {
        self.actors.iter().enumerate().filter_map(|(thread, actor)| {
            actor.waits.map(|(what, site)| (ThreadIx(thread as u32), what, site))
        })
    }

    /// Does a thread hold the lock itself, in a mode that keeps it from getting it? A mutex that it has locked, a
    /// read-write lock of which it has one mode and wants the other.
    fn blocks_itself(&self, lock: ObjectId, read: bool, thread: ThreadIx) -> bool {
        let holders = self.holders.get(&lock).map_or(&[][..], Vec::as_slice);
        holders.iter().any(|holder| holder.thread == thread && !(read && holder.read))
    }

    /// Somebody else who holds a lock that a thread waits for.
    pub fn holder_beside(&self, lock: ObjectId, thread: ThreadIx) -> Option<ThreadIx> {
        self.holders.get(&lock)?.iter().map(|holder| holder.thread).find(|&holder| holder != thread)
    }

    /// The locks that a thread holds, in order of acquisition.
    pub fn held_by(&self, thread: ThreadIx) -> Vec<Holding> {
        let all = self.holders.iter().flat_map(|(&lock, holders)| holders.iter().map(move |h| (lock, h)));
        let mut held: Vec<(ObjectId, &Holder)> = all.filter(|(_, h)| h.thread == thread).collect();
        held.sort_by_key(|(_, holder)| holder.site.position);
        let holding = |(lock, holder): (ObjectId, &Holder)| Holding {
            lock: Subject::Object(lock, holder.what),
            read: holder.read,
            location: holder.site.location,
            context: holder.site.context,
        };
        held.into_iter().map(holding).collect()
    }

    pub fn has_ended(&self, thread: ThreadIx) -> bool {
        self.actors.get(thread.index()).is_some_and(|actor| actor.ended)
    }

    /// Is there a thread, beside those that wait, that could still do something?
    pub fn somebody_runs(&self) -> bool {
        self.actors.iter().any(|actor| actor.seen && !actor.ended && actor.waits.is_none())
    }

    /// Sets of threads each of which waits for a lock held by the next one of its set, the last one for the first. A
    /// thread that waits for a lock that it holds itself is such a set alone.
    pub fn lock_cycles(&self) -> Vec<Vec<Link>> {
        let link = |(thread, what, site)| match what {
            WaitsFor::Lock { lock, read, .. } => {
                let holder = match self.blocks_itself(lock, read, thread) {
                    true => thread,
                    false => self.holder_beside(lock, thread)?,
                };
                Some((thread, Link { thread, what, site, holder }))
            }
            WaitsFor::Condition(_) | WaitsFor::Semaphore(_) | WaitsFor::Barrier(_) => None,
        };
        let waits: FxHashMap<ThreadIx, Link> = self.waiting().filter_map(link).collect();
        let mut done: Vec<ThreadIx> = Vec::new();
        let mut cycles = Vec::new();
        let mut starts: Vec<ThreadIx> = waits.keys().copied().collect();
        starts.sort_unstable();
        for start in starts {
            let mut path: Vec<ThreadIx> = Vec::new();
            let mut at = start;
            while let Some(link) = waits.get(&at)
                && !done.contains(&at)
            {
                if let Some(place) = path.iter().position(|&thread| thread == at) {
                    cycles.push(path[place..].iter().map(|thread| waits[thread]).collect());
                    break;
                }
                path.push(at);
                at = link.holder;
            }
            done.extend(path);
        }
        cycles
    }
}
