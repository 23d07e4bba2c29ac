//! What a strategy sees, and what it may use.

use crate::random::Random;
use crate::roster::{Phase, Roster, ThreadIx};
use crate::strategy::Note;

/// How far the run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Thread of the last turn.
    pub last: ThreadIx,
    /// Turns in a row of `last`.
    pub run_length: u32,
    /// Decisions made so far, this one among them.
    pub decisions: u64,
    /// Those among them at which more than one thread could go.
    pub choices: u64,
}

impl Progress {
    pub const START: Progress = Progress { last: ThreadIx::NOBODY, run_length: 0, decisions: 0, choices: 0 };
}

/// The run, as a strategy sees it. Only looked at: what a strategy keeps is its own ([`Tools::notes`]).
pub struct View<'a, 't> {
    pub roster: &'a Roster<'t>,
    pub progress: Progress,
    /// Somebody can go who has not yielded, so those who have are left out.
    pub skip_yielded: bool,
    /// How many candidates there are; 0 where nobody is to be picked.
    pub candidate_count: usize,
}

impl View<'_, '_> {
    /// The threads to choose from, in order of creation.
    #[inline]
    pub fn candidates(&self) -> impl Iterator<Item = ThreadIx> + '_ {
        self.roster.living().filter(|&ix| {
            let entry = &self.roster[ix];
            entry.eligible() && !(self.skip_yielded && entry.yielded)
        })
    }

    /// The first candidate after a thread in order of creation, and from the beginning if there is none.
    pub fn next_after(&self, thread: ThreadIx) -> ThreadIx {
        let after = self.candidates().find(|&ix| ix > thread);
        after.or_else(|| self.candidates().next()).unwrap_or(ThreadIx(0))
    }

    pub fn anybody_runs(&self) -> bool {
        self.roster.living_entries().any(|entry| entry.phase == Phase::Running)
    }
}

/// What a strategy may change: the run's one source of randomness, and its own notes about threads.
pub struct Tools<'t> {
    pub random: Random,
    pub(crate) notes: &'t mut [Note],
}

impl Tools<'_> {
    #[inline]
    pub fn note(&mut self, ix: ThreadIx) -> &mut Note {
        &mut self.notes[ix.at()]
    }
}
