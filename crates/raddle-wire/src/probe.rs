//! Plans of probes: where events that the user named happen, and what they carry.
//!
//! `raddle` writes a plan ([`ENV_PLAN`] names the file), the runtime reads it in place. A plan is little-endian 64-bit words; every
//! position in it counts words from its beginning, every text is a position in *bytes* with its length.
//!
//! ```text
//! head     HEAD_WORDS     magic, words of the whole plan, modules, where they are, probes, where they are, ranges, where they are
//! module   MODULE_WORDS   identity, distance of the blob, where its bytes are, how many, patches, where they are,
//!                         slots for program counters, where they are
//! patch    PATCH_WORDS    address, how many bytes, two words of old bytes, two words of new bytes
//! slot                    where in the blob (bytes): the module's bias is added there
//! probe    PROBE_WORDS    module, target kind, target, address (0: the return address), events before, how many, events after, how many
//! range    RANGE_WORDS    module, first byte, byte behind the last, access bits, event
//! event    EVENT_WORDS    what happens, text of the name, fields, conditions; then VALUE_WORDS a field, and CONDITION_WORDS a condition
//! ```
//!
//! Addresses are in the numbering of the module's file.

use crate::step::{HASH_START, hash};

/// Environment variable with the path of the plan.
pub const ENV_PLAN: &str = "RADDLE_PROBES";
pub const MAGIC: u64 = u64::from_le_bytes(*b"RDPROBE\x01");

pub const HEAD_WORDS: usize = 8;
pub const MODULE_WORDS: usize = 8;
pub const PATCH_WORDS: usize = 6;
pub const PROBE_WORDS: usize = 8;
pub const RANGE_WORDS: usize = 5;
pub const EVENT_WORDS: usize = 4;
pub const VALUE_WORDS: usize = 2;
pub const CONDITION_WORDS: usize = 2 * VALUE_WORDS + 1;

/// More modules than this have no probes of their own.
pub const MODULES_MAX: usize = 64;
/// Bytes that one patch replaces at most.
pub const PATCH_BYTES_MAX: usize = 16;

/// Where the blob begins: three slots for the runtime's trampolines.
pub const SLOT_BEFORE: usize = 0;
pub const SLOT_AROUND: usize = 8;
pub const SLOT_LINE: usize = 16;
pub const SLOT_BYTES: usize = 24;

/// Words of arguments on the stack that a call with an event behind it passes on.
pub const STACK_WORDS: usize = 32;

/// Kinds of a probe's target: where its thread goes on.
pub mod target {
    /// At an address of the module.
    pub const CODE: u64 = 0;
    /// Where a word of the module points to.
    pub const SLOT: u64 = 1;
    /// In the blob.
    pub const BLOB: u64 = 2;
    /// A line: the stub goes on by itself.
    pub const NONE: u64 = 3;
}

/// What a plan's event is.
pub mod what {
    /// An event of the user's own.
    pub const EVENT: u64 = 0;
    // What a model says that a function is. The object is the first field.
    pub const LOCK: u64 = 1;
    pub const TRYLOCK: u64 = 2;
    pub const RDLOCK: u64 = 3;
    pub const UNLOCK: u64 = 4;
    pub const RDUNLOCK: u64 = 5;
    pub const ACQUIRE: u64 = 6;
    pub const RELEASE: u64 = 7;
    /// The words of models, with what they are.
    pub const WORDS: [(&str, u64); 7] = [
        ("lock", LOCK),
        ("trylock", TRYLOCK),
        ("rdlock", RDLOCK),
        ("unlock", UNLOCK),
        ("rdunlock", RDUNLOCK),
        ("acquire", ACQUIRE),
        ("release", RELEASE),
    ];
}

/// Bits of a range.
pub mod access {
    pub const READS: u64 = 1;
    pub const WRITES: u64 = 2;
    /// The event comes after the access.
    pub const AFTER: u64 = 4;
}

/// First byte of a value's first word: where it comes from. The second word says which.
pub mod source {
    /// A number.
    pub const NUMBER: u8 = 0;
    /// A text.
    pub const WORD: u8 = 1;
    /// The n-th integer register of arguments.
    pub const REGISTER: u8 = 2;
    /// The n-th word of arguments on the stack.
    pub const STACK: u8 = 3;
    pub const RETURN: u8 = 4;
    pub const SIZE: u8 = 5;
    pub const ADDRESS: u8 = 6;
    pub const ACCESSED: u8 = 7;
    pub const THREAD: u8 = 8;
    pub const CALLER: u8 = 9;
    /// An address of a module of the plan ([`global`](super::global)).
    pub const GLOBAL: u8 = 10;
    /// The compiler did not leave it anywhere.
    pub const UNREADABLE: u8 = 11;
}

/// Bits of an address in [`global`].
const ADDRESS_BITS: u32 = 48;

/// An address of a module, as the plan counts modules, in one word.
pub const fn global(module: usize, address: u64) -> u64 {
    (module as u64) << ADDRESS_BITS | address & ((1 << ADDRESS_BITS) - 1)
}

/// Module and address.
pub const fn global_place(word: u64) -> (usize, u64) {
    ((word >> ADDRESS_BITS) as usize, word & ((1 << ADDRESS_BITS) - 1))
}

/// First word of a value: source, dereferences, bytes, signed.
pub const fn value_head(source: u8, dereferences: u8, bytes: u8, signed: bool) -> u64 {
    source as u64 | (dereferences as u64) << 8 | (bytes as u64) << 16 | (signed as u64) << 24
}

/// A text: where its bytes begin, and how many there are.
pub const fn text(at: usize, bytes: usize) -> u64 {
    at as u64 | (bytes as u64) << 40
}

pub const fn text_place(word: u64) -> (usize, usize) {
    ((word & ((1 << 40) - 1)) as usize, (word >> 40) as usize)
}

/// Relations of conditions, in the order of the aspect language.
pub const fn holds(relation: u64, left: i64, right: i64) -> bool {
    match relation {
        0 => left == right,
        1 => left != right,
        2 => left <= right,
        3 => left >= right,
        4 => left < right,
        _ => left > right,
    }
}

/// The low bytes of a value as the number that they stand for.
pub const fn widened(value: u64, bytes: u8, signed: bool) -> i64 {
    let unused = match bytes {
        1 => 56,
        2 => 48,
        4 => 32,
        _ => return value as i64,
    };
    match signed {
        true => (value << unused) as i64 >> unused,
        false => (value << unused >> unused) as i64,
    }
}

/// What tells a module from others: its build-id, or the name of its file where it has none.
pub fn identity(build_id: &[u8], path: &[u8]) -> u64 {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    hash(HASH_START, if build_id.is_empty() { name } else { build_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_widened_as_their_types_say() {
        assert_eq!(widened(0xffff_fff0, 4, true), -16);
        assert_eq!(widened(0xffff_fff0, 4, false), 0xffff_fff0);
        assert_eq!(widened(0x1_80, 1, true), -128);
        assert_eq!(widened(u64::MAX, 8, true), -1);
        assert_eq!(text_place(text(12345, 77)), (12345, 77));
        assert_eq!(global_place(global(63, 0x40_1234)), (63, 0x40_1234));
    }
}
