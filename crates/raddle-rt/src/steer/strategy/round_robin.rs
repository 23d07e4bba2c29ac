//! `round-robin`: threads take one visible operation each, in order of creation.

use super::candidates;
use crate::steer::state::Sched;

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    let last = sched.last as usize;
    let after = candidates(sched, skip_yielded).find(|&i| i > last);
    after.or_else(|| candidates(sched, skip_yielded).next()).unwrap_or(0) as u32
}
