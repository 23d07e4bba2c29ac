//! Does a trace obey the rules of its own model?
//!
//! The checks are about the trace as a record: what comes before what, who may do what. They find recordings that lost
//! or reordered events (a defect of ours, or damage), and also programs that misuse locks; telling the two apart is
//! left to the reader. A trace that was cut may break the rules about ends: those are not checked then.

use crate::describe::thread_name;
use crate::event::{Event, Op};
use crate::ids::{ObjectId, ThreadIx};
use crate::ops_about;
use crate::source::{EventSource, TraceError};
use crate::tables::Tables;
use rustc_hash::FxHashMap;

/// Problems that are written out; the rest is counted.
const PROBLEMS_MAX: usize = 100;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Place of the event in the observed order.
    pub event: u64,
    pub thread: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Validation {
    pub events: u64,
    pub problems: Vec<Problem>,
    /// Problems beyond those that are written out.
    pub more: u64,
}

#[derive(Default)]
struct ThreadState {
    forked: bool,
    seen: bool,
    ended: bool,
    waiting_for: Option<ObjectId>,
}

#[derive(Default)]
struct LockState {
    owner: Option<ThreadIx>,
    depth: u32,
    readers: Vec<ThreadIx>,
}

/// Walks through events and notes broken rules.
#[derive(Default)]
struct Checker {
    validation: Validation,
    threads: FxHashMap<ThreadIx, ThreadState>,
    locks: FxHashMap<ObjectId, LockState>,
}

/// Reads a whole trace and checks it.
pub fn validate(source: &mut dyn EventSource) -> Result<Validation, TraceError> {
    let mut checker = Checker::default();
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            if let Some(text) = checker.broken_rule(event, source.tables()) {
                checker.note(event, source.tables(), text);
            }
            checker.validation.events += 1;
        }
    }
    Ok(checker.validation)
}

impl Checker {
    fn note(&mut self, event: &Event, tables: &Tables, text: String) {
        if self.validation.problems.len() >= PROBLEMS_MAX {
            self.validation.more += 1;
            return;
        }
        let thread = thread_name(tables, event.thread);
        self.validation.problems.push(Problem { event: self.validation.events, thread, text });
    }

