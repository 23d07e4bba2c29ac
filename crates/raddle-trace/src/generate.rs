//! Random well-formed traces from a seed.
//!
//! A [`Generator`] simulates a small machine (threads, mutexes, read-write locks, conditions, barriers, semaphores,
//! atomics, one-time initialisers) and lets randomly chosen threads take randomly chosen steps that the machine allows.
//! What it writes down is therefore *well-formed by construction*: a lock is acquired only while it is free, released
//! only by its holder, a child runs only after its fork, a join comes after the child's last event, a condition wait
//! returns only after a signal. The same [`Shape`] and seed always give the same trace.
//!
//! It is a public part of the crate because every analysis is tested on it: detectors against their naive twins,
//! prediction against brute force, trace formats against round trips, and the benches on millions of events.
//! [`crate::model`] is the other half: it decides whether a reordering of such a trace is a possible run.
//!
//! Not simulated: signals, processes, futexes and life cycles of objects; these have their own tests where they matter.

use crate::event::{AccessFlags, AtomicKind, Event, LockFlags, Op, Order, Patience};
use crate::ids::{Addr, ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};
use crate::source::{EventSource, MemoryTrace, TraceError};
use crate::tables::{Location, Tables};
use std::collections::VecDeque;

/// SplitMix64: small, fast, and good enough to choose test cases. One seed, one sequence, on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0);
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u32
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
}

/// What a generated trace looks like. Counts of zero leave a primitive out.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Events to aim at; the trace gets a little longer while threads release what they hold and end.
    pub events: u64,
    /// Threads in all, main included.
    pub threads: u32,
    pub variables: u32,
    pub locks: u32,
    pub rwlocks: u32,
    pub conditions: u32,
    pub barriers: u32,
    pub semaphores: u32,
    pub atomics: u32,
    pub onces: u32,
    /// Different code locations to choose from.
    pub locations: u32,
    /// A thread holds at most so many locks at once.
    pub nesting_max: u32,
    /// Share of plain accesses that write.
    pub write_percent: u32,
    /// Share of variables that are accessed only under "their" mutex (number modulo `locks`).
    pub guarded_percent: u32,
    /// Share of variables that are accessed by one thread only.
    pub private_percent: u32,
    /// How often the thread that moved last moves again.
    pub sticky_percent: u32,
    /// Share of steps that are a lock operation.
    pub lock_percent: u32,
    /// Share of steps that are one of the other synchronisation operations (if the shape has any).
    pub other_percent: u32,
    /// How often a child that holds nothing ends instead of going on, and its parent joins it.
    pub end_percent: u32,
    /// Write a `Request` before each blocking acquisition, and let the thread block there. The trace may then end in a
    /// deadlock, as a recorded one may.
    pub requests: bool,
    /// Try-locks that fail, waits that time out.
    pub failures: bool,
    /// `AtomicBegin` / `AtomicEnd` regions.
    pub regions: bool,
    /// Accesses of 1, 2, 4 and 8 bytes at any aligned offset of a variable's 8 bytes, instead of all 8.
    pub mixed_sizes: bool,
    /// Memory orders other than sequentially consistent, and fences.
    pub weak_orders: bool,
    /// `Custom` events (calls, for contracts and order detectors).
    pub calls: u32,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            events: 60,
            threads: 3,
            variables: 3,
            locks: 2,
            rwlocks: 0,
            conditions: 0,
            barriers: 0,
            semaphores: 0,
            atomics: 0,
            onces: 0,
            locations: 40,
            nesting_max: 2,
            write_percent: 50,
            guarded_percent: 0,
            private_percent: 0,
            sticky_percent: 50,
            lock_percent: 45,
            other_percent: 0,
            end_percent: 2,
            requests: false,
            failures: false,
            regions: false,
            mixed_sizes: false,
            weak_orders: false,
            calls: 0,
        }
    }
}

impl Shape {
    /// Mutexes, forks, joins and plain accesses only: the traces of the papers.
    pub fn locks_only(threads: u32, locks: u32, variables: u32, events: u64) -> Shape {
        Shape { threads, locks, variables, events, ..Shape::default() }
    }

