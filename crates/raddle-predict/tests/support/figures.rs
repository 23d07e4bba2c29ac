//! Programs of the paper's figures, as the traces they leave.

#[allow(unused_imports)] // Not every test binary uses it.
pub use raddle_predict::bench_traces::figure_5_17;
use raddle_trace::{
    Addr, AtomicKind, Event, Location, LocationIx, LockFlags, MemoryTrace, ObjectId, Op, Order, Patience,
    ThreadIx,
};

/// Writes traces down, one event a call. Each event gets a code location of its own unless one is given.
#[derive(Default)]
pub struct Script {
    pub trace: MemoryTrace,
    next_location: u32,
}

pub const MAIN: ThreadIx = ThreadIx::MAIN;

impl Script {
    pub fn add(&mut self, thread: ThreadIx, op: Op) -> LocationIx {
        self.next_location += 1;
        let location = self.trace.tables.intern_location(Location::Foreign(self.next_location));
        self.trace.events.push(Event { thread, location, context: Default::default(), kept_calls: 0, op });
        location
    }

    pub fn fork(&mut self, parent: ThreadIx) -> ThreadIx {
        let child = self.trace.tables.add_thread(Some(parent));
        self.add(parent, Op::Fork { child });
        self.add(child, Op::Start { parent });
        child
    }

    pub fn end(&mut self, thread: ThreadIx) {
        self.add(thread, Op::End);
    }

    pub fn join(&mut self, parent: ThreadIx, child: ThreadIx) {
        self.add(child, Op::End);
        self.add(parent, Op::Join { child });
    }

    pub fn lock(&mut self, thread: ThreadIx, lock: u64) -> LocationIx {
        self.add(thread, Op::Lock { lock: ObjectId(lock), flags: LockFlags::default() })
    }

    pub fn try_lock(&mut self, thread: ThreadIx, lock: u64) {
        let flags = LockFlags { patience: Patience::Try, ..LockFlags::default() };
        self.add(thread, Op::Lock { lock: ObjectId(lock), flags });
    }

    pub fn unlock(&mut self, thread: ThreadIx, lock: u64) {
        self.add(thread, Op::Unlock { lock: ObjectId(lock), flags: LockFlags::default() });
    }

    pub fn write(&mut self, thread: ThreadIx, addr: u64) -> LocationIx {
        self.add(thread, Op::Write { addr: Addr(addr), size: 4, flags: Default::default() })
    }

    pub fn read(&mut self, thread: ThreadIx, addr: u64) -> LocationIx {
        self.add(thread, Op::Read { addr: Addr(addr), size: 4, flags: Default::default() })
    }

    /// `x++`, one code location.
    pub fn increment(&mut self, thread: ThreadIx, addr: u64) -> LocationIx {
        self.read(thread, addr);
        let location = self.trace.events.last().expect("an event").location;
        self.write(thread, addr);
        self.trace.events.last_mut().expect("an event").location = location;
        location
    }

    pub fn store(&mut self, thread: ThreadIx, addr: u64, value: u64) {
        self.atomic(thread, addr, AtomicKind::Store, 0, value);
    }

    pub fn load(&mut self, thread: ThreadIx, addr: u64, value: u64) {
        self.atomic(thread, addr, AtomicKind::Load, value, 0);
    }

    fn atomic(&mut self, thread: ThreadIx, addr: u64, kind: AtomicKind, read: u64, written: u64) {
        let order = Order::SeqCst;
        self.add(thread, Op::Atomic { addr: Addr(addr), size: 4, kind, order, read, written });
    }

    pub fn wait_begin(&mut self, thread: ThreadIx, cond: u64, lock: u64) {
        let flags = LockFlags { wait: true, ..LockFlags::default() };
        self.add(thread, Op::Unlock { lock: ObjectId(lock), flags });
        self.add(thread, Op::WaitBegin { cond: ObjectId(cond), lock: ObjectId(lock) });
    }

    pub fn wait_end(&mut self, thread: ThreadIx, cond: u64, lock: u64) {
        let flags = LockFlags { wait: true, ..LockFlags::default() };
        self.add(thread, Op::Wait { cond: ObjectId(cond), lock: ObjectId(lock) });
        self.add(thread, Op::Lock { lock: ObjectId(lock), flags });
    }

    pub fn signal(&mut self, thread: ThreadIx, cond: u64) {
        self.add(thread, Op::Signal { cond: ObjectId(cond) });
    }
}

pub const M: u64 = 0x100;
pub const P: u64 = 0x200;
pub const B: u64 = 0x300;
pub const S: u64 = 0x400;
pub const C: u64 = 0x500;
pub const X: u64 = 0x1000;
pub const Y: u64 = 0x2000;
pub const FLAG: u64 = 0x3000;

fn both(script: &mut Script, thread: ThreadIx, first: u64, second: u64) {
    script.lock(thread, first);
    script.lock(thread, second);
    script.unlock(thread, second);
    script.unlock(thread, first);
}

