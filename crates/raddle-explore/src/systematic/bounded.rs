//! Bounded search: schedules with few preemptions, or few delays, and the cheapest first.
//!
//! Musuvathi and Qadeer, *Iterative Context Bounding for Systematic Testing of Multithreaded Programs* (PLDI 2007): a switch away
//! from a thread that could have gone on is a preemption, and all runs with k of them come before those with k + 1. Emmi, Qadeer and
//! Rakamarić, *Delay-Bounded Scheduling* (POPL 2011): against a deterministic scheduler that lets a thread go on while it can, and
//! then takes the next one in order of creation, each thread that is passed over is a delay.
//!
//! Sleep sets and source sets are not sound under a bound: the run that stands for its class may be the dear one. Coons,
//! Musuvathi and McKinley (*Bounded Partial-Order Reduction*, OOPSLA 2013) add backtracking points until all states within the
//! bound are reached, but not all classes. Here the reduction is another one, by histories (Musuvathi and Qadeer, *Partial-Order
//! Reduction for Context-Bounded State Exploration*, 2007): two prefixes with the same happens-before relation lead to the same state,
//! and with the same last thread to the same costs. As the cheapest come first, a state that has been met needs no second
//! visit. So every class that has a run within the bound is counted exactly once, at the least cost that it can be had for.
//! The price is memory for every state, and runs that end in a state met before (`repeated`).

use super::history::{History, events, mix};
use super::run::{Executor, Order, Run, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    Preemptions,
    Delays,
}

impl Cost {
    /// What it costs to let `thread` go at a state where `last` went before.
    pub fn of(self, enabled: &[ThreadId], last: Option<ThreadId>, thread: ThreadId) -> u32 {
        match self {
            Cost::Preemptions => {
                u32::from(last.is_some_and(|last| last != thread && enabled.contains(&last)))
            }
            Cost::Delays => {
                let last = last.unwrap_or(ThreadId(0));
                let in_turn =
                    enabled.iter().filter(|&&t| t >= last).chain(enabled.iter().filter(|&&t| t < last));
                in_turn.take_while(|&&other| other != thread).count() as u32
            }
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bounded {
    pub cost: Cost,
    pub bound: u32,
    /// Recognise states by their histories.
    pub reduces: bool,
    frontier: BTreeMap<u32, Vec<Vec<ThreadId>>>,
    current: u32,
    states: HashSet<u64>,
    classes: HashSet<u64>,
    /// Runs that count, by cost.
    pub counts: Vec<u64>,
    /// Runs that ended where others had been.
    pub repeated: u64,
    pub runs: u64,
}

impl Bounded {
    pub fn new(cost: Cost, bound: u32, reduces: bool) -> Bounded {
        Bounded {
            cost,
            bound,
            reduces,
            frontier: BTreeMap::from([(0, vec![Vec::new()])]),
            current: 0,
            states: HashSet::new(),
            classes: HashSet::new(),
            counts: vec![0; bound as usize + 1],
            repeated: 0,
            runs: 0,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.frontier.is_empty()
    }

    pub fn executions(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Prefixes still to be run.
    pub fn waiting(&self) -> usize {
        self.frontier.values().map(Vec::len).sum()
    }

    /// The next run, one of the cheapest.
    pub fn next_order(&mut self) -> Option<Order> {
        let mut level = self.frontier.first_entry()?;
        self.current = *level.key();
        let prefix = level.get_mut().pop()?;
        if level.get().is_empty() {
            level.remove();
        }
        Some(Order { asleep_at: prefix.len(), prefix, asleep: Vec::new() })
    }

    /// Takes in a run. True if it counts.
    pub fn absorb(&mut self, order: &Order, run: &Run) -> bool {
        self.runs += 1;
        let events = events(run);
        let history = History::new(&events, &[]);
        let threads: Vec<ThreadId> = events.iter().map(|event| event.thread).collect();
        let mut class = (0..order.prefix.len()).fold(0u64, |sum, at| sum.wrapping_add(history.name(at)));
        for at in order.prefix.len()..run.steps.len() {
            let last = at.checked_sub(1).map(|at| threads[at]);
            let key = mix(class ^ mix(last.map_or(0, |last| u64::from(last.0) + 1)));
            if self.reduces && !self.states.insert(key) {
                self.repeated += 1;
                return false;
            }
            let enabled = &run.steps[at].enabled;
            for &thread in enabled.iter().filter(|&&thread| thread != threads[at]) {
                let cost = self.current + self.cost.of(enabled, last, thread);
                if cost <= self.bound {
                    let mut prefix = threads[..at].to_vec();
                    prefix.push(thread);
                    self.frontier.entry(cost).or_default().push(prefix);
                }
            }
            class = class.wrapping_add(history.name(at));
        }
        if self.reduces && !self.classes.insert(class) {
            self.repeated += 1;
            return false;
        }
        self.counts[self.current as usize] += 1;
        true
    }

    /// Runs the whole search.
    pub fn run<E: Executor>(
        &mut self,
        executor: &mut E,
        mut each: impl FnMut(&Run, bool),
    ) -> Result<(), E::Error> {
        while let Some(order) = self.next_order() {
            let run = executor.run(&order)?;
            let counts = self.absorb(&order, &run);
            each(&run, counts);
        }
        Ok(())
    }
}
