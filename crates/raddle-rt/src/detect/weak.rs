//! Showing weak behaviours ([`raddle_hb::weak`] says which there are): a load is given an older store than the one in memory.

use super::atomic::{Effect, Site, note};
use super::{DOMAIN, slots, state, vars};
use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use raddle_hb::MemoryOrder;
pub use raddle_hb::weak::Wish;
use raddle_hb::weak::{Chooser, Performer, Preference};
use raddle_wire::Header;
use raddle_wire::region::{detect as setting, option, weak as choice};

static ON: AtomicBool = AtomicBool::new(false);
static CHOICE: AtomicU32 = AtomicU32::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn configure(header: &Header) {
    CHOICE.store(super::value_of(setting::WEAK_CHOICE) as u32, Ordering::Relaxed);
    SEED.store(crate::run::seed(header), Ordering::Relaxed);
    ON.store(super::wants(option::WEAK), Ordering::Relaxed);
}

pub fn reset_after_fork() {
    ON.store(false, Ordering::Relaxed);
}

fn chooser() -> Chooser {
    let preference = match CHOICE.load(Ordering::Relaxed) {
        choice::UNIFORM => Preference::Uniform,
        choice::NEWEST => Preference::Newest,
        _ => Preference::Oldest,
    };
    Chooser { seed: SEED.load(Ordering::Relaxed), preference }
}

/// What an operation did, from the one who performs it.
pub struct Outcome<T> {
    pub result: T,
    pub effect: Effect,
    pub order: MemoryOrder,
    pub written: u64,
}

/// Performs an operation on a store of the location's buffer. `action` is told the value that it reads, and then leaves
/// memory alone; or nothing, and then operates on memory.
pub fn perform<T>(
    thread: &Thread,
    site: &Site,
    wish: Wish,
    order: MemoryOrder,
    memory: impl FnOnce() -> u64,
    action: impl FnOnce(Option<u64>) -> Outcome<T>,
) -> T {
    let Some(state) = state::of(thread) else { return action(None).result };
    let relaxed = thread.access.is_sync_ignored();
    let order = if relaxed { MemoryOrder::Relaxed } else { order };
    let action = |older| {
        let outcome = action(older);
        Outcome { order: if relaxed { MemoryOrder::Relaxed } else { outcome.order }, ..outcome }
    };
    let Some(mut var) = vars::get_or_make(site.address) else { return action(None).result };
    let name = if thread.turns.path.get() != 0 { thread.turns.path.get() } else { u64::from(thread.index()) };
    let (clocks, choices) = (&mut state.clocks, &mut state.choices);
    let mut performer = Performer { clocks, segment: thread.access.current(), thread: thread.index() };
    let chosen = var.location.choose(&DOMAIN, &mut performer, (memory(), site.log2), wish, order, |count| {
        *choices += 1;
        chooser().pick(name, *choices, wish, count)
    });
    let Some(mut chosen) = chosen else { return action(None).result };
    let outcome = action(chosen.older_value());
    if outcome.effect != Effect::Store {
        chosen.read(&DOMAIN, performer.clocks, outcome.order);
    }
    note(thread, site, outcome.effect);
    if outcome.effect == Effect::Load {
        chosen.note_reader(&DOMAIN, performer.segment);
    } else {
        chosen.write(&DOMAIN, &mut performer, outcome.written, outcome.effect, outcome.order);
    }
    drop(var);
    if outcome.effect != Effect::Load && outcome.order.releases() {
        slots::advance(thread);
    }
    outcome.result
}
