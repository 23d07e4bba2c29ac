//! What a thread knows of the others, and what it knew at its fences.

use crate::clock::{Clock, Generations};
use crate::domain::Domain;
use crate::host::Host;
use crate::memory_order::MemoryOrder;
use crate::segment::Segment;

#[repr(C)]
pub struct ThreadClocks {
    /// What the thread knows. Its own entry is its current epoch.
    pub clock: Clock,
    /// What it knew at its last release fence; passed on by relaxed stores.
    pub fence_release: Clock,
    /// What it read relaxed; known from the next acquire fence on.
    pub fence_acquire: Clock,
    /// `seq_cst` fences before the thread's last one, `seq_cst` stores before that, fences before its last `seq_cst` load
    /// (`S_F`, `S_W`, `S_R` of [`crate::weak`]).
    pub(crate) sc_fence: Clock,
    pub(crate) sc_write: Clock,
    pub(crate) sc_read: Clock,
}

impl ThreadClocks {
    pub const EMPTY: ThreadClocks = ThreadClocks {
        clock: Clock::EMPTY,
        fence_release: Clock::EMPTY,
        fence_acquire: Clock::EMPTY,
        sc_fence: Clock::EMPTY,
        sc_write: Clock::EMPTY,
        sc_read: Clock::EMPTY,
    };

    /// A new thread: it knows nothing yet.
    pub fn clear(&mut self, generations: &Generations) {
        for clock in [
            &mut self.clock,
            &mut self.fence_release,
            &mut self.fence_acquire,
            &mut self.sc_fence,
            &mut self.sc_write,
            &mut self.sc_read,
        ] {
            clock.clear(generations);
        }
    }

    /// The thread is in this segment now: it knows itself up to there.
    #[inline]
    pub fn enter(&mut self, segment: Segment) {
        self.clock.times[usize::from(segment.slot)] = segment.epoch;
        self.clock.empty = false;
    }

    /// Makes the clocks that stores are compared with say nothing about slots that have started over.
    pub(crate) fn refresh(&mut self, generations: &Generations) {
        for clock in [&mut self.clock, &mut self.sc_fence, &mut self.sc_write, &mut self.sc_read] {
            clock.refresh(generations);
        }
    }

    /// A fence. `weak`: loads may read older stores, so `seq_cst` fences matter among themselves. The caller begins a new
    /// segment after a fence that releases.
    pub fn fence<H: Host>(&mut self, domain: &Domain<H>, segment: Segment, order: MemoryOrder, weak: bool) {
        if order == MemoryOrder::SeqCst && weak {
            crate::weak::fence(self, domain, segment);
        }
        if order.acquires() {
            self.clock.join(&domain.generations, &mut self.fence_acquire);
        }
        if order.releases() {
            self.fence_release.copy_from(&domain.generations, &mut self.clock);
        }
    }
}
