//! The default analysis: prove what can be proven cheaply, look at what is small, confirm what is suspected.
//!
//! 1. The thread-modular analysis ([`crate::modular`]) looks at each thread once. Most programs that are right are
//!    proven so here.
//! 2. The concrete machine explores all states, if they are few ([`crate::concrete::explore`]). If they are not, random walks
//!    ([`crate::concrete::walk`]) go to the end of some runs, the reduced search ([`crate::concrete::dpor`]) tries one run of each
//!    class of equivalent ones, and states that differ in the names of threads are taken as one
//!    ([`crate::concrete::symmetry`]).
//! 3. The interleaving abstract machine ([`crate::abs::explore`]) with garbage collection, partial order reduction and
//!    subsumption looks at what is left.
//! 4. Where that suspects something, the searches go on as far as the limits allow.
//!
//! A phase that sees everything settles the verdict, whatever became of the others: what it did not meet does not exist. If
//! none does, what was met is confirmed, what was not is suspected, with the abstract path that leads to it, and the verdict
//! on a program with nothing but suspects is *unknown*.

mod cores;
mod writer;

use crate::abs::explore::{self as abstract_explore, Graph};
use crate::abs::space::{Config, Space};
use crate::concrete::explore::{self, Exploration, Observed};
use crate::concrete::state::Machine;
use crate::concrete::{dpor, walk};
use crate::finding::*;
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::modular;
use crate::suspect;
use crate::syntax::core::{Expr, ExprId, Program};
use cores::Cores;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use writer::Writer;
pub use writer::harmless;

/// How far an analysis may go.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of call strings.
    pub k: usize,
    pub gc: bool,
    pub por: bool,
    pub subsume: bool,
    pub abstract_states_max: usize,
    pub concrete_states_max: usize,
    /// Inequivalent runs that are tried where the concrete states are too many.
    pub runs_max: usize,
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            k: 1,
            gc: true,
            por: true,
            subsume: true,
            abstract_states_max: 100_000,
            concrete_states_max: 200_000,
            runs_max: 100_000,
            timeout: Duration::from_secs(60),
        }
    }
}

impl Options {
    pub fn config(&self) -> Config {
        Config { gc: self.gc, por: self.por, subsume: self.subsume, ..Config::better(self.k) }
    }
}

