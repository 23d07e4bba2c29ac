//! Thread segments: names for the runs of accesses between two synchronisation operations.
//!
//! A segment is named by a *slot* (8 bits, 0 means none) and an *epoch* (14 bits). A thread owns one slot at a time and
//! moves to the next epoch when it synchronises. Slots outlive threads and epochs of a slot only grow, so a name is
//! never given twice, until all slots are used up.
//!
//! # Starting over
//!
//! When no slot has epochs left, the shadow is wiped and the epochs of all slots that *no thread owns* go back to zero.
//! This needs no stop of the other threads: a name of an unowned slot can only stand in a cell that was written while
//! the slot was owned, hence before the wipe, because the last owner wrote it and gave the slot up afterwards. Threads
//! that run during the wipe keep their slots and their epochs, so whatever they write before, during or after it is
//! still the only use of that name.
//!
//! Under online detection the names of segments are also the columns of vector clocks, which asks for more care when
//! they are used again: [`crate::detect::slots`] takes over.
//!
//! A thread that finds no slot (more than 255 run at once) goes without: its accesses are never taken for redundant.

use crate::detect;
use crate::shadow::{self, EPOCH_MAX, EPOCH_SHIFT, SID_SHIFT};
use crate::spin::Spin;
use crate::thread::Thread;

const SLOTS: usize = 256;

struct Slots {
    /// Last epoch used, by slot.
    epoch: [u16; SLOTS],
    /// Free slots with epochs left, oldest first.
    free: [u8; SLOTS],
    free_head: usize,
    free_count: usize,
    /// Free slots whose epochs are used up.
    spent: [u8; SLOTS],
    spent_count: usize,
}

impl Slots {
    const fn new() -> Slots {
        let mut free = [0; SLOTS];
        let mut i = 1;
        while i < SLOTS {
            free[i - 1] = i as u8;
            i += 1;
        }
        Slots {
            epoch: [0; SLOTS],
            free,
            free_head: 0,
            free_count: SLOTS - 1,
            spent: [0; SLOTS],
            spent_count: 0,
        }
    }

    fn push_free(&mut self, slot: u8) {
        let at = (self.free_head + self.free_count) % SLOTS;
        self.free[at] = slot;
        self.free_count += 1;
    }

    fn take(&mut self) -> Option<u8> {
        if self.free_count == 0 && self.spent_count > 0 {
            shadow::wipe();
            for i in 0..self.spent_count {
                let slot = self.spent[i];
                self.epoch[slot as usize] = 0;
                self.push_free(slot);
            }
            self.spent_count = 0;
        }
        if self.free_count == 0 {
            return None;
        }
        let slot = self.free[self.free_head];
        self.free_head = (self.free_head + 1) % SLOTS;
        self.free_count -= 1;
        Some(slot)
    }

    fn give_back(&mut self, slot: u8, epoch: u32) {
        self.epoch[slot as usize] = epoch as u16;
        if epoch >= EPOCH_MAX {
            self.spent[self.spent_count] = slot;
            self.spent_count += 1;
        } else {
            self.push_free(slot);
        }
    }
}

static TABLE: Spin<Slots> = Spin::new(Slots::new());

/// Gives the thread a slot, if there is one.
pub fn attach(thread: &mut Thread) {
    if detect::on() {
        return detect::slots::attach(thread);
    }
    let mut table = TABLE.lock();
    match table.take() {
        Some(slot) => {
            thread.sid = u32::from(slot);
            thread.epoch = u32::from(table.epoch[slot as usize]) + 1;
        }
        None => {
            thread.sid = 0;
            thread.epoch = 0;
        }
    }
    drop(table);
    thread.segment = thread.sid << SID_SHIFT | thread.epoch << EPOCH_SHIFT;
}

pub fn detach(thread: &mut Thread) {
    if detect::on() {
        return detect::slots::detach(thread);
    }
    if thread.sid != 0 {
        TABLE.lock().give_back(thread.sid as u8, thread.epoch);
        thread.sid = 0;
        thread.segment = 0;
    }
}

/// The thread has synchronised: a new segment begins.
#[inline]
pub fn advance(thread: &mut Thread) {
    if detect::on() {
        return detect::slots::advance(thread);
    }
    if thread.sid != 0 && thread.epoch < EPOCH_MAX {
        thread.epoch += 1;
        thread.segment = thread.sid << SID_SHIFT | thread.epoch << EPOCH_SHIFT;
        return;
    }
    detach(thread);
    attach(thread);
}

pub fn reset_after_fork() {
    TABLE.reset_after_fork();
}
