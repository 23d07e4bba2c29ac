//! `surw`: selectively uniform random walk.
//!
//! Zhao, Wolff, Mathur and Roychoudhury, *Selectively Uniform Concurrency Testing* (ASPLOS 2025). If the number of
//! operations that each thread has left is known, choosing a thread with a probability proportional to that number
//! makes every interleaving equally likely. That is worth having for the few operations that matter, not for all: so
//! each run picks a set of *interesting* operations, here those on one object that several threads use, and makes the
//! interleavings of these equally likely. A thread is *intended* for the next interesting operation, in proportion to
//! what it has left; operations that are not interesting go in any order; interesting ones of other threads wait. What
//! a thread has left includes what its future descendants have, until they exist.
//!
//! Counts come from a run before (`profile`), as in the paper. Deviations: objects are known by address, so runs have
//! to have the same addresses (from a fork server, or without address randomisation); when a run turns out to be
//! longer than expected and all counts are used up, the intended thread is any; when everything that could go is
//! interesting and not intended, the intention is given up.
//!
//! The blob: number of objects, number of rows; for each object its address, its first row and its number of rows; for
//! each row a thread (path hash) and how many operations on the object it and its descendants have.

use super::candidates;
use crate::steer::state::{NOBODY, Phase, Sched};
use raddle_wire::Header;
use raddle_wire::region::BLOB_OFFSET;
use raddle_wire::step;

/// The walk of this run.
pub struct Walk {
    /// The object whose operations are interesting; 0: none.
    object: usize,
    rows: *const [u64; 2],
    row_count: usize,
    intended: u32,
}

impl Walk {
    pub const fn new() -> Walk {
        Walk { object: 0, rows: core::ptr::null(), row_count: 0, intended: NOBODY }
    }
}

impl Default for Walk {
    fn default() -> Self {
        Walk::new()
    }
}

pub fn prepare(sched: &mut Sched, header: &'static Header) {
    let words = (core::ptr::from_ref(header) as usize + BLOB_OFFSET) as *const u64;
    let total = header.blob_bytes as usize / 8;
    // SAFETY: reads inside the mapped blob only.
    let word = |at: usize| if at < total { unsafe { words.add(at).read_volatile() as usize } } else { 0 };
    let (objects, rows) = (word(0), word(1));
    if objects == 0 || objects.saturating_mul(3).saturating_add(rows.saturating_mul(2)) > total {
        return;
    }
    let at = 2 + 3 * (sched.next_random() % objects as u64) as usize;
    let (object, first, count) = (word(at), word(at + 1), word(at + 2));
    if first.saturating_add(count) > rows {
        return;
    }
    let start = 2 + 3 * objects + 2 * first;
    // SAFETY: the rows lie inside the blob, by the check above.
    let rows = unsafe { words.add(start).cast::<[u64; 2]>() };
    sched.walk = Walk { object, rows, row_count: count, intended: NOBODY };
}

/// A thread exists now.
pub fn registered(sched: &mut Sched, index: usize, path: u64) {
    let walk = &sched.walk;
    let row = (0..walk.row_count)
        // SAFETY: below the count that `prepare` checked.
        .map(|at| unsafe { walk.rows.add(at).read_volatile() })
        .find(|row| row[0] == path);
    sched.entries[index].weight = row.map_or(0, |row| row[1]);
}

/// What the child has left is no longer its parent's.
pub fn born(sched: &mut Sched, parent: u32, child: u32) {
    if parent == NOBODY || child == NOBODY {
        return;
    }
    let weight = sched.entries[child as usize].weight;
    let before = sched.entries[parent as usize].weight;
    sched.entries[parent as usize].weight = before.saturating_sub(weight);
    // An intention for the parent was one for what it and its descendants have left: the child takes its share of it.
    if sched.walk.intended == parent && before > 0 && sched.next_random() % before < weight {
        sched.walk.intended = child;
    }
}

fn interesting(sched: &Sched, index: usize) -> bool {
    let request = sched.entries[index].request;
    sched.walk.object != 0 && request.object == sched.walk.object && request.kind != step::NONE
}

/// Chooses whose interesting operation comes next.
fn intend(sched: &mut Sched) {
    let total: u64 = sched.entries.people().map(|entry| entry.weight).sum();
    sched.walk.intended = NOBODY;
    if total == 0 {
        return;
    }
    let mut left = sched.next_random() % total;
    for n in 0..sched.entries.live_count() {
        let i = sched.entries.nth(n);
        let weight = sched.entries[i].weight;
        if left < weight {
            sched.walk.intended = i as u32;
            return;
        }
        left -= weight;
    }
}

pub fn pick(sched: &mut Sched, skip_yielded: bool) -> u32 {
    let intended = sched.walk.intended;
    let used_up = intended == NOBODY
        || sched.entries[intended as usize].phase == Phase::Ended
        || sched.entries[intended as usize].weight == 0;
    if used_up {
        intend(sched);
    }
    let intended = sched.walk.intended;
    let free = |sched: &Sched, i: usize| intended == NOBODY || i as u32 == intended || !interesting(sched, i);
    let allowed = candidates(sched, skip_yielded).filter(|&i| free(sched, i)).count();
    if allowed == 0 {
        sched.walk.intended = NOBODY;
        let count = candidates(sched, skip_yielded).count();
        return super::random::pick(sched, skip_yielded, count);
    }
    let n = (sched.next_random() % allowed as u64) as usize;
    candidates(sched, skip_yielded).filter(|&i| free(sched, i)).nth(n).unwrap_or(0) as u32
}

pub fn chosen(sched: &mut Sched, index: usize) {
    if interesting(sched, index) {
        sched.entries[index].weight = sched.entries[index].weight.saturating_sub(1);
        sched.walk.intended = NOBODY;
    }
}
