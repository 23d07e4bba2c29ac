//! Who a thread is, and how far its life has come. Owned by `threads`; other threads look here to find, join and name it.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

pub mod phase {
    /// Made by the creator, not yet allowed to run.
    pub const NEW: u32 = 0;
    pub const RUNNING: u32 = 1;
    pub const ENDED: u32 = 2;
    /// Bit: nobody will join it.
    pub const DETACHED: u32 = 1 << 8;
    /// Everything but that bit.
    pub const MASK: u32 = 0xff;
}

pub struct Life {
    /// Number of the thread; 0 is the main thread. Set before anybody can find the thread.
    pub index: Cell<u32>,
    pub parent: Cell<u32>,
    /// What the program wants to run, and with what.
    pub routine: Cell<usize>,
    pub argument: Cell<usize>,
    /// The stack that the runtime gave it (`interpose::stack`): where it begins, and its size.
    pub own_stack: Cell<(usize, usize)>,
    pub destructor_rounds: Cell<u32>,
    /// The program's handle of it.
    pub pthread: AtomicUsize,
    /// The kernel's number of it.
    pub os_tid: AtomicU32,
    pub phase: AtomicU32,
    /// The next one in a list of the registry, under the registry's lock.
    pub next: Cell<*mut super::Thread>,
}

impl Life {
    pub const fn idle() -> Life {
        Life {
            index: Cell::new(0),
            parent: Cell::new(0),
            routine: Cell::new(0),
            argument: Cell::new(0),
            own_stack: Cell::new((0, 0)),
            destructor_rounds: Cell::new(0),
            pthread: AtomicUsize::new(0),
            os_tid: AtomicU32::new(0),
            phase: AtomicU32::new(phase::NEW),
            next: Cell::new(core::ptr::null_mut()),
        }
    }

    /// For a thread that is about to be created.
    pub fn clear(&self, parent: u32) {
        self.index.set(u32::MAX);
        self.parent.set(parent);
        self.own_stack.set((0, 0));
        self.destructor_rounds.set(0);
        self.phase.store(phase::NEW, Ordering::Relaxed);
    }
}
