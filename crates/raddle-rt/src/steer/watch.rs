//! Waiting for one's turn, and watching that somebody has it.
//!
//! A chosen thread may be asleep in the kernel, in a system call that only the outside world ends. Whoever waits looks
//! after a while: if the chosen thread is asleep, it is passed over until it comes back.

use super::state::{self, Entry, NOBODY, Phase, grant};
use super::tasks::{asleep, processor_ms};
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
            let lost = is_lost(entry);
            if entry.phase == Phase::Running && (lost || is_away(entry)) {
                entry.phase = Phase::Away;
                entry.lost = lost;
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
    if matches!(due.phase, Phase::Running | Phase::Acting) && is_away(due) {
        due.phase = Phase::Away;
        CHANGED_MS.store(now, Ordering::Relaxed);
        sched.choose();
    }
}

/// Does the thread sleep in the kernel until the outside world ends that? A child process that is awake is no outside world
/// yet: it will end by itself, and what others would do in the meantime would depend on how long it takes.
pub fn is_away(entry: &Entry) -> bool {
    // In this order: a child that ends between the two questions has woken the thread.
    // SAFETY: a listed thread's structure stays valid.
    !unsafe { &*entry.thread }.awaits_kin() && asleep(entry.os_tid)
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
