//! Races: each access is compared with the last ones to the same eight bytes.
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

use crate::cell::{self, ATOMIC, Cell, EPOCH_SHIFT, Lanes, READ, RELEASED, SLOT_SHIFT, epoch_of, slot_of};
use crate::clock::Clock;
use core::sync::atomic::Ordering;

/// What looking at a cell said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Where the new entry goes; [`REDUNDANT`]: nowhere, the cell has a covering access of the same segment.
    pub place: usize,
    /// The whole cell was empty.
    pub fresh: bool,
    /// An access that races with the new one, or 0.
    pub race: u32,
}

pub const REDUNDANT: usize = 4;

const NOTHING_NEW: Look = Look { place: REDUNDANT, fresh: false, race: 0 };

/// Compares a new access with all four entries of its cell.
#[inline(always)]
pub fn look(clock: &Clock, cell: &Cell, entry: u32, random: impl FnOnce() -> u32) -> Look {
    let lanes = cell::compare(cell, entry);
    if lanes.redundant != 0 { NOTHING_NEW } else { decide(clock, cell, entry, &lanes, random) }
}

/// The same for a plain access to the whole cell, about which less has to be asked.
#[inline(always)]
pub fn look_at_whole(
    clock: &Clock,
    cell: &Cell,
    entry: u32,
    read: u32,
    random: impl FnOnce() -> u32,
) -> Look {
    let lanes = cell::compare_whole(cell, entry, read);
    if lanes.redundant != 0 { NOTHING_NEW } else { decide(clock, cell, entry, &lanes, random) }
}

/// Looks for a race with what others have left in the cell, and for the place of the new access.
#[inline(always)]
fn decide(clock: &Clock, cell: &Cell, entry: u32, lanes: &Lanes, random: impl FnOnce() -> u32) -> Look {
    let &Lanes { own, zero, covered, .. } = lanes;
    let mut race = 0;
    let mut droppable = own;
    let mut others = !(own | zero) & 0xf;
    while others != 0 {
        let ix = others.trailing_zeros() as usize;
        others &= others - 1;
        let old = cell.entry(ix);
        if u32::from(clock.times[slot_of(old) as usize]) >= epoch_of(old) {
            droppable |= 1 << ix;
        } else if old & entry & 0xff != 0 && old & entry & READ == 0 && old & entry & ATOMIC == 0 {
            // That the memory is released is said only if nothing more can be.
            if race == 0 || slot_of(old) != RELEASED {
                race = old;
            }
        }
    }
    let (place, fresh) = match (covered & droppable & !zero, zero) {
        (0, 0) => ((random() >> 8) as usize & 3, false),
        (0, free) => (free.trailing_zeros() as usize, zero == 0xf),
        (choices, _) => (choices.trailing_zeros() as usize, false),
    };
    Look { place, fresh, race }
}

/// Where an access goes if its cell has only accesses of the same thread, and that needs no further thought.
#[inline(always)]
pub fn quick_place(lanes: &Lanes) -> Option<usize> {
    let &Lanes { redundant, own, zero, covered, .. } = lanes;
    let choices = covered & own;
    match () {
        () if redundant != 0 => Some(REDUNDANT),
        () if own | zero != 0xf || own == 0 => None,
        () if choices != 0 => Some(choices.trailing_zeros() as usize),
        () if zero != 0 => Some(zero.trailing_zeros() as usize),
        () => None,
    }
}

/// Puts the new access where looking said.
///
/// Between the look and the store another thread may come by. A place in an empty cell is therefore taken in one step: the
/// first store to a page of cells waits for the kernel to find one, which takes as long as a short thread lives, and would
/// then wipe out what that thread has left there. Once something stands in a cell, its page is there.
#[inline(always)]
pub fn put(clock: &Clock, cell: &Cell, entry: u32, look: &mut Look, random: impl FnMut() -> u32) {
    if !look.fresh {
        cell.set(look.place, entry);
    } else if !claim(cell, look.place, entry) {
        put_again(clock, cell, entry, look, random);
    }
}

#[inline(always)]
fn claim(cell: &Cell, place: usize, entry: u32) -> bool {
    cell.0[place].compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

#[cold]
#[inline(never)]
fn put_again(clock: &Clock, cell: &Cell, entry: u32, first: &mut Look, mut random: impl FnMut() -> u32) {
    loop {
        let next = look(clock, cell, entry, &mut random);
        if first.race == 0 {
            first.race = next.race;
        }
        let done = match next.place {
            REDUNDANT => true,
            place if next.fresh => claim(cell, place, entry),
            place => {
                cell.set(place, entry);
                true
            }
        };
        if done {
            return;
        }
    }
}

/// Memory begins a life or ends one: only this access is remembered, or nothing.
pub fn replace_all(cell: &Cell, entry: u32) {
    cell.set(0, entry);
    for place in 1..cell::ENTRIES {
        cell.set(place, 0);
    }
}

/// Memory is released by this access, and whatever touches it before it is allocated again is an error, ordered or not.
pub fn release_all(cell: &Cell, entry: u32) {
    replace_all(cell, entry);
    cell.set(1, entry & 0xff | RELEASED << SLOT_SHIFT | 1 << EPOCH_SHIFT);
}
