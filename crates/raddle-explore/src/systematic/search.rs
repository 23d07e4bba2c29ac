//! The depth-first search: the path that the last run took, and at each state on it who has been tried and who is still to be.
//!
//! At a state, threads that have been tried already *fall asleep* (Godefroid, *Partial-Order Methods for the Verification of
//! Concurrent Systems*, 1996): below the next one to be tried they are left alone until somebody performs an operation that is
//! dependent on theirs, because going at once would give runs that have been seen. With sleep sets no two complete runs are
//! equivalent, whatever the reduction; the reductions differ in how many runs come to a state where everybody is asleep
//! (*blocked* runs).
//!
//! For shards the tree is dealt out at a fixed depth. Above it everybody who can go is tried, with sleep sets, so that no run
//! below one branch can ask for another: then every shard knows the same branches, and the complete runs of all shards are
//! those of the whole search. Blocked runs are more, even with `optimal`.

use super::history::{History, mix};
use super::optimal::WakeupTree;
use super::run::{Event, Executor, Order, Reduction, Run, ThreadId};
use super::weights::Weights;
use super::{dpor, optimal, source};
use raddle_sched::dependence::dependent;
use serde::{Deserialize, Serialize};

/// A state on the path, and the step that was taken from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    pub event: Event,
    pub enabled: Vec<ThreadId>,
    /// Who is not to go from here: it was tried, here or above.
    pub asleep: Vec<Event>,
    /// Threads to be tried, among them those that have been (all reductions but `optimal`).
    pub backtrack: Vec<ThreadId>,
    /// Sequences to be tried; the first child is the step under way (`optimal`).
    pub wakeup: WakeupTree,
    /// Branches tried so far, the one under way among them.
    pub tried: u32,
}

/// Which part of the tree is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    pub count: u32,
}

/// Steps below which branches belong to one shard or another.
const SHARD_DEPTH: usize = 12;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Complete runs: inequivalent ones, unless the reduction is `none`.
    pub executions: u64,
    /// Runs given up because everybody who could go was asleep.
    pub blocked: u64,
    /// All runs, also those of other shards' branches that were only looked at.
    pub runs: u64,
    pub steps_max: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Search {
    pub reduction: Reduction,
    pub shard: Option<Shard>,
    path: Vec<Node>,
    pending: Vec<Event>,
    pub statistics: Statistics,
    weights: Weights,
    started: bool,
    complete: bool,
}

/// What a run was to the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A run that counts.
    Execution,
    Blocked,
    /// It belongs to another shard.
    Elsewhere,
}

