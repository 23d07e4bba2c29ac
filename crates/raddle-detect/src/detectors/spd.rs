//! `spd`: sync-preserving deadlocks, with a witness for each.
//!
//! **Definition** (Tunç, Mathur, Pavlogiannis, Viswanathan, *Sound dynamic deadlock prediction in linear time*, PLDI
//! 2023). A *deadlock pattern* is a cycle of acquisitions by different threads, each asking for a lock that the next
//! one holds, with nothing held in common. It is a sync-preserving deadlock if some reordering that keeps the order of
//! critical sections and what reads saw makes all these acquisitions next. That is so exactly if none of them is in the
//! least [ideal](crate::skeleton) that contains what comes before each.
//!
//! **Sound**: the witness ends in the deadlock. **Complete** for sync-preserving deadlocks of at most
//! [`Limits::threads_max`] threads, unless a limit was reached, which is then said. The cycles that [`super::goodlock`]
//! warns about contain these.
//!
//! **How**. Acquisitions with the same thread, lock and held locks are one *abstract acquisition*. Cycles are searched
//! among these, short ones first. For each cycle the concrete acquisitions are tried in order, as in [`super::syncp`]: an
//! acquisition that is in the ideal of the current ones is in that of all later ones too, so each list is walked once.
//!
//! **Deviations.** Try and timed acquisitions do not block, so they hold but never ask. Read-write locks are taken in
//! observed order and are left to `goodlock`. A cycle of locks is reported once.
//!
//! **Cost**: linear in the acquisitions for each abstract cycle; the number of cycles can be exponential in the number
//! of locks, hence the limits.

use crate::detector::{Detector, End};
use crate::locksets::{LockSetIx, LockSets};
use crate::report::{Holding, Part, PartAction, Remark, Report, Reports};
use crate::skeleton::{Ideal, Skeleton};
use crate::step::{LockIx, PerVar, Step, Sync};
use raddle_findings::{Basis, Fidelity, Kind};
use raddle_trace::{ContextIx, LocationIx, Op, Patience, ThreadIx, ops_beside};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

pub const NAME: &str = "spd";

/// Bounds on the search for cycles.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads in a cycle.
    pub threads_max: usize,
    /// Abstract cycles looked at.
    pub cycles_max: u64,
    /// Steps of the search for cycles.
    pub search_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { threads_max: 4, cycles_max: 200_000, search_max: 20_000_000 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Instance {
    index: u32,
    position: u64,
    location: LocationIx,
    context: ContextIx,
    /// The locks held and where they were acquired, in [`Spd::holdings`].
    holding: u32,
}

/// Locks that a thread holds, with the places of their acquisitions.
type Holdings = SmallVec<[Holding; 2]>;

/// Acquisitions by one thread of one lock while holding the same others.
#[derive(Clone, Debug)]
struct Abstract {
    thread: ThreadIx,
    lock: LockIx,
    held: LockSetIx,
    instances: Vec<Instance>,
}

/// A deadlock that was found: who asks for which lock, at which place of the observed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpdDeadlock {
    pub parts: Vec<(ThreadIx, LockIx, u64, LocationIx)>,
    pub witness: Ideal,
}

#[derive(Debug, Default)]
pub struct Spd {
    skeleton: Skeleton,
    locksets: LockSets,
    writers: PerVar<Option<(ThreadIx, u32)>>,
    rwlocks: FxHashSet<LockIx>,
    nodes: Vec<Abstract>,
    index: FxHashMap<(ThreadIx, LockIx, LockSetIx), usize>,
    holdings: Vec<Holdings>,
    holding_index: FxHashMap<Holdings, u32>,
    limits: Limits,
    every_cycle: bool,
    deadlocks: Vec<SpdDeadlock>,
}

impl Spd {
    pub fn new() -> Spd {
        Spd::default()
    }

    /// Looks at every abstract cycle, also where the cycle of locks is known to deadlock.
    pub fn every_cycle(limits: Limits) -> Spd {
        Spd { every_cycle: true, limits, ..Spd::default() }
    }

    /// The deadlocks found; filled by [`Detector::finish`].
    pub fn deadlocks(&self) -> &[SpdDeadlock] {
        &self.deadlocks
    }

