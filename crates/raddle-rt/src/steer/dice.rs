//! The random numbers that a steered program is given.
//!
//! Where the seed decides everything, the kernel's randomness may not: hash tables that are keyed with it (Rust's, Python's)
//! would be walked in another order in every run. So `getrandom` gives numbers from a sequence that is the same in every run.
//! It does not depend on the seed, which chooses schedules and nothing else: a kept schedule has no seed, and its replay has
//! to see the same numbers. In use when the program's own clock is ([`super::clock`]), for the same reasons.

use core::sync::atomic::{AtomicU64, Ordering};
use raddle_sched::random::{STRIDE, splitmix};

static DRAWN: AtomicU64 = AtomicU64::new(0);

/// A run begins.
pub fn start() {
    DRAWN.store(0, Ordering::Relaxed);
}

/// The next bytes.
pub fn fill(bytes: &mut [u8]) {
    for piece in bytes.chunks_mut(size_of::<u64>()) {
        let number = splitmix(DRAWN.fetch_add(STRIDE, Ordering::Relaxed).wrapping_add(STRIDE));
        piece.copy_from_slice(&number.to_le_bytes()[..piece.len()]);
    }
}
