//! Shadow cells: the last accesses to every eight bytes of the program.
//!
//! A cell is four 32-bit entries:
//!
//! ```text
//! 31 atomic   30 read   29..16 epoch   15..8 thread slot   7..0 bytes accessed
//! ```
//!
//! Thread slot and epoch together name a *thread segment* (the run of accesses between two synchronisation operations
//! of one thread, see [`crate::segment`]). An access is redundant for race prediction when its own segment has already
//! made a covering access to the same bytes: RaceQuest's on-line reduction (§5.5.1), with the cells in the place of a
//! small cache, so that nothing is forgotten while a segment lasts unless more than four kinds of access meet in a
//! cell. Forgetting costs a repeated event, never a missing one.
//!
//! # Where the cells are
//!
//! A cell's address is computed from the low 45 bits of the program's address, so the shadow spans 64 TiB of address
//! space of which only the touched pages exist. The place is not fixed: a range that is free in all usual layouts is
//! asked for first, the kernel's choice is taken otherwise. Two addresses share a cell only if they are exactly a
//! multiple of 32 TiB apart; [`aliases`] tells whether this layout has such regions.

use crate::arena;
use crate::thread::Thread;
use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_and_si128, _mm_andnot_si128, _mm_castsi128_ps, _mm_cmpeq_epi32,
    _mm_load_si128, _mm_movemask_epi8, _mm_movemask_ps, _mm_or_si128, _mm_set1_epi32, _mm_setzero_si128,
    _mm_xor_si128,
};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

pub const WINDOW_BITS: u32 = 45;
/// Which bits of an address choose its cell.
pub const WINDOW_MASK: usize = ((1 << WINDOW_BITS) - 1) & !7;
pub const SHADOW_BYTES: usize = 1 << (WINDOW_BITS + 1);
/// The hook of a sixteen-byte access looks at the cell behind, which the last one has, too.
const PAST_BYTES: usize = 4096;

pub const READ: u32 = 1 << 30;
pub const ATOMIC: u32 = 1 << 31;
pub const SEGMENT_MASK: u32 = 0x3fff_ff00;
pub const SID_SHIFT: u32 = 8;
pub const EPOCH_SHIFT: u32 = 16;
pub const EPOCH_MAX: u32 = (1 << 14) - 1;

/// Between the usual places of programs (at or above 0x5555..., or below 4 GiB) and of libraries (below 0x7fff...).
const PREFERRED: usize = 0x1000_0000_0000;

pub type Cell = [AtomicU32; 4];

static BASE: AtomicUsize = AtomicUsize::new(0);

pub fn base() -> usize {
    BASE.load(Ordering::Relaxed)
}

/// Reserves the shadow. False when there is not enough address space.
pub fn reserve() -> bool {
    let Some(start) = arena::map_sparse(Some(PREFERRED), SHADOW_BYTES + PAST_BYTES) else { return false };
    let base = start as usize;
    // Small pages and no core dump: the shadow is sparse. Failure of either changes nothing that matters.
    // SAFETY: the range is ours.
    unsafe {
        crate::real::syscall(
            libc::SYS_madvise,
            [base, SHADOW_BYTES, libc::MADV_NOHUGEPAGE as usize, 0, 0, 0],
        );
        crate::real::syscall(libc::SYS_madvise, [base, SHADOW_BYTES, libc::MADV_DONTDUMP as usize, 0, 0, 0]);
    }
    BASE.store(base, Ordering::Release);
    true
}

/// Do two addresses of different regions (nearer than `margin` modulo the window) share cells?
pub fn aliases(a: usize, b: usize, margin: usize) -> bool {
    if a.abs_diff(b) <= margin {
        return false;
    }
    let window = 1 << WINDOW_BITS;
    let distance = a.abs_diff(b) % window;
    distance.min(window - distance) <= margin
}

#[inline]
pub fn cell(base: usize, address: usize) -> &'static Cell {
    // SAFETY: every masked address maps into the reserved range; cells are 16-byte aligned.
    unsafe { &*((base + (address & WINDOW_MASK) * 2) as *const Cell) }
}

/// Forgets all accesses.
pub fn wipe() {
    let base = base();
    if base != 0 {
        arena::empty(base, SHADOW_BYTES);
    }
}

/// Above this size, pages of cells are given back instead of being written.
const CLEAR_BY_PAGES_BYTES: usize = 1 << 16;

