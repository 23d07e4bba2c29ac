//! Objects at which several threads are at once: conditions and barriers.
//!
//! Who waits at one may return long after others have gone on, destroyed the object and released its memory, all of which is legal.
//! So a thread that goes in keeps the object ([`vars::pin`]) and looks at that one when it comes out.
//!
//! *Barriers.* Who leaves knows what all of its own generation did before, and nothing that an early leaver did afterwards and
//! brought to the next generation. Generations are told apart by counting arrivals, which is exact while no more threads are inside than a
//! generation needs: nobody leaves before all have arrived, so the next generation is of those who have left. Once there
//! are more (or arrivals that are not seen, from other processes), all generations are one from then on: that can hide a race and makes none up.

use super::{DOMAIN, misuse, slots, state, vars};
use crate::thread::Thread;
use raddle_wire::report::kind;

/// A barrier that so many threads pass together.
pub fn make_barrier(object: usize, needed: u64) {
    vars::forget(object);
    if let Some(mut var) = vars::get_or_make(object) {
        var.needed = needed as u32;
    }
}

pub fn enter_barrier(thread: &Thread, object: usize) {
    let (Some(state), Some(mut var)) = (state::of(thread), vars::get_or_make(object)) else { return };
    var.location.release(&DOMAIN, &mut state.clocks.clock);
    var.waiters += 1;
    var.signalled += 1;
    state.generation = var.generation;
    if var.waiters > var.needed {
        var.needed = 0;
    }
    if var.signalled == var.needed {
        var.location.complete_generation(&DOMAIN);
        var.signalled = 0;
        var.generation = var.generation.wrapping_add(1);
    }
    state.waits_at = vars::pin(&mut var);
    drop(var);
    slots::advance(thread);
}

pub fn leave_barrier(thread: &Thread) {
    let Some(state) = state::of(thread).filter(|state| state.waits_at != 0) else { return };
    let mut var = vars::unpin(core::mem::take(&mut state.waits_at));
    var.waiters = var.waiters.saturating_sub(1);
    if var.generation == state.generation {
        // It leaves, and not all have been seen to come.
        var.needed = 0;
    }
    var.location.acquire_generation(&DOMAIN, &mut state.clocks.clock);
    if var.needed == 0 {
        var.location.acquire(&DOMAIN, &mut state.clocks.clock);
    }
}

pub fn begin_wait(thread: &Thread, object: usize) {
    let (Some(state), Some(mut var)) = (state::of(thread), vars::get_or_make(object)) else { return };
    var.waiters += 1;
    state.waits_at = vars::pin(&mut var);
}

/// A wait is over: by a signal, or because its time was up. Whoever gives up takes no signal away.
pub fn end_wait(thread: &Thread, woken: bool) {
    let Some(state) = state::of(thread).filter(|state| state.waits_at != 0) else { return };
    let mut var = vars::unpin(core::mem::take(&mut state.waits_at));
    var.waiters = var.waiters.saturating_sub(1);
    var.signalled = var.signalled.saturating_sub(u32::from(woken)).min(var.waiters);
    if woken {
        var.location.acquire(&DOMAIN, &mut state.clocks.clock);
    }
}

/// A signal goes to at most `most` of those who wait and have none yet.
pub fn signal(object: usize, most: u32) {
    if let Some(mut var) = vars::get(object) {
        var.signalled = var.signalled.saturating_add(most).min(var.waiters);
    }
}

/// Do threads wait at the object whom nothing has let go yet?
pub fn are_waiting(object: usize) -> bool {
    vars::get(object).is_some_and(|var| match var.needed {
        0 => var.waiters > var.signalled,
        _ => var.signalled != 0,
    })
}

pub fn destroy_barrier(thread: &Thread, pc: u64, object: usize) {
    if are_waiting(object) {
        misuse::tell(thread, pc, kind::DESTROYED_HELD, object);
    }
    vars::forget(object);
}
