//! Dynamic partial order reduction: one run for each class of equivalent schedules, about.
//!
//! Flanagan and Godefroid, *Dynamic Partial-Order Reduction for Model Checking Software*, POPL 2005, with sleep sets
//! (Godefroid 1996). A depth-first search over schedules keeps vector clocks of the happens-before relation; where an
//! operation could have come before an earlier dependent one of another thread, the state before that earlier one gets
//! a backtracking point. Two threads about to conflict in some schedule are about to conflict in a visited state: the
//! reversal of the two puts one of them in front while the other still waits.
//!
//! Deviations: states are copied onto the search stack instead of being recomputed, and outcomes of `random` are
//! branches of one transition. Releases never race with acquires of a held lock (they are not co-enabled) but do order
//! them. Unlike [`super::explore`] the search does not recognise states, so it needs a depth bound for programs that
//! spin, and it sees no livelocks; in return its memory is one schedule.

use super::explore::{Exploration, Observed, Outcome};
use super::schedule::{Schedule, Step};
use super::state::*;
use super::step::{Event, Op, Pending, Settled};
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::syntax::core::ExprId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Visible operations in one run.
    pub depth_max: usize,
    pub runs_max: usize,
    /// Switched off only by the tests, to have the plain search to compare with.
    pub reduce: bool,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { depth_max: 2_000, runs_max: 1_000_000, reduce: true }
    }
}

type Clocks = Vec<Vec<u32>>;

/// A state on the search stack.
struct Level {
    state: State,
    pending: Vec<Pending>,
    /// Threads to be run from here.
    backtrack: BTreeSet<ThreadId>,
    done: BTreeSet<ThreadId>,
    sleep: BTreeSet<ThreadId>,
    /// Per thread, what happened before its next operation: the number of operations of each thread.
    clocks: Clocks,
    /// The transition being explored: thread, operation, its clock.
    current: Option<(ThreadId, Op, Vec<u32>)>,
    /// Outcomes of the current transition that are still to be explored.
    outcomes: Vec<Outcome>,
    /// How this state was reached.
    steps: Vec<Step>,
}

/// Number of maximal runs, beside what was observed in them.
pub struct Reduced {
    pub exploration: Exploration,
    pub runs: usize,
    /// Swaps that failed in some run and were not tried again in it, and that succeeded in some run. If the search came to an
    /// end and there are none, every failed swap is retried: which swaps of a run fail does not depend on the order of
    /// independent operations.
    pub unretried: BTreeSet<(Rc<[u32]>, ExprId)>,
}

pub fn explore(machine: &Machine, bounds: Bounds, clock: &Clock) -> Reduced {
    let mut search = Search {
        machine,
        bounds,
        stack: Vec::new(),
        observed: Observed::default(),
        runs: 0,
        states: 0,
        edges: 0,
        incomplete: None,
        failed: BTreeSet::new(),
        succeeded: BTreeSet::new(),
    };
    for outcome in machine.outcomes(&machine.initial(), None, clock) {
        let clocks = vec![vec![0]];
        search.enter(outcome, clocks, BTreeSet::new(), None);
        search.run(clock);
        search.stack.clear();
    }
    if search.incomplete.is_none() && clock.is_over() {
        search.incomplete = Some(clock.reason());
    }
    if let Some(cut) = &search.observed.cut {
        search.incomplete.get_or_insert_with(|| cut.clone());
    }
    let Search { observed, runs, states, edges, incomplete, failed, succeeded, .. } = search;
    let unretried = failed.intersection(&succeeded).cloned().collect();
    Reduced {
        exploration: Exploration { observed, states, edges, incomplete, ..Exploration::default() },
        runs,
        unretried,
    }
}

struct Search<'m, 'p> {
    machine: &'m Machine<'p>,
    bounds: Bounds,
    stack: Vec<Level>,
    observed: Observed,
    runs: usize,
    states: usize,
    edges: usize,
    incomplete: Option<String>,
    /// Swaps that were the last of their kind in a run, and failed; swaps that succeeded.
    failed: BTreeSet<(Rc<[u32]>, ExprId)>,
    succeeded: BTreeSet<(Rc<[u32]>, ExprId)>,
}

