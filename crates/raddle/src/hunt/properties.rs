//! Properties of the user's own: predicted from a trace, confirmed by the events of a replay.
//!
//! A counterexample is a sequence of the threads' steps; the schedule made of it ends with the violating event. A replay is recorded, and what
//! its threads did is given to the automaton of the assertion. It is the only judge: a replay that left the schedule and violates the property
//! all the same has shown it.

#![warn(clippy::wildcard_enum_match_arm)]

use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::compiler::Refusal;
use crate::evidence::judge::Judged;
use crate::evidence::verify::verify;
use crate::interrupt;
use crate::launch::Launch;
use crate::launch::recording::record_silently;
use crate::launch::steering;
use raddle_findings::basis::{Attempt, Shown};
use raddle_findings::naming::Namer;
use raddle_findings::{Action, Basis, Detail, Fidelity, Finding, Kind, Party as Told, Role, Store};
use raddle_predict::{Party, Role as Part, Witness};
use raddle_property::check::{Checked, Decided, Effort, check, observed, unreadable, waiting};
use raddle_property::script::Property;
use raddle_property::{PropertyError, Violation};
use raddle_trace::model::EventIx;
use raddle_trace::observed_schedule::observed_schedule;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::{Head, Schedule};
use raddle_trace::{MemoryTrace, Op};
use raddle_wire::region::{observe, option, steer};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The option of the commands that check properties.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PropertyArgs {
    /// Check the assertions of this CSPM script about PROGRAM (docs/properties.md). May be given several times.
    #[arg(long, value_name = "FILE.csp")]
    property: Vec<PathBuf>,
}

impl PropertyArgs {
    pub fn read(&self) -> Result<Vec<Property>, Refusal> {
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path)
                .map_err(|error| Refusal(format!("cannot read {}: {error}", path.display())))?;
            let text = raddle_csp::lang::load::decode(bytes);
            Ok(Property::new(&path.display().to_string(), &text))
        };
        self.property.iter().map(read).collect()
    }
}

const BY: &str = "property";

fn refused(error: PropertyError) -> Refusal {
    Refusal(error.to_string().trim_end().to_owned())
}

/// Looks for violations of the properties in all interleavings of the trace, and replays them.
pub fn violations(
    hunt: &Hunt<'_>,
    trace: &MemoryTrace,
    properties: &[Property],
    namer: &mut Namer,
    ctx: &Ctx,
    unexplored: &mut Vec<String>,
) -> anyhow::Result<Vec<Witnessed>> {
    let mut found = Vec::new();
    for property in properties {
        let checked = check(trace, property, &Effort::default()).map_err(refused)?;
        unexplored.extend(notes(property, &checked));
        let mut open: Vec<Witnessed> = Vec::new();
        for decided in &checked.assertions {
            let mut attempts = Vec::new();
            let mut shown = None;
            for violation in &decided.violations {
                if Instant::now() >= hunt.until || interrupt::signal().is_some() {
                    attempts.push(Attempt::OutOfTime);
                    break;
                }
                let schedule = schedule_of(trace, &checked, violation, property, &hunt.head);
                match judge(hunt.launch, &schedule, hunt.timeout)? {
                    Judged::Shown(_) => match verify(&schedule, hunt.store, hunt.timeout, ctx)? {
                        Ok(proof) => {
                            shown = Some((violation, schedule, proof));
                            break;
                        }
                        Err(attempt) => attempts.push(attempt),
                    },
                    Judged::Not(attempt) => attempts.push(attempt),
                    Judged::Followed(_) => {}
                }
            }
            let tried = shown.is_some();
            let Some(first) = decided.violations.first() else { continue };
            let (violation, mut schedule, basis) = match shown {
                Some((violation, schedule, (shown, replays))) => {
                    (violation, schedule, Basis::Replayed { shown, replays })
                }
                None => {
                    let mut basis = Basis::model(false, Fidelity::Reordered);
                    attempts
                        .into_iter()
                        .for_each(|attempt| basis.tried(super::confirm::located(attempt, namer)));
                    (first, schedule_of(trace, &checked, first, property, &hunt.head), basis)
                }
            };
            let mut finding = finding(trace, property, decided, violation, namer);
            finding.basis = basis;
            super::confirm::finish(&mut schedule, &finding, namer);
            let witnessed = Witnessed::new(finding, Some(schedule));
            if tried { found.push(witnessed) } else { open.push(witnessed) }
        }
        found.append(&mut open);
    }
    Ok(found)
}

