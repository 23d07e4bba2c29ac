//! Steering: deciding which thread takes the next visible operation.
//!
//! Every visible operation stands between [`turn`] and [`done`] (tsan11rec's `wait` and `tick`). A thread that comes
//! to a visible operation waits for its turn; when it has performed the operation, the next thread is chosen, from a
//! strategy (`control`) or from a schedule (`replay`). Who that is, [`raddle_sched`] says; here is what makes threads wait and go. Code between visible operations runs in parallel, undisturbed.
//!
//! Nothing blocks between `turn` and `done`. An operation that would block says so ([`blocking`]), its thread is set
//! aside until the object changes ([`released`]), and another one is chosen. So the runtime always knows who waits for
//! what, and recognises a deadlock at once: everybody waits, or some wait for each other in a cycle.
//!
//! # Determinism
//!
//! The choice depends only on which threads exist and which of them are set aside. Both change only inside somebody's
//! turn, never by arrival, so the same seed makes the same choices on a loaded machine too. A chosen thread that is
//! still on its way is waited for. Only a thread that sleeps in the kernel (a blocking system call) is passed over;
//! what happens then depends on the outside world, which is what demos record.

pub mod cancellation;
pub mod clock;
mod conclusion;
pub mod debugger;
pub mod dice;
pub mod journal;
pub mod kept;
pub mod noise;
mod objects;
mod profile;
mod robust;
mod schedule;
mod scheduler;
pub mod server;
mod standing;
mod stations;
pub mod tasks;
mod visible;
pub mod warm;
mod watch;

pub use objects::{
    arrive_barrier, barrier_count, barrier_init, barrier_passed, begin_wait, cancel as cancel_thread,
    is_cancelled, released, signal, signalled, yielded,
};
pub use scheduler::{
    add_child, adopt_main, before_exit, come_back, desynchronised, end_thread, expect_signal,
    handlers_may_run, has_ended, interrupt, is_searched, join_token, leave, next_payload, note_handled,
    note_handlers, note_unchanged, on, orders_calls, orders_handlers, pass_to_main, replaying, start,
    step_of, stop_steering,
};
pub use standing::{Standing, look, note_crash};

use crate::demo;
use crate::thread::{Busy, Thread};
use raddle_sched::dependence::GIVES_UP;
pub use raddle_sched::{Detail, Request};
use scheduler::Grant;

/// How long an operation is willing to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// For ever.
    Forever,
    /// Until a time: it can give up whenever the scheduler says so.
    Timed,
    /// Not at all.
    Not,
}

/// Waits until it is this thread's turn. False: the schedule says that the operation fails.
fn turn(thread: &Thread, request: Request, detail: Detail) -> bool {
    settle(thread);
    loop {
        let grant = scheduler::arrive(thread, request, detail);
        match grant {
            Grant::Go | Grant::Fail => {
                // A schedule says itself who goes first.
                thread.turns.yields.set(false);
                return matches!(grant, Grant::Go);
            }
            Grant::Wait => {
                watch::sleep_until_granted(thread);
                if demo::may_handle(thread) {
                    interrupt(thread);
                    demo::handle(thread);
                }
            }
            Grant::Handler => demo::replay_handler(thread),
            Grant::Cancel => cancellation::act(thread),
        }
    }
}

/// As [`turn`], for an operation after which the thread does not come back.
fn wait_for_turn(thread: &Thread, request: Request, detail: Detail) {
    let _busy = Busy::enter(thread);
    turn(thread, request, detail);
}

/// A visible access happens after its hook has returned, so its turn lasts until the thread comes to its next visible
/// operation.
fn settle(thread: &Thread) {
    if thread.turns.owes_turn.get() {
        thread.turns.owes_turn.set(false);
        scheduler::finish(thread);
    }
}

/// The operation has been performed: somebody else's turn.
fn done(thread: &Thread) {
    scheduler::finish(thread);
}

/// Ends a turn early: what follows is no part of it.
pub fn end_turn(thread: &Thread) {
    done(thread);
}

/// A visible operation that never blocks. `None`: the schedule says that it fails, and it was not performed.
pub fn visible<T>(thread: &Thread, request: Request, perform: impl FnOnce(&Thread) -> T) -> Option<T> {
    visible_with(thread, request, Detail::NONE, perform)
}

/// As [`visible`], with what an exhaustive search has to know about the operation.
pub fn visible_with<T>(
    thread: &Thread,
    request: Request,
    detail: Detail,
    perform: impl FnOnce(&Thread) -> T,
) -> Option<T> {
    if demo::on() && request.kind != raddle_wire::step::HANDLER {
        demo::signal_point(thread);
    }
    let _busy = Busy::enter(thread);
    let go = turn(thread, request, detail);
    let result = if go { Some(perform(thread)) } else { None };
    if go {
        done(thread);
    }
    result
}

/// Ends a turn whose operation failed by decree; called after the failure has been reported.
pub fn failed(thread: &Thread) {
    let _busy = Busy::enter(thread);
    scheduler::finish_failed(thread);
}

/// A visible operation that may have to wait: `attempt` performs it or returns `None` when it would block.
/// The result is `None` when the operation gave up (try and timed operations, or by decree of the schedule); the caller
/// reports the failure and calls [`failed`].
pub fn blocking<T>(
    thread: &Thread,
    request: Request,
    patience: Patience,
    attempt: impl FnMut(&Thread) -> Option<T>,
) -> Option<T> {
    blocking_with(thread, request, Detail::NONE, patience, attempt)
}

/// As [`blocking`], with what an exhaustive search has to know about the operation.
pub fn blocking_with<T>(
    thread: &Thread,
    request: Request,
    mut detail: Detail,
    patience: Patience,
    mut attempt: impl FnMut(&Thread) -> Option<T>,
) -> Option<T> {
    if patience != Patience::Forever {
        detail.flags |= GIVES_UP;
    }
    if demo::on() {
        demo::signal_point(thread);
    }
    let _busy = Busy::enter(thread);
    loop {
        thread.cancellation.tries.set(patience == Patience::Not);
        let go = turn(thread, request, detail);
        thread.cancellation.tries.set(false);
        if !go {
            return None;
        }
        if let Some(result) = attempt(thread) {
            done(thread);
            return Some(result);
        }
        match patience {
            Patience::Not => return None,
            Patience::Timed if scheduler::times_out(thread) => return None,
            Patience::Timed | Patience::Forever => {
                if scheduler::set_aside(thread, patience == Patience::Timed) {
                    // Cancelled while waiting: give up, the caller acts on it.
                    return None;
                }
            }
        }
    }
}

/// A plain access: parks the thread if this is one of its stop points, waits for its turn if accesses are visible.
#[inline]
pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    if thread.turns.stops.get() != 0 {
        schedule::access(thread, pc, aux, address, bytes);
    }
    if visible::on() {
        visible::access(thread, pc, aux, address, bytes);
    }
}
