//! Vector clocks of threads.
//!
//! A clock says for every thread slot up to which epoch its accesses are known (Lamport 1978, Fidge, Mattern). Threads
//! have one of full size; locks, atomics and other objects have one that is only as wide as the highest slot in use was
//! when it was made ([`crate::object_clock`]), because most programs have few threads and many objects.
//!
//! # Generations
//!
//! When the epochs of a slot are used up and the slot is free, it starts again at zero ([`crate::slots`]). A clock that
//! was written before must then not be believed about that slot. So every clock carries the *generation* in which it
//! was last put right, and each slot the generation in which it was last started over; before a clock is used, entries
//! of slots that were started over since are set to zero. Zero is right: whatever the slot had written into shadow cells
//! was wiped when it was started over, so there is nothing left that could be known or not known.
//!
//! Epochs have 14 bits, so the signed 16-bit maximum of the processor's first vector instructions is the right join.

use core::arch::x86_64::{__m128i, _mm_load_si128, _mm_max_epi16, _mm_store_si128};
use core::sync::atomic::{AtomicU32, Ordering};

/// Slots are named by eight bits of a shadow entry; slot 0 means none.
pub const SLOTS: usize = 256;
/// Entries that one vector instruction handles.
const LANES: usize = 8;
/// Smallest width of a clock: two vector instructions, and enough for most programs.
pub const WIDTH_MIN: u32 = 16;

pub type Epoch = u16;

/// Which slots were started over when, and how many have ever been used.
pub struct Generations {
    /// Number of times that slots were started over.
    current: AtomicU32,
    /// Generation in which a slot was last started over.
    restarted: [AtomicU32; SLOTS],
    /// Slots below this have been used; a power of two.
    width: AtomicU32,
}

impl Generations {
    pub const fn new() -> Generations {
        Generations {
            current: AtomicU32::new(0),
            restarted: [const { AtomicU32::new(0) }; SLOTS],
            width: AtomicU32::new(WIDTH_MIN),
        }
    }

    #[inline]
    pub fn current(&self) -> u32 {
        self.current.load(Ordering::Acquire)
    }

    /// Begins a new generation, in which the given slots start over. The caller holds the slot table.
    pub fn restart(&self, slots: impl Iterator<Item = u8>) {
        let next = self.current.load(Ordering::Relaxed) + 1;
        for slot in slots {
            self.restarted[usize::from(slot)].store(next, Ordering::Relaxed);
        }
        self.current.store(next, Ordering::Release);
    }

    /// Generation in which a slot was last started over.
    pub fn restarted(&self, slot: u8) -> u32 {
        self.restarted[usize::from(slot)].load(Ordering::Relaxed)
    }

    /// A slot is in use: clocks must reach it.
    pub fn widen(&self, slot: u8) {
        let needed = (u32::from(slot) + 1).next_power_of_two();
        self.width.fetch_max(needed, Ordering::Relaxed);
    }

    #[inline]
    pub fn width(&self) -> usize {
        self.width.load(Ordering::Relaxed) as usize
    }

    /// Zeroes what a clock of generation `from` says about slots that have started over since.
    #[cold]
    pub fn put_right(&self, times: &mut [Epoch], from: u32) {
        for (slot, time) in times.iter_mut().enumerate() {
            if self.restarted[slot].load(Ordering::Relaxed) > from {
                *time = 0;
            }
        }
    }
}

impl Default for Generations {
    fn default() -> Self {
        Generations::new()
    }
}

/// A clock of full size, for threads.
#[repr(C, align(64))]
pub struct Clock {
    pub times: [Epoch; SLOTS],
    pub(crate) generation: u32,
    /// Nothing is known: every entry is zero.
    pub empty: bool,
}

impl Clock {
    pub const EMPTY: Clock = Clock { times: [0; SLOTS], generation: 0, empty: true };

    /// Notes that a slot has come to an epoch.
    pub fn set(&mut self, generations: &Generations, slot: u8, epoch: Epoch) {
        self.refresh(generations);
        self.times[usize::from(slot)] = epoch;
        self.empty = false;
    }

    pub fn clear(&mut self, generations: &Generations) {
        self.times = [0; SLOTS];
        self.generation = generations.current();
        self.empty = true;
    }

    #[inline]
    pub fn refresh(&mut self, generations: &Generations) {
        let now = generations.current();
        if self.generation != now {
            generations.put_right(&mut self.times, self.generation);
            self.generation = now;
        }
    }

    pub fn copy_from(&mut self, generations: &Generations, other: &mut Clock) {
        other.refresh(generations);
        let width = generations.width();
        // SAFETY: both are aligned and of full size.
        unsafe { copy(self.times.as_mut_ptr(), other.times.as_ptr(), width) };
        self.generation = other.generation;
        self.empty = other.empty;
    }

    pub fn join(&mut self, generations: &Generations, other: &mut Clock) {
        if other.empty {
            return;
        }
        self.refresh(generations);
        other.refresh(generations);
        self.empty = false;
        // SAFETY: both are aligned and of full size.
        unsafe { join(self.times.as_mut_ptr(), other.times.as_ptr(), generations.width()) };
    }
}

/// `to := max(to, from)`, entry by entry.
///
/// # Safety
/// Both are valid for `width` entries, a multiple of [`LANES`], and aligned to 16 bytes.
#[inline]
pub(crate) unsafe fn join(to: *mut Epoch, from: *const Epoch, width: usize) {
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
pub(crate) unsafe fn copy(to: *mut Epoch, from: *const Epoch, width: usize) {
    let (to, from) = (to.cast::<__m128i>(), from.cast::<__m128i>());
    let mut at = 0;
    loop {
        // SAFETY: by contract. The width is never zero.
        unsafe { _mm_store_si128(to.add(at), _mm_load_si128(from.add(at))) };
        // An empty instruction keeps the compiler from making the loop a call.
        #[cfg(not(miri))]
        // SAFETY: does nothing.
        unsafe {
            core::arch::asm!("", options(nostack, preserves_flags));
        }
        at += 1;
        if at == width / LANES {
            return;
        }
    }
}
