//! What threads wait for: conditions and futex words, barriers, and requests that reach a waiting thread.
//!
//! Everything here changes who can be chosen, so it is called inside somebody's turn only; that is what makes the
//! choice independent of arrival.

use super::state::{NOBODY, Phase, Sched, lock};
use super::{schedule, tasks};
use crate::interpose::cancel as cancellation;
use crate::real;
use crate::thread::Thread;
use core::sync::atomic::Ordering;

pub(super) const BARRIERS_MAX: usize = 256;

pub(super) struct Barrier {
    address: usize,
    count: u32,
    arrived: u32,
    generation: u32,
}

impl Barrier {
    pub(super) const fn new() -> Barrier {
        Barrier { address: 0, count: 0, arrived: 0, generation: 0 }
    }
}

impl Sched {
    fn barrier(&mut self, address: usize) -> Option<&mut Barrier> {
        let at = self
            .barriers
            .iter()
            .position(|b| b.address == address)
            .or_else(|| self.barriers.iter().position(|b| b.address == 0))?;
        self.barriers[at].address = address;
        Some(&mut self.barriers[at])
    }
}

pub(super) fn release(sched: &mut Sched, object: usize) {
    sched.entries.for_each(|entry| {
        if matches!(entry.phase, Phase::Aside | Phase::AsideTimed) && entry.request.object == object {
            entry.phase = Phase::Waiting;
        }
    });
}

/// An object changed: threads set aside for it may try again. Called inside the releasing thread's turn.
pub fn released(object: usize) {
    release(&mut lock(), object);
}

/// The thread begins to wait on a condition variable or futex word.
pub fn begin_wait(thread: &Thread, on: usize) {
    let mut sched = lock();
    sched.tickets += 1;
    let ticket = sched.tickets;
    let entry = sched.entry(thread);
    entry.waits_on = on;
    entry.woken = false;
    entry.ticket = ticket;
}

/// Has the thread's wait been answered? Ends the wait if so, or if `give_up`.
pub fn signalled(thread: &Thread, give_up: bool) -> bool {
    let mut sched = lock();
    let entry = sched.entry(thread);
    let woken = entry.woken;
    if woken || give_up {
        entry.waits_on = 0;
        entry.woken = false;
    }
    woken
}

/// Wakes up to `count` threads that wait on `on`; how many there were.
pub fn signal(on: usize, count: usize) -> usize {
    let mut sched = lock();
    let mut woken = 0;
    while woken < count {
        let waiters = sched.entries.people().filter(|e| e.waits_on == on && !e.woken).count();
        if waiters == 0 {
            break;
        }
        let chosen = match schedule::next_to_wake(&sched, on) {
            Some(index) => index,
            None => {
                let n = if waiters > 1 { (sched.next_random() % waiters as u64) as usize } else { 0 };
                sched
                    .entries
                    .living()
                    .filter(|&i| sched.entries[i].waits_on == on && !sched.entries[i].woken)
                    .nth(n)
                    .unwrap_or(0)
            }
        };
        let entry = &mut sched.entries[chosen];
        entry.woken = true;
        if matches!(entry.phase, Phase::Aside | Phase::AsideTimed) {
            entry.phase = Phase::Waiting;
        }
        woken += 1;
    }
    woken
}

/// A thread is cancelled; called inside a turn. One that waits where that ends the wait is woken, and one that is known
/// to compute without operations is struck where it is.
pub fn cancel(index: u32) {
    let mut sched = lock();
    sched.entries.for_each(|entry| {
        if entry.index != index {
            return;
        }
        entry.cancelled = true;
        entry.cpu_ms = tasks::processor_ms(entry.os_tid);
        // SAFETY: a listed thread's structure stays valid; what is looked at is atomic, or its thread waits.
        let thread = unsafe { &*entry.thread };
        thread.bed.store(1, Ordering::Release);
        real::futex_wake_private(&thread.bed);
        let waits = matches!(entry.phase, Phase::Aside | Phase::AsideTimed);
        if waits && cancellation::ends_waiting(thread, entry.request.kind) {
            entry.phase = Phase::Waiting;
        } else if entry.phase == Phase::Away && !thread.away && cancellation::at_any_time(thread) {
            entry.strike();
        }
    });
}

pub fn is_cancelled(thread: &Thread) -> bool {
    thread.sched != NOBODY && lock().entry(thread).cancelled
}

/// The thread lets others go first when its turn comes.
pub fn yielded(thread: &mut Thread) {
    thread.yields = true;
}

pub fn barrier_init(address: usize, count: u32) {
    if let Some(barrier) = lock().barrier(address) {
        *barrier = Barrier { address, count, arrived: 0, generation: barrier.generation.wrapping_add(1) };
    }
}

/// The thread enters a barrier: its generation, and whether the thread was the last one.
pub fn arrive_barrier(address: usize) -> (u32, bool) {
    let mut sched = lock();
    let Some(barrier) = sched.barrier(address) else { return (0, true) };
    let generation = barrier.generation;
    barrier.arrived += 1;
    let last = barrier.arrived >= barrier.count;
    if last {
        barrier.arrived = 0;
        barrier.generation = generation.wrapping_add(1);
        release(&mut sched, address);
    }
    (generation, last)
}

pub fn barrier_passed(address: usize, generation: u32) -> bool {
    lock().barrier(address).is_none_or(|barrier| barrier.generation != generation)
}
