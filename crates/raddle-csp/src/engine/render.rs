//! Counterexamples for people and machines: text, JSON and SVG.
//!
//! The picture shows a row for each component and a column for each step: a dot where a component takes part, with its
//! own event beside it, dots of one step joined by a line; the top row is what the whole does. Hidden steps are grey,
//! the violation is red. Rows without a part in the run are left out of the picture, not of the data.

use std::fmt::Write;

use serde_json::{Value, json};

use super::verdict::{Behaviour, Counterexample, Inner, Offered, Outcome, Step};
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
        Behaviour::Revival { event, offers } => format!(
            "then it may offer only {} and do {}, which the specification does only where it offers more",
            set(events, offers),
            name(event)
        ),
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

/// Longest part of a run that is recognised as a loop, and how often it has to come to be folded.
const LOOP_LENGTH_MAX: usize = 24;
const LOOP_TIMES_MIN: usize = 3;

/// Writes repetitions once: `a, b, a, b, a, b` is `(a, b) 3 times`. Of all loops that start at a place the one that
/// covers most is folded.
fn folded(list: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < list.len() {
        let times = |length: usize| {
            let unit = &list[at..at + length];
            list[at..].chunks(length).take_while(|chunk| *chunk == unit).count()
        };
        let longest = LOOP_LENGTH_MAX.min((list.len() - at) / LOOP_TIMES_MIN);
        let best = (1..=longest)
            .map(|length| (times(length), length))
            .filter(|&(times, _)| times >= LOOP_TIMES_MIN)
            .max_by_key(|&(times, length)| (times * length, std::cmp::Reverse(length)));
        match best {
            Some((times, 1)) => {
                out.push(format!("{} {times} times", list[at]));
                at += times;
            }
            Some((times, length)) => {
                out.push(format!("({}) {times} times", list[at..at + length].join(", ")));
                at += times * length;
            }
            None => {
                out.push(list[at].clone());
                at += 1;
            }
        }
    }
    out
}

/// A trace with its repetitions written once.
pub fn folded_trace(events: &EventTable, list: &[EventId]) -> String {
    format!("<{}>", folded(&names(events, list)).join(", "))
}

/// Most lines of the list of steps.
const STEP_LINES_MAX: usize = 60;

/// Several lines: the trace, the violation, what each component did, and, where steps are hidden, in which order.
pub fn text(events: &EventTable, counterexample: &Counterexample) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "after {}", folded_trace(events, &counterexample.trace));
    for Offered { position, offers } in &counterexample.on_the_way {
        let event = events.name(counterexample.trace[*position]);
        let offers = set(events, offers);
        let _ = writeln!(out, "before event {}, {event}, it offered only {offers}", position + 1);
    }
    let _ = writeln!(out, "{}", sentence(events, &counterexample.behaviour));
    let width = counterexample.components.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).min(40);
    let inside = counterexample.components.iter().any(|c| !c.inside.is_empty());
    if counterexample.components.len() > 1 || inside {
        let _ = writeln!(out, "components:");
        for (i, component) in counterexample.components.iter().enumerate() {
            let own = folded_trace(events, &own_events(&counterexample.path, i));
            let _ = writeln!(out, "  {:width$}  {own}", component.name);
            inner_lines(events, &component.inside, 2, &mut out);
        }
    }
    let hidden = counterexample.path.iter().any(|s| s.event == EventId::TAU && !s.parts.is_empty());
    if counterexample.components.len() > 1 && hidden {
        let _ = writeln!(out, "steps:");
        step_lines(events, counterexample, &counterexample.path, &mut out);
    }
    if let Behaviour::Divergence { cycle } = &counterexample.behaviour {
        let _ = writeln!(out, "loop:");
        step_lines(events, counterexample, cycle, &mut out);
    }
    out
}

fn inner_lines(events: &EventTable, list: &[Inner], depth: usize, out: &mut String) {
    let width = list.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).min(40);
    for inner in list {
        let own = folded_trace(events, &inner.trace);
        let _ = writeln!(out, "{:indent$}{:width$}  {own}", "", inner.name, indent = 2 * depth);
        inner_lines(events, &inner.inside, depth + 1, out);
    }
}

