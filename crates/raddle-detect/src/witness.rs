//! The schedule of a report that has a witness: what `raddle replay` enforces.
//!
//! The events of the ideal are taken in the observed order; then the racing threads are stopped before their accesses,
//! or the deadlocked ones are expected to block.
//!
//! A detector that is sound without computing a reordering itself ([`crate::detectors::shb`]) gets its witnesses here:
//! its races are sync-preserving, so the least [ideal](crate::skeleton) of the two accesses is one.

use crate::report::{Part, PartAction, Report};
use crate::skeleton::{Ideal, Skeleton};
use crate::step::{Feed, PerVar};
use raddle_findings::{Basis, Kind, Wait};
use raddle_trace::describe::location_text;
use raddle_trace::schedule::{Block, Schedule, Step, StepKind, Stop, StopPlace, step_of};
use raddle_trace::{Location, LocationIx, MemoryTrace, Op, Tables, ThreadIx};

/// Can [`complete`] find a witness for this report?
fn lacks_witness(report: &Report) -> bool {
    report.witness.is_none()
        && matches!(report.basis, Basis::Model { .. })
        && report.kind == Kind::DataRace
        && report.parts.len() == 2
}

/// Does the report have a witness, or can it get one?
pub fn has_witness(report: &Report) -> bool {
    report.witness.is_some() || lacks_witness(report)
}

/// Gives witnesses to predicted races that have none, in one pass over the trace.
pub fn complete(reports: &mut [Report], trace: &MemoryTrace) {
    let mut wanted: Vec<&mut Report> = reports.iter_mut().filter(|report| lacks_witness(report)).collect();
    if wanted.is_empty() {
        return;
    }
    wanted.sort_by_key(|report| report.parts[1].position);
    let mut wanted = wanted.into_iter().peekable();
    let (mut feed, mut skeleton) = (Feed::new(), Skeleton::default());
    let mut writers: PerVar<Option<(ThreadIx, u32)>> = PerVar::default();
    // The number of each event within its thread.
    let mut numbers: Vec<u32> = Vec::with_capacity(trace.events.len());
    for (position, event) in trace.events.iter().enumerate() {
        if wanted.peek().is_none() {
            return;
        }
        let step = feed.step(event);
        writers.follow(&step);
        let index = skeleton.step(&step);
        numbers.push(index);
        while let Some(report) = wanted.next_if(|report| report.parts[1].position == position as u64) {
            let first = &report.parts[0];
            let Some(&earlier) = numbers.get(first.position as usize) else { continue };
            let mut ideal = Ideal::default();
            skeleton.ask_before_access(&mut ideal, first.thread, earlier);
            skeleton.ask_before_access(&mut ideal, event.thread, index);
            let possible = skeleton.close(&mut ideal, &Ideal::default());
            if possible && ideal.len_of(first.thread) < earlier && ideal.len_of(event.thread) < index {
                report.witness = Some(ideal);
            }
        }
        match step.plain_access() {
            Some(true) => {
                step.vars.iter().for_each(|&var| *writers.get_mut(var) = Some((event.thread, index)));
            }
            Some(false) => {
                for &var in step.vars {
                    if let Some((writer, index)) = *writers.get_mut(var) {
                        skeleton.saw(event.thread, writer, index);
                    }
                }
            }
            None => {}
        }
    }
}

/// The schedule of a report; `None` if it has no witness. `source` says where a location is in the source, or nothing: the
/// comments of the steps, for people.
pub fn schedule(
    report: &Report,
    trace: &MemoryTrace,
    about: &str,
    source: &mut dyn FnMut(LocationIx) -> String,
) -> Option<Schedule> {
    let ideal = report.witness.as_ref()?;
    let mut schedule = Schedule::new(about);
    let mut ordinals = vec![0_u32; trace.tables.threads.len()];
    for event in ideal.schedule(trace) {
        let event = &trace.events[event.index()];
        let Some((kind, failed)) = step_of(&event.op) else { continue };
        let ordinal = &mut ordinals[event.thread.index()];
        *ordinal += 1;
        let thread = schedule.intern(&trace.tables.threads[event.thread.index()].name);
        let comment = schedule.intern(&source(event.location));
        let object = schedule.intern("");
        schedule.steps.push(Step { thread, ordinal: *ordinal, kind, failed, object, comment });
    }
    for part in &report.parts {
        let after = ordinals[part.thread.index()];
        let thread = schedule.intern(&trace.tables.threads[part.thread.index()].name);
        let comment = schedule.intern(&source(part.location));
        if report.kind == Kind::Deadlock {
            let object = schedule.intern("");
            let kind = blocked_kind(trace, part);
            schedule.blocks.push(Block { thread, ordinal: after + 1, kind, object, comment });
        } else {
            let occurrence = occurrence(trace, part.thread, part.location, part.position);
            let place = StopPlace::Code(schedule.intern(&code(&trace.tables, part.location)));
            schedule.stops.push(Stop { thread, after, occurrence, place, comment });
        }
    }
    Some(schedule)
}

/// The operation at which a deadlocked thread stands. A part may be at the request that precedes it.
fn blocked_kind(trace: &MemoryTrace, part: &Part) -> StepKind {
    let op = trace.events.get(part.position as usize).map(|event| event.op);
    match (op.as_ref().and_then(step_of), part.action) {
        (Some((kind, _)), _) => kind,
        (None, PartAction::Acquires { read: true, .. } | PartAction::Waits { wait: Wait::ReadLock, .. }) => {
            StepKind::ReadLock
        }
        (None, _) => StepKind::Lock,
    }
}

/// The how-manieth access of its place this is since the thread's last visible operation.
fn occurrence(trace: &MemoryTrace, thread: ThreadIx, location: LocationIx, position: u64) -> u32 {
    let events = &trace.events[..position as usize];
    let mine = events.iter().rev().filter(|event| event.thread == thread);
    let since = mine.take_while(|event| step_of(&event.op).is_none());
    let same = since.filter(|event| {
        event.location == location && matches!(event.op, Op::Read { .. } | Op::Write { .. } | Op::Free { .. })
    });
    same.count() as u32 + 1
}

fn code(tables: &Tables, location: LocationIx) -> String {
    match tables.location(location) {
        Location::Pc(pc) => match tables.module_of(*pc) {
            Some(module) => {
                let name = module.path.rsplit('/').next().unwrap_or(&module.path);
                format!("{name}+{:#x}", pc.wrapping_sub(module.bias))
            }
            None => format!("{pc:#x}"),
        },
        other @ (Location::Unknown | Location::Foreign(_)) => location_text(other),
    }
}
