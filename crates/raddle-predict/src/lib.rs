//! Prediction: from the trace of one run to the errors that other interleavings of the same events would show.
//!
//! RaceQuest (Carril, *Predicting Errors in Concurrent Systems*, KIT 2017), with the question answered directly on the
//! trace instead of by a CSP checker. [`predict`] is the whole of it:
//!
//! ```text
//! trace --build--> Program --reductions--> pairs of segments, lock cycles --reach--> candidates with witnesses
//! ```
//!
//! [`csp`] writes the same model as CSPM for those who want to see or check it.
//!
//! This crate never runs a program: what it hands over is predicted, not confirmed.

// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod address_space;
pub mod bench_traces;
pub mod build;
pub mod candidate;
pub mod clocks;
pub mod closure;
pub mod csp;
pub mod findings;
mod guards;
pub mod ids;
pub mod intervals;
mod lock_cycles;
pub mod names;
pub mod options;
pub mod prediction;
pub mod program;
pub mod races;
pub mod reach;
pub mod search;
mod sites;
pub mod state;
pub mod stubborn;
pub mod stuck;
pub mod witness;

pub use candidate::{Candidate, CandidateKind, Party, Role};
pub use options::{Checks, Options, Reductions};
pub use prediction::{Prediction, Stats, Unexplored, Verdict};
pub use witness::{Fidelity, Witness};

use clocks::Clocks;
use intervals::Intervals;
use names::Names;
use raddle_trace::MemoryTrace;
use reach::Reach;
use search::Budget;

/// Predicts what other interleavings of the events of a trace would do.
pub fn predict(trace: &MemoryTrace, options: &Options) -> Prediction {
    let built = build::build(trace, options.atomics);
    let mut program = built.program;
    let mut prediction = Prediction { names: Names::of(trace), ..Prediction::default() };
    prediction.knows_memory = options.checks.races;
    prediction.stats.events = trace.events.len() as u64;
    prediction.stats.synchronisation = program.synchronisation;
    let mut intervals = Intervals::default();
    let mut reads = Vec::new();
    if options.checks.races {
        intervals = Intervals::new(&mut program, trace, options.reductions, &mut prediction.stats);
        reads = intervals.read_edges(&program);
        intervals.sort(options.reductions, &mut prediction.stats);
    }
    let must = Clocks::must(&program);
    let observed = Clocks::observed(&program, &built.edges, Vec::new());
    let with_reads = Clocks::observed(&program, &built.edges, reads.clone());
    let budget = Budget::new(options.budget_states);
    let mut reach = Reach::new(
        &program,
        &observed,
        &with_reads,
        (&built.edges, reads),
        options.closure,
        budget,
        options.budget_pair_states,
    );
    if program.oddities > 0 {
        prediction.unexplored.push(Unexplored::Oddities { count: program.oddities });
    }
    if program.lost_accesses > 0 {
        prediction.unexplored.push(Unexplored::Lost { accesses: program.lost_accesses });
    }
    if options.checks.races {
        let races = races::Races::new(&program, &must, options, &mut reach);
        let Prediction { stats, verdict, unexplored, .. } = &mut prediction;
        prediction.candidates = races.find(&intervals, stats, verdict, unexplored);
    }
    if options.checks.stuck {
        let stuck = stuck::Stuck::new(trace, &program, &must, options, &mut reach);
        let Prediction { verdict, unexplored, .. } = &mut prediction;
        let candidates = stuck.find(verdict, unexplored);
        prediction.candidates.extend(candidates);
    }
    prediction.stats.answers = reach.answers;
    prediction.stats.states = reach.budget.used;
    drop(reach);
    prediction.intervals = intervals;
    prediction.program = program;
    prediction
}