/// Violations in all interleavings of a trace, without running anything.
pub fn predicted(
    trace: &MemoryTrace,
    property: &Property,
    effort: &Effort,
    namer: &mut Namer,
    schedules: Option<&Path>,
) -> anyhow::Result<(Vec<Finding>, Vec<String>)> {
    let checked = check(trace, property, effort).map_err(refused)?;
    let mut findings = Vec::new();
    for decided in &checked.assertions {
        let Some(violation) = decided.violations.first() else { continue };
        let mut finding = finding(trace, property, decided, violation, namer);
        if let Some(folder) = schedules {
            std::fs::create_dir_all(folder)?;
            let path = folder.join(format!("{}.schedule", finding.id));
            let mut schedule = schedule_of(trace, &checked, violation, property, &Head::default());
            super::confirm::finish(&mut schedule, &finding, namer);
            std::fs::write(&path, schedule.to_text())?;
            finding.schedule = Some(path.display().to_string());
        }
        findings.push(finding);
    }
    Ok((findings, notes(property, &checked)))
}

fn notes(property: &Property, checked: &Checked) -> Vec<String> {
    let numbered = checked.assertions.iter().enumerate();
    numbered
        .filter_map(|(number, decided)| {
            let why = decided.undecided.as_ref()?;
            Some(format!("{}: assertion {} is undecided: {}", property.name, number + 1, why.trim_end()))
        })
        .collect()
}

fn schedule_of(
    trace: &MemoryTrace,
    checked: &Checked,
    violation: &Violation,
    property: &Property,
    head: &Head,
) -> Schedule {
    let program = &checked.program;
    let witness = Witness {
        positions: vec![0; program.thread_count()],
        then: violation.moves.clone(),
        fidelity: Fidelity::Reordered,
    };
    let mut parties = Vec::new();
    if violation.stuck {
        for (thread, pos) in waiting(program, &violation.moves) {
            if let Some(step) = program.step(thread, pos) {
                parties.push(Party { thread, event: step.event, role: Part::Blocked, held: Vec::new() });
            }
        }
    }
    let mut schedule =
        witness.schedule(trace, program, &checked.names, Kind::PropertyViolation.name(), &parties);
    schedule.head = head.clone();
    schedule.head.options.one_at_a_time = true;
    schedule.head.property = Some((property.text.clone(), violation.assertion));
    schedule
}

/// What is reported: who makes the violating event, and whose events it overtook.
fn finding(
    trace: &MemoryTrace,
    property: &Property,
    decided: &Decided,
    violation: &Violation,
    namer: &mut Namer,
) -> Finding {
    let mut parties = Vec::new();
    let mut party = |event: EventIx, role: Role| {
        let event = &trace.events[event.index()];
        let stack = namer.stack_of(&trace.tables, event.location, event.context);
        let thread = namer.thread(&trace.tables, event.thread);
        parties.push(Told::new(thread, Action::Plays { role, object: None }, stack));
    };
    let last = violation.event.or(violation.way.last().copied());
    let mut said = String::new();
    if let Some(last) = last {
        party(last, Role::Violates);
        if let Op::Custom { name, .. } = trace.events[last.index()].op {
            said = format!(" by {}", trace.tables.text(name));
        }
        if let Some(other) = overtaken(trace, violation, last) {
            party(other, Role::ShouldComeFirst);
        }
    }
    let name = Path::new(&property.name)
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    // Addresses differ from run to run, and the text is part of what tells findings apart.
    let said: String = said.split('(').next().unwrap_or("").to_owned();
    let text = format!("{name}, assertion {}: {}{said}", violation.assertion, decided.text);
    let basis = Basis::model(false, Fidelity::Reordered);
    Finding::new(Kind::PropertyViolation, BY, basis, parties, Detail::Words { text })
}

/// An event of another thread that came before the violating one in the observed run and does not in the counterexample; or the last one of
/// another thread before it.
fn overtaken(trace: &MemoryTrace, violation: &Violation, last: EventIx) -> Option<EventIx> {
    let thread = trace.events[last.index()].thread;
    let custom = |event: &EventIx| matches!(trace.events[event.index()].op, Op::Custom { .. });
    let earlier = (0..last.index()).rev().map(|index| EventIx(index as u32));
    let missing = earlier
        .filter(custom)
        .find(|event| trace.events[event.index()].thread != thread && !violation.way.contains(event));
    let before =
        violation.way.iter().rev().copied().find(|event| trace.events[event.index()].thread != thread);
    missing.or(before)
}

