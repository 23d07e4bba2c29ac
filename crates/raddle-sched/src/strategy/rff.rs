//! `rff`: reads-from pairs as abstract schedules, laid over `pos`.
//!
//! Wolff, Shi, Duck, Mathur and Roychoudhury, *Greybox Fuzzing for Concurrency Testing* (ASPLOS 2024). What a run shows depends on
//! which write each read sees. An *abstract schedule* is a set of constraints "the read at this place sees the write of that
//! place" or "does not see it", and says nothing about everything else. The scheduler steers towards the constraints and draws
//! priorities as `pos` does where they leave a choice: a read waits until its write is the last one, and then other writes to the object wait
//! until it has read. Which constraints are worth a run is decided outside, from what earlier runs have shown
//! (`raddle_explore::feedback`).
//!
//! A place is a program counter and an object, so any thread that comes there is meant. A lock is read by taking it and written
//! by taking and by releasing it: that a thread takes it first is then a constraint like the others (*sees the initial state*). Each
//! constraint holds for the first read at its place, and no more after that.
//!
//! Deviations: the paper's constraints are automata over both events; here they are the two bits that those have, what the last
//! write was and whether the read has happened. Where all threads are held back, all are let go. Objects and places are known
//! by address, so runs have to have the same addresses.
//!
//! The blob: number of constraints, then for each the read's place, the object, the write's place (0: the initial state) and whether
//! the read is to see it (1) or not (0).

use super::Strategy;
use super::pos::Pos;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};
use raddle_wire::step;

pub const CONSTRAINT_WORDS: usize = 4;
/// More constraints than these have nothing to choose left.
pub const CONSTRAINTS_MAX: usize = 16;

/// Does the operation look at its object?
pub const fn reads(kind: u8) -> bool {
    matches!(
        kind,
        step::LOAD | step::READ | step::RMW | step::LOCK | step::READ_LOCK | step::RELOCK | step::SEM_WAIT
    )
}

/// Does it change it?
pub const fn writes(kind: u8) -> bool {
    matches!(
        kind,
        step::STORE
            | step::WRITE
            | step::RMW
            | step::LOCK
            | step::RELOCK
            | step::UNLOCK
            | step::SEM_WAIT
            | step::SEM_POST
    )
}

pub struct Rff<'t> {
    constraints: &'t [[u64; CONSTRAINT_WORDS]],
    /// The place of the last write to each constraint's object.
    last: [u64; CONSTRAINTS_MAX],
    /// Bit k: the read of constraint k has happened.
    read: u32,
    pos: Pos,
}

impl<'t> Rff<'t> {
    pub fn new(blob: &'t [u64]) -> Rff<'t> {
        let (count, rest) = blob.split_first().map_or((0, blob), |(&count, rest)| (count as usize, rest));
        let (constraints, _) = rest.as_chunks();
        let count = count.min(constraints.len()).min(CONSTRAINTS_MAX);
        Rff { constraints: &constraints[..count], last: [0; CONSTRAINTS_MAX], read: 0, pos: Pos }
    }

    /// Would the thread's operation go against a constraint?
    fn is_held(&self, view: &View<'_, '_>, ix: ThreadIx) -> bool {
        let request = view.roster[ix].request;
        self.constraints.iter().enumerate().any(|(at, &[place, object, write, sees])| {
            if self.read >> at & 1 != 0 || request.object as u64 != object || request.kind == step::NONE {
                return false;
            }
            let is_set = self.last[at] == write;
            if reads(request.kind) && request.pc == place {
                return is_set != (sees != 0);
            }
            // What makes it true may be repeated; what makes it false may not.
            sees != 0 && is_set && writes(request.kind) && request.pc != write
        })
    }
}

impl Strategy for Rff<'_> {
    fn looks_ahead(&self) -> bool {
        true
    }

    fn arrived(&mut self, tools: &mut Tools<'_>, thread: ThreadIx) {
        self.pos.arrived(tools, thread);
    }

    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        let first = self.pos.pick(view, tools);
        if self.constraints.is_empty() || !self.is_held(view, first) {
            return first;
        }
        let free = view.candidates().filter(|&ix| !self.is_held(view, ix));
        free.max_by_key(|&ix| tools.note(ix).0[0]).unwrap_or(first)
    }

    fn chosen(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>, thread: ThreadIx) {
        self.pos.chosen(view, tools, thread);
    }

    fn finished(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>, thread: ThreadIx) -> bool {
        let request = view.roster[thread].request;
        for (at, &[place, object, ..]) in self.constraints.iter().enumerate() {
            if request.object as u64 != object || view.roster[thread].failed() {
                continue;
            }
            if reads(request.kind) && request.pc == place {
                self.read |= 1 << at;
            }
            if writes(request.kind) {
                self.last[at] = request.pc;
            }
        }
        false
    }
}
