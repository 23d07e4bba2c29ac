//! Visible operations, and the binary form of a schedule in the region's blob.
//!
//! Kinds come from the table of operations ([`crate::operations`]).
//!
//! A blob is little-endian 64-bit words:
//!
//! ```text
//! threads  steps  stops  blocks  sites  payload bytes
//! threads x name hash
//! steps   x step word
//! stops   x STOP_WORDS words: thread, after, occurrence, place kind, offset, module hash
//! blocks  x step word
//! sites   x SITE_WORDS words: offset, module hash: accesses made here are visible
//! payload bytes: what the steps with a payload ([`crate::journal`]) are to be given, each with its length before it
//! ```
//!
//! Threads are named by their spawn path; the hash is [`hash`] of that text, which a runtime can extend step by step
//! as threads are created.

use crate::record::SyncOp;

pub use crate::operations::StepKind;
pub use crate::operations::constants::*;

/// No visible operation.
pub const NONE: u8 = 255;

/// The visible operation that a synchronisation event stands for, or [`NONE`].
pub const fn of(op: SyncOp, argument: u64) -> u8 {
    match op.step(argument) {
        Some(kind) => kind as u8,
        None => NONE,
    }
}

/// One step of a schedule in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepWord {
    /// Index into the blob's thread table.
    pub thread: u16,
    pub kind: u8,
    pub failed: bool,
    /// Which visible operation of the thread this is, from 1.
    pub ordinal: u32,
}

impl StepWord {
    pub const fn pack(self) -> u64 {
        self.thread as u64
            | (self.kind as u64) << 16
            | (self.failed as u64) << 24
            | (self.ordinal as u64) << 32
    }

    pub const fn unpack(word: u64) -> StepWord {
        StepWord {
            thread: word as u16,
            kind: (word >> 16) as u8,
            failed: word >> 24 & 1 != 0,
            ordinal: (word >> 32) as u32,
        }
    }
}

pub const HEAD_WORDS: usize = 6;
pub const SITE_WORDS: usize = 2;
pub const STOP_WORDS: usize = 6;

/// Place kinds of stops.
pub const PLACE_CODE: u64 = 0;
pub const PLACE_OBJECT: u64 = 1;

pub const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, continued from `state`.
pub const fn hash(mut state: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        state = (state ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    state
}

/// The hash of a run's turns, with one more turn: of which thread (by name hash), which of its operations, what it was.
/// Addresses have no part in it, so the same schedule has the same hash in every process.
pub const fn turn_hash(state: u64, thread: u64, kind: u8, failed: bool, ordinal: u32) -> u64 {
    let what = kind as u64 | (failed as u64) << 8 | (ordinal as u64) << 16;
    let mut z = (state.rotate_left(23) ^ thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what;
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^ (z >> 29)
}

/// Name hash of the n-th child of a thread.
pub const fn child_hash(parent: u64, n: u32) -> u64 {
    let mut digits = [0u8; 10];
    let mut used = 0;
    let mut rest = n;
    loop {
        digits[used] = b'0' + (rest % 10) as u8;
        used += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut state = hash(parent, b".");
    while used > 0 {
        used -= 1;
        state = hash(state, &[digits[used]]);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_the_same_whole_or_in_parts() {
        let whole = hash(HASH_START, b"1.12.3");
        assert_eq!(child_hash(child_hash(hash(HASH_START, b"1"), 12), 3), whole);
    }

    #[test]
    fn turns_hash_by_every_field_and_by_order() {
        let (a, b) = ([1, 2, 3, 4], [1, 2, 3, 5]);
        let hash = |turns: &[[u64; 4]]| {
            turns.iter().fold(0, |state, &[thread, kind, failed, ordinal]| {
                turn_hash(state, thread, kind as u8, failed == 1, ordinal as u32)
            })
        };
        assert_ne!(hash(&[a, b]), hash(&[b, a]));
        for at in 0..4 {
            let mut other = [7, 7, 0, 7];
            other[at] = 1;
            assert_ne!(hash(&[[7, 7, 0, 7], a]), hash(&[other, a]), "field {at}");
        }
    }

    #[test]
    fn words_keep_their_fields() {
        let step = StepWord { thread: 7, kind: RELOCK, failed: true, ordinal: 123_456 };
        assert_eq!(StepWord::unpack(step.pack()), step);
        assert_eq!(WORDS[CUSTOM as usize], "custom");
    }
}
