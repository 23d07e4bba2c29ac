//! Answers to "can these threads be at these positions at the same time?"
//!
//! Asked for every pair of accesses that might race and every cycle of locks. The cheap ways come first: the closure that
//! keeps reads, the one that keeps them up to the segments in question, the one that keeps none, and only then a search. Searches begin at a state of the observed run shortly
//! before the positions, in a window that grows until it is the whole trace or the budget is used up; so they are put off
//! and done together, in the order of the trace ([`Reach::search_all`]).

use crate::build::ObservedEdge;
use crate::clocks::{Clocks, ReadEdge};
use crate::closure::{Target, closure};
use crate::ids::Pos;
use crate::prediction::Answers;
use crate::program::Program;
use crate::saturation::{Saturated, saturate};
use crate::search::{Budget, Outcome, Search};
use crate::state::State;
use crate::witness::{Fidelity, Witness};
use raddle_trace::ThreadIx;
use std::cell::OnceCell;

/// Steps of the observed run in the first window of a search; later ones are [`WINDOW_GROWTH`] times as long each.
const WINDOW_STEPS: usize = 512;
const WINDOW_GROWTH: usize = 8;
/// States that a search may visit at first, and by how much more each time it is taken up again.
const STATES_FIRST: u64 = 1_000;
const STATES_GROWTH: u64 = 4;

/// How sure an answer is.
#[derive(Clone, Debug)]
pub enum Answer {
    Yes(Witness),
    No,
    /// The cheap ways do not decide it, or the budget ran out.
    Unknown,
}

/// A question put off, with whatever the caller wants back with its answer.
pub struct Question<K> {
    pub targets: Vec<Target>,
    pub key: K,
}

/// How large a question is: the steps of the observed run before the places that it is about, and the states that were
/// visited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    pub steps: u64,
    pub states: u64,
}

/// A question that is being searched for.
struct Pending<K> {
    latest: usize,
    question: Question<K>,
    /// How far each thread must come.
    needed: Vec<Pos>,
    window: usize,
    states: u64,
    size: Size,
    /// A target would have to be left behind.
    lost: bool,
    /// The program with the orders that saturation found, where it found any.
    ordered: Option<Box<Program>>,
    saturated: bool,
}

pub struct Reach<'p> {
    program: &'p Program,
    must: &'p Clocks,
    observed: &'p Clocks,
    with_reads: &'p Clocks,
    /// [`Clocks::keeping_earlier_reads`], made when it is first asked for.
    with_earlier_reads: OnceCell<Clocks>,
    edges: &'p [ObservedEdge],
    reads: Vec<ReadEdge>,
    use_closure: bool,
    /// Step in the observed order at which each thread comes to each position: when it can at the latest be there.
    leaves: Vec<Vec<u32>>,
    pub budget: Budget,
    pub answers: Answers,
}

impl<'p> Reach<'p> {
    pub fn new(
        program: &'p Program,
        must: &'p Clocks,
        observed: &'p Clocks,
        with_reads: &'p Clocks,
        (edges, reads): (&'p [ObservedEdge], Vec<ReadEdge>),
        use_closure: bool,
        budget: Budget,
    ) -> Reach<'p> {
        let mut leaves: Vec<Vec<u32>> =
            program.threads.iter().map(|thread| Vec::with_capacity(thread.steps.len())).collect();
        for (index, thread) in program.order.iter().enumerate() {
            leaves[thread.index()].push(index as u32);
        }
        let answers = Answers::default();
        Reach {
            program,
            must,
            observed,
            with_reads,
            with_earlier_reads: OnceCell::new(),
            edges,
            reads,
            use_closure,
            leaves,
            budget,
            answers,
        }
    }

    /// The cheap ways.
    pub fn ask(&mut self, targets: &[Target]) -> Answer {
        if !self.use_closure {
            return Answer::Unknown;
        }
        if let Some(positions) = closure(self.program, self.with_reads, targets) {
            self.answers.by_strict_closure += 1;
            return Answer::Yes(Witness { positions, then: Vec::new(), fidelity: Fidelity::KeepsReads });
        }
        let earlier = self.with_earlier_reads.get_or_init(|| {
            Clocks::keeping_earlier_reads(self.program, self.edges, std::mem::take(&mut self.reads))
        });
        if let Some(positions) = closure(self.program, earlier, targets) {
            self.answers.by_closure += 1;
            return Answer::Yes(Witness {
                positions,
                then: Vec::new(),
                fidelity: Fidelity::KeepsEarlierReads,
            });
        }
        if let Some(positions) = closure(self.program, self.observed, targets) {
            self.answers.by_closure += 1;
            return Answer::Yes(Witness { positions, then: Vec::new(), fidelity: Fidelity::KeepsOrder });
        }
        Answer::Unknown
    }

    /// The last moment of the observed run at which no target thread has gone too far.
    fn latest_start(&self, targets: &[Target]) -> usize {
        let leaves = |target: &Target| self.leaves[target.thread.index()].get(target.pos as usize).copied();
        targets.iter().filter_map(leaves).min().map_or(self.program.order.len(), |step| step as usize)
    }

