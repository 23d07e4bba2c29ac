//! Deadlocks, blocked threads, missed signals: reorderings that get stuck.
//!
//! A state is stuck if no thread can take its next step and some have not ended. RaceQuest asks the CSP checker for one
//! (§4.5.1); here all of them are visited, by a search that tries only stubborn sets, which preserve every stuck state.
//!
//! What keeps the search small: locks that can never be part of a deadlock are taken out first ([`without_leaf_locks`]), and a
//! linear abstraction says which steps could block for good at all ([`StuckPlaces`]). If there are none, there is nothing to search. If the budget does not suffice, windows of the trace are
//! searched, each from the observed state at its beginning, overlapping by half.
//!
//! # Reading a stuck state
//!
//! A thread that has left the observed path, or whose future the trace does not show, could do anything: release what it
//! holds, signal, post. Whoever waits for such a thread is not stuck for sure, and neither is who waits for those. What
//! is left after taking them away waits for each other for good. Among these, threads that wait in a circle are a
//! *deadlock*; a thread waiting on a condition whose signal was sent before it began to wait *missed the signal*; any
//! other thread that waits for what nobody will do is a *blocked thread*.

use crate::build::build_exchanged;
use crate::candidate::{Candidate, CandidateKind, Party, Role};
use crate::clocks::Clocks;
use crate::closure::Target;
use crate::ids::Pos;
use crate::leaf_locks::without_leaf_locks;
use crate::lock_cycles::lock_cycles;
use crate::options::Options;
use crate::prediction::{OpenQuestion, Unexplored, Verdict};
use crate::program::{Action, Program};
use crate::races::held_at;
use crate::reach::{Answer, Question, Reach, Size};
use crate::search::{Budget, Search};
use crate::sites::{SiteIx, Sites};
use crate::state::{State, Status};
use crate::stolen_signals::exchanges;
use crate::stuck_places::StuckPlaces;
use crate::wait_cycles::wait_cycles;
use crate::witness::{Fidelity, Witness};
use raddle_trace::{MemoryTrace, Op, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// Stuck states without anything new after which the search ends.
const REPEATS_MAX: u64 = 20_000;
/// Questions about one abstract lock cycle that are left to the search.
const CYCLE_QUESTIONS_MAX: usize = 8;
/// Instances of one cycle of waits that are tried.
const WAIT_TRIES_MAX: usize = 32;
/// States for one exchange of signals.
const EXCHANGE_STATES: u64 = 20_000;
/// Smallest window that is worth a search.
const WINDOW_MIN: u32 = 64;
/// States a window gets at least: some windows searched whole say more than all of them begun.
const WINDOW_STATES_MIN: u64 = 5_000;

/// Can the steps `start .. end` of the observed order get stuck, taken in any order after what came before them? This is
/// the question of a file with a PREFIX; nothing is reduced.
pub fn window_is_stuck(program: &Program, start: usize, end: usize) -> bool {
    let mut state = State::new(program);
    for &thread in &program.order[..start] {
        state.take(thread);
    }
    let mut limit: Vec<Pos> = program.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
    if end < program.order.len() {
        limit.clone_from(&state.at);
        for &thread in &program.order[start..end] {
            limit[thread.index()] += 1;
        }
    }
    let mut stuck = false;
    let mut search = Search::new(program.thread_count());
    search.stuck(&mut state, &limit, &mut Budget::new(u64::MAX), |state, _| {
        stuck |= !anything_possible(state, &limit);
        !stuck
    });
    stuck
}

/// Is there a thread that has left the observed path, or whose future is not known?
fn anything_possible(state: &State<'_>, limit: &[Pos]) -> bool {
    let program = state.program;
    program.thread_ids().any(|thread| {
        let index = thread.index();
        match state.status(thread, limit[index]) {
            Status::Stray => true,
            Status::Done => {
                let whole = limit[index] as usize == program.threads[index].steps.len();
                !whole || program.threads[index].open_ended
            }
            Status::Enabled | Status::Blocked => false,
        }
    })
}

/// What candidates are told apart by: kind, and the sites (or, where unknown, the steps) that are blocked.
type StuckKey = (CandidateKind, Vec<(SiteIx, u32, Pos)>);

pub struct Stuck<'a, 'p> {
    trace: &'a MemoryTrace,
    program: &'p Program,
    must: &'a Clocks,
    options: &'a Options,
    reach: &'a mut Reach<'p>,
    sites: Sites<'a>,
    found: FxHashMap<StuckKey, Candidate>,
    order: Vec<StuckKey>,
}

/// What a search of some windows came to.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    exhausted: u64,
    given_up: u64,
}

