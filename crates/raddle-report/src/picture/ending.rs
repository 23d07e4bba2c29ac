//! How a picture ends: the parties of the finding, as acts.
//!
//! Threads that stand at their places at one moment (both accesses of a race, all threads of a deadlock, everybody in a crash) are
//! one row. Where the order matters (a region and what comes between, a signal and the wait after it) each party is a row of its own.

use super::order::{begins_to_wait, is_signal};
use super::run::Spot;
use super::{Act, Edge, Line, Mark, Row, Span, Stretch};
use crate::text::name;
use crate::wording::English;
use raddle_findings::{Action, Finding, Kind, Party, Role, Wait, Wording};
use raddle_trace::schedule::StepKind;

/// Parties of a finding that are drawn.
pub(super) const PARTIES_MAX: usize = 16;

/// Which parties belong to which row.
pub(super) fn moments(finding: &Finding) -> Vec<Vec<usize>> {
    let mut parties: Vec<usize> = (0..finding.parties.len().min(PARTIES_MAX)).collect();
    if at_once(finding, &parties) {
        return if parties.is_empty() { Vec::new() } else { vec![parties] };
    }
    parties.sort_by_key(|&party| rank(&finding.parties[party]));
    parties.into_iter().map(|party| vec![party]).collect()
}

fn at_once(finding: &Finding, parties: &[usize]) -> bool {
    let ordered = matches!(
        finding.kind,
        Kind::AtomicityViolation
            | Kind::HighLevelRace
            | Kind::OrderViolation
            | Kind::ContractViolation
            | Kind::MissedSignal
            | Kind::LockOrder
            | Kind::LockMisuse
            | Kind::Starvation
    );
    let distinct = |at: usize| {
        let path = &finding.parties[parties[at]].thread.path;
        path.is_empty() || parties[..at].iter().all(|&other| finding.parties[other].thread.path != *path)
    };
    !ordered && (0..parties.len()).all(distinct)
}

/// What comes first in the erroneous run.
fn rank(party: &Party) -> u8 {
    match &party.action {
        Action::SignalsNobody { .. } => 0,
        Action::Waits { .. } => 3,
        Action::Plays { role, .. } => match role {
            Role::BeginsRegion
            | Role::BeginsSequence
            | Role::ComesFirst
            | Role::Violates
            | Role::AccessesOne => 0,
            Role::AccessesSome => 0,
            Role::InsideRegion | Role::CommitsRegion => 1,
            Role::Interferes
            | Role::InterruptsSequence
            | Role::EndsInterruption
            | Role::ShouldComeFirst
            | Role::AccessesTogether
            | Role::RepeatsItself
            | Role::AcquiresAgain
            | Role::Unknown => 2,
            Role::ClosesCycle | Role::AccessesOther => 3,
            Role::EndsRegion | Role::EndsSequence | Role::AccessesOthers => 4,
        },
        _ => 2,
    }
}

/// Is this party's part one of the steps of the run, rather than what comes after them?
pub(super) fn is_step(party: &Party, kind: StepKind) -> bool {
    match &party.action {
        Action::SignalsNobody { .. } => is_signal(kind),
        Action::Waits { wait, .. } => *wait == Wait::Signal && begins_to_wait(kind),
        _ => false,
    }
}

pub(super) fn in_region(action: &Action) -> bool {
    let Action::Plays { role, .. } = action else { return false };
    matches!(
        role,
        Role::BeginsRegion
            | Role::InsideRegion
            | Role::CommitsRegion
            | Role::EndsRegion
            | Role::BeginsSequence
            | Role::EndsSequence
    )
}

/// A party as an act in its lane.
pub(super) fn act(party: &Party, number: usize, lane: usize) -> Act {
    Act {
        lane,
        number: None,
        words: English::default().action(party),
        spot: Spot::of_stack(&party.stack),
        // Where others were when the process ended is no error of theirs.
        mark: if matches!(party.action, Action::IsAt) { Mark::Plain } else { Mark::Error },
        party: Some(number),
        tells_that_nobody_waits: matches!(party.action, Action::SignalsNobody { .. }),
    }
}

/// Lines and stretches of the ending. `rows`: all rows of the picture, the ending last.
pub(super) fn decorate(finding: &Finding, rows: &[Row], spans: &mut Vec<Span>, edges: &mut Vec<Edge>) {
    let mut placed: Vec<(usize, &Act, &Party)> = Vec::new();
    for (row, acts) in rows.iter().enumerate() {
        for act in acts.acts() {
            if let Some(party) = act.party {
                placed.push((row, act, &finding.parties[party]));
            }
        }
    }
    for &(row, act, party) in &placed {
        match &party.action {
            Action::Waits { object, holder, .. } => {
                let what = object.as_ref().and_then(|object| object.name.clone()).unwrap_or_default();
                let open = |span: &Span| span.lane == act.lane && span.stretch == Stretch::Waits && span.open;
                if !spans.iter().any(open) {
                    let (lane, stretch) = (act.lane, Stretch::Waits);
                    let to = rows.len() - 1;
                    spans.push(Span { lane, stretch, what: what.clone(), from: row, to, open: true });
                }
                let held = placed.iter().find(|(_, _, other)| Some(&other.thread.path) == holder.as_ref());
                if let Some((other, holding, _)) = held {
                    edges.push(Edge {
                        from: (row, act.lane),
                        to: (*other, holding.lane),
                        line: Line::WaitsFor,
                        why: format!("waits for {}", name(&what)).trim_end_matches("for ").to_owned(),
                    });
                }
            }
            Action::SignalsNobody { .. } => {
                let here = (row, act.lane);
                if !edges.iter().any(|edge| edge.line == Line::Lost && edge.from == here) {
                    let why = "nobody waits: the signal is lost".to_owned();
                    edges.push(Edge { from: here, to: here, line: Line::Lost, why });
                }
            }
            _ => {}
        }
    }
    if finding.kind.is_race()
        && let [(row, one, _), (other_row, two, _), ..] = placed.as_slice()
    {
        edges.push(Edge {
            from: (*row, one.lane),
            to: (*other_row, two.lane),
            line: Line::Missing,
            why: "nothing orders these two accesses".to_owned(),
        });
    }
    let region: Vec<&(usize, &Act, &Party)> =
        placed.iter().filter(|(_, _, party)| in_region(&party.action)).collect();
    if let (Some((from, first, _)), Some((to, last, _))) = (region.first(), region.last())
        && first.lane == last.lane
        && from < to
    {
        let what = "should be atomic".to_owned();
        spans.push(Span {
            lane: first.lane,
            stretch: Stretch::Region,
            what,
            from: *from,
            to: *to,
            open: false,
        });
    }
}
