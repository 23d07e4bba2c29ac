//! Does a run along a schedule show what the schedule promises?
//!
//! A race is shown when both threads are parked, at the same time, before their two accesses, and the addresses that they
//! are about to access overlap. A deadlock is shown when every thread that the schedule says is blocked waits, and nobody can
//! help it, in the very operations that the schedule names. A schedule with `expect` is shown when the process ends that way, a crash
//! in the same place of the program's own code; one with `unordered`, when
//! nothing orders the accesses of the two places in the run. Everything else is an [`Attempt`] that failed, with the reason.

use super::super::hunt::{properties, unordered};
use crate::commands::Ctx;
use crate::launch::shrinking::{self, missing};
use crate::launch::steering::{self, Outcome, Steered, SteeredParty, Then};
use crate::launch::{Launch, Streams};
use raddle_findings::basis::{Attempt, Ended, Shown, Step, ThreadState};
use raddle_trace::schedule::Schedule;
use raddle_wire::step::StepWord;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// What one run along a schedule showed.
#[derive(Clone, Debug)]
pub enum Judged {
    Shown(Shown),
    Not(Attempt),
    /// The schedule promises nothing; the program followed it and ended.
    Followed(ExitStatus),
}

/// Runs the program along the schedule and judges the run.
pub fn judge(
    launch: &Launch,
    schedule: &Schedule,
    then: Then,
    streams: Streams,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<Judged> {
    if !schedule.unordered.is_empty() {
        let shown = unordered::shows(launch, schedule, timeout, ctx)?;
        return Ok(if shown { Judged::Shown(Shown::Unordered) } else { Judged::Not(Attempt::Ordered) });
    }
    if schedule.head.property.is_some() {
        return properties::judge(launch, schedule, timeout);
    }
    let config = steering::replay_config(schedule, then)?;
    let steered = steering::run(launch, &config, streams, timeout)?;
    Ok(of_run(schedule, &steered))
}

/// As [`judge`], and keeps a trace of the run at `path`. Schedules about unordered accesses and properties are judged by
/// a trace of their own, which is made beside.
pub fn judge_recorded(
    launch: &Launch,
    schedule: &Schedule,
    then: Then,
    streams: Streams,
    timeout: Duration,
    path: &Path,
    ctx: &Ctx,
) -> anyhow::Result<Judged> {
    let config = steering::replay_config(schedule, then)?;
    let steered = steering::run_recorded(launch, &config, streams, timeout, path)?;
    match schedule.unordered.is_empty() && schedule.head.property.is_none() {
        true => Ok(of_run(schedule, &steered)),
        false => judge(launch, schedule, then, Streams::Silent, timeout, ctx),
    }
}

/// Judges a finished run.
pub fn of_run(schedule: &Schedule, steered: &Steered) -> Judged {
    if let Some(shown) = shrinking::shows(schedule, steered) {
        return match (shown, &steered.outcome) {
            (true, Outcome::Deadlock(_)) => Judged::Shown(Shown::Blocked),
            (true, _) => Judged::Shown(Shown::Ended),
            (false, _) => Judged::Not(attempt(schedule, steered)),
        };
    }
    match &steered.outcome {
        Outcome::Parked(parties) if !schedule.stops.is_empty() => match overlap(parties) {
            true => Judged::Shown(Shown::Parked),
            false => Judged::Not(Attempt::OtherMemory),
        },
        Outcome::Deadlock(parties) if !schedule.blocks.is_empty() => {
            let missing = missing(schedule, parties);
            match missing.is_empty() {
                true => Judged::Shown(Shown::Blocked),
                false => Judged::Not(Attempt::OtherDeadlock { missing }),
            }
        }
        Outcome::Ended(status) if schedule.stops.is_empty() && schedule.blocks.is_empty() => {
            Judged::Followed(*status)
        }
        _ => Judged::Not(attempt(schedule, steered)),
    }
}

fn overlap(parties: &[SteeredParty]) -> bool {
    let conflict = |a: &SteeredParty, b: &SteeredParty| {
        let (a_end, b_end) = (a.object + a.bytes.max(1), b.object + b.bytes.max(1));
        a.object < b_end && b.object < a_end && (a.writes || b.writes)
    };
    parties.iter().enumerate().any(|(at, a)| parties[at + 1..].iter().any(|b| conflict(a, b)))
}

/// How a process ended.
pub fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}

/// Why a run did not show it.
pub fn attempt(schedule: &Schedule, steered: &Steered) -> Attempt {
    let names = schedule.threads();
    let name = |hash: u64| {
        let known = names.iter().find(|name| steering::thread_hash(name) == hash);
        known.map_or(String::new(), |name| (*name).to_owned())
    };
    let state = |party: &SteeredParty| ThreadState {
        thread: name(party.path),
        phase: party.phase.to_owned(),
        at: party.operation.map(|_| found(party)),
    };
    let after_steps = steered.steps;
    match &steered.outcome {
        Outcome::Diverged(parties) => match parties.first() {
            Some(party) => Attempt::Diverged {
                after_steps,
                thread: name(party.path),
                expected: party.expected.map(|step| expected(schedule, party, step)),
                found: Some(found(party)),
            },
            None => Attempt::Diverged { after_steps, thread: String::new(), expected: None, found: None },
        },
        Outcome::Stuck(parties) | Outcome::Parked(parties) => {
            Attempt::Standstill { after_steps, threads: parties.iter().map(state).collect() }
        }
        Outcome::Deadlock(parties) => Attempt::OtherDeadlock { missing: missing(schedule, parties) },
        Outcome::TooManyThreads => Attempt::TooManyThreads,
        Outcome::Ended(status) => Attempt::Ended { how: ended(*status) },
        Outcome::TimedOut(parties) => Attempt::TimedOut { threads: parties.iter().map(state).collect() },
    }
}

fn found(party: &SteeredParty) -> Step {
    Step {
        operation: party.operation.map_or("access", |kind| kind.word()).to_owned(),
        ordinal: party.ordinal,
        place: party.site.clone(),
    }
}

fn expected(schedule: &Schedule, party: &SteeredParty, step: StepWord) -> Step {
    // The schedule knows where the step was made in the run that it comes from.
    let place = schedule
        .steps
        .iter()
        .find(|known| {
            known.ordinal == step.ordinal && steering::thread_hash(schedule.name(known.thread)) == party.path
        })
        .map_or(String::new(), |known| schedule.name(known.comment).to_owned());
    let word = raddle_wire::step::WORDS.get(usize::from(step.kind)).copied().unwrap_or("?");
    Step { operation: word.to_owned(), ordinal: step.ordinal, place }
}
