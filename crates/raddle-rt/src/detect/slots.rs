//! Giving threads their slots under online detection ([`raddle_hb::slots`] says who gets which).

use super::{DOMAIN, history, state};
use crate::shadow;
use crate::spin::Spin;
use crate::thread::Thread;
use raddle_hb::Segment;
use raddle_hb::slots::SlotTable;

static TABLE: Spin<SlotTable> = Spin::new(SlotTable::new());

/// Gives the thread a slot, if there is one.
pub fn attach(thread: &Thread) {
    let Some(state) = state::of(thread) else { return };
    let first = TABLE.lock().attach(&DOMAIN.generations, &mut state.clocks.clock, shadow::wipe);
    if first.is_none() {
        return thread.access.enter(Segment::NONE);
    }
    enter(thread, first);
    history::attach(thread);
}

#[inline]
fn enter(thread: &Thread, segment: Segment) {
    thread.access.enter(segment);
    if let Some(state) = state::of(thread) {
        state.clocks.enter(segment);
    }
}

pub fn detach(thread: &Thread) {
    if !thread.access.has_slot() {
        return;
    }
    history::detach(thread);
    TABLE.lock().detach(thread.access.current());
    thread.access.enter(Segment::NONE);
}

/// What the thread did so far was passed on: a new epoch begins.
#[inline]
pub fn advance(thread: &Thread) {
    if let Some(next) = thread.access.current().next() {
        return enter(thread, next);
    }
    detach(thread);
    attach(thread);
}

pub fn reset_after_fork() {
    TABLE.reset_after_fork();
}
