//! What the command line asks for beside the default analysis: the paper's analyses as a report, the cost of the abstract
//! machine with and without garbage collection, and the picture of its graph.

use crate::abs::explore::{self, Graph, StateId};
use crate::abs::space::{Addr, AddrId, Config, Space, TidId};
use crate::concrete::state::origin_name;
use crate::finding::*;
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::paper::{self, Verdicts};
use crate::syntax::core::{ExprId, Program};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The analyses of §4 on the machine of §3.
pub fn paper_report(
    program: &Program,
    config: Config,
    states_max: usize,
    clock: &Clock,
) -> (Report, Verdicts) {
    let start = Instant::now();
    let mut space = Space::new(program, config);
    let mut graph = explore::explore(&mut space, states_max, clock);
    let verdicts = paper::analyze(&mut space, &graph, clock);
    graph.incomplete = graph.incomplete.or_else(|| verdicts.incomplete.clone());
    let writer = Writer { program, space: &space, graph: &graph };
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for (conflict, &state) in &verdicts.races {
        if known.insert((conflict.sites, conflict.addr)) {
            reported.extend([conflict.sites.0, conflict.sites.1]);
            let name = writer.name(conflict.addr);
            let parts = vec![
                writer
                    .part(conflict.sites.0, conflict.tids.0, format!("touches {name}"), Deed::Accesses)
                    .of(name.clone()),
                writer
                    .part(conflict.sites.1, conflict.tids.1, format!("touches {name}"), Deed::Accesses)
                    .of(name.clone()),
            ];
            let kind = if conflict.actions.0 == Action::Read { "read-write" } else { "write-write" };
            findings.push(writer.finding(Kind::Race, format!("{kind} conflict on {name}"), parts, state));
        }
    }
    for (&addr, sites) in &verdicts.unretried {
        if sites.keys().any(|site| reported.contains(site)) {
            continue;
        }
        let part = |(&site, &(tid, _)): (&ExprId, &(TidId, StateId))| {
            writer
                .part(site, tid, "may fail and is not tried again".to_owned(), Deed::SwapsOnce)
                .of(writer.name(addr))
        };
        let parts = sites.iter().map(part).collect();
        let message = format!("a failed swap of {} is never retried", writer.name(addr));
        let state = sites.values().next().map_or(StateId(0), |s| s.1);
        findings.push(writer.finding(Kind::UnretriedCas, message, parts, state));
    }
    for (&(tid, site), &state) in &verdicts.spinning {
        let parts = vec![writer.part(site, tid, "fails to swap, again and again".to_owned(), Deed::Spins)];
        findings.push(writer.finding(Kind::Livelock, "a thread spins for ever".to_owned(), parts, state));
    }
    for (places, &state) in &verdicts.stuck {
        let parts = places
            .iter()
            .map(|&(tid, site)| writer.part(site, tid, "waits here".to_owned(), Deed::Waits))
            .collect();
        findings.push(writer.finding(Kind::Deadlock, "all threads wait".to_owned(), parts, state));
    }
    let phase = Phase {
        name: if config.gc { "P(CEK*)S with GC" } else { "P(CEK*)S" },
        states: graph.states.len(),
        edges: graph.edges.len(),
        seconds: start.elapsed().as_secs_f64(),
        incomplete: graph.incomplete.clone(),
        outcome: format!("{} races, {} deadlocks", verdicts.races_found(), verdicts.deadlocks_found()),
    };
    let verdict = match (&graph.incomplete, findings.is_empty()) {
        (_, false) => Verdict::Found,
        (Some(reason), true) => Verdict::Unknown(reason.clone()),
        (None, true) => Verdict::Clean("the analyses of the paper find nothing".to_owned()),
    };
    let report = Report {
        file: program.source.name.clone(),
        verdict,
        findings,
        phases: vec![phase],
        results: Vec::new(),
    };
    (report, verdicts)
}

struct Writer<'a, 'p> {
    program: &'p Program,
    space: &'a Space<'p>,
    graph: &'a Graph,
}

impl Writer<'_, '_> {
    fn name(&self, addr: AddrId) -> String {
        match self.space.addr_of(addr) {
            Addr::Cell(origin, cell, _) => origin_name(self.program, origin, cell),
            other => format!("{other:?}"),
        }
    }

    fn thread(&self, tid: TidId) -> String {
        match self.space.tid_of(tid).last() {
            Some((site, _)) => {
                format!("a thread spawned at {}", self.program.source.place(self.program.span(*site)))
            }
            None => "the main thread".to_owned(),
        }
    }

    fn part(&self, site: ExprId, tid: TidId, what: String, deed: Deed) -> Part {
        let span = self.program.span(site);
        let place = self.program.source.place(span);
        Part { span, place, thread: self.thread(tid), what, deed, path: None, object: None }
    }

    fn finding(&self, kind: Kind, message: String, parts: Vec<Part>, state: StateId) -> Finding {
        let line = |edge: &explore::AbsEdge| {
            let place = self.program.source.place(self.program.span(edge.site));
            format!(
                "{}: {} at {place}",
                self.thread(edge.tid),
                edge.done.map_or("step", |op| op.action.word())
            )
        };
        let path = self.graph.path(state).iter().map(line).collect();
        Finding { kind, grade: Grade::Suspected, benign: false, message, parts, schedule: None, path }
    }
}

/// The cost of the abstract machine under one setting.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    pub gc: bool,
    pub states: usize,
    pub edges: usize,
    pub seconds: f64,
    pub incomplete: Option<String>,
    /// Sizes of the interned tables.
    pub tables: Vec<(&'static str, usize)>,
}

/// The abstract machine with and without garbage collection, each within the given time.
pub fn costs(
    program: &Program,
    config: Config,
    states_max: usize,
    budget: Duration,
    clock: &Clock,
) -> Vec<Cost> {
    [false, true]
        .into_iter()
        .map(|gc| {
            let start = Instant::now();
            let mut space = Space::new(program, Config { gc, ..config });
            let graph = explore::explore(&mut space, states_max, &clock.at_most(budget));
            Cost {
                gc,
                states: graph.states.len(),
                edges: graph.edges.len(),
                seconds: start.elapsed().as_secs_f64(),
                incomplete: graph.incomplete,
                tables: space.sizes().to_vec(),
            }
        })
        .collect()
}

/// The abstract state graph, as SVG or as DOT.
pub fn picture(program: &Program, config: Config, svg: bool, states_max: usize, clock: &Clock) -> String {
    let mut space = Space::new(program, config);
    let graph = explore::explore(&mut space, states_max, clock);
    if svg { crate::dot::svg(&mut space, &graph, clock) } else { crate::dot::dot(&mut space, &graph, clock) }
}