    /// One or two of everything.
    pub fn everything(threads: u32, events: u64) -> Shape {
        Shape {
            threads,
            events,
            rwlocks: 1,
            conditions: 1,
            barriers: 1,
            semaphores: 1,
            atomics: 2,
            onces: 1,
            other_percent: 25,
            lock_percent: 30,
            failures: true,
            weak_orders: true,
            ..Shape::default()
        }
    }

    /// The traces of the detectors' speed bar: 8 threads, 16 locks, 16,000 variables.
    pub fn bench(events: u64) -> Shape {
        Shape {
            events,
            threads: 8,
            locks: 16,
            variables: 16_000,
            locations: 2_000,
            nesting_max: 3,
            write_percent: 30,
            guarded_percent: 60,
            private_percent: 35,
            sticky_percent: 90,
            lock_percent: 20,
            end_percent: 0,
            ..Shape::default()
        }
    }
}

/// Generates a whole trace.
pub fn generate(shape: &Shape, seed: u64) -> MemoryTrace {
    let mut generator = Generator::new(shape.clone(), seed);
    let events: Vec<Event> = generator.by_ref().collect();
    MemoryTrace { tables: generator.tables, events }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    NotForked,
    /// Forked, has not written its `Start`.
    Fresh,
    Running,
    /// Asked for a lock (index into `holders`), in read mode or not.
    Requesting {
        lock: usize,
        read: bool,
    },
    Waiting {
        cond: usize,
        lock: usize,
    },
    Woken {
        cond: usize,
        lock: usize,
    },
    /// Returned from a wait, does not have the mutex back yet.
    Relocking {
        lock: usize,
    },
    InBarrier {
        barrier: usize,
        generation: u32,
    },
    Ended,
}

#[derive(Clone, Debug)]
struct Actor {
    activity: Activity,
    parent: Option<usize>,
    joined: bool,
    /// Locks held, innermost last.
    held: Vec<usize>,
    regions: Vec<TextIx>,
}

#[derive(Clone, Debug, Default)]
struct Holder {
    writer: Option<usize>,
    readers: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    count: u32,
    entered: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Once {
    Fresh,
    Running(usize),
    Done,
}

/// Hands out the events of a random trace one by one; see the module's text.
#[derive(Clone, Debug)]
pub struct Generator {
    shape: Shape,
    rng: Rng,
    tables: Tables,
    actors: Vec<Actor>,
    /// Mutexes first, then read-write locks.
    holders: Vec<Holder>,
    barriers: Vec<Barrier>,
    semaphores: Vec<u32>,
    atomics: Vec<u64>,
    onces: Vec<Once>,
    texts: Vec<TextIx>,
    ready: VecDeque<Event>,
    written: u64,
    last: usize,
    next_value: u64,
    others: Vec<Other>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Condition,
    Barrier,
    Semaphore,
    Atomic,
    Once,
    Region,
    Call,
}

/// Values of semaphores at the beginning.
const SEMAPHORE_START: u32 = 1;

impl Generator {
    pub fn new(shape: Shape, seed: u64) -> Generator {
        assert!(shape.threads > 0 && shape.variables > 0 && shape.locations > 0, "a shape needs these");
        let mut tables = Tables::default();
        for number in 0..shape.locations {
            tables.intern_location(Location::Foreign(number + 1));
        }
        let texts = ["a", "b", "c", "d"].iter().map(|name| tables.intern_text(name)).collect();
        let mut actors: Vec<Actor> = (0..shape.threads)
            .map(|_| Actor {
                activity: Activity::NotForked,
                parent: None,
                joined: false,
                held: Vec::new(),
                regions: Vec::new(),
            })
            .collect();
        actors[0].activity = Activity::Running;
        let mut rng = Rng::new(seed);
        let barriers = (0..shape.barriers)
            .map(|_| Barrier { count: 2 + rng.below(shape.threads.max(2) - 1), ..Barrier::default() })
            .collect();
        let mut others = Vec::new();
        let kinds = [
            (shape.conditions, Other::Condition),
            (shape.barriers, Other::Barrier),
            (shape.semaphores, Other::Semaphore),
            (shape.atomics, Other::Atomic),
            (shape.onces, Other::Once),
            (u32::from(shape.regions), Other::Region),
            (shape.calls, Other::Call),
        ];
        for (count, other) in kinds {
            if count > 0 {
                others.push(other);
            }
        }
        let mut generator = Generator {
            rng,
            tables,
            actors,
            holders: vec![Holder::default(); (shape.locks + shape.rwlocks) as usize],
            barriers,
            semaphores: vec![SEMAPHORE_START; shape.semaphores as usize],
            atomics: vec![0; shape.atomics as usize],
            onces: vec![Once::Fresh; shape.onces as usize],
            texts,
            ready: VecDeque::new(),
            written: 0,
            last: 0,
            next_value: 1,
            others,
            shape,
        };
        generator.initialise();
        generator
    }

