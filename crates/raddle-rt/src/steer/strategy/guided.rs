//! `guided`: no preemption, except where a list says so. Not for users: it is how schedules are shrunk.
//!
//! A schedule is mostly made of stretches in which one thread goes on. Written down as the list of its changes (after its
//! n-th operation, thread T hands over to thread U) it can be made smaller by leaving changes out: the thread then goes
//! on for as long as it can, which is the base schedule of Emmi, Qadeer and Rakamarić (*Delay-Bounded Scheduling*, POPL
//! 2011). A change that cannot be made, because U cannot go, is ignored.
//!
//! The blob: number of changes, then for each the path hash of T, n, and the path hash of U.

use super::candidates;
use crate::init;
use crate::steer::state::Sched;
use raddle_wire::region::BLOB_OFFSET;

const CHANGE_WORDS: usize = 3;

/// Who takes over after the n-th operation of a thread?
fn change(path: u64, ordinal: u32) -> Option<u64> {
    let header = init::header()?;
    let words = (core::ptr::from_ref(header) as usize + BLOB_OFFSET) as *const u64;
    let total = header.blob_bytes as usize / 8;
    // SAFETY: reads inside the mapped blob only.
    let word = |at: usize| if at < total { unsafe { words.add(at).read_volatile() } } else { 0 };
    (0..(word(0) as usize).min(total / CHANGE_WORDS))
        .map(|i| 1 + i * CHANGE_WORDS)
        .find(|&at| word(at) == path && word(at + 1) == u64::from(ordinal))
        .map(|at| word(at + 2))
}

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    let last = sched.last as usize;
    if last < sched.entries.used() {
        // SAFETY: listed threads stay valid.
        let (path, steps) =
            unsafe { ((*sched.entries[last].thread).path, (*sched.entries[last].thread).steps) };
        if let Some(target) = change(path, steps) {
            // SAFETY: as above.
            let is_target = |i: &usize| unsafe { (*sched.entries[*i].thread).path } == target;
            if let Some(found) = candidates(sched, false).find(is_target) {
                return found as u32;
            }
        }
        if candidates(sched, skip_yielded).any(|i| i == last) {
            return last as u32;
        }
    }
    let after = candidates(sched, skip_yielded).find(|&i| i > last);
    after.or_else(|| candidates(sched, skip_yielded).next()).unwrap_or(0) as u32
}
