//! What the programs share.

use std::cell::UnsafeCell;

/// A cell that threads share without any protection: what `unsafe impl Sync` is for, and what goes wrong with it.
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: none. The programs of this corpus are about who breaks the promise made here.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    pub fn get(&self) -> T {
        unsafe { *self.0.get() }
    }

    pub fn set(&self, value: T) {
        unsafe { *self.0.get() = value }
    }
}
