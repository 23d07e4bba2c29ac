//! `queue`: first come, first served (tsan11rec §4.3).
//!
//! The thread that has waited longest at its visible operation goes first. Threads that are still on their way are not
//! waited for: if nobody waits, the turn *lies open*, and whoever comes first takes it. The order therefore depends on
//! arrival, stays close to that of a free run and costs least, but a repetition needs the recorded order.
//!
//! Deviation: a thread that has been served may go on for a *slice* of up to 512 operations, drawn anew each
//! time, before the next in line is served. Handing over after every operation would cost a switch of threads for each
//! of them, tens of times the operation itself, and a free run does not do that either. A thread that does not come back for its
//! slice does not hold the others up: after [`OPEN_US`] without an operation the first in line takes the turn. Waits with a time limit are
//! served when nobody else is in line, and look after themselves ([`claim`]).

use crate::steer::state::{self, NOBODY, Phase, Sched};
use crate::thread::Thread;

/// Slices are powers of two up to [`SLICE_MAX`].
const SLICE_MAX_BITS: u64 = 9;
pub const SLICE_MAX: u32 = 1 << SLICE_MAX_BITS;
/// So long the turn lies open for the thread that had it.
const OPEN_US: u64 = 60;
/// Who is far back in line need not look so often.
const OPEN_US_MAX: u64 = 5_000;
/// So often does the time between looks double.
const LOOKS_DOUBLING_MAX: u32 = 3;

/// The first in line: of the threads that wait for their turn the one that came first, yielded ones last; then, if nobody is
/// on the way, those that could give up.
pub fn head(sched: &Sched) -> u32 {
    let first = |phase: Phase, yielded: bool| {
        sched
            .entries
            .living()
            .filter(|&i| sched.entries[i].phase == phase && sched.entries[i].yielded == yielded)
            .min_by_key(|&i| sched.entries[i].ticket)
            .map(|i| i as u32)
    };
    let waiting = first(Phase::Waiting, false).or_else(|| first(Phase::Waiting, true));
    let timed = || {
        if sched.anybody_runs() {
            return None;
        }
        first(Phase::AsideTimed, false).or_else(|| first(Phase::AsideTimed, true))
    };
    waiting.or_else(timed).unwrap_or(NOBODY)
}

/// With one thread at a time there is nobody to arrive meanwhile: who came first goes.
pub fn pick(sched: &Sched, skip_yielded: bool) -> u32 {
    super::candidates(sched, skip_yielded).min_by_key(|&i| sched.entries[i].ticket).unwrap_or(0) as u32
}

/// A thread has finished its operation: may it go on? Draws a new slice when it has just been served, or when its slice is
/// over and nobody is in line.
pub fn keeps(sched: &mut Sched, me: usize) -> bool {
    if sched.run_length == 1 {
        sched.slice = draw(sched);
    } else if sched.run_length >= sched.slice && head(sched) == NOBODY {
        sched.slice = sched.run_length + draw(sched);
    }
    let entry = &sched.entries[me];
    entry.phase == Phase::Running && !entry.yielded && sched.run_length < sched.slice
}

fn draw(sched: &mut Sched) -> u32 {
    1 << (sched.next_random() % (SLICE_MAX_BITS + 1))
}

/// A thread has come while the turn lies open. True: it has been settled who is next, or that it goes on lying open.
pub fn arrived(sched: &mut Sched, me: usize) -> bool {
    let last = sched.last as usize;
    if last >= sched.entries.used() || sched.entries[last].yielded {
        return false;
    }
    if last == me {
        // An operation that would block, and is tried again, is not its next.
        if sched.entries[me].phase == Phase::Waiting && sched.run_length < sched.slice {
            sched.chosen = me as u32;
            return true;
        }
        return false;
    }
    sched.entries[last].phase == Phase::Running && sched.run_length < sched.slice
}

/// What a thread in line goes by while it sleeps.
#[derive(Clone, Copy)]
pub struct Patience {
    /// How long it sleeps before it looks whether the turn lies open.
    pub us: u64,
    /// Decisions until now: if there are more when it looks, whoever has the slice makes use of it.
    decisions: u64,
}

/// `None`: the thread is not in line. Each time that it has looked for nothing (`looks`) it sleeps longer.
pub fn patience(thread: &Thread, looks: u32) -> Option<Patience> {
    let mut sched = state::lock();
    if !sched.is_queue() || sched.replay.active() {
        return None;
    }
    let me = sched.entry(thread);
    if me.phase != Phase::Waiting {
        return None;
    }
    let ticket = me.ticket;
    let ahead =
        sched.entries.people().filter(|entry| entry.phase == Phase::Waiting && entry.ticket < ticket).count()
            as u64;
    let us = ((OPEN_US * (1 + ahead)) << looks.min(LOOKS_DOUBLING_MAX)).min(OPEN_US_MAX);
    Some(Patience { us, decisions: sched.decisions })
}

/// The turn may have been lying open for long enough. A thread that waits with a time limit takes it for itself if nobody is
/// in line.
pub fn claim(thread: &Thread, in_line: Option<Patience>) {
    let mut sched = state::lock();
    if sched.chosen != NOBODY || sched.replay.active() {
        return;
    }
    if let Some(patience) = in_line {
        if patience.decisions == sched.decisions {
            sched.choose();
        }
    } else if sched.entry(thread).phase == Phase::AsideTimed && head(&sched) == NOBODY {
        sched.chosen = thread.sched;
        sched.wake(thread.sched as usize);
    }
}
