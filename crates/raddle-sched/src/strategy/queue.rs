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
//! served when nobody else is in line, and look after themselves ([`crate::Sched::claim`]).

use super::{OpenTurn, Served, Strategy};
use crate::roster::{Phase, ThreadIx};
use crate::view::{Tools, View};

/// Slices are powers of two up to this: 512 operations take less time than the switch of threads that ends them costs in a
/// free run, and a run of a thousand operations still has several.
const SLICE_MAX_BITS: u64 = 9;
const SLICE_MAX: u32 = 1 << SLICE_MAX_BITS;
/// A slice is no spinning.
const SPIN_TURNS_MAX: u32 = 2 * SLICE_MAX;
/// So long the turn lies open for the thread that had it: longer than most code between two operations takes, and about what
/// waking a thread costs, so that waiting is never much worse than not waiting.
const OPEN_US: u64 = 60;
/// Who is far back in line need not look so often.
const OPEN_US_MAX: u64 = 5_000;
/// So often does the time between looks double.
const LOOKS_DOUBLING_MAX: u32 = 3;

/// What a thread in line goes by while it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long it sleeps before it looks whether the turn lies open.
    pub us: u64,
    /// Decisions until now: if there are more when it looks, whoever has the slice makes use of it.
    pub(crate) decisions: u64,
}

pub struct Queue {
    /// Turns in a row that the last thread may take while others wait.
    slice: u32,
    /// With one thread at a time there is nobody to arrive meanwhile: the turn never lies open.
    one_at_a_time: bool,
}

impl Queue {
    pub fn new(one_at_a_time: bool) -> Queue {
        Queue { slice: 1, one_at_a_time }
    }

    /// The first in line: of the threads that wait for their turn the one that came first, yielded ones last; then, if
    /// nobody is on the way, those that could give up.
    fn head(view: &View<'_, '_>) -> Option<ThreadIx> {
        let first = |phase: Phase, yielded: bool| {
            let in_line = |ix: &ThreadIx| {
                let entry = &view.roster[*ix];
                entry.phase == phase && entry.yielded == yielded
            };
            view.roster.living().filter(in_line).min_by_key(|&ix| view.roster[ix].ticket)
        };
        let waiting = first(Phase::Waiting, false).or_else(|| first(Phase::Waiting, true));
        let timed = || {
            if view.anybody_runs() {
                return None;
            }
            first(Phase::AsideTimed, false).or_else(|| first(Phase::AsideTimed, true))
        };
        waiting.or_else(timed)
    }

    fn draw(tools: &mut Tools<'_>) -> u32 {
        1 << (tools.random.draw() % (SLICE_MAX_BITS + 1))
    }
}

impl Strategy for Queue {
    fn open_turn(&mut self, view: &View<'_, '_>, thread: ThreadIx) -> OpenTurn {
        let last = view.progress.last;
        if self.one_at_a_time || !view.roster.knows(last) || view.roster[last].yielded {
            return OpenTurn::Choose;
        }
        let in_slice = view.progress.run_length < self.slice;
        let phase = view.roster[last].phase;
        if last == thread {
            // An operation that would block, and is tried again, is not its next.
            return if phase == Phase::Waiting && in_slice { OpenTurn::Take } else { OpenTurn::Choose };
        }
        if phase == Phase::Running && in_slice { OpenTurn::StaysOpen } else { OpenTurn::Choose }
    }

    fn serve(&self, view: &View<'_, '_>) -> Served {
        if self.one_at_a_time {
            return Served::ByPick;
        }
        match Queue::head(view) {
            Some(first) => Served::Thread(first),
            None if view.anybody_runs() => Served::LiesOpen,
            None => Served::ByPick,
        }
    }

    /// Who came first goes.
    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        view.candidates().min_by_key(|&ix| view.roster[ix].ticket).unwrap_or(ThreadIx(0))
    }

    /// Draws a new slice when the thread has just been served, or when its slice is over and nobody is in line.
    fn finished(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>, thread: ThreadIx) -> bool {
        if self.one_at_a_time {
            return false;
        }
        let run_length = view.progress.run_length;
        if run_length == 1 {
            self.slice = Queue::draw(tools);
        } else if run_length >= self.slice && Queue::head(view).is_none() {
            self.slice = run_length + Queue::draw(tools);
        }
        let entry = &view.roster[thread];
        entry.phase == Phase::Running && !entry.yielded && run_length < self.slice
    }

    fn spin_turns_max(&self) -> u32 {
        if self.one_at_a_time { super::SPIN_TURNS_MAX } else { SPIN_TURNS_MAX }
    }

    fn may_lie_open(&self) -> bool {
        !self.one_at_a_time
    }

    /// `None`: the thread is not in line. Each time that it has looked for nothing (`looks`) it sleeps longer.
    fn patience(&self, view: &View<'_, '_>, thread: ThreadIx, looks: u32) -> Option<Patience> {
        let me = &view.roster[thread];
        if self.one_at_a_time || me.phase != Phase::Waiting {
            return None;
        }
        let in_line = view.roster.living_entries().filter(|entry| entry.phase == Phase::Waiting);
        let ahead = in_line.filter(|entry| entry.ticket < me.ticket).count() as u64;
        let us = ((OPEN_US * (1 + ahead)) << looks.min(LOOKS_DOUBLING_MAX)).min(OPEN_US_MAX);
        Some(Patience { us, decisions: view.progress.decisions })
    }
}
