//! `contracts-lockset`: contracts, checked by locks instead of by the order that a run happened to have.
//!
//! **Definition.** As [`super::contracts`], with another answer to whether a spoiler can run inside a target: it can unless the target
//! holds a lock from its beginning to its end that the spoiler holds or takes, not both for reading (the lockset discipline of
//! Eraser, for sequences of calls instead of accesses), or synchronisation other than by locks (forks and joins,
//! conditions, semaphores, ...) keeps them apart as in [`super::contracts`].
//!
//! **Promise**: a hint. It does not miss what locks that have nothing to do with the target ordered in this run (happens-before does), and it
//! calls a sequence interruptible that is kept whole by something else than one lock held all the time (hand-over-hand
//! locking, an atomic flag whose store another run may not wait for).
//!
//! **Cost**: as [`super::contracts`], and the locks held at both ends.

use super::contracts::Violations;
use crate::call_sequences::{CallSequences, Encounter};
use crate::calls::CallPlaces;
use crate::contract::Contract;
use crate::detector::{Detector, End};
use crate::report::Report;
use crate::step::Step;
use raddle_trace::{Event, Tables};
use std::sync::Arc;

pub const NAME: &str = "contracts-lockset";

#[derive(Clone, Debug, Default)]
pub struct ContractsLockset {
    sequences: CallSequences,
    violations: Violations,
}

fn violated(encounter: &Encounter<'_>) -> bool {
    !encounter.guarded && !encounter.ordered_without_locks
}

impl ContractsLockset {
    pub fn new(contracts: &[Contract], places: Arc<CallPlaces>) -> ContractsLockset {
        let sequences = CallSequences::new(contracts, places);
        ContractsLockset { sequences, violations: Violations::new(contracts) }
    }

    /// Last events of target and spoiler of each violation.
    pub fn violations(&self) -> &[(u64, u64)] {
        &self.violations.all
    }
}

impl Detector for ContractsLockset {
    fn learn(&mut self, tables: &Tables, events: &[Event]) {
        self.sequences.learn(tables, events);
    }

    fn step(&mut self, step: &Step<'_>) {
        let violations = &mut self.violations;
        self.sequences.step(step, &mut |encounter| {
            if violated(encounter) {
                violations.add(NAME, encounter);
            }
        });
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let violations = &mut self.violations;
        self.sequences.finish(&mut |encounter| {
            if violated(encounter) {
                violations.add(NAME, encounter);
            }
        });
        self.violations.reports.take()
    }
}
