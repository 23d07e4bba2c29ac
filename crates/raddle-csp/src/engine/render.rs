//! Counterexamples for people and machines: text, JSON and SVG.
//!
//! The picture shows a row for each component and a column for each step: a dot where a component takes part, with its
//! own event beside it, dots of one step joined by a line; the top row is what the whole does. Hidden steps are grey,
//! the violation is red. Rows without a part in the run are left out of the picture, not of the data.

use std::fmt::Write;

use serde_json::{Value, json};

use super::verdict::{Behaviour, Counterexample, Outcome, Step};
use crate::process::{EventId, EventTable};

fn names(events: &EventTable, list: &[EventId]) -> Vec<String> {
    list.iter().map(|&e| events.name(e).to_string()).collect()
}

fn set(events: &EventTable, list: &[EventId]) -> String {
    format!("{{{}}}", names(events, list).join(", "))
}

/// One sentence that says what is wrong after the trace.
pub fn sentence(events: &EventTable, behaviour: &Behaviour) -> String {
    let name = |e: &EventId| events.name(*e).to_string();
    match behaviour {
        Behaviour::Event { event, allowed } if allowed.is_empty() => {
            format!("then it can do {}, where the specification allows nothing", name(event))
        }
        Behaviour::Event { event, allowed } => {
            format!(
                "then it can do {}, where the specification allows only {}",
                name(event),
                set(events, allowed)
            )
        }
        Behaviour::Refusal { offers, required } => {
            let wanted: Vec<String> = required.iter().map(|r| set(events, r)).collect();
            let offers =
                if offers.is_empty() { "nothing".into() } else { format!("only {}", set(events, offers)) };
            match &wanted[..] {
                [] => format!("then it may offer {offers} for good, where the specification is never stable"),
                [one] => format!("then it may offer {offers}, where the specification insists on {one}"),
                _ => format!(
                    "then it may offer {offers}, where the specification insists on one of {}",
                    wanted.join(" ")
                ),
            }
        }
        Behaviour::Deadlock => "then nothing can happen any more".into(),
        Behaviour::Divergence { cycle } => {
            format!(
                "then it can go on for ever without a visible event (a loop of {} hidden steps)",
                cycle.len()
            )
        }
        Behaviour::Nondeterminism { event, offers } => {
            let offers = if offers.is_empty() { "nothing".into() } else { set(events, offers) };
            format!("then it can do {}, and can also refuse it, offering {offers}", name(event))
        }
        Behaviour::MissingTrace { event: Some(event), possible } => {
            format!("then it cannot do {}; possible is {}", name(event), set(events, possible))
        }
        Behaviour::MissingTrace { event: None, possible } => {
            format!("then it cannot refuse all of {}", set(events, possible))
        }
    }
}

/// The trace as CSPM writes it.
pub fn trace(events: &EventTable, list: &[EventId]) -> String {
    format!("<{}>", names(events, list).join(", "))
}

/// Several lines: the trace, the violation, and what each component did.
pub fn text(events: &EventTable, counterexample: &Counterexample) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "after {}", trace(events, &counterexample.trace));
    let _ = writeln!(out, "{}", sentence(events, &counterexample.behaviour));
    let width = counterexample.components.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).min(40);
    if counterexample.components.len() > 1 {
        let _ = writeln!(out, "components:");
        for (i, component) in counterexample.components.iter().enumerate() {
            let own = names(events, &own_events(&counterexample.path, i));
            let _ = writeln!(out, "  {:width$}  <{}>", component.name, own.join(", "));
        }
    }
    if let Behaviour::Divergence { cycle } = &counterexample.behaviour {
        let _ = writeln!(out, "loop:");
        for step in cycle {
            let parts: Vec<String> = step
                .parts
                .iter()
                .map(|&(c, e)| format!("{} does {}", counterexample.components[c].name, events.name(e)))
                .collect();
            let _ = writeln!(out, "  {}", if parts.is_empty() { "τ".into() } else { parts.join(", ") });
        }
    }
    out
}

