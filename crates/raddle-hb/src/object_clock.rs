//! Vector clocks of objects: nothing until the first release, then as wide as there are slots in use.

use crate::clock::{self, Clock, Epoch, WIDTH_MIN};
use crate::domain::Domain;
use crate::host::Host;

/// The clock of an object. Whoever uses it holds the object's lock.
#[repr(C)]
pub struct ObjectClock {
    times: *mut Epoch,
    width: u16,
    generation: u32,
}

const _: () = assert!(size_of::<ObjectClock>() == 16);

impl ObjectClock {
    pub const NONE: ObjectClock = ObjectClock { times: core::ptr::null_mut(), width: 0, generation: 0 };

    pub fn is_empty(&self) -> bool {
        self.times.is_null()
    }

    fn entries(&mut self) -> &mut [Epoch] {
        if self.times.is_null() {
            return &mut [];
        }
        // SAFETY: allocated with this width and ours alone under the object's lock.
        unsafe { core::slice::from_raw_parts_mut(self.times, usize::from(self.width)) }
    }

    fn refresh<H: Host>(&mut self, domain: &Domain<H>) {
        let now = domain.generations.current();
        if self.generation != now {
            let from = self.generation;
            domain.generations.put_right(self.entries(), from);
            self.generation = now;
        }
    }

    /// Makes the clock wide enough; false when there is no memory, and the clock stays as it is.
    fn reserve<H: Host>(&mut self, domain: &Domain<H>, needed: usize) -> bool {
        if usize::from(self.width) >= needed {
            return true;
        }
        let Some(block) = domain.blocks.lock().take::<H>(needed) else { return false };
        let times = block.cast::<Epoch>();
        // SAFETY: the block is large enough for `needed` entries; the old one for its width, which is smaller.
        unsafe {
            core::ptr::write_bytes(times, 0, needed);
            if !self.times.is_null() {
                core::ptr::copy_nonoverlapping(self.times, times, usize::from(self.width));
            }
        }
        if self.times.is_null() {
            self.generation = domain.generations.current();
        }
        self.free_block(domain);
        self.times = times;
        self.width = needed as u16;
        true
    }

    fn free_block<H: Host>(&mut self, domain: &Domain<H>) {
        if !self.times.is_null() {
            domain.blocks.lock().give_back(self.times.cast(), usize::from(self.width));
        }
    }

    pub fn clear<H: Host>(&mut self, domain: &Domain<H>) {
        self.free_block(domain);
        *self = ObjectClock::NONE;
    }

    /// What the object knows becomes known to a thread.
    pub fn acquire_into<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        if self.times.is_null() {
            return;
        }
        self.refresh(domain);
        clock.refresh(&domain.generations);
        clock.empty = false;
        // SAFETY: an object's clock is never wider than a thread's, and widths are multiples of LANES.
        unsafe { clock::join(clock.times.as_mut_ptr(), self.times, usize::from(self.width)) };
    }

    /// What a thread knows becomes known to the object, too.
    pub fn release_from<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        if clock.empty || !self.reserve(domain, domain.generations.width()) {
            return;
        }
        self.refresh(domain);
        clock.refresh(&domain.generations);
        // SAFETY: reserved.
        unsafe { clock::join(self.times, clock.times.as_ptr(), usize::from(self.width)) };
    }

    /// Keeps the first epoch that is noted for each slot.
    pub fn first_at<H: Host>(&mut self, domain: &Domain<H>, slot: u8, epoch: Epoch) {
        if !self.reserve(domain, domain.generations.width()) {
            return;
        }
        self.refresh(domain);
        let at = &mut self.entries()[usize::from(slot)];
        if *at == 0 {
            *at = epoch;
        }
    }

    /// Is any of the epochs that are noted known to a thread?
    pub fn any_within(&mut self, clock: &Clock) -> bool {
        self.entries().iter().zip(&clock.times).any(|(&noted, &known)| noted != 0 && noted <= known)
    }

    /// The object knows what the thread knows, and nothing else.
    pub fn assign_from<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        if clock.empty {
            return self.clear(domain);
        }
        if !self.reserve(domain, domain.generations.width()) {
            return;
        }
        clock.refresh(&domain.generations);
        // SAFETY: reserved, and a thread's clock is at least as wide as an object's.
        unsafe { clock::copy(self.times, clock.times.as_ptr(), usize::from(self.width)) };
        self.generation = clock.generation;
    }

    /// The object knows what the other one knows, and nothing else.
    pub fn copy_from<H: Host>(&mut self, domain: &Domain<H>, other: &mut ObjectClock) {
        let width = usize::from(other.width);
        if other.times.is_null() || !self.reserve(domain, width) {
            return self.clear(domain);
        }
        other.refresh(domain);
        self.entries()[width..].fill(0);
        // SAFETY: reserved.
        unsafe { clock::copy(self.times, other.times, width) };
        self.generation = other.generation;
    }

    pub fn copy<H: Host>(&mut self, domain: &Domain<H>) -> ObjectClock {
        let mut copy = ObjectClock::NONE;
        if !self.times.is_null() && copy.reserve(domain, usize::from(self.width)) {
            self.refresh(domain);
            // SAFETY: reserved.
            unsafe { clock::copy(copy.times, self.times, usize::from(self.width)) };
            copy.generation = self.generation;
        }
        copy
    }

    /// What is known of a slot. For tests and reports; everything else compares whole clocks.
    pub fn time_of<H: Host>(&mut self, domain: &Domain<H>, slot: u8) -> Epoch {
        self.refresh(domain);
        self.entries().get(usize::from(slot)).copied().unwrap_or(0)
    }
}

/// Memory for objects' clocks: blocks by width, never given back to the system.
pub struct Blocks {
    /// First free block of each class; the first word of a free block points to the next.
    free: [*mut u8; CLASSES],
    chunk: *mut u8,
    left: usize,
}

// SAFETY: only used under the lock.
unsafe impl Send for Blocks {}

/// 16, 32, 64, 128, 256 entries.
const CLASSES: usize = 5;
/// Bytes that are asked for at once. A multiple of the largest block, so that what is left of a chunk stays aligned.
const CHUNK_BYTES: usize = 1 << 20;

impl Blocks {
    pub const fn new() -> Blocks {
        Blocks { free: [core::ptr::null_mut(); CLASSES], chunk: core::ptr::null_mut(), left: 0 }
    }

    fn class(width: usize) -> usize {
        (width / WIDTH_MIN as usize).trailing_zeros() as usize
    }

    fn take<H: Host>(&mut self, width: usize) -> Option<*mut u8> {
        let (class, bytes) = (Blocks::class(width), width * size_of::<Epoch>());
        let first = self.free[class];
        if !first.is_null() {
            // SAFETY: a free block holds the address of the next one.
            self.free[class] = unsafe { *first.cast::<*mut u8>() };
            return Some(first);
        }
        if self.left < bytes {
            self.chunk = H::map(CHUNK_BYTES)?.as_ptr();
            self.left = CHUNK_BYTES;
        }
        let block = self.chunk;
        // SAFETY: inside the chunk.
        self.chunk = unsafe { block.add(bytes) };
        self.left -= bytes;
        Some(block)
    }

    fn give_back(&mut self, block: *mut u8, width: usize) {
        let class = Blocks::class(width);
        // SAFETY: the block is large enough for a pointer and nobody uses it any more.
        unsafe { *block.cast::<*mut u8>() = self.free[class] };
        self.free[class] = block;
    }
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks::new()
    }
}
