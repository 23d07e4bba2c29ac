//! The time that a steered program is told.
//!
//! Where the seed decides everything, the clock may not: a loop that waits until some time has passed would take another
//! number of turns in every run. So the program is told a time of its own, which moves on when it looks
//! ([`LOOK_NS`] each time, so that such loops end), when it sleeps, and when a wait with a limit gives up, and never by
//! itself. One thread runs at a time then, so the order of these is that of the turns.
//!
//! The calendar starts at a fixed day, because programs make random numbers of it. A demo holds what the real clocks said
//! instead, and under `queue`, `noise` or a schedule that was made of a free run nothing here is in use.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static ON: AtomicBool = AtomicBool::new(false);
/// Nanoseconds since the program's start.
static ELAPSED_NS: AtomicU64 = AtomicU64::new(0);

/// What a look at the clock takes.
const LOOK_NS: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The first of January 2026.
const CALENDAR_S: u64 = 1_767_225_600;
/// Seconds that clocks without a calendar show at the start.
const UPTIME_S: u64 = 1_000;

#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn start(wanted: bool) {
    ELAPSED_NS.store(0, Ordering::Relaxed);
    ON.store(wanted, Ordering::Relaxed);
}

fn base_ns(clock: i32) -> u64 {
    let seconds = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => CALENDAR_S,
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => UPTIME_S,
        // Processor time.
        _ => 0,
    };
    seconds * SECOND_NS
}

/// What the clock shows, in nanoseconds.
pub fn look(clock: i32) -> u64 {
    base_ns(clock) + ELAPSED_NS.fetch_add(LOOK_NS, Ordering::Relaxed) + LOOK_NS
}

/// So much time passes.
pub fn pass(nanoseconds: u64) {
    if on() {
        ELAPSED_NS.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// The length of a time in nanoseconds; none is no time at all.
///
/// # Safety
/// `time` is null or valid.
pub unsafe fn length_ns(time: *const libc::timespec) -> u64 {
    // SAFETY: by contract.
    let Some(time) = (unsafe { time.as_ref() }) else { return 0 };
    (time.tv_sec.max(0) as u64).saturating_mul(SECOND_NS).saturating_add(time.tv_nsec.max(0) as u64)
}

/// A wait until `until` has given up, so that time has come. Which clock was meant can be seen: they are decades apart.
///
/// # Safety
/// `until` is null or valid.
pub unsafe fn reach(until: *const libc::timespec) {
    if !on() || until.is_null() {
        return;
    }
    // SAFETY: by contract.
    let until = unsafe { length_ns(until) };
    let base = if until / SECOND_NS >= CALENDAR_S / 2 { CALENDAR_S } else { UPTIME_S } * SECOND_NS;
    ELAPSED_NS.fetch_max(until.saturating_sub(base), Ordering::Relaxed);
}
