//! Pictures of machines: DOT for Graphviz, and an SVG of its own for small ones.
//!
//! The SVG puts states into columns by their distance from the initial state, which is how the plies of a check see
//! them. It is meant for the tens of states that a picture can show; larger machines are for Graphviz.

use std::fmt::Write;

use crate::engine::machine::Machine;
use crate::process::{EventId, EventTable};

/// Most states that are drawn.
pub const GRAPH_STATES_MAX: usize = 2_000;

/// The part of a machine that can be drawn: its first `max` states in the order of their distance, and one more that
/// stands for all others. Also how many those are.
pub fn folded(machine: &Machine, max: usize) -> (Machine, usize) {
    if machine.len() <= max {
        return (machine.clone(), 0);
    }
    let rest = max as u32;
    let place = |state: u32| state.min(rest);
    let mut lists: Vec<Vec<(EventId, u32)>> = vec![Vec::new(); max + 1];
    for state in machine.states() {
        let from = place(state) as usize;
        lists[from].extend(machine.from(state).iter().map(|&(e, t)| (e, place(t))).filter(|&(_, t)| {
            // What happens among the states left out is left out, too.
            (from as u32, t) != (rest, rest)
        }));
    }
    (Machine::numbered(lists), machine.len() - max)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The labels of the transitions between two states, joined.
fn edges(events: &EventTable, machine: &Machine) -> Vec<(u32, u32, String)> {
    let mut out: Vec<(u32, u32, String)> = Vec::new();
    for state in machine.states() {
        let mut own: Vec<(u32, Vec<EventId>)> = Vec::new();
        for &(event, target) in machine.from(state) {
            match own.iter_mut().find(|(t, _)| *t == target) {
                Some((_, list)) => list.push(event),
                None => own.push((target, vec![event])),
            }
        }
        for (target, list) in own {
            let shown: Vec<String> = list.iter().take(4).map(|&e| events.name(e).to_string()).collect();
            let rest = list.len().saturating_sub(4);
            let more = if rest > 0 { format!(", +{rest}") } else { String::new() };
            out.push((state, target, shown.join(", ") + &more));
        }
    }
    out
}

pub fn dot(events: &EventTable, machine: &Machine, name: &str) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=circle];\n", quote(name));
    let _ = writeln!(out, "  start [shape=point];\n  start -> 0;");
    for state in machine.states() {
        let shape =
            if machine.omega() == Some(state) { " [shape=doublecircle,label=\"\u{3a9}\"]" } else { "" };
        let _ = writeln!(out, "  {state}{shape};");
    }
    for (from, to, label) in edges(events, machine) {
        let style = if label == "\u{3c4}" { ",style=dashed" } else { "" };
        let _ = writeln!(out, "  {from} -> {to} [label={}{style}];", quote(&label));
    }
    out.push_str("}\n");
    out
}