/// One line a step; repetitions are folded, and the middle of what is still too long is left out.
fn step_lines(events: &EventTable, counterexample: &Counterexample, path: &[Step], out: &mut String) {
    let lines: Vec<String> = path
        .iter()
        .map(|step| {
            let parts: Vec<String> = step
                .parts
                .iter()
                .map(|&(c, e)| format!("{} does {}", counterexample.components[c].name, events.name(e)))
                .collect();
            let whole = events.name(step.event).to_string();
            match (step.event, parts.is_empty()) {
                (EventId::TAU, false) => parts.join(", "),
                (_, true) => whole,
                _ => format!("{whole}: {}", parts.join(", ")),
            }
        })
        .collect();
    let lines = folded(&lines);
    let left_out = lines.len().saturating_sub(STEP_LINES_MAX);
    for (i, line) in lines.iter().enumerate() {
        let middle = left_out > 0 && i >= STEP_LINES_MAX / 2 && i < STEP_LINES_MAX / 2 + left_out;
        if middle && i == STEP_LINES_MAX / 2 {
            let _ = writeln!(out, "  … {left_out} more");
        } else if !middle {
            let _ = writeln!(out, "  {line}");
        }
    }
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
        Behaviour::Revival { event, offers } => {
            let event = events.name(*event).to_string();
            json!({ "kind": "revival", "event": event, "offers": names(events, offers) })
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
            let mut entry = json!({ "name": c.name, "states": c.states, "trace": own });
            if !c.inside.is_empty() {
                entry["inside"] = inner_json(events, &c.inside);
            }
            entry
        })
        .collect();
    let mut shown = json!({
        "trace": names(events, &counterexample.trace),
        "violation": violation,
        "path": steps(&counterexample.path),
        "components": components,
    });
    if !counterexample.on_the_way.is_empty() {
        let entry = |o: &Offered| json!({ "before": o.position, "offers": names(events, &o.offers) });
        shown["on_the_way"] = counterexample.on_the_way.iter().map(entry).collect();
    }
    shown
}

fn inner_json(events: &EventTable, list: &[Inner]) -> Value {
    let entry = |inner: &Inner| {
        let inside = inner_json(events, &inner.inside);
        json!({ "name": inner.name, "trace": names(events, &inner.trace), "inside": inside })
    };
    list.iter().map(entry).collect()
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
            "by_neighbours": s.by_neighbours,
            "compile_seconds": s.compile_time.as_secs_f64(),
            "explore_seconds": s.explore_time.as_secs_f64(),
        },
    })
}

const ROW: usize = 34;
const COLUMN: usize = 96;
const TOP: usize = 70;
/// Pixels after which the timelines go on below.
const WIDTH_MAX: usize = 1600;
/// Characters of a line of text at the top.
const HEAD_LENGTH_MAX: usize = 190;

