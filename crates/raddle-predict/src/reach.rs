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
use crate::search::{Budget, Outcome, Search};
use crate::state::State;
use crate::witness::{Fidelity, Witness};
use raddle_trace::ThreadIx;
use std::cell::OnceCell;

/// Steps of the observed run in the first window of a search; later ones are [`WINDOW_GROWTH`] times as long each.
const WINDOW_STEPS: usize = 512;
const WINDOW_GROWTH: usize = 8;

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

pub struct Reach<'p> {
    program: &'p Program,
    observed: &'p Clocks,
    with_reads: &'p Clocks,
    /// [`Clocks::keeping_earlier_reads`], made when it is first asked for.
    with_earlier_reads: OnceCell<Clocks>,
    edges: &'p [ObservedEdge],
    reads: Vec<ReadEdge>,
    use_closure: bool,
    /// Step in the observed order at which each thread comes to each position: when it can at the latest be there.
    leaves: Vec<Vec<u32>>,
    budget_each: u64,
    pub budget: Budget,
    pub answers: Answers,
}

impl<'p> Reach<'p> {
    pub fn new(
        program: &'p Program,
        observed: &'p Clocks,
        with_reads: &'p Clocks,
        (edges, reads): (&'p [ObservedEdge], Vec<ReadEdge>),
        use_closure: bool,
        budget: Budget,
        budget_each: u64,
    ) -> Reach<'p> {
        let mut leaves: Vec<Vec<u32>> =
            program.threads.iter().map(|thread| Vec::with_capacity(thread.steps.len())).collect();
        for (index, thread) in program.order.iter().enumerate() {
            leaves[thread.index()].push(index as u32);
        }
        let answers = Answers::default();
        Reach {
            program,
            observed,
            with_reads,
            with_earlier_reads: OnceCell::new(),
            edges,
            reads,
            use_closure,
            leaves,
            budget_each,
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

    /// Answers all questions by search, as far as the budget goes. `wanted` is asked before each: the answers given so
    /// far may have made it unnecessary. `done` gets every answer.
    pub fn search_all<K>(
        &mut self,
        questions: Vec<Question<K>>,
        mut wanted: impl FnMut(&K) -> bool,
        mut done: impl FnMut(K, Answer),
    ) {
        let mut search = Search::new(self.program.thread_count());
        let mut window = WINDOW_STEPS;
        let mut round: Vec<(usize, Question<K>)> =
            questions.into_iter().map(|question| (self.latest_start(&question.targets), question)).collect();
        round.sort_by_key(|(latest, _)| *latest);
        while !round.is_empty() {
            let mut state = State::new(self.program);
            let mut at = 0;
            let mut left = Vec::new();
            for (latest, question) in round {
                if !wanted(&question.key) {
                    continue;
                }
                if self.budget.left == 0 {
                    self.answers.undecided += 1;
                    done(question.key, Answer::Unknown);
                    continue;
                }
                let start = latest.saturating_sub(window);
                while at < start {
                    state.take(self.program.order[at]);
                    at += 1;
                }
                let mut budget = Budget::new(self.budget_each.min(self.budget.left));
                let outcome = search.reach(&mut state, &question.targets, &mut budget);
                self.budget.left = self.budget.left.saturating_sub(budget.used);
                self.budget.used += budget.used;
                match outcome {
                    Outcome::Found(then) => {
                        self.answers.by_search += 1;
                        let positions = state.at.clone();
                        done(
                            question.key,
                            Answer::Yes(Witness { positions, then, fidelity: Fidelity::Reordered }),
                        );
                    }
                    Outcome::Impossible if start == 0 => {
                        self.answers.refuted += 1;
                        done(question.key, Answer::No);
                    }
                    Outcome::Impossible => left.push((latest, question)),
                    Outcome::GaveUp => {
                        self.answers.undecided += 1;
                        done(question.key, Answer::Unknown);
                    }
                }
            }
            round = left;
            window = window.saturating_mul(WINDOW_GROWTH);
        }
    }

    /// A target for a thread.
    pub fn target(thread: ThreadIx, pos: Pos) -> Target {
        Target { thread, pos }
    }
}
