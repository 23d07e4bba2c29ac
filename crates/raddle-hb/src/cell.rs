//! Shadow cells: the last accesses to eight bytes of the program, compared with a new one all at once.
//!
//! A cell is four 32-bit entries:
//!
//! ```text
//! 31 atomic   30 read   29..16 epoch   15..8 thread slot   7..0 bytes accessed
//! ```
//!
//! Thread slot and epoch together name a *thread segment* ([`crate::segment`]). An access is redundant for race prediction when
//! its own segment has already made a covering access to the same bytes: RaceQuest's on-line reduction (§5.5.1), with the
//! cells in the place of a small cache, so that nothing is forgotten while a segment lasts unless more than four kinds of
//! access meet in a cell. Forgetting costs a repeated event, never a missing one.
//!
//! Entries are written one at a time without a lock while others read all four. That is enough: every entry is a whole
//! access by itself, and none is believed more than it says.

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_and_si128, _mm_andnot_si128, _mm_castsi128_ps, _mm_cmpeq_epi32,
    _mm_movemask_epi8, _mm_movemask_ps, _mm_or_si128, _mm_set1_epi32, _mm_setzero_si128, _mm_xor_si128,
};
use core::sync::atomic::{AtomicU32, Ordering};

pub const READ: u32 = 1 << 30;
pub const ATOMIC: u32 = 1 << 31;
pub const SEGMENT_MASK: u32 = 0x3fff_ff00;
pub const SLOT_SHIFT: u32 = 8;
pub const EPOCH_SHIFT: u32 = 16;
pub const EPOCH_MAX: u32 = (1 << 14) - 1;

pub const ENTRIES: usize = 4;

/// A slot that no thread has and no clock knows: an entry with it races with everything. It stands in the cells of released memory.
pub const RELEASED: u32 = 255;

#[repr(align(16))]
pub struct Cell(pub [AtomicU32; ENTRIES]);

impl Cell {
    pub const fn new() -> Cell {
        Cell([const { AtomicU32::new(0) }; ENTRIES])
    }

    #[inline(always)]
    pub fn entry(&self, place: usize) -> u32 {
        self.0[place].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn set(&self, place: usize, entry: u32) {
        self.0[place].store(entry, Ordering::Relaxed);
    }

    /// All entries. Other threads may store to them meanwhile, one aligned word at a time, which the machine's vector load
    /// tolerates; Miri, which goes by the language, is given four loads.
    #[inline(always)]
    fn load(&self) -> __m128i {
        #[cfg(not(miri))]
        // SAFETY: a cell is 16 bytes and aligned.
        unsafe {
            core::arch::x86_64::_mm_load_si128(core::ptr::from_ref(self).cast())
        }
        #[cfg(miri)]
        // SAFETY: every x86_64 has the instruction.
        unsafe {
            let [a, b, c, d] = [0, 1, 2, 3].map(|place| self.entry(place) as i32);
            core::arch::x86_64::_mm_set_epi32(d, c, b, a)
        }
    }
}

impl Default for Cell {
    fn default() -> Self {
        Cell::new()
    }
}

#[inline(always)]
pub fn epoch_of(entry: u32) -> u32 {
    entry >> EPOCH_SHIFT & EPOCH_MAX
}

#[inline(always)]
pub fn slot_of(entry: u32) -> u32 {
    entry >> SLOT_SHIFT & 0xff
}

/// Which of a cell's four entries, as bits, stand in which relation to a new access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Made by the same segment, and covers the new access.
    pub redundant: u32,
    /// Made by the same segment.
    pub same: u32,
    /// Made by the same thread slot, whenever.
    pub own: u32,
    /// No access at all.
    pub zero: u32,
    /// Covered by the new access.
    pub covered: u32,
}

