//! Accesses under online detection: each is compared with the last ones to the same eight bytes ([`raddle_hb::race`]), put
//! into the thread's history, and told if it races.

use super::{history, marks, report, state};
use crate::shadow::{self, ATOMIC, READ};
use crate::thread::Thread;
use raddle_hb::race::{REDUNDANT, look, look_at_whole, put, quick_place, release_all, replace_all};
use raddle_wire::record::access::{SIZE_MASK, WRITE};

/// A plain access of `1 << (aux & 7)` bytes, when nobody but the detector wants it.
#[inline(always)]
pub fn plain(thread: &Thread, pc: u64, aux: u8, address: usize) {
    let bytes = 1usize << (aux & SIZE_MASK);
    let read = if aux & WRITE == 0 { READ } else { 0 };
    if (address & 7) + bytes > 8 {
        range(thread, pc, aux, address, bytes, true);
        return;
    }
    let mask = ((1u32 << bytes) - 1) << (address & 7);
    let cell = shadow::cell(thread.access.shadow_base.get(), address);
    let entry = thread.access.segment.get() | mask | read;
    match quick_place(&shadow::compare(cell, entry)) {
        Some(REDUNDANT) => {}
        Some(place) if thread.access.has_slot() => {
            // The history first: who finds the entry in the cell must find it there.
            history::access(thread, pc, aux, address, false);
            cell.set(place, entry);
        }
        _ => plain_with_others(thread, pc, aux, address, mask, read),
    }
}

#[inline(never)]
fn plain_with_others(thread: &Thread, pc: u64, aux: u8, address: usize, mask: u32, read: u32) {
    access(thread, pc, aux, address, mask, read);
}

/// An access to two whole cells, which is what vectorised loops do. Most often nobody else has been there.
#[inline(always)]
pub fn whole_pair(thread: &Thread, pc: u64, aux: u8, address: usize) {
    let read = if aux & WRITE == 0 { READ } else { 0 };
    let entry = thread.access.segment.get() | 0xff | read;
    let first = shadow::cell(thread.access.shadow_base.get(), address);
    let second = shadow::cell(thread.access.shadow_base.get(), address + 8);
    let places = (
        quick_place(&shadow::compare_whole(first, entry, read)),
        quick_place(&shadow::compare_whole(second, entry, read)),
    );
    let (Some(first_place), Some(second_place), true) = (places.0, places.1, thread.access.has_slot()) else {
        return whole_pair_with_others(thread, pc, aux, address);
    };
    if first_place == REDUNDANT && second_place == REDUNDANT {
        return;
    }
    // The history first: who finds the entry in a cell must find it there.
    history::access(thread, pc, aux, address, false);
    if first_place != REDUNDANT {
        first.set(first_place, entry);
    }
    if second_place != REDUNDANT {
        second.set(second_place, entry);
    }
}

