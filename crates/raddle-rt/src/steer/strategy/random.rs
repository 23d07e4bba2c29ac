//! `random`: every eligible thread is equally likely (tsan11rec §4.3).
//!
//! The choice is driven by the run's one seed. With two threads of n and m steps every interleaving has a positive
//! probability, but rare orders are exponentially rare; that is what `pct` is for.

use super::candidates;
use crate::steer::state::Sched;

pub fn pick(sched: &mut Sched, skip_yielded: bool, count: usize) -> u32 {
    let n = (sched.next_random() % count as u64) as usize;
    candidates(sched, skip_yielded).nth(n).unwrap_or(0) as u32
}
