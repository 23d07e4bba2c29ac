//! What a trace allows: the step-by-step semantics of its operations.
//!
//! Prediction reasons about runs that did not happen. This module says which of them could have: given a trace, a
//! [`State`] knows how far each thread has come and which threads can take their next event now. A sequence of events
//! that can be taken step by step is a *valid schedule* (in the papers: a *correct reordering*, closed under thread
//! order, respecting locks, and letting every read see the same write as in the observed run). Witnesses are checked
//! against it, and brute-force twins of the predictive analyses enumerate it.
//!
//! # When an event is enabled
//!
//! | event | when it is its thread's next one and ... |
//! | --- | --- |
//! | first event of a thread | its fork was executed (or the trace has none) |
//! | `Join` | the child has executed all its events |
//! | `Lock` | nobody holds the lock; or it is nested; or the owner died |
//! | `ReadLock` | nobody holds the lock for writing |
//! | `Wait` | a signal not used up by another waiter, or a broadcast, came after its `WaitBegin` |
//! | `BarrierExit` | enough threads have entered for its round |
//! | `SemWait` | the count is positive |
//! | `OnceBegin`, `OncePassed` | nobody has begun; somebody has finished |
//! | `Read`, `Atomic` that reads | under [`ReadsFrom::Same`]: each byte was last written by the same event as observed |
//! | `FutexWait`, `Acquire` | all wakes (releases) of the word (object) that were observed before it were executed |
//! | `Init`, `Destroy`, `BarrierInit`, `SemInit` | all earlier observed events of the object were executed; and its later events wait for it |
//! | anything else | always |
//!
//! The failed operations (`LockFailed`, `WaitFailed`, `SemWaitFailed`, `JoinFailed`, ...) are always enabled: a replay
//! mimics the observed failure. [`Rules::exact_failures`] asks for more: a try operation fails only if it could not
//! have succeeded.
//!
//! A recorded trace can contain steps that this model would not allow (a spurious wake-up, a lock whose release was
//! lost with a killed thread). [`Model::new`] walks through the observed order once; an event that is not enabled there
//! is listed in [`Model::oddities`] and is enabled everywhere. So the observed order itself is always valid.

use crate::event::{Event, Op};
use crate::ids::{ObjectId, ThreadIx};
use crate::ops_about;
use crate::source::MemoryTrace;
use raddle_wire::Effect;
use raddle_wire::operations::ObjectKind;
use rustc_hash::FxHashMap;

mod object;
mod obstacle;
mod state;

use object::Object;
pub use obstacle::{Invalid, Obstacle};
pub use state::State;

/// An event of a trace, by its place in the observed order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventIx(pub u32);

impl EventIx {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a read may see in a reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadsFrom {
    /// The write that it saw in the observed run: the thread certainly goes on as it did there.
    #[default]
    Same,
    /// Any write. Only for analyses that do not depend on values.
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub reads_from: ReadsFrom,
    /// Try operations fail only when they could not have succeeded, instead of being mimicked.
    pub exact_failures: bool,
}

/// No object: the event concerns none.
const NONE: u32 = u32::MAX;

/// The facts about one event that do not change between states.
#[derive(Clone, Copy, Debug)]
struct Fact {
    /// Dense number of its synchronisation object.
    object: u32,
    /// How many events of the object come before it in the observed order.
    earlier: u32,
    /// How many of these begin or end the object's life.
    lives: u32,
    /// Cells it touches: first and one past the last.
    cells: (u32, u32),
    /// Where its observed writers begin in `Model::writers`, for reads.
    writers: u32,
    odd: bool,
}

/// A trace and its rules, ready to be stepped through.
pub struct Model<'t> {
    trace: &'t MemoryTrace,
    rules: Rules,
    threads: Vec<Vec<EventIx>>,
    facts: Vec<Fact>,
    /// Observed writer of each cell of each read: event number + 1, or 0.
    writers: Vec<u32>,
    objects: Vec<ObjectId>,
    barrier_counts: Vec<u32>,
    semaphore_starts: Vec<u32>,
    once_done_at_start: Vec<bool>,
    forked_by: Vec<Option<EventIx>>,
    cells: u32,
    oddities: Vec<(EventIx, Obstacle)>,
}

