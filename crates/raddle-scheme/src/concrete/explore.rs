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

use super::canon::fingerprint;
use super::schedule::{Schedule, Step};
use super::state::*;
use super::step::{Event, Op, Pending, Settled};
use crate::limits::Clock;
use crate::machine::access::{Action, SitePair};
use crate::syntax::core::ExprId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// A race, up to which threads and which objects of one origin take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RaceKey {
    pub sites: SitePair,
    /// Actions at the first and the second site.
    pub actions: (Action, Action),
    pub origin: Origin,
    pub cell: u32,
}

/// A thread and the place where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stand {
    pub thread: Rc<[u32]>,
    pub site: ExprId,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub struct RaceSeen {
    pub threads: (Rc<[u32]>, Rc<[u32]>),
    /// In every state seen, the order of the two made no difference to the cell.
    pub benign: bool,
    pub schedule: Schedule,
}

#[derive(Clone, Debug)]
pub struct ErrorSeen {
    pub thread: Rc<[u32]>,
    pub failure: Rc<Failure>,
    pub schedule: Schedule,
}

/// A `cas` that failed for good.
#[derive(Clone, Debug)]
pub struct Unretried {
    pub stand: Stand,
    pub origin: Origin,
    pub cell: u32,
    pub schedule: Schedule,
}

/// Everything noticed during an exploration.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub races: BTreeMap<RaceKey, RaceSeen>,
    pub deadlocks: BTreeMap<Vec<Stand>, Schedule>,
    pub livelocks: BTreeMap<Vec<Stand>, Schedule>,
    pub unretried: BTreeMap<ExprId, Unretried>,
    pub errors: BTreeMap<(ExprId, String), ErrorSeen>,
    /// Results of the main thread in runs that ended well.
    pub results: BTreeSet<String>,
    /// Spawn sites by thread path, for naming threads.
    pub spawn_sites: BTreeMap<Rc<[u32]>, ExprId>,
    /// A machine limit cut a path short.
    pub cut: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Exploration {
    pub observed: Observed,
    pub states: usize,
    pub edges: usize,
    /// Why the graph is not the whole truth, if it is not.
    pub incomplete: Option<String>,
}