    fn initialise(&mut self) {
        for index in 0..self.barriers.len() {
            let (barrier, count) = (self.barrier_id(index), self.barriers[index].count);
            self.emit(0, Op::BarrierInit { barrier, count });
        }
        for index in 0..self.semaphores.len() {
            let sem = self.semaphore_id(index);
            self.emit(0, Op::SemInit { sem, value: SEMAPHORE_START });
        }
    }

    // Object numbers: one space for all kinds, so that no two objects share an id.

    fn lock_id(&self, index: usize) -> ObjectId {
        ObjectId(index as u64)
    }

    fn condition_id(&self, index: usize) -> ObjectId {
        ObjectId(self.holders.len() as u64 + index as u64)
    }

    fn barrier_id(&self, index: usize) -> ObjectId {
        ObjectId(self.condition_id(self.shape.conditions as usize).0 + index as u64)
    }

    fn semaphore_id(&self, index: usize) -> ObjectId {
        ObjectId(self.barrier_id(self.barriers.len()).0 + index as u64)
    }

    fn once_id(&self, index: usize) -> ObjectId {
        ObjectId(self.semaphore_id(self.semaphores.len()).0 + index as u64)
    }

    fn is_rwlock(&self, index: usize) -> bool {
        index >= self.shape.locks as usize
    }

    fn flags(&self, index: usize) -> LockFlags {
        LockFlags { rwlock: self.is_rwlock(index), ..LockFlags::default() }
    }

    fn emit(&mut self, actor: usize, op: Op) {
        let location = LocationIx(1 + self.rng.below(self.shape.locations));
        self.ready.push_back(Event {
            thread: ThreadIx(actor as u32),
            location,
            context: ContextIx::ROOT,
            op,
        });
    }

    /// Lets some thread take a step. False when none can.
    fn advance(&mut self) -> bool {
        let draining = self.written >= self.shape.events;
        if self.rng.percent(self.shape.sticky_percent) && self.step(self.last, draining) {
            return true;
        }
        let count = self.actors.len();
        let first = self.rng.below(count as u32) as usize;
        for offset in 0..count {
            let actor = (first + offset) % count;
            if self.step(actor, draining) {
                self.last = actor;
                return true;
            }
        }
        false
    }

    /// Lets one thread take a step if it can.
    fn step(&mut self, actor: usize, draining: bool) -> bool {
        match self.actors[actor].activity {
            Activity::NotForked | Activity::Ended => false,
            Activity::Fresh => {
                let parent = ThreadIx(self.actors[actor].parent.unwrap_or(0) as u32);
                self.actors[actor].activity = Activity::Running;
                self.emit(actor, Op::Start { parent });
                true
            }
            Activity::Requesting { lock, read } => {
                if !self.is_free(lock, read) {
                    return false;
                }
                self.acquire(actor, lock, read);
                true
            }
            Activity::Waiting { cond, lock } => {
                if !self.shape.failures || !self.rng.percent(2) {
                    return false;
                }
                self.actors[actor].activity = Activity::Relocking { lock };
                let (cond, lock) = (self.condition_id(cond), self.lock_id(lock));
                self.emit(actor, Op::WaitFailed { cond, lock });
                true
            }
            Activity::Woken { cond, lock } => {
                self.actors[actor].activity = Activity::Relocking { lock };
                let (cond, lock) = (self.condition_id(cond), self.lock_id(lock));
                self.emit(actor, Op::Wait { cond, lock });
                true
            }
            Activity::Relocking { lock } => {
                if !self.is_free(lock, false) {
                    return false;
                }
                self.holders[lock].writer = Some(actor);
                self.actors[actor].held.push(lock);
                self.actors[actor].activity = Activity::Running;
                let flags = LockFlags { wait: true, ..self.flags(lock) };
                let lock = self.lock_id(lock);
                self.emit(actor, Op::Lock { lock, flags });
                true
            }
            Activity::InBarrier { barrier, generation } => {
                if self.barriers[barrier].generation == generation {
                    return false;
                }
                self.actors[actor].activity = Activity::Running;
                let barrier = self.barrier_id(barrier);
                self.emit(actor, Op::BarrierExit { barrier });
                true
            }
            Activity::Running if draining => self.wind_down(actor),
            Activity::Running => {
                self.random_step(actor);
                true
            }
        }
    }

