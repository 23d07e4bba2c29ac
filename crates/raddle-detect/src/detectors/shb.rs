//! `shb`: schedulable happens-before races.
//!
//! **Definition** (Mathur, Kini, Viswanathan, *What happens-after the first race?*, OOPSLA 2018). Happens-before plus:
//! a write comes before the reads that saw it. Two conflicting accesses race if the first is not before the thread
//! predecessor of the second in this order.
//!
//! **Sound**: every race reported can happen, also those after the first, because everything that led to the two
//! accesses can be executed as observed. All of them are happens-before races ([`super::djit`]) and sync-preserving
//! races ([`super::syncp`]), so [`crate::witness::complete`] has a witness for each. Grade *predicted*: the schedule is what
//! the report promises. **Complete** for its own order: an
//! access is reported exactly if it races with an earlier one.
//!
//! **Deviations**: none in the algorithm; bytes of one access are looked at before any of them is learnt from.
//!
//! **Cost**: threads an access.

use crate::clock::Clock;
use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step};
use raddle_findings::{Basis, Fidelity};

pub const NAME: &str = "shb";

/// The witness is what was observed, up to the two accesses.
fn basis() -> Basis {
    Basis::model(true, Fidelity::KeepsReads)
}

#[derive(Clone, Debug, Default)]
struct Variable {
    reads: Vec<(u32, Site)>,
    writes: Vec<(u32, Site)>,
    /// What the last writer knew.
    last_write: Clock,
}

#[derive(Debug)]
pub struct Shb {
    order: HappensBefore,
    variables: PerVar<Variable>,
    races: Races,
}

impl Default for Shb {
    fn default() -> Shb {
        Shb { order: HappensBefore::new(), variables: PerVar::default(), races: Races::new(NAME, basis()) }
    }
}

impl Shb {
    pub fn keep_all() -> Shb {
        Shb { races: Races::new(NAME, basis()).keep_all(), ..Shb::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }
}

impl Detector for Shb {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let Some(write) = step.plain_access() else { return self.order.step(step) };
        let slot = self.order.slot(step.thread());
        for &var in step.vars {
            let (clock, now) = (self.order.clock(slot), self.order.now(slot));
            let variable = self.variables.get_mut(var);
            let unknown = |accesses: &Vec<(u32, Site)>| {
                let mut entries = accesses.iter().enumerate();
                entries
                    .find(|(other, (time, _))| *time > clock.as_slice().get(*other).copied().unwrap_or(0))
                    .map(|(_, (_, site))| *site)
            };
            if let Some(first) = unknown(&variable.writes) {
                self.races.race(var, first, step);
            } else if write && let Some(first) = unknown(&variable.reads) {
                self.races.race(var, first, step);
            }
            let mine = if write { &mut variable.writes } else { &mut variable.reads };
            if mine.len() <= slot.index() {
                mine.resize(slot.index() + 1, (0, Site::default()));
            }
            mine[slot.index()] = (now, Site::of(step));
        }
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            if write {
                variable.last_write.copy_from(self.order.clock(slot));
            } else {
                self.order.join(slot, &variable.last_write);
            }
        }
        if write {
            // What follows must be distinguishable from the write that others can learn from.
            self.order.tick(slot);
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
