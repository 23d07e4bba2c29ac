//! Whether a thread may be cancelled, and where. Owned by `steer::cancellation`; other threads look here, too.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

pub struct Cancellation {
    /// Requests are put off.
    pub disabled: AtomicBool,
    /// Requests are acted on at any time.
    pub asynchronous: AtomicBool,
    /// The operation under way is no cancellation point although others of its kind are.
    pub tries: Cell<bool>,
}

impl Cancellation {
    pub const fn idle() -> Cancellation {
        Cancellation {
            disabled: AtomicBool::new(false),
            asynchronous: AtomicBool::new(false),
            tries: Cell::new(false),
        }
    }

    /// For a thread that is about to be created.
    pub fn clear(&self) {
        self.disabled.store(false, Ordering::Relaxed);
        self.asynchronous.store(false, Ordering::Relaxed);
        self.tries.set(false);
    }
}