    fn acquire(&mut self, step: &Step<'_>, lock: LockIx, read: bool, index: u32) {
        let flags = match step.event.op {
            Op::Lock { flags, .. } | Op::ReadLock { flags, .. } => flags,
            Op::LockFailed { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::Request { .. }
            | ops_beside!(Lock) => return,
        };
        // Also when it is only read: two threads that both hold it in read mode do not exclude each other.
        if read || flags.rwlock {
            self.rwlocks.insert(lock);
        }
        if self.rwlocks.contains(&lock) || flags.patience != Patience::Blocking {
            return;
        }
        let rwlocks = &self.rwlocks;
        let others = step.held.iter().map(|held| held.lock).filter(|lock| !rwlocks.contains(lock));
        let held = self.locksets.intern(others);
        if held == LockSetIx::EMPTY {
            return;
        }
        let thread = step.thread();
        let node = *self.index.entry((thread, lock, held)).or_insert_with(|| {
            self.nodes.push(Abstract { thread, lock, held, instances: Vec::new() });
            self.nodes.len() - 1
        });
        let (location, context) = (step.event.location, step.event.context);
        let holding = self.holding(step);
        let position = step.position;
        self.nodes[node].instances.push(Instance { index, position, location, context, holding });
    }

    fn holding(&mut self, step: &Step<'_>) -> u32 {
        let holding: Holdings = step.held.iter().map(Holding::from).collect();
        let next = self.holdings.len() as u32;
        *self.holding_index.entry(holding).or_insert_with_key(|holding| {
            self.holdings.push(holding.clone());
            next
        })
    }

    /// Tries the concrete acquisitions of an abstract cycle.
    fn try_cycle(&mut self, cycle: &[usize]) -> Option<SpdDeadlock> {
        let mut places = vec![0_usize; cycle.len()];
        let mut closed = Ideal::default();
        loop {
            let mut ideal = closed.clone();
            for (&node, &place) in cycle.iter().zip(&places) {
                let node = &self.nodes[node];
                self.skeleton.ask_before_sync(&mut ideal, node.thread, node.instances[place].index);
            }
            if !self.skeleton.close(&mut ideal, &closed) {
                return None;
            }
            let mut moved = false;
            for (&node, place) in cycle.iter().zip(&mut places) {
                let node = &self.nodes[node];
                let reached = ideal.len_of(node.thread);
                let skip = node.instances[*place..].partition_point(|instance| instance.index <= reached);
                moved |= skip > 0;
                *place += skip;
                if *place == node.instances.len() {
                    return None;
                }
            }
            if !moved {
                let part = |(&node, &place): (&usize, &usize)| {
                    let node = &self.nodes[node];
                    let instance = node.instances[place];
                    (node.thread, node.lock, instance.position, instance.location)
                };
                let parts = cycle.iter().zip(&places).map(part).collect();
                return Some(SpdDeadlock { parts, witness: ideal });
            }
            closed = ideal;
        }
    }

    fn report(&self, cycle: &[usize], deadlock: &SpdDeadlock, end: &End<'_>) -> Report {
        let mut report = Report::new(NAME, Kind::Deadlock, Basis::model(true, Fidelity::KeepsReads));
        for (&node, &(thread, lock, position, location)) in cycle.iter().zip(&deadlock.parts) {
            let instances = &self.nodes[node].instances;
            let instance = instances.iter().find(|i| i.position == position).expect("a part is an instance");
            let action = PartAction::Acquires { subject: Some(end.names.lock(lock)), read: false };
            let held = self.holdings[instance.holding as usize].to_vec();
            let context = instance.context;
            report = report.part(Part { thread, location, context, position, action, held });
        }
        report.witness = Some(deadlock.witness.clone());
        report
    }
}

impl Detector for Spd {
    fn step(&mut self, step: &Step<'_>) {
        self.writers.follow(step);
        let index = self.skeleton.step(step);
        match step.plain_access() {
            Some(true) => {
                for &var in step.vars {
                    *self.writers.get_mut(var) = Some((step.thread(), index));
                }
            }
            Some(false) => {
                for &var in step.vars {
                    if let Some((writer, index)) = *self.writers.get_mut(var) {
                        self.skeleton.saw(step.thread(), writer, index);
                    }
                }
            }
            None => {
                if let Sync::Acquire { lock, read } = step.sync {
                    self.acquire(step, lock, read, index);
                }
            }
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let mut reports = Reports::default();
        let mut known: FxHashSet<Vec<LockIx>> = FxHashSet::default();
        let graph = Cycles::of(&self.nodes, &self.locksets);
        let mut budget = self.limits.search_max;
        let mut looked_at = 0_u64;
        'lengths: for length in 2..=self.limits.threads_max {
            let (cycles, complete) =
                graph.of_length(length, &self.nodes, &self.locksets, &mut budget, |locks| {
                    !self.every_cycle && known.contains(locks)
                });
            for cycle in cycles {
                let mut locks: Vec<LockIx> = cycle.iter().map(|&node| self.nodes[node].lock).collect();
                locks.sort_unstable();
                if !self.every_cycle && known.contains(&locks) {
                    continue;
                }
                looked_at += 1;
                if looked_at > self.limits.cycles_max {
                    budget = 0;
                    break 'lengths;
                }
                if let Some(deadlock) = self.try_cycle(&cycle) {
                    let key = locks.iter().map(|lock| u64::from(lock.0)).collect();
                    reports.add(key, || self.report(&cycle, &deadlock, end));
                    self.deadlocks.push(deadlock);
                    known.insert(locks);
                }
            }
            if !complete {
                break;
            }
        }
        let mut list = reports.take();
        if budget == 0
            && let Some(last) = list.last_mut()
        {
            last.remarks.push(Remark::CyclesCut);
        }
        list
    }
}

/// The abstract lock graph: from an abstract acquisition to those that hold the lock it asks for.
struct Cycles {
    next: Vec<Vec<usize>>,
}

/// Cycles of one length are collected before they are tried; at most so many at a time.
const COLLECTED_MAX: usize = 1_000_000;

impl Cycles {
    fn of(nodes: &[Abstract], locksets: &LockSets) -> Cycles {
        let mut holders: FxHashMap<LockIx, Vec<usize>> = FxHashMap::default();
        for (number, node) in nodes.iter().enumerate() {
            for &lock in locksets.get(node.held) {
                holders.entry(lock).or_default().push(number);
            }
        }
        let none = Vec::new();
        let next = nodes
            .iter()
            .map(|node| {
                let candidates = holders.get(&node.lock).unwrap_or(&none).iter().copied();
                candidates
                    .filter(|&other| {
                        let other = &nodes[other];
                        other.thread != node.thread && locksets.disjoint(other.held, node.held)
                    })
                    .collect()
            })
            .collect();
        Cycles { next }
    }

