//! Shadow cells under online detection: each access is compared with the last ones to the same eight bytes.
//!
//! Two accesses race if they touch a common byte, one of them writes, not both are atomic, and neither happens before
//! the other. The older one stands in the cell as slot and epoch; it happens before the new one exactly if the new
//! one's thread knows that epoch (FastTrack, Flanagan and Freund 2009). Cells hold four accesses, of which any may be
//! reads or writes (ThreadSanitizer, Serebryany and Iskhodzhanov 2009).
//!
//! # What may be overwritten
//!
//! An old access can be dropped without losing a race if it happens before the new one and the new one *covers* it: the
//! same bytes or more, writes if the old one did, and is not atomic if the old one was not. Whatever races with the old
//! one later then races with the new one as well. Only when no entry is free or covered, one is dropped by chance.

use super::state::State;
use super::{history, report, state};
use crate::shadow::{self, ATOMIC, EPOCH_SHIFT, READ, SID_SHIFT};
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use raddle_wire::record::access::{SIZE_MASK, WRITE};

/// What looking at a cell said.
struct Look {
    /// Where the new entry goes; 4: nowhere, the cell has a covering access of the same segment.
    place: usize,
    /// The whole cell was empty.
    fresh: bool,
    /// An access that races with the new one, or 0.
    race: u32,
}

const REDUNDANT: usize = 4;

#[inline(always)]
fn epoch_of(entry: u32) -> u32 {
    entry >> EPOCH_SHIFT & shadow::EPOCH_MAX
}

#[inline(always)]
fn slot_of(entry: u32) -> u32 {
    entry >> SID_SHIFT & 0xff
}

/// Compares a new access with all four entries of its cell.
#[inline(always)]
fn look(thread: &mut Thread, state: &State, cell: &shadow::Cell, entry: u32) -> Look {
    let shadow::Lanes { redundant, own, zero, covered, .. } = shadow::compare(cell, entry);
    if redundant != 0 {
        return Look { place: REDUNDANT, fresh: false, race: 0 };
    }
    decide(thread, state, cell, entry, own, zero, covered)
}

/// The same for a plain access to the whole cell, about which less has to be asked.
#[inline(always)]
fn look_at_whole(thread: &mut Thread, state: &State, cell: &shadow::Cell, entry: u32, read: u32) -> Look {
    let shadow::Lanes { redundant, own, zero, covered, .. } = shadow::compare_whole(cell, entry, read);
    if redundant != 0 {
        return Look { place: REDUNDANT, fresh: false, race: 0 };
    }
    decide(thread, state, cell, entry, own, zero, covered)
}

/// Looks for a race with what others have left in the cell, and for the place of the new access.
#[inline(always)]
fn decide(
    thread: &mut Thread,
    state: &State,
    cell: &shadow::Cell,
    entry: u32,
    own: u32,
    zero: u32,
    covered: u32,
) -> Look {
    let mut race = 0;
    let mut droppable = own;
    let mut others = !(own | zero) & 0xf;
    while others != 0 {
        let ix = others.trailing_zeros() as usize;
        others &= others - 1;
        let old = cell[ix].load(Ordering::Relaxed);
        if u32::from(state.clock.times[slot_of(old) as usize]) >= epoch_of(old) {
            droppable |= 1 << ix;
        } else if old & entry & 0xff != 0 && old & entry & READ == 0 && old & entry & ATOMIC == 0 {
            race = old;
        }
    }
    let (place, fresh) = match (covered & droppable & !zero, zero) {
        (0, 0) => ((thread.next_random() >> 8) as usize & 3, false),
        (0, free) => (free.trailing_zeros() as usize, zero == 0xf),
        (choices, _) => (choices.trailing_zeros() as usize, false),
    };
    Look { place, fresh, race }
}

/// Puts the new access where looking said.
///
/// Between the look and the store another thread may come by. A place in an empty cell is therefore taken in one step: the
/// first store to a page of cells waits for the kernel to find one, which takes as long as a short thread lives, and would
/// then wipe out what that thread has left there. Once something stands in a cell, its page is there.
#[inline(always)]
fn put(thread: &mut Thread, state: &State, cell: &shadow::Cell, entry: u32, look: &mut Look) {
    if !look.fresh {
        cell[look.place].store(entry, Ordering::Relaxed);
    } else if cell[look.place].compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        put_again(thread, state, cell, entry, look);
    }
}