impl<'a, 'p> Stuck<'a, 'p> {
    pub fn new(
        trace: &'a MemoryTrace,
        program: &'p Program,
        must: &'a Clocks,
        options: &'a Options,
        reach: &'a mut Reach<'p>,
    ) -> Stuck<'a, 'p> {
        let sites = Sites::new(&trace.tables);
        Stuck { trace, program, must, options, reach, sites, found: FxHashMap::default(), order: Vec::new() }
    }

    pub fn find(mut self, verdict: &mut Verdict, unexplored: &mut Vec<Unexplored>) -> Vec<Candidate> {
        self.own_joins();
        self.lock_cycles(unexplored);
        self.wait_cycles();
        if let Some(reduced) = without_leaf_locks(self.program) {
            match self.options.window {
                Some(events) => {
                    let tally = self.windows(&reduced, events, None, verdict);
                    let Tally { exhausted, given_up } = tally;
                    unexplored.push(Unexplored::Windows { events, exhausted, given_up });
                }
                None => self.whole(&reduced, verdict, unexplored),
            }
        }
        self.exchanges();
        let mut found = self.found;
        let mut candidates: Vec<Candidate> = self.order.iter().filter_map(|key| found.remove(key)).collect();
        candidates.sort_by_key(|candidate| (candidate.kind, candidate.parties[0].event));
        if candidates.len() > self.options.candidates_max {
            let left_out = (candidates.len() - self.options.candidates_max) as u64;
            unexplored.push(Unexplored::Candidates { left_out });
            candidates.truncate(self.options.candidates_max);
        }
        candidates
    }

    /// Signals that another waiter takes.
    fn exchanges(&mut self) {
        let exchanges = exchanges(&self.trace.events, self.program, self.must);
        for exchange in exchanges {
            if self.reach.budget.left == 0 {
                return;
            }
            let (atomics, keeps) = (self.options.atomics, self.options.kept());
            let program = build_exchanged(self.trace, atomics, &keeps, Some(exchange)).program;
            self.search_from_start(&program, EXCHANGE_STATES);
        }
    }

    /// Threads that join themselves. The C library refuses that, so that the trace goes on; a thread that waits as it
    /// asked to would wait for good.
    fn own_joins(&mut self) {
        for thread in self.program.thread_ids() {
            for (pos, step) in self.program.steps(thread).iter().enumerate() {
                let op = self.trace.events[step.event.index()].op;
                if !matches!(op, Op::JoinFailed { child } if child == thread) {
                    continue;
                }
                let target = Target { thread, pos: pos as Pos };
                if let Answer::Yes(witness) = self.reach.ask(&[target]) {
                    self.add(CandidateKind::Deadlock, &[target], witness);
                }
            }
        }
    }

    // Locks only.

