//! `waitfor`: deadlocks that are there when the trace ends.
//!
//! **Definition** (the survey's §6 and definition 3; Coffman et al. 1971). In the wait-for graph an edge leads from a
//! thread that waits for a lock to the thread that holds it. Threads on a cycle wait for each other for ever; a thread
//! that asks again for a mutex that it has locked, or for the write mode under its own read mode, waits for itself.
//!
//! **Sound**: the deadlock happened in this run, so the grade is *observed*; the trace itself is its schedule. **Complete** for
//! cycles of locks at the end of the trace. Needs the trace's requests (`Request` events); threads blocked for other
//! reasons are told by [`super::blocked`].
//!
//! **Deviations**: of several readers that hold a read-write lock, one is followed.
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::report::Report;
use crate::step::Step;
use crate::waiting::{Link, Waiting};
use raddle_findings::{Basis, Detail, Kind};

pub const NAME: &str = "waitfor";

#[derive(Clone, Debug, Default)]
pub struct WaitFor {
    waiting: Waiting,
}

impl Detector for WaitFor {
    fn step(&mut self, step: &Step<'_>) {
        self.waiting.step(step);
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let tell = |cycle: Vec<Link>| {
            let report = Report::new(NAME, Kind::Deadlock, Basis::observed()).detail(Detail::AtEndOfTrace);
            cycle.into_iter().fold(report, |report, link| {
                let held = self.waiting.held_by(link.thread);
                report.part(link.site.part(link.what.action(Some(link.holder))).holding(held))
            })
        };
        self.waiting.lock_cycles().into_iter().map(tell).collect()
    }
}
