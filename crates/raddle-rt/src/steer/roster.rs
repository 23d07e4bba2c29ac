//! The threads of a steered run: one entry each, in order of creation, and the list of those that still live.
//!
//! Entries are never used twice, because schedules and journals name threads by them. What is asked at every decision is
//! asked of the living only, so a program that creates thousands of threads one after the other does not get slower.
//!
//! The table is large and mostly untouched, so it starts as zeroes and costs neither space in the program's file nor memory.

use super::{Request, schedule};
use crate::thread::Thread;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use raddle_wire::step;

/// Threads that one steered run may create in all: as many as a step word can name.
pub const ENTRIES_MAX: usize = 1 << 16;

/// In the order of `raddle_wire::region::PHASES`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No such thread.
    Free,
    /// Between visible operations.
    Running,
    /// At a visible operation, waiting for its turn.
    Waiting,
    /// Its turn.
    Acting,
    /// Its operation would block, until `waits_for` changes.
    Aside,
    /// As `Aside`, but it may also give up.
    AsideTimed,
    /// Asleep in the kernel, outside the runtime's reach.
    Away,
    /// At a stop point.
    Parked,
    Ended,
}

/// What a thread that waits for its turn has been told, or says.
pub mod grant {
    pub const NONE: u32 = 0;
    /// It is the thread's turn.
    pub const GIVEN: u32 = 1;
    /// The thread sleeps, or is about to.
    pub const ASLEEP: u32 = 2;
}

pub struct Entry {
    pub phase: Phase,
    pub thread: *mut Thread,
    pub index: u32,
    pub os_tid: u32,
    pub request: Request,
    /// Set by the chooser, awaited by the thread.
    pub grant: AtomicU32,
    /// Found on a cycle of waiting threads.
    pub on_cycle: bool,
    /// Condition variable or futex word that the thread waits on, and whether it has been woken.
    pub waits_on: usize,
    pub woken: bool,
    pub ticket: u64,
    pub cancelled: bool,
    /// Passed over although it was awake.
    pub lost: bool,
    /// Processor time of the thread when it was last seen to do something, or was cancelled.
    pub cpu_ms: u64,
    /// The operation of this turn did not succeed.
    pub failed: bool,
    /// The thread let others go first.
    pub yielded: bool,
    pub priority: u64,
    /// `pos`: the priority belongs to the operation that the thread is at.
    pub drawn: bool,
    /// `surw`: interesting operations that the thread and its future descendants still have, as far as is known.
    pub weight: u64,
    /// Index into the schedule's thread table, or `NOBODY`.
    pub schedule_thread: u32,
    pub access: schedule::ParkedAccess,
}

pub const NOBODY: u32 = u32::MAX;

impl Entry {
    pub const fn new() -> Entry {
        Entry {
            phase: Phase::Free,
            thread: core::ptr::null_mut(),
            index: 0,
            os_tid: 0,
            request: Request { kind: step::NONE, object: 0, pc: 0 },
            grant: AtomicU32::new(grant::NONE),
            on_cycle: false,
            waits_on: 0,
            woken: false,
            ticket: 0,
            cancelled: false,
            lost: false,
            cpu_ms: 0,
            failed: false,
            yielded: false,
            priority: 0,
            drawn: false,
            weight: 0,
            schedule_thread: NOBODY,
            access: schedule::ParkedAccess::new(),
        }
    }

    /// The thread is cancelled where it is, and runs to its clean-up.
    pub fn strike(&mut self) {
        // SAFETY: a listed thread's structure stays valid.
        let thread = unsafe { &*self.thread };
        self.phase = Phase::Running;
        self.cancelled = false;
        thread.uncancellable.store(true, Ordering::Relaxed);
        crate::interpose::cancel::strike(thread.pthread.load(Ordering::Relaxed));
    }

    /// Can the thread be chosen?
    pub fn eligible(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Waiting | Phase::AsideTimed | Phase::Acting)
    }
}

struct Table {
    entries: UnsafeCell<[Entry; ENTRIES_MAX]>,
    live: UnsafeCell<[u32; ENTRIES_MAX]>,
}

// SAFETY: reached through the one `Roster`, which lies under the scheduler's lock.
unsafe impl Sync for Table {}

// SAFETY: zeroes are a free entry (`Phase::Free`), null pointers and numbers.
static TABLE: Table = unsafe { core::mem::zeroed() };

/// All threads. There is one, in the scheduler's state.
pub struct Roster {
    used: usize,
    live: usize,
}

impl Roster {
    pub const fn new() -> Roster {
        Roster { used: 0, live: 0 }
    }

    /// Entries ever used.
    pub fn used(&self) -> usize {
        self.used
    }

    /// A place for one more thread. `None`: there is no more.
    pub fn add(&mut self) -> Option<usize> {
        let at = self.used;
        if at >= ENTRIES_MAX {
            return None;
        }
        // SAFETY: see `Table`.
        unsafe { (*TABLE.live.get())[self.live] = at as u32 };
        self.used += 1;
        self.live += 1;
        Some(at)
    }

    /// The thread has ended.
    pub fn bury(&mut self, index: usize) {
        // SAFETY: see `Table`.
        let live = unsafe { &mut (&mut *TABLE.live.get())[..self.live] };
        if let Some(at) = live.iter().position(|&entry| entry as usize == index) {
            live.copy_within(at + 1.., at);
            self.live -= 1;
        }
    }

    pub fn live_count(&self) -> usize {
        self.live
    }

    /// The n-th of the living.
    pub fn nth(&self, n: usize) -> usize {
        // SAFETY: see `Table`.
        unsafe { (*TABLE.live.get())[n] as usize }
    }

    /// The living, in order of creation.
    pub fn living(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.live).map(|n| self.nth(n))
    }

    /// Their entries.
    pub fn people(&self) -> impl Iterator<Item = &Entry> + '_ {
        self.living().map(|index| &self[index])
    }

    pub fn for_each(&mut self, mut change: impl FnMut(&mut Entry)) {
        for n in 0..self.live {
            let index = self.nth(n);
            change(&mut self[index]);
        }
    }
}

impl Default for Roster {
    fn default() -> Self {
        Roster::new()
    }
}

impl Deref for Roster {
    type Target = [Entry];
    fn deref(&self) -> &[Entry] {
        // SAFETY: see `Table`.
        unsafe { &*TABLE.entries.get() }
    }
}

impl DerefMut for Roster {
    fn deref_mut(&mut self) -> &mut [Entry] {
        // SAFETY: see `Table`.
        unsafe { &mut *TABLE.entries.get() }
    }
}
