//! What the tests share: a host with the heap's memory, a repeatable source of random numbers, how many cases to run.

#![allow(dead_code)] // Each test takes what it needs.

use raddle_hb::Host;
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::Mutex;

pub struct Heap;

struct Mapped(#[allow(dead_code)] NonNull<u8>);
// SAFETY: only kept, so that tools do not take it for lost.
unsafe impl Send for Mapped {}

static MAPPED: Mutex<Vec<Mapped>> = Mutex::new(Vec::new());

// SAFETY: zeroed, aligned, never freed.
unsafe impl Host for Heap {
    fn map(bytes: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, 64).ok()?;
        // SAFETY: the layout has a size.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        MAPPED.lock().unwrap().push(Mapped(memory));
        Some(memory)
    }

    fn relax(_tries: u32) {
        std::thread::yield_now();
    }
}

/// A small generator (SplitMix64): a failure is repeated by its number.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// How many cases of a random test: `RADDLE_TEST_CASES`, or as many as a second allows, or few where Miri interprets them.
pub fn cases(usual: u64) -> u64 {
    if cfg!(miri) {
        return (usual / 2000).clamp(1, 8);
    }
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
