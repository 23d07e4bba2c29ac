//! What threads wait for, under the scheduler's lock ([`raddle_sched::objects`] says what happens). Called inside somebody's
//! turn only.

use super::cancellation;
use super::scheduler::{World, lock};
use super::stations::station;
use super::tasks;
use crate::real;
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use raddle_sched::objects::Cancelled;
use raddle_sched::{Sched, ThreadIx};

/// An object changed: threads set aside for it may try again.
pub fn released(object: usize) {
    lock().release(object);
}

/// The thread begins to wait on a condition variable or futex word.
pub fn begin_wait(thread: &Thread, on: usize) {
    lock().begin_wait(thread.place(), on);
}

/// Has the thread's wait been answered? Ends the wait if so, or if `give_up`.
pub fn signalled(thread: &Thread, give_up: bool) -> bool {
    lock().signalled(thread.place(), give_up)
}

/// Wakes up to `count` threads that wait on `on`; how many there were.
pub fn signal(on: usize, count: usize) -> usize {
    lock().signal(on, count)
}

/// A thread is cancelled. One that waits where that ends the wait is woken, and one that is known to compute without
/// operations is struck where it is.
pub fn cancel(index: u32) {
    let mut sched = lock();
    let Some(ix) = sched.find(index) else { return };
    let station = station(ix);
    station.cpu_ms.store(tasks::processor_ms(sched.roster[ix].os_tid), Ordering::Relaxed);
    let thread = station.thread();
    thread.turns.sleep_word.store(1, Ordering::Release);
    real::futex_wake_private(&thread.turns.sleep_word);
    let found = sched.cancel(ix, &World);
    if found == Cancelled::Away && !thread.turns.away.get() && cancellation::at_any_time(thread) {
        strike(&mut sched, ix);
    }
}

/// The thread is cancelled where it is, and runs to its clean-up.
pub(super) fn strike(sched: &mut Sched<'_>, ix: ThreadIx) {
    sched.strike(ix);
    let thread = station(ix).thread();
    thread.cancellation.disabled.store(true, Ordering::Relaxed);
    cancellation::strike(thread.life.pthread.load(Ordering::Relaxed));
}

pub fn is_cancelled(thread: &Thread) -> bool {
    !thread.place().is_nobody() && lock().roster[thread.place()].is_cancelled()
}

/// The thread lets others go first when its turn comes.
pub fn yielded(thread: &Thread) {
    thread.turns.yields.set(true);
}

pub fn barrier_init(address: usize, count: u32) {
    lock().barrier_init(address, count);
}

/// How many threads a barrier waits for.
pub fn barrier_count(address: usize) -> u32 {
    lock().barrier_count(address)
}

/// The thread enters a barrier: its generation, and whether the thread was the last one.
pub fn arrive_barrier(address: usize) -> (u32, bool) {
    lock().arrive_barrier(address)
}

pub fn barrier_passed(address: usize, generation: u32) -> bool {
    lock().barrier_passed(address, generation)
}
