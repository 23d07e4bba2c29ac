//! Atomic operations and fences while races are looked for ([`raddle_hb::release_sequence`] says what they pass on).
//!
//! The operation and its effect on the clocks happen under the lock of the location, so that a load gets the clock that
//! belongs to the value that it read. Operations that can have no effect (nothing was ever released here, and nothing is
//! now) do without.

use super::{DOMAIN, cells, slots, state, vars, weak};
use crate::shadow::{ATOMIC, READ};
use crate::thread::Thread;
use raddle_hb::MemoryOrder;
pub use raddle_hb::release_sequence::Effect;
use raddle_wire::record::access::WRITE;

/// The place of an atomic operation.
pub struct Site {
    pub pc: u64,
    pub address: usize,
    pub log2: u8,
}

/// Performs an operation and does to the clocks what it means. `stores`: it may store, with this order.
pub fn perform<T>(
    thread: &Thread,
    site: &Site,
    stores: bool,
    order: MemoryOrder,
    action: impl FnOnce() -> (T, Effect, MemoryOrder),
) -> T {
    let Some(state) = state::of(thread).filter(|_| !thread.access.is_sync_ignored()) else {
        return action().0;
    };
    let passes_on = stores && (order.releases() || !state.clocks.fence_release.empty);
    let mut var = if passes_on { vars::get_or_make(site.address) } else { vars::get(site.address) };
    let (result, effect, order) = action();
    if var.is_none() && effect != Effect::Store {
        // Somebody may have released here just before the operation.
        var = vars::get(site.address);
    }
    let Some(mut var) = var else {
        note(thread, site, effect);
        return result;
    };
    if effect != Effect::Store {
        var.location.load(&DOMAIN, &mut state.clocks, order);
    }
    note(thread, site, effect);
    if effect != Effect::Load {
        let update = effect == Effect::Update;
        var.location.store(&DOMAIN, &mut state.clocks, thread.index(), order, update);
    }
    drop(var);
    if effect != Effect::Load && order.releases() {
        slots::advance(thread);
    }
    result
}

/// The access itself: atomics race with plain accesses.
pub fn note(thread: &Thread, site: &Site, effect: Effect) {
    if !thread.access.are_enabled() {
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

pub fn fence(thread: &Thread, order: MemoryOrder) {
    let Some(state) = state::of(thread) else { return };
    state.clocks.fence(&DOMAIN, thread.access.current(), order, weak::on());
    if order.releases() {
        slots::advance(thread);
    }
}
