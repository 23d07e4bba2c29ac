//! Every behaviour of a program, as a graph of concrete states.
//!
//! Nodes are settled states (each thread finished, blocked, or about to do something visible) up to the canonical form
//! of [`super::canon`]; edges are visible operations. The search is breadth-first, so that the schedule of a finding is
//! as short as possible. When no limit was met the graph is complete and its verdicts are the truth about the program.
//!
//! What is seen in the graph:
//! * a *race*: two threads about to perform conflicting operations on one cell;
//! * a *deadlock*: nobody can move and somebody has not finished;
//! * a *livelock*: a strongly connected part of the graph without exit in which threads only read, fail to swap, and
//!   pass locks around. Nothing they wait for will ever change. (The paper's deadlocks of `cas` locks are of this kind.)
//! * an *unretried cas*: a `cas` that failed in a thread that can never come back to it (§4.2.1 of the paper), although in
//!   another order of the threads it succeeds;
//! * an *error* raised by the program, and its results.
//!
//! States may be identified by name, or up to a renaming of threads ([`super::symmetry`]). In the second case an edge says which thread
//! of its source is which thread of its target, so that a thread can be followed through states that have no names.

mod graph;
mod observed;
mod orbits;

pub use observed::*;

use super::canon::fingerprint;
use super::schedule::{Schedule, Step};
use super::state::*;
use super::step::{Event, Op, Pending, Settled};
use super::symmetry::UNRANKED;
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::syntax::core::ExprId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

#[derive(Clone, Debug, Default)]
pub struct Exploration {
    pub observed: Observed,
    pub states: usize,
    pub edges: usize,
    /// Why the graph is not the whole truth, if it is not.
    pub incomplete: Option<String>,
    /// Nobody changed anything.
    pub idle: bool,
    /// Swaps that were tried, and by whom.
    pub swaps: BTreeSet<(Rc<[u32]>, ExprId)>,
}

/// Outcomes of `random` up to this many are all tried.
const CHOICES_ALL: i64 = 8;

/// A way in which a step can come out: the new state, the outcomes of `random` on the way, the joins and spawns.
pub struct Outcome {
    pub state: State,
    pub choices: Vec<i64>,
    pub events: Vec<(ThreadId, Event)>,
    pub settled: Settled,
    /// Not all outcomes of some `random` are tried.
    pub sampled: bool,
}

impl Machine<'_> {
    /// Performs the visible operation of a thread (or none, to start) and settles, for all outcomes of `random`.
    pub fn outcomes(&self, from: &State, thread: Option<ThreadId>, clock: &Clock) -> Vec<Outcome> {
        let mut results = Vec::new();
        let mut prefix: Vec<i64> = Vec::new();
        loop {
            let mut made: Vec<(i64, i64)> = Vec::new();
            let mut choose = |n: i64| {
                let choice = prefix.get(made.len()).copied().unwrap_or(0);
                made.push((choice, n));
                choice
            };
            let mut state = from.clone();
            let mut events = Vec::new();
            if let Some(thread) = thread {
                self.step(&mut state, thread, &mut choose);
            }
            let settled =
                self.settle(&mut state, &mut choose, clock, |thread, event| events.push((thread, event)));
            let choices = made.iter().map(|c| c.0).collect();
            let sampled = made.iter().any(|&(_, n)| n > CHOICES_ALL);
            results.push(Outcome { state, choices, events, settled, sampled });
            if settled == Settled::OutOfTime || clock.is_over() {
                return results;
            }
            // The next combination, like an odometer.
            loop {
                let Some((choice, n)) = made.pop() else { return results };
                if let Some(next) = self.next_choice(choice, n) {
                    prefix = made.iter().map(|c| c.0).chain([next]).collect();
                    break;
                }
            }
            if results.len() > 4_096 {
                if let Some(last) = results.last_mut() {
                    last.sampled = true;
                }
                return results;
            }
        }
    }

    /// The outcome of `random` that is tried after this one. Of a large range both ends and the middle are, and the integers that
    /// the program mentions: what it compares the outcome with is most likely among them.
    fn next_choice(&self, choice: i64, n: i64) -> Option<i64> {
        if n <= CHOICES_ALL {
            return Some(choice + 1).filter(|&next| next < n);
        }
        let literals =
            self.literals.iter().flat_map(|&literal| [literal.checked_sub(1), Some(literal)]).flatten();
        let next = literals.chain([1, n / 2, n - 1]).filter(|&next| next > choice && next < n);
        next.min()
    }

    /// What a step is called in a schedule.
    pub fn describe(&self, state: &State, op: &Op) -> String {
        let place = self.program.source.place(self.program.span(op.site));
        match (op.loc, op.target) {
            (Some(loc), _) => format!("{} {} {place}", op.action.word(), self.loc_name(state, loc)),
            (None, Some(target)) => format!("join {} {place}", state.thread(target).name()),
            (None, None) => format!("{} {place}", op.action.word()),
        }
    }
}

