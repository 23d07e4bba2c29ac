//! What online detection keeps in a thread. Owned by `detect`.

use core::cell::Cell;
use raddle_wire::Record;

pub struct Detection {
    /// The thread's `detect::state::State`; null when detection is off.
    pub state: Cell<*mut u8>,
    /// Where the next record of the history goes.
    pub history: Cell<*mut Record>,
    pub history_end: Cell<*mut Record>,
    /// The segment that the history knows.
    pub history_segment: Cell<u32>,
    /// The ring that the history goes to; the last one, while the thread has no slot. 0: none.
    pub ring: Cell<u32>,
    /// How often the thread's slot has started over: part of the names in its history.
    pub slot_life: Cell<u32>,
}

impl Detection {
    pub const fn idle() -> Detection {
        Detection {
            state: Cell::new(core::ptr::null_mut()),
            history: Cell::new(core::ptr::null_mut()),
            history_end: Cell::new(core::ptr::null_mut()),
            history_segment: Cell::new(0),
            ring: Cell::new(0),
            slot_life: Cell::new(0),
        }
    }

    /// For a thread that is about to be created. The state stays: it is recycled with the thread's structure.
    pub fn clear(&self) {
        self.history.set(core::ptr::null_mut());
        self.history_end.set(core::ptr::null_mut());
        self.history_segment.set(0);
        self.ring.set(0);
        self.slot_life.set(0);
    }
}
