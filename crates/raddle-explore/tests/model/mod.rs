//! Small programs without threads: what every search is compared with.
//!
//! A program is a list of instructions for each thread. The model has its own idea of who can go, written down once more and
//! simply, and its own enumeration of all runs.

#![allow(dead_code)] // Each test takes what it needs.

use raddle_explore::systematic::run::Event;
use raddle_explore::systematic::{Executor, Order, Run, Step, ThreadId};
use raddle_sched::Operation;
use raddle_sched::dependence::{GIVES_UP, dependent};
use raddle_wire::step;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

const VARIABLES: u64 = 0x1000;
const MUTEXES: u64 = 0x2000;
const SEMAPHORES: u64 = 0x3000;
const CONDITIONS: u64 = 0x4000;
const BARRIERS: u64 = 0x5000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Variable into register.
    Load(u64),
    /// Register plus a number into variable.
    Store(u64, i64),
    /// Adds one, register has the value before.
    Add(u64),
    Lock(u64),
    Unlock(u64),
    /// Skips so many instructions if the lock is taken.
    TryLock(u64, usize),
    ReadLock(u64),
    Acquire(u64),
    Post(u64),
    Enter(u64),
    Exit(u64),
    /// Condition and mutex; followed by `Wake` and `Relock`.
    Wait(u64, u64),
    Wake(u64),
    Relock(u64),
    Signal(u64),
    Broadcast(u64),
    /// Not a step of its own: skips so many if the register is zero.
    SkipIfZero(usize),
    /// The program ends here.
    Crash,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    at: Vec<usize>,
    registers: Vec<i64>,
    variables: BTreeMap<u64, i64>,
    /// Owner, or readers.
    writers: BTreeMap<u64, usize>,
    readers: BTreeSet<(u64, usize)>,
    semaphores: BTreeMap<u64, i64>,
    arrived: BTreeMap<u64, u32>,
    rounds: BTreeMap<u64, u32>,
    entered: BTreeMap<usize, u32>,
    /// Condition, thread, and for how many signals it has been there.
    waiting: Vec<(u64, usize, u32)>,
    tokens: Vec<(u64, u32)>,
    time: u32,
    crashed: bool,
}

#[derive(Clone, Debug)]
pub struct Model {
    pub threads: Vec<Vec<Do>>,
    pub semaphore: i64,
    pub barrier: u32,
    pub runs: u64,
    pub last: State,
}

impl Model {
    pub fn new(threads: Vec<Vec<Do>>) -> Model {
        Model { threads, semaphore: 1, barrier: 2, runs: 0, last: State::default() }
    }

    fn start(&self) -> State {
        let mut state = State {
            at: vec![0; self.threads.len()],
            registers: vec![0; self.threads.len()],
            ..State::default()
        };
        (0..self.threads.len()).for_each(|thread| self.skip(&mut state, thread));
        state
    }

    /// Decides everything up to the next step.
    fn skip(&self, state: &mut State, thread: usize) {
        while let Some(Do::SkipIfZero(count)) = self.threads[thread].get(state.at[thread]) {
            state.at[thread] += 1 + if state.registers[thread] == 0 { *count } else { 0 };
        }
    }

    fn next(&self, state: &State, thread: usize) -> Option<Do> {
        if state.crashed { None } else { self.threads[thread].get(state.at[thread]).copied() }
    }

    fn op(&self, instruction: Do) -> Operation {
        let op = Operation::new;
        match instruction {
            Do::Load(x) => op(step::LOAD, VARIABLES + x),
            Do::Store(x, _) => op(step::STORE, VARIABLES + x),
            Do::Add(x) => op(step::RMW, VARIABLES + x),
            Do::Lock(m) => op(step::LOCK, MUTEXES + m),
            Do::Unlock(m) => op(step::UNLOCK, MUTEXES + m),
            Do::TryLock(m, _) => Operation { flags: GIVES_UP, ..op(step::LOCK, MUTEXES + m) },
            Do::ReadLock(m) => op(step::READ_LOCK, MUTEXES + m),
            Do::Acquire(s) => {
                Operation { second: self.semaphore as u64, ..op(step::SEM_WAIT, SEMAPHORES + s) }
            }
            Do::Post(s) => Operation { second: self.semaphore as u64, ..op(step::SEM_POST, SEMAPHORES + s) },
            Do::Enter(b) => {
                Operation { second: u64::from(self.barrier), ..op(step::BARRIER_ENTER, BARRIERS + b) }
            }
            Do::Exit(b) => op(step::BARRIER_EXIT, BARRIERS + b),
            Do::Wait(c, m) => Operation { second: MUTEXES + m, ..op(step::WAIT, CONDITIONS + c) },
            Do::Wake(c) => op(step::WAKE, CONDITIONS + c),
            Do::Relock(m) => op(step::RELOCK, MUTEXES + m),
            Do::Signal(c) => op(step::SIGNAL, CONDITIONS + c),
            Do::Broadcast(c) => op(step::BROADCAST, CONDITIONS + c),
            Do::Crash => Operation { flags: raddle_sched::dependence::FINAL, ..op(step::CUSTOM, 1) },
            Do::SkipIfZero(_) => unreachable!("not a step"),
        }
    }