/// A node of the search tree: how it was reached first.
struct Node {
    parent: u32,
    step: Vec<Step>,
}

/// An edge of the graph.
struct Edge {
    from: u32,
    to: u32,
    thread: Rc<[u32]>,
    site: ExprId,
    action: Action,
    cell: Option<(Origin, u32)>,
    /// Up to renaming: the rank of the thread, and the rank in `to` of each thread of `from`.
    rank: u8,
    moved: Option<Rc<[u8]>>,
}

/// Explores all states breadth-first, up to a number of states and until the clock runs out.
pub fn explore(machine: &Machine, states_max: usize, clock: &Clock) -> Exploration {
    Search::new(machine, Identity::Names).explore(&machine.initial(), states_max, clock)
}

/// [`explore`], with states that differ in the names of their threads taken as one.
pub fn explore_orbits(machine: &Machine, states_max: usize, clock: &Clock) -> Exploration {
    Search::new(machine, Identity::Orbits).explore(&machine.initial(), states_max, clock)
}

/// [`explore`] from a settled state to which the schedule leads.
pub fn explore_from(
    machine: &Machine,
    state: &State,
    schedule: Schedule,
    states_max: usize,
    clock: &Clock,
) -> Exploration {
    let mut search = Search::new(machine, Identity::Names);
    search.prefix = schedule.steps;
    search.explore(state, states_max, clock)
}

/// When two states are one.
#[derive(Clone, Copy, PartialEq)]
enum Identity {
    Names,
    Orbits,
}

struct Search<'m, 'p> {
    machine: &'m Machine<'p>,
    identity: Identity,
    nodes: Vec<Node>,
    numbers: FxHashMap<u128, u32>,
    /// States to be expanded, with the ranks of their threads.
    queue: VecDeque<(u32, State, Box<[u8]>)>,
    edges: Vec<Edge>,
    /// Steps to the state from which the search starts.
    prefix: Vec<Step>,
    moves: FxHashMap<Rc<[u8]>, ()>,
}

/// A visible operation on its way into the graph.
struct StepMade<'a> {
    thread: Rc<[u32]>,
    site: ExprId,
    action: Action,
    cell: Option<(Origin, u32)>,
    what: String,
    rank: u8,
    ranks: &'a [u8],
}

impl<'m, 'p> Search<'m, 'p> {
    fn new(machine: &'m Machine<'p>, identity: Identity) -> Search<'m, 'p> {
        Search {
            machine,
            identity,
            nodes: Vec::new(),
            numbers: FxHashMap::default(),
            queue: VecDeque::new(),
            edges: Vec::new(),
            prefix: Vec::new(),
            moves: FxHashMap::default(),
        }
    }

