//! Cancellation of threads.
//!
//! Without steering the C library does everything. With steering a request only marks its target, in the turn of the thread
//! that makes it. The target acts on it when it is given the turn for an operation that is a cancellation point
//! ([`crate::steer::cancellation::due`]), or for any operation if it allows cancellation at any time; so the moment is part of the schedule. Acting
//! takes no turn and no step of its own: the operation is not performed, and the thread's next operations are those of its
//! clean-up handlers. A thread that waits is woken for it, and one that waits for a condition takes its mutex first, as the
//! standard demands.
//!
//! A thread that allows cancellation at any time and comes to no operation for [`crate::steer::cancellation::PATIENCE_MS`] of processor time is
//! struck by the C library's own cancellation: it computes, and what it computes, nobody can see.
//!
//! Deviations: a thread in a call to the outside world other than a sleep acts when the call returns, and a call that is no visible
//! operation (on a regular file) is no cancellation point.

use crate::steer::cancellation::{act, at_any_time, due};
use crate::steer::{self, Request};
use crate::thread::{self, Thread};
use crate::{demo, export_with_pc, observe, real_fn, registry};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        fn pthread_cancel(handle: libc::pthread_t) -> c_int;
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
        fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
        fn pthread_testcancel();
    }
}

const DISABLED: c_int = 1;
const ASYNCHRONOUS: c_int = 1;

extern "C" fn cancel(handle: libc::pthread_t) -> c_int {
    if let (Some(thread), Some(index)) = (thread::observed(), registry::index_of(handle)) {
        let pc = thread.caller_pc();
        if !steer::on() {
            observe::sync(thread, pc, SyncOp::Cancel, index as usize, 0);
        } else {
            super::step_with(thread, pc, SyncOp::Cancel, index as usize, 0, || steer::cancel_thread(index));
            if index == thread.index() && at_any_time(thread) {
                act(thread);
            }
            return 0;
        }
    }
    // SAFETY: as the program asks.
    unsafe { c::pthread_cancel(handle) }
}

extern "C" fn set_state(state: c_int, old: *mut c_int) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_setcancelstate(state, old) };
    if result == 0 && steer::on() {
        thread::current().cancellation.disabled.store(state == DISABLED, Ordering::Relaxed);
    }
    result
}

extern "C" fn set_type(kind: c_int, old: *mut c_int) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_setcanceltype(kind, old) };
    if result == 0 && steer::on() {
        thread::current().cancellation.asynchronous.store(kind == ASYNCHRONOUS, Ordering::Relaxed);
    }
    result
}

extern "C" fn test() {
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        point(thread);
    }
    // SAFETY: no arguments; may unwind the thread.
    unsafe { c::pthread_testcancel() };
}

/// A visible operation that does nothing: others may go first, and a cancelled thread ends.
pub fn point(thread: &Thread) {
    let pc = thread.caller_pc();
    if steer::orders_calls() {
        let request = Request { kind: step::SYSCALL, object: 0, pc };
        steer::visible(thread, request, |thread| demo::note_inside(thread, pc));
    } else if steer::is_cancelled(thread) && due(thread, step::SYSCALL) {
        // The schedule was made of a free run, and knows no such steps.
        act(thread);
    }
}

export_with_pc! {
    pthread_cancel => cancel;
    pthread_setcancelstate => set_state;
    pthread_setcanceltype => set_type;
    pthread_testcancel => test;
}
