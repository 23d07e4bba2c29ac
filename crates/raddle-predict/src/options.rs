//! What a prediction is asked to do. The defaults are what `raddle hunt` wants.

use raddle_trace::LocationIx;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reductions of chapter 5 that can be switched off one by one. None changes what is predicted; each saves work. The
/// statistics say how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    /// §5.5.1: repeated accesses of one code location to the same bytes within a thread segment.
    pub redundant: bool,
    /// §5.2.2: intervals that only one thread accesses, or that nobody writes.
    pub intervals: bool,
    /// §5.5.2, first half: pairs ordered by edges that hold in every reordering.
    pub weak_order: bool,
    /// §5.5.2, second half: pairs protected by a common lock.
    pub locksets: bool,
    /// §5.5.3: intervals accessed in the same segments are checked once.
    pub same_segment: bool,
}

impl Reductions {
    pub const ALL: Reductions =
        Reductions { redundant: true, intervals: true, weak_order: true, locksets: true, same_segment: true };
    pub const NONE: Reductions = Reductions {
        redundant: false,
        intervals: false,
        weak_order: false,
        locksets: false,
        same_segment: false,
    };
}

/// Which kinds of error are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    pub races: bool,
    /// Deadlocks, blocked threads and missed signals: what a reordering can get stuck in.
    pub stuck: bool,
}

/// What a prediction claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// Plain memory constrains nothing: whatever the synchronisation allows is a candidate, to be replayed. A thread that
    /// would read another value than recorded might do something else.
    #[default]
    Optimistic,
    /// Every read, plain or atomic, sees the write that it saw: whatever is predicted can happen, because each thread does
    /// what it did. All such reorderings count, not only those that keep the order of synchronisation.
    Sound,
}

/// Which plain reads see the write that they saw, at the optimistic level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keeps {
    /// None.
    #[default]
    Nothing,
    /// Those of memory that one lock protects: what is read in a critical section was written in another one of the same
    /// lock, and mostly decides what the thread does next. Atomic reads keep their writers too.
    HandOvers,
    /// Those of memory that is read at these places, which were seen to decide what a thread does; and atomic ones.
    ReadsAt(Arc<BTreeSet<LocationIx>>),
    /// All of them: what [`Level::Sound`] does.
    Reads,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub level: Level,
    pub keeps: Keeps,
    pub checks: Checks,
    pub reductions: Reductions,
    /// Values read by atomics constrain the reorderings: an atomic read that would see another value leads off the
    /// observed path, so nothing is predicted behind it. [`Level::Sound`] always does so.
    pub atomics: bool,
    /// The linear-time pass. Off only to compare the search with it.
    pub closure: bool,
    /// States that the searches of the whole prediction may visit together.
    pub budget_states: u64,
    /// Time that the searches may take together, beside it. Without one, the outcome does not depend on the machine.
    pub budget_time: Option<std::time::Duration>,
    /// Look only at reorderings within windows of so many events (overlapping by half); `None`: at the whole trace, and
    /// at windows only where the budget does not suffice.
    pub window: Option<u32>,
    /// Witnesses to keep for one candidate: if the first cannot be replayed, another may.
    pub alternatives: usize,
    /// Candidates of one kind to report; what is left out is counted in [`crate::Prediction::unexplored`].
    pub candidates_max: usize,
}

impl Options {
    /// Which reads see the write that they saw.
    pub fn kept(&self) -> Keeps {
        match self.level {
            Level::Sound => Keeps::Reads,
            Level::Optimistic => self.keeps.clone(),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            level: Level::Optimistic,
            keeps: Keeps::Nothing,
            checks: Checks { races: true, stuck: true },
            reductions: Reductions::ALL,
            atomics: true,
            closure: true,
            budget_states: 1_000_000,
            budget_time: None,
            window: None,
            alternatives: 3,
            candidates_max: 10_000,
        }
    }
}
