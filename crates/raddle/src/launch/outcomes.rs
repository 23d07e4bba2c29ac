//! From the outcomes of an exploration to findings: runs that ended in the same error are one finding.
//!
//! What tells errors apart is how a run ended, not what it printed before: a racy program has as many outputs as runs. Of each
//! error the first run is repeated, shrunk to a schedule with few context switches, and replayed from the stored file before
//! it is called confirmed.

use super::exploring::Plan;
use super::livelock;
use super::shrinking::{self, Kept};
use crate::commands::Ctx;
use crate::evidence::ending;
use crate::evidence::verify::verify;
use raddle_explore::{Blocked, Campaign, Ending, Observation, Seen};
use raddle_findings::basis::Ended;
use raddle_findings::naming::Namer;
use raddle_findings::{Action, Attempt, Basis, Detail, Finding, Frame, Kind, Party, Store, Thread, Wait};
use raddle_trace::crash::End;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::Schedule;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// What finds them.
const BY: &str = "explore";

/// Runs that ended in the same way.
pub struct Group<'a> {
    pub ending: &'a Ending,
    /// The first run.
    pub observation: &'a Observation,
    pub seen: Seen,
}

/// The outcomes of a campaign by ending, the earliest first.
pub fn groups(campaign: &Campaign) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(&Ending, &str), Group<'_>> = BTreeMap::new();
    for (observation, seen) in campaign.outcomes() {
        let group = groups.entry((&observation.ending, &observation.place)).or_insert_with(|| Group {
            ending: &observation.ending,
            observation,
            seen: Seen { count: 0, ..seen.clone() },
        });
        group.seen.count += seen.count;
    }
    let mut groups: Vec<Group<'_>> = groups.into_values().collect();
    groups.sort_by_key(|group| group.seen.first_run);
    groups
}

/// An error of an exploration.
pub struct Explored {
    pub finding: Finding,
    pub schedule: Option<Schedule>,
    /// Context switches of the run as it was found, and of the schedule.
    pub switches: Option<(usize, usize)>,
}

/// What a group of runs is as a finding; `again` repeats the first of them. `None`: it is no error of the program.
pub fn explored(
    plan: &Plan<'_>,
    group: &Group<'_>,
    again: &RegionConfig,
    store: Option<&Store>,
    runs: u64,
    stop: &AtomicBool,
    ctx: &Ctx,
) -> anyhow::Result<Option<Explored>> {
    let kind = match group.ending {
        Ending::Exit(0) | Ending::Allowed(_) => return Ok(None),
        Ending::Exit(_) | Ending::Unwanted => Kind::FailedStatus,
        Ending::WrongOutput(_) => Kind::WrongOutput,
        Ending::Signal(_) => Kind::Crash,
        Ending::Deadlock(_) => Kind::Deadlock,
        // That nothing gets on is wrong if it will stay like that.
        Ending::Stuck(_) => {
            let Some(mut finding) = livelock::finding(plan, again, BY)? else { return Ok(None) };
            let Seen { count, first_run, first_seed, .. } = group.seen;
            finding.seen = Some(raddle_findings::Seen { count, runs, first_run, seed: first_seed });
            return Ok(Some(Explored { finding, schedule: None, switches: None }));
        }
        // Too long is not wrong: nobody knows what it would have done.
        Ending::TimedOut(_) | Ending::TooManyThreads => return Ok(None),
    };
    let kept = match store {
        Some(_) => shrinking::keep(plan, again, group.observation, "", stop)?,
        None => None,
    };
    // Whoever wants no schedules wants to know what it is nevertheless.
    let repeated = match (store, kind) {
        (None, Kind::Crash | Kind::Deadlock) => shrinking::repeat(plan, again, group.observation)?,
        _ => None,
    };
    let end = match (&kept, &repeated) {
        (Some(kept), _) => kept.end.as_ref().map(|end| (end, kept.parties, &kept.modules)),
        (None, Some(run)) => {
            let steered = &run.steered;
            steered.end.as_ref().map(|end| (end, shrinking::parties_of(steered), &run.modules))
        }
        (None, None) => None,
    };
    let mut finding = match (end, kind, group.ending) {
        (Some((End::Crash(report), _, modules)), Kind::Crash, _) => {
            ending::crash(report, BY, Basis::observed(), &mut Namer::new(modules))
        }
        (Some((End::Outcome(stacks), parties, modules)), Kind::Deadlock, _) => {
            let threads = &stacks.threads[..parties.min(stacks.threads.len())];
            let parties = ending::deadlocked(threads, &mut Namer::new(modules));
            Finding::new(kind, BY, Basis::observed(), parties, Detail::None)
        }
        (_, _, Ending::Signal(signal)) => ending::bare_crash(*signal, BY, Basis::observed()),
        (_, _, Ending::Exit(status) | Ending::WrongOutput(status)) => {
            let detail = Detail::Ending { ended: Ended::Status(*status) };
            Finding::new(kind, BY, Basis::observed(), Vec::new(), detail)
        }
        (_, _, Ending::Unwanted) => {
            let detail = Detail::Ending { ended: Ended::Status(0) };
            Finding::new(kind, BY, Basis::observed(), Vec::new(), detail)
        }
        (_, _, ending) => Finding::new(kind, BY, Basis::observed(), places(ending), Detail::None),
    };
    let Seen { count, first_run, first_seed, .. } = group.seen;
    finding.seen = Some(raddle_findings::Seen { count, runs, first_run, seed: first_seed });
    let (Some(Kept { mut schedule, found_switches, switches, modules, .. }), Some(store)) = (kept, store)
    else {
        if store.is_some() {
            finding.basis.tried(Attempt::NotAgain { shown: 0, replays: 1 });
        }
        return Ok(Some(Explored { finding, schedule: None, switches: None }));
    };
    schedule.about = format!("{} {}", finding.kind.name(), finding.id);
    let mut namer = Namer::new(&modules);
    schedule.annotate(|place| namer.place(place));
    if kind == Kind::WrongOutput {
        // A schedule says how the run ends, and not what it prints: replays of it prove nothing about that.
        return Ok(Some(Explored {
            finding,
            schedule: Some(schedule),
            switches: Some((found_switches, switches)),
        }));
    }
    match verify(&schedule, store, plan.timeout, ctx)? {
        Ok((shown, replays)) => finding.basis = Basis::Replayed { shown, replays },
        Err(attempt) => finding.basis.tried(attempt),
    }
    Ok(Some(Explored { finding, schedule: Some(schedule), switches: Some((found_switches, switches)) }))
}

/// Parties of an ending of which nothing more is known than where its threads waited.
fn places(ending: &Ending) -> Vec<Party> {
    let Ending::Deadlock(waits) = ending else { return Vec::new() };
    let party = |blocked: &Blocked| {
        let frame = Frame { raw: Some(blocked.site.clone()), ..Frame::default() };
        let operation = blocked.operation.clone();
        let action = Action::Waits { wait: Wait::Other, object: None, holder: None, operation };
        Party::new(Thread::default(), action, vec![frame])
    };
    waits.iter().map(party).collect()
}
