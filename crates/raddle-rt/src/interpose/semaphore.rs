//! Semaphores, unnamed and named.

use crate::steer::{self, Detail, Patience, Request};
use crate::thread::{self, Thread};
use crate::{export_with_pc, observe, real_fn};
use core::ffi::{c_char, c_int, c_uint, c_void};
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        fn sem_init(s: *mut c_void, shared: c_int, value: c_uint) -> c_int;
        fn sem_destroy(s: *mut c_void) -> c_int;
        fn sem_wait(s: *mut c_void) -> c_int;
        fn sem_trywait(s: *mut c_void) -> c_int;
        fn sem_timedwait(s: *mut c_void, until: *const libc::timespec) -> c_int;
        fn sem_clockwait(s: *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int;
        fn sem_post(s: *mut c_void) -> c_int;
        fn sem_getvalue(s: *mut c_void, value: *mut c_int) -> c_int;
        fn sem_open(name: *const c_char, flags: c_int, mode: c_uint, value: c_uint) -> *mut c_void;
        fn sem_close(s: *mut c_void) -> c_int;
    }
}

fn say(op: SyncOp, s: *mut c_void, argument: u64, pc: u64) {
    if let Some(thread) = thread::observed() {
        observe::sync(thread, pc, op, s as usize, argument);
    }
}

fn errno() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

extern "C" fn init(s: *mut c_void, shared: c_int, value: c_uint) -> c_int {
    let pc = thread::current().caller_pc();
    // SAFETY: as the program asks.
    let result = unsafe { c::sem_init(s, shared, value) };
    if result == 0 {
        say(SyncOp::SemInit, s, u64::from(value), pc);
    }
    result
}

extern "C" fn destroy(s: *mut c_void) -> c_int {
    say(SyncOp::SemDestroy, s, 0, thread::current().caller_pc());
    // SAFETY: as the program asks.
    unsafe { c::sem_destroy(s) }
}

/// The value that the semaphore has, for an exhaustive search.
fn detail_of(s: *mut c_void) -> Detail {
    let mut value: c_int = 0;
    if steer::is_searched() {
        // SAFETY: the program passes an initialised semaphore.
        unsafe { c::sem_getvalue(s, &mut value) };
    }
    Detail { second: value.max(0) as u64, ..Detail::NONE }
}

fn wait_steered(thread: &Thread, s: *mut c_void, patience: Patience) -> c_int {
    let pc = thread.caller_pc();
    let request = Request { kind: step::SEM_WAIT, object: s as usize, pc };
    let taken = steer::blocking_with(thread, request, detail_of(s), patience, |thread| {
        // SAFETY: as the program asks.
        if unsafe { c::sem_trywait(s) } != 0 {
            return None;
        }
        observe::sync(thread, pc, SyncOp::SemWait, s as usize, 0);
        Some(())
    });
    if taken.is_some() {
        return 0;
    }
    observe::sync(thread, pc, SyncOp::SemWaitFailed, s as usize, 0);
    steer::failed(thread);
    crate::real::set_errno(if patience == Patience::Not { libc::EAGAIN } else { libc::ETIMEDOUT });
    -1
}

fn wait_with(
    s: *mut c_void,
    patience: Patience,
    until: *const libc::timespec,
    wait: impl Fn() -> c_int,
) -> c_int {
    let Some(thread) = thread::observed() else { return wait() };
    if steer::on() {
        let result = wait_steered(thread, s, patience);
        if result != 0 {
            // SAFETY: the program passes a valid time.
            unsafe { steer::clock::reach(until) };
        }
        return result;
    }
    let pc = thread.caller_pc();
    // SAFETY: as the program asks.
    let mut result = unsafe { c::sem_trywait(s) };
    if result != 0 && errno() == libc::EAGAIN {
        say(SyncOp::SemRequest, s, 0, pc);
        result = wait();
    }
    let saved = errno();
    say(if result == 0 { SyncOp::SemWait } else { SyncOp::SemWaitFailed }, s, 0, pc);
    crate::real::set_errno(saved);
    result
}

extern "C" fn wait(s: *mut c_void) -> c_int {
    // SAFETY: as the program asks (here and below).
    wait_with(s, Patience::Forever, core::ptr::null(), || unsafe { c::sem_wait(s) })
}

extern "C" fn timedwait(s: *mut c_void, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    wait_with(s, Patience::Timed, until, || unsafe { c::sem_timedwait(s, until) })
}

extern "C" fn clockwait(s: *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    wait_with(s, Patience::Timed, until, || unsafe { c::sem_clockwait(s, clock, until) })
}

extern "C" fn trywait(s: *mut c_void) -> c_int {
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        return wait_steered(thread, s, Patience::Not);
    }
    let pc = thread::current().caller_pc();
    // SAFETY: as the program asks.
    let result = unsafe { c::sem_trywait(s) };
    let saved = errno();
    say(if result == 0 { SyncOp::SemWait } else { SyncOp::SemWaitFailed }, s, 0, pc);
    crate::real::set_errno(saved);
    result
}

extern "C" fn post(s: *mut c_void) -> c_int {
    // SAFETY: as the program asks.
    let release = || unsafe { c::sem_post(s) };
    match thread::observed() {
        Some(thread) => {
            let pc = thread.caller_pc();
            super::step_with_detail(thread, pc, SyncOp::SemPost, s as usize, 0, detail_of(s), release)
        }
        None => release(),
    }
}

/// `sem_open` is variadic, but mode and value travel in the same registers as fixed arguments.
extern "C" fn open(name: *const c_char, flags: c_int, mode: c_uint, value: c_uint) -> *mut c_void {
    let pc = thread::current().caller_pc();
    // SAFETY: as the program asks.
    let s = unsafe { c::sem_open(name, flags, mode, value) };
    if !s.is_null() {
        let mut now: c_int = 0;
        // SAFETY: a semaphore just opened.
        unsafe { c::sem_getvalue(s, &mut now) };
        say(SyncOp::SemInit, s, now.max(0) as u64, pc);
    }
    s
}

extern "C" fn close(s: *mut c_void) -> c_int {
    // Other threads may have the same semaphore open under the same address: its life ends with the process.
    // SAFETY: as the program asks.
    unsafe { c::sem_close(s) }
}

export_with_pc! {
    sem_init => init;
    sem_destroy => destroy;
    sem_wait => wait;
    sem_trywait => trywait;
    sem_timedwait => timedwait;
    sem_clockwait => clockwait;
    sem_post => post;
    sem_open => open;
    sem_close => close;
}