#[cold]
#[inline(never)]
fn put_again(thread: &mut Thread, state: &State, cell: &shadow::Cell, entry: u32, first: &mut Look) {
    loop {
        let next = look(thread, state, cell, entry);
        if first.race == 0 {
            first.race = next.race;
        }
        let done = match next.place {
            REDUNDANT => true,
            place if next.fresh => {
                cell[place].compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            }
            place => {
                cell[place].store(entry, Ordering::Relaxed);
                true
            }
        };
        if done {
            return;
        }
    }
}

/// A plain access of `1 << (aux & 7)` bytes, when nobody but the detector wants it.
#[inline(always)]
pub fn plain(thread: &mut Thread, pc: u64, aux: u8, address: usize) {
    let bytes = 1usize << (aux & SIZE_MASK);
    let read = if aux & WRITE == 0 { READ } else { 0 };
    if (address & 7) + bytes > 8 {
        range(thread, pc, aux, address, bytes, true);
        return;
    }
    let mask = ((1u32 << bytes) - 1) << (address & 7);
    let cell = shadow::cell(thread.shadow_base, address);
    let entry = thread.segment | mask | read;
    match quick_place(&shadow::compare(cell, entry)) {
        Some(REDUNDANT) => {}
        Some(place) if thread.sid != 0 => {
            // The history first: who finds the entry in the cell must find it there.
            history::access(thread, pc, aux, address, false);
            cell[place].store(entry, Ordering::Relaxed);
        }
        _ => plain_with_others(thread, pc, aux, address, mask, read),
    }
}

#[inline(never)]
fn plain_with_others(thread: &mut Thread, pc: u64, aux: u8, address: usize, mask: u32, read: u32) {
    access(thread, pc, aux, address, mask, read);
}

/// Where an access goes if its cell has only accesses of the same thread, and that needs no further thought.
#[inline(always)]
fn quick_place(lanes: &shadow::Lanes) -> Option<usize> {
    let &shadow::Lanes { redundant, own, zero, covered, .. } = lanes;
    let choices = covered & own;
    match () {
        () if redundant != 0 => Some(REDUNDANT),
        () if own | zero != 0xf || own == 0 => None,
        () if choices != 0 => Some(choices.trailing_zeros() as usize),
        () if zero != 0 => Some(zero.trailing_zeros() as usize),
        () => None,
    }
}

/// An access to two whole cells, which is what vectorised loops do. Most often nobody else has been there.
#[inline(always)]
pub fn whole_pair(thread: &mut Thread, pc: u64, aux: u8, address: usize) {
    let read = if aux & WRITE == 0 { READ } else { 0 };
    let entry = thread.segment | 0xff | read;
    let first = shadow::cell(thread.shadow_base, address);
    let second = shadow::cell(thread.shadow_base, address + 8);
    let places = (
        quick_place(&shadow::compare_whole(first, entry, read)),
        quick_place(&shadow::compare_whole(second, entry, read)),
    );
    let (Some(first_place), Some(second_place), true) = (places.0, places.1, thread.sid != 0) else {
        return whole_pair_with_others(thread, pc, aux, address);
    };
    if first_place == REDUNDANT && second_place == REDUNDANT {
        return;
    }
    // The history first: who finds the entry in a cell must find it there.
    history::access(thread, pc, aux, address, false);
    if first_place != REDUNDANT {
        first[first_place].store(entry, Ordering::Relaxed);
    }
    if second_place != REDUNDANT {
        second[second_place].store(entry, Ordering::Relaxed);
    }
}

#[inline(never)]
fn whole_pair_with_others(thread: &mut Thread, pc: u64, aux: u8, address: usize) {
    let Some(state) = state::of(thread) else { return };
    let read = if aux & WRITE == 0 { READ } else { 0 };
    let entry = thread.segment | 0xff | read;
    let first_cell = shadow::cell(thread.shadow_base, address);
    let second_cell = shadow::cell(thread.shadow_base, address + 8);
    let mut first = look_at_whole(thread, state, first_cell, entry, read);
    let mut second = look_at_whole(thread, state, second_cell, entry, read);
    if thread.sid != 0 && (first.place != REDUNDANT || second.place != REDUNDANT) {
        // The history first: who finds the entry in a cell must find it there.
        history::access(thread, pc, aux, address, false);
        if first.place != REDUNDANT {
            put(thread, state, first_cell, entry, &mut first);
        }
        if second.place != REDUNDANT {
            put(thread, state, second_cell, entry, &mut second);
        }
    }
    if first.race != 0 {
        race(thread, pc, aux, address, 16, read, first.race, address);
    } else if second.race != 0 {
        race(thread, pc, aux, address, 16, read, second.race, address + 8);
    }
}