    /// The cycles of one length, each once: it begins with its smallest node. The second result is false if the budget
    /// did not suffice.
    fn of_length(
        &self,
        length: usize,
        nodes: &[Abstract],
        locksets: &LockSets,
        budget: &mut u64,
        known: impl Fn(&Vec<LockIx>) -> bool,
    ) -> (Vec<Vec<usize>>, bool) {
        let mut found = Vec::new();
        for start in 0..nodes.len() {
            let mut path = vec![start];
            let mut choices = vec![0_usize];
            while let Some(choice) = choices.last_mut() {
                let node = *path.last().expect("as long as choices");
                let Some(&next) = self.next[node].get(*choice) else {
                    choices.pop();
                    path.pop();
                    continue;
                };
                *choice += 1;
                if *budget == 0 || found.len() >= COLLECTED_MAX {
                    *budget = 0;
                    return (found, false);
                }
                *budget -= 1;
                if path.len() == length {
                    if next == start {
                        let mut locks: Vec<LockIx> = path.iter().map(|&node| nodes[node].lock).collect();
                        locks.sort_unstable();
                        if !known(&locks) {
                            found.push(path.clone());
                        }
                    }
                    continue;
                }
                let fits = next > start
                    && path.iter().all(|&other| {
                        let (other, next) = (&nodes[other], &nodes[next]);
                        other.thread != next.thread
                            && other.lock != next.lock
                            && locksets.disjoint(other.held, next.held)
                    });
                if fits {
                    path.push(next);
                    choices.push(0);
                }
            }
        }
        (found, true)
    }
}
