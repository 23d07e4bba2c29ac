//! The schedule of a run that has been recorded: its visible operations in the order in which they happened.

use crate::event::Op;
use crate::journal::place;
use crate::model::object_of;
use crate::ops_beside;
use crate::schedule::{Schedule, Step, step_of};
use crate::source::{EventSource, TraceError};
use crate::tables::{Location, Module};
use rustc_hash::FxHashMap;

/// Where the object of an operation is.
fn memory_of(op: &Op) -> Option<u64> {
    if let Op::Atomic { addr, .. } = op {
        return Some(addr.0);
    }
    object_of(op).map(|object| object.0)
}

/// Objects that are in no module, by number in order of appearance: their addresses are others in the next run.
#[derive(Default)]
struct Numbers {
    known: FxHashMap<u64, usize>,
}

impl Numbers {
    fn name(&mut self, modules: &[Module], address: u64) -> String {
        place(modules, address).unwrap_or_else(|| {
            let next = self.known.len() + 1;
            format!("object-{}", self.known.entry(address).or_insert(next))
        })
    }
}

/// Reads a trace to its end and writes down the order of its visible operations.
pub fn observed_schedule(source: &mut dyn EventSource, about: &str) -> Result<Schedule, TraceError> {
    let mut schedule = Schedule::new(about);
    let mut ordinals: Vec<u32> = Vec::new();
    let mut numbers = Numbers::default();
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(schedule);
        }
        for event in &batch {
            let Some((kind, failed)) = step_of(&event.op) else { continue };
            let thread = event.thread.index();
            if ordinals.len() <= thread {
                ordinals.resize(thread + 1, 0);
            }
            ordinals[thread] += 1;
            let tables = source.tables();
            let object = match event.op {
                Op::Fork { child } | Op::Join { child } | Op::JoinFailed { child } | Op::Detach { child } => {
                    tables.threads.get(child.index()).map_or("", |thread| thread.name.as_str())
                }
                Op::Start { .. } | Op::Cancel { .. } | Op::End | ops_beside!(Thread) => "",
            };
            let object = match memory_of(&event.op) {
                Some(address) => schedule.intern(&numbers.name(&tables.modules, address)),
                None => schedule.intern(object),
            };
            let name = tables.threads.get(thread).map_or("?", |thread| thread.name.as_str());
            let name = schedule.intern(name);
            let comment = match tables.location(event.location) {
                Location::Pc(pc) => match tables.module_of(*pc) {
                    Some(module) => {
                        let file = module.path.rsplit('/').next().unwrap_or(&module.path);
                        format!("{file}+{:#x}", pc.wrapping_sub(module.bias))
                    }
                    None => format!("{pc:#x}"),
                },
                Location::Foreign(number) => format!("L{number}"),
                Location::Unknown => String::new(),
            };
            let comment = schedule.intern(&comment);
            schedule.steps.push(Step {
                thread: name,
                ordinal: ordinals[thread],
                kind,
                failed,
                object,
                comment,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, LockFlags};
    use crate::ids::{ContextIx, LocationIx, ObjectId, ThreadIx};
    use crate::source::MemoryTrace;

    #[test]
    fn visible_operations_are_counted_by_thread() {
        let mut trace = MemoryTrace::default();
        let child = trace.tables.add_thread(Some(ThreadIx::MAIN));
        let lock = |thread| (thread, Op::Lock { lock: ObjectId(8), flags: LockFlags::default() });
        let unlock = |thread| (thread, Op::Unlock { lock: ObjectId(8), flags: LockFlags::default() });
        let ops = [
            (ThreadIx::MAIN, Op::Fork { child }),
            (child, Op::Start { parent: ThreadIx::MAIN }),
            lock(child),
            (child, Op::Yield),
            unlock(child),
            lock(ThreadIx::MAIN),
        ];
        for (thread, op) in ops {
            let (location, context) = (LocationIx::UNKNOWN, ContextIx::ROOT);
            trace.events.push(Event { thread, location, context, kept_calls: 0, op });
        }
        let schedule = observed_schedule(&mut trace.source(), "test").unwrap();
        let steps: Vec<_> = schedule
            .steps
            .iter()
            .map(|step| {
                let (thread, object) = (schedule.name(step.thread), schedule.name(step.object));
                format!("{thread} {} {} {object}", step.ordinal, step.kind.word())
            })
            .collect();
        let expected = [
            "1 1 fork 1.1",
            "1.1 1 start ",
            "1.1 2 lock object-1",
            "1.1 3 unlock object-1",
            "1 2 lock object-1",
        ];
        assert_eq!(steps, expected);
    }
}
