//! What the scheduler wants done once its lock has been released.

use crate::roster::{Entry, Phase, ThreadIx};
use raddle_wire::step::StepWord;

/// More than ever are noted between two releases of the lock: one for the thread that is chosen, and one more where a choice is
/// taken back because the chosen thread has yielded.
pub const WAKES_MAX: usize = 4;

/// How a run ends by decree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// These wait for ever: all that are set aside, or those on a cycle.
    Deadlock { on_cycle: bool },
    /// Every stop point has been reached at the same time.
    Parked,
    /// A thread did something else than the schedule said; none: it came past its stop point.
    Diverged { thread: ThreadIx, expected: Option<StepWord> },
    /// Nothing moves any more.
    Stuck,
    /// There is no room for another thread.
    TooManyThreads,
}

impl Conclusion {
    /// Does a thread have part in it?
    pub fn concerns(&self, ix: ThreadIx, entry: &Entry) -> bool {
        match self {
            Conclusion::Deadlock { on_cycle: true } => entry.on_cycle,
            Conclusion::Deadlock { on_cycle: false } => entry.phase == Phase::Aside,
            Conclusion::Parked => entry.phase == Phase::Parked,
            Conclusion::Diverged { thread, .. } => ix == *thread,
            Conclusion::Stuck => !matches!(entry.phase, Phase::Free | Phase::Ended),
            Conclusion::TooManyThreads => false,
        }
    }
}

/// Effects noted and not yet done.
#[derive(Debug)]
pub struct Effects {
    wakes: [ThreadIx; WAKES_MAX],
    wake_count: usize,
    conclusion: Option<Conclusion>,
    /// The schedule has been followed to its end.
    pub(crate) replay_is_over: bool,
}

impl Effects {
    pub const NONE: Effects = Effects {
        wakes: [ThreadIx::NOBODY; WAKES_MAX],
        wake_count: 0,
        conclusion: None,
        replay_is_over: false,
    };

    /// A thread is to be told that it is its turn, or that it should look again.
    pub(crate) fn wake(&mut self, ix: ThreadIx) {
        if self.wakes[..self.wake_count].contains(&ix) {
            return;
        }
        assert!(self.wake_count < WAKES_MAX, "a decision wakes one thread");
        self.wakes[self.wake_count] = ix;
        self.wake_count += 1;
    }

    /// The run is over. What is found out first stands.
    pub(crate) fn conclude(&mut self, conclusion: Conclusion) {
        self.conclusion.get_or_insert(conclusion);
    }

    pub fn conclusion(&self) -> Option<Conclusion> {
        self.conclusion
    }

    pub fn replay_is_over(&self) -> bool {
        self.replay_is_over
    }

    /// The threads to wake, each once.
    pub fn take_wakes(&mut self) -> impl Iterator<Item = ThreadIx> + use<> {
        let count = core::mem::take(&mut self.wake_count);
        self.wakes.into_iter().take(count)
    }
}
