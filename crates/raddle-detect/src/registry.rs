//! The table of detectors: what each is called, finds, and promises, and how it is made.

use crate::calls::CallPlaces;
use crate::contract::Contract;
use crate::detector::Detector;
use crate::detectors::*;
use crate::region::Regions;
use raddle_findings::{Basis, Fidelity, Grade};
use std::sync::Arc;

/// What a detector promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Every report can happen, with a witness.
    SoundWithWitness,
    /// Every report can happen, or has happened.
    Sound,
    /// The first report of a trace can happen.
    FirstIsSound,
    /// Reports are hints.
    Imprecise,
}

impl Promise {
    pub fn text(self) -> &'static str {
        match self {
            Promise::SoundWithWitness => "sound, with witness",
            Promise::Sound => "sound",
            Promise::FirstIsSound => "first one sound",
            Promise::Imprecise => "hint",
        }
    }
}

/// How a detector knows what it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// By a rule that is imprecise.
    Rule,
    /// Happens-before, in this run.
    Unordered,
    /// A schedule that executes what was observed.
    Model,
    /// It has happened in this run.
    Observed,
    /// It has happened, or a rule says so: that depends on the report.
    ObservedOrRule,
}

impl Knows {
    /// The bases of its reports.
    pub fn bases(self) -> Vec<Basis> {
        match self {
            Knows::Rule => vec![Basis::rule()],
            Knows::Unordered => vec![Basis::unordered()],
            Knows::Model => vec![Basis::model(true, Fidelity::KeepsReads)],
            Knows::Observed => vec![Basis::observed()],
            Knows::ObservedOrRule => vec![Basis::observed(), Basis::rule()],
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    /// Class of errors.
    pub class: &'static str,
    pub knows: Knows,
    pub promise: Promise,
    /// In a few words, with the paper.
    pub about: &'static str,
}

impl Entry {
    /// The grades of its findings, the best first.
    pub fn grades(&self) -> Vec<Grade> {
        let mut grades: Vec<Grade> = self.knows.bases().iter().map(Basis::grade).collect();
        grades.sort_unstable_by(|a, b| b.cmp(a));
        grades
    }

    /// The same for a table: `observed/suspected`.
    pub fn grade_names(&self) -> String {
        self.grades().into_iter().map(Grade::name).collect::<Vec<_>>().join("/")
    }
}

const fn entry(
    name: &'static str,
    class: &'static str,
    knows: Knows,
    promise: Promise,
    about: &'static str,
) -> Entry {
    Entry { name, class, knows, promise, about }
}

use Knows::{Model, Observed, ObservedOrRule, Rule, Unordered};
use Promise::{FirstIsSound, Imprecise, Sound, SoundWithWitness};

pub const ENTRIES: &[Entry] = &[
    entry("eraser", "data race", Rule, Imprecise, "lockset discipline (Savage et al. 1997)"),
    entry("eraser-ownership", "data race", Rule, Imprecise, "lockset discipline with change of owner"),
    entry("djit", "data race", Unordered, FirstIsSound, "vector clocks (Pozniansky, Schuster 2003)"),
    entry("fasttrack", "data race", Unordered, FirstIsSound, "epochs (Flanagan, Freund 2009)"),
    entry(
        "trade",
        "data race",
        Unordered,
        FirstIsSound,
        "topological races (Christiaens, De Bosschere 2001)",
    ),
    entry("racetrack", "data race", Rule, Imprecise, "threadsets and locksets (Yu et al. 2005)"),
    entry("goldilocks", "data race", Unordered, FirstIsSound, "growing locksets (Elmas et al. 2007)"),
    entry("hb11", "data race", Unordered, FirstIsSound, "C/C++11 happens-before (Lidbury, Donaldson 2017)"),
    entry("shb", "data race", Model, SoundWithWitness, "schedulable happens-before (Mathur et al. 2018)"),
    entry("wcp", "data race", Rule, FirstIsSound, "weak causal precedence (Kini et al. 2017)"),
    entry("syncp", "data race", Model, SoundWithWitness, "sync-preserving races (Mathur et al. 2021)"),
    entry("views", "high-level race", Rule, Imprecise, "view consistency (Artho et al. 2003)"),
    entry("correlated", "high-level race", Rule, Imprecise, "variables used together (Lu et al. 2007)"),
    entry("avio", "atomicity", Rule, Imprecise, "access-interleaving invariants (Lu et al. 2006)"),
    entry("atomizer", "atomicity", Rule, Imprecise, "reduction R*N?L* (Flanagan, Freund 2004)"),
    entry("atomizer-protected", "atomicity", Rule, Imprecise, "the same with protected locks"),
    entry("units", "atomicity", Rule, Imprecise, "computational units, strict 2PL (Xu et al. 2005)"),
    entry("velodrome", "atomicity", Observed, Sound, "transactional happens-before (Flanagan et al. 2008)"),
    entry("aerodrome", "atomicity", Observed, Sound, "the same by vector clocks (Mathur, Viswanathan 2020)"),
    entry("atomicsets", "atomicity", Rule, Imprecise, "units of work on atomic sets (Hammer et al. 2008)"),
    entry("goodlock", "deadlock", Rule, Imprecise, "cycles in the lock graph (Havelund 2000; Agarwal 2005)"),
    entry(
        "segments",
        "deadlock",
        Rule,
        Imprecise,
        "lock cycles that forks and joins do not order (Bensalem, Havelund 2005)",
    ),
    entry("lockdep", "deadlock", Rule, Imprecise, "lock-dependency chains (Joshi et al. 2009)"),
    entry("spd", "deadlock", Model, SoundWithWitness, "sync-preserving deadlocks (Tunç et al. 2023)"),
    entry("waitfor", "deadlock", Observed, Sound, "deadlock at the end of the trace (wait-for graph)"),
    entry("order", "order violation", Rule, Imprecise, "pairs `a before b`, given or learnt"),
    entry(
        "missedsignal",
        "missed signal",
        ObservedOrRule,
        Imprecise,
        "signals sent before their waiter came",
    ),
    entry("blocked", "blocked thread", ObservedOrRule, Imprecise, "threads blocked when the trace ends"),
    entry(
        "nonprogress",
        "non-progress",
        Rule,
        Imprecise,
        "non-progress, livelock, starvation beyond a bound",
    ),
    entry("contracts", "contracts", Rule, Imprecise, "call sequences that must be atomic (Dias et al. 2017)"),
    entry("contracts-lockset", "contracts", Rule, Imprecise, "the same by the locks held around them"),
];

pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The table for a terminal.
pub fn table() -> String {
    let mut text = format!("{:<17} {:<15} {:<19} {:<19} about\n", "name", "class", "grade", "promise");
    for entry in ENTRIES {
        let Entry { name, class, about, .. } = entry;
        let grade = entry.grade_names();
        text.push_str(&format!("{name:<17} {class:<15} {grade:<19} {:<19} {about}\n", entry.promise.text()));
    }
    text
}

/// The table for documents.
pub fn markdown() -> String {
    let mut text =
        String::from("| name | class | grade | promise | about |\n| --- | --- | --- | --- | --- |\n");
    for entry in ENTRIES {
        let Entry { name, class, about, .. } = entry;
        let grade = entry.grade_names();
        text.push_str(&format!("| `{name}` | {class} | {grade} | {} | {about} |\n", entry.promise.text()));
    }
    text
}

/// What detectors want to be told.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub regions: Regions,
    /// What good runs taught.
    pub avio: Option<avio::AvioFacts>,
    pub order: Option<order::OrderFacts>,
    pub contracts: Vec<Contract>,
    /// Where the trace has the calls that contracts name.
    pub calls: Arc<CallPlaces>,
    pub atomic_sets: atomicsets::AtomicSets,
    pub steps_bound: Option<u64>,
    pub turns_bound: Option<u64>,
    pub correlation: correlated::Thresholds,
}

/// Makes a detector.
pub fn create(name: &str, settings: &Settings) -> Option<Box<dyn Detector>> {
    let regions = || settings.regions.clone();
    Some(match name {
        "eraser" => Box::new(eraser::Eraser::new(false)),
        "eraser-ownership" => Box::new(eraser::Eraser::new(true)),
        "djit" => Box::new(djit::Djit::default()),
        "fasttrack" => Box::new(fasttrack::FastTrack::default()),
        "trade" => Box::new(trade::Trade::default()),
        "racetrack" => Box::new(racetrack::RaceTrack::default()),
        "goldilocks" => Box::new(goldilocks::Goldilocks::default()),
        "hb11" => Box::new(hb11::Hb11::default()),
        "shb" => Box::new(shb::Shb::default()),
        "wcp" => Box::new(wcp::Wcp::default()),
        "syncp" => Box::new(syncp::Syncp::new()),
        "views" => Box::new(views::Views::new(regions())),
        "correlated" => Box::new(correlated::Correlated::new(settings.correlation, regions())),
        "avio" => Box::new(avio::Avio::new(settings.avio.clone())),
        "atomizer" => Box::new(atomizer::Atomizer::new(regions())),
        "atomizer-protected" => Box::new(atomizer::Atomizer::with_protected_locks(regions())),
        "units" => Box::new(units::Units::default()),
        "velodrome" => Box::new(velodrome::Velodrome::new(regions())),
        "aerodrome" => Box::new(aerodrome::Aerodrome::new(regions())),
        "atomicsets" => {
            Box::new(atomicsets::AtomicSetSerialisability::new(regions(), settings.atomic_sets.clone()))
        }
        "goodlock" => Box::new(goodlock::Goodlock::default()),
        "segments" => Box::new(segments::Segments::default()),
        "lockdep" => Box::new(lockdep::Lockdep::default()),
        "spd" => Box::new(spd::Spd::new()),
        "waitfor" => Box::new(waitfor::WaitFor::default()),
        "order" => Box::new(order::Order::new(settings.order.clone())),
        "missedsignal" => Box::new(missedsignal::MissedSignal::default()),
        "blocked" => Box::new(blocked::Blocked::default()),
        "nonprogress" => Box::new(nonprogress::NonProgress::new(
            settings.steps_bound.unwrap_or(nonprogress::STEPS_BOUND),
            settings.turns_bound.unwrap_or(nonprogress::TURNS_BOUND),
        )),
        "contracts" => Box::new(contracts::Contracts::new(&settings.contracts, settings.calls.clone())),
        "contracts-lockset" => {
            let calls = settings.calls.clone();
            Box::new(contracts_lockset::ContractsLockset::new(&settings.contracts, calls))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/detectors.md` shows this very table.
    #[test]
    fn the_documented_table_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/detectors.md");
        let text = std::fs::read_to_string(path).expect("docs/detectors.md is there");
        assert!(text.contains(&markdown()), "docs/detectors.md should contain:\n{}", markdown());
    }

    #[test]
    fn every_entry_can_be_made() {
        for entry in ENTRIES {
            assert!(create(entry.name, &Settings::default()).is_some(), "{}", entry.name);
        }
        assert!(create("nonsense", &Settings::default()).is_none());
    }
}