    fn broken_rule(&mut self, event: &Event, tables: &Tables) -> Option<String> {
        let state = self.threads.entry(event.thread).or_default();
        if state.ended {
            return Some("an event after the end of its thread".into());
        }
        let first = !std::mem::replace(&mut state.seen, true);
        let has_parent =
            tables.threads.get(event.thread.index()).is_some_and(|thread| thread.parent.is_some());
        if first && has_parent && !state.forked {
            return Some("an event before the thread was forked".into());
        }
        match event.op {
            Op::End => {
                state.ended = true;
                let held =
                    self.locks.iter().find(|(_, lock)| lock.owner == Some(event.thread)).map(|(id, _)| *id);
                held.map(|lock| format!("the thread ended holding {:#x}", lock.0))
            }
            Op::Start { .. } if !first => Some("a thread started twice".into()),
            Op::Fork { child } => {
                let forked = std::mem::replace(&mut self.threads.entry(child).or_default().forked, true);
                let seen = self.threads[&child].seen;
                (forked || seen).then(|| format!("{} was forked after it began", thread_name(tables, child)))
            }
            Op::Join { child } => {
                let ended = self.threads.get(&child).is_some_and(|child| child.ended);
                let wrote_nothing = self.threads.get(&child).is_none_or(|child| !child.seen);
                (!ended && !wrote_nothing)
                    .then(|| format!("{} was joined before its last event", thread_name(tables, child)))
            }
            Op::Lock { lock, flags } => self.lock(event.thread, lock, flags.nested, flags.owner_died),
            Op::ReadLock { lock, .. } => {
                let state = self.locks.entry(lock).or_default();
                state.readers.push(event.thread);
                state.owner.filter(|&owner| owner != event.thread).map(|owner| {
                    format!("{:#x} was read-locked while {} held it", lock.0, thread_name(tables, owner))
                })
            }
            Op::Unlock { lock, .. } => self.unlock(event.thread, lock),
            Op::WaitBegin { cond, .. } => {
                let before = state.waiting_for.replace(cond);
                before
                    .map(|before| format!("began to wait on {:#x} while waiting on {:#x}", cond.0, before.0))
            }
            Op::Wait { cond, .. } | Op::WaitFailed { cond, .. } => {
                let began = state.waiting_for.take();
                (began.is_some_and(|began| began != cond))
                    .then(|| format!("a wait on {:#x} ended that had not begun", cond.0))
            }
            Op::Start { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::LockFailed { .. }
            | Op::ReadLockFailed { .. }
            | Op::Request { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | ops_about!(
                Memory, Nothing, Barrier, Semaphore, Once, Futex, Annotated, Signal, Channel, Life
            ) => None,
        }
    }

    fn lock(&mut self, thread: ThreadIx, lock: ObjectId, nested: bool, owner_died: bool) -> Option<String> {
        let state = self.locks.entry(lock).or_default();
        let problem = match state.owner {
            Some(owner) if owner == thread && !nested => Some(format!("{:#x} was locked twice", lock.0)),
            Some(owner) if owner != thread && !owner_died => {
                Some(format!("{:#x} was locked while another thread held it", lock.0))
            }
            _ if !state.readers.is_empty() => Some(format!("{:#x} was locked while it had readers", lock.0)),
            _ => None,
        };
        state.depth = if state.owner == Some(thread) { state.depth + 1 } else { 1 };
        state.owner = Some(thread);
        problem
    }

    fn unlock(&mut self, thread: ThreadIx, lock: ObjectId) -> Option<String> {
        let state = self.locks.entry(lock).or_default();
        if state.owner == Some(thread) {
            state.depth -= 1;
            if state.depth == 0 {
                state.owner = None;
            }
            return None;
        }
        match state.readers.iter().position(|&reader| reader == thread) {
            Some(at) => {
                state.readers.swap_remove(at);
                None
            }
            None => Some(format!("{:#x} was unlocked by a thread that did not hold it", lock.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Shape, generate};
    use crate::source::MemoryTrace;
    use crate::{ContextIx, LocationIx, LockFlags};

    #[test]
    fn generated_traces_obey_the_rules() {
        for seed in 0..40 {
            let trace = generate(&Shape::everything(6, 2_000), seed);
            let validation = validate(&mut trace.source()).unwrap();
            assert_eq!(validation.problems, [], "seed {seed}");
            assert_eq!(validation.events, trace.events.len() as u64);
        }
    }

    fn problems(ops: &[(u32, Op)]) -> Vec<String> {
        let mut trace = MemoryTrace::default();
        trace.tables.add_thread(Some(ThreadIx(0)));
        trace.tables.add_thread(Some(ThreadIx(0)));
        for &(thread, op) in ops {
            let (location, context) = (LocationIx::UNKNOWN, ContextIx::ROOT);
            trace.events.push(Event { thread: ThreadIx(thread), location, context, kept_calls: 0, op });
        }
        validate(&mut trace.source()).unwrap().problems.into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn broken_rules_are_found() {
        let (lock, flags) = (ObjectId(0x10), LockFlags::default());
        let fork = |child| Op::Fork { child: ThreadIx(child) };
        let start = Op::Start { parent: ThreadIx(0) };
        assert_eq!(problems(&[(1, start)]), ["an event before the thread was forked"]);
        assert_eq!(
            problems(&[(0, fork(1)), (1, start), (0, Op::Join { child: ThreadIx(1) })]),
            ["1.1 was joined before its last event"]
        );
        assert_eq!(problems(&[(0, Op::End), (0, Op::Yield)]), ["an event after the end of its thread"]);
        assert_eq!(
            problems(&[(0, fork(1)), (0, Op::Lock { lock, flags }), (1, Op::Lock { lock, flags })]),
            ["0x10 was locked while another thread held it"]
        );
        assert_eq!(
            problems(&[(0, Op::Unlock { lock, flags })]),
            ["0x10 was unlocked by a thread that did not hold it"]
        );
        assert_eq!(
            problems(&[(0, Op::Lock { lock, flags }), (0, Op::End)]),
            ["the thread ended holding 0x10"]
        );
    }
}
