//! The journal: every turn of a steered run, in order, written by the runtime while it happens.
//!
//! A trace orders synchronisation but leaves plain accesses unordered between threads, and it is read by a collector while
//! the program runs. A journal is smaller and says one thing only: who took which turn. It is what schedules of
//! explored runs and demos are made of. It lies at the end of the region (behind blob and ring), so what was written
//! survives the program, however that ends.
//!
//! It is a sequence of entries of [`ENTRY_WORDS`] little-endian words: a step word ([`crate::step::StepWord`], with the
//! scheduler's index of the thread), the program counter, and the object. Entries of kind [`BORN`] say that a thread came
//! into being: `thread` is the new index, `ordinal` that of its parent. Entries whose kind [`has_payload`] carry the
//! number of payload bytes in the place of the object; the payload follows, filled up to a whole word.

use crate::step;

pub const ENTRY_WORDS: usize = 3;

/// A thread was registered.
pub const BORN: u8 = 254;

/// Is the entry followed by a payload?
pub const fn has_payload(kind: u8) -> bool {
    matches!(kind, step::SYSCALL | step::HANDLER)
}
