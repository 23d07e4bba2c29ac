//! Locks for the runtime's own tables, and what [`raddle_hb`] needs of the process that it runs in.

use crate::{arch, arena, real};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use raddle_hb::Host;
pub use raddle_hb::spin::unlock_word;

/// The tested process: memory from private mappings, patience from the kernel.
pub struct Process;

/// After this many tries the holder has probably lost its processor: let it run.
const TRIES_BEFORE_YIELD: u32 = 64;

// SAFETY: mappings are zeroed, page-aligned, ours, and never unmapped.
unsafe impl Host for Process {
    fn map(bytes: usize) -> Option<NonNull<u8>> {
        arena::map(bytes).and_then(NonNull::new)
    }

    #[inline]
    fn relax(tries: u32) {
        if tries.is_multiple_of(TRIES_BEFORE_YIELD) {
            real::yield_now();
        } else {
            arch::pause();
        }
    }
}

pub type Spin<T> = raddle_hb::spin::Spin<T, Process>;

#[inline]
pub fn lock_word(word: &AtomicU32) {
    raddle_hb::spin::lock_word::<Process>(word);
}

pub type SpinGuard<'a, T> = raddle_hb::spin::SpinGuard<'a, T, Process>;

/// The lock, unless its holder keeps it for very long: in a handler that may have interrupted the holder.
pub fn lock_briefly<T>(spin: &Spin<T>) -> Option<SpinGuard<'_, T>> {
    const TRIES: u32 = 1_000;
    for _ in 0..TRIES {
        if let Some(guard) = spin.try_lock() {
            return Some(guard);
        }
        real::yield_now();
    }
    None
}