fn access_range(op: &Op) -> Option<(u64, u64, bool, bool)> {
    match *op {
        Op::Read { addr, size, .. } => Some((addr.0, u64::from(size), true, false)),
        Op::Write { addr, size, .. } => Some((addr.0, u64::from(size), false, true)),
        Op::Atomic { addr, size, kind, .. } => Some((addr.0, u64::from(size), kind.reads(), kind.writes())),
        Op::Fence { .. } | Op::Alloc { .. } | Op::Free { .. } | Op::Lost { .. } | ops_about!(Sync) => None,
    }
}

/// The synchronisation object that an operation is about.
pub fn object_of(op: &Op) -> Option<ObjectId> {
    let (sync, object, _) = op.sync_words()?;
    let carries = match sync.object_kind() {
        ObjectKind::Lock
        | ObjectKind::Condition
        | ObjectKind::Barrier
        | ObjectKind::Semaphore
        | ObjectKind::Once
        | ObjectKind::Futex
        | ObjectKind::Channel => true,
        // Other annotations name something and order nothing.
        ObjectKind::Annotated => matches!(sync.effect(), Effect::Sends | Effect::Receives),
        ObjectKind::Nothing | ObjectKind::Thread | ObjectKind::Signal => false,
    };
    carries.then_some(ObjectId(object))
}

/// Does the operation begin or end the life of its object?
pub fn begins_or_ends_life(op: &Op) -> bool {
    op.sync_words().is_some_and(|(sync, ..)| sync.effect().begins_or_ends_life())
}

/// Number of the elementary byte interval that begins at `addr`.
fn cell_at(bounds: &[u64], addr: u64) -> u32 {
    bounds.partition_point(|&bound| bound < addr) as u32
}

