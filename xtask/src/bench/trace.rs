//! The trace file: bytes an event, how fast it is written and read, and that it is read no slower than the same events as STD text.
//!
//! Two synthetic programs bracket real ones. *walk* is a loop over arrays: few places, constant steps. *lookup* is a
//! hash table: each round goes to a random node of a 64 MiB heap and touches four fields of it under a lock; its
//! addresses are as random as addresses get, which bounds the size from above.

#![warn(clippy::wildcard_enum_match_arm)]

use super::{Bench, Limit, Outcome, Subject};
use raddle_trace::convert::write_trace;
use raddle_trace::file::ProgramInfo;
use raddle_trace::generate::Rng;
use raddle_trace::std_format::{Dialect, write_std};
use raddle_trace::{
    AccessFlags, Addr, ContextIx, Event, EventSource, Location, LockFlags, MemoryTrace, ObjectId, Op,
    OpenTrace, ThreadIx,
};
use std::fs::File;
use std::io::{BufWriter, Write};

const EVENTS: usize = 4_000_000;
const THREADS: u32 = 4;

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("trace");
    let folder = tempfile::tempdir()?;
    for (name, trace) in [("walk", walk()), ("lookup", lookup())] {
        let path = folder.path().join(name);
        let text = folder.path().join(format!("{name}.std"));
        let events = trace.events.len() as f64;
        let mut out = BufWriter::new(File::create(&text)?);
        write_std(&mut trace.source(), &mut out, Dialect::Strict)?;
        out.flush()?;
        let (mut read, mut read_text) = (0, 0);
        let subjects = vec![
            Subject::function("write", || {
                write_trace(&mut trace.source(), &path, ProgramInfo::default())
                    .expect("the trace can be written");
            }),
            Subject::function("read", || {
                read = count(&path);
            }),
            Subject::function("read STD text", || {
                read_text = count(&text);
            }),
        ];
        let rows = bench.measure(name, subjects)?;
        anyhow::ensure!(read == trace.events.len(), "{name}: {read} events of {events} came back");
        anyhow::ensure!(read_text == read, "{name}: {read_text} events of {events} came back from STD text");
        let ratio = rows[1].cpu_s / rows[2].cpu_s;
        outcome.bar(&format!("{name}: CPU time of reading, against STD text"), ratio, Limit::AtMost(1.0));
        outcome.fact(&format!("{name}: million events written a second"), events / rows[0].cpu_s / 1e6);
        let speed = events / rows[1].cpu_s / 1e6;
        let bytes = std::fs::metadata(&path)?.len() as f64 / events;
        outcome.rows.extend(rows);
        outcome.bar(&format!("{name}: bytes an event"), bytes, Limit::AtMost(3.0));
        if name == "walk" {
            outcome.bar("walk: million events read a second", speed, Limit::AtLeast(30.0));
        } else {
            outcome.fact(&format!("{name}: million events read a second"), speed);
        }
    }
    Ok(outcome)
}

fn count(path: &std::path::Path) -> usize {
    let mut file = OpenTrace::open(path).expect("the trace can be opened");
    let (mut batch, mut events) = (Vec::new(), 0);
    loop {
        file.next_batch(&mut batch).expect("the trace can be read");
        if batch.is_empty() {
            return events;
        }
        events += batch.len();
    }
}

/// Threads that take turns of many accesses each, as in a recording.
fn traced(mut round: impl FnMut(u32, &mut Vec<Op>)) -> MemoryTrace {
    let mut trace = MemoryTrace::default();
    for _ in 1..THREADS {
        trace.tables.add_thread(Some(ThreadIx::MAIN));
    }
    let places: Vec<_> = (0..16)
        .map(|site| trace.tables.intern_location(Location::Pc(0x5555_5555_5000 + 37 * site)))
        .collect();
    let mut ops = Vec::new();
    while trace.events.len() < EVENTS {
        for thread in 0..THREADS {
            ops.clear();
            round(thread, &mut ops);
            trace.events.extend(ops.iter().enumerate().map(|(ix, &op)| Event {
                kept_calls: 0,
                thread: ThreadIx(thread),
                location: places[ix % 16],
                context: ContextIx::ROOT,
                op,
            }));
        }
    }
    trace
}

fn walk() -> MemoryTrace {
    let mut at = [0u64; THREADS as usize];
    traced(move |thread, ops| {
        let flags = AccessFlags::default();
        for _ in 0..2000 {
            at[thread as usize] += 8;
            let base = 0x7f00_0000_0000 + u64::from(thread) * (64 << 20) + at[thread as usize];
            ops.push(Op::Read { addr: Addr(base), size: 8, flags });
            ops.push(Op::Read { addr: Addr(base + (32 << 20)), size: 8, flags });
            ops.push(Op::Write { addr: Addr(base + (48 << 20)), size: 8, flags });
            ops.push(Op::Read { addr: Addr(0x5555_6000_0000), size: 4, flags });
        }
    })
}

fn lookup() -> MemoryTrace {
    let mut rng = Rng::new(7);
    traced(move |_, ops| {
        let (flags, lock) = (AccessFlags::default(), ObjectId(0x5555_6000_0040));
        for _ in 0..50 {
            let node = 0x5555_7000_0000 + u64::from(rng.below(1 << 21)) * 32;
            ops.push(Op::Lock { lock, flags: LockFlags::default() });
            ops.push(Op::Read { addr: Addr(node), size: 8, flags });
            ops.push(Op::Read { addr: Addr(node + 8), size: 4, flags });
            ops.push(Op::Read { addr: Addr(node + 12), size: 4, flags });
            ops.push(Op::Write { addr: Addr(node + 12), size: 4, flags });
            ops.push(Op::Unlock { lock, flags: LockFlags::default() });
        }
    })
}
