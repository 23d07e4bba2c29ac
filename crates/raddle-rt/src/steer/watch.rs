//! Waiting for one's turn, and watching that somebody has it.
//!
//! A chosen thread may be asleep in the kernel, in a system call that only the outside world ends. Whoever waits looks
//! after a while: if the chosen thread is asleep, it is passed over until it comes back.

use super::state::{self, Entry, NOBODY, Phase, grant};
use super::{schedule, strategy};
use crate::interpose::cancel;
use crate::real;
use crate::thread::Thread;
use core::sync::atomic::{AtomicU64, Ordering};

/// How long a thread waits before it looks whether anybody moves.
const LOOK_AFTER_US: u64 = 20_000;
/// A chosen thread that sleeps in the kernel is passed over after so long.
const PASS_OVER_MS: u64 = 50;
/// A thread that the others wait for is passed over after so much processor time even if it is awake: it may wait for them in
/// a loop without visible operations. Processor time, because on a loaded machine others have their share.
const LOST_MS: u64 = 2_000;
/// So long without any step mean that the run is stuck.
const STUCK_MS: u64 = 10_000;

/// Step counter at the last look, and when it last changed.
static SEEN: AtomicU64 = AtomicU64::new(0);
static CHANGED_MS: AtomicU64 = AtomicU64::new(0);

pub fn sleep_until_granted(thread: &Thread) {
    let word = {
        let mut sched = state::lock();
        core::ptr::from_ref(&sched.entry(thread).grant)
    };
    // SAFETY: entries live in a static table.
    let word = unsafe { &*word };
    let mut looks = 0;
    loop {
        // Whoever gives the grant wakes only who has said that it sleeps.
        let said = word.compare_exchange(grant::NONE, grant::ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if said == Err(grant::GIVEN) {
            return;
        }
        let in_line = strategy::queue::patience(thread, looks);
        looks += 1;
        real::futex_wait_private(word, grant::ASLEEP, in_line.map_or(LOOK_AFTER_US, |patience| patience.us));
        if word.load(Ordering::Acquire) != grant::GIVEN {
            if crate::demo::has_signal(thread) {
                return;
            }
            if in_line.is_some() || state::lock().is_queue() {
                strategy::queue::claim(thread, in_line);
            }
            if in_line.is_none() {
                look();
            }
        }
    }
}

fn look() {
    if super::debugger::on() {
        // Time passes while somebody thinks.
        return;
    }
    let mut sched = state::lock();
    if crate::init::header().is_some_and(|header| header.report.load(Ordering::Relaxed) != 0) {
        sched.report();
    }
    sched.entries.for_each(|entry| {
        // It was cancelled, allows that at any time, and goes on computing.
        if entry.cancelled && entry.phase == Phase::Running && computes_freely(entry) && is_lost(entry) {
            entry.strike();
        }
    });
    let (steps, now) = (sched.decisions, real::now_ms());
    if SEEN.swap(steps, Ordering::Relaxed) != steps || CHANGED_MS.load(Ordering::Relaxed) == 0 {
        CHANGED_MS.store(now, Ordering::Relaxed);
        sched.entries.for_each(|entry| {
            if !(entry.cancelled && computes_freely(entry)) {
                entry.cpu_ms = processor_ms(entry.os_tid);
            }
        });
        return;
    }
    let elapsed = now.saturating_sub(CHANGED_MS.load(Ordering::Relaxed));
    if elapsed < PASS_OVER_MS {
        return;
    }
    if sched.replay.active() {
        schedule::look(&mut sched, elapsed, STUCK_MS);
        return;
    }
    let chosen = sched.chosen;
    if chosen == NOBODY {
        // Everybody who could go is outside the runtime's reach: only the outside world can help. Or the choice waits
        // for threads that have not arrived, and those asleep in the kernel may never do.
        let mut passed = false;
        sched.entries.for_each(|entry| {
            if entry.phase == Phase::Running && (is_lost(entry) || asleep(entry.os_tid)) {
                entry.phase = Phase::Away;
                passed = true;
            }
        });
        if passed {
            CHANGED_MS.store(now, Ordering::Relaxed);
            sched.choose();
        }
        return;
    }
    let due = &mut sched.entries[chosen as usize];
    // A thread whose visible access is over but for its turn may be asleep as well.
    if matches!(due.phase, Phase::Running | Phase::Acting) && asleep(due.os_tid) {
        due.phase = Phase::Away;
        CHANGED_MS.store(now, Ordering::Relaxed);
        sched.choose();
    }
}

/// Has the thread computed for so long without coming to an operation that the others do not wait for it any more? One that
/// may be cancelled at any time says that it is going to.
pub fn is_lost(entry: &Entry) -> bool {
    let patience_ms = if computes_freely(entry) { cancel::PATIENCE_MS } else { LOST_MS };
    computed_ms(entry) >= patience_ms
}

/// Processor time since the run was last seen to go on.
pub fn computed_ms(entry: &Entry) -> u64 {
    processor_ms(entry.os_tid).saturating_sub(entry.cpu_ms)
}

fn computes_freely(entry: &Entry) -> bool {
    // SAFETY: a listed thread's structure stays valid.
    cancel::at_any_time(unsafe { &*entry.thread })
}

/// Processor time of a thread of this process.
pub fn processor_ms(tid: u32) -> u64 {
    // How the kernel names the clock of a thread: not of a process, and all of its time.
    let clock = (!tid << 3 | 6) as i32;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is valid for the call.
    unsafe {
        real::syscall(libc::SYS_clock_gettime, [clock as usize, &raw mut time as usize, 0, 0, 0, 0]);
    }
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Is the thread asleep in the kernel, or gone? Unknown counts as awake.
pub fn asleep(tid: u32) -> bool {
    let mut path = [0u8; 48];
    let prefix = b"/proc/self/task/";
    path[..prefix.len()].copy_from_slice(prefix);
    let mut at = prefix.len();
    let mut digits = [0u8; 10];
    let mut count = 0;
    let mut rest = tid;
    loop {
        digits[count] = b'0' + (rest % 10) as u8;
        count += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    while count > 0 {
        count -= 1;
        path[at] = digits[count];
        at += 1;
    }
    path[at..at + 5].copy_from_slice(b"/stat");
    let mut text = [0u8; 128];
    // SAFETY: path is a C string, the buffer is valid for its length, the descriptor is closed again.
    let bytes = unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let fd = real::syscall(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0],
        );
        if fd < 0 {
            // A thread that is gone comes to no operation any more.
            return tid != 0 && fd == -(libc::ENOENT as isize);
        }
        let bytes =
            real::syscall(libc::SYS_read, [fd as usize, text.as_mut_ptr() as usize, text.len(), 0, 0, 0]);
        real::syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        bytes
    };
    let text = &text[..bytes.max(0) as usize];
    // The state follows the command name, which may itself contain anything but ends at the last bracket.
    match text.iter().rposition(|&byte| byte == b')') {
        // The first thread, when it has ended before the others, stays as a zombie.
        Some(end) => matches!(text.get(end + 2), Some(b'S' | b'D' | b'Z' | b'X')),
        None => false,
    }
}