    fn lock_cycles(&mut self, unexplored: &mut Vec<Unexplored>) {
        let mut patterns: Vec<Vec<Target>> = Vec::new();
        let mut settled: FxHashSet<Vec<(SiteIx, u32, Pos)>> = FxHashSet::default();
        let mut asked: FxHashMap<Vec<(SiteIx, u32, Pos)>, usize> = FxHashMap::default();
        let (trace, program, reach) = (self.trace, self.program, &mut *self.reach);
        let sites = &Sites::new(&trace.tables);
        let mut sure: Vec<(Vec<Target>, Witness)> = Vec::new();
        lock_cycles(program, self.must, |targets| {
            let key = places(trace, sites, program, targets);
            if settled.contains(&key) {
                return false;
            }
            match reach.ask(targets) {
                Answer::Yes(witness) => {
                    sure.push((targets.to_vec(), witness));
                    settled.insert(key);
                    false
                }
                Answer::No | Answer::Unknown => {
                    let count = asked.entry(key).or_default();
                    *count += 1;
                    if *count <= CYCLE_QUESTIONS_MAX {
                        patterns.push(targets.to_vec());
                    }
                    true
                }
            }
        });
        for (targets, witness) in sure {
            self.add(CandidateKind::Deadlock, &targets, witness);
        }
        let questions: Vec<Question<Vec<Target>>> =
            patterns.into_iter().map(|targets| Question { targets: targets.clone(), key: targets }).collect();
        let settled = std::cell::RefCell::new(settled);
        let mut found = Vec::new();
        let mut open = Vec::new();
        self.reach.search_all(
            questions,
            |targets| !settled.borrow().contains(&places(trace, sites, program, targets)),
            |targets, answer, size| match answer {
                Answer::Yes(witness) => {
                    settled.borrow_mut().insert(places(trace, sites, program, &targets));
                    found.push((targets, witness));
                }
                Answer::No => {}
                Answer::Unknown => {
                    let event = |target: &Target| program.step(target.thread, target.pos).map(|s| s.event.0);
                    let mut events: Vec<u32> = targets.iter().filter_map(event).collect();
                    events.sort_unstable();
                    if let [first, .., last] = events[..] {
                        let (events, Size { steps, states }) = ([first, last], size);
                        open.push(OpenQuestion { events, steps, states });
                    }
                }
            },
        );
        if !open.is_empty() {
            unexplored.push(Unexplored::Cycles { count: open.len() as u64, open });
        }
        for (targets, witness) in found {
            self.add(CandidateKind::Deadlock, &targets, witness);
        }
    }

    /// Cycles of locks and of what else threads wait for, as far as leaving events out shows them.
    fn wait_cycles(&mut self) {
        let (trace, program, reach) = (self.trace, self.program, &mut *self.reach);
        let sites = &Sites::new(&trace.tables);
        let mut settled: FxHashSet<Vec<(SiteIx, u32, Pos)>> = FxHashSet::default();
        let mut tried: FxHashMap<Vec<(SiteIx, u32, Pos)>, usize> = FxHashMap::default();
        let mut sure: Vec<(Vec<Target>, Witness)> = Vec::new();
        wait_cycles(program, self.must, |targets| {
            let key = places(trace, sites, program, targets);
            let tries = tried.entry(key.clone()).or_default();
            *tries += 1;
            if settled.contains(&key) || *tries > WAIT_TRIES_MAX {
                return true;
            }
            if let Answer::Yes(witness) = reach.ask(targets)
                && all_blocked(program, &witness, targets)
            {
                sure.push((targets.to_vec(), witness));
                settled.insert(key);
            }
            true
        });
        for (targets, witness) in sure {
            self.add(CandidateKind::Deadlock, &targets, witness);
        }
    }

    /// Searches a program from its beginning, for what gets stuck there.
    pub fn search_from_start(&mut self, program: &Program, states: u64) {
        let Some(reduced) = without_leaf_locks(program) else { return };
        let limit: Vec<Pos> = reduced.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
        let mut budget = self.reach.budget.part(states);
        let mut state = State::new(&reduced);
        self.search(&mut state, &limit, &mut budget, &mut Verdict::default());
        self.reach.budget.settle(budget);
    }

    fn add(&mut self, kind: CandidateKind, targets: &[Target], witness: Witness) {
        let mut parties: Vec<Party> = targets
            .iter()
            .filter_map(|target| {
                let event = self.program.step(target.thread, target.pos)?.event;
                let held = held_at(self.program, target.thread, target.pos);
                Some(Party { thread: target.thread, event, role: Role::Blocked, held })
            })
            .collect();
        parties.sort_by_key(|party| party.thread);
        if parties.is_empty() {
            return;
        }
        let key = (kind, places(self.trace, &self.sites, self.program, targets));
        match self.found.get_mut(&key) {
            None => {
                self.order.push(key.clone());
                self.found.insert(key, Candidate { kind, parties, witness, alternatives: Vec::new() });
            }
            Some(candidate) => {
                let known = candidate.witness == witness
                    || candidate.alternatives.iter().any(|(_, other)| *other == witness);
                if !known && candidate.alternatives.len() < self.options.alternatives {
                    candidate.alternatives.push((parties, witness));
                }
            }
        }
    }

