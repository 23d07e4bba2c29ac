//! `nonprogress`: threads that are busy without getting anywhere.
//!
//! **Definition** (the survey's definitions 6 and 7, and its §7: in a run, a long enough path of non-progress actions
//! stands for an infinite one; Ho, Smith, Hand 2005). Progress is: writing memory, giving an atomic a value that this thread
//! has not given it before, allocating,
//! creating or ending threads, signalling, posting, calls the program announces. Reading, loading, failing, yielding,
//! putting atomics through values that they had before (a flag of intent that goes up and down) and taking and
//! releasing locks without any of these in between is not.
//!
//! * *non-progress*: one thread makes more than the bound's number of steps without progress, in few places;
//! * *livelock*: the same while it fails to get locks, or goes on writing its atomics, and another thread that makes no
//!   progress does so too;
//! * *starvation*: a thread waits for one lock, or tries again and again, while others acquire it more than the bound's
//!   number of times in a mode that excludes it (readers do not keep a reader out). An atomic that threads exchange or
//!   compare and set from zero to something else is such a lock too.
//!
//! **Neither sound nor complete**: the bound decides. Grade *suspected*.
//!
//! **Deviations**: what the cited tool asks a monitor is taken from the trace here. At most [`VALUES_MAX`] values of an atomic
//! are remembered a thread: a counter is progress. Where a trace has no values of atomics (STD text without them), every
//! store is progress.
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{Step, Sync};
use crate::waiting::{WaitsFor, lock_kind};
use raddle_findings::{Basis, Detail, Kind, Role, What};
use raddle_trace::{AtomicKind, LocationIx, ObjectId, Op, ThreadIx, ops_about};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

pub const NAME: &str = "nonprogress";

/// Usual bounds.
pub const STEPS_BOUND: u64 = 10_000;
pub const TURNS_BOUND: u64 = 1_000;

/// A loop has at most so many places; more and the thread is taken to be doing something.
const PLACES_MAX: usize = 32;

/// Values of an atomic that are remembered for a thread.
pub const VALUES_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
struct Busy {
    /// Steps since the last progress.
    steps: u64,
    places: FxHashSet<LocationIx>,
    /// Locks that it failed to get, and atomics that it wrote again, since.
    failed: u64,
    told: bool,
}

/// Values that a thread gave to an atomic.
type Given = FxHashMap<(ThreadIx, u64), SmallVec<[u64; 4]>>;

/// A thread that wants a lock.
#[derive(Clone, Copy, Debug)]
struct Wanting {
    site: Site,
    read: bool,
    what: What,
    /// Acquisitions by others since.
    turns: u64,
    told: bool,
}

#[derive(Clone, Debug)]
pub struct NonProgress {
    steps_bound: u64,
    turns_bound: u64,
    busy: Vec<Busy>,
    given: Given,
    /// Some atomic had a value: the trace knows them.
    values_known: bool,
    /// Words that threads use as locks, and who wants them.
    words: FxHashMap<u64, Vec<(ThreadIx, Wanting)>>,
    wanting: FxHashMap<ObjectId, Vec<(ThreadIx, Wanting)>>,
    reports: Reports,
    /// Kept apart: a place at which a thread starves may also be one at which it repeats itself.
    starving: Reports,
}

impl Default for NonProgress {
    fn default() -> NonProgress {
        NonProgress::new(STEPS_BOUND, TURNS_BOUND)
    }
}

impl NonProgress {
    pub fn new(steps_bound: u64, turns_bound: u64) -> NonProgress {
        NonProgress {
            steps_bound,
            turns_bound,
            busy: Vec::new(),
            given: Given::default(),
            values_known: false,
            words: FxHashMap::default(),
            wanting: FxHashMap::default(),
            reports: Reports::default(),
            starving: Reports::default(),
        }
    }

