//! A spin lock for tables. Critical sections are a few instructions and never call the program.

use crate::host::Host;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

pub struct Spin<T, H> {
    word: AtomicU32,
    value: UnsafeCell<T>,
    host: PhantomData<fn() -> H>,
}

// SAFETY: the lock word gives exclusive access to the value.
unsafe impl<T: Send, H> Sync for Spin<T, H> {}

impl<T, H: Host> Spin<T, H> {
    pub const fn new(value: T) -> Spin<T, H> {
        Spin { word: AtomicU32::new(0), value: UnsafeCell::new(value), host: PhantomData }
    }

    pub fn lock(&self) -> SpinGuard<'_, T, H> {
        lock_word::<H>(&self.word);
        SpinGuard { spin: self }
    }

    /// The lock, if nobody holds it.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T, H>> {
        let free = self.word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        free.then(|| SpinGuard { spin: self })
    }

    /// Where the value is, whoever holds the lock.
    pub fn peek(&self) -> *const T {
        self.value.get()
    }

    /// Makes the lock free again in a child process, where its holder does not exist.
    pub fn reset_after_fork(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

#[inline]
pub fn lock_word<H: Host>(word: &AtomicU32) {
    let mut tries = 0;
    while word.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        tries += 1;
        H::relax(tries);
    }
}

#[inline]
pub fn unlock_word(word: &AtomicU32) {
    word.store(0, Ordering::Release);
}

pub struct SpinGuard<'a, T, H> {
    spin: &'a Spin<T, H>,
}

impl<T, H> Deref for SpinGuard<'_, T, H> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.spin.value.get() }
    }
}

impl<T, H> DerefMut for SpinGuard<'_, T, H> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.spin.value.get() }
    }
}

impl<T, H> Drop for SpinGuard<'_, T, H> {
    fn drop(&mut self) {
        unlock_word(&self.spin.word);
    }
}