    // Everything.

    fn whole(&mut self, reduced: &Program, verdict: &mut Verdict, unexplored: &mut Vec<Unexplored>) {
        let limit: Vec<Pos> = reduced.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
        let places = StuckPlaces::of(reduced);
        if places.is_empty() {
            return;
        }
        let mut budget = self.reach.budget.part(self.reach.budget.left / 4);
        let mut state = State::new(reduced);
        let complete = self.search(&mut state, &limit, &mut budget, verdict);
        self.reach.budget.settle(budget);
        if complete {
            return;
        }
        // As many states as there are steps, squared, would be the worst of a window of two threads.
        let steps = reduced.order.len() as u64;
        let share = (self.reach.budget.left / (steps / u64::from(WINDOW_MIN) + 1)).max(1);
        let events = ((share as f64).sqrt() as u32 * 2).clamp(WINDOW_MIN, 10_000);
        let Tally { exhausted, given_up } = self.windows(reduced, events, Some(&places), verdict);
        unexplored.push(Unexplored::Windows { events, exhausted, given_up });
    }

    fn windows(
        &mut self,
        reduced: &Program,
        length: u32,
        places: Option<&StuckPlaces>,
        verdict: &mut Verdict,
    ) -> Tally {
        let length = length.max(2) as usize;
        let mut tally = Tally::default();
        let mut state = State::new(reduced);
        let mut start = 0;
        let windows = (reduced.order.len() / (length / 2).max(1) + 1) as u64;
        let each = (self.reach.budget.left / windows.max(1)).max(WINDOW_STATES_MIN);
        loop {
            let end = (start + length).min(reduced.order.len());
            let mut limit = state.at.clone();
            for &thread in &reduced.order[start..end] {
                limit[thread.index()] += 1;
            }
            if end == reduced.order.len() {
                // The last window: threads may also come to what they were waiting for when the trace ended.
                limit = reduced.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
            }
            if places.is_some_and(|places| !places.any_between(&state.at, &limit)) {
                tally.exhausted += 1;
            } else if self.reach.budget.left == 0 {
                tally.given_up += 1;
            } else {
                let mut budget = self.reach.budget.part(each);
                let complete = self.search(&mut state, &limit, &mut budget, verdict);
                self.reach.budget.settle(budget);
                tally.exhausted += u64::from(complete);
                tally.given_up += u64::from(!complete);
            }
            if end == reduced.order.len() {
                return tally;
            }
            let next = start + (length / 2).max(1);
            for &thread in &reduced.order[start..next] {
                state.take(thread);
            }
            start = next;
        }
    }

    /// Visits all stuck states. True if there are no more.
    fn search(
        &mut self,
        state: &mut State<'_>,
        limit: &[Pos],
        budget: &mut Budget,
        verdict: &mut Verdict,
    ) -> bool {
        let base = state.at.clone();
        let mut repeats = 0;
        let mut search = Search::new(state.program.thread_count());
        let complete = search.stuck(state, limit, budget, |state, path| {
            let before = self.order.len();
            verdict.stuck |= self.read(state, limit, &base, path);
            repeats = if self.order.len() > before { 0 } else { repeats + 1 };
            repeats <= REPEATS_MAX
        });
        complete && repeats <= REPEATS_MAX
    }