fn join(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    into.iter_mut().zip(from).for_each(|(a, b)| *a = (*a).max(*b));
}

impl Search<'_, '_> {
    fn run(&mut self, clock: &Clock) {
        while let Some(level) = self.stack.last_mut() {
            if clock.is_over() {
                self.incomplete = Some(clock.reason());
                return;
            }
            if self.runs >= self.bounds.runs_max {
                self.incomplete = Some(format!("the limit of {} runs was reached", self.bounds.runs_max));
                return;
            }
            if let (Some(outcome), Some((thread, op, stamp))) = (level.outcomes.pop(), level.current.clone())
            {
                self.descend(thread, op, stamp, outcome);
                continue;
            }
            // All outcomes of the current transition are explored: it goes to sleep.
            if let Some((thread, ..)) = level.current.take() {
                level.done.insert(thread);
                level.sleep.insert(thread);
            }
            let next =
                level.backtrack.iter().copied().find(|t| !level.done.contains(t) && !level.sleep.contains(t));
            let Some(thread) = next else {
                self.stack.pop();
                continue;
            };
            let Pending::Visible(op) = level.pending[thread.index()].clone() else {
                unreachable!("only enabled threads become backtracking points")
            };
            level.outcomes = self.machine.outcomes(&level.state, Some(thread), clock);
            self.edges += level.outcomes.len();
            let stamp = self.stamp(thread, &op);
            if let Some(level) = self.stack.last_mut() {
                level.current = Some((thread, op, stamp));
            }
        }
    }

    /// The clock of an operation that is about to happen on top of the stack.
    fn stamp(&self, thread: ThreadId, op: &Op) -> Vec<u32> {
        let mut stamp = self.stack.last().map(|top| top.clocks[thread.index()].clone()).unwrap_or_default();
        for level in &self.stack[..self.stack.len() - 1] {
            if let Some((_, earlier, clock)) = &level.current
                && earlier.depends_on(op)
            {
                join(&mut stamp, clock);
            }
        }
        if stamp.len() <= thread.index() {
            stamp.resize(thread.index() + 1, 0);
        }
        stamp[thread.index()] += 1;
        stamp
    }

    fn descend(&mut self, thread: ThreadId, op: Op, stamp: Vec<u32>, outcome: Outcome) {
        let Some(top) = self.stack.last() else { return };
        let mut clocks = top.clocks.clone();
        clocks[thread.index()] = stamp;
        for (who, event) in &outcome.events {
            match event {
                Event::Spawned(child) => {
                    let clock = clocks[who.index()].clone();
                    clocks.resize_with(clocks.len().max(child.index() + 1), Vec::new);
                    clocks[child.index()] = clock;
                }
                Event::Joined(child) => {
                    let clock = clocks[child.index()].clone();
                    join(&mut clocks[who.index()], &clock);
                }
                Event::None | Event::Output(_) => {}
            }
        }
        let asleep = |t: &ThreadId| match &top.pending[t.index()] {
            Pending::Visible(other) => !other.depends_on(&op),
            _ => false,
        };
        let sleep = top.sleep.iter().copied().filter(asleep).collect();
        let what = self.machine.describe(&top.state, &op);
        let act = Step::Act { thread: top.state.thread(thread).path.clone(), what: Some(what) };
        self.enter(outcome, clocks, sleep, Some(act));
    }