    fn can_go(&self, state: &State, thread: usize) -> bool {
        let Some(instruction) = self.next(state, thread) else { return false };
        match instruction {
            Do::Lock(m) | Do::Relock(m) => {
                !state.writers.contains_key(&m) && !state.readers.iter().any(|(lock, _)| *lock == m)
            }
            Do::ReadLock(m) => !state.writers.contains_key(&m),
            Do::Acquire(s) => *state.semaphores.get(&s).unwrap_or(&self.semaphore) > 0,
            Do::Exit(b) => state.entered.get(&thread) != Some(state.rounds.get(&b).unwrap_or(&0)),
            Do::Wake(c) => state.waiting.iter().any(|&(on, who, since)| {
                on == c && who == thread && state.tokens.iter().any(|&(of, time)| of == c && time > since)
            }),
            _ => true,
        }
    }

    fn enabled(&self, state: &State) -> Vec<ThreadId> {
        let threads = 0..self.threads.len();
        threads.filter(|&t| self.can_go(state, t)).map(|t| ThreadId(t as u32)).collect()
    }

    /// Performs the thread's step. True: it gave up.
    fn go(&self, state: &mut State, thread: usize) -> bool {
        let instruction = self.next(state, thread).expect("the thread has a step");
        state.at[thread] += 1;
        state.time += 1;
        let mut failed = false;
        match instruction {
            Do::Load(x) => state.registers[thread] = *state.variables.get(&x).unwrap_or(&0),
            Do::Store(x, n) => {
                state.variables.insert(x, state.registers[thread] + n);
            }
            Do::Add(x) => {
                let value = state.variables.entry(x).or_default();
                state.registers[thread] = *value;
                *value += 1;
            }
            Do::Lock(m) | Do::Relock(m) => {
                state.writers.insert(m, thread);
            }
            Do::TryLock(m, count) => {
                failed = state.writers.contains_key(&m) || state.readers.iter().any(|(lock, _)| *lock == m);
                if failed {
                    state.at[thread] += count;
                } else {
                    state.writers.insert(m, thread);
                }
            }
            Do::ReadLock(m) => {
                state.readers.insert((m, thread));
            }
            Do::Unlock(m) => {
                if !state.readers.remove(&(m, thread)) {
                    state.writers.remove(&m);
                }
            }
            Do::Acquire(s) => *state.semaphores.entry(s).or_insert(self.semaphore) -= 1,
            Do::Post(s) => *state.semaphores.entry(s).or_insert(self.semaphore) += 1,
            Do::Enter(b) => {
                let round = state.rounds.entry(b).or_default();
                state.entered.insert(thread, *round);
                let arrived = state.arrived.entry(b).or_default();
                *arrived += 1;
                if *arrived == self.barrier {
                    *arrived = 0;
                    *round += 1;
                    state.registers[thread] = 1;
                }
            }
            Do::Exit(_) => {}
            Do::Wait(c, m) => {
                state.writers.remove(&m);
                state.waiting.push((c, thread, state.time));
            }
            Do::Wake(c) => {
                let at = state.waiting.iter().position(|w| w.1 == thread).expect("it waits");
                let since = state.waiting.remove(at).2;
                let token = state.tokens.iter().position(|&(of, time)| of == c && time > since);
                state.tokens.remove(token.expect("it was signalled"));
            }
            Do::Signal(c) | Do::Broadcast(c) => {
                let waiting = state.waiting.iter().filter(|w| w.0 == c).count();
                let given = state.tokens.iter().filter(|token| token.0 == c).count();
                let wanted = waiting.saturating_sub(given);
                let count = if matches!(instruction, Do::Signal(_)) { wanted.min(1) } else { wanted };
                state.tokens.extend(std::iter::repeat_n((c, state.time), count));
            }
            Do::Crash => state.crashed = true,
            Do::SkipIfZero(_) => unreachable!("not a step"),
        }
        self.skip(state, thread);
        failed
    }

    fn step(&self, state: &mut State, thread: ThreadId) -> Step {
        let enabled = self.enabled(state);
        let op = self.op(self.next(state, thread.at()).expect("the thread has a step"));
        // Behind the instruction, as a return address is.
        let pc = (thread.0 as u64) << 32 | (state.at[thread.at()] as u64 + 1);
        let failed = self.go(state, thread.at());
        Step { event: Event { thread, op, failed }, pc, enabled }
    }