fn shortened(text: &str) -> String {
    if text.chars().count() <= HEAD_LENGTH_MAX {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(HEAD_LENGTH_MAX - 1).collect();
    short.push('…');
    short
}

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
    let sentence = shortened(&sentence(events, &counterexample.behaviour));
    let head = shortened(&format!("after {}", folded_trace(events, &counterexample.trace)));
    // Long runs are wrapped like text: bands of as many steps as fit, one below the other.
    let per_band = (WIDTH_MAX.saturating_sub(label_width) / COLUMN).max(2) - 1;
    let bands = steps.len().div_ceil(per_band).max(1);
    let band_height = (rows.len() + 1) * ROW + 40;
    let text_width = sentence.chars().count().max(head.chars().count()) * 8 + 40;
    let width = (label_width + (steps.len().min(per_band) + 1) * COLUMN).max(text_width);
    let height = TOP + bands * band_height + 20;
    let x = |column: usize| label_width + column % per_band * COLUMN + COLUMN / 2;
    let y = |row: usize, column: usize| TOP + column / per_band * band_height + row * ROW;
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" font-family="monospace" font-size="12">"#
    );
    let _ = writeln!(
        out,
        "<title>{}</title>",
        escaped(&format!("{} {sentence}", folded_trace(events, &counterexample.trace)))
    );
    let _ = writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
    let _ = writeln!(out, r#"<text x="12" y="24" font-size="14">{}</text>"#, escaped(&head));
    let _ =
        writeln!(out, r##"<text x="12" y="44" font-size="14" fill="#b00020">{}</text>"##, escaped(&sentence));
    let names = std::iter::once("system".to_string())
        .chain(rows.iter().map(|&c| counterexample.components[c].name.clone()));
    let names: Vec<String> = names.collect();
    for band in 0..bands {
        let first = band * per_band;
        let last = steps.len().min(first + per_band);
        for (row, name) in names.iter().enumerate() {
            let (y, weight) = (y(row, first), if row == 0 { "bold" } else { "normal" });
            let _ = writeln!(
                out,
                r#"<text x="12" y="{}" font-weight="{weight}">{}</text>"#,
                y + 4,
                escaped(name)
            );
            let _ = writeln!(
                out,
                r##"<line x1="{label_width}" y1="{y}" x2="{}" y2="{y}" stroke="#d0d0d0"/>"##,
                label_width + (last - first) * COLUMN
            );
        }
    }
    for (column, step) in steps.iter().enumerate() {
        let forbidden = column + 1 == loop_start
            && matches!(counterexample.behaviour, Behaviour::Event { .. } | Behaviour::Revival { .. });
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
            y(0, column),
            y(last, column)
        );
        for (row, event) in std::iter::once((0, step.event)).chain(places) {
            let _ = writeln!(
                out,
                r#"<circle cx="{}" cy="{}" r="4" fill="{colour}"/>"#,
                x(column),
                y(row, column)
            );
            let _ = writeln!(
                out,
                r#"<text x="{}" y="{}" text-anchor="middle" fill="{colour}">{}</text>"#,
                x(column),
                y(row, column) - 8,
                escaped(&events.name(event).to_string())
            );
        }
    }
    if !cycle.is_empty() {
        let mut start = loop_start;
        while start < steps.len() {
            let end = steps.len().min((start / per_band + 1) * per_band);
            let (from, to, y) = (x(start), x(end - 1), y(rows.len(), start) + 20);
            let _ = writeln!(out, r##"<line x1="{from}" y1="{y}" x2="{to}" y2="{y}" stroke="#b00020"/>"##);
            let _ = writeln!(out, r##"<text x="{from}" y="{}" fill="#b00020">for ever</text>"##, y + 16);
            start = end;
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn repetitions_are_folded() {
        assert_eq!(folded(&list("a b a b c")).join(" "), "a b a b c");
        assert_eq!(folded(&list("x a b a b a b c")).join(" "), "x (a, b) 3 times c");
        assert_eq!(folded(&list("a a a a b")).join(" "), "a 4 times b");
        assert_eq!(folded(&vec!["t".to_owned(); 75]).join(" "), "t 75 times");
        assert!(folded(&[]).is_empty());
    }

    /// What is folded stands for what it was folded from.
    #[test]
    fn folding_loses_nothing() {
        let mut random = crate::semantics::random::Random::new(7);
        for _ in 0..2_000 {
            let plain: Vec<String> =
                (0..random.below(40)).map(|_| ["a", "b"][random.below(2)].to_owned()).collect();
            let mut again = Vec::new();
            for entry in folded(&plain) {
                match entry.strip_suffix(" times").and_then(|e| e.rsplit_once(' ')) {
                    None => again.push(entry),
                    Some((unit, times)) => {
                        let unit = unit.trim_matches(['(', ')']).split(", ");
                        let unit: Vec<String> = unit.map(str::to_owned).collect();
                        for _ in 0..times.parse::<usize>().expect("a number") {
                            again.extend(unit.iter().cloned());
                        }
                    }
                }
            }
            assert_eq!(again, plain);
        }
    }
}