/// Forgets the accesses to a piece of memory: it has become a new object.
pub fn clear(address: usize, bytes: usize) {
    let base = base();
    if base == 0 || bytes == 0 {
        return;
    }
    let start = base + (address & WINDOW_MASK) * 2;
    let end = base + ((address + bytes + 7) & WINDOW_MASK) * 2;
    if end <= start {
        return;
    }
    if end - start < CLEAR_BY_PAGES_BYTES {
        // SAFETY: the range lies in the shadow.
        unsafe { crate::arch::fill(start as *mut u8, 0, end - start) };
        return;
    }
    let first_page = start.next_multiple_of(4096);
    let last_page = end & !4095;
    // SAFETY: all three ranges lie in the shadow.
    unsafe {
        crate::arch::fill(start as *mut u8, 0, first_page - start);
        arena::empty(first_page, last_page - first_page);
        crate::arch::fill(last_page as *mut u8, 0, end - last_page);
    }
}

/// Which of a cell's four entries, as bits, stand in which relation to a new access.
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
    // SAFETY: cells are 16 bytes, aligned and mapped. Other threads may store to them meanwhile, one aligned word at a
    // time, which the machine's load tolerates.
    unsafe {
        let old = _mm_load_si128(core::ptr::from_ref(cell).cast());
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
        let other = _mm_and_si128(differs, _mm_set1_epi32(0xff << SID_SHIFT));
        Lanes {
            redundant: lanes(not_redundant),
            same: lanes(segment),
            own: lanes(other),
            zero: lanes(old),
            covered: lanes(not_covered),
        }
    }
}

/// How many of the cells from here on, at most `cells`, already hold a plain access of the same segment to all bytes that
/// is not weaker than the new one.
#[inline(always)]
pub fn redundant_cells(base: usize, address: usize, cells: usize, entry: u32, read: u32) -> usize {
    let first = core::ptr::from_ref(cell(base, address)).cast::<__m128i>();
    let cells = cells.min((WINDOW_MASK + 8 - (address & WINDOW_MASK)) / 8);
    // SAFETY: as in `compare`; the window does not end before the last of the cells.
    unsafe {
        let (new, ignored) = (_mm_set1_epi32(entry as i32), _mm_set1_epi32(read as i32));
        (0..cells)
            .position(|at| {
                let old = _mm_or_si128(_mm_load_si128(first.add(at)), ignored);
                _mm_movemask_epi8(_mm_cmpeq_epi32(old, new)) == 0
            })
            .unwrap_or(cells)
    }
}

/// As [`compare`], for a plain access to all bytes of the cell. It covers everything if it writes, and reads if it reads.
#[inline(always)]
pub fn compare_whole(cell: &Cell, entry: u32, read: u32) -> Lanes {
    // SAFETY: as in `compare`.
    unsafe {
        let old = _mm_load_si128(core::ptr::from_ref(cell).cast());
        let new = _mm_set1_epi32(entry as i32);
        let lanes = |mask: __m128i| _mm_movemask_ps(_mm_castsi128_ps(mask)) as u32;
        let none = _mm_setzero_si128();
        let same = lanes(_mm_cmpeq_epi32(_mm_or_si128(old, _mm_set1_epi32(read as i32)), new));
        let other = _mm_and_si128(_mm_xor_si128(old, new), _mm_set1_epi32(0xff << SID_SHIFT));
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

/// Notes an access in its cell. Returns false when the cell already held a covering access of the same segment.
///
/// `mask` are the bytes of the cell, `read` is [`READ`] or 0.
#[inline]
pub fn note(thread: &mut Thread, address: usize, mask: u32, read: u32) -> bool {
    if thread.sid == 0 {
        return true;
    }
    let cell = cell(thread.shadow_base, address);
    let entry = thread.segment | mask | read;
    // A write covers a read: whatever conflicts with the read conflicts with the write.
    put(thread, cell, entry, &compare(cell, entry))
}

/// The same for all bytes of a cell.
#[inline]
pub fn note_whole(thread: &mut Thread, address: usize, read: u32) -> bool {
    if thread.sid == 0 {
        return true;
    }
    let cell = cell(thread.shadow_base, address);
    let entry = thread.segment | 0xff | read;
    put(thread, cell, entry, &compare_whole(cell, entry, read))
}

#[inline(always)]
fn put(thread: &mut Thread, cell: &Cell, entry: u32, lanes: &Lanes) -> bool {
    let &Lanes { redundant, same, own, zero, covered } = lanes;
    if redundant != 0 {
        return false;
    }
    // What the same segment has done less of can go, and so can older segments of the same thread: nothing will ask for
    // them again.
    let place = match (same & covered, own & !same | zero) {
        (0, 0) => (thread.next_random() >> 8) as usize & 3,
        (0, free) => free.trailing_zeros() as usize,
        (less, _) => less.trailing_zeros() as usize,
    };
    cell[place].store(entry, Ordering::Relaxed);
    true
}
