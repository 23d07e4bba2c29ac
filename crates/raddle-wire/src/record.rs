//! Raw records: what a thread writes when something happens.
//!
//! A record is 16 bytes, two little-endian words, so that writing one is two stores:
//!
//! ```text
//! word0   63..56 aux   55..48 tag   47..0 pc (or a 48-bit argument)
//! word1   address, object, value, or whatever the tag says
//! ```
//!
//! The writer stores `word1` first and `word0` last, and buffers start out zeroed: a reader that finds a zero tag has
//! found the end of what was written, however the writer died. An event that needs more room is followed by `Ext`
//! records; a reader that meets the end of a buffer inside an event drops that event.
//!
//! # Stacks
//!
//! The runtime keeps the call stack of instrumented code on the side and writes only what changed since the last
//! record: `Pop` truncates the reader's copy of the stack to a depth, `Push` adds one call (its `pc` is the return
//! address in the caller). The stack of an event is the reader's copy plus the event's own pc. The stack continues
//! across the buffers of one thread.
//!
//! # Events and their records
//!
//! | event | records |
//! | --- | --- |
//! | plain access | `Access` (aux: [`access`] bits, word1: address) |
//! | range access | `Range` (aux: [`access`] bits without size, word1: address), `Ext` (word1: size) |
//! | synchronisation | `Sync` (aux: [`SyncOp`], word1: object), `Ext` (arg48: argument, word1: sequence number) |
//! | atomic | `Atomic` (aux: size code + operation, word1: address), `Ext` (arg48: [`atomic`] flags, word1: sequence number), `Ext` (word1: value read), `Ext` (word1: value written); 16-byte values add two more `Ext` with the high halves |
//! | allocation | `Sync` with [`SyncOp::Other`] and its `Ext`, `Alloc` (word1: address), `Ext` (word1: size) |
//! | release | `Sync` with [`SyncOp::Other`] and its `Ext`, `Free` (word1: address) |
//! | text | `Text` (aux: bytes used, 14 bytes in arg48 then word1); a run of them ends with one that has aux < 14; belongs to the event before it |
//!
//! Beside events, a thread tells where it lives, for names: `Home` with aux `STACK` (low48: its lowest address, word1: its end) and
//! with aux `THREAD_LOCAL` (word1: the thread pointer), and, before it creates another thread, `Frame` for each of its calls (aux: how
//! many calls it is deep, low48: program counter in the function, word1: canonical address of the frame) with an `Ext` (word1: its
//! lowest address).
//!
//! Sequence numbers are global: they order all synchronisation events and atomics of a run, and through the marks before
//! them allocations and releases. Plain accesses are ordered only within their thread.

/// One 16-byte record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    pub word0: u64,
    pub word1: u64,
}

/// Bytes of one record.
pub const RECORD_BYTES: usize = 16;

/// Program counters and 48-bit arguments.
pub const LOW48: u64 = (1 << 48) - 1;

/// What kind of record this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Tag {
    /// Nothing was written here.
    End = 0,
    Access = 1,
    Range = 2,
    Sync = 3,
    Atomic = 4,
    Alloc = 5,
    Free = 6,
    Pop = 7,
    Push = 8,
    Text = 9,
    Ext = 10,
    /// Accesses were not recorded here because a limit was reached; word1 says how many.
    Lost = 11,
    /// Where the thread lives; aux is one of [`crate::report::home`].
    Home = 12,
    /// Where a frame of the thread lies; aux: how many calls it is deep.
    Frame = 13,
}

impl Tag {
    pub const fn from_u8(value: u8) -> Option<Tag> {
        Some(match value {
            0 => Tag::End,
            1 => Tag::Access,
            2 => Tag::Range,
            3 => Tag::Sync,
            4 => Tag::Atomic,
            5 => Tag::Alloc,
            6 => Tag::Free,
            7 => Tag::Pop,
            8 => Tag::Push,
            9 => Tag::Text,
            10 => Tag::Ext,
            11 => Tag::Lost,
            12 => Tag::Home,
            13 => Tag::Frame,
            _ => return None,
        })
    }
}