impl Search {
    pub fn new(reduction: Reduction, shard: Option<Shard>) -> Search {
        Search {
            reduction,
            shard: shard.filter(|shard| shard.count > 1),
            path: Vec::new(),
            pending: Vec::new(),
            statistics: Statistics::default(),
            weights: Weights::default(),
            started: false,
            complete: false,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Complete runs of the whole search, and the standard error, as far as can be told now.
    pub fn estimate(&self) -> (f64, f64) {
        self.weights.estimate(self.complete)
    }

    /// The next run; none: the search is complete.
    pub fn next_order(&mut self) -> Option<Order> {
        if !self.started {
            return Some(Order::default());
        }
        while let Some(node) = self.path.last_mut() {
            if let Some(branch) = next_branch(self.reduction, node) {
                let depth = self.path.len() - 1;
                let node = &self.path[depth];
                let mut prefix: Vec<ThreadId> =
                    self.path[..depth].iter().map(|node| node.event.thread).collect();
                let asleep = if self.reduction == Reduction::None { Vec::new() } else { node.asleep.clone() };
                prefix.extend(branch);
                return Some(Order { prefix, asleep_at: depth, asleep });
            }
            self.path.pop();
        }
        self.complete = true;
        None
    }

    /// Takes in what the run of the last order did. A run that did not follow its order is an error of the executor.
    pub fn absorb(&mut self, order: &Order, run: &Run) -> Result<Verdict, Strayed> {
        order.check(run)?;
        self.started = true;
        self.statistics.runs += 1;
        self.statistics.steps_max = self.statistics.steps_max.max(run.steps.len() as u64);
        let blocked = self.extend_path(run) || run.blocked;
        self.pending = match (blocked, self.reduction) {
            (false, _) => run.pending.clone(),
            // Flanagan and Godefroid look at what every thread is about to do, whether it ever gets to it or not.
            (true, Reduction::Dpor) => {
                let threads = (0..=run.steps.iter().map(|step| step.event.thread.0).max().unwrap_or(0))
                    .chain(run.pending.iter().map(|event| event.thread.0))
                    .collect::<std::collections::BTreeSet<u32>>();
                let at = self.path.len();
                threads.into_iter().filter_map(|thread| pending_in(run, at, ThreadId(thread))).collect()
            }
            (true, _) => Vec::new(),
        };
        let verdict = match (self.is_mine(), blocked) {
            (false, _) => Verdict::Elsewhere,
            (true, true) => Verdict::Blocked,
            (true, false) => Verdict::Execution,
        };
        if verdict == Verdict::Elsewhere {
            // What is below belongs to somebody else, and so do the races there.
            self.path.truncate(SHARD_DEPTH);
        } else {
            self.look_for_races();
            self.statistics.executions += u64::from(verdict == Verdict::Execution);
            self.statistics.blocked += u64::from(verdict == Verdict::Blocked);
        }
        let leaf: Vec<(u32, u32)> = self.path.iter().map(|node| (node.tried, self.branches(node))).collect();
        self.weights.add(leaf.into_iter(), verdict == Verdict::Execution);
        Ok(verdict)
    }

    /// Puts the run's states on the path, as far as nobody goes who is asleep. True if somebody does.
    fn extend_path(&mut self, run: &Run) -> bool {
        let kept = self.path.len().saturating_sub(1);
        for (at, step) in run.steps.iter().enumerate().skip(kept) {
            let (asleep, wakeup) = match self.path.get(at) {
                // The state at which this run left the one before it.
                Some(node) if at == kept => (node.asleep.clone(), node.wakeup.clone()),
                _ => match at.checked_sub(1).map(|at| &self.path[at]) {
                    Some(before) => {
                        let awake = |other: &&Event| !dependent(&other.op, &before.event.op);
                        let asleep = before.asleep.iter().filter(awake).copied().collect();
                        (asleep, before.wakeup.subtree())
                    }
                    None => (Vec::new(), WakeupTree::default()),
                },
            };
            if self.reduction != Reduction::None
                && asleep.iter().any(|other: &Event| other.thread == step.event.thread)
            {
                self.path.truncate(at);
                return true;
            }
            let everybody = matches!(self.reduction, Reduction::None | Reduction::Sleep)
                || self.shard.is_some() && at < SHARD_DEPTH;
            if let Some(node) = self.path.get_mut(at).filter(|_| at == kept) {
                node.event = step.event;
                continue;
            }
            let mut wakeup = wakeup;
            wakeup.begin_with(step.event);
            if everybody && self.reduction == Reduction::Optimal {
                let pending = |&thread: &ThreadId| pending_in(run, at, thread);
                step.enabled.iter().filter_map(pending).for_each(|event| wakeup.add_child(event));
            }
            let backtrack = if everybody { step.enabled.clone() } else { vec![step.event.thread] };
            self.path.push(Node {
                event: step.event,
                enabled: step.enabled.clone(),
                asleep: if self.reduction == Reduction::None { Vec::new() } else { asleep },
                backtrack,
                wakeup,
                tried: 1,
            });
        }
        false
    }

    fn look_for_races(&mut self) {
        let events: Vec<Event> = self.path.iter().map(|node| node.event).collect();
        let free = if self.shard.is_some() { SHARD_DEPTH } else { 0 };
        if matches!(self.reduction, Reduction::None | Reduction::Sleep) {
            return;
        }
        let history = History::new(&events, &self.pending);
        match self.reduction {
            Reduction::None | Reduction::Sleep => {}
            Reduction::Dpor => dpor::update(&mut self.path, &history, free),
            Reduction::Source => source::update(&mut self.path, &history, free),
            Reduction::Optimal => optimal::update(&mut self.path, &history, free),
        }
    }

    /// Does the branch that the last run took belong to this shard?
    fn is_mine(&self) -> bool {
        let Some(Shard { index, count }) = self.shard else { return true };
        let branch = self.path.iter().take(SHARD_DEPTH).map(|node| u64::from(node.event.thread.0));
        branch.fold(0, |state, thread| mix(state ^ thread)) % u64::from(count) == u64::from(index)
    }

    /// Branches of a state, as far as they are known.
    fn branches(&self, node: &Node) -> u32 {
        let waiting = match self.reduction {
            Reduction::Optimal => node.wakeup.children_count().saturating_sub(1),
            Reduction::None | Reduction::Sleep | Reduction::Dpor | Reduction::Source => node
                .backtrack
                .iter()
                .filter(|&&thread| {
                    thread != node.event.thread && !node.asleep.iter().any(|event| event.thread == thread)
                })
                .count(),
        };
        node.tried + waiting as u32
    }

    /// Runs the whole search.
    pub fn run<E: Executor>(
        &mut self,
        executor: &mut E,
        mut each: impl FnMut(&Run, Verdict),
    ) -> Result<(), Failure<E::Error>> {
        while let Some(order) = self.next_order() {
            let run = executor.run(&order).map_err(Failure::Executor)?;
            let verdict = self.absorb(&order, &run).map_err(Failure::Strayed)?;
            each(&run, verdict);
        }
        Ok(())
    }
}

/// The program did not do what it did before in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a run left its prefix after {at} steps: something that the schedule does not decide has a say (time, the network, uninitialised memory)"
)]
pub struct Strayed {
    pub at: usize,
}

