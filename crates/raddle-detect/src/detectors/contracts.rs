//! `contracts`: sequences of calls that must be atomic.
//!
//! **Definition** (Sousa, Dias, Ferreira, Lourenço, *Preventing atomicity violations with contracts*, 2015; Dias et
//! al., *Verifying concurrent programs using contracts*, ICST 2017; the survey's §7). A contract ([`crate::contract`]) names sequences
//! of calls of a module. A *target* must be atomic: in the basic form with respect to every target of the file, in the
//! extended form with respect to the named *spoilers*, on the same values of parameters.
//!
//! **Validation by happens-before** (the extended paper): a target `t1 .. tn` of one thread and a spoiler `s1 .. sm` of
//! another violate the contract unless the beginning of `s1` happens before the beginning of `t1`, or the end of `tn` before
//! the end of `sm`: otherwise some schedule with the same synchronisation runs the whole spoiler inside the target. Calls are looked
//! at from entry to return ([`crate::calls`]), so locks inside a call order nothing. **Precise** for happens-before; like every
//! happens-before argument it holds for the first violation and is indicative after it. Grade *suspected*, because no
//! witness is built.
//!
//! A target of one call is atomic; in the basic form it is there to spoil others. What happens-before hides, because this run took locks
//! in an order that another need not take, [`super::contracts_lockset`] finds.
//!
//! **Deviations**: for each thread and sequence the last [`WINDOW`](crate::call_sequences::WINDOW) instances are compared.
//!
//! **Cost**: instances in the window, a completed instance.

use crate::call_sequences::{CallSequences, Encounter};
use crate::calls::CallPlaces;
use crate::contract::Contract;
use crate::detector::{Detector, End};
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::Step;
use raddle_findings::{Basis, Detail, Kind, Role, What};
use raddle_trace::{Event, ObjectId, Tables};
use std::sync::Arc;

pub const NAME: &str = "contracts";

/// Violations of contracts that one of the checks found.
#[derive(Clone, Debug, Default)]
pub(super) struct Violations {
    pub(super) lines: Vec<u32>,
    pub(super) reports: Reports,
    /// Last events of target and spoiler of each.
    pub(super) all: Vec<(u64, u64)>,
}

impl Violations {
    pub(super) fn new(contracts: &[Contract]) -> Violations {
        Violations {
            lines: contracts.iter().map(|contract| contract.line).collect(),
            ..Violations::default()
        }
    }

    pub(super) fn add(&mut self, by: &'static str, encounter: &Encounter<'_>) {
        let Encounter { target, spoiler, .. } = encounter;
        self.all.push((target.ends().position, spoiler.ends().position));
        let sites = [target.begins(), target.ends(), spoiler.begins(), spoiler.ends()];
        let line = self.lines[encounter.contract];
        self.reports.add(place_key(&sites, u64::from(line)), || {
            let roles =
                [Role::BeginsSequence, Role::EndsSequence, Role::InterruptsSequence, Role::EndsInterruption];
            let objects = target.values().filter_map(|value| value.parse().ok());
            let objects = objects.map(|object| Subject::Object(ObjectId(object), What::Other));
            let report = Report::new(by, Kind::ContractViolation, Basis::rule())
                .detail(Detail::Contract { line })
                .objects(objects);
            sites.iter().zip(roles).fold(report, |report, (site, role)| report.part(site.plays(role, None)))
        });
    }
}

#[derive(Clone, Debug, Default)]
pub struct Contracts {
    sequences: CallSequences,
    violations: Violations,
}

impl Contracts {
    pub fn new(contracts: &[Contract], places: Arc<CallPlaces>) -> Contracts {
        Contracts { sequences: CallSequences::new(contracts, places), violations: Violations::new(contracts) }
    }

    /// Last events of target and spoiler of each violation.
    pub fn violations(&self) -> &[(u64, u64)] {
        &self.violations.all
    }
}

impl Detector for Contracts {
    fn learn(&mut self, tables: &Tables, events: &[Event]) {
        self.sequences.learn(tables, events);
    }

    fn step(&mut self, step: &Step<'_>) {
        let violations = &mut self.violations;
        self.sequences.step(step, &mut |encounter| {
            if !encounter.ordered {
                violations.add(NAME, encounter);
            }
        });
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let violations = &mut self.violations;
        self.sequences.finish(&mut |encounter| {
            if !encounter.ordered {
                violations.add(NAME, encounter);
            }
        });
        self.violations.reports.take()
    }
}
