//! The abstract state graph as a picture: DOT for Graphviz, or an SVG that needs no other program.
//!
//! Error states are red: states in which two threads are about to conflict (unless all conflicts on that location are
//! harmless), in which nobody can go on, which are on a loop that has no exit (what a deadlock is for locks made of `cas`),
//! or from which a thread stops with an error. The SVG lays states out in layers by their distance from the start.

use crate::abs::explore::{AbsEdge, Graph, StateId};
use crate::abs::space::{Addr, Space, TidId};
use crate::abs::step::AbsOp;
use crate::analyze::harmless;
use crate::graph::components;
use crate::limits::Clock;
use crate::suspect;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

/// States beyond this many are left out, and the picture says so.
pub const STATES_MAX: usize = 5_000;

/// States that show an error.
pub fn error_states(space: &mut Space, graph: &Graph, clock: &Clock) -> BTreeSet<StateId> {
    let mut out: BTreeSet<StateId> =
        graph.failures.values().filter(|f| f.raised || f.certain).map(|f| f.state).collect();
    out.extend(spinning(graph));
    let races = suspect::suspects(space, graph, clock).races;
    let conflicts = races.keys().map(|race| (race.sites, race.actions, (race.origin, race.cell)));
    let harmless = harmless(space.program, conflicts);
    for id in graph.ids().take(STATES_MAX) {
        let standing = graph.standing(space, id);
        let racy = |addr| match space.addr_of(addr) {
            Addr::Cell(origin, cell, _) => !harmless.contains(&(origin, cell)),
            _ => false,
        };
        let conflict = standing.iter().enumerate().any(|(i, a)| {
            standing.iter().enumerate().skip(i).any(|(j, b)| {
                let together = |x: &AbsOp, y: &AbsOp| x.addr == y.addr && x.action.conflicts_with(y.action);
                (i != j || a.many)
                    && a.ops.iter().any(|x| b.ops.iter().any(|y| together(x, y) && racy(x.addr)))
            })
        });
        let stuck =
            !standing.is_empty() && standing.iter().all(|s| s.ops.iter().any(|op| op.may_wait && !op.may_go));
        if conflict || stuck {
            out.insert(id);
        }
    }
    out
}

/// States on a loop from which nothing else can be reached.
fn spinning(graph: &Graph) -> Vec<StateId> {
    let next = graph.successors();
    let component = components(&next);
    let count = component.iter().max().map_or(0, |&max| max as usize + 1);
    let (mut loops, mut leaves) = (vec![false; count], vec![false; count]);
    for edge in &graph.edges {
        let (from, to) = (component[edge.from.index()] as usize, component[edge.to.index()] as usize);
        if from == to {
            loops[from] = true;
        } else {
            leaves[from] = true;
        }
    }
    graph
        .ids()
        .filter(|id| {
            let c = component[id.index()] as usize;
            loops[c] && !leaves[c]
        })
        .collect()
}

/// How a thread is called in the picture: by the place where it is spawned.
fn thread_name(space: &Space, tid: TidId) -> String {
    match space.tid_of(tid).last() {
        Some((site, _)) => format!("t{}", space.program.source.place(space.program.span(*site))),
        None => "main".to_owned(),
    }
}

/// Which thread takes an edge, and what it does if others can notice it.
fn edge_label(space: &Space, edge: &AbsEdge) -> String {
    let name = thread_name(space, edge.tid);
    edge.done.map_or(name.clone(), |op| format!("{name} {}", op.action.word()))
}

/// What the threads of a state are at, a line each.
fn lines(space: &Space, graph: &Graph, id: StateId) -> Vec<String> {
    let threads = space.threads_of(graph.states[id.index()].threads);
    let mut out = Vec::new();
    for thread in threads.iter() {
        let name = thread_name(space, thread.tid);
        let many = if thread.many { "*" } else { "" };
        for &ctx in &thread.ctxs {
            let span = space.program.span(space.site(ctx));
            out.push(format!("{name}{many}: {}", space.program.source.excerpt(span, 30)));
        }
    }
    if out.is_empty() {
        out.push("all ended".to_owned());
    }
    out
}

