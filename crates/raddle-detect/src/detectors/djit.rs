//! `djit`: races by vector clocks.
//!
//! **Definition** (Pozniansky, Schuster, *Efficient on-the-fly data race detection in multithreaded C++ programs*,
//! PPoPP 2003: Djit+; the survey's happens-before-based algorithms). For each variable the time of each thread's last
//! read and last write. A read races if some thread's last write is not known to the reader; a write races if some
//! thread's last read or write is not known to the writer.
//!
//! **Complete and precise** for happens-before: an access is reported exactly if it is unordered with some earlier
//! conflicting one, because a thread that knows another's last access knows all its earlier ones. Grade *unordered*: its
//! order contains that of C and C++11 (see [`crate::happens_before`]), so what it reports is unordered by those rules too,
//! and only races that hide behind relaxed atomics are left to [`super::hb11`]. That both accesses can be next at one moment
//! is certain for the *first* race of a trace only; later ones may depend on it. [`super::shb`] keeps those of which it is
//! certain, [`super::syncp`] gives witnesses.
//!
//! **Deviations**: Djit+ reports the first access of a thread in a time frame only; here every access is looked at.
//!
//! **Cost**: threads a variable in memory, threads an access in time.

use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step};
use raddle_findings::Basis;

pub const NAME: &str = "djit";

/// Times and places of each slot's last access; time 0 is never.
type LastAccesses = Vec<(u32, Site)>;

#[derive(Clone, Debug, Default)]
struct Variable {
    reads: LastAccesses,
    writes: LastAccesses,
}

#[derive(Debug)]
pub struct Djit {
    order: HappensBefore,
    variables: PerVar<Variable>,
    races: Races,
}

impl Default for Djit {
    fn default() -> Djit {
        Djit {
            order: HappensBefore::new(),
            variables: PerVar::default(),
            races: Races::new(NAME, Basis::unordered()),
        }
    }
}

impl Djit {
    pub fn keep_all() -> Djit {
        Djit { races: Races::new(NAME, Basis::unordered()).keep_all(), ..Djit::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }
}

impl Detector for Djit {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let Some(write) = step.plain_access() else { return self.order.step(step) };
        let slot = self.order.slot(step.thread());
        let (clock, now) = (self.order.clock(slot), self.order.now(slot));
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            let unknown = |accesses: &LastAccesses| {
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
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
