//! The search: is there a reordering that reaches these positions?
//!
//! Depth first over the positions of all threads, from a state of the observed run. A thread that is wanted at a position
//! never goes beyond it; every other thread goes wherever it has to. Each state is visited once
//! ([`State::fingerprint`]), and only a stubborn set of threads is tried in it ([`crate::stubborn`]), chosen around a
//! thread that has not come to its place yet: what has nothing to do with the goal is not touched.
//!
//! The order in which threads are tried decides only how soon a witness is found and which one; threads whose next step
//! came earliest in the observed run go first, so that witnesses stay close to it.

use crate::closure::Target;
use crate::ids::{Pos, ValueIx};
use crate::program::Action;
use crate::state::{State, Status, Undo};
use crate::stubborn::{Choice, Stubborn};
use raddle_trace::ThreadIx;
use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The threads that move, one step each, from the state the search began in.
    Found(Vec<ThreadIx>),
    /// There is none.
    Impossible,
    /// There may be one, but the budget is used up.
    GaveUp,
}

/// How many states may still be visited, and how many were; and until when.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub left: u64,
    pub used: u64,
    pub deadline: Option<Instant>,
}

/// The clock is looked at once in so many states.
const CLOCK_STATES: u64 = 256;

impl Budget {
    pub fn new(states: u64) -> Budget {
        Budget { left: states, used: 0, deadline: None }
    }

    pub fn with_time(states: u64, time: Option<Duration>) -> Budget {
        Budget { left: states, used: 0, deadline: time.and_then(|time| Instant::now().checked_add(time)) }
    }

    /// A part of this budget, of so many states at most. [`Budget::settle`] takes back what it used.
    pub fn part(&self, states: u64) -> Budget {
        Budget { left: states.min(self.left), used: 0, deadline: self.deadline }
    }

