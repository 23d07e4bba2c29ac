//! What a program asks the system about without waiting: the time, random bytes, its own number.
//!
//! Where the seed decides everything, the answers are the program's own ([`steer::clock`], [`steer::dice`]); a demo holds them.

use super::system::{NOTHING, answer, raw, steered};
use crate::demo::{self, Length, Room};
use crate::steer;
use core::ffi::{c_int, c_long};

/// A call that only asks: its result is one piece of memory.
fn queries(number: c_long, arguments: [usize; 6], room: Room) -> isize {
    let Some(thread) = steered().filter(|_| demo::on()) else { return answer(raw(number, arguments)) };
    let perform = || raw(number, arguments);
    answer(demo::outside(thread, number as u32, Length::Short, perform, |result| {
        [if result >= 0 { room } else { NOTHING }]
    }))
}

/// What a steered program is told instead of the time ([`steer::clock`]), in nanoseconds.
fn given_time(clock: c_int) -> Option<u64> {
    (steer::clock::on() && steered().is_some()).then(|| steer::clock::look(clock))
}

pub(super) extern "C" fn clock_gettime(clock: usize, time: usize) -> isize {
    if let Some(now) = given_time(clock as c_int) {
        let told =
            libc::timespec { tv_sec: (now / 1_000_000_000) as i64, tv_nsec: (now % 1_000_000_000) as i64 };
        // SAFETY: the program passes room for a time.
        unsafe { *(time as *mut libc::timespec) = told };
        return 0;
    }
    queries(libc::SYS_clock_gettime, [clock, time, 0, 0, 0, 0], (time, size_of::<libc::timespec>()))
}

pub(super) extern "C" fn gettimeofday(time: usize, zone: usize) -> isize {
    if let Some(now) = given_time(libc::CLOCK_REALTIME).filter(|_| time != 0) {
        let told = libc::timeval {
            tv_sec: (now / 1_000_000_000) as i64,
            tv_usec: (now % 1_000_000_000 / 1000) as i64,
        };
        // SAFETY: the program passes room for a time.
        unsafe { *(time as *mut libc::timeval) = told };
        return 0;
    }
    queries(libc::SYS_gettimeofday, [time, zone, 0, 0, 0, 0], (time, size_of::<libc::timeval>()))
}

pub(super) extern "C" fn time(seconds: usize) -> isize {
    if let Some(now) = given_time(libc::CLOCK_REALTIME) {
        let now = (now / 1_000_000_000) as i64;
        if seconds != 0 {
            // SAFETY: the program passes room for a time.
            unsafe { *(seconds as *mut i64) = now };
        }
        return now as isize;
    }
    queries(libc::SYS_time, [seconds, 0, 0, 0, 0, 0], (seconds, if seconds == 0 { 0 } else { 8 }))
}

pub(super) extern "C" fn getrandom(buffer: usize, bytes: usize, flags: usize) -> isize {
    if steer::clock::on() && steered().is_some() {
        // SAFETY: the program passes room for so many bytes.
        steer::dice::fill(unsafe { core::slice::from_raw_parts_mut(buffer as *mut u8, bytes) });
        return bytes as isize;
    }
    queries(libc::SYS_getrandom, [buffer, bytes, flags, 0, 0, 0], (buffer, bytes))
}

pub(super) extern "C" fn getentropy(buffer: usize, bytes: usize) -> isize {
    if getrandom(buffer, bytes, 0) == bytes as isize { 0 } else { -1 }
}

pub(super) extern "C" fn getpid() -> isize {
    let pid = queries(libc::SYS_getpid, [0; 6], NOTHING);
    super::signal::note_recorded_pid(pid);
    pid
}
