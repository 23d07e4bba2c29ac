//! The default analysis: prove what can be proven cheaply, explore what is left, confirm what is suspected.
//!
//! 1. The thread-modular analysis ([`crate::modular`]) looks at each thread once. Most programs that are right are
//!    proven so here.
//! 2. The interleaving abstract machine ([`crate::abs::explore`]) with garbage collection, partial order reduction and
//!    subsumption looks at what is left.
//! 3. The concrete machine ([`crate::concrete::explore`]) tries to make every suspect happen. If it sees the whole
//!    state space, its word is final: what it did not see does not exist. If it does not, suspects that it met are
//!    confirmed and the others remain suspected, with the abstract path that leads to them.
//!
//! # Conflicts that are no races
//!
//! The paper's filter (§4.2.1) forgives a variable that is only read and swapped, between two threads. Here it works for
//! any number of threads and any number of procedures: conflicts on a location are harmless if all of them are between a
//! plain read and a `cas` or between two `cas`, and no procedure contributes more than one of the reads. (Two reads in one
//! attempt can see two values: pcounter-buggy.) A `cas` that fails for good is a finding of its own.

use crate::abs::explore::{self as abstract_explore, Graph, StateId};
use crate::abs::space::{Config, Space, TidId};
use crate::concrete::dpor;
use crate::concrete::explore::{self, Exploration, Observed, RaceKey, Stand};
use crate::concrete::state::{Machine, Origin, origin_name, path_name};
use crate::finding::*;
use crate::limits::Clock;
use crate::machine::access::{Action, SitePair};
use crate::modular;
use crate::suspect::{self, Suspects};
use crate::syntax::core::{BodyId, ExprId, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

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

/// Analyses a program. `progress` is told the name of each phase as it starts.
pub fn analyze(
    program: &Program,
    options: &Options,
    clock: &Clock,
    progress: &mut dyn FnMut(&str),
) -> Report {
    let mut report = Report {
        file: program.source.name.clone(),
        verdict: Verdict::Unknown(String::new()),
        findings: Vec::new(),
        phases: Vec::new(),
        results: Vec::new(),
    };
    progress("each thread by itself");
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

    progress("abstract interleavings");
    let start = Instant::now();
    let mut space = Space::new(program, options.config());
    let mut graph = abstract_explore::explore(
        &mut space,
        options.abstract_states_max,
        &clock.at_most(options.timeout / 3),
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
    let count = suspects.races.len() + suspects.deadlocks.len() + suspects.errors.len();
    report.phases.push(Phase {
        name: "abstract interleavings",
        states: graph.states.len(),
        edges: graph.edges.len(),
        seconds: start.elapsed().as_secs_f64(),
        incomplete: graph.incomplete.clone(),
        outcome: format!("{count} suspects"),
    });
    let may_spin = outcome.spins || outcome.incomplete.is_some() || wavers(&graph);
    if graph.incomplete.is_none() && count == 0 && !may_spin {
        report.verdict = Verdict::Clean("no abstract interleaving has an error".to_owned());
        return report;
    }

    progress("concrete schedules");
    let start = Instant::now();
    let machine = Machine::new(program);
    let mut exploration =
        explore::explore(&machine, options.concrete_states_max, &clock.at_most(options.timeout / 2));
    report.phases.push(Phase {
        name: "concrete schedules",
        states: exploration.states,
        edges: exploration.edges,
        seconds: start.elapsed().as_secs_f64(),
        incomplete: exploration.incomplete.clone(),
        outcome: format!("{} situations seen", situations(&exploration.observed)),
    });
    if exploration.incomplete.is_some() && !clock.is_over() {
        progress("inequivalent schedules");
        report.phases.push(reduce(
            &machine,
            options.runs_max,
            &mut exploration,
            &clock.at_most(options.timeout / 6),
        ));
    }
    let writer = Writer { program, observed: &exploration.observed };
    writer.confirmed(&mut report.findings);
    if exploration.incomplete.is_some() {
        let cut = writer.suspected(&mut space, &graph, &suspects, clock, &mut report.findings);
        graph.incomplete = graph.incomplete.or(cut);
    } else {
        report.results = exploration.observed.results.iter().cloned().collect();
    }
    report.findings.sort_by(|a, b| {
        (a.benign, a.grade, a.kind, &a.message).cmp(&(b.benign, b.grade, b.kind, &b.message))
    });
    report.verdict = verdict(&report, &exploration, may_spin, &graph);
    report
}

/// Where the graph of states is too large, the search over inequivalent schedules goes deeper. If it comes to an end all
/// runs are finite and all were seen; only whether a failed `cas` is retried is asked of the graph alone.
fn reduce(machine: &Machine, runs_max: usize, exploration: &mut Exploration, clock: &Clock) -> Phase {
    let start = Instant::now();
    let bounds = dpor::Bounds { runs_max, ..dpor::Bounds::default() };
    let dpor::Reduced { exploration: reduced, runs } = dpor::explore(machine, bounds, clock);
    let phase = Phase {
        name: "inequivalent schedules",
        states: reduced.states,
        edges: reduced.edges,
        seconds: start.elapsed().as_secs_f64(),
        incomplete: reduced.incomplete.clone(),
        outcome: format!("{} situations seen in {runs} runs", situations(&reduced.observed)),
    };
    let observed = &mut exploration.observed;
    for (key, seen) in reduced.observed.races {
        let benign = seen.benign;
        observed.races.entry(key).or_insert(seen).benign &= benign;
    }
    for (key, schedule) in reduced.observed.deadlocks {
        observed.deadlocks.entry(key).or_insert(schedule);
    }
    for (key, error) in reduced.observed.errors {
        observed.errors.entry(key).or_insert(error);
    }
    observed.results.extend(reduced.observed.results);
    observed.spawn_sites.extend(reduced.observed.spawn_sites);
    if reduced.incomplete.is_none() && !machine.program.cases {
        exploration.incomplete = None;
    }
    phase
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
    say(outcome.wavering.len(), "swaps that may fail");
    if outcome.spins {
        left.push("a loop that may spin".to_owned());
    }
    left
}

fn situations(observed: &Observed) -> usize {
    observed.races.len()
        + observed.deadlocks.len()
        + observed.livelocks.len()
        + observed.unretried.len()
        + observed.errors.len()
}

fn verdict(report: &Report, exploration: &Exploration, may_spin: bool, graph: &Graph) -> Verdict {
    if report.serious() > 0 {
        return Verdict::Found;
    }
    match &exploration.incomplete {
        None => Verdict::Clean("every schedule was explored".to_owned()),
        Some(_) if graph.incomplete.is_none() && !may_spin => {
            Verdict::Clean("no abstract interleaving has an error beyond harmless ones".to_owned())
        }
        Some(reason) => {
            let what = match &graph.incomplete {
                Some(abstract_reason) if abstract_reason == reason => reason.clone(),
                Some(abstract_reason) => format!("{abstract_reason}; {reason}"),
                None => format!(
                    "no race or deadlock, but whether all loops end and all failed swaps are retried is open: {reason}"
                ),
            };
            Verdict::Unknown(what)
        }
    }
}

/// A location, as far as conflicts are concerned: all cells of one origin and index.
type Place = (Origin, u32);

/// Locations whose conflicts are all harmless. See the head of this file.
pub fn harmless(
    program: &Program,
    races: impl Iterator<Item = (SitePair, (Action, Action), Place)>,
) -> BTreeSet<Place> {
    let mut only_cas: BTreeMap<Place, bool> = BTreeMap::new();
    let mut reads: BTreeMap<Place, BTreeSet<(BodyId, ExprId)>> = BTreeMap::new();
    for (sites, actions, place) in races {
        let fine = only_cas.entry(place).or_insert(true);
        match actions {
            (Action::CasSucceeds, Action::CasSucceeds) => {}
            (Action::Read, Action::CasSucceeds) | (Action::CasSucceeds, Action::Read) => {
                let site = if actions.0 == Action::Read { sites.0 } else { sites.1 };
                reads.entry(place).or_default().insert((program.homes[site.index()], site));
            }
            _ => *fine = false,
        }
    }
    only_cas
        .into_iter()
        .filter(|(place, fine)| {
            let bodies: Vec<BodyId> = reads.get(place).into_iter().flatten().map(|read| read.0).collect();
            let distinct: BTreeSet<&BodyId> = bodies.iter().collect();
            *fine && distinct.len() == bodies.len()
        })
        .map(|(place, _)| place)
        .collect()
}

/// Turns observations into findings.
struct Writer<'a> {
    program: &'a Program,
    observed: &'a Observed,
}

impl Writer<'_> {
    fn part(&self, site: ExprId, thread: String, what: String) -> Part {
        let span = self.program.span(site);
        Part { span, place: self.program.source.place(span), thread, what }
    }

    fn thread(&self, path: &[u32]) -> String {
        match self.observed.spawn_sites.get(path) {
            Some(site) => {
                format!(
                    "thread {}, spawned at {}",
                    path_name(path),
                    self.program.source.place(self.program.span(*site))
                )
            }
            None => "the main thread".to_owned(),
        }
    }

    fn tid(&self, space: &Space, tid: TidId) -> String {
        match space.tid_of(tid).last() {
            Some((site, _)) => {
                format!("a thread spawned at {}", self.program.source.place(self.program.span(*site)))
            }
            None => "the main thread".to_owned(),
        }
    }

    fn stand(&self, stand: &Stand) -> Part {
        let what = match stand.action {
            Action::Acquire => "waits for this lock",
            Action::Join => "waits for this thread to end",
            Action::CasFails => "fails to swap, again and again",
            Action::Read => "reads, again and again",
            _ => "stands here",
        };
        self.part(stand.site, self.thread(&stand.thread), what.to_owned())
    }

    fn confirmed(&self, out: &mut Vec<Finding>) {
        let observed = self.observed;
        let keys = observed.races.keys().map(|key| (key.sites, key.actions, (key.origin, key.cell)));
        let harmless = harmless(self.program, keys);
        // A race is benign only if every conflict on its location is: the two writes of a lost update write the same.
        let mut benign: BTreeMap<Place, bool> = BTreeMap::new();
        for (key, seen) in &observed.races {
            *benign.entry((key.origin, key.cell)).or_insert(true) &= seen.benign;
        }
        let mut reported: BTreeSet<ExprId> = BTreeSet::new();
        let mut merged: BTreeMap<(SitePair, (Action, Action), Origin), bool> = BTreeMap::new();
        for (key, seen) in &observed.races {
            let place = (key.origin, key.cell);
            if harmless.contains(&place) {
                continue;
            }
            // Cells of one vector that race in the same way are one finding.
            let group = (key.sites, key.actions, key.origin);
            let is_benign = benign[&place];
            match merged.get(&group) {
                Some(&known) if known <= is_benign => continue,
                Some(_) => {
                    let message = self.race_message(key);
                    out.retain(|f: &Finding| !(f.kind == Kind::Race && f.message == message));
                }
                None => {}
            }
            merged.insert(group, is_benign);
            reported.extend([key.sites.0, key.sites.1]);
            out.push(Finding {
                kind: Kind::Race,
                grade: Grade::Confirmed,
                benign: is_benign,
                message: self.race_message(key),
                parts: vec![
                    self.part(key.sites.0, self.thread(&seen.threads.0), self.does(key.actions.0, key)),
                    self.part(key.sites.1, self.thread(&seen.threads.1), self.does(key.actions.1, key)),
                ],
                schedule: Some(seen.schedule.clone()),
                path: Vec::new(),
            });
        }
        for (stuck, schedule) in &observed.deadlocks {
            let message = match stuck.len() {
                1 => "a thread waits for ever".to_owned(),
                n => format!("{n} threads wait for ever"),
            };
            out.push(self.situation(Kind::Deadlock, message, stuck, schedule));
        }
        for (stuck, schedule) in &observed.livelocks {
            let threads: BTreeSet<_> = stuck.iter().map(|s| &s.thread).collect();
            let message = match threads.len() {
                1 => "a thread spins for ever".to_owned(),
                n => format!("{n} threads spin for ever"),
            };
            out.push(self.situation(Kind::Livelock, message, stuck, schedule));
        }
        let mut by_place: BTreeMap<Place, Vec<&explore::Unretried>> = BTreeMap::new();
        for (site, seen) in &observed.unretried {
            if !reported.contains(site) {
                by_place.entry((seen.origin, seen.cell)).or_default().push(seen);
            }
        }
        for ((origin, cell), seen) in by_place {
            let name = origin_name(self.program, origin, cell);
            let part = |u: &&explore::Unretried| {
                self.part(
                    u.stand.site,
                    self.thread(&u.stand.thread),
                    "may fail and is not tried again".to_owned(),
                )
            };
            out.push(Finding {
                kind: Kind::UnretriedCas,
                grade: Grade::Confirmed,
                benign: false,
                message: format!("a failed swap of {name} is never retried"),
                parts: seen.iter().map(part).collect(),
                schedule: Some(seen[0].schedule.clone()),
                path: Vec::new(),
            });
        }
        for ((site, message), seen) in &observed.errors {
            out.push(Finding {
                kind: Kind::Error,
                grade: Grade::Confirmed,
                benign: false,
                message: message.clone(),
                parts: vec![self.part(*site, self.thread(&seen.thread), "fails here".to_owned())],
                schedule: Some(seen.schedule.clone()),
                path: Vec::new(),
            });
        }
    }

    fn situation(
        &self,
        kind: Kind,
        message: String,
        stuck: &[Stand],
        schedule: &crate::concrete::schedule::Schedule,
    ) -> Finding {
        Finding {
            kind,
            grade: Grade::Confirmed,
            benign: false,
            message,
            parts: stuck.iter().map(|stand| self.stand(stand)).collect(),
            schedule: Some(schedule.clone()),
            path: Vec::new(),
        }
    }

    fn race_message(&self, key: &RaceKey) -> String {
        let cell = if matches!(key.origin, Origin::Vector(_)) { 0 } else { key.cell };
        let name = match key.origin {
            Origin::Vector(site) => {
                format!(
                    "an element of the vector made at {}",
                    self.program.source.place(self.program.span(site))
                )
            }
            origin => origin_name(self.program, origin, cell),
        };
        let a = self.program.source.place(self.program.span(key.sites.0));
        let b = self.program.source.place(self.program.span(key.sites.1));
        format!("{} and {} of {name} ({a}, {b})", noun(key.actions.0), noun(key.actions.1))
    }

    fn does(&self, action: Action, key: &RaceKey) -> String {
        let name = origin_name(self.program, key.origin, key.cell);
        match action {
            Action::Read => format!("reads {name}"),
            Action::Write => format!("writes {name}"),
            _ => format!("swaps {name}"),
        }
    }

    /// What the abstract machine suspects and the concrete one, which did not see everything, has not met. Gives a reason
    /// when it does not come to an end.
    fn suspected(
        &self,
        space: &mut Space,
        graph: &Graph,
        suspects: &Suspects,
        clock: &Clock,
        out: &mut Vec<Finding>,
    ) -> Option<String> {
        let keys = suspects.races.keys().map(|race| (race.sites, race.actions, (race.origin, race.cell)));
        let harmless = harmless(self.program, keys);
        let mut benign: BTreeMap<Place, bool> = BTreeMap::new();
        for (race, evidence) in &suspects.races {
            *benign.entry((race.origin, race.cell)).or_insert(true) &= evidence.benign;
        }
        let known = out.iter().filter(|f| f.kind == Kind::Race).map(|f| f.message.clone());
        let mut known: BTreeSet<String> = known.collect();
        for (race, evidence) in &suspects.races {
            let place = (race.origin, race.cell);
            if clock.is_over() {
                return Some(clock.reason());
            }
            let key =
                RaceKey { sites: race.sites, actions: race.actions, origin: race.origin, cell: race.cell };
            let message = self.race_message(&key);
            if harmless.contains(&place) || !known.insert(message.clone()) {
                continue;
            }
            let parts = vec![
                self.part(race.sites.0, self.tid(space, evidence.tids.0), self.does(race.actions.0, &key)),
                self.part(race.sites.1, self.tid(space, evidence.tids.1), self.does(race.actions.1, &key)),
            ];
            let path = self.path(space, graph, evidence.state);
            out.push(suspected(Kind::Race, benign[&place], message, parts, path));
        }
        let confirmed = out.iter().any(|f| f.kind == Kind::Deadlock);
        for (stuck, &state) in suspects.deadlocks.iter().filter(|_| !confirmed) {
            if clock.is_over() {
                return Some(clock.reason());
            }
            let parts = stuck
                .iter()
                .map(|&(tid, site)| {
                    self.part(site, self.tid(space, tid), "may wait here for ever".to_owned())
                })
                .collect();
            let path = self.path(space, graph, state);
            out.push(suspected(
                Kind::Deadlock,
                false,
                "threads may wait for each other".to_owned(),
                parts,
                path,
            ));
        }
        let failed = out.iter().filter(|f| f.kind == Kind::Error).map(|f| f.parts[0].place.clone());
        let failed: BTreeSet<String> = failed.collect();
        for (&site, failure) in &suspects.errors {
            if clock.is_over() {
                return Some(clock.reason());
            }
            if failed.contains(&self.program.source.place(self.program.span(site))) {
                continue;
            }
            let parts = vec![self.part(site, self.tid(space, failure.tid), "may be reached".to_owned())];
            let path = self.path(space, graph, failure.state);
            let message =
                if failure.raised { "an error may be raised" } else { "this operation cannot work" };
            out.push(suspected(Kind::Error, false, message.to_owned(), parts, path));
        }
        None
    }

    fn path(&self, space: &Space, graph: &Graph, to: StateId) -> Vec<String> {
        let line = |edge: &abstract_explore::AbsEdge| {
            let place = self.program.source.place(self.program.span(edge.site));
            let what = edge.done.map_or("step", |op| op.action.word());
            format!("{}: {what} at {place}", self.tid(space, edge.tid))
        };
        graph.path(to).iter().map(line).collect()
    }
}

fn suspected(kind: Kind, benign: bool, message: String, parts: Vec<Part>, path: Vec<String>) -> Finding {
    Finding { kind, grade: Grade::Suspected, benign, message, parts, schedule: None, path }
}

fn noun(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        _ => "cas",
    }
}
