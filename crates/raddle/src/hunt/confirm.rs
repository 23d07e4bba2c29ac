//! Confirming a candidate: its schedule is replayed in a process of its own, and the run has to show the error.
//!
//! A race is shown in the strong form: both threads are parked, at the same time, before their two accesses, and the
//! addresses that they are about to access overlap. A deadlock is shown when every thread that the schedule says is
//! blocked waits, and nobody can help it. Anything else demotes the candidate to *predicted*.

use crate::launch::Launch;
use crate::launch::steering::{self, Outcome, Steered, SteeredParty, Streams};
use raddle_predict::{Candidate, CandidateKind, Party, Prediction, Witness};
use raddle_trace::MemoryTrace;
use raddle_trace::schedule::Schedule;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What became of a candidate.
pub struct Verdict {
    pub confirmed: bool,
    /// The witness to show: the confirming one, or the first. Its schedule can be made again at any time, and is too long to
    /// be kept for every candidate of a long run.
    pub witness: usize,
    /// Why it was not confirmed, a sentence for each witness that was tried.
    pub attempts: Vec<String>,
}

/// How candidates are confirmed.
pub struct Settings {
    /// Options of the recorded run: replays must filter accesses in the same way.
    pub options: u64,
    pub timeout: Duration,
    /// Witnesses to try for one candidate.
    pub alternatives: usize,
    pub workers: usize,
    /// When to stop trying: what has not been replayed by then stays predicted.
    pub until: Instant,
}

