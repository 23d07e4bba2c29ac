//! Cancellation of threads.
//!
//! Without steering the C library does everything. With steering a request only marks its target, in the turn of the thread
//! that makes it. The target acts on it when it is given the turn for an operation that is a cancellation point
//! ([`due`]), or for any operation if it allows cancellation at any time; so the moment is part of the schedule. Acting
//! takes no turn and no step of its own: the operation is not performed, and the thread's next operations are those of its
//! clean-up handlers. A thread that waits is woken for it, and one that waits for a condition takes its mutex first, as the
//! standard demands.
//!
//! A thread that allows cancellation at any time and comes to no operation for [`PATIENCE_MS`] of processor time is
//! struck by the C library's own cancellation: it computes, and what it computes, nobody can see.
//!
//! Deviations: a thread in a call to the outside world other than a sleep acts when the call returns, and a call that is no visible
//! operation (on a regular file) is no cancellation point.

use crate::steer::{self, Request};
use crate::thread::{self, Thread};
use crate::{demo, export_with_pc, observe, real_fn, threads};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        fn pthread_cancel(handle: libc::pthread_t) -> c_int;
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
        fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
        fn pthread_testcancel();
        fn pthread_exit(result: *mut c_void);
    }
}

/// Processor time that a thread may go on computing after it was cancelled.
pub const PATIENCE_MS: u64 = 200;

/// `PTHREAD_CANCELED`.
const CANCELED: *mut c_void = usize::MAX as *mut c_void;
const DISABLED: c_int = 1;
const ASYNCHRONOUS: c_int = 1;

/// Operations that are cancellation points, unless the thread only tries. The wait for a condition has its own way.
pub const fn is_point(kind: u8) -> bool {
    matches!(kind, step::SEM_WAIT | step::JOIN | step::SYSCALL)
}

/// Does a thread that was cancelled act on it at an operation of this kind?
pub fn due(thread: &Thread, kind: u8) -> bool {
    !thread.uncancellable.load(Ordering::Relaxed)
        && !matches!(kind, step::START | step::END | step::WAKE | step::RELOCK)
        && (thread.asynchronous.load(Ordering::Relaxed) || is_point(kind) && !thread.tries)
}

/// Does a request end the thread's waiting at an operation of this kind?
pub fn ends_waiting(thread: &Thread, kind: u8) -> bool {
    due(thread, kind) || kind == step::WAKE && !thread.uncancellable.load(Ordering::Relaxed)
}

/// May the thread be cancelled wherever it is?
pub fn at_any_time(thread: &Thread) -> bool {
    thread.asynchronous.load(Ordering::Relaxed) && !thread.uncancellable.load(Ordering::Relaxed)
}

/// The thread ends as a cancelled one. No frame of ours is left in order, so what they would have put back is put back here.
pub fn act(thread: &mut Thread) -> ! {
    thread.uncancellable.store(true, Ordering::Relaxed);
    thread.tries = false;
    // SAFETY: the thread's own field, which functions further up hold references to.
    unsafe { (&raw mut thread.busy).write_volatile(0) };
    loop {
        // SAFETY: unwinds the thread, as its cancellation would.
        unsafe { c::pthread_exit(CANCELED) };
    }
}

/// The C library cancels the thread, which allows it at any time, where it is.
pub fn strike(handle: usize) {
    // SAFETY: the handle is that of a thread that has not ended.
    unsafe { c::pthread_cancel(handle as libc::pthread_t) };
}

extern "C" fn cancel(handle: libc::pthread_t) -> c_int {
    if let (Some(thread), Some(index)) = (thread::observed(), threads::index_of(handle)) {
        let pc = thread.caller_pc;
        if !steer::on() {
            observe::sync(thread, pc, SyncOp::Cancel, index as usize, 0);
        } else {
            super::step_with(thread, pc, SyncOp::Cancel, index as usize, 0, || steer::cancel_thread(index));
            if index == thread.index && at_any_time(thread) {
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
        thread::current().uncancellable.store(state == DISABLED, Ordering::Relaxed);
    }
    result
}

extern "C" fn set_type(kind: c_int, old: *mut c_int) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_setcanceltype(kind, old) };
    if result == 0 && steer::on() {
        thread::current().asynchronous.store(kind == ASYNCHRONOUS, Ordering::Relaxed);
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
pub fn point(thread: &mut Thread) {
    let pc = thread.caller_pc;
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
