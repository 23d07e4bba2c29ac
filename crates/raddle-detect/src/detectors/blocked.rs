//! `blocked`: threads that are blocked when the trace ends, and not in a deadlock.
//!
//! **Definition** (the survey's definition 8). A thread waits for an event that never occurs in the execution: a lock
//! whose holder has ended, a condition that nobody signals, a semaphore that nobody posts, a barrier that does not
//! fill.
//!
//! **Sound** when no other thread can run any more (all have ended or wait): then nothing can unblock it, and the grade
//! is *observed*. While others could still run the trace may just have been cut off, and the grade is *suspected*.
//! A lock whose holder has ended is always *observed*. **Complete** for the waits that the trace shows.
//!
//! **Deviations**: cycles of locks are left to [`super::waitfor`], signals that came too early to
//! [`super::missedsignal`].
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::report::{Remark, Report};
use crate::step::Step;
use crate::waiting::{Waiting, WaitsFor};
use raddle_findings::{Basis, Detail, Kind};

pub const NAME: &str = "blocked";

#[derive(Clone, Debug, Default)]
pub struct Blocked {
    waiting: Waiting,
}

impl Detector for Blocked {
    fn step(&mut self, step: &Step<'_>) {
        self.waiting.step(step);
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let in_cycle: Vec<_> = self.waiting.lock_cycles().iter().flatten().map(|link| link.thread).collect();
        let certain = !self.waiting.somebody_runs();
        let mut reports = Vec::new();
        for (thread, what, site) in self.waiting.waiting() {
            if in_cycle.contains(&thread) {
                continue;
            }
            let holder = match what {
                WaitsFor::Lock { lock, .. } => match self.waiting.holder_beside(lock, thread) {
                    // A lock that is free will be handed over.
                    None => continue,
                    holder => holder,
                },
                WaitsFor::Condition(_) | WaitsFor::Semaphore(_) | WaitsFor::Barrier(_) => None,
            };
            let ended = holder.filter(|&holder| self.waiting.has_ended(holder));
            let basis = if certain || ended.is_some() { Basis::observed() } else { Basis::rule() };
            let part = site.part(what.action(holder)).holding(self.waiting.held_by(thread));
            let mut report =
                Report::new(NAME, Kind::BlockedThread, basis).detail(Detail::AtEndOfTrace).part(part);
            report.remarks.extend(ended.map(Remark::HolderEnded));
            reports.push(report);
        }
        reports
    }
}
