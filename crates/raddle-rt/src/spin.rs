//! A spin lock for the runtime's own tables. Critical sections are a few instructions and never call the program.

use crate::{arch, real};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

pub struct Spin<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock word gives exclusive access to the value.
unsafe impl<T: Send> Sync for Spin<T> {}

/// After this many tries the holder has probably lost its processor: let it run.
const TRIES_BEFORE_YIELD: u32 = 64;

impl<T> Spin<T> {
    pub const fn new(value: T) -> Spin<T> {
        Spin { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    pub fn lock(&self) -> SpinGuard<'_, T> {
        lock_word(&self.word);
        SpinGuard { spin: self }
    }

    /// Makes the lock free again in a child process, where its holder does not exist.
    pub fn reset_after_fork(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

#[inline]
pub fn lock_word(word: &AtomicU32) {
    let mut tries = 0;
    while word.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        tries += 1;
        if tries % TRIES_BEFORE_YIELD == 0 {
            real::yield_now();
        } else {
            arch::pause();
        }
    }
}

#[inline]
pub fn unlock_word(word: &AtomicU32) {
    word.store(0, Ordering::Release);
}

pub struct SpinGuard<'a, T> {
    spin: &'a Spin<T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.spin.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.spin.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        unlock_word(&self.spin.word);
    }
}
