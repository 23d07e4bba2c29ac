//! Traces for measuring: the paper's scalable program, and a long run of an ordinary one.

use raddle_trace::generate::Rng;
use raddle_trace::{Addr, Event, Location, LockFlags, MemoryTrace, ObjectId, Op, ThreadIx};

const LOCK: ObjectId = ObjectId(0x100);
const X: u64 = 0x1000;
const Y: u64 = 0x2000;

/// Writes events down; the line number is the code location.
struct Writer {
    trace: MemoryTrace,
}

impl Writer {
    fn new() -> Writer {
        Writer { trace: MemoryTrace::default() }
    }

    fn add(&mut self, thread: ThreadIx, line: u32, op: Op) {
        let location = self.trace.tables.intern_location(Location::Foreign(line));
        self.trace.events.push(Event { thread, location, context: Default::default(), kept_calls: 0, op });
    }

    fn increment(&mut self, thread: ThreadIx, line: u32, addr: u64) {
        let (addr, size, flags) = (Addr(addr), 4, Default::default());
        self.add(thread, line, Op::Read { addr, size, flags });
        self.add(thread, line, Op::Write { addr, size, flags });
    }

    fn fork(&mut self, line: u32) -> ThreadIx {
        let child = self.trace.tables.add_thread(Some(ThreadIx::MAIN));
        self.add(ThreadIx::MAIN, line, Op::Fork { child });
        self.add(child, line, Op::Start { parent: ThreadIx::MAIN });
        child
    }

    fn join(&mut self, line: u32, child: ThreadIx) {
        self.add(child, line, Op::End);
        self.add(ThreadIx::MAIN, line, Op::Join { child });
    }

    fn lock(&mut self, thread: ThreadIx, line: u32, lock: ObjectId) {
        self.add(thread, line, Op::Lock { lock, flags: LockFlags::default() });
    }

    fn unlock(&mut self, thread: ThreadIx, line: u32, lock: ObjectId) {
        self.add(thread, line, Op::Unlock { lock, flags: LockFlags::default() });
    }
}

/// Figure 5.17 with `n` iterations: the race on `x` shows only if the worker ends before main begins.
pub fn figure_5_17(n: u32) -> MemoryTrace {
    let mut writer = Writer::new();
    let worker = writer.fork(4);
    writer.increment(ThreadIx::MAIN, 5, X);
    for (thread, line) in [(ThreadIx::MAIN, 7), (worker, 16)] {
        for _ in 0..n {
            writer.lock(thread, line, LOCK);
            writer.increment(thread, line + 1, Y);
            writer.unlock(thread, line + 2, LOCK);
        }
    }
    writer.increment(worker, 20, X);
    writer.join(11, worker);
    writer.trace
}

/// Threads of [`workers`] beside main.
const WORKERS: u32 = 8;
/// Shared tables, each with its mutex.
const TABLES: u64 = 64;

/// A run of about `events` events of a program as they are: workers that compute on their own memory, take work from a
/// queue (mutex and semaphore), update tables under the mutex of each (two at a time in a fixed order), and keep one
/// statistics counter without a lock, which is the race to be found.
pub fn workers(events: usize, seed: u64) -> MemoryTrace {
    let mut writer = Writer::new();
    writer.trace.events.reserve(events + 1000);
    let mut rng = Rng::new(seed);
    let items = ObjectId(0x50);
    writer.add(ThreadIx::MAIN, 1, Op::SemInit { sem: items, value: 0 });
    let threads: Vec<ThreadIx> = (0..WORKERS).map(|_| writer.fork(2)).collect();
    let table = |number: u64| 0x10_0000 + number * 0x1000;
    while writer.trace.events.len() < events {
        // One item: main puts it into the queue, a worker takes it and works on it.
        let worker = threads[rng.below(WORKERS) as usize];
        for (thread, line) in [(ThreadIx::MAIN, 10), (worker, 20)] {
            if thread != ThreadIx::MAIN {
                writer.add(thread, line, Op::SemWait { sem: items });
            }
            writer.lock(thread, line + 1, LOCK);
            writer.increment(thread, line + 2, Y);
            writer.unlock(thread, line + 3, LOCK);
            if thread == ThreadIx::MAIN {
                writer.add(thread, line + 4, Op::SemPost { sem: items });
            }
        }
        let own = 0x1000_0000 + u64::from(worker.0) * 0x10_0000;
        for step in 0..24 {
            writer.increment(worker, 30 + step % 4, own + u64::from(rng.below(4096)) * 8);
        }
        let first = u64::from(rng.below(TABLES as u32 - 1));
        let second = first + 1 + u64::from(rng.below((TABLES - first - 1) as u32));
        writer.lock(worker, 40, ObjectId(0x200 + first));
        writer.lock(worker, 41, ObjectId(0x200 + second));
        for step in 0..6 {
            let from = if step % 2 == 0 { first } else { second };
            writer.increment(worker, 42 + step, table(from) + u64::from(rng.below(64)) * 8);
        }
        writer.unlock(worker, 50, ObjectId(0x200 + second));
        writer.unlock(worker, 51, ObjectId(0x200 + first));
        if rng.percent(10) {
            writer.increment(worker, 60, X);
        }
    }
    for thread in threads {
        writer.join(70, thread);
    }
    writer.trace
}
