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

use crate::event::{Event, LockFlags, Op};
use crate::ids::{ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};
use crate::source::{EventSource, MemoryTrace, TraceError};
use crate::tables::{Location, Tables};
use std::collections::VecDeque;

mod operations;
mod rng;
mod shape;

pub use rng::Rng;
pub use shape::Shape;

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
            kept_calls: 0,
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
                Activity::NotForked
                | Activity::Fresh
                | Activity::Running
                | Activity::Requesting { .. }
                | Activity::Woken { .. }
                | Activity::Relocking { .. }
                | Activity::InBarrier { .. }
                | Activity::Ended => None,
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
    use crate::event::AtomicKind;

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
