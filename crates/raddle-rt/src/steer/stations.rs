//! Memory for the threads of a steered run: what [`raddle_sched`] keeps of them, and where each of them sleeps.
//!
//! The tables are large and mostly untouched, so they start as zeroes and cost neither space in the program's file nor memory.

use crate::thread::Thread;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use raddle_sched::roster::ENTRIES_MAX;
use raddle_sched::{Entry, Note, Tables, ThreadIx};

/// What a thread that waits for its turn has been told, or says.
pub mod grant {
    pub const NONE: u32 = 0;
    /// It is the thread's turn.
    pub const GIVEN: u32 = 1;
    /// The thread sleeps, or is about to.
    pub const ASLEEP: u32 = 2;
}

/// Where a thread waits for its turn. Others look here without the scheduler's lock.
pub struct Station {
    thread: AtomicPtr<Thread>,
    /// Set by the chooser, awaited by the thread.
    pub grant: AtomicU32,
    /// Processor time of the thread when it was last seen to do something, or was cancelled.
    pub cpu_ms: AtomicU64,
}

impl Station {
    /// The thread whose station this is.
    pub fn thread(&self) -> &Thread {
        // SAFETY: set before the thread is listed; structures of threads are never unmapped.
        unsafe { &*self.thread.load(Ordering::Relaxed) }
    }
}

struct Memory {
    entries: UnsafeCell<[Entry; ENTRIES_MAX]>,
    living: UnsafeCell<[ThreadIx; ENTRIES_MAX]>,
    notes: UnsafeCell<[Note; ENTRIES_MAX]>,
    stations: [Station; ENTRIES_MAX],
}

// SAFETY: the cells are given to the one scheduler, which lies under its lock; stations are atomic.
unsafe impl Sync for Memory {}

// SAFETY: zeroes are entries that were never used, empty notes, null pointers and numbers.
static MEMORY: Memory = unsafe { core::mem::zeroed() };

/// The tables of the scheduler.
///
/// # Safety
/// Called once in a process.
pub unsafe fn tables() -> Tables<'static> {
    // SAFETY: by contract there is no other reference.
    unsafe {
        Tables {
            entries: &mut *MEMORY.entries.get(),
            living: &mut *MEMORY.living.get(),
            notes: &mut *MEMORY.notes.get(),
        }
    }
}

#[inline]
pub fn station(ix: ThreadIx) -> &'static Station {
    &MEMORY.stations[ix.at()]
}

/// A thread has its place now.
pub fn occupy(ix: ThreadIx, thread: &Thread) {
    let station = station(ix);
    station.thread.store(core::ptr::from_ref(thread).cast_mut(), Ordering::Relaxed);
    station.grant.store(grant::NONE, Ordering::Relaxed);
    station.cpu_ms.store(0, Ordering::Relaxed);
}
