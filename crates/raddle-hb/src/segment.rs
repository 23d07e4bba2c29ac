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
//! they are used again: [`crate::slots`] takes over. The table here is for runs that only want to know which accesses are
//! redundant.
//!
//! A thread that finds no slot (more than 255 run at once) goes without: its accesses are never taken for redundant.

use crate::cell::{EPOCH_MAX, EPOCH_SHIFT, SLOT_SHIFT};
use crate::clock::{Epoch, SLOTS};

/// A thread segment. Slot 0: the thread has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub slot: u8,
    pub epoch: Epoch,
}

impl Segment {
    pub const NONE: Segment = Segment { slot: 0, epoch: 0 };

    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.slot == 0
    }

    /// The name, where an entry of a cell has it.
    #[inline(always)]
    pub fn name(self) -> u32 {
        u32::from(self.slot) << SLOT_SHIFT | u32::from(self.epoch) << EPOCH_SHIFT
    }

    /// The next segment of the same slot, if it has epochs left.
    #[inline(always)]
    pub fn next(self) -> Option<Segment> {
        (self.slot != 0 && u32::from(self.epoch) < EPOCH_MAX)
            .then_some(Segment { slot: self.slot, epoch: self.epoch + 1 })
    }
}

/// Who may name segments with which slot, when names are for redundancy alone.
pub struct SegmentTable {
    /// Last epoch used, by slot.
    epoch: [Epoch; SLOTS],
    /// Free slots with epochs left, oldest first.
    free: [u8; SLOTS],
    free_head: usize,
    free_count: usize,
    /// Free slots whose epochs are used up.
    spent: [u8; SLOTS],
    spent_count: usize,
}

impl SegmentTable {
    pub const fn new() -> SegmentTable {
        let mut free = [0; SLOTS];
        let mut i = 1;
        while i < SLOTS {
            free[i - 1] = i as u8;
            i += 1;
        }
        SegmentTable {
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

    /// The first segment of a slot's new owner; [`Segment::NONE`] when all slots are owned. `wipe` forgets all accesses.
    pub fn attach(&mut self, wipe: impl FnOnce()) -> Segment {
        if self.free_count == 0 && self.spent_count > 0 {
            wipe();
            for i in 0..self.spent_count {
                let slot = self.spent[i];
                self.epoch[usize::from(slot)] = 0;
                self.push_free(slot);
            }
            self.spent_count = 0;
        }
        if self.free_count == 0 {
            return Segment::NONE;
        }
        let slot = self.free[self.free_head];
        self.free_head = (self.free_head + 1) % SLOTS;
        self.free_count -= 1;
        Segment { slot, epoch: self.epoch[usize::from(slot)] + 1 }
    }

    /// The slot's owner gives it up after this segment.
    pub fn detach(&mut self, last: Segment) {
        if last.is_none() {
            return;
        }
        self.epoch[usize::from(last.slot)] = last.epoch;
        if u32::from(last.epoch) >= EPOCH_MAX {
            self.spent[self.spent_count] = last.slot;
            self.spent_count += 1;
        } else {
            self.push_free(last.slot);
        }
    }
}

impl Default for SegmentTable {
    fn default() -> Self {
        SegmentTable::new()
    }
}
