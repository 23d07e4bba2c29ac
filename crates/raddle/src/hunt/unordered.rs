//! The weak form of a race: two accesses that nothing orders, by the rules of C and C++11, in a run that has happened.
//!
//! Where ad-hoc synchronisation by relaxed atomics keeps two accesses apart in time, no schedule can park both threads before
//! them at once, and yet the race is one: the standard gives the flag no power to order them. The recorded run shows it to
//! `hb11`. Because what was recorded of a free run is only as good as the order in which its atomics were written down, the
//! run is repeated under control along its own schedule, where that order is exact, and judged again. Only a pair of
//! places that is unordered in every replay from the stored schedule counts as shown again. This is never called confirmed:
//! synchronisation that Raddle cannot see may order the two ([`super::visibility`]), and attempts to stop both threads at
//! their accesses have failed.
//!
//! Only memory that the trace can tell apart counts: variables of the program and blocks of the heap. An address that has no
//! name may be a stack, which the next thread gets from the system's cache with other contents and no order to the last
//! one's; nothing that two threads do there is known to concern the same object.

use super::confirm::finish;
use super::visibility::Sight;
use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::commands::detect::detect;
use crate::evidence::replaying::{self, Rebuild};
use crate::evidence::verify::REPLAYS;
use crate::interrupt;
use crate::launch::recording::record_silently;
use crate::launch::{Launch, steering};
use raddle_detect::detectors::hb11;
use raddle_findings::naming::Namer;
use raddle_findings::{Attempt, Basis, Fidelity, Finding, Grade, Party};
use raddle_trace::observed_schedule::observed_schedule;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::{Schedule, Unordered};
use raddle_wire::region::{observe, option, steer};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// Runs with more visible operations than this are not repeated step by step.
const STEPS_MAX: usize = 2_000_000;

/// The two places in the code of a race, in the numbering of their files, smaller first.
type Places = [String; 2];

/// Races of the recorded run that are not among those confirmed already, each repeated along the observed schedule.
pub fn races(
    hunt: &Hunt<'_>,
    trace: &Path,
    sight: &mut Sight,
    known: &[Witnessed],
    namer: &mut Namer,
    ctx: &Ctx,
) -> anyhow::Result<Vec<Witnessed>> {
    let mut findings: Vec<Finding> = suspects(trace, ctx)?;
    let confirmed = |id: &str| {
        hunt.confirmed.contains(id)
            || known.iter().any(|other| other.finding.id == id && other.finding.grade() == Grade::Confirmed)
    };
    findings.retain(|finding| !confirmed(&finding.id) && places(finding).is_some());
    if findings.is_empty() || interrupt::signal().is_some() {
        return Ok(Vec::new());
    }
    for finding in &mut findings {
        // What was tried to stop both threads at their accesses counts against it.
        let same = known.iter().find(|other| other.finding.id == finding.id);
        for attempt in same.iter().flat_map(|other| other.finding.basis.attempts()) {
            finding.basis.tried(attempt.clone());
        }
        sight.consider(finding);
    }
    let mut schedule = observed_schedule(raddle_trace::open(trace)?.as_mut(), "")?;
    let without = |finding| Witnessed::new(finding, None);
    if schedule.steps.len() > STEPS_MAX {
        let steps = schedule.steps.len() as u64;
        for finding in &mut findings {
            finding.basis = Basis::model(false, Fidelity::Unknown);
            finding.basis.tried(Attempt::TooLong { steps });
        }
        return Ok(findings.into_iter().map(without).collect());
    }
    schedule.head = hunt.head.clone();
    schedule.head.options.one_at_a_time = true;
    schedule.head.options.memory = true;
    // The same schedule shows all of them: it is read back and replayed once for all.
    let stored = Schedule::parse(&schedule.to_text())?;
    let launch = replaying::launch(&stored, &hunt.store.root(), Rebuild::No)?.launch;
    let mut shown: Option<HashSet<Places>> = None;
    for _ in 0..REPLAYS {
        let again = repeat(&launch, &stored, hunt.timeout, ctx)?;
        shown = Some(match shown {
            Some(before) => &before & &again,
            None => again,
        });
    }
    if interrupt::signal().is_some() {
        // The replays were cut off: nothing is known.
        return Ok(Vec::new());
    }
    let shown = shown.unwrap_or_default();
    let mut found = Vec::new();
    for mut finding in findings {
        let Some(places) = places(&finding) else { continue };
        if !shown.contains(&places) {
            let mut basis = Basis::model(false, Fidelity::Unknown);
            finding.basis.attempts().iter().for_each(|attempt| basis.tried(attempt.clone()));
            basis.tried(Attempt::NotAgain { shown: 0, replays: REPLAYS });
            finding.basis = basis;
            found.push(without(finding));
            continue;
        }
        if let Basis::Unordered { replays, .. } = &mut finding.basis {
            *replays = REPLAYS;
        }
        let mut schedule = schedule.clone();
        let places = [schedule.intern(&places[0]), schedule.intern(&places[1])];
        let comment = schedule.intern("");
        schedule.unordered.push(Unordered { places, comment });
        finish(&mut schedule, &finding, namer);
        found.push(Witnessed::new(finding, Some(schedule)));
    }
    Ok(found)
}

/// Does a run along the schedule show that the accesses it names are unordered?
pub fn shows(launch: &Launch, schedule: &Schedule, timeout: Duration, ctx: &Ctx) -> anyhow::Result<bool> {
    let shown = repeat(launch, schedule, timeout, ctx)?;
    Ok(schedule.unordered.iter().all(|unordered| {
        let mut places = unordered.places.map(|place| schedule.name(place).to_owned());
        places.sort();
        shown.contains(&places)
    }))
}

/// Runs the program along the schedule while recording it, and names the pairs of places that race in that run. One thread
/// at a time: what a racing read sees, and with it the way that the program takes, is then the same each time.
fn repeat(
    launch: &Launch,
    schedule: &Schedule,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<HashSet<Places>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("replay.trace");
    let always = option::MEMORY | option::THEN_ROUND_ROBIN | option::ONE_AT_A_TIME;
    let config = RegionConfig {
        observe: observe::RECORD,
        steer: steer::REPLAY,
        options: steering::options_of(schedule) | always,
        blob: steering::blob(schedule, &[])?,
        repeated_run_ms: schedule.head.took_ms,
        ..RegionConfig::default()
    };
    record_silently(launch, &config, &path, timeout)?;
    Ok(suspects(&path, ctx)?.iter().filter_map(places).collect())
}

fn suspects(trace: &Path, ctx: &Ctx) -> anyhow::Result<Vec<Finding>> {
    let detected =
        detect(trace, Default::default(), &[hb11::NAME.to_owned()], &Default::default(), false, ctx)?;
    Ok(detected.findings.into_iter().map(|(finding, _)| finding).filter(is_about_an_object).collect())
}

/// Is it known which memory the finding is about?
fn is_about_an_object(finding: &Finding) -> bool {
    !finding.objects.is_empty() && finding.objects.iter().all(raddle_findings::Object::is_identified)
}

fn places(finding: &Finding) -> Option<Places> {
    let place = |party: &Party| party.stack.first()?.raw.clone();
    let mut places = match &finding.parties[..] {
        [first, second] => [place(first)?, place(second)?],
        _ => return None,
    };
    places.sort();
    Some(places)
}
