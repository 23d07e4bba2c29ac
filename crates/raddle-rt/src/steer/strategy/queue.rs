//! `queue`: first come, first served (tsan11rec §4.3).
//!
//! The thread that has waited longest at its visible operation goes first; threads that are still on their way are
//! not waited for if somebody is there. The order therefore depends on arrival, stays close to that of a free run and
//! costs least, but a repetition needs the recorded order.

use super::candidates;
use crate::steer::state::{Phase, Sched};

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    let waiting = candidates(sched, skip_yielded)
        .filter(|&i| matches!(sched.entries[i].phase, Phase::Waiting | Phase::AsideTimed))
        .min_by_key(|&i| sched.entries[i].ticket);
    waiting.or_else(|| candidates(sched, skip_yielded).next()).unwrap_or(0) as u32
}