    /// Releases what the thread holds, then joins its children, then ends.
    fn wind_down(&mut self, actor: usize) -> bool {
        if let Some(name) = self.actors[actor].regions.pop() {
            self.emit(actor, Op::AtomicEnd { name });
        } else if self.actors[actor].held.is_empty() {
            let waiting = self.actors.iter().find_map(|a| match a.activity {
                Activity::Waiting { cond, .. } => Some(cond),
                _ => None,
            });
            if let Some(cond) = waiting {
                self.broadcast(actor, cond);
                return true;
            }
            if let Some(once) = self.onces.iter().position(|&once| once == Once::Running(actor)) {
                self.finish_once(actor, once);
                return true;
            }
            let children: Vec<usize> = (0..self.actors.len())
                .filter(|&child| self.actors[child].parent == Some(actor) && !self.actors[child].joined)
                .filter(|&child| self.actors[child].activity != Activity::NotForked)
                .collect();
            let Some(&child) = children.first() else {
                self.actors[actor].activity = Activity::Ended;
                self.emit(actor, Op::End);
                return true;
            };
            let ended = children.iter().copied().find(|&c| self.actors[c].activity == Activity::Ended);
            if ended.is_none() && actor == 0 {
                return false;
            }
            // Only main waits for its children; others leave them behind now and then.
            let Some(child) = ended else {
                self.actors[child].joined = true;
                self.emit(actor, Op::Detach { child: ThreadIx(child as u32) });
                return true;
            };
            self.actors[child].joined = true;
            self.emit(actor, Op::Join { child: ThreadIx(child as u32) });
        } else {
            self.release(actor);
        }
        true
    }

    fn random_step(&mut self, actor: usize) {
        let unforked = self.actors.iter().position(|a| a.activity == Activity::NotForked);
        if let Some(child) = unforked {
            // Threads should exist early, whatever the length of the trace.
            if self.rng.below(100) < 15 || self.written > self.shape.events / 4 {
                self.actors[child].activity = Activity::Fresh;
                self.actors[child].parent = Some(actor);
                self.tables.add_thread(Some(ThreadIx(actor as u32)));
                self.emit(actor, Op::Fork { child: ThreadIx(child as u32) });
                return;
            }
        }
        if self.rng.percent(self.shape.end_percent) && self.end_or_join(actor) {
            return;
        }
        if self.rng.below(100) < self.shape.lock_percent && !self.holders.is_empty() {
            self.lock_step(actor);
        } else if !self.others.is_empty() && self.rng.below(100) < self.shape.other_percent {
            let other = self.others[self.rng.below(self.others.len() as u32) as usize];
            self.other_step(actor, other);
        } else {
            self.access(actor);
        }
    }

    /// Joins a child that has ended, or else ends a thread that has nothing left to do. False if neither is possible.
    fn end_or_join(&mut self, actor: usize) -> bool {
        let mut children = (0..self.actors.len()).filter(|&a| self.actors[a].parent == Some(actor));
        let ended = |a: &Actor| a.activity == Activity::Ended && !a.joined;
        if let Some(child) = children.clone().find(|&child| ended(&self.actors[child])) {
            self.actors[child].joined = true;
            self.emit(actor, Op::Join { child: ThreadIx(child as u32) });
            return true;
        }
        let owns_once = self.onces.contains(&Once::Running(actor));
        let free = self.actors[actor].held.is_empty() && self.actors[actor].regions.is_empty() && !owns_once;
        if actor == 0 || !free || children.next().is_some() {
            return false;
        }
        self.actors[actor].activity = Activity::Ended;
        self.emit(actor, Op::End);
        true
    }