    /// How far each thread must have come in any reordering that reaches the targets.
    fn needed(&self, targets: &[Target]) -> Vec<Pos> {
        let mut needed = vec![0; self.program.thread_count()];
        for target in targets {
            for (needed, &pos) in needed.iter_mut().zip(self.must.at(target.thread, target.pos)) {
                *needed = pos.max(*needed);
            }
        }
        needed
    }

    /// Looks for orders that hold in every answer; from then on the search is for the whole trace, with them. False if they
    /// contradict each other: there is no answer.
    fn saturate<K>(&self, pending: &mut Pending<K>) -> bool {
        pending.saturated = true;
        match saturate(self.program, self.must, &pending.question.targets, &pending.needed) {
            Saturated::Refuted => return false,
            Saturated::Orders(orders, needed) => {
                pending.needed = needed;
                if !orders.is_empty() {
                    pending.ordered = Some(Box::new(self.program.with_needs(orders)));
                    // Steps that the observed run took before the window may contradict an order.
                    pending.window = usize::MAX;
                }
            }
            Saturated::Unknown => {}
        }
        true
    }

    /// Answers all questions by search, as far as the budget goes. `wanted` is asked before each: the answers given so
    /// far may have made it unnecessary. `done` gets every answer, with how large the question was.
    ///
    /// All questions get a few states first, then those that are left more, and so on: most need few, and nobody knows
    /// which. So the budget goes where it decides most, and the last state of it to the hardest questions.
    pub fn search_all<K>(
        &mut self,
        questions: Vec<Question<K>>,
        mut wanted: impl FnMut(&K) -> bool,
        mut done: impl FnMut(K, Answer, Size),
    ) {
        let mut search = Search::new(self.program.thread_count());
        let mut round: Vec<Pending<K>> = questions
            .into_iter()
            .map(|question| {
                let latest = self.latest_start(&question.targets);
                let needed = self.needed(&question.targets);
                let size = Size { steps: latest as u64, states: 0 };
                let (window, states) = (WINDOW_STEPS, STATES_FIRST);
                let lost = question.targets.iter().any(|target| needed[target.thread.index()] > target.pos);
                let (ordered, saturated) = (None, false);
                Pending { latest, question, needed, window, states, size, lost, ordered, saturated }
            })
            .collect();
        round.sort_by_key(|pending| pending.latest);
        while !round.is_empty() {
            let mut state = State::new(self.program);
            let mut at = 0;
            let mut left = Vec::new();
            for mut pending in round {
                if !wanted(&pending.question.key) {
                    continue;
                }
                if pending.lost {
                    self.answers.refuted += 1;
                    done(pending.question.key, Answer::No, pending.size);
                    continue;
                }
                if self.budget.left == 0 {
                    self.answers.undecided += 1;
                    done(pending.question.key, Answer::Unknown, pending.size);
                    continue;
                }
                let start = pending.latest.saturating_sub(pending.window);
                if at > start {
                    state = State::new(self.program);
                    at = 0;
                }
                while at < start {
                    state.take(self.program.order[at]);
                    at += 1;
                }
                let mut budget = self.budget.part(pending.states);
                let (targets, needed) = (&pending.question.targets, &pending.needed);
                let (outcome, positions) = match &pending.ordered {
                    None => (search.reach(&mut state, targets, needed, &mut budget), None),
                    Some(program) => {
                        let mut state = State::new(program);
                        for &thread in &program.order[..start] {
                            state.take(thread);
                        }
                        (search.reach(&mut state, targets, needed, &mut budget), Some(state.at))
                    }
                };
                let positions = positions.unwrap_or_else(|| state.at.clone());
                self.budget.settle(budget);
                pending.size.states += budget.used;
                match outcome {
                    Outcome::Found(then) => {
                        self.answers.by_search += 1;
                        let witness = Witness { positions, then, fidelity: Fidelity::Reordered };
                        done(pending.question.key, Answer::Yes(witness), pending.size);
                    }
                    Outcome::Impossible if start == 0 => {
                        self.answers.refuted += 1;
                        done(pending.question.key, Answer::No, pending.size);
                    }
                    Outcome::Impossible => {
                        pending.window = pending.window.saturating_mul(WINDOW_GROWTH);
                        left.push(pending);
                    }
                    Outcome::GaveUp if !pending.saturated => match self.saturate(&mut pending) {
                        true => left.push(pending),
                        false => {
                            self.answers.refuted += 1;
                            done(pending.question.key, Answer::No, pending.size);
                        }
                    },
                    Outcome::GaveUp => {
                        pending.states = pending.states.saturating_mul(STATES_GROWTH);
                        left.push(pending);
                    }
                }
            }
            // Windows differ; the state only ever goes forward within a round.
            left.sort_by_key(|pending| pending.latest.saturating_sub(pending.window));
            round = left;
        }
    }

    /// A target for a thread.
    pub fn target(thread: ThreadIx, pos: Pos) -> Target {
        Target { thread, pos }
    }
}
