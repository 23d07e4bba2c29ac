//! `syncp`: sync-preserving data races, with a witness for each.
//!
//! **Definition** (Mathur, Pavlogiannis, Viswanathan, *Optimal prediction of synchronization-preserving races*, POPL
//! 2021). Two conflicting accesses of different threads are a sync-preserving race if some reordering of the trace
//! makes both of them next, keeps what every read saw, and keeps the order of the critical sections of each lock that
//! it executes. That is so exactly if neither access is in the least [ideal](crate::skeleton) that contains what comes
//! before them.
//!
//! **Sound**: every report has a witness, the ideal in observed order; nothing that it executes differs from what was
//! observed. **Complete** for sync-preserving races: an access is reported exactly if it races with some earlier one.
//! All races of [`super::shb`] are among them, and many that need critical sections to be left out.
//!
//! **Why one pass is enough.** Ideals grow with the events asked for. For an access `e2` of thread `t2`, the accesses of
//! `t1` to the variable are tried in order; one that is in the ideal of itself and `e2` is in the ideal of itself and
//! every later access of `t2` too, and is never tried again. So each list of accesses is walked once for each other
//! thread, and the ideal of the last try is a start for the next.
//!
//! **Deviations.** Two accesses under a common lock are passed over without computing the ideal (it would contain the
//! earlier one's release). Accesses of a thread between which it synchronised with nobody are one entry. Unless asked
//! for every event ([`Syncp::every_event`]), a pair of code locations is looked for only until it was found once.
//! Accesses that every thread knows are forgotten, see [`Skeleton::known_by_all`]: if a thread that nobody forked appears
//! only late in a converted trace, races with forgotten accesses are missed.
//! See [`crate::skeleton`] for what is done with primitives other than mutexes.
//!
//! **Cost**: for each access and other thread one ideal at most, each of them locks x threads x log(sections) in the
//! worst case and usually a few steps; memory grows with the accesses that some thread does not know of.

use crate::detector::{Detector, End};
use crate::locksets::{LockSetIx, LockSets};
use crate::race::{Site, Touch};
use crate::report::{Holding, Report, Reports, Subject, place_key};
use crate::skeleton::{Ideal, Skeleton};
use crate::step::{PerVar, Step, Sync, VarIx};
use raddle_findings::{Basis, Fidelity, Kind};
use raddle_trace::{ContextIx, LocationIx, ThreadIx};

pub const NAME: &str = "syncp";

#[derive(Clone, Copy, Debug)]
struct Access {
    /// Number within the thread, from 1.
    index: u32,
    locks: LockSetIx,
    location: LocationIx,
    context: ContextIx,
    position: u64,
    /// The thread's segment: how often it had synchronised.
    segment: u32,
    touch: Touch,
}

impl Access {
    fn site(&self, thread: ThreadIx) -> Site {
        let &Access { location, context, position, touch, .. } = self;
        Site { thread, location, context, touch, position }
    }
}

/// How far another thread's accesses of one type have got in a list.
#[derive(Clone, Debug)]
struct Cursor {
    thread: ThreadIx,
    write: bool,
    next: u32,
    ideal: Ideal,
}

/// What decides, nearly always, that no access of a list can race with a new one.
#[derive(Clone, Copy, Debug)]
struct Head {
    thread: ThreadIx,
    write: bool,
    /// Number of the last access.
    last: u32,
    /// Locks that were held at all accesses.
    common: LockSetIx,
}

/// The accesses of one thread and type to a variable.
#[derive(Clone, Debug, Default)]
struct List {
    accesses: Vec<Access>,
    cursors: Vec<Cursor>,
    /// At this length accesses that everybody knows are dropped.
    prune_at: usize,
}

#[derive(Clone, Debug, Default)]
struct Variable {
    /// One for each list.
    heads: Vec<Head>,
    lists: Vec<List>,
    writer: Option<(ThreadIx, u32)>,
}