    fn lock_step(&mut self, actor: usize) {
        let held = self.actors[actor].held.len() as u32;
        let wants_more = self.rng.below(self.shape.nesting_max.max(1)) >= held;
        if !wants_more {
            return self.release(actor);
        }
        let lock = self.rng.below(self.holders.len() as u32) as usize;
        let read = self.is_rwlock(lock) && self.rng.percent(60);
        if self.actors[actor].held.contains(&lock) {
            return if held > 0 { self.release(actor) } else { self.access(actor) };
        }
        if self.shape.requests {
            self.actors[actor].activity = Activity::Requesting { lock, read };
            let flags = self.flags(lock);
            let lock = self.lock_id(lock);
            self.emit(actor, Op::Request { lock, read, flags });
        } else if self.is_free(lock, read) {
            self.acquire(actor, lock, read);
        } else if self.shape.failures {
            let flags = LockFlags { patience: Patience::Try, ..self.flags(lock) };
            let lock = self.lock_id(lock);
            let op = if read { Op::ReadLockFailed { lock, flags } } else { Op::LockFailed { lock, flags } };
            self.emit(actor, op);
        } else {
            self.access(actor);
        }
    }

    fn is_free(&self, lock: usize, read: bool) -> bool {
        let holder = &self.holders[lock];
        holder.writer.is_none() && (read || holder.readers.is_empty())
    }

    fn acquire(&mut self, actor: usize, lock: usize, read: bool) {
        assert!(self.is_free(lock, read));
        if read {
            self.holders[lock].readers.push(actor);
        } else {
            self.holders[lock].writer = Some(actor);
        }
        self.actors[actor].held.push(lock);
        self.actors[actor].activity = Activity::Running;
        let flags = self.flags(lock);
        let lock = self.lock_id(lock);
        self.emit(actor, if read { Op::ReadLock { lock, flags } } else { Op::Lock { lock, flags } });
    }

    /// Releases a lock, usually the innermost one.
    fn release(&mut self, actor: usize) {
        let count = self.actors[actor].held.len();
        let index = if self.rng.percent(85) { count - 1 } else { self.rng.below(count as u32) as usize };
        let lock = self.actors[actor].held.remove(index);
        self.let_go(actor, lock);
        let flags = self.flags(lock);
        let lock = self.lock_id(lock);
        self.emit(actor, Op::Unlock { lock, flags });
    }

    fn let_go(&mut self, actor: usize, lock: usize) {
        let holder = &mut self.holders[lock];
        if holder.writer == Some(actor) {
            holder.writer = None;
        } else {
            let place = holder.readers.iter().position(|&reader| reader == actor).expect("the actor reads");
            holder.readers.swap_remove(place);
        }
    }

    fn other_step(&mut self, actor: usize, other: Other) {
        match other {
            Other::Condition => self.condition_step(actor),
            Other::Barrier => self.barrier_step(actor),
            Other::Semaphore => {
                let index = self.rng.below(self.shape.semaphores) as usize;
                let sem = self.semaphore_id(index);
                if self.semaphores[index] > 0 && self.rng.percent(60) {
                    self.semaphores[index] -= 1;
                    self.emit(actor, Op::SemWait { sem });
                } else {
                    self.semaphores[index] += 1;
                    self.emit(actor, Op::SemPost { sem });
                }
            }
            Other::Atomic => self.atomic_step(actor),
            Other::Once => {
                let index = self.rng.below(self.shape.onces) as usize;
                match self.onces[index] {
                    Once::Fresh => {
                        self.onces[index] = Once::Running(actor);
                        let once = self.once_id(index);
                        self.emit(actor, Op::OnceBegin { once });
                    }
                    Once::Running(owner) if owner == actor => self.finish_once(actor, index),
                    Once::Running(_) => self.access(actor),
                    Once::Done => {
                        let once = self.once_id(index);
                        self.emit(actor, Op::OncePassed { once });
                    }
                }
            }
            Other::Region => {
                if !self.actors[actor].regions.is_empty() && self.rng.percent(60) {
                    let name = self.actors[actor].regions.pop().expect("not empty");
                    self.emit(actor, Op::AtomicEnd { name });
                } else {
                    let name = self.texts[self.rng.below(self.texts.len() as u32) as usize];
                    self.actors[actor].regions.push(name);
                    self.emit(actor, Op::AtomicBegin { name });
                }
            }
            Other::Call => {
                let name = self.texts[self.rng.below(self.texts.len() as u32) as usize];
                let object = ObjectId(1_000_000 + u64::from(self.rng.below(self.shape.calls)));
                self.emit(actor, Op::Custom { name, object });
            }
        }
    }

