//! Detectors over a trace, one file a published algorithm. This crate never runs programs.

pub mod clock;
pub mod detector;
pub mod detectors;
pub mod happens_before;
pub mod locksets;
pub mod race;
pub mod report;
pub mod skeleton;
pub mod step;

pub use detector::{Detector, End};
pub use report::{Part, Report};
pub use skeleton::Ideal;
pub use step::{Feed, Step};

use raddle_trace::MemoryTrace;

/// Runs one detector over a trace in memory.
pub fn run_on(trace: &MemoryTrace, detector: &mut dyn Detector) -> Vec<Report> {
    let mut feed = Feed::new();
    for event in &trace.events {
        detector.step(&feed.step(event));
    }
    let names = feed.names();
    detector.finish(&End { tables: &trace.tables, names: &names, events: feed.position() })
}