    fn enter(&mut self, outcome: Outcome, mut clocks: Clocks, sleep: BTreeSet<ThreadId>, act: Option<Step>) {
        match outcome.settled {
            Settled::Yes => {}
            Settled::OutOfSteps => {
                self.incomplete = Some("a thread ran for too long without a visible operation".to_owned());
                return;
            }
            // Whoever gave the clock asks it next.
            Settled::OutOfTime => return,
        }
        if outcome.sampled {
            self.incomplete = Some("not every outcome of random was tried".to_owned());
        }
        self.states += 1;
        let machine = self.machine;
        let state = outcome.state;
        let pending: Vec<Pending> = state.thread_ids().map(|id| machine.pending(&state, id)).collect();
        // Threads spawned before the first visible operation start with the main thread's empty clock.
        clocks.resize_with(pending.len().max(clocks.len()), Vec::new);
        let steps: Vec<Step> =
            act.into_iter().chain(outcome.choices.iter().map(|&c| Step::Choose(c))).collect();
        let stack = &self.stack;
        let path = || Schedule {
            steps: stack.iter().flat_map(|level| level.steps.iter()).chain(&steps).cloned().collect(),
        };
        self.observed.look(machine, &state, &pending, &path);
        if state.limit().is_some() {
            self.runs += 1;
            return;
        }
        let enabled: Vec<ThreadId> =
            state.thread_ids().filter(|id| matches!(pending[id.index()], Pending::Visible(_))).collect();
        let deep = self.stack.len() >= self.bounds.depth_max;
        if deep && !enabled.is_empty() {
            self.incomplete = Some(format!("a run was cut at {} operations", self.bounds.depth_max));
        }
        if enabled.is_empty() || deep {
            self.runs += 1;
            self.look_at_swaps();
        }
        let mut backtrack = BTreeSet::new();
        if !deep {
            if self.bounds.reduce {
                backtrack.extend(enabled.iter().find(|t| !sleep.contains(t)));
            } else {
                backtrack.extend(&enabled);
            }
        }
        let reduce = self.bounds.reduce;
        let sleep = if reduce { sleep } else { BTreeSet::new() };
        let done = BTreeSet::new();
        self.stack.push(Level {
            state,
            pending,
            backtrack,
            done,
            sleep,
            clocks,
            current: None,
            outcomes: Vec::new(),
            steps,
        });
        if reduce {
            self.add_backtracking_points();
        }
    }

    /// Looks at the swaps of the run that ends on top of the stack.
    fn look_at_swaps(&mut self) {
        let mut last: BTreeMap<(Rc<[u32]>, ExprId), bool> = BTreeMap::new();
        for level in &self.stack {
            if let Some((thread, op, _)) = &level.current
                && op.action.is_cas()
                && !self.machine.program.is_retried(op.site)
            {
                let swap = (level.state.thread(*thread).path.clone(), op.site);
                let succeeds = op.action == Action::CasSucceeds;
                if succeeds {
                    self.succeeded.insert(swap.clone());
                }
                last.insert(swap, succeeds);
            }
        }
        self.failed.extend(last.into_iter().filter(|(_, succeeds)| !succeeds).map(|(swap, _)| swap));
    }

    /// For the next operation of every thread: the last earlier operation it races with.
    fn add_backtracking_points(&mut self) {
        let Some((top, below)) = self.stack.split_last_mut() else { return };
        for (at, pending) in top.pending.iter().enumerate() {
            let (Pending::Visible(op) | Pending::Blocked(op)) = pending else { continue };
            let thread = ThreadId(at as u32);
            for level in below.iter_mut().rev() {
                let Some((other, earlier, stamp)) = &level.current else { continue };
                let reversible = !(earlier.action == Action::Release
                    && op.action == Action::Acquire
                    && earlier.loc.is_some_and(|loc| *level.state.read(loc) == Value::LockState(true)));
                if *other == thread || !earlier.depends_on(op) || !reversible {
                    continue;
                }
                let known = top.clocks[at].get(other.index()).copied().unwrap_or(0);
                if stamp[other.index()] <= known {
                    // It happened before this operation, and so did all that it depends on.
                    continue;
                }
                if level.pending.get(at).is_some_and(|p| matches!(p, Pending::Visible(_))) {
                    level.backtrack.insert(thread);
                } else {
                    let enabled =
                        level.pending.iter().enumerate().filter(|(_, p)| matches!(p, Pending::Visible(_)));
                    level.backtrack.extend(enabled.map(|(at, _)| ThreadId(at as u32)));
                }
                break;
            }
        }
    }
}
