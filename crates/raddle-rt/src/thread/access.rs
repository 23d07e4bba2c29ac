//! What the access hooks look at: whether the thread's plain accesses are observed, and in which segment it is.
//!
//! The assembly of the hooks reads the first three fields by their offsets (`hooks`), so their types are part of its contract.
//! Everything else goes through the methods. Owned by `segment` and `detect::slots`, which say in which segment a thread is, and by
//! `shadow`, whose cells hold the names of segments.

use core::cell::Cell;
use raddle_hb::{Epoch, Segment};

#[repr(C)]
pub struct AccessState {
    /// Non-zero when plain accesses are observed.
    pub enabled: Cell<u32>,
    /// The current segment, as it stands in shadow cells.
    pub segment: Cell<u32>,
    /// Where the shadow cells begin.
    pub shadow_base: Cell<usize>,
    slot: Cell<u32>,
    epoch: Cell<u32>,
    random: Cell<u32>,
    /// How many regions the thread is in whose accesses the program wants to be ignored.
    ignored: Cell<u32>,
    /// How many whose synchronisation is to be.
    sync_ignored: Cell<u32>,
}

impl AccessState {
    pub const fn idle() -> AccessState {
        AccessState {
            enabled: Cell::new(0),
            segment: Cell::new(0),
            shadow_base: Cell::new(0),
            slot: Cell::new(0),
            epoch: Cell::new(0),
            random: Cell::new(0),
            ignored: Cell::new(0),
            sync_ignored: Cell::new(0),
        }
    }

    /// For a thread that is about to be created.
    pub fn clear(&self) {
        self.enabled.set(0);
        self.ignored.set(0);
        self.sync_ignored.set(0);
        self.enter(Segment::NONE);
    }

    /// The thread begins: its accesses are looked up from here on.
    pub fn begin(&self, shadow_base: usize, index: u32) {
        self.shadow_base.set(shadow_base);
        self.random.set(0x9e37_79b9 ^ index.wrapping_mul(0x85eb_ca6b));
    }

    #[inline(always)]
    pub fn are_enabled(&self) -> bool {
        self.enabled.get() != 0
    }

    /// A region begins, or (`-1`) ends, in which accesses are ignored.
    pub fn ignore(&self, by: i32) {
        self.ignored.set(self.ignored.get().saturating_add_signed(by));
    }

    pub fn are_ignored(&self) -> bool {
        self.ignored.get() != 0
    }

    /// The same for synchronisation.
    pub fn ignore_sync(&self, by: i32) {
        self.sync_ignored.set(self.sync_ignored.get().saturating_add_signed(by));
    }

    #[inline(always)]
    pub fn is_sync_ignored(&self) -> bool {
        self.sync_ignored.get() != 0
    }

    /// Has the thread a slot? Without one its accesses have no name, and stand in no cell.
    #[inline(always)]
    pub fn has_slot(&self) -> bool {
        self.slot.get() != 0
    }

    #[inline(always)]
    pub fn slot(&self) -> u32 {
        self.slot.get()
    }

    #[inline(always)]
    pub fn epoch(&self) -> u32 {
        self.epoch.get()
    }

    /// The segment that the thread is in.
    #[inline(always)]
    pub fn current(&self) -> Segment {
        Segment { slot: self.slot.get() as u8, epoch: self.epoch.get() as Epoch }
    }

    #[inline(always)]
    pub fn enter(&self, segment: Segment) {
        self.slot.set(u32::from(segment.slot));
        self.epoch.set(u32::from(segment.epoch));
        self.segment.set(segment.name());
    }

    /// xorshift32: only spreads shadow evictions, quality does not matter.
    #[inline(always)]
    pub fn next_random(&self) -> u32 {
        let mut x = self.random.get() | 1;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random.set(x);
        x
    }
}
