//! Detectors over a trace, one file a published algorithm. This crate never runs programs.
//!
//! A trace comes in as events; [`step::Feed`] turns them into steps once for all detectors; each
//! [`detector::Detector`] looks at the steps and hands out [`report::Report`]s at the end; [`builder`] makes findings of
//! them. [`registry`] is the table of all detectors.

// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod allocations;
pub mod builder;
pub mod call_sequences;
pub mod calls;
pub mod clock;
pub mod contract;
pub mod contract_inference;
pub mod coverage;
pub mod detector;
pub mod detectors;
pub mod granules;
pub mod happens_before;
pub mod lock_cycles;
pub mod lockgraph;
pub mod locksets;
pub mod race;
pub mod region;
pub mod registry;
pub mod report;
pub mod run;
pub mod skeleton;
pub mod step;
pub mod training;
pub mod tree_clock;
pub mod waiting;
pub mod witness;

pub use builder::finding;
pub use detector::{Detector, End};
pub use report::{Holding, Part, PartAction, Report, Subject};
pub use skeleton::Ideal;
pub use step::{Feed, Step};

use raddle_trace::MemoryTrace;

/// Runs one detector over a trace in memory.
pub fn run_on(trace: &MemoryTrace, detector: &mut dyn Detector) -> Vec<Report> {
    let mut feed = Feed::new();
    detector.learn(&trace.tables, &trace.events);
    for event in &trace.events {
        detector.step(&feed.step(event));
    }
    let events = feed.position();
    detector.finish(&End { tables: &trace.tables, names: &feed.into_names(), events })
}
