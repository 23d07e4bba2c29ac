//! Vector clocks.
//!
//! A clock says for every thread slot up to which epoch its accesses are known (Lamport 1978, Fidge, Mattern). Threads
//! have one of full size; locks, atomics and other objects have one that is only as wide as the highest slot in use was
//! when it was made, because most programs have few threads and many objects.
//!
//! # Generations
//!
//! When the epochs of a slot are used up and the slot is free, it starts again at zero ([`super::slots`]). A clock that
//! was written before must then not be believed about that slot. So every clock carries the *generation* in which it
//! was last put right, and each slot the generation in which it was last started over; before a clock is used, entries
//! of slots that were started over since are set to zero. Zero is right: whatever the slot had written into shadow cells
//! was wiped when it was started over, so there is nothing left that could be known or not known.
//!
//! Epochs have 14 bits, so the signed 16-bit maximum of the processor's first vector instructions is the right join.

use crate::arena;
use crate::spin::Spin;
use core::arch::x86_64::{__m128i, _mm_load_si128, _mm_max_epi16, _mm_store_si128};
use core::sync::atomic::{AtomicU32, Ordering};

pub const SLOTS: usize = 256;
/// Entries that one vector instruction handles.
const LANES: usize = 8;
/// Smallest width of a clock.
const WIDTH_MIN: u32 = 16;

pub type Epoch = u16;

/// Number of times that slots were started over.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Generation in which a slot was last started over.
static RESTARTED: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];
/// Slots below this have been used; a power of two.
static WIDTH: AtomicU32 = AtomicU32::new(WIDTH_MIN);

pub fn generation() -> u32 {
    GENERATION.load(Ordering::Acquire)
}

/// Begins a new generation, in which the given slots start over. The caller holds the slot table.
pub fn restart(slots: impl Iterator<Item = u8>) {
    let next = GENERATION.load(Ordering::Relaxed) + 1;
    for slot in slots {
        RESTARTED[slot as usize].store(next, Ordering::Relaxed);
    }
    GENERATION.store(next, Ordering::Release);
}

/// Generation in which a slot was last started over.
pub fn restarted(slot: u32) -> u32 {
    RESTARTED[slot as usize].load(Ordering::Relaxed)
}

/// A slot is in use: clocks must reach it.
pub fn widen(slot: u32) {
    let needed = (slot + 1).next_power_of_two();
    WIDTH.fetch_max(needed, Ordering::Relaxed);
}

#[inline]
pub fn width() -> usize {
    WIDTH.load(Ordering::Relaxed) as usize
}

#[cold]
fn put_right(times: &mut [Epoch], from: u32) {
    for (slot, time) in times.iter_mut().enumerate() {
        if RESTARTED[slot].load(Ordering::Relaxed) > from {
            *time = 0;
        }
    }
}

/// A clock of full size, for threads.
#[repr(C, align(64))]
pub struct Clock {
    pub times: [Epoch; SLOTS],
    generation: u32,
    /// Nothing is known: every entry is zero.
    pub empty: bool,
}

impl Clock {
    pub const EMPTY: Clock = Clock { times: [0; SLOTS], generation: 0, empty: true };

    /// Notes that a slot has come to an epoch.
    pub fn set(&mut self, slot: u8, epoch: Epoch) {
        self.refresh();
        self.times[usize::from(slot)] = epoch;
        self.empty = false;
    }

    pub fn clear(&mut self) {
        self.times = [0; SLOTS];
        self.generation = generation();
        self.empty = true;
    }

    #[inline]
    pub fn refresh(&mut self) {
        let now = generation();
        if self.generation != now {
            put_right(&mut self.times, self.generation);
            self.generation = now;
        }
    }

    pub fn copy_from(&mut self, other: &mut Clock) {
        other.refresh();
        let width = width();
        // SAFETY: both are aligned and of full size.
        unsafe { copy(self.times.as_mut_ptr(), other.times.as_ptr(), width) };
        self.generation = other.generation;
        self.empty = other.empty;
    }

    pub fn join(&mut self, other: &mut Clock) {
        if other.empty {
            return;
        }
        self.refresh();
        other.refresh();
        self.empty = false;
        // SAFETY: both are aligned and of full size.
        unsafe { join(self.times.as_mut_ptr(), other.times.as_ptr(), width()) };
    }
}

/// `to := max(to, from)`, entry by entry.
///
/// # Safety
/// Both are valid for `width` entries, a multiple of [`LANES`], and aligned to 16 bytes.
#[inline]
unsafe fn join(to: *mut Epoch, from: *const Epoch, width: usize) {
    let (to, from) = (to.cast::<__m128i>(), from.cast::<__m128i>());
    for at in 0..width / LANES {
        // SAFETY: by contract.
        unsafe {
            let merged = _mm_max_epi16(_mm_load_si128(to.add(at)), _mm_load_si128(from.add(at)));
            _mm_store_si128(to.add(at), merged);
        }
    }
}

/// `to := from`. Clocks are short: a call of `memcpy` would take longer than the copying.
///
/// # Safety
/// As [`join`].
#[inline]
unsafe fn copy(to: *mut Epoch, from: *const Epoch, width: usize) {
    let (to, from) = (to.cast::<__m128i>(), from.cast::<__m128i>());
    let mut at = 0;
    loop {
        // SAFETY: by contract. The width is never zero. An empty instruction keeps the compiler from making it a call.
        unsafe {
            _mm_store_si128(to.add(at), _mm_load_si128(from.add(at)));
            core::arch::asm!("", options(nostack, preserves_flags));
        }
        at += 1;
        if at == width / LANES {
            return;
        }
    }
}

