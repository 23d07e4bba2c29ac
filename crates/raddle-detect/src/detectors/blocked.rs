//! `blocked`: threads that are blocked when the trace ends, and not in a deadlock.
//!
//! **Definition** (the survey's definition 8). A thread waits for an event that never occurs in the execution: a lock
//! whose holder has ended, a condition that nobody signals, a semaphore that nobody posts, a barrier that does not
//! fill.
//!
//! **Sound** when no other thread can run any more (all have ended or wait): then nothing can unblock it, and the grade
//! is *confirmed*. While others could still run the trace may just have been cut off, and the grade is *suspected*.
//! A lock whose holder has ended is always *confirmed*. **Complete** for the waits that the trace shows.
//!
//! **Deviations**: cycles of locks are left to [`super::waitfor`], signals that came too early to
//! [`super::missedsignal`].
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::report::{Report, object as object_token, thread_token};
use crate::step::Step;
use crate::waiting::{Waiting, WaitsFor};
use raddle_findings::{Grade, Kind};

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
        let in_cycle: Vec<_> = self.waiting.lock_cycles().into_iter().flatten().map(|(t, _, _)| t).collect();
        let certain = !self.waiting.somebody_runs();
        let mut reports = Vec::new();
        for (thread, what, site) in self.waiting.waiting() {
            if in_cycle.contains(&thread) {
                continue;
            }
            let mut grade = if certain { Grade::Confirmed } else { Grade::Suspected };
            let (text, object) = match what {
                WaitsFor::Lock(lock) => {
                    let holder = self.waiting.holders(lock).iter().find(|(holder, _)| *holder != thread);
                    match holder {
                        // A lock that is free, or whose holder runs, will be handed over.
                        None => continue,
                        Some((holder, _)) if self.waiting.has_ended(*holder) => {
                            grade = Grade::Confirmed;
                            (
                                format!("a lock whose holder, thread {}, has ended", thread_token(*holder)),
                                lock,
                            )
                        }
                        Some((holder, _)) => {
                            (format!("a lock held by thread {}", thread_token(*holder)), lock)
                        }
                    }
                }
                WaitsFor::Condition(cond) => ("a condition that nobody signals".into(), cond),
                WaitsFor::Semaphore(sem) => ("a semaphore that nobody posts".into(), sem),
                WaitsFor::Barrier(barrier) => ("a barrier that does not fill".into(), barrier),
            };
            let message = format!("a thread is blocked at the end of the trace, waiting for {text}");
            let mut part = site.part("");
            part.action = format!("waits for {text}").into();
            let report = Report::new(NAME, Kind::BlockedThread, grade, message)
                .part(part)
                .object(object_token(object));
            reports.push(report);
        }
        reports
    }
}