/// Runs the program along the schedule of a violation, and looks at what it did.
pub fn judge(launch: &Launch, schedule: &Schedule, timeout: Duration) -> anyhow::Result<Judged> {
    let Some((script, number)) = &schedule.head.property else { return Ok(Judged::Not(Attempt::Kept)) };
    let config = RegionConfig {
        observe: observe::RECORD,
        steer: steer::REPLAY,
        options: steering::options_of(schedule) | option::THEN_ROUND_ROBIN | option::ONE_AT_A_TIME,
        seed: schedule.head.seed,
        blob: steering::blob(schedule, &[])?,
        repeated_run_ms: schedule.head.took_ms,
        ..RegionConfig::default()
    };
    let trace = recorded(launch, &config, timeout)?;
    let property = Property::new("the property of the schedule", script);
    // The script was sound with the recorded run. A run that ended before its first event may have too little for it, and shows nothing.
    match observed(&trace, &property, *number) {
        Ok(true) => Ok(match uncertain(launch, &trace, &property) {
            events if events.is_empty() => Judged::Shown(Shown::Violated),
            events => Judged::Not(Attempt::UncertainEvents { events }),
        }),
        Ok(false) | Err(_) => Ok(Judged::Not(Attempt::Kept)),
    }
}

/// Events of the property that a violation must not rest on: planned with doubts, or with a value that could not be read.
fn uncertain(launch: &Launch, trace: &MemoryTrace, property: &Property) -> Vec<String> {
    let planned = launch.probes.iter().flat_map(|probes| probes.doubtful.iter().cloned());
    let mut events: Vec<String> = planned.filter(|name| property.mentions(name)).collect();
    events.extend(unreadable(trace, property));
    events.sort();
    events.dedup();
    events
}

fn recorded(launch: &Launch, config: &RegionConfig, timeout: Duration) -> anyhow::Result<MemoryTrace> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.trace");
    record_silently(launch, config, &path, timeout)?;
    Ok(MemoryTrace::read(raddle_trace::open(&path)?.as_mut())?)
}

/// A run of an exploration that broke a property.
pub struct Broken {
    pub property: usize,
    pub assertion: u32,
    trace: MemoryTrace,
    schedule: Schedule,
}

/// Runs the program once and says which assertions the run violates.
pub fn broken_in_run(
    launch: &Launch,
    config: &RegionConfig,
    properties: &[Property],
    timeout: Duration,
) -> anyhow::Result<Vec<Broken>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.trace");
    let config = RegionConfig { observe: observe::RECORD, ..config.clone() };
    record_silently(launch, &config, &path, timeout)?;
    let trace = MemoryTrace::read(raddle_trace::open(&path)?.as_mut())?;
    let mut broken = Vec::new();
    for (number, property) in properties.iter().enumerate() {
        for assertion in 1.. {
            match observed(&trace, property, assertion) {
                Ok(false) => {}
                Ok(true) => {
                    let schedule = observed_schedule(raddle_trace::open(&path)?.as_mut(), "")?;
                    broken.push(Broken { property: number, assertion, trace: trace.clone(), schedule });
                }
                Err(PropertyError::Undecided { number, .. }) if number == assertion as usize => break,
                Err(error) => return Err(refused(error).into()),
            }
        }
    }
    Ok(broken)
}

/// The finding of such a run, with its schedule, which has been replayed.
pub fn explored(
    broken: &Broken,
    properties: &[Property],
    head: &Head,
    store: &Store,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<(Finding, Schedule)> {
    let property = &properties[broken.property];
    let mut namer = Namer::of(&broken.trace);
    let custom = |(index, event): (usize, &raddle_trace::Event)| {
        matches!(event.op, Op::Custom { .. }).then_some(EventIx(index as u32))
    };
    let way: Vec<EventIx> = broken.trace.events.iter().enumerate().filter_map(custom).collect();
    let violation = Violation {
        assertion: broken.assertion,
        moves: Vec::new(),
        event: way.last().copied(),
        way,
        stuck: false,
    };
    let text = format!("violated in a run of the exploration, assertion {}", broken.assertion);
    let decided = Decided { text, violations: Vec::new(), undecided: None, by_engine: false, states: 0 };
    let mut schedule = broken.schedule.clone();
    schedule.head = head.clone();
    schedule.head.options.one_at_a_time = true;
    schedule.head.property = Some((property.text.clone(), broken.assertion));
    let mut finding = finding(&broken.trace, property, &decided, &violation, &mut namer);
    finding.basis = match verify(&schedule, store, timeout, ctx)? {
        Ok((shown, replays)) => Basis::Replayed { shown, replays },
        Err(attempt) => {
            let mut basis = Basis::model(false, Fidelity::Unknown);
            basis.tried(attempt);
            basis
        }
    };
    super::confirm::finish(&mut schedule, &finding, &mut namer);
    Ok((finding, schedule))
}
