//! What a finding of one kind has beyond the lanes: the two sides of a race, the cycle of a deadlock, the serial orders of a region.

use crate::picture::Spot;
use crate::text::{code, list, name};
use crate::wording::{English, held, object_short, thread};
use raddle_findings::finding::Creation;
use raddle_findings::{Action, Detail, Finding, Kind, Party, Wording};
use raddle_trace::schedule::Schedule;
use std::collections::BTreeSet;

/// Parties that are told.
const PARTIES_MAX: usize = 16;

/// One side.
pub(super) struct Side {
    pub title: String,
    pub action: String,
    pub stack: String,
    pub locks: Vec<String>,
    /// The last synchronisation of the thread before.
    pub last: String,
    /// Who created the thread, and where.
    pub created: String,
}

/// One step around the cycle of a deadlock.
pub(super) struct Waiting {
    pub thread: String,
    /// The locks that it holds, as words and one by one.
    pub holds: String,
    pub locks: Vec<String>,
    /// Where the locks were acquired.
    pub acquired: String,
    pub wants: String,
    pub place: String,
    pub holder: String,
}

#[derive(Default)]
pub(super) struct Details {
    pub heading: &'static str,
    pub sides: Vec<Side>,
    pub more: usize,
    /// What the locks of both sides have in common, for races.
    pub common: String,
    pub cycle: Vec<Waiting>,
    pub advice: String,
    pub serial: Vec<String>,
}

pub(super) fn of(finding: &Finding, schedule: Option<&Schedule>) -> Details {
    let parties = finding.parties.iter().take(PARTIES_MAX);
    let mut details = Details {
        heading: heading(finding),
        sides: parties.map(|party| side(party, schedule)).collect(),
        more: finding.parties.len().saturating_sub(PARTIES_MAX),
        ..Details::default()
    };
    if finding.kind.is_race() {
        details.common = common(&finding.parties);
    }
    if matches!(finding.kind, Kind::Deadlock | Kind::LockOrder) {
        details.cycle = cycle(finding);
        details.advice = advice(&details.cycle);
    }
    if let Detail::Pattern { accesses } = &finding.detail {
        details.serial = serial(accesses);
    }
    details
}

fn heading(finding: &Finding) -> &'static str {
    match finding.kind {
        kind if kind.is_race() => "The two accesses",
        Kind::Crash | Kind::AssertionFailure => "The threads at the end",
        _ => "The threads that take part",
    }
}

fn side(party: &Party, schedule: Option<&Schedule>) -> Side {
    let english = English::default();
    Side {
        title: english.thread(party),
        action: english.action(party),
        stack: super::data::calls(&party.stack),
        locks: party.locks.iter().map(held).collect(),
        created: party.created.as_deref().map(created).unwrap_or_default(),
        last: schedule.and_then(|schedule| last_step(schedule, &party.thread.path)).unwrap_or_default(),
    }
}

fn created(creation: &Creation) -> String {
    let at = Spot::of_stack(&creation.stack).short();
    let at = if at.is_empty() { at } else { format!(" at {at}") };
    format!("by {}{at}", thread(&creation.by))
}

/// The last visible operation of a thread in the schedule.
fn last_step(schedule: &Schedule, thread: &str) -> Option<String> {
    let step = schedule.steps.iter().rev().find(|step| schedule.name(step.thread) == thread)?;
    let spot = Spot::of_comment(schedule.name(step.comment)).short();
    let at = if spot.is_empty() { String::new() } else { format!(" at {spot}") };
    Some(format!("{}{at}", code(step.kind.word())))
}

/// The intersection of the locks held by the first two parties.
fn common(parties: &[Party]) -> String {
    let [one, two, ..] = parties else { return String::new() };
    let locks = |party: &Party| -> BTreeSet<String> {
        party.locks.iter().map(|held| object_short(&held.lock)).collect()
    };
    let (one, two) = (locks(one), locks(two));
    let both: Vec<String> = one.intersection(&two).cloned().collect();
    match (both.is_empty(), one.is_empty() && two.is_empty()) {
        (true, true) => "neither thread is known to hold a lock: nothing keeps the accesses apart".to_owned(),
        (true, false) => "no lock is held on both sides: nothing keeps the accesses apart".to_owned(),
        (false, _) => format!("held on both sides: {}", list(&both)),
    }
}

