//! `waitfor`: deadlocks that are there when the trace ends.
//!
//! **Definition** (the survey's §6 and definition 3; Coffman et al. 1971). In the wait-for graph an edge leads from a
//! thread that waits for a lock to the thread that holds it. Threads on a cycle wait for each other for ever.
//!
//! **Sound**: the deadlock was observed, so the grade is *confirmed*; the trace itself is its schedule. **Complete** for
//! cycles of locks at the end of the trace. Needs the trace's requests (`Request` events); threads blocked for other
//! reasons are told by [`super::blocked`].
//!
//! **Deviations**: of several readers that hold a read-write lock, one is followed.
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::report::{Report, object, thread_token};
use crate::step::Step;
use crate::waiting::Waiting;
use raddle_findings::{Grade, Kind};

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
        let tell = |cycle: Vec<(raddle_trace::ThreadIx, raddle_trace::ObjectId, crate::race::Site)>| {
            let message = format!("{} threads wait for each other's locks for ever", cycle.len());
            let mut report = Report::new(NAME, Kind::Deadlock, Grade::Confirmed, message)
                .note("the trace ends in this deadlock");
            for (_, lock, site) in cycle {
                let mut part = site.part("");
                let holder = self.waiting.holders(lock).first();
                let holder = holder.map_or(String::new(), |(thread, _)| {
                    format!(" held by thread {}", thread_token(*thread))
                });
                part.action = format!("waits for lock {}{holder}", object(lock)).into();
                report.parts.push(part);
                report.objects.push(object(lock));
            }
            report
        };
        self.waiting.lock_cycles().into_iter().map(tell).collect()
    }
}
