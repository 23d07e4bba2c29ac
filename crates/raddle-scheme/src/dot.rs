//! The abstract state graph as a picture: DOT for Graphviz, or an SVG that needs no other program.
//!
//! Error states are red: states in which two threads are about to conflict, in which nobody can go on, or from which a
//! thread stops with an error. The SVG lays states out in layers by their distance from the start.

use crate::abs::explore::{Graph, StateId};
use crate::abs::space::Space;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// States beyond this many are left out, and the picture says so.
pub const STATES_MAX: usize = 5_000;

/// States that show an error.
pub fn error_states(space: &mut Space, graph: &Graph) -> BTreeSet<StateId> {
    let mut out: BTreeSet<StateId> = graph.failures.values().filter(|f| f.raised).map(|f| f.state).collect();
    for id in graph.ids() {
        let standing = graph.standing(space, id);
        let conflict = standing.iter().enumerate().any(|(i, a)| {
            standing.iter().skip(i + 1).any(|b| {
                a.ops
                    .iter()
                    .any(|x| b.ops.iter().any(|y| x.addr == y.addr && x.action.conflicts_with(y.action)))
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

/// What the threads of a state are at, a line each.
fn lines(space: &Space, graph: &Graph, id: StateId) -> Vec<String> {
    let threads = space.threads_of(graph.states[id.index()].threads);
    let mut out = Vec::new();
    for thread in threads.iter() {
        let name = match space.tid_of(thread.tid).last() {
            Some((site, _)) => format!("t{}", space.program.source.place(space.program.span(*site))),
            None => "main".to_owned(),
        };
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

pub fn dot(space: &mut Space, graph: &Graph) -> String {
    let errors = error_states(space, graph);
    let mut out = String::from(
        "digraph states {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=9];\n",
    );
    let count = graph.states.len().min(STATES_MAX);
    if count < graph.states.len() {
        let _ = writeln!(out, "  label=\"the first {count} of {} states\";", graph.states.len());
    }
    for id in graph.ids().take(count) {
        let label = lines(space, graph, id).join("\\l").replace('"', "\\\"") + "\\l";
        let style =
            if errors.contains(&id) { ", style=filled, fillcolor=\"#f8d0d0\", color=red" } else { "" };
        let _ = writeln!(out, "  s{} [label=\"{label}\"{style}];", id.0);
    }
    for edge in graph.edges.iter().filter(|e| e.from.index() < count && e.to.index() < count) {
        let what = edge.done.map_or("", |op| op.action.word());
        let _ = writeln!(out, "  s{} -> s{} [label=\"{} {what}\"];", edge.from.0, edge.to.0, edge.tid.0);
    }
    out.push_str("}\n");
    out
}

pub fn svg(space: &mut Space, graph: &Graph) -> String {
    const WIDTH: usize = 260;
    const LINE: usize = 12;
    let errors = error_states(space, graph);
    let count = graph.states.len().min(STATES_MAX);
    let mut layer = vec![0usize; count];
    for id in graph.ids().take(count) {
        if let Some(edge) = graph.found_by[id.index()] {
            layer[id.index()] = layer[graph.edges[edge as usize].from.index()] + 1;
        }
    }
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
    if count < graph.states.len() {
        let _ = writeln!(
            out,
            "<text x=\"20\" y=\"15\">the first {count} of {} states</text>",
            graph.states.len()
        );
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
