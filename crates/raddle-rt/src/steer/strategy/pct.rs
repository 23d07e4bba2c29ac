//! `pct`: probabilistic concurrency testing.
//!
//! Burckhardt, Kothari, Musuvathi and Nagarakatte, *A Randomized Scheduler with Probabilistic Guarantees of Finding
//! Bugs* (ASPLOS 2010). Threads get random priorities, the eligible thread with the highest priority runs, and at
//! d - 1 random points of the run the running thread's priority drops below all others. A bug of depth d in a program
//! of n threads and k steps is found with probability at least 1 / (n * k^(d-1)).
//!
//! Deviations: k is given (parameter 1), not measured in the same run; a thread that yields or spins is passed over
//! once, because the paper's programs do not spin.
//!
//! Parameter 0 is d, parameter 1 is k.

use super::candidates;
use crate::steer::state::Sched;

pub const DEPTH_MAX: usize = 16;
const STEPS_DEFAULT: u64 = 1000;

pub fn prepare(sched: &mut Sched) {
    let depth = (sched.parameters[0].max(1) as usize).min(DEPTH_MAX);
    let steps = if sched.parameters[1] == 0 { STEPS_DEFAULT } else { sched.parameters[1] };
    for i in 0..DEPTH_MAX {
        sched.change_points[i] = if i + 1 < depth { 1 + sched.next_random() % steps } else { 0 };
    }
}

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    let now = sched.decisions;
    if let Some(i) = sched.change_points.iter().position(|&point| point == now) {
        // Initial priorities have the top bit set; the i-th change gives priority i.
        if (sched.last as usize) < sched.entries.used() {
            let last = sched.last as usize;
            sched.entries[last].priority = i as u64;
        }
    }
    candidates(sched, skip_yielded).max_by_key(|&i| sched.entries[i].priority).unwrap_or(0) as u32
}
