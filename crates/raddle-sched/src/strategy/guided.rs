//! `guided`: no preemption, except where a list says so. Not for users: it is how schedules are shrunk.
//!
//! A schedule is mostly made of stretches in which one thread goes on. Written down as the list of its changes (after its
//! n-th operation, thread T hands over to thread U) it can be made smaller by leaving changes out: the thread then goes
//! on for as long as it can, which is the base schedule of Emmi, Qadeer and Rakamarić (*Delay-Bounded Scheduling*, POPL
//! 2011). A change that cannot be made, because U cannot go, is ignored.
//!
//! The blob: number of changes, then for each the path hash of T, n, and the path hash of U.

use super::Strategy;
use crate::courtesy::Yields;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

const CHANGE_WORDS: usize = 3;

pub struct Guided<'t> {
    changes: &'t [[u64; CHANGE_WORDS]],
}

impl<'t> Guided<'t> {
    pub fn new(blob: &'t [u64]) -> Guided<'t> {
        let (count, rest) = blob.split_first().map_or((0, blob), |(&count, rest)| (count as usize, rest));
        let (changes, _) = rest.as_chunks();
        Guided { changes: &changes[..count.min(changes.len())] }
    }

    /// Who takes over after the n-th operation of a thread?
    fn change(&self, path: u64, ordinal: u32) -> Option<u64> {
        self.changes
            .iter()
            .find(|change| change[0] == path && change[1] == u64::from(ordinal))
            .map(|change| change[2])
    }
}

/// A run that is repeated may have gone on for long where a loop waited.
const SPIN_TURNS_MAX: u32 = 2_000;

impl Strategy for Guided<'_> {
    /// The list says who goes after a yield.
    fn yields(&self) -> Yields {
        Yields::Never
    }

    fn spin_turns_max(&self) -> u32 {
        SPIN_TURNS_MAX
    }

    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        let last = view.progress.last;
        if view.roster.knows(last) {
            let entry = &view.roster[last];
            if let Some(target) = self.change(entry.path, entry.steps) {
                // Somebody who has yielded goes as well, if the list says so.
                let all = View { skip_yielded: false, ..*view };
                if let Some(found) = all.candidates().find(|&ix| view.roster[ix].path == target) {
                    return found;
                }
            }
            if view.candidates().any(|ix| ix == last) {
                return last;
            }
        }
        view.next_after(last)
    }
}
