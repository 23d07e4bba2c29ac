//! `delay`: delay-bounded scheduling.
//!
//! Emmi, Qadeer and Rakamarić, *Delay-Bounded Scheduling* (POPL 2011). The base schedule is deterministic and does not
//! preempt: the same thread goes on while it can, otherwise the next one in order of creation. At d random points the
//! thread that would go on is delayed: the next one goes instead.
//!
//! Deviation: the points are drawn at random from the first k decisions (parameter 1) instead of being enumerated.
//! Parameter 0 is d.

use super::Strategy;
use super::pct::ChangePoints;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

pub struct Delay {
    delays: ChangePoints,
}

impl Delay {
    pub fn new(delays: u64, steps: u64) -> Delay {
        Delay { delays: ChangePoints::new(delays, steps) }
    }
}

impl Strategy for Delay {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        self.delays.draw(tools);
    }

    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        let last = view.progress.last;
        let delayed = self.delays.at(view.progress.decisions).is_some();
        if !delayed && view.candidates().any(|ix| ix == last) {
            return last;
        }
        view.next_after(last)
    }
}