/// What the picture does not show.
fn caption(graph: &Graph, count: usize) -> Option<String> {
    let cut =
        (count < graph.states.len()).then(|| format!("the first {count} of {} states", graph.states.len()));
    let stopped = graph.incomplete.as_ref().map(|why| format!("not all states: {why}"));
    let parts: Vec<String> = cut.into_iter().chain(stopped).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Distance from the start along the edges that are drawn.
fn layers(graph: &Graph, count: usize) -> Vec<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for edge in graph.edges.iter().filter(|e| e.from.index() < count && e.to.index() < count) {
        next[edge.from.index()].push(edge.to.index());
    }
    let mut layer: Vec<Option<usize>> = vec![None; count];
    let mut queue: VecDeque<(usize, usize)> = (0..count.min(1)).map(|start| (start, 0)).collect();
    while let Some((at, distance)) = queue.pop_front() {
        if layer[at].is_none() {
            layer[at] = Some(distance);
            queue.extend(next[at].iter().map(|&to| (to, distance + 1)));
        }
    }
    layer.into_iter().map(|l| l.unwrap_or(0)).collect()
}

pub fn dot(space: &mut Space, graph: &Graph, clock: &Clock) -> String {
    let errors = error_states(space, graph, clock);
    let mut out = String::from(
        "digraph states {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=9];\n",
    );
    let count = graph.states.len().min(STATES_MAX);
    if let Some(caption) = caption(graph, count) {
        let _ = writeln!(out, "  label=\"{caption}\";");
    }
    for id in graph.ids().take(count) {
        let quoted = |line: String| line.replace('\\', "\\\\").replace('"', "\\\"");
        let label: String = lines(space, graph, id).into_iter().map(|line| quoted(line) + "\\l").collect();
        let style =
            if errors.contains(&id) { ", style=filled, fillcolor=\"#f8d0d0\", color=red" } else { "" };
        let _ = writeln!(out, "  s{} [label=\"{label}\"{style}];", id.0);
    }
    for edge in graph.edges.iter().filter(|e| e.from.index() < count && e.to.index() < count) {
        let label = edge_label(space, edge);
        let _ = writeln!(out, "  s{} -> s{} [label=\"{label}\"];", edge.from.0, edge.to.0);
    }
    out.push_str("}\n");
    out
}

pub fn svg(space: &mut Space, graph: &Graph, clock: &Clock) -> String {
    const WIDTH: usize = 260;
    const LINE: usize = 12;
    let errors = error_states(space, graph, clock);
    let count = graph.states.len().min(STATES_MAX);
    let layer = layers(graph, count);
    let texts: Vec<Vec<String>> = graph.ids().take(count).map(|id| lines(space, graph, id)).collect();
    let height = texts.iter().map(|t| t.len()).max().unwrap_or(1) * LINE + 10;
    let mut used = vec![0usize; layer.iter().max().map_or(1, |m| m + 1)];
    let mut at = Vec::with_capacity(count);
    for &l in &layer {
        at.push((used[l] * (WIDTH + 30) + 20, l * (height + 40) + 30));
        used[l] += 1;
    }
    let columns = used.iter().max().copied().unwrap_or(1);
    let (w, h) = (columns * (WIDTH + 30) + 40, used.len() * (height + 40) + 40);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" font-family=\"monospace\" font-size=\"9\">\n\
         <defs><marker id=\"a\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">\
         <path d=\"M0 0 6 3 0 6z\"/></marker></defs>\n"
    );
    if let Some(caption) = caption(graph, count) {
        let _ = writeln!(out, "<text x=\"20\" y=\"15\">{caption}</text>");
    }
    for edge in graph.edges.iter().filter(|e| e.from.index() < count && e.to.index() < count) {
        let ((x1, y1), (x2, y2)) = (at[edge.from.index()], at[edge.to.index()]);
        let _ = writeln!(
            out,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#888\" marker-end=\"url(#a)\"/>",
            x1 + WIDTH / 2,
            y1 + height,
            x2 + WIDTH / 2,
            y2
        );
        if edge.from != edge.to {
            let (x, y) = ((x1 + x2 + WIDTH) / 2, (y1 + height + y2) / 2);
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{y}\" font-size=\"8\" fill=\"#555\">{}</text>",
                x + 4,
                edge_label(space, edge)
            );
        }
    }
    for (id, &(x, y)) in graph.ids().zip(&at) {
        let (fill, stroke) = if errors.contains(&id) { ("#f8d0d0", "red") } else { ("#fff", "#444") };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
        );
        for (n, line) in texts[id.index()].iter().enumerate() {
            let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(out, "<text x=\"{}\" y=\"{}\">{line}</text>", x + 5, y + (n + 1) * LINE);
        }
    }
    out.push_str("</svg>\n");
    out
}
