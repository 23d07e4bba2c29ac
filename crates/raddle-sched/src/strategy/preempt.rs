//! `preempt`: preemption-bounded scheduling.
//!
//! Musuvathi and Qadeer, *Iterative Context Bounding for Systematic Testing of Multithreaded Programs* (PLDI 2007). A switch of threads is
//! a *preemption* if the thread could have gone on; where it ends or has to wait, a switch costs nothing, and any other thread may
//! go. Errors need few preemptions, mostly none to two, and with at most c of them there are polynomially many executions, however long they
//! are. A delay ([`super::delay`]) takes the next thread in a fixed order; a preemption lets any thread in, so two preemptions reach
//! what may take many delays.
//!
//! Parameter 0 is c, parameter 1 how many choices a run has.
//!
//! Deviations: the paper enumerates all executions with c preemptions before those with c + 1. Here the choices at which the preemptions are, and who
//! goes then and where a thread cannot go on, are drawn; two that fall on one choice are one.

use super::Strategy;
use super::random::pick_among;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

/// More than ever were needed for an error.
const PREEMPTIONS_MAX: usize = 15;

pub struct Preempt {
    /// At which choice each preemption is.
    at: [u64; PREEMPTIONS_MAX],
    wanted: usize,
    steps: u64,
}

impl Preempt {
    pub fn new(preemptions: u64, steps: u64) -> Preempt {
        let wanted = preemptions.min(PREEMPTIONS_MAX as u64) as usize;
        Preempt { at: [0; PREEMPTIONS_MAX], wanted, steps: steps.max(1) }
    }
}

impl Strategy for Preempt {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        for point in &mut self.at[..self.wanted] {
            *point = 1 + tools.random.draw() % self.steps;
        }
    }

    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        let last = view.progress.last;
        let goes_on = view.candidates().any(|ix| ix == last);
        if !goes_on {
            return pick_among(view.candidate_count, || view.candidates(), tools);
        }
        if !self.at[..self.wanted].contains(&view.progress.choices) {
            return last;
        }
        pick_among(view.candidate_count - 1, || view.candidates().filter(|&ix| ix != last), tools)
    }
}
