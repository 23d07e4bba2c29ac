//! Confirming predictions: each candidate of `raddle-predict` is replayed in a process of its own, and the run has to show
//! the error.

pub mod confirm;
pub mod crashes;
pub mod detectors;
pub mod learning;
pub mod properties;
pub mod provoke;
pub mod unordered;
pub mod visibility;

use crate::launch::Launch;
use raddle_findings::{Finding, Store};
use raddle_trace::schedule::{Head, Schedule};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What every part of a hunt needs to know.
pub struct Hunt<'a> {
    pub launch: &'a Launch,
    pub store: &'a Store,
    /// What each schedule of this run begins with.
    pub head: Head,
    /// How long one replay may take.
    pub timeout: Duration,
    /// Replays that may confirm nothing before what is left is put back.
    pub fruitless: u32,
    /// Witnesses to try for one candidate.
    pub alternatives: usize,
    pub workers: usize,
    /// Ids of errors that were confirmed already, in another run or process: they are not tried again.
    pub confirmed: HashSet<String>,
    /// When to stop trying: what has not been replayed by then stays predicted.
    pub until: Instant,
}

/// A finding and the schedule that belongs to it.
pub struct Witnessed {
    pub finding: Finding,
    pub schedule: Option<Schedule>,
    /// The schedule of the recorded run in which the error did not happen, as text: for pictures.
    pub recorded: Option<Arc<str>>,
}

impl Witnessed {
    pub fn new(finding: Finding, schedule: Option<Schedule>) -> Witnessed {
        Witnessed { finding, schedule, recorded: None }
    }
}
