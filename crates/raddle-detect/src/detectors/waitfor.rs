//! `waitfor`: deadlocks that are there when the trace ends.
//!
//! **Definition** (the survey's §6 and definition 3; Coffman et al. 1971). In the wait-for graph an edge leads from a
//! thread that waits for a lock to the thread that holds it. Threads on a cycle wait for each other for ever; a thread
//! that asks again for a mutex that it has locked, for the write mode under its own read mode, or for its own end, waits for itself.
//!
//! **Sound**: the deadlock happened in this run, so the grade is *observed*; the trace itself is its schedule. **Complete** for
//! cycles of locks at the end of the trace. Needs the trace's requests (`Request` events); threads blocked for other
//! reasons are told by [`super::blocked`]. A join of oneself is told although the C library refuses it instead of waiting.
//!
//! **Deviations**: of several readers that hold a read-write lock, one is followed.
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{PartAction, Report, Reports, Subject, place_key};
use crate::step::Step;
use crate::waiting::{Link, Waiting};
use raddle_findings::{Basis, Detail, Kind, Wait, What};
use raddle_trace::{ObjectId, Op};

pub const NAME: &str = "waitfor";

#[derive(Clone, Debug, Default)]
pub struct WaitFor {
    waiting: Waiting,
    own_joins: Reports,
}

impl Detector for WaitFor {
    fn step(&mut self, step: &Step<'_>) {
        self.waiting.step(step);
        if let Op::JoinFailed { child } = step.event.op
            && child == step.thread()
        {
            let (site, held) = (Site::of(step), self.waiting.held_by(child));
            self.own_joins.add(place_key(&[site], u64::from(child.0)), || {
                let subject = Subject::Object(ObjectId(child.0.into()), What::Thread);
                let waits = PartAction::Waits { wait: Wait::ThreadEnd, subject, holder: Some(child) };
                Report::new(NAME, Kind::Deadlock, Basis::observed()).part(site.part(waits).holding(held))
            });
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let tell = |cycle: Vec<Link>| {
            let report = Report::new(NAME, Kind::Deadlock, Basis::observed()).detail(Detail::AtEndOfTrace);
            cycle.into_iter().fold(report, |report, link| {
                let held = self.waiting.held_by(link.thread);
                report.part(link.site.part(link.what.action(Some(link.holder))).holding(held))
            })
        };
        let cycles = self.waiting.lock_cycles().into_iter().map(tell);
        cycles.chain(self.own_joins.take()).collect()
    }
}
