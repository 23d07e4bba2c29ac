//! Strategies: which of the threads that could go next goes next. One file each.

pub mod delay;
pub mod guided;
pub mod noise;
pub mod pct;
pub mod pos;
pub mod queue;
pub mod random;
pub mod round_robin;
pub mod surw;

use super::state::Sched;
use raddle_wire::Header;
use raddle_wire::region::strategy;

/// Called once, before the first decision.
pub fn prepare(sched: &mut Sched, header: &'static Header) {
    match sched.strategy {
        strategy::PCT => pct::prepare(sched),
        strategy::DELAY => delay::prepare(sched),
        strategy::SURW => surw::prepare(sched, header),
        _ => {}
    }
}

/// Does the strategy have to know what every thread is about to do? Then it chooses only when all have arrived.
pub fn looks_ahead(number: u32) -> bool {
    matches!(number, strategy::POS | strategy::SURW)
}

/// Picks one of the `count` (two or more) eligible threads. `queue` mostly has its own way ([`queue::head`]).
pub fn pick(sched: &mut Sched, skip_yielded: bool, count: usize) -> u32 {
    match sched.strategy {
        strategy::ROUND_ROBIN => round_robin::pick(sched, skip_yielded),
        strategy::QUEUE => queue::pick(sched, skip_yielded),
        strategy::PCT => pct::pick(sched, skip_yielded),
        strategy::DELAY => delay::pick(sched, skip_yielded),
        strategy::POS => pos::pick(sched, skip_yielded),
        strategy::SURW => surw::pick(sched, skip_yielded),
        strategy::GUIDED => guided::pick(sched, skip_yielded),
        _ => random::pick(sched, skip_yielded, count),
    }
}

/// The thread goes next, whether it was picked or the only one.
pub fn chosen(sched: &mut Sched, index: usize) {
    match sched.strategy {
        strategy::POS => pos::chosen(sched, index),
        strategy::SURW => surw::chosen(sched, index),
        _ => {}
    }
}

/// The eligible threads, in order of creation.
pub fn candidates(sched: &Sched, skip_yielded: bool) -> impl Iterator<Item = usize> + '_ {
    sched.entries.living().filter(move |&i| {
        let entry = &sched.entries[i];
        entry.eligible() && !(skip_yielded && entry.yielded)
    })
}