    fn finish_once(&mut self, actor: usize, index: usize) {
        self.onces[index] = Once::Done;
        let once = self.once_id(index);
        self.emit(actor, Op::OnceEnd { once });
    }

    fn condition_step(&mut self, actor: usize) {
        let cond = self.rng.below(self.shape.conditions) as usize;
        let waiting: Vec<usize> = (0..self.actors.len())
            .filter(|&a| matches!(self.actors[a].activity, Activity::Waiting { cond: c, .. } if c == cond))
            .collect();
        let mutex = self.actors[actor].held.last().copied().filter(|&lock| !self.is_rwlock(lock));
        let running =
            self.actors.iter().filter(|a| matches!(a.activity, Activity::Running | Activity::Fresh)).count();
        if let (Some(lock), true) = (mutex, running > 1 && self.rng.percent(50)) {
            self.actors[actor].held.pop();
            self.let_go(actor, lock);
            self.actors[actor].activity = Activity::Waiting { cond, lock };
            let flags = LockFlags { wait: true, ..self.flags(lock) };
            let (cond, lock) = (self.condition_id(cond), self.lock_id(lock));
            self.emit(actor, Op::Unlock { lock, flags });
            self.emit(actor, Op::WaitBegin { cond, lock });
        } else if self.rng.percent(30) {
            self.broadcast(actor, cond);
        } else {
            if !waiting.is_empty() {
                let chosen = waiting[self.rng.below(waiting.len() as u32) as usize];
                self.wake(chosen);
            }
            let cond = self.condition_id(cond);
            self.emit(actor, Op::Signal { cond });
        }
    }

    fn broadcast(&mut self, actor: usize, cond: usize) {
        for waiter in 0..self.actors.len() {
            if matches!(self.actors[waiter].activity, Activity::Waiting { cond: c, .. } if c == cond) {
                self.wake(waiter);
            }
        }
        let cond = self.condition_id(cond);
        self.emit(actor, Op::Broadcast { cond });
    }

    fn wake(&mut self, waiter: usize) {
        let Activity::Waiting { cond, lock } = self.actors[waiter].activity else { return };
        self.actors[waiter].activity = Activity::Woken { cond, lock };
    }

    fn barrier_step(&mut self, actor: usize) {
        let index = self.rng.below(self.shape.barriers) as usize;
        let running =
            self.actors.iter().filter(|a| matches!(a.activity, Activity::Running | Activity::Fresh)).count();
        let missing = self.barriers[index].count - self.barriers[index].entered;
        // Entering when nobody could come after us, or with locks that the others may need, would end the trace here.
        if (running as u32) < missing || !self.actors[actor].held.is_empty() {
            return self.access(actor);
        }
        let state = &mut self.barriers[index];
        self.actors[actor].activity = Activity::InBarrier { barrier: index, generation: state.generation };
        state.entered += 1;
        if state.entered == state.count {
            state.entered = 0;
            state.generation += 1;
        }
        let barrier = self.barrier_id(index);
        self.emit(actor, Op::BarrierEnter { barrier });
    }

    fn atomic_step(&mut self, actor: usize) {
        let mut order = |choices: &[Order]| {
            if self.shape.weak_orders {
                choices[self.rng.below(choices.len() as u32) as usize]
            } else {
                Order::SeqCst
            }
        };
        let rmw_order = order(&Order::ALL);
        let load_order = order(&[Order::Relaxed, Order::Acquire, Order::SeqCst]);
        let store_order = order(&[Order::Relaxed, Order::Release, Order::SeqCst]);
        let fence_order = order(&[Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst]);
        let index = self.rng.below(self.shape.atomics) as usize;
        let addr = Addr(8 * (1 + u64::from(self.shape.variables) + index as u64));
        let read = self.atomics[index];
        let written = self.next_value;
        let (kind, order, read, written) = match self.rng.below(10) {
            0..=3 => (AtomicKind::Load, load_order, read, 0),
            4..=6 => (AtomicKind::Store, store_order, 0, written),
            7 => (AtomicKind::Rmw, rmw_order, read, written),
            8 => (AtomicKind::CasFailed, load_order, read, 0),
            _ if self.shape.weak_orders => return self.emit(actor, Op::Fence { order: fence_order }),
            _ => (AtomicKind::Rmw, rmw_order, read, written),
        };
        if kind.writes() {
            self.atomics[index] = written;
            self.next_value += 1;
        }
        self.emit(actor, Op::Atomic { addr, size: 8, kind, order, read, written });
    }

