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
pub mod changed_reads;
pub mod clocks;
pub mod closure;
pub mod csp;
pub mod findings;
mod guards;
pub mod ids;
pub mod intervals;
mod leaf_locks;
mod lock_cycles;
pub mod names;
pub mod options;
pub mod prediction;
pub mod program;
pub mod provocations;
pub mod races;
pub mod reach;
mod saturation;
pub mod search;
mod sites;
pub mod state;
mod stolen_signals;
pub mod stubborn;
pub mod stuck;
mod stuck_places;
mod wait_cycles;
pub mod witness;

pub use candidate::{Candidate, CandidateKind, Party, Role};
pub use changed_reads::ChangedRead;
pub use options::{Checks, Keeps, Level, Options, Reductions};
pub use prediction::{OpenQuestion, Prediction, Stats, Unexplored, Verdict};
pub use witness::{Fidelity, Witness};

use clocks::Clocks;
use intervals::Intervals;
use names::Names;
use raddle_trace::MemoryTrace;
use reach::Reach;
use search::Budget;

/// Predicts what other interleavings of the events of a trace would do.
pub fn predict(trace: &MemoryTrace, options: &Options) -> Prediction {
    let sound = options.level == Level::Sound;
    let built = build::build(trace, options.atomics, &options.kept());
    let mut program = built.program;
    let mut prediction =
        Prediction { names: Names::of(trace), level: options.level, ..Prediction::default() };
    prediction.knows_memory = options.checks.races || sound;
    prediction.stats.events = trace.events.len() as u64;
    prediction.stats.synchronisation = program.synchronisation;
    let mut intervals = Intervals::default();
    let mut reads = Vec::new();
    if options.checks.races {
        intervals = Intervals::new(&mut program, trace, options.reductions, &mut prediction.stats);
        if !sound {
            reads = intervals.read_edges(&program);
        }
        intervals.sort(options.reductions, &mut prediction.stats);
    }
    let must = Clocks::must(&program);
    let observed = Clocks::observed(&program, &built.edges, Vec::new());
    let with_reads = Clocks::observed(&program, &built.edges, reads.clone());
    let budget = Budget::with_time(options.budget_states, options.budget_time);
    let mut reach =
        Reach::new(&program, &must, &observed, &with_reads, (&built.edges, reads), options.closure, budget);
    if program.oddities > 0 {
        prediction.unexplored.push(Unexplored::Oddities { count: program.oddities });
    }
    if program.lost_accesses > 0 {
        prediction.unexplored.push(Unexplored::Lost { accesses: program.lost_accesses });
    }
    // What gets stuck first, with half of the budget at most: its search would go on for as long as it may, and the questions
    // about races are many and small.
    let mut stuck_candidates = Vec::new();
    if options.checks.stuck {
        let half = if options.checks.races { options.budget_states / 2 } else { 0 };
        let time = options.budget_time.map(|time| if options.checks.races { time / 2 } else { time });
        let whole =
            std::mem::replace(&mut reach.budget, Budget::with_time(options.budget_states - half, time));
        let stuck = stuck::Stuck::new(trace, &program, &must, options, &mut reach);
        let Prediction { verdict, unexplored, .. } = &mut prediction;
        stuck_candidates = stuck.find(verdict, unexplored);
        let used = reach.budget.used;
        reach.budget = whole;
        reach.budget.settle(Budget { used, ..Budget::new(0) });
    }
    if options.checks.races {
        let races = races::Races::new(&program, &must, options, &mut reach);
        let Prediction { stats, verdict, unexplored, .. } = &mut prediction;
        prediction.candidates = races.find(&intervals, stats, verdict, unexplored);
    }
    prediction.candidates.extend(stuck_candidates);
    prediction.stats.answers = reach.answers;
    prediction.stats.states = reach.budget.used;
    drop(reach);
    prediction.intervals = intervals;
    prediction.program = program;
    prediction
}
