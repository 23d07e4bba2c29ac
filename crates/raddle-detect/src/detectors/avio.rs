//! `avio`: access-interleaving invariants.
//!
//! **Definition** (Lu, Tucek, Qin, Zhou, *AVIO: detecting atomicity violations via access interleaving invariants*,
//! ASPLOS 2006). Two consecutive accesses of a thread to a variable are taken to be meant as atomic. An access by
//! another thread between them is *unserialisable* in four of eight cases: read-WRITE-read, write-WRITE-read,
//! write-READ-write, read-WRITE-write. A pair of code locations whose accesses are never interleaved unserialisably in
//! good runs is an invariant; a run that interleaves it so is reported.
//!
//! **Neither sound nor complete**: training decides. Grade *suspected*. Without training every unserialisable
//! interleaving is reported.
//!
//! **Deviations**: pairs are remembered by the places of both accesses (the paper keeps the second). Places of
//! recorded traces are compared by module and offset.
//!
//! **Cost**: threads that access the variable, an access.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{PerVar, Step, VarIx};
use crate::training::{PlaceName, place_name};
use raddle_findings::{Basis, Detail, Kind};
use raddle_trace::{LocationIx, Tables, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet};

pub const NAME: &str = "avio";

/// What was learnt from good runs: pairs of places that occurred, and those that were interleaved unserialisably.
#[derive(Clone, Debug, Default)]
pub struct AvioFacts {
    pub seen: FxHashSet<(PlaceName, PlaceName)>,
    pub broken: FxHashSet<(PlaceName, PlaceName)>,
}

impl AvioFacts {
    pub fn add(&mut self, other: AvioFacts) {
        self.seen.extend(other.seen);
        self.broken.extend(other.broken);
    }

    fn is_invariant(&self, pair: &(PlaceName, PlaceName)) -> bool {
        self.seen.contains(pair) && !self.broken.contains(pair)
    }
}

#[derive(Clone, Copy, Debug)]
struct Last {
    thread: ThreadIx,
    write: bool,
    site: Site,
    /// Accesses by others since.
    read_between: Option<Site>,
    written_between: Option<Site>,
}

/// An unserialisable interleaving: the pair of one thread and the access between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaving {
    pub var: VarIx,
    pub first: Site,
    pub between: Site,
    pub second: Site,
}

#[derive(Clone, Debug, Default)]
pub struct Avio {
    training: Option<AvioFacts>,
    last: PerVar<Vec<Last>>,
    seen: FxHashSet<(LocationIx, LocationIx)>,
    broken: FxHashMap<(LocationIx, LocationIx), Vec<Interleaving>>,
}

/// Examples kept for a pair of places.
const EXAMPLES_MAX: usize = 64;

impl Avio {
    pub fn new(training: Option<AvioFacts>) -> Avio {
        Avio { training, ..Avio::default() }
    }

    /// What this run teaches.
    pub fn facts(&self, tables: &Tables) -> AvioFacts {
        let name = |&(first, second): &(LocationIx, LocationIx)| {
            (place_name(tables, first), place_name(tables, second))
        };
        AvioFacts {
            seen: self.seen.iter().map(name).collect(),
            broken: self.broken.keys().map(name).collect(),
        }
    }

    /// The interleavings of this run, unordered, at most some for a pair of places.
    pub fn interleavings(&self) -> impl Iterator<Item = &Interleaving> {
        self.broken.values().flatten()
    }
}

impl Detector for Avio {
    fn step(&mut self, step: &Step<'_>) {
        self.last.follow(step);
        let Some(write) = step.plain_access() else { return };
        let (thread, site) = (step.thread(), Site::of(step));
        for &var in step.vars {
            let lasts = self.last.get_mut(var);
            let mut mine = None;
            for last in lasts.iter_mut() {
                if last.thread == thread {
                    mine = Some(last);
                } else if write {
                    last.written_between.get_or_insert(site);
                } else {
                    last.read_between.get_or_insert(site);
                }
            }
            let fresh = Last { thread, write, site, read_between: None, written_between: None };
            let Some(mine) = mine else {
                lasts.push(fresh);
                continue;
            };
            let last = std::mem::replace(mine, fresh);
            let pair = (last.site.location, site.location);
            self.seen.insert(pair);
            let between = if last.write && write { last.read_between } else { last.written_between };
            if let Some(between) = between {
                let examples = self.broken.entry(pair).or_default();
                if examples.len() < EXAMPLES_MAX {
                    examples.push(Interleaving { var, first: last.site, between, second: site });
                }
            }
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let mut reports = Reports::default();
        let mut pairs: Vec<_> = self.broken.iter().collect();
        pairs.sort_by_key(|(pair, examples)| (examples[0].second.position, **pair));
        for (&(first, second), examples) in pairs {
            let names = (place_name(end.tables, first), place_name(end.tables, second));
            if self.training.as_ref().is_some_and(|facts| !facts.is_invariant(&names)) {
                continue;
            }
            let example = examples[0];
            let sites = [example.first, example.between, example.second];
            reports.add(place_key(&sites, example.second.position), || {
                let report = Report::new(NAME, Kind::AtomicityViolation, Basis::rule())
                    .detail(Detail::Pattern { accesses: pattern(&sites) });
                let subject = Some(Subject::Variable(example.var));
                sites.iter().fold(report, |report, site| report.part(site.accesses(subject)))
            });
        }
        reports.take()
    }
}

/// The accesses in their order: `read write read`.
fn pattern(sites: &[Site]) -> String {
    let words: Vec<&str> = sites.iter().map(|site| site.touch.word()).collect();
    words.join(" ")
}
