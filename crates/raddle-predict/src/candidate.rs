//! Candidates: errors that some reordering of the observed events would show.
//!
//! A candidate is not a finding yet: the model is optimistic (it does not know what a thread would do after reading
//! other values), so a candidate is *predicted* until a replay of its schedule has shown it.

use crate::witness::Witness;
use raddle_trace::ThreadIx;
use raddle_trace::model::EventIx;

/// What a candidate is an instance of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CandidateKind {
    /// Two threads can stand before conflicting accesses at the same time.
    DataRace,
    /// The same, and one of the two releases the memory.
    UseAfterFree,
    /// Threads wait for each other.
    Deadlock,
    /// A thread waits for something that nobody will do any more.
    BlockedThread,
    /// A thread waits on a condition whose signal came before it began to wait.
    MissedSignal,
}

impl CandidateKind {
    pub fn word(self) -> &'static str {
        match self {
            CandidateKind::DataRace => "data-race",
            CandidateKind::UseAfterFree => "use-after-free",
            CandidateKind::Deadlock => "deadlock",
            CandidateKind::BlockedThread => "blocked-thread",
            CandidateKind::MissedSignal => "missed-signal",
        }
    }

    pub fn is_race(self) -> bool {
        matches!(self, CandidateKind::DataRace | CandidateKind::UseAfterFree)
    }
}

/// How a party takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// About to make this access (races).
    Accesses,
    /// Blocked before this operation (everything else).
    Blocked,
}

/// One thread's part in a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    pub thread: ThreadIx,
    /// The access, or the operation that cannot complete, as it was observed.
    pub event: EventIx,
    pub role: Role,
    /// Locks held at that moment: the events that acquired them, outermost first.
    pub held: Vec<EventIx>,
}

/// A predicted error.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub kind: CandidateKind,
    /// The threads that take part, in the order of their numbers.
    pub parties: Vec<Party>,
    /// A reordering that leads there. [`Witness::schedule`] makes the file for it.
    pub witness: Witness,
    /// Further reorderings that lead to the same error, to be tried when the first cannot be replayed. They may have
    /// other threads and other events (of the same code locations) as parties.
    pub alternatives: Vec<(Vec<Party>, Witness)>,
}
