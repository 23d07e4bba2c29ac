//! Who waits for what at the moment: the common part of the detectors for deadlocks and blocked threads.

use crate::race::Site;
use crate::step::{Step, Sync};
use raddle_trace::{ObjectId, Op, ThreadIx};
use rustc_hash::FxHashMap;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    Lock(ObjectId),
    Condition(ObjectId),
    Semaphore(ObjectId),
    Barrier(ObjectId),
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
    holders: FxHashMap<ObjectId, Vec<(ThreadIx, Site)>>,
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
            Op::Request { lock, .. } => Some((WaitsFor::Lock(lock), site)),
            Op::WaitBegin { cond, .. } => Some((WaitsFor::Condition(cond), site)),
            Op::SemRequest { sem } => Some((WaitsFor::Semaphore(sem), site)),
            Op::BarrierEnter { barrier } => Some((WaitsFor::Barrier(barrier), site)),
            // Back from the wait, the thread needs the mutex again.
            Op::Wait { lock, .. } | Op::WaitFailed { lock, .. } => Some((WaitsFor::Lock(lock), site)),
            _ => None,
        };
        match (step.event.op, step.sync) {
            (Op::End, _) => actor.ended = true,
            (Op::Lock { lock, .. } | Op::ReadLock { lock, .. }, Sync::Acquire { .. }) => {
                self.holders.entry(lock).or_default().push((thread, site));
            }
            (Op::Unlock { lock, .. }, Sync::Release { .. }) => {
                self.holders.entry(lock).or_default().retain(|(holder, _)| *holder != thread);
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

    /// Who holds a lock, and where it was acquired.
    pub fn holders(&self, lock: ObjectId) -> &[(ThreadIx, Site)] {
        self.holders.get(&lock).map_or(&[], Vec::as_slice)
    }

    pub fn has_ended(&self, thread: ThreadIx) -> bool {
        self.actors.get(thread.index()).is_some_and(|actor| actor.ended)
    }

    /// Is there a thread, beside those that wait, that could still do something?
    pub fn somebody_runs(&self) -> bool {
        self.actors.iter().any(|actor| actor.seen && !actor.ended && actor.waits.is_none())
    }

    /// A set of threads each of which waits for a lock held by another one of the set, if there is one.
    pub fn lock_cycles(&self) -> Vec<Vec<(ThreadIx, ObjectId, Site)>> {
        let waits: FxHashMap<ThreadIx, (ObjectId, Site)> = self
            .waiting()
            .filter_map(|(thread, what, site)| match what {
                WaitsFor::Lock(lock) => Some((thread, (lock, site))),
                _ => None,
            })
            .collect();
        let mut done: Vec<ThreadIx> = Vec::new();
        let mut cycles = Vec::new();
        let mut starts: Vec<ThreadIx> = waits.keys().copied().collect();
        starts.sort_unstable();
        for start in starts {
            let mut path: Vec<ThreadIx> = Vec::new();
            let mut at = start;
            while let Some(&(lock, _)) = waits.get(&at)
                && !done.contains(&at)
            {
                if let Some(place) = path.iter().position(|&thread| thread == at) {
                    let cycle = &path[place..];
                    cycles.push(cycle.iter().map(|&t| (t, waits[&t].0, waits[&t].1)).collect());
                    break;
                }
                path.push(at);
                match self.holders(lock).iter().map(|(holder, _)| *holder).find(|&h| h != at) {
                    Some(holder) => at = holder,
                    None => break,
                }
            }
            done.extend(path);
        }
        cycles
    }
}
