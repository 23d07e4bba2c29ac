//! `pct`: probabilistic concurrency testing.
//!
//! Burckhardt, Kothari, Musuvathi and Nagarakatte, *A Randomized Scheduler with Probabilistic Guarantees of Finding
//! Bugs* (ASPLOS 2010). Threads get random priorities, the eligible thread with the highest priority runs, and at
//! d - 1 random points of the run the running thread's priority drops below all others. A bug of depth d in a program
//! of n threads and k steps is found with probability at least 1 / (n * k^(d-1)).
//!
//! Deviations: k is given (parameter 1), not measured in the same run, and counts the steps at which more than one thread could go:
//! what a program does before it has threads is no place for a change. A thread that yields or spins may be passed over
//! (`crate::courtesy`), because the paper's programs do not spin.
//!
//! Parameter 0 is d, parameter 1 is k.

use super::Strategy;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

/// Larger depths find nothing: the probability falls with k to the power of d.
pub(super) const DEPTH_MAX: usize = 16;
/// Steps of a run of which nothing is known.
pub(super) const STEPS_DEFAULT: u64 = 1000;
/// Initial priorities lie above those that changes give.
const INITIAL: u64 = 1 << 63;

/// Points of the run, drawn at random. 0 is no point: choices count from 1.
struct ChangePoints {
    points: [u64; DEPTH_MAX],
    wanted: usize,
    steps: u64,
}

impl ChangePoints {
    fn new(wanted: u64, steps: u64) -> ChangePoints {
        let steps = if steps == 0 { STEPS_DEFAULT } else { steps };
        ChangePoints { points: [0; DEPTH_MAX], wanted: wanted.min(DEPTH_MAX as u64 - 1) as usize, steps }
    }

    fn draw(&mut self, tools: &mut Tools<'_>) {
        for point in &mut self.points[..self.wanted] {
            *point = 1 + tools.random.draw() % self.steps;
        }
    }

    /// Which of the points this choice is, if it is one.
    fn at(&self, choice: u64) -> Option<usize> {
        self.points.iter().position(|&point| point == choice)
    }
}

/// The note of a thread is its priority.
pub struct Pct {
    changes: ChangePoints,
}

impl Pct {
    pub fn new(depth: u64, steps: u64) -> Pct {
        Pct { changes: ChangePoints::new(depth.max(1) - 1, steps) }
    }
}

impl Strategy for Pct {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        self.changes.draw(tools);
    }

    fn registered(&mut self, tools: &mut Tools<'_>, thread: ThreadIx, _path: u64, draw: u64) {
        tools.note(thread).0[0] = draw | INITIAL;
    }

    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        let last = view.progress.last;
        if let Some(i) = self.changes.at(view.progress.choices)
            && view.roster.knows(last)
        {
            // The i-th change gives priority i.
            tools.note(last).0[0] = i as u64;
        }
        view.candidates().max_by_key(|&ix| tools.note(ix).0[0]).unwrap_or(ThreadIx(0))
    }
}
