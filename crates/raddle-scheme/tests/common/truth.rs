//! What the exhaustive exploration of a program says, to compare a report with.

use raddle_scheme::Program;
use raddle_scheme::analyze::harmless;
use raddle_scheme::concrete::explore::Exploration;
use raddle_scheme::finding::{Kind, Report};

/// Whether there are races (benign or not), deadlocks, livelocks, unretried swaps and errors.
pub type Kinds = [bool; 5];

/// The verdict of the exhaustive exploration. A swap that takes part in a race is not reported again as unretried.
pub fn truth(program: &Program, exploration: &Exploration) -> Kinds {
    let observed = &exploration.observed;
    let conflicts = observed.races.keys().map(|key| (key.sites, key.actions, (key.origin, key.cell)));
    let harmless = harmless(program, conflicts);
    let races: Vec<_> =
        observed.races.keys().filter(|key| !harmless.contains(&(key.origin, key.cell))).collect();
    let racy = |site| races.iter().any(|key| key.sites.0 == site || key.sites.1 == site);
    [
        !races.is_empty(),
        !observed.deadlocks.is_empty(),
        !observed.livelocks.is_empty(),
        observed.unretried.keys().any(|&site| !racy(site)),
        !observed.errors.is_empty(),
    ]
}

/// The same of a report.
pub fn told(report: &Report) -> Kinds {
    [Kind::Race, Kind::Deadlock, Kind::Livelock, Kind::UnretriedCas, Kind::Error]
        .map(|kind| report.findings.iter().any(|finding| finding.kind == kind))
}