/// Shorter lists are not pruned.
const PRUNE_MIN: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    number: u32,
    locks: LockSetIx,
    lessons: usize,
}

/// A race that was found, by places in the observed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncpRace {
    pub var: VarIx,
    pub first: u64,
    pub second: u64,
    pub threads: (ThreadIx, ThreadIx),
    pub locations: (LocationIx, LocationIx),
    pub witness: Ideal,
}

#[derive(Debug, Default)]
pub struct Syncp {
    skeleton: Skeleton,
    locksets: LockSets,
    variables: PerVar<Variable>,
    segments: Vec<Segment>,
    reports: Reports,
    every_event: bool,
    races: Vec<SyncpRace>,
    closures: u64,
}

impl Syncp {
    pub fn new() -> Syncp {
        Syncp::default()
    }

    /// Looks at every access, also where the pair of locations is known to race, and keeps every race.
    pub fn every_event() -> Syncp {
        Syncp { every_event: true, ..Syncp::default() }
    }

    /// The races found, in the order of their second access: each one, or the first of each pair of locations.
    pub fn races(&self) -> &[SyncpRace] {
        &self.races
    }

    /// How many ideals were computed.
    pub fn closures(&self) -> u64 {
        self.closures
    }

    fn segment(&mut self, step: &Step<'_>) -> Segment {
        let thread = step.thread();
        if self.segments.len() <= thread.index() {
            self.segments.resize(thread.index() + 1, Segment::default());
        }
        let lessons = self.skeleton.lessons_of(thread);
        let segment = &mut self.segments[thread.index()];
        if segment.lessons != lessons {
            segment.lessons = lessons;
            segment.number += 1;
        }
        *segment
    }

    fn access(&mut self, step: &Step<'_>, index: u32, write: bool) {
        let segment = self.segment(step);
        let thread = step.thread();
        let new = Access {
            index,
            locks: segment.locks,
            location: step.event.location,
            context: step.event.context,
            position: step.position,
            segment: segment.number,
            touch: Touch::of(&step.event.op),
        };
        for &var in step.vars {
            self.check(var, thread, write, &new);
        }
        // What the access itself sees must not count as known while its other bytes are looked at.
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            match variable.heads.iter().position(|head| head.thread == thread && head.write == write) {
                Some(place) => {
                    let head = &mut variable.heads[place];
                    head.last = index;
                    head.common = self.locksets.meet(head.common, new.locks);
                    let list = &mut variable.lists[place];
                    list.push(new);
                    if list.accesses.len() >= list.prune_at.max(PRUNE_MIN) {
                        list.prune(self.skeleton.known_by_all(thread));
                    }
                }
                None => {
                    variable.heads.push(Head { thread, write, last: index, common: new.locks });
                    variable.lists.push(List { accesses: vec![new], ..List::default() });
                }
            }
            if write {
                variable.writer = Some((thread, index));
            } else if let Some((writer, index)) = variable.writer {
                self.skeleton.saw(thread, writer, index);
            }
        }
    }

    /// Looks for an earlier access that races with the new one.
    fn check(&mut self, var: VarIx, thread: ThreadIx, write: bool, new: &Access) {
        let variable = self.variables.get_mut(var);
        for (head, list) in variable.heads.iter().zip(&mut variable.lists) {
            if head.thread == thread || !(write || head.write) {
                continue;
            }
            let known = self.skeleton.knows(thread, head.thread);
            // Nothing that this thread does not know, or a lock that excludes all of them: the walk can wait.
            if head.last <= known || !self.locksets.disjoint(head.common, new.locks) {
                continue;
            }
            let cursor = match list.cursors.iter().position(|c| c.thread == thread && c.write == write) {
                Some(place) => &mut list.cursors[place],
                None => {
                    list.cursors.push(Cursor { thread, write, next: 0, ideal: Ideal::default() });
                    list.cursors.last_mut().expect("just added")
                }
            };
            while let Some(old) = list.accesses.get(cursor.next as usize) {
                if old.index <= known || !self.locksets.disjoint(old.locks, new.locks) {
                    cursor.next += 1;
                    continue;
                }
                let (first, second) = (old.site(head.thread), new.site(thread));
                let key = place_key(&[first, second], u64::from(var.0));
                if !self.every_event && self.reports.contains(key.clone()) {
                    break;
                }
                self.closures += 1;
                let mut ideal = cursor.ideal.clone();
                self.skeleton.ask_before_access(&mut ideal, head.thread, old.index);
                self.skeleton.ask_before_access(&mut ideal, thread, new.index);
                let possible = self.skeleton.close(&mut ideal, &cursor.ideal);
                if !possible {
                    cursor.next += 1;
                    continue;
                }
                cursor.ideal.clone_from(&ideal);
                if ideal.len_of(head.thread) >= old.index {
                    cursor.next += 1;
                    continue;
                }
                self.races.push(SyncpRace {
                    var,
                    first: old.position,
                    second: new.position,
                    threads: (head.thread, thread),
                    locations: (old.location, new.location),
                    witness: ideal.clone(),
                });
                self.reports.add(key, || {
                    let subject = Some(Subject::Variable(var));
                    let held = |locks| self.locksets.get(locks).iter().map(|&lock| Holding::somewhere(lock));
                    let basis = Basis::model(true, Fidelity::KeepsReads);
                    let mut report = Report::new(NAME, Kind::DataRace, basis)
                        .part(first.accesses(subject).holding(held(old.locks)))
                        .part(second.accesses(subject).holding(held(new.locks)));
                    report.witness = Some(ideal);
                    report
                });
                break;
            }
        }
    }
}

