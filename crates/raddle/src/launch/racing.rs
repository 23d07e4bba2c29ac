//! Races of steered runs: the online detector looks at every run, and what it reports is taken out of the region afterwards.
//!
//! A race is what makes synchronisation alone too coarse a choice of scheduling points: without one, a plain access cannot tell
//! when it happens between two of them (Musuvathi and Qadeer, PLDI 2007), with one it can. So the places of a race become
//! visible in the runs that follow, and in no others.

use raddle_trace::journal::place;
use raddle_trace::region::Region;
use raddle_trace::report::{RawReport, ReportKind, decode, decode_defaults};
use raddle_trace::tables::Module;
use raddle_wire::report::REPORTS_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A race that a run has shown.
#[derive(Clone, Debug)]
pub struct Race {
    pub report: RawReport,
    pub modules: Arc<Vec<Module>>,
    /// The places of its accesses, as `module+0x1234`, sorted; those that are known.
    pub places: Vec<String>,
}

/// Takes the races out of the region, so that there is room for those of the next run. Nobody may be running.
pub fn take(region: &Region) -> Vec<Race> {
    let count = region.reports().min(REPORTS_MAX);
    if count == 0 {
        return Vec::new();
    }
    let modules = Arc::new(super::steering::modules(region));
    let races = (0..count).filter_map(|at| region.report(at)).filter_map(|words| {
        if decode_defaults(&words).is_some() {
            return None;
        }
        let report = decode(&words);
        if !matches!(report.kind, ReportKind::DataRace | ReportKind::UseAfterFree) {
            return None;
        }
        let pcs = report.parties.iter().filter(|party| !party.lost).filter_map(|party| party.frames.first());
        let places: BTreeSet<String> = pcs.filter_map(|&pc| place(&modules, pc)).collect();
        Some(Race { modules: Arc::clone(&modules), places: places.into_iter().collect(), report })
    });
    let races = races.collect();
    region.header().reports.store(0, Ordering::Release);
    races
}

/// All races of a campaign, by their places.
#[derive(Default)]
pub struct Races {
    seen: BTreeMap<Vec<String>, Race>,
}

impl Races {
    /// True if nobody had seen it.
    pub fn add(&mut self, race: Race) -> bool {
        let new = !self.seen.contains_key(&race.places);
        if new {
            self.seen.insert(race.places.clone(), race);
        }
        new
    }

    pub fn iter(&self) -> impl Iterator<Item = &Race> {
        self.seen.values()
    }

    pub fn count(&self) -> usize {
        self.seen.len()
    }

    /// Where an access is made that takes part in a race.
    pub fn sites(&self) -> Vec<String> {
        let sites: BTreeSet<&String> = self.seen.keys().flatten().collect();
        sites.into_iter().cloned().collect()
    }
}
