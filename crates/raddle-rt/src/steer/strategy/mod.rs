//! Strategies: which of the threads that could go next goes next. One file each.

pub mod delay;
pub mod pct;
pub mod queue;
pub mod random;
pub mod round_robin;

use super::state::Sched;
use raddle_wire::region::strategy;

/// Called once, before the first decision.
pub fn prepare(sched: &mut Sched) {
    match sched.strategy {
        strategy::PCT => pct::prepare(sched),
        strategy::DELAY => delay::prepare(sched),
        _ => {}
    }
}

/// Picks one of the `count` (two or more) eligible threads.
pub fn pick(sched: &mut Sched, skip_yielded: bool, count: usize) -> u32 {
    match sched.strategy {
        strategy::ROUND_ROBIN => round_robin::pick(sched, skip_yielded),
        strategy::QUEUE => queue::pick(sched, skip_yielded),
        strategy::PCT => pct::pick(sched, skip_yielded),
        strategy::DELAY => delay::pick(sched, skip_yielded),
        _ => random::pick(sched, skip_yielded, count),
    }
}

/// The eligible threads, in order of creation.
pub fn candidates(sched: &Sched, skip_yielded: bool) -> impl Iterator<Item = usize> + '_ {
    (0..sched.used).filter(move |&i| {
        let entry = &sched.entries[i];
        entry.eligible() && !(skip_yielded && entry.yielded)
    })
}
