//! Could this operation go after those? The state of locks, semaphores, conditions, barriers and threads, as far as it can be
//! told from the operations themselves.
//!
//! A race is worth reversing only if the later operation could have gone without the earlier one; a lock cannot be taken before it
//! is released. What is asked here about sequences that were never run is what the runtime decides by trying. The enabling rule is
//! the table's ([`raddle_wire::Demand`]); here are the facts that it is about, and what each effect changes in them.

use super::run::{Event, ThreadId};
use raddle_sched::Operation;
use raddle_sched::dependence::{GIVES_UP, REENTERS};
use raddle_wire::{Demand, Effect, Situation, StepKind, step};
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
struct Lock {
    owner: Option<ThreadId>,
    depth: u32,
    readers: Vec<ThreadId>,
}

#[derive(Clone, Debug, Default)]
struct Condition {
    /// Threads that wait, with the time at which they began.
    waiters: Vec<(ThreadId, u64)>,
    /// Signals that nobody has taken yet: each is for those who waited before it.
    signals: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    arrived: u32,
    round: u32,
    /// The round in which a thread entered.
    inside: HashMap<ThreadId, u32>,
}

/// The state of all objects.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    locks: HashMap<u64, Lock>,
    semaphores: HashMap<u64, i64>,
    conditions: HashMap<u64, Condition>,
    barriers: HashMap<u64, Barrier>,
    once: HashMap<u64, bool>,
    forked: Vec<u64>,
    ended: Vec<u64>,
    clock: u64,
}

impl Objects {
    /// Can the thread perform the operation now?
    pub fn enables(&self, thread: ThreadId, op: &Operation) -> bool {
        if op.flags & GIVES_UP != 0 {
            return true;
        }
        let demand = StepKind::from_u8(op.kind).map_or(Demand::Nothing, StepKind::demand);
        demand.is_met(self.situation(thread, op, demand))
    }

    /// The facts that a demand is about.
    fn situation(&self, thread: ThreadId, op: &Operation, demand: Demand) -> Situation {
        match demand {
            Demand::Nothing => Situation::UNKNOWN,
            Demand::Unlocked => self.locks.get(&op.object).map_or(Situation::UNKNOWN, |lock| {
                let reenters = lock.owner == Some(thread) && op.flags & REENTERS != 0;
                let read_locked = lock.owner.is_none() && !lock.readers.is_empty();
                Situation::lock(lock.owner.is_some() && !reenters, read_locked)
            }),
            Demand::NotWriteLocked => {
                let owned = self.locks.get(&op.object).is_some_and(|lock| lock.owner.is_some());
                Situation::lock(owned, false)
            }
            // The value that the semaphore had when somebody first came to it is in the operation.
            Demand::Positive => {
                let value = self.semaphore(op.object).unwrap_or(op.second as i64).max(0);
                Situation::count(u32::try_from(value).unwrap_or(u32::MAX))
            }
            Demand::Forked => Situation::thread(self.forked.contains(&op.object), false),
            Demand::Ended => Situation::thread(true, self.ended.contains(&op.object)),
            Demand::Signalled => {
                Situation::waiter(self.conditions.get(&op.object).is_some_and(|condition| {
                    let since = condition.waiters.iter().find(|(waiter, _)| *waiter == thread);
                    since.is_some_and(|&(_, since)| condition.signals.iter().any(|&signal| signal > since))
                }))
            }
            Demand::RoundComplete => Situation::waiter(self.barriers.get(&op.object).is_none_or(|barrier| {
                barrier.inside.get(&thread).is_none_or(|&round| round != barrier.round)
            })),
            Demand::NotBegun => Situation::once(self.once.get(&op.object).copied().unwrap_or(false), false),
            // Whoever comes to an initialiser comes to begin it, and finds out that it has been run only when it goes.
            Demand::Initialised => Situation::once(true, true),
            // Annotations never wait, and futex words are not searched.
            Demand::Sent => Situation::channel(true),
        }
    }

    /// The value of a semaphore that has been used.
    pub fn semaphore(&self, object: u64) -> Option<i64> {
        self.semaphores.get(&object).copied()
    }

    fn release(&mut self, thread: ThreadId, lock: u64) {
        let lock = self.locks.entry(lock).or_default();
        if lock.owner == Some(thread) {
            lock.depth -= 1;
            if lock.depth == 0 {
                lock.owner = None;
            }
        } else if let Some(at) = lock.readers.iter().position(|&reader| reader == thread) {
            lock.readers.swap_remove(at);
        } else {
            // Released by somebody else, as a semaphore would be.
            *lock = Lock::default();
        }
    }

    /// The operation has been performed.
    pub fn perform(&mut self, event: &Event) {
        self.clock += 1;
        let Event { thread, op, failed } = *event;
        if failed && op.kind != step::WAKE {
            return;
        }
        let Some(kind) = StepKind::from_u8(op.kind) else { return };
        match kind.effect() {
            Effect::Locks => {
                let lock = self.locks.entry(op.object).or_default();
                if lock.owner == Some(thread) && op.flags & REENTERS == 0 {
                    // It is told that it has it already.
                    return;
                }
                lock.owner = Some(thread);
                lock.depth += 1;
            }
            Effect::LocksShared => self.locks.entry(op.object).or_default().readers.push(thread),
            Effect::Unlocks => self.release(thread, op.object),
            Effect::BeginsWait => {
                self.release(thread, op.second);
                self.conditions.entry(op.object).or_default().waiters.push((thread, self.clock));
            }
            Effect::IsWoken => {
                let condition = self.conditions.entry(op.object).or_default();
                if let Some(at) = condition.waiters.iter().position(|(waiter, _)| *waiter == thread) {
                    let (_, since) = condition.waiters.remove(at);
                    if let Some(at) = condition.signals.iter().position(|&signal| signal > since)
                        && !failed
                    {
                        condition.signals.remove(at);
                    }
                    let waiters = condition.waiters.len();
                    condition.signals.truncate(waiters);
                }
            }
            effect @ (Effect::Signals | Effect::SignalsAll) => {
                let condition = self.conditions.entry(op.object).or_default();
                let unanswered = condition.waiters.len().saturating_sub(condition.signals.len());
                let count = if effect == Effect::Signals { unanswered.min(1) } else { unanswered };
                condition.signals.extend(std::iter::repeat_n(self.clock, count));
            }
            Effect::Takes => *self.semaphores.entry(op.object).or_insert(op.second as i64) -= 1,
            Effect::Gives => *self.semaphores.entry(op.object).or_insert(op.second as i64) += 1,
            Effect::Enters => {
                let barrier = self.barriers.entry(op.object).or_default();
                barrier.inside.insert(thread, barrier.round);
                barrier.arrived += 1;
                if u64::from(barrier.arrived) >= op.second {
                    barrier.arrived = 0;
                    barrier.round += 1;
                }
            }
            Effect::OnceBegins => {
                self.once.insert(op.object, true);
            }
            Effect::OnceEnds => {
                self.once.insert(op.object, false);
            }
            Effect::Forks => self.forked.push(op.object),
            Effect::Ends => self.ended.push(op.object),
            // What a thread that leaves a barrier, joins or begins finds was made by others. Nothing else has a state here.
            Effect::Leaves
            | Effect::Joins
            | Effect::Begins
            | Effect::OncePasses
            | Effect::Nothing
            | Effect::Asks
            | Effect::Sends
            | Effect::Receives
            | Effect::Creates
            | Effect::Destroys
            | Effect::Excuses => {}
        }
    }
}