/// The events of one component along a path, its `τ`s left out.
pub fn own_events(path: &[Step], component: usize) -> Vec<EventId> {
    path.iter()
        .flat_map(|s| &s.parts)
        .filter(|&&(c, e)| c == component && e != EventId::TAU)
        .map(|&(_, e)| e)
        .collect()
}

fn step_json(events: &EventTable, counterexample: &Counterexample, step: &Step) -> Value {
    let parts: Vec<Value> = step
        .parts
        .iter()
        .map(|&(c, e)| {
            json!({ "component": c, "name": counterexample.components[c].name, "event": events.name(e).to_string() })
        })
        .collect();
    json!({ "event": events.name(step.event).to_string(), "parts": parts })
}

/// A counterexample as JSON: `trace`, `violation` (with `kind`), `path` (steps with parts), `components`.
pub fn json(events: &EventTable, counterexample: &Counterexample) -> Value {
    let steps =
        |list: &[Step]| -> Vec<Value> { list.iter().map(|s| step_json(events, counterexample, s)).collect() };
    let lists =
        |sets: &[Vec<EventId>]| -> Vec<Vec<String>> { sets.iter().map(|s| names(events, s)).collect() };
    let mut violation = match &counterexample.behaviour {
        Behaviour::Event { event, allowed } => {
            json!({ "kind": "event", "event": events.name(*event).to_string(), "allowed": names(events, allowed) })
        }
        Behaviour::Refusal { offers, required } => {
            json!({ "kind": "refusal", "offers": names(events, offers), "required": lists(required) })
        }
        Behaviour::Deadlock => json!({ "kind": "deadlock" }),
        Behaviour::Divergence { cycle } => json!({ "kind": "divergence", "cycle": steps(cycle) }),
        Behaviour::Nondeterminism { event, offers } => {
            let event = events.name(*event).to_string();
            json!({ "kind": "nondeterminism", "event": event, "offers": names(events, offers) })
        }
        Behaviour::MissingTrace { event, possible } => {
            let event = event.map(|e| events.name(e).to_string());
            json!({ "kind": "missing trace", "event": event, "possible": names(events, possible) })
        }
    };
    violation["message"] = sentence(events, &counterexample.behaviour).into();
    let components: Vec<Value> = counterexample
        .components
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let own = names(events, &own_events(&counterexample.path, i));
            json!({ "name": c.name, "states": c.states, "trace": own })
        })
        .collect();
    json!({
        "trace": names(events, &counterexample.trace),
        "violation": violation,
        "path": steps(&counterexample.path),
        "components": components,
    })
}

/// An outcome as JSON: `holds`, `counterexamples`, `statistics`.
pub fn outcome_json(events: &EventTable, outcome: &Outcome) -> Value {
    let s = &outcome.statistics;
    json!({
        "holds": outcome.holds,
        "property_holds": outcome.property_holds,
        "counterexamples": outcome.counterexamples.iter().map(|c| json(events, c)).collect::<Vec<_>>(),
        "statistics": {
            "pairs": s.pairs,
            "transitions": s.transitions,
            "spec_nodes": s.spec_nodes,
            "plies": s.plies,
            "components": s.components,
            "state_bits": s.state_bits,
            "state_bytes": s.state_bytes,
            "memory_bytes_max": s.memory_bytes_max,
            "spilled_bytes": s.spilled_bytes,
            "compile_seconds": s.compile_time.as_secs_f64(),
            "explore_seconds": s.explore_time.as_secs_f64(),
        },
    })
}

