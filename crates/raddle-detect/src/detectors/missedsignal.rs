//! `missedsignal`: signals that came before their waiter.
//!
//! **Definition** (the survey's definition 5). A signal was sent that was not delivered to the thread it was meant
//! for. Which one it was meant for is not in the trace; the pattern is: a signal on a condition on which nobody waited
//! then, followed by a wait on that condition that is not woken before the trace ends or that times out.
//!
//! **Neither sound nor complete** in general, because the intention is guessed: the late waiter may have been meant
//! for another signal. When the waiter is still waiting at the end and nobody can run any more, the miss is a fact and
//! the grade is *observed*; else *suspected*. [`super::blocked`] tells such a waiter too, without the reason.
//!
//! **Deviations**: the detectors the survey cites are static patterns; this one looks at a run.
//!
//! **Cost**: constant an event.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{PartAction, Remark, Report, Reports, Subject, place_key};
use crate::step::Step;
use crate::waiting::{Waiting, WaitsFor};
use raddle_findings::{Basis, Detail, Kind, What};
use raddle_trace::{ObjectId, Op, ops_beside};
use rustc_hash::FxHashMap;

pub const NAME: &str = "missedsignal";

#[derive(Clone, Debug, Default)]
struct Condition {
    waiters: u32,
    /// Signals that can still wake somebody who waits.
    pending: u32,
    /// The last signal that woke nobody.
    lost: Option<Site>,
}

#[derive(Clone, Debug, Default)]
pub struct MissedSignal {
    conditions: FxHashMap<ObjectId, Condition>,
    waiting: Waiting,
    reports: Reports,
}

fn tell(cond: ObjectId, signal: Site, wait: Site, basis: Basis, still_waits: bool) -> Report {
    let subject = Subject::Object(cond, What::Condition);
    Report::new(NAME, Kind::MissedSignal, basis)
        .detail(Detail::MissedSignal { still_waits })
        .part(signal.part(PartAction::SignalsNobody { subject }))
        .part(wait.part(WaitsFor::Condition(cond).action(None)))
}

impl Detector for MissedSignal {
    fn step(&mut self, step: &Step<'_>) {
        self.waiting.step(step);
        match step.event.op {
            Op::Signal { cond } | Op::Broadcast { cond } => {
                let condition = self.conditions.entry(cond).or_default();
                if condition.waiters > condition.pending {
                    let all = matches!(step.event.op, Op::Broadcast { .. });
                    condition.pending = if all { condition.waiters } else { condition.pending + 1 };
                } else {
                    condition.lost = Some(Site::of(step));
                }
            }
            Op::WaitBegin { cond, .. } => self.conditions.entry(cond).or_default().waiters += 1,
            Op::Wait { cond, .. } => {
                let condition = self.conditions.entry(cond).or_default();
                condition.waiters = condition.waiters.saturating_sub(1);
                condition.pending = condition.pending.saturating_sub(1);
            }
            Op::WaitFailed { cond, .. } => {
                let condition = self.conditions.entry(cond).or_default();
                condition.waiters = condition.waiters.saturating_sub(1);
                condition.pending = condition.pending.min(condition.waiters);
                if let Some(signal) = condition.lost {
                    let wait = Site::of(step);
                    self.reports.add(place_key(&[signal, wait], cond.0), || {
                        tell(cond, signal, wait, Basis::rule(), false)
                            .remark(Remark::WaitTimedOut(wait.thread))
                    });
                }
            }
            ops_beside!(Condition) => {}
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let basis = if self.waiting.somebody_runs() { Basis::rule() } else { Basis::observed() };
        for (_, what, wait) in self.waiting.waiting() {
            let WaitsFor::Condition(cond) = what else { continue };
            let Some(signal) = self.conditions.get(&cond).and_then(|condition| condition.lost) else {
                continue;
            };
            if signal.position < wait.position {
                let key = place_key(&[signal, wait], cond.0);
                self.reports.add(key, || tell(cond, signal, wait, basis.clone(), true));
            }
        }
        self.reports.take()
    }
}