pub fn svg(events: &EventTable, machine: &Machine, name: &str) -> String {
    const COLUMN: usize = 170;
    const ROW: usize = 70;
    const LEFT: usize = 60;
    const TOP: usize = 80;
    let edges = edges(events, machine);
    // Distance from the initial state decides the column.
    let mut column = vec![usize::MAX; machine.len()];
    let mut layer = vec![0u32];
    let mut place = vec![(0usize, 0usize); machine.len()];
    let (mut depth, mut tallest) = (0, 1);
    column[0] = 0;
    while !layer.is_empty() {
        tallest = tallest.max(layer.len());
        for (row, &state) in layer.iter().enumerate() {
            place[state as usize] = (LEFT + depth * COLUMN, TOP + row * ROW);
        }
        let mut next = Vec::new();
        for &state in &layer {
            for &(_, target) in machine.from(state) {
                if column[target as usize] == usize::MAX {
                    column[target as usize] = depth + 1;
                    next.push(target);
                }
            }
        }
        layer = next;
        depth += 1;
    }
    let (width, height) = (LEFT * 2 + depth * COLUMN, TOP + tallest * ROW + 40);
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" font-family="monospace" font-size="12">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(name));
    let _ = writeln!(
        out,
        r##"<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#1a4f9c"/></marker></defs>"##
    );
    let _ = writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
    let _ = writeln!(out, r#"<text x="12" y="24" font-size="14">{}</text>"#, escaped(name));
    for (from, to, label) in &edges {
        let ((x1, y1), (x2, y2)) = (place[*from as usize], place[*to as usize]);
        let dashes = if label == "\u{3c4}" { r#" stroke-dasharray="4 3""# } else { "" };
        let (path, tx, ty) = if from == to {
            let path = format!(
                "M{} {} C{} {} {} {} {} {}",
                x1 - 6,
                y1 - 14,
                x1 - 24,
                y1 - 46,
                x1 + 24,
                y1 - 46,
                x1 + 6,
                y1 - 15
            );
            (path, x1, y1 - 40)
        } else {
            // Curved, so that there and back do not lie on each other.
            let (mx, my) = ((x1 + x2) / 2, (y1 + y2) / 2);
            let bend: i64 = if column[*to as usize] > column[*from as usize] { -14 } else { 34 };
            let cy = (my as i64 + bend).max(0);
            let dx: i64 = if x2 > x1 {
                16
            } else if x2 < x1 {
                -16
            } else {
                0
            };
            let path = format!("M{} {y1} Q{mx} {cy} {} {y2}", x1 as i64 + dx, x2 as i64 - dx);
            (path, mx, usize::try_from(my as i64 + bend / 2).unwrap_or(0))
        };
        let _ = writeln!(
            out,
            r##"<path d="{path}" fill="none" stroke="#1a4f9c"{dashes} marker-end="url(#tip)"/>"##
        );
        let _ = writeln!(out, r#"<text x="{tx}" y="{ty}" text-anchor="middle">{}</text>"#, escaped(label));
    }
    for state in machine.states() {
        let (x, y) = place[state as usize];
        let (fill, text) = match machine.omega() {
            Some(omega) if omega == state => ("#e0e0e0", "\u{3a9}".to_owned()),
            _ if state == 0 => ("#d6e4ff", "0".to_owned()),
            _ => ("#ffffff", state.to_string()),
        };
        let _ = writeln!(out, r##"<circle cx="{x}" cy="{y}" r="15" fill="{fill}" stroke="#1a4f9c"/>"##);
        let _ = writeln!(out, r#"<text x="{x}" y="{}" text-anchor="middle">{text}</text>"#, y + 4);
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CheckOptions;
    use crate::lang::session::Script;

    fn machine(text: &str) -> (Script, Machine) {
        let Ok(mut script) = Script::from_text("test.csp", text) else { panic!("a correct script") };
        let process = script.process("P").expect("a process");
        let machine = script.with_checker(&CheckOptions::default(), |c| c.machine(process, true));
        (script, machine.expect("a finite process"))
    }

    #[test]
    fn large_machines_are_folded() {
        let (_, machine) =
            machine("channel a : {0..9}\nP = F(0)\nF(n) = n < 9 & a.n -> F(n+1) [] n > 0 & a.n -> F(n-1)");
        let (small, left_out) = folded(&machine, 4);
        assert_eq!((small.len(), left_out), (5, machine.len() - 4));
        assert!(small.from(4).iter().all(|&(_, t)| t < 4), "nothing inside of what is left out");
        assert_eq!(folded(&machine, 100), (machine.clone(), 0));
    }

    #[test]
    fn every_state_and_transition_is_drawn() {
        let (script, machine) = machine("channel a, b\nP = a -> b -> P [] b -> SKIP");
        let dot = dot(&script.arena().events, &machine, "P");
        assert_eq!(dot.matches(" -> ").count(), 1 + machine.transition_count(), "{dot}");
        assert!(dot.contains("doublecircle"));
        let svg = svg(&script.arena().events, &machine, "P");
        assert_eq!(svg.matches("<circle").count(), machine.len());
        assert_eq!(svg.matches("marker-end").count(), machine.transition_count());
        assert!(svg.trim_end().ends_with("</svg>"));
    }
}
