//! Confirming candidates: the schedules of their witnesses are replayed until one shows the error, and that one is replayed
//! again from its file.
//!
//! Candidates that would be reported under one id are one error; when one of them is confirmed, the others need not be
//! tried. What is reported is made from the very witness that was confirmed: the parties, what they do, and the schedule
//! belong together.
//!
//! Replays cost most, so the best come first. Prediction is asked first for what can be had with all hand-overs under locks as
//! they were ([`Keeps::HandOvers`]): there threads mostly do as they did. What else the synchronisation allows comes second, the
//! schedules closest to the recorded run first, and all errors get one replay before any gets a second. What those that
//! fail teach ([`Learning`]) puts others back; and for these, prediction is asked a third time.

use super::learning::{Learning, Way};
use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::evidence::judge::{Judged, judge};
use crate::evidence::verify::verify;
use crate::interrupt;
use crate::launch::Streams;
use crate::launch::steering::Then;
use raddle_findings::naming::Namer;
use raddle_findings::{Attempt, Basis, Finding, Shown};
use raddle_predict::{Candidate, Keeps, Options, Party, Prediction, Unexplored, Witness, predict};
use raddle_trace::MemoryTrace;
use raddle_trace::schedule::Schedule;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Candidates of one id that are tried: what four pairs of accesses at the same places do not show, a fifth hardly will.
const CANDIDATES_MAX: usize = 4;
/// Witnesses of one id that are tried while hand-overs are kept: if they do not show it, the reason lies elsewhere.
const CAREFUL_MAX: usize = 2;

/// A witness of a candidate, by number.
#[derive(Clone, Copy, Debug)]
struct Number {
    candidate: usize,
    witness: usize,
}

/// The candidates of one id, and what became of them.
struct Group {
    id: String,
    numbers: Vec<Number>,
    attempts: Vec<Attempt>,
    confirmed: Option<(Number, Shown, u32)>,
    /// Nothing more is to be tried.
    closed: bool,
}

/// What one prediction came to: findings by id, in the order of the prediction.
struct Round {
    found: Vec<Witnessed>,
    unexplored: Vec<Unexplored>,
}

/// What is told about the progress: what is being done, how much is done, and out of how many.
pub type Progress<'a> = dyn Fn(&'static str, usize, usize) + Sync + 'a;

/// Predicts from a trace and confirms. Also says what prediction did not look at, and what the recorded run was.
pub fn predict_and_confirm(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    options: &Options,
    namer: &mut Namer,
    ctx: &Ctx,
    progress: &Progress<'_>,
) -> anyhow::Result<(Vec<Witnessed>, Vec<String>, Schedule)> {
    let mut confirming = Confirming { hunt, trace, ctx, progress, learning: Mutex::default() };
    progress("predicting", 0, 0);
    let careful = predict(trace, &Options { keeps: Keeps::HandOvers, ..options.clone() });
    let recorded = careful.recorded(trace, "the recorded run");
    // Where nothing is handed over, this is all.
    let is_free = !careful.program.keeps_reads;
    let first = confirming.round(careful, if is_free { usize::MAX } else { CAREFUL_MAX }, namer, &[])?;
    let mut rounds = vec![first];
    if !is_free && interrupt::signal().is_none() {
        progress("predicting", 0, 0);
        let free = predict(trace, options);
        rounds.push(confirming.round(free, usize::MAX, namer, &confirmed(&rounds))?);
    }
    let learning = confirming.learning.lock().expect("no holder panics").clone();
    if learning.put_back && interrupt::signal().is_none() {
        progress("predicting", 0, 0);
        let keeps = Keeps::ReadsAt(Arc::new(learning.decides));
        let again = predict(trace, &Options { keeps, ..options.clone() });
        rounds.push(confirming.round(again, 1, namer, &confirmed(&rounds))?);
    }
    // What hand-overs rule out is not what was left unexplored: that is what the widest prediction says.
    let widest = if rounds.len() > 1 { 1 } else { 0 };
    let unexplored = rounds[widest].unexplored.iter().map(ToString::to_string).collect();
    Ok((merge(rounds), unexplored, recorded))
}

fn confirmed(rounds: &[Round]) -> Vec<String> {
    let all = rounds.iter().flat_map(|round| &round.found);
    let confirmed = all.filter(|witnessed| matches!(witnessed.finding.basis, Basis::Replayed { .. }));
    confirmed.map(|witnessed| witnessed.finding.id.clone()).collect()
}

