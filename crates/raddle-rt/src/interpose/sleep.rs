//! Sleeping and yielding: they order nothing, but they say that a thread lets others go.

use crate::demo::{self, Length};
use crate::thread;
use crate::{export_with_pc, observe, real, real_fn, steer};
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

/// A thread sleeps so long. True when it has slept as far as it is to: under steering, time does not decide who goes next,
/// so it does not really sleep. Only while a demo is recorded it does, outside of any turn, because programs that try again
/// after some time count on others having got on in that time.
pub fn sleeps(nanoseconds: u64) -> bool {
    let Some(thread) = thread::observed().filter(|_| demo::on()) else { return yields(nanoseconds) };
    let pc = thread.caller_pc();
    observe::sync(thread, pc, SyncOp::Yield, 0, 0);
    let sleep_word = &thread.turns.sleep_word;
    let sleep = || {
        // Whoever cancels the thread wakes it.
        real::futex_wait_private(sleep_word, 0, nanoseconds.div_ceil(1_000));
        0
    };
    demo::outside(thread, libc::SYS_nanosleep as u32, Length::Long, sleep, |_| [(0, 0)]);
    true
}

/// A thread lets others go. True when it need not really do so.
///
/// A thread that does it a second time without having come to a visible operation waits in a loop for something that it
/// sees without one. Then this is one, so that others can go, and so that the thread can be cancelled.
pub fn yields(nanoseconds: u64) -> bool {
    let Some(thread) = thread::observed() else { return false };
    let pc = thread.caller_pc();
    observe::sync(thread, pc, SyncOp::Yield, 0, 0);
    if !steer::on() {
        return false;
    }
    steer::clock::pass(nanoseconds);
    if thread.turns.yields.get() {
        super::cancel::point(thread);
    }
    steer::yielded(thread);
    true
}

/// The length of a sleep until a time, or for one.
fn length_of(clock: c_int, flags: c_int, time: *const libc::timespec) -> u64 {
    // SAFETY: the program passes a valid time.
    let length = unsafe { steer::clock::length_ns(time) };
    if flags & libc::TIMER_ABSTIME == 0 {
        return length;
    }
    if steer::clock::on() {
        // SAFETY: as above.
        unsafe { steer::clock::reach(time) };
        return 0;
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for a time.
    unsafe {
        real::syscall(libc::SYS_clock_gettime, [clock as usize, &raw mut now as usize, 0, 0, 0, 0]);
        length.saturating_sub(steer::clock::length_ns(&now))
    }
}

extern "C" fn do_yield() -> c_int {
    if yields(0) {
        return 0;
    }
    // SAFETY: no arguments.
    unsafe { c::sched_yield() }
}

extern "C" fn do_usleep(microseconds: c_uint) -> c_int {
    if sleeps(u64::from(microseconds) * 1_000) {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::usleep(microseconds) }
}

extern "C" fn do_sleep(seconds: c_uint) -> c_uint {
    if sleeps(u64::from(seconds) * 1_000_000_000) {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::sleep(seconds) }
}

extern "C" fn do_nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    if sleeps(length_of(libc::CLOCK_MONOTONIC, 0, time)) {
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
    if sleeps(length_of(clock, flags, time)) {
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
