//! `delay`: delay-bounded scheduling.
//!
//! Emmi, Qadeer and Rakamarić, *Delay-Bounded Scheduling* (POPL 2011). The base schedule is deterministic and does not
//! preempt: the same thread goes on while it can, otherwise the next one in order of creation. At d random points the
//! thread that would go on is delayed: the next one goes instead.
//!
//! Deviation: the points are drawn at random from the first k decisions (parameter 1) instead of being enumerated.
//! Parameter 0 is d.

use super::{candidates, pct};
use crate::steer::state::Sched;

pub fn prepare(sched: &mut Sched) {
    // One more than the depth, because d delays are d + 1 stretches.
    sched.parameters[0] += 1;
    pct::prepare(sched);
}

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    let last = sched.last as usize;
    let delayed = sched.change_points.contains(&sched.decisions);
    if !delayed && candidates(sched, skip_yielded).any(|i| i == last) {
        return last as u32;
    }
    let after = candidates(sched, skip_yielded).find(|&i| i > last);
    after.or_else(|| candidates(sched, skip_yielded).next()).unwrap_or(0) as u32
}