const ROW: usize = 34;
const COLUMN: usize = 96;
const TOP: usize = 70;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The component timelines as a picture.
pub fn svg(events: &EventTable, counterexample: &Counterexample) -> String {
    let cycle: &[Step] = match &counterexample.behaviour {
        Behaviour::Divergence { cycle } => cycle,
        _ => &[],
    };
    let steps: Vec<&Step> = counterexample.path.iter().chain(cycle).collect();
    let loop_start = counterexample.path.len();
    let rows: Vec<usize> = (0..counterexample.components.len())
        .filter(|&c| steps.iter().any(|s| s.parts.iter().any(|&(p, _)| p == c)))
        .collect();
    let label_width = rows
        .iter()
        .map(|&c| counterexample.components[c].name.chars().count())
        .max()
        .unwrap_or(5)
        .clamp(5, 40)
        * 8
        + 24;
    let sentence = sentence(events, &counterexample.behaviour);
    let width = (label_width + (steps.len() + 1) * COLUMN).max(sentence.chars().count() * 8 + 40);
    let height = TOP + (rows.len() + 1) * ROW + 60;
    let x = |column: usize| label_width + column * COLUMN + COLUMN / 2;
    let y = |row: usize| TOP + row * ROW;
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" font-family="monospace" font-size="12">"#
    );
    let _ = writeln!(
        out,
        "<title>{}</title>",
        escaped(&format!("{} {sentence}", trace(events, &counterexample.trace)))
    );
    let _ = writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
    let _ = writeln!(
        out,
        r#"<text x="12" y="24" font-size="14">after {}</text>"#,
        escaped(&trace(events, &counterexample.trace))
    );
    let _ =
        writeln!(out, r##"<text x="12" y="44" font-size="14" fill="#b00020">{}</text>"##, escaped(&sentence));
    let names = std::iter::once("system".to_string())
        .chain(rows.iter().map(|&c| counterexample.components[c].name.clone()));
    for (row, name) in names.enumerate() {
        let (y, weight) = (y(row), if row == 0 { "bold" } else { "normal" });
        let _ =
            writeln!(out, r#"<text x="12" y="{}" font-weight="{weight}">{}</text>"#, y + 4, escaped(&name));
        let _ = writeln!(
            out,
            r##"<line x1="{label_width}" y1="{y}" x2="{}" y2="{y}" stroke="#d0d0d0"/>"##,
            label_width + steps.len() * COLUMN
        );
    }
    for (column, step) in steps.iter().enumerate() {
        let forbidden =
            column + 1 == loop_start && matches!(counterexample.behaviour, Behaviour::Event { .. });
        let colour = match step.event {
            _ if forbidden => "#b00020",
            _ if column >= loop_start => "#b00020",
            EventId::TAU => "#808080",
            _ => "#1a4f9c",
        };
        let places: Vec<(usize, EventId)> = step
            .parts
            .iter()
            .filter_map(|&(c, e)| rows.iter().position(|&r| r == c).map(|row| (row + 1, e)))
            .collect();
        let last = places.iter().map(|&(row, _)| row).max().unwrap_or(0);
        let _ = writeln!(
            out,
            r#"<line x1="{0}" y1="{1}" x2="{0}" y2="{2}" stroke="{colour}" stroke-dasharray="3 3"/>"#,
            x(column),
            y(0),
            y(last)
        );
        for (row, event) in std::iter::once((0, step.event)).chain(places) {
            let _ = writeln!(out, r#"<circle cx="{}" cy="{}" r="4" fill="{colour}"/>"#, x(column), y(row));
            let _ = writeln!(
                out,
                r#"<text x="{}" y="{}" text-anchor="middle" fill="{colour}">{}</text>"#,
                x(column),
                y(row) - 8,
                escaped(&events.name(event).to_string())
            );
        }
    }
    if !cycle.is_empty() {
        let (from, to, y) = (x(loop_start), x(steps.len() - 1), y(rows.len()) + 20);
        let _ = writeln!(out, r##"<line x1="{from}" y1="{y}" x2="{to}" y2="{y}" stroke="#b00020"/>"##);
        let _ = writeln!(out, r##"<text x="{from}" y="{}" fill="#b00020">for ever</text>"##, y + 16);
    }
    out.push_str("</svg>\n");
    out
}
