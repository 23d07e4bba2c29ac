//! Atomic operations and fences by the rules of C and C++11.
//!
//! The rules are those of Lidbury's thesis, fig. 3.12 (Lidbury, Donaldson, *Dynamic race detection for C++11*, POPL
//! 2017): `C` what a thread knows, `L` what an acquire load of a location gets, `V` for each thread with a release
//! sequence on the location what survives of it when that thread stores again relaxed, `F_rel` and `F_acq` for fences.
//!
//! | operation of thread t | effect |
//! | --- | --- |
//! | acquire load | `C_t := C_t + L` |
//! | relaxed load | `F_acq := F_acq + L` |
//! | release store | `L := C_t`, `V := {t: C_t}` |
//! | relaxed store | `L := V(t) + F_rel`, `V := {t: V(t)}`: blocks everybody else's sequence |
//! | release read-modify-write | its load, then `L := L + C_t`, `V(t) := C_t` |
//! | relaxed read-modify-write | its load, then `L := L + F_rel` |
//! | acquire fence | `C_t := C_t + F_acq` |
//! | release fence | `F_rel := C_t` |
//!
//! `raddle-detect` has the same rules over a trace (`hb11`); a property test compares the two.
//!
//! Most locations have one release sequence, whose clock equals `L`; then only its thread is noted (`sole`). The list is
//! made when a second one begins or a fence makes the two differ.
//!
//! The operation and its effect on the clocks happen under the lock of the location, so that a load gets the clock that
//! belongs to the value that it read. Operations that can have no effect (nothing was ever released here, and nothing is
//! now) do without.

use super::state::State;
use super::vars::{self, Locked, Var};
use super::{cells, slots, state, weak};
use crate::shadow::{ATOMIC, READ};
use crate::thread::Thread;
use raddle_wire::record::access::WRITE;

/// What an atomic operation turned out to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Load,
    Store,
    /// A load and a store at once.
    Update,
}

const CONSUME: i32 = 1;
const ACQUIRE: i32 = 2;
const RELEASE: i32 = 3;
const ACQ_REL: i32 = 4;
pub const SEQ_CST: i32 = 5;

pub fn acquires(mo: i32) -> bool {
    matches!(mo, CONSUME | ACQUIRE | ACQ_REL | SEQ_CST)
}

pub fn releases(mo: i32) -> bool {
    matches!(mo, RELEASE | ACQ_REL | SEQ_CST)
}

/// The place of an atomic operation.
pub struct Site {
    pub pc: u64,
    pub address: usize,
    pub log2: u8,
}

/// Performs an operation and does to the clocks what it means. `stores`: it may store, with this order.
pub fn perform<T>(
    thread: &mut Thread,
    site: &Site,
    stores: bool,
    mo: i32,
    action: impl FnOnce() -> (T, Effect, i32),
) -> T {
    let Some(state) = state::of(thread) else { return action().0 };
    let passes_on = stores && (releases(mo) || !state.fence_release.empty);
    let mut var = if passes_on { vars::get_or_make(site.address) } else { vars::get(site.address) };
    let (result, effect, mo) = action();
    if var.is_none() && effect != Effect::Store {
        // Somebody may have released here just before the operation.
        var = vars::get(site.address);
    }
    let Some(mut var) = var else {
        note(thread, site, effect);
        return result;
    };
    if effect != Effect::Store {
        if acquires(mo) {
            var.clock.acquire_into(&mut state.clock);
        } else {
            var.clock.acquire_into(&mut state.fence_acquire);
        }
    }
    note(thread, site, effect);
    if effect != Effect::Load {
        store(thread, state, &mut var, mo, effect == Effect::Update);
    }
    drop(var);
    if effect != Effect::Load && releases(mo) {
        slots::advance(thread);
    }
    result
}

/// The access itself: atomics race with plain accesses.
pub fn note(thread: &mut Thread, site: &Site, effect: Effect) {
    if thread.enabled == 0 {
        return;
    }
    let bytes = 1usize << site.log2;
    let (aux, read) = if effect == Effect::Load { (0, READ) } else { (WRITE, 0) };
    let mut at = site.address;
    let end = at + bytes;
    while at < end {
        let here = (8 - (at & 7)).min(end - at);
        let mask = (((1u32 << here) - 1) << (at & 7)) & 0xff;
        cells::access(thread, site.pc, aux | site.log2.min(3), at, mask, read | ATOMIC);
        at += here;
    }
}

fn store(thread: &Thread, state: &mut State, var: &mut Locked, mo: i32, update: bool) {
    let me = thread.index + 1;
    match (releases(mo), update) {
        (true, false) => {
            var.drop_sequences();
            var.clock.assign_from(&mut state.clock);
            var.sole = me;
        }
        (false, false) => relaxed_store(state, var, me),
        (true, true) => {
            if var.sole == me {
                var.clock.release_from(&mut state.clock);
                return;
            }
            if !var.clock.is_empty() {
                list_sole(var);
                set_sequence(var, me, state);
                var.clock.release_from(&mut state.clock);
            } else {
                var.clock.assign_from(&mut state.clock);
                var.sole = me;
            }
        }
        (false, true) => {
            if !state.fence_release.empty {
                list_sole(var);
                var.clock.release_from(&mut state.fence_release);
            }
        }
    }
}

fn relaxed_store(state: &mut State, var: &mut Locked, me: u32) {
    if var.sole != me {
        let own = take_sequence(var, me);
        var.drop_sequences();
        var.clock.clear();
        match own {
            Some(clock) => {
                var.clock = clock;
                var.sole = me;
            }
            None => var.sole = 0,
        }
    }
    if !state.fence_release.empty {
        list_sole(var);
        var.clock.release_from(&mut state.fence_release);
    }
}

/// Turns the short form of a single sequence into the list: the location's clock is about to differ from it.
fn list_sole(var: &mut Var) {
    if var.sole == 0 {
        return;
    }
    if let Some(at) = vars::SEQUENCES.take() {
        let clock = var.clock.copy();
        // SAFETY: fresh and ours.
        unsafe { at.write(vars::Sequence { thread: var.sole, clock, next: var.sequences }) };
        var.sequences = at;
    }
    var.sole = 0;
}

fn set_sequence(var: &mut Var, me: u32, state: &mut State) {
    if let Some(known) = vars::sequence_of(var, me) {
        return known.assign_from(&mut state.clock);
    }
    let mut clock = super::clock::ObjectClock::NONE;
    clock.assign_from(&mut state.clock);
    vars::set_sequence(var, me, clock);
}

fn take_sequence(var: &mut Var, me: u32) -> Option<super::clock::ObjectClock> {
    vars::sequence_of(var, me)
        .map(|found| core::mem::replace(found, super::clock::ObjectClock::NONE))
        .filter(|clock| !clock.is_empty())
}

pub fn fence(thread: &mut Thread, mo: i32) {
    let Some(state) = state::of(thread) else { return };
    if mo == SEQ_CST && weak::on() {
        weak::fence(thread, state);
    }
    if acquires(mo) {
        let State { clock, fence_acquire, .. } = state;
        clock.join(fence_acquire);
    }
    if releases(mo) {
        let State { clock, fence_release, .. } = state;
        fence_release.copy_from(clock);
        slots::advance(thread);
    }
}