/// Figure 4.2: two mutexes in two orders; the worker was first (figure 4.3a).
pub fn figure_4_2() -> MemoryTrace {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    both(&mut script, worker, M, P);
    both(&mut script, MAIN, P, M);
    script.join(MAIN, worker);
    script.trace
}

/// Figure 4.16: the worker takes its locks only if it sees the flag that main sets at the end. In the first
/// interleaving it does.
pub fn figure_4_16(flag_seen: bool) -> MemoryTrace {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    if !flag_seen {
        script.load(worker, FLAG, 0);
    }
    script.lock(MAIN, P);
    script.lock(MAIN, M);
    script.store(MAIN, FLAG, 1);
    script.unlock(MAIN, M);
    script.unlock(MAIN, P);
    if flag_seen {
        script.load(worker, FLAG, 1);
        both(&mut script, worker, M, P);
    }
    script.join(MAIN, worker);
    script.trace
}

/// Figure 4.18, trace 4.19: two lock orders, with a barrier between them.
pub fn figure_4_18() -> MemoryTrace {
    let mut script = Script::default();
    let barrier = ObjectId(B);
    script.add(MAIN, Op::BarrierInit { barrier, count: 2 });
    let worker = script.fork(MAIN);
    both(&mut script, MAIN, P, M);
    both(&mut script, worker, P, M);
    script.add(worker, Op::BarrierEnter { barrier });
    script.add(MAIN, Op::BarrierEnter { barrier });
    script.add(MAIN, Op::BarrierExit { barrier });
    script.add(worker, Op::BarrierExit { barrier });
    both(&mut script, worker, M, P);
    both(&mut script, MAIN, M, P);
    script.join(MAIN, worker);
    script.trace
}

/// Figure 4.21, trace 4.22: main may take the token that was meant for the worker.
pub fn figure_4_21() -> MemoryTrace {
    let mut script = Script::default();
    let sem = ObjectId(S);
    script.add(MAIN, Op::SemInit { sem, value: 0 });
    let worker = script.fork(MAIN);
    script.add(MAIN, Op::SemPost { sem });
    script.add(worker, Op::SemWait { sem });
    script.add(worker, Op::SemPost { sem });
    script.add(MAIN, Op::SemWait { sem });
    script.join(MAIN, worker);
    script.trace
}

/// Figures 1.5 and 1.6 (and 5.2): an unprotected write on the far side of a critical section; which side was first?
pub fn figure_1_5(main_first: bool) -> (MemoryTrace, LocationIx, LocationIx) {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    let (mut x_main, mut x_worker) = (LocationIx::UNKNOWN, LocationIx::UNKNOWN);
    for turn in [main_first, !main_first] {
        if turn {
            x_main = script.write(MAIN, X);
            script.lock(MAIN, M);
            script.increment(MAIN, Y);
            script.unlock(MAIN, M);
        } else {
            script.lock(worker, M);
            script.increment(worker, Y);
            script.unlock(worker, M);
            x_worker = script.write(worker, X);
        }
    }
    script.join(MAIN, worker);
    (script.trace, x_main, x_worker)
}

/// Figure 5.9, interleaving 5.10a: the worker touches `x` only because it saw what main did to `y`.
pub fn figure_5_9() -> MemoryTrace {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    script.increment(MAIN, X);
    script.lock(MAIN, M);
    script.increment(MAIN, Y);
    script.unlock(MAIN, M);
    script.lock(worker, M);
    script.increment(worker, Y);
    script.read(worker, Y);
    script.unlock(worker, M);
    script.increment(worker, X);
    script.join(MAIN, worker);
    script.trace
}

/// The second worker is done with `x` and hands over to the third through `FLAG`; the first comes last. The first and the
/// third race on `x`, and the third gets there only if it sees the flag.
pub fn handed_over() -> MemoryTrace {
    let mut script = Script::default();
    let workers = [script.fork(MAIN), script.fork(MAIN), script.fork(MAIN)];
    script.lock(workers[1], M);
    script.increment(workers[1], X);
    script.unlock(workers[1], M);
    script.lock(workers[1], P);
    script.write(workers[1], FLAG);
    script.unlock(workers[1], P);
    script.lock(workers[2], P);
    script.read(workers[2], FLAG);
    script.unlock(workers[2], P);
    script.increment(workers[2], X);
    script.lock(workers[0], M);
    script.increment(workers[0], X);
    script.unlock(workers[0], M);
    for worker in workers {
        script.join(MAIN, worker);
    }
    script.trace
}

/// A condition wait (figure 4.5). With a predicate, the worker waits only as long as it has to.
pub fn figure_4_5(predicate: bool) -> MemoryTrace {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    script.lock(worker, M);
    if predicate {
        script.read(worker, FLAG);
    }
    script.wait_begin(worker, C, M);
    script.lock(MAIN, M);
    if predicate {
        script.write(MAIN, FLAG);
    }
    script.signal(MAIN, C);
    script.unlock(MAIN, M);
    script.wait_end(worker, C, M);
    if predicate {
        script.read(worker, FLAG);
    }
    script.unlock(worker, M);
    script.join(MAIN, worker);
    script.trace
}
