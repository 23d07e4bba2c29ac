//! A trace as JSON for ui.perfetto.dev (Chrome's trace event format).
//!
//! A trace has an order and no clock: one event is shown as one microsecond. Each thread is a track with a slice for
//! its life; inside it slices for locks held and for waiting (locks, conditions, barriers, semaphores, joins). Forks,
//! joins, and the signal that a wait followed are arrows. Slices of one track must nest, locks need not: where a lock is
//! released that is not the innermost, the slices inside it are ended and begun again.

use crate::describe::{fields, kind, thread_name};
use crate::event::{Event, Op};
use crate::ids::{ObjectId, ThreadIx};
use crate::ops_about;
use crate::source::{EventSource, TraceError};
use crate::tables::Tables;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, Default)]
pub struct PerfettoOptions {
    /// Show plain memory accesses and atomics as well, as instants: large.
    pub accesses: bool,
}

/// Reading or writing failed.
#[derive(Debug, thiserror::Error)]
pub enum PerfettoError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("cannot write the JSON: {0}")]
    Write(#[from] io::Error),
}

/// An open slice of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slice {
    Life,
    Held(ObjectId),
    Waiting(&'static str, u64),
}

struct Writer<W: Write> {
    out: W,
    first: bool,
    now: u64,
    flows: u64,
    open: FxHashMap<ThreadIx, Vec<Slice>>,
    /// Arrows that have begun: by the thread that was forked, has ended, or by the condition signalled.
    forks: FxHashMap<ThreadIx, u64>,
    ends: FxHashMap<ThreadIx, u64>,
    signals: FxHashMap<ObjectId, u64>,
}

/// Writes a whole trace. `name` is the name of the object at an address, if it has one.
pub fn write_perfetto<W: Write>(
    source: &mut dyn EventSource,
    out: W,
    options: PerfettoOptions,
    name: &mut dyn FnMut(u64) -> Option<String>,
) -> Result<(), PerfettoError> {
    let mut writer = Writer {
        out,
        first: true,
        now: 0,
        flows: 0,
        open: FxHashMap::default(),
        forks: FxHashMap::default(),
        ends: FxHashMap::default(),
        signals: FxHashMap::default(),
    };
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            writer.now += 1;
            writer.event(event, source.tables(), options, name)?;
        }
    }
    writer.finish(source.tables())?;
    Ok(())
}

