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

use super::Strategy;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};
use raddle_wire::step;

/// The note of a thread: the priority of the operation that it is at, and 1 if that has been drawn.
pub struct Pos;

const PRIORITY: usize = 0;
const DRAWN: usize = 1;

fn reads(kind: u8) -> bool {
    matches!(kind, step::LOAD | step::READ_LOCK | step::READ)
}

impl Strategy for Pos {
    fn looks_ahead(&self) -> bool {
        true
    }

    fn arrived(&mut self, tools: &mut Tools<'_>, thread: ThreadIx) {
        tools.note(thread).0[DRAWN] = 0;
    }

    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        // In order of creation, whatever the order of arrival: the same seed gives the same numbers.
        for ix in view.roster.living() {
            if view.roster[ix].eligible() && tools.note(ix).0[DRAWN] == 0 {
                let priority = tools.random.draw();
                tools.note(ix).0 = [priority, 1];
            }
        }
        view.candidates().max_by_key(|&ix| tools.note(ix).0[PRIORITY]).unwrap_or(ThreadIx(0))
    }

    fn chosen(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>, thread: ThreadIx) {
        let went = view.roster[thread].request;
        for ix in view.roster.living() {
            let other = view.roster[ix].request;
            let races =
                went.object != 0 && other.object == went.object && !(reads(went.kind) && reads(other.kind));
            if ix != thread && races {
                tools.note(ix).0[DRAWN] = 0;
            }
        }
    }
}
