//! `goodlock`: cycles in the lock graph.
//!
//! **Definition** (Havelund, *Using runtime analysis to guide model checking of Java programs*, 2000; Agarwal, Wang,
//! Stoller, *Detecting potential deadlocks with static analysis and run-time monitoring*, 2005; Bensalem, Havelund
//! 2005; the survey's §6). Threads ask for locks while holding others. A cycle of such requests, each for a lock that
//! the next thread holds, is a potential deadlock if the threads are all different (*single-thread filter*), and no two
//! of them hold something that excludes the other (*gate locks*). Two readers of a read-write lock do not exclude each
//! other.
//!
//! **Complete** for lock cycles of at most [`THREADS_MAX`] threads in the observed acquisitions, **not sound**: the
//! threads may never be able to be there at the same time. Grade *suspected*. [`super::spd`] keeps those with a
//! witness.
//!
//! **Deviations**: found by depth-first search over abstract acquisitions with any number of threads, instead of
//! comparing the lock trees of two. A set of locks is reported once.
//!
//! **Cost**: constant an event; the search at the end can be exponential in the number of locks and is limited.

use crate::detector::{Detector, End};
use crate::lockgraph::{Ask, LockGraph};
use crate::report::{Key, PartAction, Remark, Report, Reports};
use crate::step::{LockIx, Names, Step};
use raddle_findings::{Basis, Kind};
use raddle_trace::{ObjectId, Op, ops_beside};
use rustc_hash::FxHashMap;

pub const NAME: &str = "goodlock";

/// Longest cycle that is searched for.
pub const THREADS_MAX: usize = 4;

/// Steps of the search.
const SEARCH_MAX: u64 = 20_000_000;

#[derive(Clone, Debug, Default)]
pub struct Goodlock {
    graph: LockGraph,
    /// Numbers of locks by their objects, for requests, which have none themselves.
    locks: FxHashMap<ObjectId, LockIx>,
}

/// Remembers the number of a lock when it is acquired.
pub(crate) fn learn_lock(locks: &mut FxHashMap<ObjectId, LockIx>, step: &Step<'_>) {
    if let (Op::Lock { lock, .. } | Op::ReadLock { lock, .. }, crate::step::Sync::Acquire { lock: ix, .. }) =
        (step.event.op, step.sync)
    {
        locks.insert(lock, ix);
    }
}

/// The lock that a request is for, if it has been acquired before by anybody.
pub(crate) fn requested(locks: &FxHashMap<ObjectId, LockIx>, step: &Step<'_>) -> Option<LockIx> {
    match step.event.op {
        Op::Request { lock, .. } => locks.get(&lock).copied(),
        Op::Lock { .. }
        | Op::LockFailed { .. }
        | Op::ReadLock { .. }
        | Op::ReadLockFailed { .. }
        | Op::Unlock { .. }
        | ops_beside!(Lock) => None,
    }
}

/// Tells a cycle of requests.
pub(crate) fn tell(by: &'static str, kind: Kind, cycle: &[&Ask], names: &Names) -> Report {
    cycle.iter().fold(Report::new(by, kind, Basis::rule()), |report, ask| {
        let subject = Some(names.lock(ask.wanted.lock));
        let action = PartAction::Acquires { subject, read: ask.wanted.read };
        report.part(ask.first.part(action).holding(ask.holding.iter().copied()))
    })
}

pub(crate) fn cycle_key(cycle: &[&Ask]) -> Key {
    cycle.iter().map(|ask| u64::from(ask.wanted.lock.0)).collect()
}

impl Goodlock {
    /// All cycles, each from its smallest member. `visit` gets every cycle; the result is false if the search was cut.
    pub(crate) fn cycles<'a>(asks: &'a [Ask], mut visit: impl FnMut(&[&'a Ask])) -> bool {
        let mut by_held: FxHashMap<LockIx, Vec<usize>> = FxHashMap::default();
        for (number, ask) in asks.iter().enumerate() {
            for mode in &ask.held {
                by_held.entry(mode.lock).or_default().push(number);
            }
        }
        let none = Vec::new();
        let mut budget = SEARCH_MAX;
        for length in 2..=THREADS_MAX {
            for start in 0..asks.len() {
                let mut path = vec![start];
                let mut choices = vec![0_usize];
                while let Some(choice) = choices.last_mut() {
                    let last = &asks[*path.last().expect("as long as choices")];
                    let holders = by_held.get(&last.wanted.lock).unwrap_or(&none);
                    let Some(&next) = holders.get(*choice) else {
                        choices.pop();
                        path.pop();
                        continue;
                    };
                    *choice += 1;
                    if budget == 0 {
                        return false;
                    }
                    budget -= 1;
                    if !asks[next].blocks(last) {
                        continue;
                    }
                    if path.len() == length {
                        if next == start {
                            let cycle: Vec<&Ask> = path.iter().map(|&number| &asks[number]).collect();
                            visit(&cycle);
                        }
                    } else if next > start && path.iter().all(|&other| asks[other].coexists(&asks[next])) {
                        path.push(next);
                        choices.push(0);
                    }
                }
            }
        }
        true
    }
}

impl Detector for Goodlock {
    fn step(&mut self, step: &Step<'_>) {
        if step.plain_access().is_some() {
            return;
        }
        learn_lock(&mut self.locks, step);
        self.graph.step(step, || requested(&self.locks, step));
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let mut reports = Reports::default();
        let complete = Goodlock::cycles(self.graph.asks(), |cycle| {
            reports.add(cycle_key(cycle), || tell(NAME, Kind::Deadlock, cycle, end.names));
        });
        let mut list = reports.take();
        if !complete && let Some(last) = list.last_mut() {
            last.remarks.push(Remark::CyclesCut);
        }
        list
    }
}
