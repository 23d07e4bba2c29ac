//! Whose memory an address is that is neither static nor of the heap.

use crate::registry;
use crate::thread::home::{Place, each_frame};
use crate::thread::{Thread, phase};
use core::sync::atomic::Ordering;
use raddle_wire::report::home;

/// Whose memory an address is.
pub struct Owner {
    pub thread: u32,
    /// One of [`home`].
    pub part: u32,
    pub pointer: usize,
    /// The frame that it is in, where that is known.
    pub frame: Option<Place>,
}

/// Looks for the live thread that an address belongs to. `here` is where the calling thread is.
pub fn find(address: usize, calling: &Thread, here: u64) -> Option<Owner> {
    let mut found = None;
    // The list's lock keeps the stacks of others mapped.
    registry::for_each_until(|thread| {
        if thread.life.phase.load(Ordering::Acquire) & phase::MASK != phase::RUNNING {
            return false;
        }
        let Some(part) = thread.home.part(address) else { return false };
        let own = core::ptr::eq(thread, calling);
        let mut frame = None;
        if part == home::STACK {
            let mut below = 0;
            each_frame(thread, if own { here } else { 0 }, |place, low| {
                if frame.is_none() && (low.max(below)..place.address).contains(&(address as u64)) {
                    frame = Some(place);
                }
                below = place.address;
            });
        }
        let pointer = thread.home.pointer();
        found = Some(Owner { thread: thread.index(), part, pointer, frame });
        true
    });
    found
}
