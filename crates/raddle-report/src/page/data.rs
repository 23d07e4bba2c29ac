//! The pictures as data for the script. Names are short because a page of a hundred findings repeats them.

use super::details::{self, Waiting};
use super::excerpt::Places;
use crate::picture::{Line, Mark, Picture, Pictures, Row, Stretch};
use crate::stack;
use raddle_findings::{Finding, Frame};
use serde::Serialize;

/// What the script draws for one finding.
#[derive(Serialize)]
pub(super) struct Drawing {
    /// The erroneous run.
    bad: Option<Sheet>,
    /// The recorded run.
    good: Option<Sheet>,
    /// Stacks of the parties, one text each.
    stacks: Vec<String>,
    /// Threads and locks in a ring, for deadlocks: each waits for what the next one holds.
    cycle: Vec<Link>,
}

/// A thread of a deadlock.
#[derive(Serialize)]
struct Link {
    t: String,
    h: String,
    w: String,
}

#[derive(Serialize)]
struct Sheet {
    lanes: Vec<(String, String)>,
    rows: Vec<RowData>,
    /// Lane, what kind, of what, from, to, does it stay open?
    spans: Vec<(usize, &'static str, String, usize, usize, bool)>,
    /// Row and lane, row and lane, what kind, why.
    edges: Vec<(usize, usize, usize, usize, &'static str, String)>,
    more: usize,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowData {
    Fold(usize),
    Acts(Vec<ActData>),
}

#[derive(Serialize)]
struct ActData {
    l: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<usize>,
    w: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    p: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    f: String,
    /// The text of the source line.
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<String>,
    /// The line of the excerpt.
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    m: &'static str,
    /// Which stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<usize>,
}

/// The calls of a stack, without the indentation that they have in a terminal.
pub(super) fn calls(stack: &[Frame]) -> String {
    stack::lines(stack, false)
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn drawing(finding: &Finding, pictures: &Pictures, places: &Places, cycle: &[Waiting]) -> Drawing {
    let sheet = |picture: &Picture| (!picture.is_empty()).then(|| sheet(picture, places));
    let bad = sheet(&pictures.erroneous);
    let stacks = match bad {
        Some(_) => finding.parties.iter().take(16).map(|party| calls(&party.stack)).collect(),
        None => Vec::new(),
    };
    let link = |one: &Waiting| Link { t: one.thread.clone(), h: one.holds.clone(), w: one.wants.clone() };
    let cycle = if details::is_ring(cycle) { cycle.iter().map(link).collect() } else { Vec::new() };
    Drawing { bad, good: pictures.observed.as_ref().and_then(sheet), stacks, cycle }
}

fn sheet(picture: &Picture, places: &Places) -> Sheet {
    let act = |act: &crate::picture::Act| ActData {
        l: act.lane,
        n: act.number,
        w: act.words.clone(),
        p: act.spot.short(),
        f: crate::text::name(&act.spot.function),
        c: places.code(&act.spot),
        a: places.anchor(&act.spot),
        m: match act.mark {
            Mark::Plain => "",
            Mark::Moved => "moved",
            Mark::New => "new",
            Mark::Error => "error",
        },
        s: act.party,
    };
    Sheet {
        lanes: picture.lanes.iter().map(|lane| (lane.path.clone(), lane.about.clone())).collect(),
        rows: picture
            .rows
            .iter()
            .map(|row| match row {
                Row::Fold(steps) => RowData::Fold(*steps),
                Row::Acts(acts) => RowData::Acts(acts.iter().map(act).collect()),
            })
            .collect(),
        spans: picture
            .spans
            .iter()
            .map(|span| {
                let kind = match span.stretch {
                    Stretch::Holds => "holds",
                    Stretch::HoldsForReading => "reads",
                    Stretch::Waits => "waits",
                    Stretch::Region => "region",
                };
                (span.lane, kind, span.what.clone(), span.from, span.to, span.open)
            })
            .collect(),
        edges: picture
            .edges
            .iter()
            .map(|edge| {
                let kind = match edge.line {
                    Line::Ordered => "ordered",
                    Line::Missing => "missing",
                    Line::Lost => "lost",
                    Line::WaitsFor => "waits",
                };
                (edge.from.0, edge.from.1, edge.to.0, edge.to.1, kind, edge.why.clone())
            })
            .collect(),
        more: picture.lanes_left_out,
    }
}
