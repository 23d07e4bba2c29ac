//! `pos`: partial order sampling.
//!
//! Yuan, Yang and Gu, *Partial Order Aware Concurrency Sampling* (CAV 2018). Every operation that a thread is about to do
//! gets a random priority, and the one with the highest goes. Operations that race with the one that went (same object,
//! another thread, not both reads) are given new priorities. A random walk asks "who goes next?" at every operation and
//! so makes it exponentially unlikely that a long thread overtakes a short one; here the order of two racing
//! operations depends on two numbers, however many unrelated operations lie before them: when one thread has k
//! unrelated operations before its racing one and the other has none, it still comes first with probability 1/(k + 2),
//! not 1/2^(k + 1).
//!
//! Deviations: an operation that cannot proceed (a mutex that is held) can be picked; it is then set aside without
//! having happened, and keeps its priority. A thread that yields or spins is passed over once.

use super::candidates;
use crate::steer::state::Sched;
use raddle_wire::step;

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    // In order of creation, whatever the order of arrival: the same seed gives the same numbers.
    for n in 0..sched.entries.live_count() {
        let i = sched.entries.nth(n);
        if sched.entries[i].eligible() && !sched.entries[i].drawn {
            sched.entries[i].priority = sched.next_random();
            sched.entries[i].drawn = true;
        }
    }
    candidates(sched, skip_yielded).max_by_key(|&i| sched.entries[i].priority).unwrap_or(0) as u32
}

pub fn chosen(sched: &mut Sched, index: usize) {
    let went = sched.entries[index].request;
    let reads = |kind| matches!(kind, step::LOAD | step::READ_LOCK | step::READ);
    for n in 0..sched.entries.live_count() {
        let i = sched.entries.nth(n);
        let other = sched.entries[i].request;
        let races =
            went.object != 0 && other.object == went.object && !(reads(went.kind) && reads(other.kind));
        if i != index && races {
            sched.entries[i].drawn = false;
        }
    }
}
