//! Sleeping and yielding: they order nothing, but they say that a thread lets others go.

use crate::thread;
use crate::{export_with_pc, observe, real_fn, steer};
use core::ffi::{c_int, c_uint};
use raddle_wire::SyncOp;

mod c {
    use super::*;
    real_fn! {
        fn sched_yield() -> c_int;
        fn usleep(microseconds: c_uint) -> c_int;
        fn sleep(seconds: c_uint) -> c_uint;
        fn nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int;
        fn clock_nanosleep(clock: c_int, flags: c_int, time: *const libc::timespec, left: *mut libc::timespec) -> c_int;
    }
}

/// True when the thread need not really sleep: under steering, time does not decide who goes next.
pub fn say() -> bool {
    let Some(thread) = thread::observed() else { return false };
    let pc = thread.caller_pc;
    observe::sync(thread, pc, SyncOp::Yield, 0, 0);
    if steer::on() {
        steer::yielded(thread);
    }
    steer::on()
}

extern "C" fn do_yield() -> c_int {
    if say() {
        return 0;
    }
    // SAFETY: no arguments.
    unsafe { c::sched_yield() }
}

extern "C" fn do_usleep(microseconds: c_uint) -> c_int {
    if say() {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::usleep(microseconds) }
}

extern "C" fn do_sleep(seconds: c_uint) -> c_uint {
    if say() {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::sleep(seconds) }
}

extern "C" fn do_nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    if say() {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::nanosleep(time, left) }
}

extern "C" fn do_clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    if say() {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::clock_nanosleep(clock, flags, time, left) }
}

export_with_pc! {
    sched_yield => do_yield;
    pthread_yield => do_yield;
    usleep => do_usleep;
    sleep => do_sleep;
    nanosleep => do_nanosleep;
    clock_nanosleep => do_clock_nanosleep;
}