/// Is what this thread waits for held by the other?
fn waits_for(one: &Waiting, other: &Waiting) -> bool {
    other.locks.contains(&one.wants)
}

/// Does each thread wait for what the next one holds?
pub(super) fn is_ring(cycle: &[Waiting]) -> bool {
    cycle.len() > 1 && (0..cycle.len()).all(|at| waits_for(&cycle[at], &cycle[(at + 1) % cycle.len()]))
}

/// Brings the threads into an order in which each waits for what the next one holds, as far as that is known.
fn in_order(mut cycle: Vec<Waiting>) -> Vec<Waiting> {
    for at in 1..cycle.len() {
        if let Some(next) = (at..cycle.len()).find(|&other| waits_for(&cycle[at - 1], &cycle[other])) {
            cycle.swap(at, next);
        }
    }
    cycle
}

fn cycle(finding: &Finding) -> Vec<Waiting> {
    let mut cycle = Vec::new();
    for party in finding.parties.iter().take(PARTIES_MAX) {
        let (wants, holder) = match &party.action {
            Action::Waits { object, holder, .. } => (object, holder.clone()),
            Action::Acquires { object, .. } => (object, None),
            _ => continue,
        };
        let Some(wants) = wants else { continue };
        let holds: Vec<String> = party.locks.iter().map(|held| object_short(&held.lock)).collect();
        // Where the finding does not say what a thread holds: what another party waits for and this one has.
        let holds = match holds.is_empty() {
            false => holds,
            true => held_by(finding, &party.thread.path),
        };
        let acquired = party.locks.iter().map(|held| Spot::of_stack(&held.acquired).short());
        let acquired: Vec<String> = acquired.filter(|place| !place.is_empty()).collect();
        cycle.push(Waiting {
            thread: thread(&party.thread),
            acquired: acquired.join(", "),
            holds: list(&holds),
            locks: holds,
            wants: object_short(wants),
            place: Spot::of_stack(&party.stack).short(),
            holder: holder.map(|path| format!("held by thread {}", name(&path))).unwrap_or_default(),
        });
    }
    in_order(cycle)
}

fn held_by(finding: &Finding, path: &str) -> Vec<String> {
    let wanted = finding.parties.iter().filter_map(|party| match &party.action {
        Action::Waits { object: Some(object), holder: Some(holder), .. } if holder == path => {
            Some(object_short(object))
        }
        _ => None,
    });
    wanted.collect()
}

/// Which edge of the lock order to turn: any one does; the last thread is as good as another.
fn advice(cycle: &[Waiting]) -> String {
    match cycle {
        [.., first, last] if !last.holds.is_empty() && !first.holds.is_empty() => format!(
            "to break the cycle, turn one edge of the lock order: let {} acquire {} before {}, as the others do",
            last.thread, last.wants, last.holds
        ),
        _ => String::new(),
    }
}

/// The serial orders of `read write read` (region, interference, region), and why neither gives the same result.
fn serial(accesses: &str) -> Vec<String> {
    let parts: Vec<&str> = accesses.split_whitespace().collect();
    let [first, between, last] = parts.as_slice() else { return Vec::new() };
    let result = match (*first, *between, *last) {
        ("read", "write", "read") => {
            "the region reads two different values; in every serial order it reads one"
        }
        ("write", "write", "read") => {
            "the region reads what another thread wrote; in every serial order it reads its own"
        }
        ("write", "read", "write") => "the other thread sees a value that no serial order ever shows",
        ("read", "write", "write") => {
            "the other thread's write is lost; in every serial order it is read or stays"
        }
        _ => "no serial order has the same result",
    };
    vec![
        format!("this run: region {first}, other thread {between}, region {last}"),
        format!("serial: region {first}, region {last}, then other thread {between}"),
        format!("serial: other thread {between}, then region {first}, region {last}"),
        result.to_owned(),
    ]
}
