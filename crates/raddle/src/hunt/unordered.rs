//! The weak form of a race: two accesses that nothing orders, by the rules of C and C++11, in a run that has happened.
//!
//! Where ad-hoc synchronisation by relaxed atomics keeps two accesses apart in time, no schedule can park both threads before
//! them at once, and yet the race is one: the standard gives the flag no power to order them. The recorded run shows it to
//! `hb11`. Because what was recorded of a free run is only as good as the order in which its atomics were written down, the
//! run is repeated under control along its own schedule, where that order is exact, and judged again. Only a pair of
//! places that is unordered there too is confirmed, and the finding says in which form.
//!
//! Only memory that the trace can tell apart counts: variables of the program and blocks of the heap. An address that has no
//! name may be a stack, which the next thread gets from the system's cache with other contents and no order to the last
//! one's; nothing that two threads do there is known to concern the same object.

use super::confirm::Settings;
use crate::commands::Ctx;
use crate::commands::detect::{detect, write_schedule};
use crate::launch::recording::record_silently;
use crate::launch::{Launch, steering};
use raddle_detect::detectors::hb11;
use raddle_findings::{Finding, Grade};
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
    launch: &Launch,
    trace: &Path,
    folder: &Path,
    known: &[Finding],
    settings: &Settings,
    ctx: &Ctx,
) -> anyhow::Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = suspects(trace, ctx)?;
    let is_known = |id: &str, confirmed: bool| {
        known.iter().any(|finding| finding.id == id && (!confirmed || finding.grade == Grade::Confirmed))
    };
    findings.retain(|finding| !is_known(&finding.id, true) && places(finding).is_some());
    if findings.is_empty() {
        return Ok(findings);
    }
    let schedule = observed_schedule(raddle_trace::open(trace)?.as_mut(), "")?;
    if schedule.steps.len() > STEPS_MAX {
        for finding in &mut findings {
            finding.notes.push(format!(
                "not confirmed: the run has {} visible operations, more than are repeated one by one",
                schedule.steps.len()
            ));
        }
        return Ok(findings);
    }
    let shown = repeat(launch, &schedule, settings.options, settings.timeout, ctx)?;
    for finding in &mut findings {
        let Some(places) = places(finding) else { continue };
        finding.grade = Grade::Predicted;
        if shown.contains(&places) {
            finding.grade = Grade::Confirmed;
            finding.notes.push(
                "confirmed by happens-before: in a replay of the recorded run nothing orders the two accesses; they were not \
                 made at the same time"
                    .to_owned(),
            );
        } else {
            finding.notes.push("the replay of the recorded run did not show it again".to_owned());
            if is_known(&finding.id, false) {
                continue;
            }
        }
        let mut schedule = schedule.clone();
        schedule.about = format!("data-race {}", finding.id);
        let places = [schedule.intern(&places[0]), schedule.intern(&places[1])];
        let comment = schedule.intern("");
        schedule.unordered.push(Unordered { places, comment });
        finding.schedule = Some(write_schedule(&schedule, &finding.id, folder)?);
    }
    Ok(findings)
}

/// Does a run along the schedule show that the accesses it names are unordered?
pub fn shows(
    launch: &Launch,
    schedule: &Schedule,
    options: u64,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<bool> {
    let shown = repeat(launch, schedule, options, timeout, ctx)?;
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
    options: u64,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<HashSet<Places>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("replay.trace");
    let config = RegionConfig {
        observe: observe::RECORD,
        steer: steer::REPLAY,
        options: options | option::MEMORY | option::THEN_ROUND_ROBIN | option::ONE_AT_A_TIME,
        blob: steering::blob(schedule, &[])?,
        ..RegionConfig::default()
    };
    record_silently(launch, &config, &path, timeout, ctx)?;
    Ok(suspects(&path, ctx)?.iter().filter_map(places).collect())
}

fn suspects(trace: &Path, ctx: &Ctx) -> anyhow::Result<Vec<Finding>> {
    let detected = detect(trace, &[hb11::NAME.to_owned()], &Default::default(), false, ctx)?;
    Ok(detected.findings.into_iter().map(|(finding, _)| finding).filter(is_about_an_object).collect())
}

/// Does everything that the finding concerns have a name? What has none is called by its address.
fn is_about_an_object(finding: &Finding) -> bool {
    !finding.objects.is_empty() && finding.objects.iter().all(|name| !name.starts_with("0x"))
}

fn places(finding: &Finding) -> Option<Places> {
    let place = |party: &raddle_findings::Party| party.stack.first()?.raw.clone();
    let mut places = match &finding.parties[..] {
        [first, second] => [place(first)?, place(second)?],
        _ => return None,
    };
    places.sort();
    Some(places)
}