    fn access(&mut self, actor: usize) {
        let variable = self.choose_variable(actor);
        let (mut offset, mut size) = (0, 8);
        if self.shape.mixed_sizes {
            size = 1 << self.rng.below(4);
            offset = size * self.rng.below(8 / size);
        }
        let addr = Addr(8 * (1 + u64::from(variable)) + u64::from(offset));
        let flags = AccessFlags::default();
        let write = self.rng.percent(self.shape.write_percent);
        self.emit(
            actor,
            if write { Op::Write { addr, size, flags } } else { Op::Read { addr, size, flags } },
        );
    }

    /// Variables are numbered: guarded ones first, then private ones, then those that anybody accesses.
    fn choose_variable(&mut self, actor: usize) -> u32 {
        let shape = &self.shape;
        let guarded = (u64::from(shape.variables) * u64::from(shape.guarded_percent) / 100) as u32;
        let private = (u64::from(shape.variables) * u64::from(shape.private_percent) / 100) as u32;
        let shared = shape.variables - guarded - private;
        if let Some(&lock) = self.actors[actor].held.last()
            && lock < shape.locks as usize
            && self.rng.percent(80)
        {
            let (lock, locks) = (lock as u32, shape.locks);
            if guarded > lock {
                let choices = (guarded - lock).div_ceil(locks);
                return lock + locks * self.rng.below(choices);
            }
        }
        let (actor, threads) = (actor as u32, shape.threads);
        if private > actor && (shared == 0 || self.rng.percent(95)) {
            let choices = (private - actor).div_ceil(threads);
            return guarded + actor + threads * self.rng.below(choices);
        }
        if shared == 0 { self.rng.below(shape.variables) } else { guarded + private + self.rng.below(shared) }
    }
}

impl Iterator for Generator {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            if !self.advance() {
                return None;
            }
        }
        self.written += 1;
        self.ready.pop_front()
    }
}

const BATCH_EVENTS: usize = 4096;

impl EventSource for Generator {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        batch.extend(self.by_ref().take(BATCH_EVENTS));
        Ok(())
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some((self.written, self.shape.events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides() {
        let shape = Shape::everything(4, 300);
        assert_eq!(generate(&shape, 7).events, generate(&shape, 7).events);
        assert_ne!(generate(&shape, 7).events, generate(&shape, 8).events);
    }

    #[test]
    fn every_primitive_appears() {
        let shape = Shape { regions: true, calls: 2, ..Shape::everything(4, 5_000) };
        let trace = generate(&shape, 1);
        let has = |wanted: fn(&Op) -> bool| trace.events.iter().any(|event| wanted(&event.op));
        assert!(has(|op| matches!(op, Op::Fork { .. })));
        assert!(has(|op| matches!(op, Op::Join { .. })));
        assert!(has(|op| matches!(op, Op::ReadLock { .. })));
        assert!(has(|op| matches!(op, Op::LockFailed { .. })));
        assert!(has(|op| matches!(op, Op::Wait { .. })));
        assert!(has(|op| matches!(op, Op::WaitFailed { .. })));
        assert!(has(|op| matches!(op, Op::Broadcast { .. })));
        assert!(has(|op| matches!(op, Op::BarrierExit { .. })));
        assert!(has(|op| matches!(op, Op::SemWait { .. })));
        assert!(has(|op| matches!(op, Op::Fence { .. })));
        assert!(has(|op| matches!(op, Op::Atomic { kind: AtomicKind::Rmw, .. })));
        assert!(has(|op| matches!(op, Op::OncePassed { .. })));
        assert!(has(|op| matches!(op, Op::AtomicEnd { .. })));
        assert!(has(|op| matches!(op, Op::Custom { .. })));
    }

    #[test]
    fn the_length_is_about_right() {
        for events in [10, 1_000, 100_000] {
            let shape = Shape::bench(events);
            let count = Generator::new(shape, 3).count() as u64;
            assert!(count >= events && count < events + 100, "{count} for {events}");
        }
    }
}