    fn starvation(&mut self, step: &Step<'_>) {
        let thread = step.thread();
        match (step.event.op, step.sync) {
            (
                Op::Request { lock, flags, .. }
                | Op::LockFailed { lock, flags }
                | Op::ReadLockFailed { lock, flags },
                _,
            ) => {
                let wanting = self.wanting.entry(lock).or_default();
                if !wanting.iter().any(|(who, _)| *who == thread) {
                    let read =
                        matches!(step.event.op, Op::Request { read: true, .. } | Op::ReadLockFailed { .. });
                    let (site, what) = (Site::of(step), lock_kind(read || flags.rwlock));
                    wanting.push((thread, Wanting { site, read, what, turns: 0, told: false }));
                }
            }
            (Op::Lock { lock, .. } | Op::ReadLock { lock, .. }, Sync::Acquire { .. }) => {
                let Some(wanting) = self.wanting.get_mut(&lock) else { return };
                wanting.retain(|(who, _)| *who != thread);
                let shares = matches!(step.event.op, Op::ReadLock { .. });
                for (_, wants) in wanting.iter_mut().filter(|(_, wants)| !(shares && wants.read)) {
                    wants.turns += 1;
                    if wants.turns > self.turns_bound && !wants.told {
                        wants.told = true;
                        let (wants, winner) = (*wants, Site::of(step));
                        let Wanting { site, read, what, turns, .. } = wants;
                        let subject = Some(Subject::Object(lock, what));
                        self.starving.add(place_key(&[site], lock.0), || {
                            Report::new(NAME, Kind::Starvation, Basis::rule())
                                .detail(Detail::Without { progress_steps: turns })
                                .part(site.part(WaitsFor::Lock { lock, read, what }.action(None)))
                                .part(winner.plays(Role::AcquiresAgain, subject))
                        });
                    }
                }
            }
            (Op::Atomic { addr, kind, read, written, .. }, _) => {
                self.word(step, addr.0, kind, (read, written));
            }
            _ => {}
        }
    }

    /// A lock that is a word: taken from zero to something by an exchange, wanted by who finds it taken.
    fn word(&mut self, step: &Step<'_>, addr: u64, kind: AtomicKind, (read, written): (u64, u64)) {
        let thread = step.thread();
        let taken = kind == AtomicKind::Rmw && read == 0 && written != 0;
        let refused = match kind {
            AtomicKind::Rmw => read != 0 && read == written,
            AtomicKind::CasFailed => read != 0,
            AtomicKind::Load | AtomicKind::Store => false,
        };
        if refused {
            let wanting = self.words.entry(addr).or_default();
            if !wanting.iter().any(|(who, _)| *who == thread) {
                let (site, what) = (Site::of(step), What::Memory);
                wanting.push((thread, Wanting { site, read: false, what, turns: 0, told: false }));
            }
        }
        let Some(wanting) = self.words.get_mut(&addr).filter(|_| taken) else { return };
        wanting.retain(|(who, _)| *who != thread);
        for (_, wants) in wanting {
            wants.turns += 1;
            if wants.turns <= self.turns_bound || wants.told {
                continue;
            }
            wants.told = true;
            let (wants, winner) = (*wants, Site::of(step));
            self.starving.add(place_key(&[wants.site], addr), || {
                let (lock, what) = (ObjectId(addr), wants.what);
                let waits = WaitsFor::Lock { lock, read: false, what }.action(None);
                Report::new(NAME, Kind::Starvation, Basis::rule())
                    .detail(Detail::Without { progress_steps: wants.turns })
                    .part(wants.site.part(waits))
                    .part(
                        winner.plays(Role::AcquiresAgain, step.vars.first().copied().map(Subject::Variable)),
                    )
            });
        }
    }

    /// Does an atomic write give its thread's word a value that it never gave it?
    fn is_new_value(&mut self, thread: ThreadIx, addr: u64, written: u64) -> bool {
        self.values_known |= written != 0;
        let given = self.given.entry((thread, addr)).or_default();
        let new = !given.contains(&written);
        if new {
            if given.len() >= VALUES_MAX {
                given.remove(0);
            }
            given.push(written);
        }
        new || !self.values_known
    }
}

