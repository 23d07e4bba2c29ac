//! Counting visible operations by thread and object, for strategies that have to know what is to come (`surw`).

use crate::run;
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use raddle_wire::region::{PROFILE_MAX, PROFILE_OFFSET, ProfileEntry};

/// Called with the scheduler's lock held, so nobody else writes.
pub fn count(thread: &Thread, object: usize) {
    let Some(header) = run::header() else { return };
    let table = core::ptr::from_ref(header) as usize + PROFILE_OFFSET;
    let start = (thread.turns.path.get() ^ (object as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) as usize;
    for probe in 0..PROFILE_MAX {
        let at = table + start.wrapping_add(probe) % PROFILE_MAX * size_of::<ProfileEntry>();
        // SAFETY: the table lies in the mapped region.
        let entry = unsafe { &*(at as *const ProfileEntry) };
        let count = entry.count.load(Ordering::Relaxed);
        if count == 0 {
            entry.thread.store(thread.turns.path.get(), Ordering::Relaxed);
            entry.parent.store(thread.turns.parent_path.get(), Ordering::Relaxed);
            entry.object.store(object as u64, Ordering::Relaxed);
            entry.count.store(1, Ordering::Relaxed);
            return;
        }
        if entry.thread.load(Ordering::Relaxed) == thread.turns.path.get()
            && entry.object.load(Ordering::Relaxed) == object as u64
        {
            entry.count.store(count + 1, Ordering::Relaxed);
            return;
        }
    }
}
