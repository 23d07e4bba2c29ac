//! Confirming candidates: the schedules of their witnesses are replayed until one shows the error, and that one is replayed
//! again from its file.
//!
//! Candidates that would be reported under one id are one error; when one of them is confirmed, the others need not be
//! tried. What is reported is made from the very witness that was confirmed: the parties, what they do, and the schedule
//! belong together.

use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::evidence::judge::{Judged, judge};
use crate::evidence::verify::verify;
use crate::interrupt;
use crate::launch::Streams;
use crate::launch::steering::Then;
use raddle_findings::naming::Namer;
use raddle_findings::{Attempt, Basis, Finding, Shown};
use raddle_predict::{Candidate, Party, Prediction, Witness};
use raddle_trace::MemoryTrace;
use raddle_trace::schedule::Schedule;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Candidates of one id that are tried: what four pairs of accesses at the same places do not show, a fifth hardly will.
const CANDIDATES_MAX: usize = 4;

/// What became of the candidates of one id.
struct Tried {
    candidate: usize,
    witness: usize,
    outcome: Result<(Shown, u32), Vec<Attempt>>,
}

/// Confirms all candidates, several at a time. `progress` is told whenever an error is decided, and out of how many.
pub fn confirm_all(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    prediction: &Prediction,
    namer: &mut Namer,
    ctx: &Ctx,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> anyhow::Result<Vec<Witnessed>> {
    let groups = groups(hunt, trace, prediction, namer);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Tried>>> = Mutex::new((0..groups.len()).map(|_| None).collect());
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..hunt.workers.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(group) = groups.get(at) else { break };
                    match confirm(hunt, trace, prediction, group, ctx) {
                        Ok(tried) => results.lock().expect("no holder panics")[at] = Some(tried),
                        Err(error) => {
                            *failure.lock().expect("no holder panics") = Some(error);
                            break;
                        }
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, groups.len());
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no holder panics") {
        return Err(error);
    }
    let results = results.into_inner().expect("no holder panics");
    Ok(results.into_iter().flatten().map(|tried| report(hunt, trace, prediction, namer, tried)).collect())
}

/// Numbers of the candidates by the id under which they would be reported, in the order of first appearance.
fn groups(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    prediction: &Prediction,
    namer: &mut Namer,
) -> Vec<Vec<usize>> {
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, candidate) in prediction.candidates.iter().enumerate() {
        let id = prediction.finding(trace, namer, candidate).id;
        if hunt.confirmed.contains(&id) {
            continue;
        }
        let at = *by_id.entry(id).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(number);
    }
    groups
}

fn confirm(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    prediction: &Prediction,
    group: &[usize],
    ctx: &Ctx,
) -> anyhow::Result<Tried> {
    let mut attempts = Vec::new();
    'group: for &number in group.iter().take(CANDIDATES_MAX) {
        let candidate = &prediction.candidates[number];
        for witness in 0..=candidate.alternatives.len().min(hunt.alternatives.max(1) - 1) {
            if Instant::now() >= hunt.until {
                attempts.push(Attempt::OutOfTime);
                break 'group;
            }
            if interrupt::signal().is_some() {
                attempts.push(Attempt::Interrupted);
                break 'group;
            }
            let schedule = schedule_of(hunt, trace, prediction, candidate, witness);
            let attempt =
                match judge(hunt.launch, &schedule, Then::RoundRobin, Streams::Silent, hunt.timeout, ctx)? {
                    Judged::Shown(_) => match verify(&schedule, hunt.store, hunt.timeout, ctx)? {
                        Ok(shown) => return Ok(Tried { candidate: number, witness, outcome: Ok(shown) }),
                        Err(attempt) => attempt,
                    },
                    // It did not end by itself.
                    Judged::Not(_) if interrupt::signal().is_some() => Attempt::Interrupted,
                    Judged::Not(attempt) => attempt,
                    Judged::Followed(status) => Attempt::Ended { how: crate::evidence::judge::ended(status) },
                };
            // A program that waits for what is not there, a client for example, does so under any schedule.
            let hopeless = matches!(attempt, Attempt::TimedOut { .. });
            attempts.push(attempt);
            if hopeless {
                break 'group;
            }
        }
    }
    Ok(Tried { candidate: group[0], witness: 0, outcome: Err(attempts) })
}

/// The parties and the witness with this number: the candidate's own first, then its alternatives.
fn witness_of(candidate: &Candidate, number: usize) -> (&[Party], &Witness) {
    match number.checked_sub(1).and_then(|number| candidate.alternatives.get(number)) {
        Some((parties, witness)) => (parties, witness),
        None => (&candidate.parties, &candidate.witness),
    }
}

fn schedule_of(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    prediction: &Prediction,
    candidate: &Candidate,
    number: usize,
) -> Schedule {
    let (parties, witness) = witness_of(candidate, number);
    let mut schedule = prediction.schedule(trace, candidate.kind.word(), parties, witness);
    schedule.head = hunt.head.clone();
    // One thread at a time: what a racing read sees, and with it the way that the program takes, is then the same each time.
    schedule.head.options.one_at_a_time = true;
    schedule
}

fn report(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    prediction: &Prediction,
    namer: &mut Namer,
    tried: Tried,
) -> Witnessed {
    let candidate = &prediction.candidates[tried.candidate];
    let (parties, witness) = witness_of(candidate, tried.witness);
    let mut finding = prediction.finding_of(trace, namer, candidate, parties, witness);
    match tried.outcome {
        Ok((shown, replays)) => finding.basis = Basis::Replayed { shown, replays },
        Err(attempts) => {
            for attempt in attempts {
                finding.basis.tried(located(attempt, namer));
            }
        }
    }
    let mut schedule = schedule_of(hunt, trace, prediction, candidate, tried.witness);
    finish(&mut schedule, &finding, namer);
    Witnessed::new(finding, Some(schedule))
}

/// Gives a schedule its title and its source locations.
pub fn finish(schedule: &mut Schedule, finding: &Finding, namer: &mut Namer) {
    schedule.about = format!("{} {}", finding.kind.name(), finding.id);
    schedule.annotate(|place| namer.place(place));
}

/// The attempt with places of the source instead of the program's.
pub fn located(mut attempt: Attempt, namer: &mut Namer) -> Attempt {
    let mut locate = |step: &mut raddle_findings::basis::Step| {
        if let Some(place) = namer.place(&step.place) {
            step.place = place;
        }
    };
    match &mut attempt {
        Attempt::Diverged { expected, found, .. } => {
            expected.iter_mut().chain(found.iter_mut()).for_each(&mut locate);
        }
        Attempt::Standstill { threads, .. } | Attempt::TimedOut { threads } => {
            threads.iter_mut().filter_map(|thread| thread.at.as_mut()).for_each(&mut locate);
        }
        _ => {}
    }
    attempt
}
