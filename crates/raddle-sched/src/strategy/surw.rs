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

use super::Strategy;
use super::random::pick_among;
use crate::roster::{Phase, ThreadIx};
use crate::view::{Tools, View};
use raddle_wire::step;

/// The note of a thread: interesting operations that it and its future descendants still have, as far as is known.
pub struct Surw<'t> {
    blob: &'t [u64],
    /// The object whose operations are interesting; 0: none.
    object: usize,
    /// For each thread, by path: how many of them it and its descendants have.
    rows: &'t [[u64; 2]],
    intended: ThreadIx,
}

impl<'t> Surw<'t> {
    pub fn new(blob: &'t [u64]) -> Surw<'t> {
        Surw { blob, object: 0, rows: &[], intended: ThreadIx::NOBODY }
    }

    fn interesting(&self, view: &View<'_, '_>, ix: ThreadIx) -> bool {
        let request = view.roster[ix].request;
        self.object != 0 && request.object == self.object && request.kind != step::NONE
    }

    /// Chooses whose interesting operation comes next.
    fn intend(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) {
        let total: u64 = view.roster.living().map(|ix| tools.note(ix).0[0]).sum();
        self.intended = ThreadIx::NOBODY;
        if total == 0 {
            return;
        }
        let mut left = tools.random.draw() % total;
        for ix in view.roster.living() {
            let weight = tools.note(ix).0[0];
            if left < weight {
                self.intended = ix;
                return;
            }
            left -= weight;
        }
    }
}

impl Strategy for Surw<'_> {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        let word = |at: usize| self.blob.get(at).map_or(0, |&word| word as usize);
        let (objects, rows) = (word(0), word(1));
        let total = self.blob.len();
        if objects == 0 || objects.saturating_mul(3).saturating_add(rows.saturating_mul(2)) > total {
            return;
        }
        let at = 2 + 3 * tools.random.below(objects);
        let (object, first, count) = (word(at), word(at + 1), word(at + 2));
        let (all, _) = self.blob.get(2 + 3 * objects..).unwrap_or(&[]).as_chunks();
        if let Some(own) = all.get(first..first.saturating_add(count)) {
            (self.object, self.rows) = (object, own);
        }
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn registered(&mut self, tools: &mut Tools<'_>, thread: ThreadIx, path: u64, _draw: u64) {
        let row = self.rows.iter().find(|row| row[0] == path);
        tools.note(thread).0[0] = row.map_or(0, |row| row[1]);
    }

    /// What the child has left is no longer its parent's.
    fn born(&mut self, tools: &mut Tools<'_>, parent: ThreadIx, child: ThreadIx) {
        let weight = tools.note(child).0[0];
        let before = tools.note(parent).0[0];
        tools.note(parent).0[0] = before.saturating_sub(weight);
        // An intention for the parent was one for what it and its descendants have left: the child takes its share of it.
        if self.intended == parent && before > 0 && tools.random.draw() % before < weight {
            self.intended = child;
        }
    }

    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        let used_up = self.intended.is_nobody()
            || view.roster[self.intended].phase == Phase::Ended
            || tools.note(self.intended).0[0] == 0;
        if used_up {
            self.intend(view, tools);
        }
        let free =
            |ix: &ThreadIx| self.intended.is_nobody() || *ix == self.intended || !self.interesting(view, *ix);
        let allowed = view.candidates().filter(free).count();
        if allowed == 0 {
            self.intended = ThreadIx::NOBODY;
            return pick_among(view.candidate_count, || view.candidates(), tools);
        }
        pick_among(allowed, || view.candidates().filter(free), tools)
    }

    fn chosen(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>, thread: ThreadIx) {
        if self.interesting(view, thread) {
            let note = tools.note(thread);
            note.0[0] = note.0[0].saturating_sub(1);
            self.intended = ThreadIx::NOBODY;
        }
    }
}