fn is_progress(op: &Op) -> bool {
    match op {
        Op::Write { .. }
        | Op::Alloc { .. }
        | Op::Free { .. }
        | Op::Fork { .. }
        | Op::Join { .. }
        | Op::Start { .. }
        | Op::End
        | Op::Signal { .. }
        | Op::Broadcast { .. }
        | Op::Wait { .. }
        | Op::SemPost { .. }
        | Op::SemWait { .. }
        | Op::OnceEnd { .. }
        | Op::Custom { .. }
        | Op::Release { .. }
        | Op::Send { .. }
        | Op::ProcessFork { .. }
        | Op::ProcessExec { .. }
        | Op::ProcessExit { .. } => true,
        // Looked at by its caller, who knows what the thread wrote before.
        Op::Atomic { .. } => false,
        Op::Read { .. }
        | Op::Fence { .. }
        | Op::Lost { .. }
        | Op::AtomicBegin { .. }
        | Op::AtomicEnd { .. }
        | Op::Yield
        | Op::JoinFailed { .. }
        | Op::Detach { .. }
        | Op::Cancel { .. }
        | Op::WaitBegin { .. }
        | Op::WaitFailed { .. }
        | Op::SemInit { .. }
        | Op::SemWaitFailed { .. }
        | Op::SemRequest { .. }
        | Op::OnceBegin { .. }
        | Op::OncePassed { .. }
        | Op::Acquire { .. }
        | Op::BenignRace { .. }
        | Op::Receive { .. }
        | ops_about!(Lock, Barrier, Futex, Signal, Life) => false,
    }
}

impl Detector for NonProgress {
    fn step(&mut self, step: &Step<'_>) {
        self.starvation(step);
        let thread = step.thread();
        if self.busy.len() <= thread.index() {
            self.busy.resize(thread.index() + 1, Busy::default());
        }
        let writes_again = match step.event.op {
            Op::Atomic { kind, read, written, .. }
                if kind == AtomicKind::Rmw && read == written && written != 0 =>
            {
                Some(true)
            }
            Op::Atomic { addr, kind, written, .. } if kind.writes() => {
                Some(!self.is_new_value(thread, addr.0, written))
            }
            Op::Atomic { .. }
            | Op::Read { .. }
            | Op::Write { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | ops_about!(Sync) => None,
        };
        let busy = &mut self.busy[thread.index()];
        if writes_again == Some(false) || is_progress(&step.event.op) {
            if busy.steps > 0 {
                *busy = Busy::default();
            }
            return;
        }
        busy.steps += 1;
        busy.failed += u64::from(
            matches!(
                step.event.op,
                Op::LockFailed { .. } | Op::ReadLockFailed { .. } | Op::WaitFailed { .. }
            ) || writes_again == Some(true),
        );
        if busy.places.len() <= PLACES_MAX {
            busy.places.insert(step.event.location);
        }
        if busy.steps <= self.steps_bound || busy.told || busy.places.len() > PLACES_MAX {
            return;
        }
        busy.told = true;
        let (steps, fails) = (busy.steps, busy.failed > 0);
        // Somebody else that fails and makes no progress either: they keep each other from it.
        let partner = self.busy.iter().enumerate().find(|(other, busy)| {
            *other != thread.index() && busy.failed > 0 && busy.steps > self.steps_bound / 2
        });
        let kind = if fails && partner.is_some() { Kind::Livelock } else { Kind::NonProgress };
        let site = Site::of(step);
        self.reports.add(place_key(&[site], u64::from(thread.0)), || {
            Report::new(NAME, kind, Basis::rule())
                .detail(Detail::Without { progress_steps: steps })
                .part(site.plays(Role::RepeatsItself, None))
        });
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let mut reports = self.reports.take();
        reports.extend(self.starving.take());
        reports
    }
}