/// The clock of an object: nothing until the first release.
#[repr(C)]
pub struct ObjectClock {
    times: *mut Epoch,
    width: u16,
    generation: u32,
}

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

    fn refresh(&mut self) {
        let now = generation();
        if self.generation != now {
            let from = self.generation;
            put_right(self.entries(), from);
            self.generation = now;
        }
    }

    /// Makes the clock wide enough; false when there is no memory, and the clock stays as it is.
    fn reserve(&mut self, needed: usize) -> bool {
        if usize::from(self.width) >= needed {
            return true;
        }
        let Some(block) = Blocks::take(needed) else { return false };
        let times = block.cast::<Epoch>();
        // SAFETY: the block is large enough for `needed` entries; the old one for its width, which is smaller.
        unsafe {
            core::ptr::write_bytes(times, 0, needed);
            if !self.times.is_null() {
                core::ptr::copy_nonoverlapping(self.times, times, usize::from(self.width));
            }
        }
        if self.times.is_null() {
            self.generation = generation();
        }
        self.free_block();
        self.times = times;
        self.width = needed as u16;
        true
    }

    fn free_block(&mut self) {
        if !self.times.is_null() {
            Blocks::give_back(self.times.cast(), usize::from(self.width));
        }
    }

    pub fn clear(&mut self) {
        self.free_block();
        *self = ObjectClock::NONE;
    }

    /// What the object knows becomes known to a thread.
    pub fn acquire_into(&mut self, clock: &mut Clock) {
        if self.times.is_null() {
            return;
        }
        self.refresh();
        clock.refresh();
        clock.empty = false;
        // SAFETY: an object's clock is never wider than a thread's, and widths are multiples of LANES.
        unsafe { join(clock.times.as_mut_ptr(), self.times, usize::from(self.width)) };
    }

    /// What a thread knows becomes known to the object, too.
    pub fn release_from(&mut self, clock: &mut Clock) {
        if clock.empty || !self.reserve(width()) {
            return;
        }
        self.refresh();
        clock.refresh();
        // SAFETY: reserved.
        unsafe { join(self.times, clock.times.as_ptr(), usize::from(self.width)) };
    }

    /// Keeps the first epoch that is noted for each slot.
    pub fn first_at(&mut self, slot: u8, epoch: Epoch) {
        if !self.reserve(width()) {
            return;
        }
        self.refresh();
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
    pub fn assign_from(&mut self, clock: &mut Clock) {
        if clock.empty {
            return self.clear();
        }
        if !self.reserve(width()) {
            return;
        }
        clock.refresh();
        // SAFETY: reserved, and a thread's clock is at least as wide as an object's.
        unsafe { copy(self.times, clock.times.as_ptr(), usize::from(self.width)) };
        self.generation = clock.generation;
    }

    /// The object knows what the other one knows, and nothing else.
    pub fn copy_from(&mut self, other: &mut ObjectClock) {
        let width = usize::from(other.width);
        if other.times.is_null() || !self.reserve(width) {
            return self.clear();
        }
        other.refresh();
        self.entries()[width..].fill(0);
        // SAFETY: reserved.
        unsafe { copy(self.times, other.times, width) };
        self.generation = other.generation;
    }

    pub fn copy(&mut self) -> ObjectClock {
        let mut copy = ObjectClock::NONE;
        if !self.times.is_null() && copy.reserve(usize::from(self.width)) {
            self.refresh();
            // SAFETY: reserved.
            unsafe { self::copy(copy.times, self.times, usize::from(self.width)) };
            copy.generation = self.generation;
        }
        copy
    }
}

/// Memory for objects' clocks: blocks by width, never given back to the system.
struct Blocks {
    /// First free block of each class; the first word of a free block points to the next.
    free: [*mut u8; CLASSES],
    chunk: *mut u8,
    left: usize,
}

// SAFETY: only used under the lock.
unsafe impl Send for Blocks {}

/// 16, 32, 64, 128, 256 entries.
const CLASSES: usize = 5;
const CHUNK_BYTES: usize = 1 << 20;

static BLOCKS: Spin<Blocks> =
    Spin::new(Blocks { free: [core::ptr::null_mut(); CLASSES], chunk: core::ptr::null_mut(), left: 0 });

impl Blocks {
    fn class(width: usize) -> usize {
        (width / WIDTH_MIN as usize).trailing_zeros() as usize
    }

    fn take(width: usize) -> Option<*mut u8> {
        let (class, bytes) = (Blocks::class(width), width * size_of::<Epoch>());
        let mut blocks = BLOCKS.lock();
        let first = blocks.free[class];
        if !first.is_null() {
            // SAFETY: a free block holds the address of the next one.
            blocks.free[class] = unsafe { *first.cast::<*mut u8>() };
            return Some(first);
        }
        if blocks.left < bytes {
            blocks.chunk = arena::map(CHUNK_BYTES)?;
            blocks.left = CHUNK_BYTES;
        }
        let block = blocks.chunk;
        // SAFETY: inside the chunk.
        blocks.chunk = unsafe { block.add(bytes) };
        blocks.left -= bytes;
        Some(block)
    }

    fn give_back(block: *mut u8, width: usize) {
        let class = Blocks::class(width);
        let mut blocks = BLOCKS.lock();
        // SAFETY: the block is large enough for a pointer and nobody uses it any more.
        unsafe { *block.cast::<*mut u8>() = blocks.free[class] };
        blocks.free[class] = block;
    }
}

pub fn reset_after_fork() {
    BLOCKS.reset_after_fork();
}