/// One finding for each id: confirmed, if any round confirmed it; otherwise of the widest round, with all that was tried.
fn merge(mut rounds: Vec<Round>) -> Vec<Witnessed> {
    let (mut merged, mut known): (Vec<Witnessed>, HashSet<String>) = Default::default();
    let sure = confirmed(&rounds);
    let last = rounds.len().min(2);
    // The order of the widest prediction, then that of the others.
    rounds.rotate_left(last.saturating_sub(1));
    let mut tried: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
    for witnessed in rounds.iter().flat_map(|round| &round.found) {
        let attempts = witnessed.finding.basis.attempts();
        tried.entry(witnessed.finding.id.clone()).or_default().extend_from_slice(attempts);
    }
    for mut witnessed in rounds.into_iter().flat_map(|round| round.found) {
        let id = &witnessed.finding.id;
        let is_sure = matches!(witnessed.finding.basis, Basis::Replayed { .. });
        if (sure.contains(id) && !is_sure) || !known.insert(id.clone()) {
            continue;
        }
        if let Basis::Model { attempts, .. } = &mut witnessed.finding.basis {
            *attempts = tried.remove(id).unwrap_or_default();
            settle(attempts);
        }
        merged.push(witnessed);
    }
    merged
}

/// Replays first, then each reason for which there was none, once.
fn settle(attempts: &mut Vec<Attempt>) {
    let replayed = |attempt: &Attempt| {
        !matches!(attempt, Attempt::ReadDecides { .. } | Attempt::PutBack { .. } | Attempt::OutOfTime)
    };
    let (mut first, mut rest): (Vec<_>, Vec<_>) = attempts.drain(..).partition(replayed);
    rest.dedup();
    first.append(&mut rest);
    *attempts = first;
}

struct Confirming<'a> {
    hunt: &'a Hunt<'a>,
    trace: &'a MemoryTrace,
    ctx: &'a Ctx,
    progress: &'a Progress<'a>,
    learning: Mutex<Learning>,
}

