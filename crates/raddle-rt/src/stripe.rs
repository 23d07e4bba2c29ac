//! Locks by address: an atomic operation and the sequence number that records it must happen together, or the order in
//! the trace would not be the order in memory. Addresses share a fixed number of locks.

use crate::spin::{lock_word, unlock_word};
use core::sync::atomic::AtomicU32;

const STRIPES: usize = 1024;

#[repr(align(64))]
struct Stripe(AtomicU32);

static TABLE: [Stripe; STRIPES] = [const { Stripe(AtomicU32::new(0)) }; STRIPES];

pub struct StripeGuard(&'static AtomicU32);

/// Takes the lock of an address. The caller must not be interruptible by signal handlers (see `thread::Busy`).
#[inline]
pub fn lock(address: usize) -> StripeGuard {
    let word = &TABLE[(address >> 3).wrapping_mul(0x9e37_79b9) >> 7 & (STRIPES - 1)].0;
    lock_word(word);
    StripeGuard(word)
}

impl Drop for StripeGuard {
    fn drop(&mut self) {
        unlock_word(self.0);
    }
}

pub fn reset_after_fork() {
    for stripe in &TABLE {
        unlock_word(&stripe.0);
    }
}