    fn explore(mut self, start: &State, states_max: usize, clock: &Clock) -> Exploration {
        let machine = self.machine;
        let mut observed = Observed::default();
        let mut incomplete: Option<String> = None;
        for outcome in machine.outcomes(start, None, clock) {
            self.arrive(0, None, outcome, &mut incomplete);
        }
        while let Some((number, state, ranks)) = self.queue.pop_front() {
            if self.nodes.len() > states_max {
                incomplete = Some(format!("the limit of {states_max} concrete states was reached"));
                break;
            }
            if clock.is_over() {
                incomplete = Some(clock.reason());
                break;
            }
            let pending: Vec<Pending> = state.thread_ids().map(|id| machine.pending(&state, id)).collect();
            observed.look(machine, &state, &pending, &|| self.path(number));
            if state.limit().is_some() {
                continue;
            }
            for (at, pending) in pending.iter().enumerate() {
                let Pending::Visible(op) = pending else { continue };
                let thread = ThreadId(at as u32);
                let cell = op.loc.map(|loc| (state.heap[loc.object.index()].origin, loc.cell));
                let step = StepMade {
                    thread: state.thread(thread).path.clone(),
                    site: op.site,
                    action: op.action,
                    cell,
                    what: machine.describe(&state, op),
                    rank: ranks.get(at).copied().unwrap_or(UNRANKED),
                    ranks: &ranks,
                };
                for outcome in machine.outcomes(&state, Some(thread), clock) {
                    self.arrive(number, Some(&step), outcome, &mut incomplete);
                }
            }
        }
        if let Some(cut) = &observed.cut {
            incomplete.get_or_insert_with(|| cut.clone());
        }
        if incomplete.is_none() && clock.is_over() {
            incomplete = Some(clock.reason());
        }
        if incomplete.is_none() {
            self.livelocks(&mut observed);
            let done = match self.identity {
                Identity::Names => self.unretried(&mut observed, clock),
                Identity::Orbits => self.unretried_in_orbits(&mut observed, clock),
            };
            if !done {
                incomplete = Some(clock.reason());
            }
        }
        let idle = !self.edges.iter().any(|e| matches!(e.action, Action::Write | Action::CasSucceeds));
        let swaps =
            self.edges.iter().filter(|e| e.action.is_cas()).map(|e| (e.thread.clone(), e.site)).collect();
        Exploration { observed, states: self.nodes.len(), edges: self.edges.len(), incomplete, idle, swaps }
    }

    /// What tells a state from others, and the ranks of its threads.
    fn key(&self, state: &State) -> (u128, Box<[u8]>) {
        match self.identity {
            Identity::Orbits => match self.machine.orbit(state) {
                Some(orbit) => (fingerprint(&orbit.canon), orbit.ranks),
                None => (fingerprint(&self.machine.canon(state)), Box::default()),
            },
            Identity::Names => (fingerprint(&self.machine.canon(state)), Box::default()),
        }
    }

    fn arrive(
        &mut self,
        from: u32,
        step: Option<&StepMade>,
        outcome: Outcome,
        incomplete: &mut Option<String>,
    ) {
        match outcome.settled {
            Settled::Yes => {}
            Settled::OutOfSteps => {
                *incomplete = Some("a thread ran for too long without a visible operation".to_owned());
                return;
            }
            // Whoever gave the clock asks it next.
            Settled::OutOfTime => return,
        }
        if outcome.sampled {
            *incomplete = Some("not every outcome of random was tried".to_owned());
        }
        let mut state = outcome.state;
        self.machine.collect(&mut state);
        let (key, ranks) = self.key(&state);
        let moved =
            step.filter(|_| self.identity == Identity::Orbits && self.machine.program.cases).map(|step| {
                let mut moved = vec![UNRANKED; step.ranks.iter().filter(|&&rank| rank != UNRANKED).count()];
                for (&from, &to) in step.ranks.iter().zip(&ranks) {
                    if from != UNRANKED {
                        moved[from as usize] = to;
                    }
                }
                let moved: Rc<[u8]> = moved.into();
                match self.moves.get_key_value(&moved) {
                    Some((known, ())) => known.clone(),
                    None => {
                        self.moves.insert(moved.clone(), ());
                        moved
                    }
                }
            });
        let next = self.nodes.len() as u32;
        let to = *self.numbers.entry(key).or_insert(next);
        if to == next {
            let act = step.map(|s| Step::Act { thread: s.thread.clone(), what: Some(s.what.clone()) });
            let steps = act.into_iter().chain(outcome.choices.iter().map(|&c| Step::Choose(c))).collect();
            self.nodes.push(Node { parent: from, step: steps });
            self.queue.push_back((to, state, ranks));
        }
        if let Some(StepMade { thread, site, action, cell, rank, .. }) = step {
            self.edges.push(Edge {
                from,
                to,
                thread: thread.clone(),
                site: *site,
                action: *action,
                cell: *cell,
                rank: *rank,
                moved,
            });
        }
    }

    /// The schedule that leads to a node.
    fn path(&self, number: u32) -> Schedule {
        let mut parts: Vec<&Node> = Vec::new();
        let mut at = number;
        loop {
            let node = &self.nodes[at as usize];
            parts.push(node);
            if node.parent == at || node.step.iter().all(|s| matches!(s, Step::Choose(_))) {
                break;
            }
            at = node.parent;
        }
        let steps = parts.into_iter().rev().flat_map(|node| node.step.iter());
        Schedule { steps: self.prefix.iter().chain(steps).cloned().collect() }
    }
}