    /// Makes candidates of a stuck state. True if no thread in it could do anything unknown.
    fn read(&mut self, state: &State<'_>, limit: &[Pos], base: &[Pos], path: Vec<ThreadIx>) -> bool {
        let program = state.program;
        let anything_possible = anything_possible(state, limit);
        let waiting: Vec<ThreadIx> = program
            .thread_ids()
            .filter(|&thread| state.status(thread, limit[thread.index()]) == Status::Blocked)
            .collect();
        let graph = WaitGraph::new(state, limit, &waiting, anything_possible);
        let witness =
            || Witness { positions: base.to_vec(), then: path.clone(), fidelity: Fidelity::Reordered };
        for group in graph.groups() {
            let targets: Vec<Target> = group
                .threads
                .iter()
                .map(|&thread| Target { thread, pos: state.at[thread.index()] })
                .collect();
            // A circle of locks and joins needs nothing but its own threads: perhaps there is a shorter way there.
            let shorter = match group.kind {
                CandidateKind::Deadlock if group.local => self.reach.ask(&targets),
                CandidateKind::DataRace
                | CandidateKind::UseAfterFree
                | CandidateKind::Deadlock
                | CandidateKind::BlockedThread
                | CandidateKind::MissedSignal => Answer::Unknown,
            };
            let witness = match shorter {
                Answer::Yes(witness) => witness,
                Answer::No | Answer::Unknown => witness(),
            };
            self.add(group.kind, &targets, witness);
        }
        !anything_possible
    }
}

/// Are the threads blocked where a witness leads them? Semaphores may have tokens left.
fn all_blocked(program: &Program, witness: &Witness, targets: &[Target]) -> bool {
    let mut state = State::new(program);
    for thread in witness.moves(program) {
        state.take(thread);
    }
    targets.iter().all(|target| state.status(target.thread, Pos::MAX) == Status::Blocked)
}

/// Sites of blocked steps, in a fixed order.
fn places(
    trace: &MemoryTrace,
    sites: &Sites<'_>,
    program: &Program,
    targets: &[Target],
) -> Vec<(SiteIx, u32, Pos)> {
    let mut places: Vec<(SiteIx, u32, Pos)> = targets
        .iter()
        .filter_map(|target| {
            let step = program.step(target.thread, target.pos)?;
            let event = &trace.events[step.event.index()];
            let site = sites.of(event.location, event.context);
            Some(if site == SiteIx::UNKNOWN { (site, target.thread.0, target.pos) } else { (site, 0, 0) })
        })
        .collect();
    places.sort_unstable();
    places
}

/// Threads that make up one error.
struct Group {
    kind: CandidateKind,
    threads: Vec<ThreadIx>,
    /// They wait only for each other, through locks and joins.
    local: bool,
}

/// Who waits for whom in a stuck state, among the threads that wait for good.
struct WaitGraph<'s, 'p> {
    state: &'s State<'p>,
    threads: Vec<ThreadIx>,
    /// For each of `threads`, whom it waits for.
    edges: Vec<Vec<ThreadIx>>,
}

impl<'s, 'p> WaitGraph<'s, 'p> {
    fn new(
        state: &'s State<'p>,
        limit: &[Pos],
        waiting: &[ThreadIx],
        anything_possible: bool,
    ) -> WaitGraph<'s, 'p> {
        let mut threads = waiting.to_vec();
        // Whoever waits for somebody not in the set may be helped; take away until nothing changes.
        loop {
            let stays = |thread: &ThreadIx| match waits_for(state, limit, *thread) {
                Waits::For(others) => others.iter().any(|other| threads.contains(other)),
                Waits::ForAnyOf(_) | Waits::ForNobody => !anything_possible,
            };
            let left: Vec<ThreadIx> = threads.iter().copied().filter(stays).collect();
            if left.len() == threads.len() {
                break;
            }
            threads = left;
        }
        let edges = threads
            .iter()
            .map(|&thread| match waits_for(state, limit, thread) {
                Waits::For(others) | Waits::ForAnyOf(others) => {
                    others.into_iter().filter(|other| threads.contains(other)).collect()
                }
                Waits::ForNobody => Vec::new(),
            })
            .collect();
        WaitGraph { state, threads, edges }
    }

    fn edges_of(&self, thread: ThreadIx) -> &[ThreadIx] {
        self.threads.iter().position(|&other| other == thread).map_or(&[], |place| &self.edges[place])
    }

