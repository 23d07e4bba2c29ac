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

use crate::step::{self, StepWord};

pub const ENTRY_WORDS: usize = 3;

/// A thread was registered.
pub const BORN: u8 = 254;

/// In an exhaustive search: a thread has come to an operation ([`Arrived`]). Not a turn: it stands before the turn of the
/// operation, and alone if the run ended before that.
pub const ARRIVED: u8 = 253;

/// In an exhaustive search, behind a turn: it left its object as it was.
pub const UNCHANGED: u8 = 252;

/// The program exits. A turn of an exhaustive search, not of a schedule: a replay exits when its schedule is over.
pub const EXIT: u8 = 251;

/// A turn that schedules do not have: its kind has a payload, and no demo is made.
pub const UNWRITTEN: u8 = 250;

/// Is the entry followed by a payload?
pub const fn has_payload(kind: u8) -> bool {
    matches!(kind, step::SYSCALL | step::HANDLER)
}

/// Is this an entry that only an exhaustive search looks at?
pub const fn is_for_search(kind: u8) -> bool {
    matches!(kind, ARRIVED | UNCHANGED | EXIT | UNWRITTEN)
}

/// An operation that a thread has come to, with everything that decides what it is dependent on (`raddle_sched::Operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub thread: u16,
    pub kind: u8,
    pub flags: u8,
    pub bytes: u32,
    pub object: u64,
    /// 48 bits of it: an address or a small number.
    pub second: u64,
}

const SECOND_BITS: u32 = 48;

impl Arrived {
    /// The step word has the size in the place of the ordinal; the second object, kind and flags share the last word.
    pub const fn pack(&self) -> [u64; ENTRY_WORDS] {
        let step = StepWord { thread: self.thread, kind: ARRIVED, failed: false, ordinal: self.bytes };
        let second = self.second & ((1 << SECOND_BITS) - 1);
        let rest = (self.kind as u64) << SECOND_BITS | (self.flags as u64) << (SECOND_BITS + 8);
        [step.pack(), self.object, second | rest]
    }

    pub const fn unpack([word, object, rest]: [u64; ENTRY_WORDS]) -> Arrived {
        let step = StepWord::unpack(word);
        Arrived {
            thread: step.thread,
            kind: (rest >> SECOND_BITS) as u8,
            flags: (rest >> (SECOND_BITS + 8)) as u8,
            bytes: step.ordinal,
            object,
            second: rest & ((1 << SECOND_BITS) - 1),
        }
    }
}

/// An entry of a journal, as an exhaustive search sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Born {
        thread: u16,
        parent: u32,
    },
    Arrived(Arrived),
    /// The operation that the thread came to was performed, or given up.
    Turn {
        thread: u16,
        failed: bool,
        pc: u64,
    },
    Unchanged {
        thread: u16,
    },
}

/// The entries of a journal, up to the first that is not whole.
pub fn marks(bytes: &[u8]) -> impl Iterator<Item = Mark> + '_ {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (entry, after) = rest.split_at_checked(ENTRY_WORDS * 8)?;
        rest = after;
        let (chunks, _) = entry.as_chunks::<8>();
        let words = [0, 1, 2].map(|at: usize| u64::from_le_bytes(chunks[at]));
        let StepWord { thread, kind, failed, ordinal } = StepWord::unpack(words[0]);
        if has_payload(kind) {
            let bytes = usize::try_from(words[2]).ok()?;
            rest = rest.get(bytes.checked_next_multiple_of(8)?..)?;
        }
        Some(match kind {
            BORN => Mark::Born { thread, parent: ordinal },
            ARRIVED => Mark::Arrived(Arrived::unpack(words)),
            UNCHANGED => Mark::Unchanged { thread },
            EXIT | UNWRITTEN => Mark::Turn { thread, failed, pc: 0 },
            _ => Mark::Turn { thread, failed, pc: words[1] },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_keeps_its_fields() {
        let arrived = Arrived {
            thread: 7,
            kind: step::WAIT,
            flags: 0x81,
            bytes: 8,
            object: 1 << 63 | 5,
            second: 0x7fff_1234_5678,
        };
        assert_eq!(Arrived::unpack(arrived.pack()), arrived);
    }

    #[test]
    fn half_an_entry_ends_the_journal() {
        let arrived = Arrived { thread: 1, kind: step::LOCK, flags: 0, bytes: 1, object: 64, second: 0 };
        let mut bytes = [0u8; 48];
        let turn = StepWord { thread: 1, kind: step::LOCK, failed: true, ordinal: 1 };
        for (at, word) in arrived.pack().into_iter().chain([turn.pack(), 0, 64]).enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let whole = [Mark::Arrived(arrived), Mark::Turn { thread: 1, failed: true, pc: 0 }];
        assert!(marks(&bytes).eq(whole));
        assert!(marks(&bytes[..47]).eq([whole[0]]));
        // A payload that is longer than the journal.
        bytes[24..32].copy_from_slice(&StepWord { kind: step::SYSCALL, ..turn }.pack().to_le_bytes());
        assert!(marks(&bytes).eq([whole[0]]));
    }
}
