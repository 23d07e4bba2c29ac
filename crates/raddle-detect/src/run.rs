//! One pass over a trace for any number of detectors.

use crate::detector::{Detector, End};
use crate::report::Report;
use crate::step::{Feed, Names};
use raddle_trace::{EventSource, TraceError};

/// What a pass gave.
pub struct Outcome {
    /// Reports of all detectors, in the order of the detectors.
    pub reports: Vec<Report>,
    /// What the numbers in the reports stand for; [`crate::finding`] wants it.
    pub names: Names,
    pub events: u64,
    /// Accesses that were too large to be followed as a whole.
    pub truncated: u64,
}

/// Events whose variables are looked up together: enough to keep the memory busy, few enough that what was fetched is
/// still in the nearest cache when its turn comes.
const AHEAD_EVENTS: usize = 64;

/// Reads a trace to its end. `progress` is called after each batch with the number of events so far and the source's
/// own measure; it returns false to stop early.
pub fn run(
    source: &mut dyn EventSource,
    detectors: &mut [Box<dyn Detector>],
    progress: &mut dyn FnMut(u64, Option<(u64, u64)>) -> bool,
) -> Result<Outcome, TraceError> {
    let mut feed = Feed::new();
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for detector in detectors.iter_mut() {
            detector.learn(source.tables(), &batch);
        }
        for part in batch.chunks(AHEAD_EVENTS) {
            let soon = feed.look_ahead(part);
            for detector in detectors.iter_mut() {
                detector.soon(soon);
            }
            for event in part {
                let step = feed.step(event);
                for detector in detectors.iter_mut() {
                    detector.step(&step);
                }
            }
        }
        if !progress(feed.position(), source.progress()) {
            break;
        }
    }
    let (events, truncated) = (feed.position(), feed.truncated());
    let mut names = feed.into_names();
    let end = End { tables: source.tables(), names: &names, events };
    let reports: Vec<Report> = detectors.iter_mut().flat_map(|detector| detector.finish(&end)).collect();
    names.keep_allocations(&reports);
    Ok(Outcome { reports, names, events, truncated })
}