/// Compares a new access with all four entries of a cell at once. An access covers another if it touches all of its
/// bytes and is not weaker: `READ` and `ATOMIC` weaken an access.
#[inline(always)]
pub fn compare(cell: &Cell, entry: u32) -> Lanes {
    const WEAKER: i32 = (READ | ATOMIC) as i32;
    let old = cell.load();
    // SAFETY: every x86_64 has these instructions.
    unsafe {
        let new = _mm_set1_epi32(entry as i32);
        let none = _mm_setzero_si128();
        let (bytes, weaker) = (_mm_set1_epi32(0xff), _mm_set1_epi32(WEAKER));
        let lanes = |wrong: __m128i| _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(wrong, none))) as u32;
        let (only_new, only_old) = (_mm_andnot_si128(old, new), _mm_andnot_si128(new, old));
        let differs = _mm_xor_si128(old, new);
        // Zero in a lane: the old access is of the same segment and covers the new one.
        let segment = _mm_and_si128(differs, _mm_set1_epi32(SEGMENT_MASK as i32));
        let not_redundant = _mm_or_si128(
            segment,
            _mm_or_si128(_mm_and_si128(only_new, bytes), _mm_and_si128(only_old, weaker)),
        );
        let not_covered = _mm_or_si128(_mm_and_si128(only_old, bytes), _mm_and_si128(only_new, weaker));
        let other = _mm_and_si128(differs, _mm_set1_epi32(0xff << SLOT_SHIFT));
        Lanes {
            redundant: lanes(not_redundant),
            same: lanes(segment),
            own: lanes(other),
            zero: lanes(old),
            covered: lanes(not_covered),
        }
    }
}

/// As [`compare`], for a plain access to all bytes of the cell. It covers everything if it writes, and reads if it reads.
/// An entry of the same segment that is *not* redundant may go unnoticed in `same`: a write finds no reads of its own.
#[inline(always)]
pub fn compare_whole(cell: &Cell, entry: u32, read: u32) -> Lanes {
    let old = cell.load();
    // SAFETY: every x86_64 has these instructions.
    unsafe {
        let new = _mm_set1_epi32(entry as i32);
        let lanes = |mask: __m128i| _mm_movemask_ps(_mm_castsi128_ps(mask)) as u32;
        let none = _mm_setzero_si128();
        let same = lanes(_mm_cmpeq_epi32(_mm_or_si128(old, _mm_set1_epi32(read as i32)), new));
        let other = _mm_and_si128(_mm_xor_si128(old, new), _mm_set1_epi32(0xff << SLOT_SHIFT));
        // The sign bit of a lane is what `lanes` takes: one bit to the left of `READ`.
        let reads = _mm_add_epi32(old, old);
        Lanes {
            redundant: same,
            same,
            own: lanes(_mm_cmpeq_epi32(other, none)),
            zero: lanes(_mm_cmpeq_epi32(old, none)),
            covered: if read == 0 { 0xf } else { lanes(reads) },
        }
    }
}

/// How many of these cells, from the first on, already hold a plain access of the same segment to all bytes that is not
/// weaker than the new one.
#[inline(always)]
pub fn redundant_cells(cells: &[Cell], entry: u32, read: u32) -> usize {
    // SAFETY: every x86_64 has these instructions.
    unsafe {
        let (new, ignored) = (_mm_set1_epi32(entry as i32), _mm_set1_epi32(read as i32));
        cells
            .iter()
            .position(|cell| {
                let old = _mm_or_si128(cell.load(), ignored);
                _mm_movemask_epi8(_mm_cmpeq_epi32(old, new)) == 0
            })
            .unwrap_or(cells.len())
    }
}

/// Where an access goes when only redundancy matters; none: the cell already holds a covering access of the same segment.
/// What the same segment has done less of can go, and so can older segments of the same thread: nothing will ask for
/// them again. `random` chooses among others.
#[inline(always)]
pub fn place_of_news(lanes: &Lanes, random: impl FnOnce() -> u32) -> Option<usize> {
    let &Lanes { redundant, same, own, zero, covered } = lanes;
    if redundant != 0 {
        return None;
    }
    Some(match (same & covered, own & !same | zero) {
        (0, 0) => (random() >> 8) as usize & 3,
        (0, free) => free.trailing_zeros() as usize,
        (less, _) => less.trailing_zeros() as usize,
    })
}