impl<'t> Model<'t> {
    pub fn new(trace: &'t MemoryTrace, rules: Rules) -> Model<'t> {
        assert!(trace.events.len() < u32::MAX as usize, "event numbers have 32 bits");
        let mut bounds: Vec<u64> = Vec::new();
        for event in &trace.events {
            if let Some((addr, size, ..)) = access_range(&event.op) {
                bounds.push(addr);
                bounds.push(addr.saturating_add(size));
            }
        }
        bounds.sort_unstable();
        bounds.dedup();
        let mut model = Model {
            trace,
            rules,
            threads: vec![Vec::new(); trace.tables.threads.len()],
            facts: Vec::with_capacity(trace.events.len()),
            writers: Vec::new(),
            objects: Vec::new(),
            barrier_counts: Vec::new(),
            semaphore_starts: Vec::new(),
            once_done_at_start: Vec::new(),
            forked_by: Vec::new(),
            cells: bounds.len() as u32,
            oddities: Vec::new(),
        };
        model.collect_facts(&bounds);
        model.infer_starts();
        model.oddities = model.walk_observed_order();
        for &(event, _) in &model.oddities {
            model.facts[event.index()].odd = true;
        }
        model
    }

    fn collect_facts(&mut self, bounds: &[u64]) {
        let mut numbers: FxHashMap<ObjectId, u32> = FxHashMap::default();
        let mut seen: Vec<(u32, u32)> = Vec::new();
        let mut memory = vec![0_u32; bounds.len()];
        for (index, event) in self.trace.events.iter().enumerate() {
            let thread = event.thread.index();
            if let Op::Fork { child } = event.op {
                self.room_for(child.index());
                self.forked_by[child.index()].get_or_insert(EventIx(index as u32));
            }
            self.room_for(thread);
            self.threads[thread].push(EventIx(index as u32));
            let mut fact = Fact { object: NONE, earlier: 0, lives: 0, cells: (0, 0), writers: 0, odd: false };
            if let Some(object) = object_of(&event.op) {
                let number = *numbers.entry(object).or_insert_with(|| {
                    self.objects.push(object);
                    seen.push((0, 0));
                    self.objects.len() as u32 - 1
                });
                let (earlier, lives) = &mut seen[number as usize];
                (fact.object, fact.earlier, fact.lives) = (number, *earlier, *lives);
                *earlier += 1;
                *lives += u32::from(begins_or_ends_life(&event.op));
            }
            if let Some((addr, size, reads, writes)) = access_range(&event.op) {
                fact.cells = (cell_at(bounds, addr), cell_at(bounds, addr.saturating_add(size)));
                let range = fact.cells.0 as usize..fact.cells.1 as usize;
                if reads {
                    fact.writers = u32::try_from(self.writers.len()).expect("fewer than 2^32 cells read");
                    self.writers.extend_from_slice(&memory[range.clone()]);
                }
                if writes {
                    memory[range].fill(index as u32 + 1);
                }
            }
            self.facts.push(fact);
        }
    }

    fn room_for(&mut self, thread: usize) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Vec::new());
        }
        if self.forked_by.len() < self.threads.len() {
            self.forked_by.resize(self.threads.len(), None);
        }
    }

    /// Counts of barriers and semaphores whose initialisation the trace does not show: the smallest that allow what was
    /// observed.
    fn infer_starts(&mut self) {
        let count = self.objects.len();
        let (mut counts, mut starts, mut done) = (vec![0; count], vec![0; count], vec![false; count]);
        let (mut entered, mut value, mut begun) =
            (vec![0_u32; count], vec![0_i64; count], vec![false; count]);
        for (fact, event) in self.facts.iter().zip(&self.trace.events) {
            let object = fact.object as usize;
            match event.op {
                Op::BarrierEnter { .. } => entered[object] += 1,
                Op::BarrierExit { .. } if counts[object] == 0 => counts[object] = entered[object],
                Op::SemPost { .. } => value[object] += 1,
                Op::SemWait { .. } => {
                    value[object] -= 1;
                    starts[object] = starts[object].max(-value[object]);
                }
                Op::SemInit { .. } => value[object] = i64::MAX / 2,
                Op::OnceBegin { .. } => begun[object] = true,
                Op::OncePassed { .. } if !begun[object] => done[object] = true,
                Op::BarrierInit { .. }
                | Op::BarrierExit { .. }
                | Op::SemWaitFailed { .. }
                | Op::SemRequest { .. }
                | Op::OnceEnd { .. }
                | Op::OncePassed { .. }
                | ops_about!(
                    Memory, Nothing, Thread, Lock, Condition, Futex, Annotated, Signal, Channel, Life
                ) => {}
            }
        }
        self.barrier_counts = counts;
        self.semaphore_starts = starts.into_iter().map(|start| u32::try_from(start).unwrap_or(0)).collect();
        self.once_done_at_start = done;
    }

    fn walk_observed_order(&self) -> Vec<(EventIx, Obstacle)> {
        let mut oddities = Vec::new();
        let mut state = self.start();
        for (index, event) in self.trace.events.iter().enumerate() {
            if let Some(obstacle) = state.obstacle(event.thread) {
                oddities.push((EventIx(index as u32), obstacle));
            }
            state.take(event.thread);
        }
        oddities
    }

    pub fn trace(&self) -> &'t MemoryTrace {
        self.trace
    }

    pub fn event(&self, ix: EventIx) -> &'t Event {
        &self.trace.events[ix.index()]
    }

    /// How many threads the trace has.
    pub fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    /// The events of a thread in its order.
    pub fn events_of(&self, thread: ThreadIx) -> &[EventIx] {
        self.threads.get(thread.index()).map_or(&[], Vec::as_slice)
    }

    /// Events that the model would not have allowed where they were observed, and why. They are enabled everywhere.
    pub fn oddities(&self) -> &[(EventIx, Obstacle)] {
        &self.oddities
    }

    /// The state in which nothing has been executed.
    pub fn start(&self) -> State<'_> {
        let objects = (0..self.objects.len())
            .map(|object| Object {
                count: self.semaphore_starts[object],
                once_done: self.once_done_at_start[object],
                ..Object::default()
            })
            .collect();
        State {
            model: self,
            next: vec![0; self.threads.len()],
            objects,
            memory: vec![0; self.cells as usize],
            taken: 0,
        }
    }

    /// Executes a schedule step by step. The result is the state after it, or the first step that cannot be taken.
    pub fn run(&self, schedule: &[EventIx]) -> Result<State<'_>, Invalid> {
        let mut state = self.start();
        for (place, &event) in schedule.iter().enumerate() {
            let thread = self.event(event).thread;
            let invalid = |obstacle| Invalid { place, event, obstacle };
            if state.next(thread) != Some(event) {
                // Out of its thread's order: report what stands in the way of the thread itself.
                return Err(invalid(state.obstacle(thread).unwrap_or(Obstacle::Finished)));
            }
            state.step(thread).map_err(invalid)?;
        }
        Ok(state)
    }

    /// Does this schedule show a race between two events? It must be valid, and in the state after it both must be
    /// their threads' next events and not depend on one another. What the racing reads see does not matter.
    pub fn check_race(&self, schedule: &[EventIx], first: EventIx, second: EventIx) -> Result<(), Invalid> {
        let state = self.run(schedule)?;
        for event in [first, second] {
            let thread = self.event(event).thread;
            let obstacle = match state.obstacle(thread) {
                _ if state.next(thread) != Some(event) => Some(Obstacle::Finished),
                Some(Obstacle::WrongWriter { .. }) | None => None,
                other => other,
            };
            if let Some(obstacle) = obstacle {
                return Err(Invalid { place: schedule.len(), event, obstacle });
            }
        }
        Ok(())
    }

    /// Does this schedule lead into a deadlock of these threads: is each of them, after it, about to acquire a lock
    /// that another one of them holds? Returns the locks waited for.
    pub fn check_deadlock(
        &self,
        schedule: &[EventIx],
        threads: &[ThreadIx],
    ) -> Result<Vec<ObjectId>, Invalid> {
        let state = self.run(schedule)?;
        let mut locks = Vec::new();
        for &thread in threads {
            let event = state.next(thread).unwrap_or_default();
            match state.obstacle(thread) {
                Some(Obstacle::LockHeld { lock, by }) if by != thread && threads.contains(&by) => {
                    locks.push(lock);
                }
                obstacle => {
                    let obstacle = obstacle.unwrap_or(Obstacle::WouldSucceed);
                    return Err(Invalid { place: schedule.len(), event, obstacle });
                }
            }
        }
        Ok(locks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::LockFlags;
    use crate::generate::{Rng, Shape, generate};

    fn shapes() -> Vec<Shape> {
        vec![
            Shape::locks_only(3, 2, 3, 80),
            Shape { requests: true, nesting_max: 3, ..Shape::locks_only(4, 3, 3, 80) },
            Shape { mixed_sizes: true, ..Shape::everything(4, 200) },
        ]
    }

    #[test]
    fn the_observed_order_of_a_generated_trace_is_valid() {
        for shape in shapes() {
            for seed in 0..300 {
                let trace = generate(&shape, seed);
                let rules = Rules { exact_failures: true, ..Rules::default() };
                let model = Model::new(&trace, rules);
                assert_eq!(model.oddities(), &[], "seed {seed}, {shape:?}");
                let schedule: Vec<EventIx> = (0..trace.events.len() as u32).map(EventIx).collect();
                assert!(model.run(&schedule).is_ok(), "seed {seed}, {shape:?}");
            }
        }
    }

    /// Whatever random path is walked, a lock never has two holders, and what is executed is closed under thread order.
    #[test]
    fn random_walks_respect_locks() {
        for shape in shapes() {
            for seed in 0..100 {
                let trace = generate(&shape, seed);
                let model = Model::new(&trace, Rules { reads_from: ReadsFrom::Any, ..Rules::default() });
                let mut rng = Rng::new(seed);
                let mut state = model.start();
                let mut held: FxHashMap<ObjectId, Vec<(ThreadIx, bool)>> = FxHashMap::default();
                loop {
                    let enabled: Vec<ThreadIx> = state.enabled().collect();
                    if enabled.is_empty() {
                        break;
                    }
                    let thread = enabled[rng.below(enabled.len() as u32) as usize];
                    let event = model.event(state.step(thread).expect("enabled"));
                    match event.op {
                        Op::Lock { lock, .. } => held.entry(lock).or_default().push((thread, false)),
                        Op::ReadLock { lock, .. } => held.entry(lock).or_default().push((thread, true)),
                        Op::Unlock { lock, .. } => {
                            let holders = held.entry(lock).or_default();
                            let place = holders.iter().position(|h| h.0 == thread).expect("held");
                            holders.remove(place);
                        }
                        Op::LockFailed { .. }
                        | Op::ReadLockFailed { .. }
                        | Op::Request { .. }
                        | crate::ops_beside!(Lock) => {}
                    }
                    for holders in held.values() {
                        let alone = holders.len() <= 1 || holders.iter().all(|&(_, read)| read);
                        assert!(alone, "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_wait_needs_a_signal_that_came_after_it_began() {
        let mut trace = MemoryTrace::default();
        let (main, child) = (ThreadIx(0), trace.tables.add_thread(Some(ThreadIx(0))));
        let (cond, lock, flags) = (ObjectId(1), ObjectId(2), LockFlags::default());
        let mut add = |thread, op| {
            let context = Default::default();
            trace.events.push(Event { thread, location: Default::default(), context, kept_calls: 0, op });
        };
        add(main, Op::Fork { child });
        add(main, Op::Lock { lock, flags });
        add(main, Op::Unlock { lock, flags });
        add(main, Op::WaitBegin { cond, lock });
        add(child, Op::Signal { cond });
        add(main, Op::Wait { cond, lock });
        add(main, Op::Lock { lock, flags });
        let model = Model::new(&trace, Rules::default());
        assert_eq!(model.oddities(), &[]);
        let order = |numbers: &[u32]| numbers.iter().copied().map(EventIx).collect::<Vec<_>>();
        assert!(model.run(&order(&[0, 1, 2, 3, 4, 5, 6])).is_ok());
        let lost = model.run(&order(&[0, 1, 2, 4, 3, 5])).err().expect("the signal is lost");
        assert_eq!((lost.place, lost.obstacle), (5, Obstacle::NoSignal(cond)));
    }

    #[test]
    fn a_read_keeps_its_writer_byte_by_byte() {
        let mut trace = MemoryTrace::default();
        let child = trace.tables.add_thread(Some(ThreadIx(0)));
        let flags = Default::default();
        let mut add = |thread, op| {
            let context = Default::default();
            trace.events.push(Event { thread, location: Default::default(), context, kept_calls: 0, op });
        };
        let at = crate::ids::Addr;
        add(ThreadIx(0), Op::Write { addr: at(8), size: 8, flags });
        add(child, Op::Write { addr: at(12), size: 1, flags });
        add(ThreadIx(0), Op::Read { addr: at(8), size: 4, flags });
        add(ThreadIx(0), Op::Read { addr: at(12), size: 2, flags });
        let model = Model::new(&trace, Rules::default());
        let order = |numbers: &[u32]| numbers.iter().copied().map(EventIx).collect::<Vec<_>>();
        assert!(model.run(&order(&[0, 2, 1, 3])).is_ok());
        let invalid = model.run(&order(&[0, 2, 3])).err().expect("the byte at 12 was written by event 1");
        let obstacle = Obstacle::WrongWriter { expected: Some(EventIx(1)), found: Some(EventIx(0)) };
        assert_eq!(invalid.obstacle, obstacle);
        assert!(model.check_race(&order(&[0, 2]), EventIx(3), EventIx(1)).is_ok());
        assert!(model.check_race(&order(&[0]), EventIx(3), EventIx(1)).is_err());
    }
}