/// What an analysis says while it goes on.
pub enum Progress<'a> {
    /// A phase begins.
    Phase(&'a str),
    /// This happened, and will be in the report.
    Found(&'a Finding),
}

/// Concrete states within which a program is small.
const STATES_FEW: usize = 5_000;
/// Inequivalent runs within which it is.
const RUNS_FEW: usize = 3_000;

/// Analyses a program. `progress` is told the name of each phase as it starts, and what is confirmed as soon as it is.
pub fn analyze(
    program: &Program,
    options: &Options,
    clock: &Clock,
    progress: &mut dyn FnMut(Progress),
) -> Report {
    let mut report = Report {
        file: program.source.name.clone(),
        verdict: Verdict::Unknown(String::new()),
        findings: Vec::new(),
        phases: Vec::new(),
        results: Vec::new(),
    };
    progress(Progress::Phase("each thread by itself"));
    let start = Instant::now();
    let outcome = modular::analyze(program, options.k, &clock.at_most(options.timeout / 4));
    let left = leftovers(&outcome);
    report.phases.push(Phase {
        name: "thread-modular",
        states: outcome.contexts,
        edges: 0,
        seconds: start.elapsed().as_secs_f64(),
        incomplete: outcome.incomplete.clone(),
        outcome: match (left.is_empty(), &outcome.incomplete) {
            (true, None) => "proven clean".to_owned(),
            (true, Some(_)) => "nothing proven".to_owned(),
            (false, _) => left.join(", "),
        },
    });
    if left.is_empty() && outcome.incomplete.is_none() {
        report.verdict = Verdict::Clean("every thread by itself excludes an error".to_owned());
        return report;
    }
    let machine = Machine::new(program);
    let mut runs = Runs {
        machine: &machine,
        options,
        clock,
        progress,
        observed: Observed::default(),
        cores: Cores::default(),
        phases: &mut report.phases,
        told: BTreeSet::new(),
        settled: None,
        open: String::new(),
    };
    runs.look_briefly();
    if let Some(why) = runs.settled.take() {
        let Runs { observed, cores, .. } = runs;
        settle(&mut report, &Writer { program, observed: &observed, cores: &cores }, why);
        return report;
    }

    (runs.progress)(Progress::Phase("abstract interleavings"));
    let start = Instant::now();
    let mut space = Space::new(program, options.config());
    let mut graph = abstract_explore::explore(
        &mut space,
        options.abstract_states_max,
        // What is confirmed is settled; that there is more to suspect is worth less time.
        &clock.at_most(options.timeout / if runs.told.is_empty() { 3 } else { 10 }),
    );
    let mut suspects = suspect::suspects(&mut space, &graph, clock);
    graph.incomplete = graph.incomplete.or_else(|| suspects.incomplete.take());
    if outcome.incomplete.is_none() {
        // Both analyses over-approximate, so what either excludes is excluded.
        suspects.races.retain(|race, _| {
            outcome.races.contains(&modular::Candidate {
                sites: race.sites,
                origin: race.origin,
                cell: race.cell,
            })
        });
        if outcome.deadlocks.is_empty() {
            suspects.deadlocks.clear();
        }
        suspects.errors.retain(|site, _| outcome.errors.contains(site) || outcome.wrong.contains(site));
    }
    // A type error that depends on a value is no suspect of its own, but what may have one is not proven clean.
    let is_join = |site: ExprId| matches!(program.expr(site), Expr::Join(_));
    let doubtful: Vec<ExprId> = graph
        .failures
        .iter()
        .filter(|(site, failure)| !failure.raised && !failure.certain && !is_join(**site))
        .map(|(&site, _)| site)
        .filter(|site| outcome.incomplete.is_some() || outcome.fallible.contains(site))
        .collect();
    let count = suspects.races.len() + suspects.deadlocks.len() + suspects.errors.len();
    runs.phases.push(Phase {
        name: "abstract interleavings",
        states: graph.states.len(),
        edges: graph.edges.len(),
        seconds: start.elapsed().as_secs_f64(),
        incomplete: graph.incomplete.clone(),
        outcome: format!("{count} suspects"),
    });
    let may_spin = outcome.spins || outcome.incomplete.is_some() || wavers(&graph);
    let excluded = graph.incomplete.is_none() && count == 0 && !may_spin && doubtful.is_empty();
    if excluded && runs.observed.situations() == 0 {
        report.verdict = Verdict::Clean("no abstract interleaving has an error".to_owned());
        return report;
    }
    if !excluded {
        runs.look_long();
    }
    let Runs { observed, cores, settled, open, .. } = runs;
    let writer = Writer { program, observed: &observed, cores: &cores };
    if let Some(why) = settled {
        settle(&mut report, &writer, why);
        return report;
    }
    writer.confirmed(&mut report.findings);
    let cut = writer.suspected(&mut space, &graph, &suspects, clock, &mut report.findings);
    graph.incomplete = graph.incomplete.or(cut);
    if graph.incomplete.is_some() && outcome.incomplete.is_none() {
        writer.left(&outcome, &mut report.findings);
    }
    sort(&mut report.findings);
    let doubt = doubtful.first().map(|&site| {
        let place = program.source.place(program.span(site));
        format!("{} may fail, as at {place}", count_of(doubtful.len(), "operation"))
    });
    report.verdict = verdict(&report, open, may_spin, doubt, &graph);
    report
}

/// The report on a program of which everything was seen.
fn settle(report: &mut Report, writer: &Writer, why: &'static str) {
    writer.confirmed(&mut report.findings);
    sort(&mut report.findings);
    report.results = writer.observed.results.iter().cloned().collect();
    report.verdict = if report.serious() > 0 { Verdict::Found } else { Verdict::Clean(why.to_owned()) };
}

fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        (a.benign, a.grade, a.kind, &a.message).cmp(&(b.benign, b.grade, b.kind, &b.message))
    });
}

/// The concrete searches, and what they have seen together.
struct Runs<'a, 'p> {
    machine: &'a Machine<'p>,
    options: &'a Options,
    clock: &'a Clock,
    progress: &'a mut dyn FnMut(Progress),
    observed: Observed,
    cores: Cores,
    phases: &'a mut Vec<Phase>,
    /// Findings that were shown already.
    told: BTreeSet<String>,
    /// Why nothing is left to be seen, when nothing is.
    settled: Option<&'static str>,
    /// Why the last search did not see everything.
    open: String,
}

impl Runs<'_, '_> {
    /// What a small program needs, and what a large one is likely to show.
    fn look_briefly(&mut self) {
        let few = STATES_FEW.min(self.options.concrete_states_max);
        self.states(few, false, 8);
        if self.goes_on() && self.options.runs_max > 0 {
            self.walks();
        }
        if self.goes_on() {
            self.reduced(RUNS_FEW.min(self.options.runs_max), 12);
        }
        if self.goes_on() && self.options.concrete_states_max > few {
            self.states(self.options.concrete_states_max, true, 4);
        }
    }

    /// As far as the limits allow.
    fn look_long(&mut self) {
        if self.goes_on() && self.options.runs_max > RUNS_FEW {
            self.reduced(self.options.runs_max, 4);
        }
    }

    fn goes_on(&self) -> bool {
        self.settled.is_none() && !self.clock.is_over()
    }

    fn start(&mut self, name: &'static str) -> Instant {
        (self.progress)(Progress::Phase(name));
        Instant::now()
    }

    /// All states, by name or up to renaming.
    fn states(&mut self, states_max: usize, orbits: bool, share: u32) {
        let name = if orbits { "states up to renaming" } else { "concrete schedules" };
        let start = self.start(name);
        let clock = self.clock.at_most(self.options.timeout / share);
        let search = if orbits { explore::explore_orbits } else { explore::explore };
        let seen = search(self.machine, states_max, &clock);
        let complete = seen.incomplete.is_none();
        self.end(name, start, seen, String::new());
        if complete {
            self.settled = Some("every schedule was explored");
        }
    }

