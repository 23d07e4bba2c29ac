//! What threads wait for: conditions and futex words, barriers, and requests that reach a waiting thread.
//!
//! Everything here changes who can be chosen, so it is called inside somebody's turn only; that is what makes the
//! choice independent of arrival.

use crate::roster::{Phase, ThreadIx};
use crate::sched::{Outside, Sched};
use crate::strategy::Strategy;
use raddle_wire::{Situation, StepKind};

/// Barriers that may be in use at once. Further ones let everybody pass.
pub(crate) const BARRIERS_MAX: usize = 256;

pub(crate) struct Barrier {
    address: usize,
    count: u32,
    arrived: u32,
    generation: u32,
}

impl Barrier {
    pub(crate) const NONE: Barrier = Barrier { address: 0, count: 0, arrived: 0, generation: 0 };
}

/// What a cancelled thread was found doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It hears of it when it comes to an operation.
    Later,
    /// Its waiting is over.
    Woken,
    /// It was passed over, and sleeps or computes.
    Away,
}

impl Sched<'_> {
    /// An object changed: threads set aside for it may try again.
    pub fn release(&mut self, object: usize) {
        self.roster.for_each(|_, entry| {
            if entry.is_aside() && entry.request.object == object {
                entry.phase = Phase::Waiting;
            }
        });
    }

    /// The thread begins to wait on a condition variable or futex word.
    pub fn begin_wait(&mut self, me: ThreadIx, on: usize) {
        self.tickets += 1;
        let ticket = self.tickets;
        let entry = &mut self.roster[me];
        entry.waits_on = on;
        entry.woken = false;
        entry.ticket = ticket;
        entry.waits_since = ticket;
    }

    /// Has the thread's wait been answered? Ends the wait if so, or if `give_up`.
    pub fn signalled(&mut self, me: ThreadIx, give_up: bool) -> bool {
        if self.strategy.is_exhaustive() {
            return self.take_signal(me, give_up);
        }
        let entry = &mut self.roster[me];
        let woken = StepKind::Wake.demand().is_met(Situation::waiter(entry.woken));
        if woken || give_up {
            entry.waits_on = 0;
            entry.woken = false;
        }
        woken
    }

    /// Wakes up to `count` threads that wait on `on`; how many there were. Which of them is the schedule's choice, or chance.
    pub fn signal(&mut self, on: usize, count: usize) -> usize {
        if self.strategy.is_exhaustive() {
            return self.leave_signals(on, count);
        }
        let mut woken = 0;
        while woken < count {
            let waits = |ix: &ThreadIx| self.roster[*ix].waits_on == on && !self.roster[*ix].woken;
            let waiters = self.roster.living().filter(waits).count();
            if waiters == 0 {
                break;
            }
            let chosen = match self.next_to_wake(on) {
                Some(ix) => ix,
                None => {
                    let n = if waiters > 1 { self.tools.random.below(waiters) } else { 0 };
                    let waits = |ix: &ThreadIx| self.roster[*ix].waits_on == on && !self.roster[*ix].woken;
                    self.roster.living().filter(waits).nth(n).unwrap_or(ThreadIx(0))
                }
            };
            let entry = &mut self.roster[chosen];
            entry.woken = true;
            if entry.is_aside() {
                entry.phase = Phase::Waiting;
            }
            woken += 1;
        }
        woken
    }

    /// Leaves up to `count` signals for those who wait on `on`: whoever of them goes first takes one ([`crate::tokens`]).
    fn leave_signals(&mut self, on: usize, count: usize) -> usize {
        self.tickets += 1;
        let waiters = self.roster.living_entries().filter(|entry| entry.waits_on == on).count();
        let left = self.signals.leave(on, self.tickets, count, waiters);
        self.release(on);
        left
    }

    /// Takes a signal if there is one for the thread. Ends its wait if so, or if `give_up`.
    fn take_signal(&mut self, me: ThreadIx, give_up: bool) -> bool {
        let (on, since) = (self.roster[me].waits_on, self.roster[me].waits_since);
        let taken = on != 0 && self.signals.take(on, since);
        if taken || give_up {
            self.roster[me].waits_on = 0;
            let roster = &self.roster;
            self.signals.keep_answerable(on, |time| {
                roster
                    .living_entries()
                    .filter(|entry| entry.waits_on == on && entry.waits_since < time)
                    .count()
            });
        }
        taken
    }

    /// A thread is cancelled. One that waits where that ends the wait is enabled.
    pub fn cancel(&mut self, ix: ThreadIx, outside: &impl Outside) -> Cancelled {
        let entry = &mut self.roster[ix];
        entry.cancelled = true;
        if entry.is_aside() && outside.cancel_ends_waiting(ix, entry.request.kind) {
            entry.phase = Phase::Waiting;
            return Cancelled::Woken;
        }
        if entry.phase == Phase::Away { Cancelled::Away } else { Cancelled::Later }
    }

    /// The living thread with this number.
    pub fn find(&self, index: u32) -> Option<ThreadIx> {
        self.roster.living().find(|&ix| self.roster[ix].index == index)
    }

    fn barrier(&mut self, address: usize) -> Option<&mut Barrier> {
        let at = self
            .barriers
            .iter()
            .position(|barrier| barrier.address == address)
            .or_else(|| self.barriers.iter().position(|barrier| barrier.address == 0))?;
        self.barriers[at].address = address;
        Some(&mut self.barriers[at])
    }

    pub fn barrier_init(&mut self, address: usize, count: u32) {
        if let Some(barrier) = self.barrier(address) {
            *barrier = Barrier { address, count, arrived: 0, generation: barrier.generation.wrapping_add(1) };
        }
    }

    /// How many threads the barrier waits for.
    pub fn barrier_count(&mut self, address: usize) -> u32 {
        self.barrier(address).map_or(0, |barrier| barrier.count)
    }

    /// A thread enters a barrier: its generation, and whether the thread was the last one.
    pub fn arrive_barrier(&mut self, address: usize) -> (u32, bool) {
        let Some(barrier) = self.barrier(address) else { return (0, true) };
        let generation = barrier.generation;
        barrier.arrived += 1;
        let last = barrier.arrived >= barrier.count;
        if last {
            barrier.arrived = 0;
            barrier.generation = generation.wrapping_add(1);
            self.release(address);
        }
        (generation, last)
    }

    pub fn barrier_passed(&mut self, address: usize, generation: u32) -> bool {
        let round_over = self.barrier(address).is_none_or(|barrier| barrier.generation != generation);
        StepKind::BarrierExit.demand().is_met(Situation::waiter(round_over))
    }
}