impl Confirming<'_> {
    /// Confirms what one prediction says, with so many witnesses for each id.
    fn round(
        &mut self,
        prediction: Prediction,
        most: usize,
        namer: &mut Namer,
        known: &[String],
    ) -> anyhow::Result<Round> {
        let learning = self.learning.get_mut().expect("no holder panics");
        learning.turn_to(self.trace, &prediction);
        learning.put_back = false;
        let groups = self.groups(&prediction, namer, known);
        let passes = groups.iter().map(|group| group.numbers.len()).max().unwrap_or(0).min(most);
        let groups: Vec<Mutex<Group>> = groups.into_iter().map(Mutex::new).collect();
        for pass in 0..passes {
            self.pass(&prediction, &groups, pass)?;
        }
        let groups = groups.into_iter().map(|group| group.into_inner().expect("no holder panics"));
        let mut groups: Vec<Group> = groups.collect();
        // As predicted, whatever was tried first.
        groups.sort_by_key(|group| group.numbers.iter().map(|number| number.candidate).min());
        let found = groups.into_iter().map(|group| self.report(&prediction, namer, group)).collect();
        Ok(Round { found, unexplored: prediction.unexplored })
    }

    /// The candidates by the id under which they would be reported, those first whose schedules are closest to the recorded run.
    fn groups(&self, prediction: &Prediction, namer: &mut Namer, known: &[String]) -> Vec<Group> {
        let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut counts: Vec<usize> = Vec::new();
        for (number, candidate) in prediction.candidates.iter().enumerate() {
            let id = prediction.finding(self.trace, namer, candidate).id;
            if self.hunt.confirmed.contains(&id) || known.contains(&id) {
                continue;
            }
            let at = *by_id.entry(id.clone()).or_insert_with(|| {
                let (numbers, attempts) = Default::default();
                groups.push(Group { id, numbers, attempts, confirmed: None, closed: false });
                counts.push(0);
                groups.len() - 1
            });
            counts[at] += 1;
            if counts[at] > CANDIDATES_MAX {
                continue;
            }
            let witnesses = candidate.alternatives.len().min(self.hunt.alternatives.max(1) - 1);
            groups[at].numbers.extend((0..=witnesses).map(|witness| Number { candidate: number, witness }));
        }
        groups.sort_by_key(|group| {
            let number = group.numbers[0];
            prediction.candidates[number.candidate].witness.fidelity
        });
        groups
    }

    /// Tries the witness with this number of each id.
    fn pass(&self, prediction: &Prediction, groups: &[Mutex<Group>], pass: usize) -> anyhow::Result<()> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.hunt.workers.max(1) {
                scope.spawn(|| {
                    while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut group = group.lock().expect("no holder panics");
                        if let Err(error) = self.attempt(prediction, &mut group, pass) {
                            *failure.lock().expect("no holder panics") = Some(error);
                            break;
                        }
                        (self.progress)("confirming", done.fetch_add(1, Ordering::Relaxed) + 1, groups.len());
                    }
                });
            }
        });
        failure.into_inner().expect("no holder panics").map_or(Ok(()), Err)
    }

    fn attempt(&self, prediction: &Prediction, group: &mut Group, pass: usize) -> anyhow::Result<()> {
        let (hunt, ctx) = (self.hunt, self.ctx);
        let Some(&number) = group.numbers.get(pass).filter(|_| !group.closed && group.confirmed.is_none())
        else {
            return Ok(());
        };
        if Instant::now() >= hunt.until || interrupt::signal().is_some() {
            group.attempts.push(match interrupt::signal() {
                Some(_) => Attempt::Interrupted,
                None => Attempt::OutOfTime,
            });
            group.closed = true;
            return Ok(());
        }
        let way = way(prediction, number);
        let objection = {
            let mut learning = self.learning.lock().expect("no holder panics");
            learning.objection(self.trace, prediction, way, hunt.fruitless)
        };
        if let Some(attempt) = objection {
            group.attempts.push(attempt);
            return Ok(());
        }
        let schedule = self.schedule_of(prediction, number);
        let judged = judge(hunt.launch, &schedule, Then::RoundRobin, Streams::Silent, hunt.timeout, ctx)?;
        let attempt = match judged {
            Judged::Shown(_) => match verify(&schedule, hunt.store, hunt.timeout, ctx)? {
                Ok((shown, replays)) => {
                    group.confirmed = Some((number, shown, replays));
                    self.learning.lock().expect("no holder panics").confirmed += 1;
                    return Ok(());
                }
                Err(attempt) => attempt,
            },
            // It did not end by itself.
            Judged::Not(_) if interrupt::signal().is_some() => Attempt::Interrupted,
            Judged::Not(attempt) => attempt,
            Judged::Followed(status) => Attempt::Ended { how: crate::evidence::judge::ended(status) },
        };
        self.learning.lock().expect("no holder panics").failed(self.trace, prediction, way, &attempt);
        // A program that waits for what is not there, a client for example, does so under any schedule.
        group.closed = matches!(attempt, Attempt::TimedOut { .. } | Attempt::Interrupted);
        group.attempts.push(attempt);
        Ok(())
    }

    fn schedule_of(&self, prediction: &Prediction, number: Number) -> Schedule {
        let candidate = &prediction.candidates[number.candidate];
        let (parties, witness) = way(prediction, number);
        let mut schedule = prediction.schedule(self.trace, candidate.kind.word(), parties, witness);
        schedule.head = self.hunt.head.clone();
        // One thread at a time: what a racing read sees, and with it the way that the program takes, is then the same each time.
        schedule.head.options.one_at_a_time = true;
        schedule
    }

    fn report(&self, prediction: &Prediction, namer: &mut Namer, group: Group) -> Witnessed {
        let number = group.confirmed.map_or(group.numbers[0], |(number, ..)| number);
        let candidate = &prediction.candidates[number.candidate];
        let (parties, witness) = way(prediction, number);
        let mut finding = prediction.finding_of(self.trace, namer, candidate, parties, witness);
        debug_assert!(group.confirmed.is_some() || finding.id == group.id, "one group is one error");
        match group.confirmed {
            Some((_, shown, replays)) => finding.basis = Basis::Replayed { shown, replays },
            None => {
                for attempt in group.attempts {
                    finding.basis.tried(located(attempt, namer));
                }
            }
        }
        let mut schedule = self.schedule_of(prediction, number);
        finish(&mut schedule, &finding, namer);
        Witnessed::new(finding, Some(schedule))
    }
}

/// The parties and the witness with this number: the candidate's own first, then its alternatives.
fn way(prediction: &Prediction, number: Number) -> Way<'_> {
    let candidate: &Candidate = &prediction.candidates[number.candidate];
    let alternative = number.witness.checked_sub(1).and_then(|number| candidate.alternatives.get(number));
    let own: (&[Party], &Witness) = (&candidate.parties, &candidate.witness);
    alternative.map_or(own, |(parties, witness)| (parties, witness))
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
        Attempt::ReadDecides { place } => {
            if let Some(source) = namer.place(place) {
                *place = source;
            }
        }
        _ => {}
    }
    attempt
}