impl Order {
    /// Did the run go along the prefix?
    pub fn check(&self, run: &Run) -> Result<(), Strayed> {
        let along = run.steps.iter().zip(&self.prefix).take_while(|(step, t)| step.event.thread == **t);
        match along.count() {
            at if at < self.prefix.len() => Err(Strayed { at }),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub enum Failure<E> {
    Executor(E),
    Strayed(Strayed),
}

/// What a thread was about to do at a state of the run.
pub fn pending_in(run: &Run, at: usize, thread: ThreadId) -> Option<Event> {
    let later = run.steps[at..].iter().map(|step| step.event).find(|event| event.thread == thread);
    later.or_else(|| run.pending.iter().copied().find(|event| event.thread == thread))
}

/// Puts the branch that was tried last to sleep, and takes the next one: the threads to go along.
fn next_branch(reduction: Reduction, node: &mut Node) -> Option<Vec<ThreadId>> {
    let tried = node.event;
    if reduction == Reduction::Optimal {
        node.asleep.push(tried);
        node.wakeup.drop_first();
        let asleep = |event: &Event| node.asleep.iter().any(|other| other.thread == event.thread);
        node.wakeup.drop_while(asleep);
        let branch = node.wakeup.first_sequence();
        node.tried += u32::from(!branch.is_empty());
        return (!branch.is_empty()).then_some(branch);
    }
    node.backtrack.retain(|&thread| thread != tried.thread);
    node.asleep.push(tried);
    let asleep = |thread: &ThreadId| node.asleep.iter().any(|event| event.thread == *thread);
    let next = node.backtrack.iter().copied().filter(|thread| !asleep(thread)).min()?;
    node.tried += 1;
    Some(vec![next])
}
