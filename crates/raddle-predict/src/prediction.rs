//! The outcome of a prediction.

use crate::candidate::{Candidate, Party};
use crate::ids::Pos;
use crate::intervals::{IntervalIx, Intervals};
use crate::names::Names;
use crate::options::Level;
use crate::program::Program;
use crate::witness::{Fidelity, Witness};
use raddle_trace::schedule::Schedule;
use raddle_trace::{MemoryTrace, ThreadIx};

/// How a query was answered, counted for the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Pairs of segments shown to be reachable together by the closure that keeps every observed read.
    pub by_strict_closure: u64,
    /// ... by the closure that does not.
    pub by_closure: u64,
    /// ... by the search.
    pub by_search: u64,
    /// Shown to be unreachable by an exhausted search.
    pub refuted: u64,
    /// Given up.
    pub undecided: u64,
}

/// What the reductions did: the columns of tables 5.7 and 5.8, and how the rest was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events of the trace: "no cache".
    pub events: u64,
    /// Without redundant accesses: "with cache".
    pub after_redundant: u64,
    /// With memory grouped into intervals, and without intervals that cannot race: "total".
    pub after_intervals: u64,
    /// Synchronisation events: "synch".
    pub synchronisation: u64,
    /// Events removed by the hybrid filter.
    pub hybrid_removed: u64,
    /// Events removed by same-segment merging.
    pub same_segment_removed: u64,
    /// Checks saved by same-segment merging: "redundant".
    pub redundant_checks: u64,
    /// Intervals left to check: "final".
    pub final_checks: u64,
    pub intervals: u64,
    pub answers: Answers,
    /// States visited by searches.
    pub states: u64,
}

/// A question that the budget did not suffice for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The two accesses, or the operations that threads would be blocked at; the earlier events first.
    pub events: [u32; 2],
    /// Steps of the observed run before them: what a search may have to rearrange.
    pub steps: u64,
    /// States visited for it.
    pub states: u64,
}

/// What was not looked at, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unexplored {
    /// The budget ran out before these pairs of segments were decided.
    Pairs { count: u64, open: Vec<OpenQuestion> },
    /// Cycles of locks that the budget did not suffice for.
    Cycles { count: u64, open: Vec<OpenQuestion> },
    /// The search for stuck states looked at windows of so many events only.
    Windows { events: u32, exhausted: u64, given_up: u64 },
    /// More candidates than asked for.
    Candidates { left_out: u64 },
    /// Steps of the trace that the model would not have allowed where they were observed; what follows from them is
    /// uncertain.
    Oddities { count: u64 },
    /// The trace says that it lost accesses.
    Lost { accesses: u64 },
}

impl std::fmt::Display for Unexplored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unexplored::Pairs { count, .. } => {
                write!(f, "{count} pairs of accesses were not decided within the budget (raise --budget)")
            }
            Unexplored::Cycles { count, .. } => {
                write!(f, "{count} lock cycles were not decided within the budget (raise --budget)")
            }
            Unexplored::Windows { events, exhausted, given_up } => write!(
                f,
                "the search for deadlocks looked at windows of {events} events only: {exhausted} searched whole, \
                 {given_up} given up (raise --budget)"
            ),
            Unexplored::Candidates { left_out } => {
                write!(f, "{left_out} further candidates were left out (raise --candidates)")
            }
            Unexplored::Oddities { count } => write!(
                f,
                "{count} events are not possible where the trace has them (a cut trace, an unbalanced lock, a \
                 spurious wake-up); they were taken as they are"
            ),
            Unexplored::Lost { accesses } => {
                write!(
                    f,
                    "the recording left out {accesses} accesses; races between them cannot be predicted"
                )
            }
        }
    }
}

/// What the model says as a whole; the questions that the CSPM files of `--emit-csp` ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Some reordering gets stuck: no thread can move, some have not ended, and none has left the observed path.
    pub stuck: bool,
    /// Intervals with a race.
    pub racy: Vec<IntervalIx>,
}

/// Everything a prediction found.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// Races first, each kind in the order of its first party's event.
    pub candidates: Vec<Candidate>,
    pub stats: Stats,
    pub unexplored: Vec<Unexplored>,
    pub verdict: Verdict,
    /// The program that the trace shows, and the memory it shares.
    pub program: Program,
    pub intervals: Intervals,
    pub names: Names,
    /// What is claimed of the candidates.
    pub level: Level,
    /// Memory accesses were looked at: what a schedule does to reads is known.
    pub knows_memory: bool,
}

impl Prediction {
    /// Are the candidates real errors of the program, as far as the trace goes? A recording that lost accesses does not say
    /// what its reads saw.
    pub fn is_sound(&self) -> bool {
        self.level == Level::Sound && self.program.lost_accesses == 0
    }

    /// The schedule of a candidate: `candidate.parties` and `candidate.witness`, or one of its alternatives.
    pub fn schedule(
        &self,
        trace: &MemoryTrace,
        about: &str,
        parties: &[Party],
        witness: &Witness,
    ) -> Schedule {
        witness.schedule(trace, &self.program, &self.names, about, parties)
    }

    /// The recorded run itself, told like the schedules of its candidates: with the same names and counts, so that the two can
    /// be compared step by step.
    pub fn recorded(&self, trace: &MemoryTrace, about: &str) -> Schedule {
        let all = |number| self.program.steps(ThreadIx(number)).len() as Pos;
        let threads = u32::try_from(self.program.thread_count()).unwrap_or(u32::MAX);
        let positions = (0..threads).map(all).collect();
        let whole = Witness { positions, then: Vec::new(), fidelity: Fidelity::KeepsReads };
        self.schedule(trace, about, &[], &whole)
    }
}
