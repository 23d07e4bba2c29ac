//! Where the thread's next record goes: a slot of the shared region. Owned by `record`.

use core::cell::Cell;
use raddle_wire::Record;

pub struct RecordCursor {
    /// Where the next record goes; null: the thread has no slot.
    pub next: Cell<*mut Record>,
    pub end: Cell<*mut Record>,
    /// Number of the slot.
    pub slot: Cell<u32>,
    /// How many slots the thread has had.
    pub ordinal: Cell<u32>,
}

impl RecordCursor {
    pub const fn idle() -> RecordCursor {
        RecordCursor {
            next: Cell::new(core::ptr::null_mut()),
            end: Cell::new(core::ptr::null_mut()),
            slot: Cell::new(0),
            ordinal: Cell::new(0),
        }
    }

    /// For a thread that is about to be created.
    pub fn clear(&self) {
        self.next.set(core::ptr::null_mut());
        self.end.set(core::ptr::null_mut());
        self.ordinal.set(0);
    }
}
