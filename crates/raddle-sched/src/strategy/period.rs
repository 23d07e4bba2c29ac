//! `period`: periodical scheduling.
//!
//! Wen, He, Cai, Zhao et al., *Controlled Concurrency Testing via Periodical Scheduling* (ICSE 2022). Errors need few changes
//! between few stretches, and which stretches they are is told by the threads' own progress. The run is divided into *periods*:
//! in each of them every thread does one stretch of its operations, in an order drawn anew; where a thread's stretches end is drawn once, in terms of its own
//! operations and not of the run's, so a preemption stays where it is when others do more or less.
//!
//! Parameter 0 is the number of periods, parameter 1 how many choices a run has. A thread with the path hash h ends
//! its stretches after operations drawn from the seed and h alone.
//!
//! Deviations: the paper's executor waits until the threads of a period have come to its end and sorts the periods' orders so as to enumerate them
//! by their number; here both are drawn, a thread that cannot go is passed over, and a period is over when nobody can go in it.

use super::Strategy;
use crate::random::splitmix;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

const PERIODS_MAX: u64 = 16;
const STEPS_DEFAULT: u64 = 1000;

pub struct Period {
    periods: u64,
    steps: u64,
    salt: u64,
    /// The period under way.
    now: u64,
}

impl Period {
    pub fn new(periods: u64, steps: u64) -> Period {
        let steps = if steps == 0 { STEPS_DEFAULT } else { steps };
        Period { periods: periods.clamp(1, PERIODS_MAX), steps, salt: 0, now: 0 }
    }

    fn draw(&self, path: u64, what: u64) -> u64 {
        splitmix(splitmix(self.salt ^ path).wrapping_add(what))
    }

    /// After how many operations a thread's stretch ends. Of any size up to the run's with the same probability, because a
    /// thread's part of a run is not known.
    fn cut(&self, path: u64, which: u64) -> u64 {
        let bits = u64::from(u64::BITS - self.steps.leading_zeros());
        let most = 1 << (1 + self.draw(path, which | 1 << 33) % bits);
        1 + self.draw(path, which) % most
    }

    /// In which period a thread is that has done so many operations.
    fn period_of(&self, path: u64, steps: u32) -> u64 {
        (0..self.periods - 1).filter(|&cut| self.cut(path, cut) <= u64::from(steps)).count() as u64
    }

    /// Who goes first in a period.
    fn rank(&self, path: u64, period: u64) -> u64 {
        self.draw(path, period | 1 << 32)
    }
}

impl Strategy for Period {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        self.salt = tools.random.draw();
    }

    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        let period = |ix: ThreadIx| self.period_of(view.roster[ix].path, view.roster[ix].steps);
        let least = view.candidates().map(period).min().unwrap_or(0);
        let now = self.now.max(least);
        let in_period = view.candidates().filter(|&ix| period(ix) <= now);
        let first = in_period.min_by_key(|&ix| self.rank(view.roster[ix].path, now)).unwrap_or(ThreadIx(0));
        self.now = now;
        first
    }
}