/// Outcomes of `random` up to this many are all tried.
const CHOICES_ALL: i64 = 4;

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
            // The next combination, like an odometer; a large range is tried at both ends only.
            loop {
                let Some((choice, n)) = made.pop() else { return results };
                let next = if n > CHOICES_ALL && choice == 0 { n - 1 } else { choice + 1 };
                if next < n {
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

impl Observed {
    /// Looks at a settled state; `path` gives the schedule that leads to it.
    pub fn look(
        &mut self,
        machine: &Machine,
        state: &State,
        pending: &[Pending],
        path: &dyn Fn() -> Schedule,
    ) {
        for thread in &state.threads {
            if let Some(site) = thread.spawn_site
                && !self.spawn_sites.contains_key(&thread.path)
            {
                self.spawn_sites.insert(thread.path.clone(), site);
            }
        }
        self.look_for_races(state, pending, path);
        for thread in &state.threads {
            if let Control::Failed(failure) = &thread.control {
                match failure.kind {
                    FailureKind::Inherited => {}
                    FailureKind::Limit => self.cut = Some(failure.message.clone()),
                    FailureKind::Raised | FailureKind::Wrong => {
                        self.errors.entry((failure.site, failure.message.clone())).or_insert_with(|| {
                            ErrorSeen {
                                thread: thread.path.clone(),
                                failure: failure.clone(),
                                schedule: path(),
                            }
                        });
                    }
                }
            }
        }
        if pending.iter().any(|p| matches!(p, Pending::Visible(_) | Pending::Local)) {
            return;
        }
        let mut stuck: Vec<Stand> = Vec::new();
        for (thread, pending) in state.threads.iter().zip(pending) {
            if let Pending::Blocked(op) = pending {
                stuck.push(Stand { thread: thread.path.clone(), site: op.site, action: op.action });
            }
        }
        if !stuck.is_empty() {
            stuck.sort();
            self.deadlocks.entry(stuck).or_insert_with(path);
        } else if let Control::Done(value) = &state.threads[0].control {
            self.results.insert(machine.show(state, value, true));
        }
    }

    fn look_for_races(&mut self, state: &State, pending: &[Pending], path: &dyn Fn() -> Schedule) {
        let ops: Vec<(usize, &Op, Loc)> = pending
            .iter()
            .enumerate()
            .filter_map(|(at, pending)| match pending {
                Pending::Visible(op) => op.loc.map(|loc| (at, op, loc)),
                _ => None,
            })
            .collect();
        for (i, &(first, a, loc)) in ops.iter().enumerate() {
            for &(second, b, other) in &ops[i + 1..] {
                if loc != other || !a.action.conflicts_with(b.action) {
                    continue;
                }
                let (a, b, first, second) =
                    if a.site <= b.site { (a, b, first, second) } else { (b, a, second, first) };
                let key = RaceKey {
                    sites: SitePair::new(a.site, b.site),
                    actions: if a.site == b.site && b.action < a.action {
                        (b.action, a.action)
                    } else {
                        (a.action, b.action)
                    },
                    origin: state.heap[loc.object.index()].origin,
                    cell: loc.cell,
                };
                let benign = order_is_irrelevant(state.read(loc), a, b);
                let threads = (state.threads[first].path.clone(), state.threads[second].path.clone());
                let seen =
                    self.races.entry(key).or_insert_with(|| RaceSeen { threads, benign, schedule: path() });
                seen.benign &= benign;
            }
        }
    }
}

/// Two conflicting operations commute when neither changes what the other sees.
fn order_is_irrelevant(now: &Value, a: &Op, b: &Op) -> bool {
    let same = |x: &Option<Value>, y: &Value| x.as_ref().is_some_and(|x| x.same(y));
    match (a.action, b.action) {
        (Action::Write, Action::Write) => match (&a.written, &b.written) {
            (Some(x), Some(y)) => x.same(y),
            _ => false,
        },
        (Action::Write, Action::Read) => same(&a.written, now),
        (Action::Read, Action::Write) => same(&b.written, now),
        _ => false,
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
}

/// Explores all states breadth-first, up to a number of states and until the clock runs out.
pub fn explore(machine: &Machine, states_max: usize, clock: &Clock) -> Exploration {
    let mut search = Search {
        machine,
        nodes: Vec::new(),
        numbers: FxHashMap::default(),
        queue: VecDeque::new(),
        edges: Vec::new(),
    };
    let mut observed = Observed::default();
    let mut incomplete: Option<String> = None;
    let start = machine.initial();
    for outcome in machine.outcomes(&start, None, clock) {
        search.arrive(0, None, outcome, &mut incomplete);
    }
    while let Some((number, state)) = search.queue.pop_front() {
        if search.nodes.len() > states_max {
            incomplete = Some(format!("the limit of {states_max} concrete states was reached"));
            break;
        }
        if clock.is_over() {
            incomplete = Some(clock.reason());
            break;
        }
        let pending: Vec<Pending> = state.thread_ids().map(|id| machine.pending(&state, id)).collect();
        observed.look(machine, &state, &pending, &|| search.path(number));
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
            };
            for outcome in machine.outcomes(&state, Some(thread), clock) {
                search.arrive(number, Some(&step), outcome, &mut incomplete);
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
        search.livelocks(&mut observed);
        if !search.unretried(&mut observed, clock) {
            incomplete = Some(clock.reason());
        }
    }
    Exploration { observed, states: search.nodes.len(), edges: search.edges.len(), incomplete }
}

struct Search<'m, 'p> {
    machine: &'m Machine<'p>,
    nodes: Vec<Node>,
    numbers: FxHashMap<u128, u32>,
    queue: VecDeque<(u32, State)>,
    edges: Vec<Edge>,
}

/// A visible operation on its way into the graph.
struct StepMade {
    thread: Rc<[u32]>,
    site: ExprId,
    action: Action,
    cell: Option<(Origin, u32)>,
    what: String,
}

impl Search<'_, '_> {
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
        let key = fingerprint(&self.machine.canon(&state));
        let next = self.nodes.len() as u32;
        let to = *self.numbers.entry(key).or_insert(next);
        if to == next {
            let act = step.map(|s| Step::Act { thread: s.thread.clone(), what: Some(s.what.clone()) });
            let steps = act.into_iter().chain(outcome.choices.iter().map(|&c| Step::Choose(c))).collect();
            self.nodes.push(Node { parent: from, step: steps });
            self.queue.push_back((to, state));
        }
        if let Some(StepMade { thread, site, action, cell, .. }) = step {
            self.edges.push(Edge {
                from,
                to,
                thread: thread.clone(),
                site: *site,
                action: *action,
                cell: *cell,
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
        Schedule { steps: parts.into_iter().rev().flat_map(|node| node.step.iter().cloned()).collect() }
    }

    fn successors(&self) -> Vec<Vec<u32>> {
        let mut next = vec![Vec::new(); self.nodes.len()];
        self.edges.iter().enumerate().for_each(|(at, edge)| next[edge.from as usize].push(at as u32));
        next
    }

    fn livelocks(&self, observed: &mut Observed) {
        let next = self.successors();
        let graph: Vec<Vec<u32>> =
            next.iter().map(|edges| edges.iter().map(|&e| self.edges[e as usize].to).collect()).collect();
        let component = crate::graph::components(&graph);
        let count = component.iter().max().map_or(0, |&max| max as usize + 1);
        let mut stuck = vec![true; count];
        let mut stands: Vec<BTreeSet<Stand>> = vec![BTreeSet::new(); count];
        let mut entry: Vec<Option<u32>> = vec![None; count];
        for (node, &c) in component.iter().enumerate() {
            entry[c as usize].get_or_insert(node as u32);
        }
        for edge in &self.edges {
            let c = component[edge.from as usize] as usize;
            let idle = !matches!(edge.action, Action::Write | Action::CasSucceeds);
            if component[edge.to as usize] as usize != c || !idle {
                stuck[c] = false;
            } else if matches!(edge.action, Action::Read | Action::CasFails) {
                stands[c].insert(Stand { thread: edge.thread.clone(), site: edge.site, action: edge.action });
            }
        }
        for c in 0..count {
            if let Some(node) = entry[c]
                && stuck[c]
                && !stands[c].is_empty()
            {
                let stands = std::mem::take(&mut stands[c]).into_iter().collect();
                observed.livelocks.entry(stands).or_insert_with(|| self.path(node));
            }
        }
    }

    /// A failed `cas` of a thread that cannot reach the same `cas` again. One that no order of the threads lets succeed is
    /// no matter of concurrency: it must succeed somewhere, and another thread must write the cell before it in one run and
    /// after it in another.
    ///
    /// False when the clock ran out on the way.
    fn unretried(&self, observed: &mut Observed, clock: &Clock) -> bool {
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            next[edge.from as usize].push(edge.to);
            before[edge.to as usize].push(edge.from);
        }
        let mut groups: BTreeMap<(Rc<[u32]>, ExprId), Vec<u32>> = BTreeMap::new();
        for (at, edge) in self.edges.iter().enumerate() {
            if edge.action.is_cas() {
                groups.entry((edge.thread.clone(), edge.site)).or_default().push(at as u32);
            }
        }
        for ((thread, site), edges) in groups {
            if clock.is_over() {
                return false;
            }
            // Everything from which an execution of this cas by this thread lies ahead.
            let starts: Vec<u32> = edges.iter().map(|&e| self.edges[e as usize].from).collect();
            let ahead = reach(&before, &starts);
            let failed = edges
                .iter()
                .map(|&e| &self.edges[e as usize])
                .find(|edge| edge.action == Action::CasFails && !ahead[edge.to as usize]);
            if let Some(edge) = failed
                && let Some((origin, cell)) = edge.cell
                && edges.iter().any(|&e| self.edges[e as usize].action == Action::CasSucceeds)
                && self.is_contended(&thread, &next, &edges, &ahead, (origin, cell))
            {
                let stand = Stand { thread: thread.clone(), site, action: Action::CasFails };
                let seen = || {
                    // To the state before, and then the swap that fails.
                    let mut schedule = self.path(edge.from);
                    schedule.steps.push(Step::Act { thread: thread.clone(), what: None });
                    Unretried { stand, origin, cell, schedule }
                };
                observed.unretried.entry(site).or_insert_with(seen);
            }
        }
        true
    }

    /// Whether some write of another thread to the cell comes before one of the given swaps and after one of them.
    fn is_contended(
        &self,
        thread: &[u32],
        next: &[Vec<u32>],
        swaps: &[u32],
        ahead: &[bool],
        cell: (Origin, u32),
    ) -> bool {
        let ends: Vec<u32> = swaps.iter().map(|&e| self.edges[e as usize].to).collect();
        let behind = reach(next, &ends);
        let mut seen: BTreeMap<(&[u32], ExprId), (bool, bool)> = BTreeMap::new();
        for edge in &self.edges {
            let writes = matches!(edge.action, Action::Write | Action::CasSucceeds);
            if edge.cell != Some(cell) || &*edge.thread == thread {
                continue;
            }
            let (before, after) = seen.entry((&edge.thread, edge.site)).or_default();
            *before |= writes && ahead[edge.to as usize];
            // When it comes second it may itself be a swap that fails.
            *after |= (writes || edge.action == Action::CasFails) && behind[edge.from as usize];
        }
        seen.values().any(|&(before, after)| before && after)
    }
}

/// The nodes that the given ones lead to, themselves included.
fn reach(next: &[Vec<u32>], starts: &[u32]) -> Vec<bool> {
    let mut seen = vec![false; next.len()];
    let mut work = starts.to_vec();
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            work.extend(&next[node as usize]);
        }
    }
    seen
}