/// Confirms all candidates, several at a time. `progress` is told whenever one is done.
pub fn confirm_all(
    launch: &Launch,
    trace: &MemoryTrace,
    prediction: &Prediction,
    settings: &Settings,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize) + Sync),
) -> anyhow::Result<Vec<Option<Verdict>>> {
    let candidates = &prediction.candidates;
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<Option<Verdict>>> = Mutex::new((0..candidates.len()).map(|_| None).collect());
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..settings.workers.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(candidate) = candidates.get(index) else { break };
                    match confirm(launch, trace, prediction, candidate, settings) {
                        Ok(verdict) => verdicts.lock().expect("no holder panics")[index] = Some(verdict),
                        Err(error) => {
                            *failure.lock().expect("no holder panics") = Some(error);
                            break;
                        }
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    match failure.into_inner().expect("no holder panics") {
        Some(error) => Err(error),
        None => Ok(verdicts.into_inner().expect("no holder panics")),
    }
}

fn confirm(
    launch: &Launch,
    trace: &MemoryTrace,
    prediction: &Prediction,
    candidate: &Candidate,
    settings: &Settings,
) -> anyhow::Result<Verdict> {
    let mut attempts = Vec::new();
    for number in 0..=candidate.alternatives.len().min(settings.alternatives.max(1) - 1) {
        if Instant::now() >= settings.until {
            attempts.push("not replayed: the time for confirming was up (--confirm-for)".into());
            break;
        }
        let schedule = schedule_of(trace, prediction, candidate, number);
        let steered =
            steering::replay(launch, &schedule, settings.options, Streams::Silent, settings.timeout)?;
        match shows(candidate.kind, &schedule, &steered) {
            Ok(()) => return Ok(Verdict { confirmed: true, witness: number, attempts }),
            Err(why) => attempts.push(why),
        }
        // A program that waits for what is not there, a client for example, does so under any schedule.
        if matches!(steered.outcome, Outcome::TimedOut(_)) {
            break;
        }
    }
    Ok(Verdict { confirmed: false, witness: 0, attempts })
}

/// The parties and the witness with this number: the candidate's own first, then its alternatives.
pub fn witness_of(candidate: &Candidate, number: usize) -> (&[Party], &Witness) {
    match number.checked_sub(1).and_then(|number| candidate.alternatives.get(number)) {
        Some((parties, witness)) => (parties, witness),
        None => (&candidate.parties, &candidate.witness),
    }
}

/// The schedule of a witness.
pub fn schedule_of(
    trace: &MemoryTrace,
    prediction: &Prediction,
    candidate: &Candidate,
    number: usize,
) -> Schedule {
    let (parties, witness) = witness_of(candidate, number);
    prediction.schedule(trace, candidate.kind.word(), parties, witness)
}

/// Does the run show what the schedule promises? If not, why.
pub fn shows(kind: CandidateKind, schedule: &Schedule, steered: &Steered) -> Result<(), String> {
    match (&steered.outcome, kind.is_race()) {
        (Outcome::Parked(parties), true) => overlap(parties),
        (Outcome::Deadlock(parties), false) => blocked(schedule, parties),
        (Outcome::Ended(_), _) => Err("the program ended without showing it".into()),
        (Outcome::TimedOut(_), _) => Err("the replay took too long and was stopped".into()),
        (outcome, _) => Err(describe(schedule, outcome, steered.steps)),
    }
}

fn overlap(parties: &[SteeredParty]) -> Result<(), String> {
    let conflict = |a: &SteeredParty, b: &SteeredParty| {
        let (a_end, b_end) = (a.object + a.bytes.max(1), b.object + b.bytes.max(1));
        a.object < b_end && b.object < a_end && (a.writes || b.writes)
    };
    let some = parties.iter().enumerate().any(|(i, a)| parties[i + 1..].iter().any(|b| conflict(a, b)));
    if some { Ok(()) } else { Err("both threads came to their accesses, but to different memory".into()) }
}

/// Every thread that the schedule expects to block must be among those that wait, for that operation.
fn blocked(schedule: &Schedule, parties: &[SteeredParty]) -> Result<(), String> {
    for block in &schedule.blocks {
        let name = schedule.name(block.thread);
        let hash = steering::thread_hash(name);
        let waits = parties.iter().any(|party| party.path == hash && party.operation == Some(block.kind));
        if !waits {
            return Err(format!("the program deadlocked, but thread {name} is not part of it"));
        }
    }
    Ok(())
}

/// A divergence or a standstill in words.
pub fn describe(schedule: &Schedule, outcome: &Outcome, steps: u64) -> String {
    let names = schedule.threads();
    let name = |hash: u64| {
        names.iter().find(|name| steering::thread_hash(name) == hash).map_or("another thread", |name| *name)
    };
    let operation = |party: &SteeredParty| party.operation.map_or("a memory access", |kind| kind.word());
    match outcome {
        Outcome::Diverged(parties) => match parties.first() {
            Some(party) => {
                let found = format!(
                    "thread {} came to {} (its operation {})",
                    name(party.path),
                    operation(party),
                    party.ordinal
                );
                match party.expected {
                    Some(expected) => format!(
                        "the replay diverged after {steps} steps: expected {} (operation {}), but {found}",
                        raddle_wire::step::WORDS.get(usize::from(expected.kind)).unwrap_or(&"?"),
                        expected.ordinal
                    ),
                    None => format!(
                        "the replay diverged after {steps} steps: {found} without the expected access"
                    ),
                }
            }
            None => format!("the replay diverged after {steps} steps"),
        },
        Outcome::Stuck(parties) => {
            let threads: Vec<String> =
                parties.iter().map(|party| format!("{} {}", name(party.path), party.state())).collect();
            format!("the replay came to a standstill after {steps} steps: {}", threads.join(", "))
        }
        Outcome::Deadlock(parties) => {
            format!("the program deadlocked ({} threads) after {steps} steps", parties.len())
        }
        Outcome::Parked(_) => "all stop points were reached".into(),
        Outcome::TooManyThreads => steering::TOO_MANY_THREADS.into(),
        Outcome::Ended(_) => "the program ended".into(),
        Outcome::TimedOut(parties) if parties.is_empty() => "the run took too long".into(),
        Outcome::TimedOut(parties) => {
            let threads: Vec<String> =
                parties.iter().map(|party| format!("{} {}", name(party.path), party.state())).collect();
            format!("the run took too long: thread {}", threads.join(", thread "))
        }
    }
}