    fn pending(&self, state: &State) -> Vec<Event> {
        let mut state = state.clone();
        state.crashed = false;
        let event =
            |t| Some(Event { thread: ThreadId(t as u32), op: self.op(self.next(&state, t)?), failed: false });
        (0..self.threads.len()).filter_map(event).collect()
    }
}

/// What can be told at the end, whatever the order of what is forgotten.
pub fn outcome(state: &State) -> (Vec<usize>, Vec<i64>, BTreeMap<u64, i64>) {
    (state.at.clone(), state.registers.clone(), state.variables.clone())
}

pub type Outcome = (Vec<usize>, Vec<i64>, BTreeMap<u64, i64>);

impl Executor for Model {
    type Error = Infallible;

    fn run(&mut self, order: &Order) -> Result<Run, Infallible> {
        self.runs += 1;
        let mut state = self.start();
        let mut run = Run::default();
        let mut asleep: Vec<Event> = Vec::new();
        loop {
            let at = run.steps.len();
            if at == order.asleep_at {
                asleep = order.asleep.clone();
            }
            let enabled = self.enabled(&state);
            let last = run.steps.last().map(|step| step.event.thread);
            let awake = |thread: &&ThreadId| !asleep.iter().any(|event| event.thread == **thread);
            let default = || {
                let awake: Vec<ThreadId> = enabled.iter().filter(awake).copied().collect();
                let from = last.unwrap_or(ThreadId(0));
                awake.iter().find(|&&t| t >= from).or(awake.first()).copied()
            };
            let next = match order.prefix.get(at) {
                Some(thread) => enabled.contains(thread).then_some(*thread),
                None => default(),
            };
            let Some(thread) = next else {
                run.blocked = !enabled.is_empty();
                run.pending = self.pending(&state);
                self.last = state;
                return Ok(run);
            };
            let step = self.step(&mut state, thread);
            asleep.retain(|event| !dependent(&event.op, &step.event.op));
            run.steps.push(step);
        }
    }
}

/// Everything there is, by brute force.
#[derive(Clone, Debug, Default)]
pub struct Everything {
    pub interleavings: u64,
    pub classes: BTreeSet<u64>,
    pub outcomes: BTreeSet<Outcome>,
    /// Interleavings by their cost, and the least cost of each class.
    pub by_cost: BTreeMap<u32, u64>,
    pub class_costs: BTreeMap<u64, u32>,
}

pub const INTERLEAVINGS_MAX: u64 = 12_000;

/// None: there are too many.
pub fn enumerate(
    model: &Model,
    cost: impl Fn(&[ThreadId], Option<ThreadId>, ThreadId) -> u32,
) -> Option<Everything> {
    let mut everything = Everything::default();
    let mut stack = vec![(model.start(), Vec::<Event>::new(), 0u32)];
    while let Some((state, events, spent)) = stack.pop() {
        let enabled = model.enabled(&state);
        if enabled.is_empty() {
            everything.interleavings += 1;
            if everything.interleavings > INTERLEAVINGS_MAX {
                return None;
            }
            let class = naive_class(&events);
            everything.classes.insert(class);
            everything.outcomes.insert(outcome(&state));
            *everything.by_cost.entry(spent).or_default() += 1;
            let least = everything.class_costs.entry(class).or_insert(spent);
            *least = spent.min(*least);
        }
        for &thread in &enabled {
            let mut after = state.clone();
            let step = model.step(&mut after, thread);
            let mut events = events.clone();
            let last = events.last().map(|event| event.thread);
            events.push(step.event);
            stack.push((after, events, spent + cost(&enabled, last, thread)));
        }
    }
    Some(everything)
}

/// The lexicographically least order of the same events: equivalent runs have the same.
fn naive_class(events: &[Event]) -> u64 {
    let mut left: Vec<Event> = events.to_vec();
    let mut name = 7u64;
    while !left.is_empty() {
        let free = |at: &usize| left[..*at].iter().all(|other| !other.ordered_with(&left[*at]));
        let first =
            (0..left.len()).filter(free).min_by_key(|&at| left[at].thread).expect("the first is free");
        let event = left.remove(first);
        name = raddle_explore::systematic::history::mix(name ^ u64::from(event.thread.0 + 1));
        name = raddle_explore::systematic::history::mix(name ^ u64::from(event.op.kind) ^ event.op.object);
    }
    name
}

/// The class of a run.
pub fn class(run: &Run) -> u64 {
    let events: Vec<Event> = run.steps.iter().map(|step| step.event).collect();
    naive_class(&events)
}