    fn walks(&mut self) {
        let start = self.start("random walks");
        let clock = self.clock.at_most(self.options.timeout / 10);
        let bounds = walk::Bounds::default();
        let bounds = walk::Bounds { walks_max: bounds.walks_max.min(self.options.runs_max), ..bounds };
        let seen = walk::walk(self.machine, bounds, 1, &clock);
        let exploration = Exploration {
            observed: seen.observed,
            states: seen.steps,
            edges: seen.steps,
            ..Exploration::default()
        };
        self.end("random walks", start, exploration, format!(" in {} walks", seen.walks));
    }

    /// One run of each class. If the search comes to an end all runs are finite and all were seen; whether a failed `cas`
    /// is retried it knows where each is retried in its own run, or none succeeds.
    fn reduced(&mut self, runs_max: usize, share: u32) {
        let name = "inequivalent schedules";
        let start = self.start(name);
        let clock = self.clock.at_most(self.options.timeout / share);
        let bounds = dpor::Bounds { runs_max, ..dpor::Bounds::default() };
        let seen = dpor::explore(self.machine, bounds, &clock);
        let complete = seen.exploration.incomplete.is_none();
        self.end(name, start, seen.exploration, format!(" in {} runs", seen.runs));
        if complete && seen.unretried.is_empty() {
            self.settled = Some("every inequivalent schedule was explored");
        } else if complete {
            self.open = "whether all failed swaps are retried is open".to_owned();
        }
    }

    fn end(&mut self, name: &'static str, start: Instant, seen: Exploration, note: String) {
        self.phases.push(Phase {
            name,
            states: seen.states,
            edges: seen.edges,
            seconds: start.elapsed().as_secs_f64(),
            incomplete: seen.incomplete.clone(),
            outcome: format!("{} situations seen{note}", seen.observed.situations()),
        });
        self.observed.absorb(seen.observed);
        if let Some(reason) = seen.incomplete {
            self.open = reason;
        }
        let mut findings = Vec::new();
        self.cores.judge(self.machine, &self.observed, self.clock);
        let writer = Writer { program: self.machine.program, observed: &self.observed, cores: &self.cores };
        writer.confirmed(&mut findings);
        for finding in findings.iter().filter(|finding| !finding.benign) {
            if self.told.insert(finding.key()) {
                (self.progress)(Progress::Found(finding));
            }
        }
    }
}

/// Whether some swap may succeed and may fail. Only the concrete machine can tell whether a failed one is retried.
fn wavers(graph: &Graph) -> bool {
    let mut seen: BTreeMap<ExprId, BTreeSet<Action>> = BTreeMap::new();
    for op in graph.edges.iter().filter_map(|edge| edge.done).filter(|op| op.action.is_cas()) {
        seen.entry(op.site).or_default().insert(op.action);
    }
    seen.values().any(|actions| actions.len() > 1)
}

fn leftovers(outcome: &modular::Outcome) -> Vec<String> {
    let mut left = Vec::new();
    let mut say = |count: usize, what: &str| {
        if count > 0 {
            left.push(format!("{count} {what}"));
        }
    };
    say(outcome.races.len(), "possible races");
    say(outcome.deadlocks.len(), "places that may deadlock");
    say(outcome.errors.len(), "reachable errors");
    say(outcome.wrong.len(), "operations that cannot work");
    say(outcome.fallible.difference(&outcome.wrong).count(), "operations that may fail");
    say(outcome.wavering.len(), "swaps that may fail");
    if outcome.spins {
        left.push("a loop that may spin".to_owned());
    }
    left
}

fn count_of(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn verdict(report: &Report, open: String, may_spin: bool, doubt: Option<String>, graph: &Graph) -> Verdict {
    let serious = |grade| report.findings.iter().filter(|f| !f.benign && f.grade == grade).count();
    if serious(Grade::Confirmed) > 0 {
        return Verdict::Found;
    }
    let suspects = match serious(Grade::Suspected) {
        0 => String::new(),
        1 => "1 suspect is neither confirmed nor excluded: ".to_owned(),
        n => format!("{n} suspects are neither confirmed nor excluded: "),
    };
    match (&graph.incomplete, doubt) {
        (None, None) if suspects.is_empty() && !may_spin => {
            Verdict::Clean("no abstract interleaving has an error beyond harmless ones".to_owned())
        }
        (None, Some(doubt)) if suspects.is_empty() && !may_spin => {
            Verdict::Unknown(format!("no race or deadlock, but {doubt}: {open}"))
        }
        (None, _) if suspects.is_empty() => Verdict::Unknown(format!(
            "no race or deadlock, but whether all loops end and all failed swaps are retried is open: {open}"
        )),
        (Some(reason), _) if *reason != open => Verdict::Unknown(format!("{suspects}{reason}; {open}")),
        _ => Verdict::Unknown(format!("{suspects}{open}")),
    }
}