/// An access within one cell. True if it was news.
#[inline(always)]
pub fn access(thread: &mut Thread, pc: u64, aux: u8, address: usize, mask: u32, flags: u32) -> bool {
    let Some(state) = state::of(thread) else { return true };
    let cell = shadow::cell(thread.shadow_base, address);
    let entry = thread.segment | mask | flags;
    let mut look = look(thread, state, cell, entry);
    if look.place == REDUNDANT {
        return false;
    }
    if thread.sid != 0 {
        // The history first: who finds the entry in the cell must find it there.
        history::access(thread, pc, aux, address, flags & ATOMIC != 0);
        put(thread, state, cell, entry, &mut look);
    }
    if look.race != 0 {
        race(thread, pc, aux, address, 1 << (aux & SIZE_MASK), flags, look.race, address & !7);
    }
    true
}

#[cold]
#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn race(
    thread: &mut Thread,
    pc: u64,
    aux: u8,
    address: usize,
    bytes: usize,
    flags: u32,
    old: u32,
    cell: usize,
) {
    let new = report::Access { pc, aux, address, bytes, atomic: flags & ATOMIC != 0, free: false };
    report::race(thread, &new, old, cell);
}

/// An access of any number of bytes. True if any of it was news.
pub fn range(thread: &mut Thread, pc: u64, aux: u8, address: usize, bytes: usize, sized: bool) -> bool {
    let Some(state) = state::of(thread) else { return true };
    let read = if aux & WRITE == 0 { READ } else { 0 };
    let (mut news, mut first_race) = (false, (0, 0));
    let end = address + bytes;
    let mut at = address;
    while at < end {
        let here = (8 - (at & 7)).min(end - at);
        let mask = (((1u32 << here) - 1) << (at & 7)) & 0xff;
        let cell = shadow::cell(thread.shadow_base, at);
        let entry = thread.segment | mask | read;
        let mut look = if here == 8 {
            let known = shadow::redundant_cells(thread.shadow_base, at, (end - at) / 8, entry, read);
            if known > 0 {
                at += 8 * known;
                continue;
            }
            look_at_whole(thread, state, cell, entry, read)
        } else {
            look(thread, state, cell, entry)
        };
        if look.place != REDUNDANT {
            if !news && thread.sid != 0 {
                if sized {
                    history::access(thread, pc, aux, address, false);
                } else {
                    history::range(thread, pc, aux & !SIZE_MASK, address, bytes);
                }
            }
            news = true;
            if thread.sid != 0 {
                put(thread, state, cell, entry, &mut look);
            }
            if look.race != 0 && first_race.0 == 0 {
                first_race = (look.race, at & !7);
            }
        }
        at += here;
    }
    if first_race.0 != 0 {
        race(thread, pc, aux, address, bytes, read, first_race.0, first_race.1);
    }
    news
}

/// Of a piece of memory that is released, so much is marked: looking at more would cost more than it finds.
const FREE_BYTES_MAX: usize = 4096;

/// Memory is released: a write to all of it, after which only the release is remembered.
pub fn free(thread: &mut Thread, pc: u64, address: usize, bytes: usize) {
    let Some(state) = state::of(thread) else { return };
    let bytes = bytes.min(FREE_BYTES_MAX);
    let end = address + bytes;
    let mut first_race = (0, 0);
    if thread.sid != 0 {
        history::free(thread, pc, address, bytes);
    }
    let mut at = address;
    while at < end {
        let here = (8 - (at & 7)).min(end - at);
        let mask = (((1u32 << here) - 1) << (at & 7)) & 0xff;
        let cell = shadow::cell(thread.shadow_base, at);
        let entry = thread.segment | mask;
        let look = look(thread, state, cell, entry);
        if look.race != 0 && first_race.0 == 0 {
            first_race = (look.race, at & !7);
        }
        let mark = if thread.sid != 0 { entry } else { 0 };
        cell[0].store(mark, Ordering::Relaxed);
        cell[1].store(0, Ordering::Relaxed);
        cell[2].store(0, Ordering::Relaxed);
        cell[3].store(0, Ordering::Relaxed);
        at += here;
    }
    if first_race.0 != 0 {
        let new = report::Access { pc, aux: WRITE, address, bytes, atomic: false, free: true };
        report::race(thread, &new, first_race.0, first_race.1);
    }
}
