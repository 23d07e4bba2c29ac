//! Waiting for one's turn, and watching that somebody has it.
//!
//! A chosen thread may be asleep in the kernel, in a system call that only the outside world ends. Whoever waits looks
//! after a while: if the chosen thread is asleep, it is passed over until it comes back.

use super::cancellation as cancel;
use super::objects::strike;
use super::scheduler::{self, World};
use super::stations::{grant, station};
use super::tasks::{asleep, process_awake, processor_ms};
use super::{conclusion, schedule};
use crate::real;
use crate::thread::Thread;
use core::sync::atomic::{AtomicU64, Ordering};
use raddle_sched::{Entry, Phase, Sched, ThreadIx};

/// How long a thread waits before it looks whether anybody moves.
const LOOK_AFTER_US: u64 = 20_000;
/// A chosen thread that sleeps in the kernel is passed over after so long.
const PASS_OVER_MS: u64 = 50;
/// A thread that the others wait for is passed over after so much processor time even if it is awake: it may wait for them in
/// a loop without visible operations. Processor time, because on a loaded machine others have their share.
const LOST_MS: u64 = 2_000;
/// So much processor time without any step, of a thread that was passed over already, means that the run is stuck.
const STUCK_MS: u64 = 10_000;
/// So long asleep in the kernel without any step as well.
const ASLEEP_MS: u64 = 2_500;

/// In a replay it is known how long all of the repeated run took. A thread that computes for twice as long without coming to
/// an operation spins: it waits for what the schedule keeps from happening. Twice, because a replay watches more than a
/// recording; and what starting up may cost on top.
const STARTING_MS: u64 = 200;
/// The same for a thread that sleeps. More on top, because on a loaded machine whoever is to wake it has to be scheduled.
const WAKING_MS: u64 = 500;

/// A limit that holds where nothing is known, or a shorter one that the duration of the repeated run justifies.
fn limit(otherwise_ms: u64, extra_ms: u64) -> u64 {
    match crate::run::header().map_or(0, |header| header.repeated_run_ms) {
        0 => otherwise_ms,
        took_ms => otherwise_ms.min(took_ms.saturating_mul(2).saturating_add(extra_ms)),
    }
}

fn lost_ms() -> u64 {
    limit(LOST_MS, STARTING_MS)
}

/// Twice what makes a thread lost: it has been passed over, and nobody else has gone on since.
pub fn stuck_ms() -> u64 {
    STUCK_MS.min(2 * limit(STUCK_MS, STARTING_MS))
}

pub fn asleep_ms() -> u64 {
    limit(ASLEEP_MS, WAKING_MS)
}

/// Step counter at the last look, and when it last changed.
static SEEN: AtomicU64 = AtomicU64::new(0);
static CHANGED_MS: AtomicU64 = AtomicU64::new(0);

pub fn sleep_until_granted(thread: &Thread) {
    let me = thread.place();
    let word = &station(me).grant;
    let mut looks = 0;
    loop {
        // Whoever gives the grant wakes only who has said that it sleeps.
        let said = word.compare_exchange(grant::NONE, grant::ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if said == Err(grant::GIVEN) {
            return;
        }
        if super::kept::on() {
            super::kept::fiber::wait(word);
            continue;
        }
        let in_line = scheduler::lock().patience(me, looks);
        looks += 1;
        real::futex_wait_private(word, grant::ASLEEP, in_line.map_or(LOOK_AFTER_US, |patience| patience.us));
        if word.load(Ordering::Acquire) != grant::GIVEN {
            if crate::demo::may_handle(thread) {
                return;
            }
            {
                let mut sched = scheduler::lock();
                if sched.may_lie_open() {
                    sched.claim(me, in_line, &World);
                }
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
    let mut sched = scheduler::lock();
    if crate::run::header().is_some_and(|header| header.report.load(Ordering::Relaxed) != 0) {
        return conclusion::report(&mut sched);
    }
    while let Some(ix) = computes_on(&sched) {
        strike(&mut sched, ix);
    }
    let (steps, now) = (sched.progress().decisions, real::now_ms());
    if SEEN.swap(steps, Ordering::Relaxed) != steps || CHANGED_MS.load(Ordering::Relaxed) == 0 {
        CHANGED_MS.store(now, Ordering::Relaxed);
        for ix in sched.roster.living() {
            let entry = &sched.roster[ix];
            if !(entry.is_cancelled() && computes_freely(ix)) {
                station(ix).cpu_ms.store(processor_ms(entry.os_tid), Ordering::Relaxed);
            }
        }
        return;
    }
    let elapsed = now.saturating_sub(CHANGED_MS.load(Ordering::Relaxed));
    if elapsed < PASS_OVER_MS {
        return;
    }
    if sched.replay.active() {
        return schedule::look(&mut sched, elapsed);
    }
    let chosen = sched.chosen();
    if chosen.is_nobody() {
        // Everybody who could go is outside the runtime's reach: only the outside world can help. Or the choice waits
        // for threads that have not arrived, and those asleep in the kernel may never do.
        let passed = sched.pass_over_where(|ix, entry| {
            let lost = is_lost(ix, entry);
            (lost || is_away(ix, entry)).then_some(lost)
        });
        // A signal may have been on its way when the scheduler last asked, and has come to nothing since.
        if passed || scheduler::has_handlers() {
            CHANGED_MS.store(now, Ordering::Relaxed);
            sched.choose(&World);
        }
        return;
    }
    let due = &sched.roster[chosen];
    // A thread whose visible access is over but for its turn may be asleep as well.
    if matches!(due.phase(), Phase::Running | Phase::Acting) && is_away(chosen, due) {
        let lost = due.is_lost();
        sched.pass_over(chosen, lost);
        CHANGED_MS.store(now, Ordering::Relaxed);
        sched.choose(&World);
    }
}

/// A thread that was cancelled, allows that at any time, and goes on computing.
fn computes_on(sched: &Sched<'_>) -> Option<ThreadIx> {
    sched.roster.living().find(|&ix| {
        let entry = &sched.roster[ix];
        entry.is_cancelled() && entry.phase() == Phase::Running && computes_freely(ix) && is_lost(ix, entry)
    })
}

/// Does the thread sleep in the kernel until the outside world ends that? A child process that is awake is no outside world
/// yet: it will end by itself, and what others would do in the meantime would depend on how long it takes.
pub fn is_away(ix: ThreadIx, entry: &Entry) -> bool {
    // In this order: a child that ends between the two questions has woken the thread.
    !awaits_kin(station(ix).thread()) && asleep(entry.os_tid)
}

/// Has the thread computed for so long without coming to an operation that the others do not wait for it any more? One that
/// may be cancelled at any time says that it is going to.
pub fn is_lost(ix: ThreadIx, entry: &Entry) -> bool {
    let patience_ms = if computes_freely(ix) { cancel::PATIENCE_MS } else { lost_ms() };
    computed_ms(ix, entry) >= patience_ms
}

/// Processor time since the run was last seen to go on.
pub fn computed_ms(ix: ThreadIx, entry: &Entry) -> u64 {
    processor_ms(entry.os_tid).saturating_sub(station(ix).cpu_ms.load(Ordering::Relaxed))
}

fn computes_freely(ix: ThreadIx) -> bool {
    cancel::at_any_time(station(ix).thread())
}

/// Does the thread wait for a child process that is awake?
fn awaits_kin(thread: &Thread) -> bool {
    match thread.turns.awaits.load(Ordering::Relaxed) {
        0 => false,
        child if child > 0 => process_awake(child),
        _ => super::tasks::any_child(process_awake),
    }
}
