//! `correlated`: variables that are accessed together but not protected together.
//!
//! **Definition** (Lu et al., *MUVI: automatically inferring multi-variable access correlations and detecting related
//! semantic and concurrency bugs*, SOSP 2007; the survey's §5.2). Two variables are correlated if they occur together in
//! the units of work often enough (support) and in most units in which one of them occurs (confidence). The modified
//! lockset rule: all accesses to correlated variables must have a lock in common, not only those to each of them.
//!
//! **Neither sound nor complete**. Grade *suspected*. Variables that have no common lock by themselves are left to
//! [`super::eraser`]: here both are well protected, by different locks.
//!
//! **Deviations**: MUVI mines functions of the source; here a unit is a region of the run: what the user marked or named, and
//! outside of that what a thread does until it takes a lock again that it took in the same unit (a pair that is read in
//! two steps, each under its own lock, is one unit; the next time is the next one). Pairs instead of larger sets: a set is correlated
//! only if its pairs are.
//!
//! **Cost**: pairs of variables in a unit, at most [`VARIABLES_MAX`] of them.

use crate::detector::{Detector, End};
use crate::locksets::{LockSetIx, LockSets};
use crate::race::Site;
use crate::region::{RegionTracker, Regions};
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{LockIx, PerVar, Step, Sync, VarIx};
use raddle_findings::{Basis, Detail, Kind, Role};
use raddle_trace::ThreadIx;
use rustc_hash::FxHashMap;

pub const NAME: &str = "correlated";

/// Variables of a unit that are paired.
pub const VARIABLES_MAX: usize = 32;

#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// Units in which a pair occurs.
    pub support_min: u32,
    /// Share of the units with one of the two that have both, in percent.
    pub confidence_min_percent: u32,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { support_min: 3, confidence_min_percent: 80 }
    }
}

/// What is known about one variable.
#[derive(Clone, Debug, Default)]
struct Variable {
    units: u32,
    locks: Option<LockSetIx>,
    first_thread: Option<ThreadIx>,
    shared: bool,
    written: bool,
    site: Site,
}

#[derive(Clone, Debug, Default)]
pub struct Correlated {
    thresholds: Thresholds,
    locksets: LockSets,
    variables: PerVar<Variable>,
    pairs: FxHashMap<(VarIx, VarIx), u32>,
    /// By thread: variables of its current unit.
    units: Vec<Vec<VarIx>>,
    /// By thread: locks that it took from nothing in its current unit.
    taken: Vec<Vec<LockIx>>,
    tracker: RegionTracker,
    found: Vec<(VarIx, VarIx)>,
}

impl Correlated {
    pub fn new(thresholds: Thresholds, regions: Regions) -> Correlated {
        Correlated { thresholds, tracker: RegionTracker::new(regions), ..Correlated::default() }
    }

    /// Correlated pairs without a common lock.
    pub fn found(&self) -> &[(VarIx, VarIx)] {
        &self.found
    }

    fn close_unit(&mut self, thread: usize) {
        let mut unit = std::mem::take(&mut self.units[thread]);
        unit.sort_unstable();
        unit.dedup();
        unit.truncate(VARIABLES_MAX);
        for (place, &var) in unit.iter().enumerate() {
            self.variables.get_mut(var).units += 1;
            for &other in &unit[..place] {
                *self.pairs.entry((other, var)).or_default() += 1;
            }
        }
        unit.clear();
        self.units[thread] = unit;
        self.taken[thread].clear();
    }
}

impl Detector for Correlated {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let thread = step.thread();
        if self.units.len() <= thread.index() {
            self.units.resize(thread.index() + 1, Vec::new());
            self.taken.resize(thread.index() + 1, Vec::new());
        }
        let place = self.tracker.step(step);
        if place.begins || place.ended_before {
            self.close_unit(thread.index());
        }
        let Some(write) = step.plain_access() else {
            if let (Sync::Acquire { lock, .. }, true, false) = (step.sync, step.held.is_empty(), place.inside)
            {
                if self.taken[thread.index()].contains(&lock) {
                    self.close_unit(thread.index());
                }
                self.taken[thread.index()].push(lock);
            }
            if place.ends {
                self.close_unit(thread.index());
            }
            return;
        };
        let held = self.locksets.of_held(step.held);
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            variable.locks = Some(match variable.locks {
                None => held,
                Some(locks) => self.locksets.meet(locks, held),
            });
            variable.shared |= *variable.first_thread.get_or_insert(thread) != thread;
            variable.written |= write;
            variable.site = Site::of(step);
            let unit = &mut self.units[thread.index()];
            if unit.last() != Some(&var) && unit.len() < 16 * VARIABLES_MAX {
                unit.push(var);
            }
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        for thread in 0..self.units.len() {
            self.close_unit(thread);
        }
        let mut reports = Reports::default();
        let mut pairs: Vec<_> = self.pairs.iter().map(|(&pair, &together)| (pair, together)).collect();
        pairs.sort_unstable();
        for ((a, b), together) in pairs {
            let (va, vb) = (self.variables.get_mut(a).clone(), self.variables.get_mut(b).clone());
            let confident = |units: u32| {
                u64::from(together) * 100
                    >= u64::from(units) * u64::from(self.thresholds.confidence_min_percent)
            };
            let correlated =
                together >= self.thresholds.support_min && confident(va.units) && confident(vb.units);
            let (Some(locks_a), Some(locks_b)) = (va.locks, vb.locks) else { continue };
            let protected = locks_a != LockSetIx::EMPTY && locks_b != LockSetIx::EMPTY;
            let matters = va.shared && vb.shared && (va.written || vb.written);
            if correlated && protected && matters && self.locksets.disjoint(locks_a, locks_b) {
                self.found.push((a, b));
                reports.add(place_key(&[va.site, vb.site], u64::from(a.0)), || {
                    Report::new(NAME, Kind::HighLevelRace, Basis::rule())
                        .detail(Detail::Together { times: together.into() })
                        .part(va.site.plays(Role::AccessesOne, Some(Subject::Variable(a))))
                        .part(vb.site.plays(Role::AccessesOther, Some(Subject::Variable(b))))
                });
            }
        }
        reports.take()
    }
}
