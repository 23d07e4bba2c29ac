//! Where the shadow cells are ([`raddle_hb::cell`] says what they hold).
//!
//! A cell's address is computed from the low 45 bits of the program's address, so the shadow spans 64 TiB of address
//! space of which only the touched pages exist. The place is not fixed: a range that is free in all usual layouts is
//! asked for first, the kernel's choice is taken otherwise. Two addresses share a cell only if they are exactly a
//! multiple of 32 TiB apart; [`aliases`] tells whether this layout has such regions.

use crate::arena;
use crate::thread::Thread;
use core::sync::atomic::{AtomicUsize, Ordering};
pub use raddle_hb::cell::{ATOMIC, Cell, EPOCH_MAX, EPOCH_SHIFT, READ, SLOT_SHIFT, compare, compare_whole};

pub const WINDOW_BITS: u32 = 45;
/// Which bits of an address choose its cell.
pub const WINDOW_MASK: usize = ((1 << WINDOW_BITS) - 1) & !7;
pub const SHADOW_BYTES: usize = 1 << (WINDOW_BITS + 1);
/// The hook of a sixteen-byte access looks at the cell behind, which the last one has, too.
const PAST_BYTES: usize = 4096;

/// Between the usual places of programs (at or above 0x5555..., or below 4 GiB) and of libraries (below 0x7fff...).
const PREFERRED: usize = 0x1000_0000_0000;

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

/// How many of the cells from here on, at most `cells`, already hold a plain access of the same segment to all bytes that
/// is not weaker than the new one.
#[inline(always)]
pub fn redundant_cells(base: usize, address: usize, cells: usize, entry: u32, read: u32) -> usize {
    let cells = cells.min((WINDOW_MASK + 8 - (address & WINDOW_MASK)) / 8);
    // SAFETY: the window does not end before the last of the cells.
    let cells = unsafe { core::slice::from_raw_parts(cell(base, address), cells) };
    raddle_hb::cell::redundant_cells(cells, entry, read)
}

/// Notes an access in its cell. Returns false when the cell already held a covering access of the same segment.
///
/// `mask` are the bytes of the cell, `read` is [`READ`] or 0.
#[inline]
pub fn note(thread: &Thread, address: usize, mask: u32, read: u32) -> bool {
    if !thread.access.has_slot() {
        return true;
    }
    let cell = cell(thread.access.shadow_base.get(), address);
    let entry = thread.access.segment.get() | mask | read;
    // A write covers a read: whatever conflicts with the read conflicts with the write.
    put(thread, cell, entry, &compare(cell, entry))
}

/// The same for all bytes of a cell.
#[inline]
pub fn note_whole(thread: &Thread, address: usize, read: u32) -> bool {
    if !thread.access.has_slot() {
        return true;
    }
    let cell = cell(thread.access.shadow_base.get(), address);
    let entry = thread.access.segment.get() | 0xff | read;
    put(thread, cell, entry, &compare_whole(cell, entry, read))
}

#[inline(always)]
fn put(thread: &Thread, cell: &Cell, entry: u32, lanes: &raddle_hb::Lanes) -> bool {
    match raddle_hb::cell::place_of_news(lanes, || thread.access.next_random()) {
        Some(place) => {
            cell.set(place, entry);
            true
        }
        None => false,
    }
}