impl List {
    /// Adds an access. If the thread did nothing of interest since the last one, the new one takes its place: it is the
    /// easier one to race with, because it is later and needs no more from other threads.
    fn push(&mut self, new: Access) {
        let count = self.accesses.len();
        match self.accesses.last_mut() {
            Some(last)
                if (last.segment, last.locks, last.location) == (new.segment, new.locks, new.location)
                    && self.cursors.iter().all(|cursor| (cursor.next as usize) < count) =>
            {
                *last = new;
            }
            _ => self.accesses.push(new),
        }
    }

    /// Drops the accesses that all threads know, up to number `known`: they race with nothing that is still to come. A
    /// thread that begins later knows what its parent knows.
    fn prune(&mut self, known: u32) {
        let count = self.accesses.partition_point(|access| access.index <= known);
        self.accesses.drain(..count);
        for cursor in &mut self.cursors {
            cursor.next = cursor.next.saturating_sub(count as u32);
        }
        self.prune_at = 2 * self.accesses.len();
    }
}

impl Detector for Syncp {
    fn soon(&mut self, vars: &[VarIx]) {
        let variables = vars.iter().filter_map(|&var| self.variables.get(var));
        // The sum is of no interest: reading is.
        std::hint::black_box(
            variables.fold(0, |sum, variable| sum ^ variable.heads.first().map_or(0, |head| head.last)),
        );
    }

    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let index = self.skeleton.step(step);
        if let Some(write) = step.plain_access() {
            return self.access(step, index, write);
        }
        let segment = {
            self.segment(step);
            &mut self.segments[step.thread().index()]
        };
        segment.number += 1;
        // Only mutexes: read-write locks order their sections in the skeleton.
        let own = match step.sync {
            Sync::Acquire { lock, read: false } => Some((lock, true)),
            Sync::Release { lock, .. } => Some((lock, false)),
            Sync::None
            | Sync::Acquire { .. }
            | Sync::Fork(_)
            | Sync::Join(_)
            | Sync::Receive(_)
            | Sync::Send(_)
            | Sync::Exchange(_) => None,
        };
        if let Some((lock, acquired)) = own {
            let others =
                step.held.iter().filter(|held| !held.read && held.lock != lock).map(|held| held.lock);
            segment.locks = self.locksets.intern(others.chain(acquired.then_some(lock)));
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.reports.take()
    }
}