impl Record {
    #[inline(always)]
    pub const fn new(tag: Tag, aux: u8, low48: u64, word1: u64) -> Record {
        Record { word0: (low48 & LOW48) | (tag as u64) << 48 | (aux as u64) << 56, word1 }
    }

    #[inline(always)]
    pub const fn tag_byte(self) -> u8 {
        (self.word0 >> 48) as u8
    }

    #[inline(always)]
    pub const fn aux(self) -> u8 {
        (self.word0 >> 56) as u8
    }

    #[inline(always)]
    pub const fn low48(self) -> u64 {
        self.word0 & LOW48
    }

    pub const fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (a, b) = (self.word0.to_le_bytes(), self.word1.to_le_bytes());
        [a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]
    }

    pub const fn from_bytes(bytes: [u8; RECORD_BYTES]) -> Record {
        let [a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7] = bytes;
        Record {
            word0: u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            word1: u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        }
    }
}

/// Aux bits of `Access` and `Range` records.
pub mod access {
    /// Low three bits: log2 of the size in bytes (0..=4).
    pub const SIZE_MASK: u8 = 0b111;
    pub const WRITE: u8 = 1 << 3;
    pub const VOLATILE: u8 = 1 << 4;
    pub const VPTR: u8 = 1 << 5;
    /// The access was made by a library function on the program's behalf (memcpy, strlen, ...).
    pub const LIBRARY: u8 = 1 << 6;
    /// Read half of a read-modify-write of plain memory (`x++`).
    pub const COMPOUND: u8 = 1 << 7;
}

/// Aux and flag bits of `Atomic` records.
pub mod atomic {
    /// Aux, low three bits: log2 of the size in bytes; fences use 0 and address 0.
    pub const SIZE_MASK: u8 = 0b111;
    /// Aux, bits 3..=6: the operation.
    pub const OP_SHIFT: u8 = 3;
    pub const OP_MASK: u8 = 0b1111;
    pub const LOAD: u8 = 0;
    pub const STORE: u8 = 1;
    pub const EXCHANGE: u8 = 2;
    pub const ADD: u8 = 3;
    pub const SUB: u8 = 4;
    pub const AND: u8 = 5;
    pub const OR: u8 = 6;
    pub const XOR: u8 = 7;
    pub const NAND: u8 = 8;
    /// Compare-exchange that stored.
    pub const CAS: u8 = 9;
    /// Compare-exchange that failed: a load with the failure order.
    pub const CAS_FAILED: u8 = 10;
    pub const FENCE: u8 = 11;

    /// First `Ext`, arg48 bits 0..=2: memory order in the compilers' numbering
    /// (0 relaxed, 1 consume, 2 acquire, 3 release, 4 acq_rel, 5 seq_cst).
    pub const ORDER_MASK: u64 = 0b111;
}

pub use crate::operations::SyncOp;

/// Argument bits of lock events.
pub mod lock {
    pub const TRY: u64 = 1 << 0;
    pub const TIMED: u64 = 1 << 1;
    /// The lock is a read-write lock.
    pub const RWLOCK: u64 = 1 << 2;
    /// Read mode (Request and Unlock of a read-write lock).
    pub const READ: u64 = 1 << 3;
    pub const SPIN: u64 = 1 << 4;
    /// Part of a condition wait.
    pub const WAIT: u64 = 1 << 5;
    pub const RECURSIVE: u64 = 1 << 6;
    pub const ERRORCHECK: u64 = 1 << 7;
    pub const ROBUST: u64 = 1 << 8;
    /// The previous owner died holding the lock (EOWNERDEAD).
    pub const OWNER_DIED: u64 = 1 << 9;
    /// Recursive acquisition or release that did not change the owner.
    pub const NESTED: u64 = 1 << 10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_fields() {
        let record = Record::new(Tag::Access, 0xa5, 0x7fff_1234_5678, 42);
        assert_eq!(
            (record.tag_byte(), record.aux(), record.low48(), record.word1),
            (1, 0xa5, 0x7fff_1234_5678, 42)
        );
        assert_eq!(Record::from_bytes(record.to_bytes()), record);
    }
}
