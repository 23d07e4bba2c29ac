//! Signals that arrived while their thread could not handle them.
//!
//! A signal that comes while the thread is inside the runtime waits here: the handler might use the very lock or buffer that was
//! interrupted. The places are few; a signal takes one and leaves it when it is handled. Another signal may interrupt whoever is at work
//! here at any point, so places are taken and left one by one, by compare-exchange, and everything that a handler may change under
//! its thread's hands is atomic. No other thread looks.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Signals that can wait at once.
pub const DEFERRED_MAX: usize = 8;

#[derive(Clone, Copy)]
pub struct Deferred {
    pub signal: i32,
    /// Which of its thread's signals that had to wait this is.
    pub order: u32,
    pub info: libc::siginfo_t,
    pub context: libc::ucontext_t,
}

/// What stands in the place of a signal's number: nobody waits here, or one is just being written.
const EMPTY: c_int = 0;
const COMING: c_int = -1;

pub struct PendingSignals {
    count: AtomicU32,
    order: AtomicU32,
    places: AtomicUsize,
    /// Signals that wait until the handlers that run now have ended, as bits.
    held: AtomicU64,
    /// The thread is in a handler that has interrupted it.
    pub within: Cell<bool>,
    /// It sends itself a signal.
    pub raises: Cell<bool>,
}

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn state(place: *mut Deferred) -> &'static AtomicI32 {
    // SAFETY: places are never unmapped, and this word is only ever touched through such references.
    unsafe { AtomicI32::from_ptr(&raw mut (*place).signal) }
}

impl PendingSignals {
    pub const fn idle() -> PendingSignals {
        PendingSignals {
            count: AtomicU32::new(0),
            order: AtomicU32::new(0),
            places: AtomicUsize::new(0),
            held: AtomicU64::new(0),
            within: Cell::new(false),
            raises: Cell::new(false),
        }
    }

    /// Gives them room.
    ///
    /// # Safety
    /// [`DEFERRED_MAX`] zeroed places from `start` on belong to this thread for ever.
    pub unsafe fn place(&self, start: *mut Deferred) {
        self.places.store(start as usize, Ordering::Relaxed);
    }

    /// For a thread that is about to be created: nobody waits, nothing is held back.
    pub fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.places().for_each(|place| state(place).store(EMPTY, Ordering::Relaxed));
        self.held.store(0, Ordering::Relaxed);
        self.within.set(false);
        self.raises.set(false);
    }

    fn places(&self) -> impl Iterator<Item = *mut Deferred> + use<> {
        let start = self.places.load(Ordering::Relaxed) as *mut Deferred;
        let count = if start.is_null() { 0 } else { DEFERRED_MAX };
        // SAFETY: `place` promised that many.
        (0..count).map(move |at| unsafe { start.add(at) })
    }

    /// Does any signal wait, whether it may be handled now or not?
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Does this signal wait already?
    pub fn waits(&self, signal: c_int) -> bool {
        self.places().any(|place| state(place).load(Ordering::Acquire) == signal)
    }

    /// Lets a signal wait. False: there is no place left.
    ///
    /// # Safety
    /// Called from a handler, with what the kernel passed to it.
    pub unsafe fn defer(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> bool {
        let free = self.places().find(|&place| {
            state(place).compare_exchange(EMPTY, COMING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        let Some(place) = free else { return false };
        // SAFETY: the exchange made the place ours; the kernel's descriptions are valid by contract.
        unsafe {
            (&raw mut (*place).order).write(self.order.fetch_add(1, Ordering::Relaxed));
            (&raw mut (*place).info).copy_from(info, 1);
            (&raw mut (*place).context).copy_from(context.cast(), 1);
        }
        state(place).store(signal, Ordering::Release);
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The signals that wait and may be handled now.
    fn ready(&self) -> impl Iterator<Item = *mut Deferred> + use<> {
        let held = self.held.load(Ordering::Relaxed);
        self.places().filter(move |&place| {
            let signal = state(place).load(Ordering::Acquire);
            signal > 0 && held & bit(signal) == 0
        })
    }

    /// Does a signal wait that may be handled now?
    pub fn is_ready(&self) -> bool {
        self.any() && self.ready().next().is_some()
    }

    /// The signal that has waited longest, or the one with the smallest number.
    pub fn take(&self, by_number: bool) -> Option<Deferred> {
        if !self.any() {
            return None;
        }
        let rank = |place: &*mut Deferred| {
            // SAFETY: a signal waits there, so the place has been filled.
            unsafe { if by_number { (**place).signal as u32 } else { (**place).order } }
        };
        let place = self.ready().min_by_key(rank)?;
        // SAFETY: as above; nobody fills it again before it is empty.
        let taken: Deferred = unsafe { *place };
        self.count.fetch_sub(1, Ordering::Relaxed);
        state(place).store(EMPTY, Ordering::Release);
        Some(taken)
    }

    /// Must this signal wait until a handler has ended?
    pub fn holds(&self, signal: c_int) -> bool {
        self.held.load(Ordering::Relaxed) & bit(signal) != 0
    }

    /// These signals are held back as well from now on; what was held before.
    pub fn hold(&self, signals: u64) -> u64 {
        let before = self.held.load(Ordering::Relaxed);
        self.held.store(before | signals, Ordering::Relaxed);
        before
    }

    /// Only these are held back from now on.
    pub fn hold_only(&self, signals: u64) {
        self.held.store(signals, Ordering::Relaxed);
    }
}