impl<W: Write> Writer<W> {
    fn put(&mut self, value: &Value) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)
    }

    fn put_phase(&mut self, phase: &str, thread: ThreadIx, name: &str, extra: Value) -> io::Result<()> {
        let mut value = json!({ "ph": phase, "pid": 1, "tid": thread.0 + 1, "ts": self.now, "name": name });
        if let (Value::Object(all), Value::Object(extra)) = (&mut value, extra) {
            all.extend(extra);
        }
        self.put(&value)
    }

    fn begin(&mut self, thread: ThreadIx, slice: Slice, label: &str) -> io::Result<()> {
        let category = match slice {
            Slice::Life => "thread",
            Slice::Held(_) => "held",
            Slice::Waiting(..) => "waiting",
        };
        self.open.entry(thread).or_default().push(slice);
        self.put_phase("B", thread, label, json!({ "cat": category }))
    }

    /// Ends a slice wherever it is; those inside it are ended and begun again.
    fn end(
        &mut self,
        thread: ThreadIx,
        slice: &Slice,
        label: &mut dyn FnMut(&Slice) -> String,
    ) -> io::Result<()> {
        let stack = self.open.entry(thread).or_default();
        let Some(at) = stack.iter().rposition(|open| open == slice) else { return Ok(()) };
        let inside: Vec<Slice> = stack.drain(at..).skip(1).collect();
        for _ in 0..=inside.len() {
            self.put(&json!({ "ph": "E", "pid": 1, "tid": thread.0 + 1, "ts": self.now }))?;
        }
        for slice in inside {
            let text = label(&slice);
            self.begin(thread, slice, &text)?;
        }
        Ok(())
    }

    /// Begins an arrow in the slice that is open now.
    fn arrow_from(&mut self, thread: ThreadIx, what: &str) -> io::Result<u64> {
        self.flows += 1;
        let id = self.flows;
        self.put_phase("s", thread, what, json!({ "cat": "flow", "id": id }))?;
        Ok(id)
    }

    fn arrow_to(&mut self, thread: ThreadIx, what: &str, id: u64) -> io::Result<()> {
        self.put_phase("f", thread, what, json!({ "cat": "flow", "id": id, "bp": "e" }))
    }

    fn event(
        &mut self,
        event: &Event,
        tables: &Tables,
        options: PerfettoOptions,
        name: &mut dyn FnMut(u64) -> Option<String>,
    ) -> io::Result<()> {
        let thread = event.thread;
        if !self.open.contains_key(&thread) {
            let label = format!("thread {}", thread_name(tables, thread));
            self.begin(thread, Slice::Life, &label)?;
        }
        let mut of = |address: u64| name(address).unwrap_or_else(|| format!("{address:#x}"));
        let mut label = |slice: &Slice| match slice {
            Slice::Life => "thread".to_owned(),
            Slice::Held(lock) => format!("holds {}", of(lock.0)),
            Slice::Waiting(what, object) => format!("waits for {what} {}", of(*object)),
        };
        match event.op {
            Op::Read { .. } | Op::Write { .. } | Op::Atomic { .. } | Op::Alloc { .. } | Op::Free { .. }
                if !options.accesses => {}
            Op::Start { .. } => {
                if let Some(id) = self.forks.remove(&thread) {
                    self.arrow_to(thread, "fork", id)?;
                }
            }
            Op::Fork { child } => {
                let id = self.arrow_from(thread, "fork")?;
                self.forks.insert(child, id);
            }
            Op::End => {
                let id = self.arrow_from(thread, "join")?;
                self.ends.insert(thread, id);
            }
            Op::Join { child } => {
                if let Some(id) = self.ends.remove(&child) {
                    self.arrow_to(thread, "join", id)?;
                }
            }
            Op::Request { lock, .. } => self.wait("lock", thread, lock.0, &mut label)?,
            Op::Lock { lock, flags } | Op::ReadLock { lock, flags } => {
                self.end(thread, &Slice::Waiting("lock", lock.0), &mut label)?;
                if !flags.nested {
                    let slice = Slice::Held(lock);
                    let text = label(&slice);
                    self.begin(thread, slice, &text)?;
                }
            }
            Op::LockFailed { lock, .. } | Op::ReadLockFailed { lock, .. } => {
                self.end(thread, &Slice::Waiting("lock", lock.0), &mut label)?;
            }
            Op::Unlock { lock, flags } => {
                if !flags.nested {
                    self.end(thread, &Slice::Held(lock), &mut label)?;
                }
            }
            Op::WaitBegin { cond, .. } => self.wait("condition", thread, cond.0, &mut label)?,
            Op::Wait { cond, .. } => {
                if let Some(&id) = self.signals.get(&cond) {
                    self.arrow_to(thread, "signal", id)?;
                }
                self.end(thread, &Slice::Waiting("condition", cond.0), &mut label)?;
            }
            Op::WaitFailed { cond, .. } => {
                self.end(thread, &Slice::Waiting("condition", cond.0), &mut label)?
            }
            Op::Signal { cond } | Op::Broadcast { cond } => {
                let id = self.arrow_from(thread, "signal")?;
                self.signals.insert(cond, id);
                self.instant(event, tables)?;
            }
            Op::BarrierEnter { barrier } => self.wait("barrier", thread, barrier.0, &mut label)?,
            Op::BarrierExit { barrier } => {
                self.end(thread, &Slice::Waiting("barrier", barrier.0), &mut label)?
            }
            Op::SemRequest { sem } => self.wait("semaphore", thread, sem.0, &mut label)?,
            Op::SemWait { sem } | Op::SemWaitFailed { sem } => {
                self.end(thread, &Slice::Waiting("semaphore", sem.0), &mut label)?;
            }
            Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::BarrierInit { .. }
            | Op::SemInit { .. }
            | Op::SemPost { .. }
            | ops_about!(Memory, Nothing, Once, Futex, Annotated, Signal, Channel, Life) => {
                self.instant(event, tables)?
            }
        }
        Ok(())
    }

    fn wait(
        &mut self,
        what: &'static str,
        thread: ThreadIx,
        object: u64,
        label: &mut dyn FnMut(&Slice) -> String,
    ) -> io::Result<()> {
        let slice = Slice::Waiting(what, object);
        let text = label(&slice);
        self.begin(thread, slice, &text)
    }

    fn instant(&mut self, event: &Event, tables: &Tables) -> io::Result<()> {
        let args: serde_json::Map<String, Value> = fields(&event.op, tables)
            .into_iter()
            .map(|(name, field)| (name.to_owned(), Value::String(field.to_string())))
            .collect();
        self.put_phase("i", event.thread, kind(&event.op), json!({ "s": "t", "args": args }))
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.now += 1;
        let open = std::mem::take(&mut self.open);
        let mut threads: Vec<(ThreadIx, usize)> = open.iter().map(|(&ix, stack)| (ix, stack.len())).collect();
        threads.sort();
        for (thread, depth) in threads {
            for _ in 0..depth {
                self.put(&json!({ "ph": "E", "pid": 1, "tid": thread.0 + 1, "ts": self.now }))?;
            }
            let record = tables.threads.get(thread.index());
            let given = record.and_then(|thread| thread.given_name.as_deref());
            let stable = thread_name(tables, thread);
            let name = given.map_or_else(|| stable.clone(), |given| format!("{stable} {given}"));
            let args = json!({ "name": name });
            self.put(
                &json!({ "ph": "M", "pid": 1, "tid": thread.0 + 1, "name": "thread_name", "args": args }),
            )?;
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Shape, generate};

    #[test]
    fn slices_nest_and_arrows_have_two_ends() {
        for seed in 0..20 {
            let trace = generate(&Shape::everything(5, 1_500), seed);
            let mut bytes = Vec::new();
            write_perfetto(&mut trace.source(), &mut bytes, PerfettoOptions::default(), &mut |_| None)
                .unwrap();
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            let mut depth: FxHashMap<u64, i64> = FxHashMap::default();
            let (mut began, mut ended) = (Vec::new(), Vec::new());
            let mut last = 0;
            for event in value["traceEvents"].as_array().unwrap() {
                let thread = event["tid"].as_u64().unwrap();
                if let Some(now) = event["ts"].as_u64() {
                    assert!(now >= last, "seed {seed}: time goes on");
                    last = now;
                }
                match event["ph"].as_str().unwrap() {
                    "B" => *depth.entry(thread).or_default() += 1,
                    "E" => {
                        let depth = depth.entry(thread).or_default();
                        *depth -= 1;
                        assert!(*depth >= 0, "seed {seed}");
                    }
                    "s" => began.push(event["id"].as_u64().unwrap()),
                    "f" => {
                        assert!(depth[&thread] > 0, "seed {seed}: an arrow ends in a slice");
                        ended.push(event["id"].as_u64().unwrap());
                    }
                    _ => {}
                }
            }
            assert!(depth.values().all(|&depth| depth == 0), "seed {seed}");
            assert!(ended.iter().all(|id| began.contains(id)), "seed {seed}");
            assert!(!ended.is_empty(), "seed {seed}");
        }
    }
}
