//! Misuse of locks, and threads that nobody joins.

use super::report::{self, Writer};
use super::{locks, state};
use crate::thread::{Thread, phase};
use core::sync::atomic::Ordering;
use raddle_wire::region::option;
use raddle_wire::report::{FRAMES_MAX, kind, tag};

/// Tells of a misuse at this place, once a place and kind.
pub fn tell(thread: &Thread, pc: u64, what: u32, object: usize) {
    tell_from(thread, &locks::frames::<FRAMES_MAX>(thread, pc), what, object);
}

/// The same with the calls that led there.
pub fn tell_from(thread: &Thread, stack: &[u64], what: u32, object: usize) {
    let place = stack.first().copied().unwrap_or(0);
    if !super::wants(option::LOCK_MISUSE) || !report::is_first(place, u64::from(what)) {
        return;
    }
    let Some(mut writer) = Writer::begin() else { return };
    writer.item(tag::KIND, what, &[object as u64, 0], &[]);
    writer.item(tag::PARTY, thread.index(), &[0, object as u64], stack);
    if let Some(state) = state::of(thread) {
        state.held.as_slice().iter().for_each(|held| writer.lock(held));
    }
    let owner = writer.owner(object, thread, place);
    writer.threads(&[thread.index(), owner]);
    report::after(writer.finish());
}

/// At the end of the program: a thread that has ended and was neither joined nor detached.
pub fn leaked(thread: &Thread) {
    let state = thread.life.phase.load(Ordering::Acquire);
    if state & 0xff != phase::ENDED || state & phase::DETACHED != 0 {
        return;
    }
    let Some(info) = super::thread_table::find(thread.index()) else { return };
    if !report::is_first(info.frames[0], u64::from(kind::THREAD_LEAK)) {
        return;
    }
    let Some(mut writer) = Writer::begin() else { return };
    writer.item(tag::KIND, kind::THREAD_LEAK, &[thread.life.routine.get() as u64, 0], &[]);
    writer.item(tag::PARTY, thread.index(), &[0, 0], &info.frames);
    writer.threads(&[thread.index()]);
    writer.finish();
}
