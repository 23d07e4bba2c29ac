//! What replays that confirmed nothing teach: which reads decide what threads do, and when to stop.
//!
//! Candidates that need a hand-over to go another way fail by the hundred, all for one reason: a flag is read under a lock, the
//! schedule makes that read see another write, and the thread takes the other branch. The first replay that fails says which
//! read that was: the last one before the place of the divergence that sees another write than in the recorded run. Schedules that change
//! what is read there are put back; prediction is asked once more, for schedules that leave those reads as they were.

use raddle_findings::{Attempt, basis};
use raddle_predict::intervals::IntervalIx;
use raddle_predict::{ChangedRead, Party, Prediction, Witness};
use raddle_trace::{LocationIx, MemoryTrace, ThreadIx};
use std::collections::BTreeSet;

/// A schedule as prediction knows it.
pub type Way<'a> = (&'a [Party], &'a Witness);

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Learning {
    /// Places of reads that decide.
    pub decides: BTreeSet<LocationIx>,
    /// Memory that is read there, in the prediction that is being confirmed.
    memory: Vec<IntervalIx>,
    /// Replays that confirmed nothing, and candidates that were confirmed.
    pub fruitless: u32,
    pub confirmed: u32,
    /// Something was put back because of a read.
    pub put_back: bool,
}

impl Learning {
    /// Another prediction of the same trace is confirmed now.
    pub fn turn_to(&mut self, trace: &MemoryTrace, prediction: &Prediction) {
        self.memory = match self.decides.is_empty() {
            true => Vec::new(),
            false => prediction.read_at(trace, &self.decides),
        };
    }

    /// Why the schedule is not worth a replay, if it is not.
    pub fn objection(
        &mut self,
        trace: &MemoryTrace,
        prediction: &Prediction,
        way: Way<'_>,
        most: u32,
    ) -> Option<Attempt> {
        // Each candidate that was confirmed shows that it is worth going on.
        if self.fruitless >= most.saturating_add(self.confirmed) {
            return Some(Attempt::PutBack { fruitless: self.fruitless });
        }
        let place = prediction.changes_read_at(trace, way, &self.decides, &self.memory)?;
        self.put_back = true;
        Some(Attempt::ReadDecides { place: prediction.names.code(&trace.tables, place) })
    }

    /// A replay has confirmed nothing.
    pub fn failed(&mut self, trace: &MemoryTrace, prediction: &Prediction, way: Way<'_>, attempt: &Attempt) {
        self.fruitless += 1;
        let stands = standing(trace, prediction, way.0, attempt);
        if stands.is_empty() {
            return;
        }
        let changed = prediction.changed_reads(way.0, way.1);
        let last = |&(thread, pos): &(ThreadIx, u32)| -> Option<ChangedRead> {
            changed
                .iter()
                .filter(|read| read.thread == thread && read.pos <= pos)
                .max_by_key(|read| read.event)
                .copied()
        };
        let before = self.decides.len();
        let places = stands.iter().filter_map(last).map(|read| trace.events[read.event.index()].location);
        self.decides.extend(places);
        if self.decides.len() > before {
            self.memory = prediction.read_at(trace, &self.decides);
        }
    }
}

/// The threads that did not do what the schedule wanted, and how many steps they had taken.
fn standing(
    trace: &MemoryTrace,
    prediction: &Prediction,
    parties: &[Party],
    attempt: &Attempt,
) -> Vec<(ThreadIx, u32)> {
    let thread = |name: &str| {
        let place = trace.tables.threads.iter().position(|thread| thread.name == name)?;
        Some(ThreadIx(place as u32))
    };
    let at = |name: &str, step: Option<&basis::Step>| {
        let thread = thread(name)?;
        let end = prediction.program.steps(thread).len() as u32;
        Some((thread, step.map_or(end, |step| prediction.position_of(thread, step.ordinal))))
    };
    match attempt {
        Attempt::Diverged { thread, expected, found, .. } => {
            at(thread, expected.as_ref().or(found.as_ref())).into_iter().collect()
        }
        Attempt::Standstill { threads, .. } => threads
            .iter()
            .filter(|state| state.at.is_some())
            .filter_map(|state| at(&state.thread, state.at.as_ref()))
            .collect(),
        // A pointer was read that leads elsewhere.
        Attempt::OtherMemory => parties.iter().map(|party| (party.thread, u32::MAX)).collect(),
        Attempt::Ended { .. }
        | Attempt::TimedOut { .. }
        | Attempt::OtherDeadlock { .. }
        | Attempt::Ordered
        | Attempt::Kept
        | Attempt::UncertainEvents { .. }
        | Attempt::NotAgain { .. }
        | Attempt::TooManyThreads
        | Attempt::OutOfTime
        | Attempt::ReadDecides { .. }
        | Attempt::PutBack { .. }
        | Attempt::Interrupted
        | Attempt::TooLong { .. }
        | Attempt::NotStored { .. } => Vec::new(),
    }
}