    /// The shortest way from a thread back to itself.
    fn circle(&self, start: ThreadIx) -> Option<Vec<ThreadIx>> {
        let mut came_from: FxHashMap<ThreadIx, ThreadIx> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(thread) = queue.pop_front() {
            for &next in self.edges_of(thread) {
                if next == start {
                    let mut circle = vec![thread];
                    let mut at = thread;
                    while at != start {
                        at = came_from[&at];
                        circle.push(at);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if let Entry::Vacant(entry) = came_from.entry(next) {
                    entry.insert(thread);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (place, &thread) in self.threads.iter().enumerate() {
            if let Some(mut circle) = self.circle(thread) {
                if circle.len() == 1 {
                    // It waits for what only it could do: who waits for it is part of the story.
                    let waiters = self.threads.iter().zip(&self.edges);
                    circle.extend(
                        waiters.filter(|(t, e)| **t != thread && e.contains(&thread)).map(|(t, _)| *t),
                    );
                }
                circle.sort_unstable();
                if groups.iter().any(|group| group.threads == circle) {
                    continue;
                }
                let local = circle.iter().all(|&thread| self.is_local(thread));
                groups.push(Group { kind: CandidateKind::Deadlock, threads: circle, local });
            } else if self.edges[place].is_empty() {
                let kind = match self.state.next_step(thread).map(|step| step.action) {
                    Some(Action::Wait { .. }) => CandidateKind::MissedSignal,
                    _ => CandidateKind::BlockedThread,
                };
                // A thread that was never created is not blocked anywhere.
                if self.state.at[thread.index()] > 0 || thread == ThreadIx::MAIN {
                    groups.push(Group { kind, threads: vec![thread], local: false });
                }
            }
        }
        groups
    }

    fn is_local(&self, thread: ThreadIx) -> bool {
        let action = self.state.next_step(thread).map(|step| step.action);
        matches!(action, Some(Action::Lock { .. } | Action::Free))
    }
}

enum Waits {
    /// For all of these, in the end; one of them is enough to block it.
    For(Vec<ThreadIx>),
    /// For something that any of these could do.
    ForAnyOf(Vec<ThreadIx>),
    ForNobody,
}

/// Whom a blocked thread waits for.
fn waits_for(state: &State<'_>, limit: &[Pos], thread: ThreadIx) -> Waits {
    let program = state.program;
    let Some(step) = state.next_step(thread) else { return Waits::ForNobody };
    if let Action::OncePassed { once } = step.action {
        return Waits::For(vec![program.onces[once.index()].thread]);
    }
    if let Action::Wait { instance } = step.action {
        let instance = &program.instances[instance.index()];
        return match state.at[instance.thread.index()] <= instance.signal {
            true => Waits::ForAnyOf(vec![instance.thread]),
            false => Waits::ForNobody,
        };
    }
    if let Some(need) = state.unmet_need(step) {
        return Waits::For(vec![need.thread]);
    }
    let some_or_nobody = |threads: Vec<ThreadIx>| match threads.is_empty() {
        true => Waits::ForNobody,
        false => Waits::ForAnyOf(threads),
    };
    match step.action {
        Action::Lock { lock, .. } => {
            let mut holders: Vec<ThreadIx> =
                state.holders_of(lock).filter(|&other| other != thread).collect();
            if holders.is_empty() && state.holders_of(lock).next().is_some() {
                // It has the lock itself, and will not give it back before it gets it.
                holders.push(thread);
            }
            // Who ended while holding it will not give it back.
            let ended = |other: &ThreadIx| {
                let steps = &program.threads[other.index()];
                !steps.open_ended && state.at[other.index()] as usize == steps.steps.len()
            };
            if holders.iter().any(ended) { Waits::ForNobody } else { Waits::For(holders) }
        }
        Action::SemWait { sem } => {
            some_or_nobody(program.semaphores[sem.index()].posts.between(&state.at, limit).collect())
        }
        Action::BarrierExit { barrier } => {
            some_or_nobody(program.barriers[barrier.index()].enters.between(&state.at, limit).collect())
        }
        Action::Free
        | Action::Unlock { .. }
        | Action::Signal { .. }
        | Action::WaitBegin { .. }
        | Action::Wait { .. }
        | Action::BarrierEnter { .. }
        | Action::SemPost { .. }
        | Action::OncePassed { .. }
        | Action::Atomic { .. } => Waits::ForNobody,
    }
}
