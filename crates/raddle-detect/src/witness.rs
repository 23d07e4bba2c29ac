//! The schedule of a report that has a witness: what `raddle replay` enforces.
//!
//! The events of the ideal are taken in the observed order; then the racing threads are stopped before their accesses,
//! or the deadlocked ones are expected to block.

use crate::report::Report;
use raddle_findings::Kind;
use raddle_trace::describe::location_text;
use raddle_trace::schedule::{Block, Schedule, Step, StepKind, Stop, StopPlace};
use raddle_trace::{Location, LocationIx, MemoryTrace, Op, Tables, ThreadIx};

/// The schedule of a report; `None` if it has no witness.
pub fn schedule(report: &Report, trace: &MemoryTrace, about: &str) -> Option<Schedule> {
    let ideal = report.witness.as_ref()?;
    let mut schedule = Schedule::new(about);
    let mut ordinals = vec![0_u32; trace.tables.threads.len()];
    for event in ideal.schedule(trace) {
        let event = &trace.events[event.index()];
        let Some((kind, failed)) = StepKind::of(&event.op) else { continue };
        let ordinal = &mut ordinals[event.thread.index()];
        *ordinal += 1;
        let thread = schedule.intern(&trace.tables.threads[event.thread.index()].name);
        let comment = schedule.intern(&code(&trace.tables, event.location));
        let object = schedule.intern("");
        schedule.steps.push(Step { thread, ordinal: *ordinal, kind, failed, object, comment });
    }
    for part in &report.parts {
        let after = ordinals[part.thread.index()];
        let thread = schedule.intern(&trace.tables.threads[part.thread.index()].name);
        let place = schedule.intern(&code(&trace.tables, part.location));
        let comment = schedule.intern(&part.action);
        if report.kind == Kind::Deadlock {
            let object = schedule.intern("");
            let kind = StepKind::Lock;
            schedule.blocks.push(Block { thread, ordinal: after + 1, kind, object, comment: place });
        } else {
            let occurrence = occurrence(trace, part.thread, part.location, part.position);
            schedule.stops.push(Stop { thread, after, occurrence, place: StopPlace::Code(place), comment });
        }
    }
    Some(schedule)
}

/// The how-manieth access of its place this is since the thread's last visible operation.
fn occurrence(trace: &MemoryTrace, thread: ThreadIx, location: LocationIx, position: u64) -> u32 {
    let events = &trace.events[..position as usize];
    let mine = events.iter().rev().filter(|event| event.thread == thread);
    let since = mine.take_while(|event| StepKind::of(&event.op).is_none());
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
        other => location_text(other),
    }
}