#[inline(never)]
fn whole_pair_with_others(thread: &Thread, pc: u64, aux: u8, address: usize) {
    let Some(state) = state::of(thread) else { return };
    let clock = &state.clocks.clock;
    let read = if aux & WRITE == 0 { READ } else { 0 };
    let entry = thread.access.segment.get() | 0xff | read;
    let first_cell = shadow::cell(thread.access.shadow_base.get(), address);
    let second_cell = shadow::cell(thread.access.shadow_base.get(), address + 8);
    let mut first = look_at_whole(clock, first_cell, entry, read, || thread.access.next_random());
    let mut second = look_at_whole(clock, second_cell, entry, read, || thread.access.next_random());
    if thread.access.has_slot() && (first.place != REDUNDANT || second.place != REDUNDANT) {
        // The history first: who finds the entry in a cell must find it there.
        history::access(thread, pc, aux, address, false);
        if first.place != REDUNDANT {
            put(clock, first_cell, entry, &mut first, || thread.access.next_random());
        }
        if second.place != REDUNDANT {
            put(clock, second_cell, entry, &mut second, || thread.access.next_random());
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
pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize, mask: u32, flags: u32) -> bool {
    let Some(state) = state::of(thread) else { return true };
    let clock = &state.clocks.clock;
    let cell = shadow::cell(thread.access.shadow_base.get(), address);
    let entry = thread.access.segment.get() | mask | flags;
    let mut look = look(clock, cell, entry, || thread.access.next_random());
    if look.place == REDUNDANT {
        return false;
    }
    if thread.access.has_slot() {
        // The history first: who finds the entry in the cell must find it there.
        history::access(thread, pc, aux, address, flags & ATOMIC != 0);
        put(clock, cell, entry, &mut look, || thread.access.next_random());
    }
    if look.race != 0 {
        race(thread, pc, aux, address, 1 << (aux & SIZE_MASK), flags, look.race, address & !7);
    }
    true
}

#[cold]
#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn race(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize, flags: u32, old: u32, cell: usize) {
    let new = report::Access { pc, aux, address, bytes, atomic: flags & ATOMIC != 0, free: false };
    report::race(thread, &new, old, cell);
}

/// An access of any number of bytes. True if any of it was news.
pub fn range(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize, sized: bool) -> bool {
    let Some(state) = state::of(thread) else { return true };
    let clock = &state.clocks.clock;
    let read = if aux & WRITE == 0 { READ } else { 0 };
    let (mut news, mut first_race) = (false, (0, 0));
    let end = address + bytes;
    let mut at = address;
    while at < end {
        let here = (8 - (at & 7)).min(end - at);
        let mask = (((1u32 << here) - 1) << (at & 7)) & 0xff;
        let cell = shadow::cell(thread.access.shadow_base.get(), at);
        let entry = thread.access.segment.get() | mask | read;
        let mut look = if here == 8 {
            let known =
                shadow::redundant_cells(thread.access.shadow_base.get(), at, (end - at) / 8, entry, read);
            if known > 0 {
                at += 8 * known;
                continue;
            }
            look_at_whole(clock, cell, entry, read, || thread.access.next_random())
        } else {
            look(clock, cell, entry, || thread.access.next_random())
        };
        if look.place != REDUNDANT {
            if !news && thread.access.has_slot() {
                if sized {
                    history::access(thread, pc, aux, address, false);
                } else {
                    history::range(thread, pc, aux & !SIZE_MASK, address, bytes);
                }
            }
            news = true;
            if thread.access.has_slot() {
                put(clock, cell, entry, &mut look, || thread.access.next_random());
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

/// Of a piece of memory that is allocated or released, so much is marked: looking at more would cost more than it finds.
const FREE_BYTES_MAX: usize = 4096;

/// Memory is allocated, and nobody has been there yet (its cells are empty): a write to it, so that who gets the address by other ways than
/// synchronisation races with the allocation.
pub fn alloc(thread: &Thread, pc: u64, address: usize, bytes: usize) {
    if !thread.access.has_slot() || address & 7 != 0 {
        return;
    }
    let bytes = bytes.min(FREE_BYTES_MAX);
    let mark = marks::segment(thread);
    history::alloc(thread, pc, address, bytes);
    let base = thread.access.shadow_base.get();
    for at in (address..address + bytes).step_by(8) {
        let mask = if at + 8 > address + bytes { (1u32 << (address + bytes - at)) - 1 } else { 0xff };
        shadow::cell(base, at).set(0, mark | mask);
    }
}

/// Memory is released: a write to all of it, after which only the release is remembered. `stays`: the memory stays with the allocator, so
/// that whoever touches it before it is allocated again is wrong.
pub fn free(thread: &Thread, pc: u64, address: usize, bytes: usize, stays: bool) {
    let mark = if thread.access.has_slot() { marks::segment(thread) } else { 0 };
    let Some(state) = state::of(thread) else { return };
    let clock = &state.clocks.clock;
    let bytes = bytes.min(FREE_BYTES_MAX);
    let end = address + bytes;
    let mut first_race = (0, 0);
    if thread.access.has_slot() {
        history::free(thread, pc, address, bytes);
    }
    let mut at = address;
    while at < end {
        let here = (8 - (at & 7)).min(end - at);
        let mask = (((1u32 << here) - 1) << (at & 7)) & 0xff;
        let cell = shadow::cell(thread.access.shadow_base.get(), at);
        let entry = thread.access.segment.get() | mask;
        let look = look(clock, cell, entry, || thread.access.next_random());
        if look.race != 0 && first_race.0 == 0 {
            first_race = (look.race, at & !7);
        }
        let mark = if mark == 0 { 0 } else { mark | mask };
        match stays {
            true => release_all(cell, mark),
            false => replace_all(cell, mark),
        }
        at += here;
    }
    if first_race.0 != 0 {
        let new = report::Access { pc, aux: WRITE, address, bytes, atomic: false, free: true };
        report::race(thread, &new, first_race.0, first_race.1);
    }
}