    pub fn settle(&mut self, part: Budget) {
        self.used += part.used;
        self.left = self.left.saturating_sub(part.used);
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.left = 0;
        }
    }

    /// Takes one state; false when there is none left.
    pub fn spend(&mut self) -> bool {
        self.used += 1;
        if self.used.is_multiple_of(CLOCK_STATES)
            && self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.left = 0;
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

/// Would this step make it impossible to reach the targets? It would if it overwrites what somebody still has to read, or
/// takes a lock for good that somebody still has to take.
fn is_doomed(state: &State<'_>, thread: ThreadIx, targets: &[Target], needed: &[Pos]) -> bool {
    let program = state.program;
    let Some(step) = state.next_step(thread) else { return false };
    let others = |other: ThreadIx| {
        let index = other.index();
        let end = targets.iter().find(|target| target.thread == other).map_or(needed[index], |t| t.pos);
        (other != thread && state.at[index] < end).then_some((state.at[index], end))
    };
    match step.action {
        Action::Atomic { register, sets, .. } if program.keeps_reads && sets != ValueIx::NONE => {
            let value = state.value_of(register);
            program.registers[register.index()].reads.iter().any(|(reader, reads)| {
                let Some((at, end)) = others(reader) else { return false };
                let from = reads.partition_point(|&pos| pos < at);
                reads[from..].iter().take_while(|&&pos| pos < end).any(|&pos| {
                    let reads = program.step(reader, pos).map(|step| step.action);
                    matches!(reads, Some(Action::Atomic { expects, .. }) if expects == value)
                })
            })
        }
        Action::Lock { lock, .. } => {
            let Some(target) = targets.iter().find(|target| target.thread == thread) else { return false };
            let lock = &program.locks[lock.index()];
            let pos = state.at[thread.index()];
            let kept = lock.use_by(thread).and_then(|uses| uses.open_at(pos + 1));
            kept.is_some_and(|hold| hold.acquire == pos && hold.release >= target.pos)
                && lock.uses.iter().any(|(other, uses)| {
                    others(*other)
                        .is_some_and(|(at, end)| uses.competes_between(at, end, step.action.effect()))
                })
        }
        Action::Atomic { .. }
        | Action::Free
        | Action::Unlock { .. }
        | Action::Signal { .. }
        | Action::WaitBegin { .. }
        | Action::Wait { .. }
        | Action::BarrierEnter { .. }
        | Action::BarrierExit { .. }
        | Action::SemWait { .. }
        | Action::SemPost { .. }
        | Action::OncePassed { .. } => false,
    }
}

struct Frame {
    choice: Choice,
    next: usize,
    /// The move that led here.
    moved: Option<(ThreadIx, Undo)>,
}

/// A search over the states of one program.
pub struct Search {
    stubborn: Stubborn,
    visited: FxHashSet<u128>,
    frames: Vec<Frame>,
}

impl Search {
    pub fn new(threads: usize) -> Search {
        Search { stubborn: Stubborn::new(threads), visited: FxHashSet::default(), frames: Vec::new() }
    }

    /// Looks for a way from `state` to all targets at once. The state is unchanged afterwards. `needed` says how far each
    /// thread must come in any case; it may say less than is so.
    pub fn reach(
        &mut self,
        state: &mut State<'_>,
        targets: &[Target],
        needed: &[Pos],
        budget: &mut Budget,
    ) -> Outcome {
        let mut limit: Vec<Pos> =
            state.program.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
        for target in targets {
            limit[target.thread.index()] = target.pos;
            if state.at[target.thread.index()] > target.pos {
                return Outcome::Impossible;
            }
        }
        let mut outcome = Outcome::Impossible;
        self.walk(state, budget, |stubborn, state, path| {
            let away = |target: &&Target| state.at[target.thread.index()] < target.pos;
            let mut seeds: Choice = targets.iter().filter(away).map(|target| target.thread).collect();
            if seeds.is_empty() {
                outcome = Outcome::Found(path());
                return None;
            }
            // Whoever still has to move is as good a seed, and if one of them never can, neither can the others.
            let behind = |thread: &ThreadIx| {
                state.at[thread.index()] < needed[thread.index()] && !seeds.contains(thread)
            };
            let more: Choice = state.program.thread_ids().filter(behind).collect();
            seeds.extend(more);
            if seeds.iter().any(|&thread| state.is_lost(thread)) {
                return Some(Choice::new());
            }
            // A target that can never move again makes its stubborn set empty: dead end.
            let mut choice = stubborn.smallest(state, &limit, &seeds);
            choice.retain(|thread| !is_doomed(state, *thread, targets, needed));
            Some(choice)
        });
        if outcome == Outcome::Impossible && budget.left == 0 {
            outcome = Outcome::GaveUp;
        }
        outcome
    }

    /// Visits every stuck state: no thread can move, and some have not come to their limit. `found` says whether to go
    /// on. Returns false if the budget ran out.
    pub fn stuck(
        &mut self,
        state: &mut State<'_>,
        limit: &[Pos],
        budget: &mut Budget,
        mut found: impl FnMut(&State<'_>, Vec<ThreadIx>) -> bool,
    ) -> bool {
        let threads: Vec<ThreadIx> = state.program.thread_ids().collect();
        self.walk(state, budget, |stubborn, state, path| {
            let enabled: Choice = threads
                .iter()
                .copied()
                .filter(|&thread| state.status(thread, limit[thread.index()]) == Status::Enabled)
                .collect();
            if enabled.is_empty() {
                let all_done =
                    threads.iter().all(|&thread| state.at[thread.index()] >= limit[thread.index()]);
                if !all_done && !found(state, path()) {
                    return None;
                }
                return Some(Choice::new());
            }
            Some(stubborn.smallest(state, limit, &enabled))
        });
        budget.left > 0
    }

    /// Depth first search. `visit` is called once for each state, with a way to ask for the path to it, and says which
    /// threads to try from there; `None` ends the search.
    fn walk(
        &mut self,
        state: &mut State<'_>,
        budget: &mut Budget,
        mut visit: impl FnMut(&mut Stubborn, &State<'_>, &dyn Fn() -> Vec<ThreadIx>) -> Option<Choice>,
    ) {
        self.visited.clear();
        self.frames.clear();
        let mut moved: Option<(ThreadIx, Undo)> = None;
        'descend: loop {
            let known = !self.visited.insert(state.fingerprint());
            let mut stop = !known && !budget.spend();
            if !known && !stop {
                let frames = &self.frames;
                let last = moved.as_ref().map(|(thread, _)| *thread);
                let path = || {
                    let moves =
                        frames.iter().filter_map(|frame| frame.moved.as_ref().map(|(thread, _)| *thread));
                    moves.chain(last).collect()
                };
                match visit(&mut self.stubborn, state, &path) {
                    Some(mut choice) => {
                        choice.sort_by_key(|&thread| state.next_step(thread).map(|step| step.event));
                        self.frames.push(Frame { choice, next: 0, moved: moved.take() });
                    }
                    None => stop = true,
                }
            }
            if let Some((thread, undo)) = moved.take() {
                state.undo(thread, &undo);
            }
            // Find the next thread to try, going back as far as necessary.
            while let Some(frame) = self.frames.last_mut() {
                if !stop && let Some(&thread) = frame.choice.get(frame.next) {
                    frame.next += 1;
                    let undo = state.take(thread);
                    moved = Some((thread, undo));
                    continue 'descend;
                }
                if let Some((thread, undo)) = frame.moved.take() {
                    state.undo(thread, &undo);
                }
                self.frames.pop();
            }
            return;
        }
    }
}
