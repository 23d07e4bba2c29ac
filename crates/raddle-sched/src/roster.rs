//! The threads of a steered run: one entry each, in order of creation, and the list of those that still live.
//!
//! Entries are never used twice, because schedules and journals name threads by them. What is asked at every decision is
//! asked of the living only, so a program that creates thousands of threads one after the other does not get slower.
//! The memory is the caller's: a runtime has a large table that starts as zeroes and costs nothing until it is touched.

use crate::Request;
use crate::dependence::Operation;
use crate::replay::ParkedAccess;
use crate::strategy::Note;
use crate::waiting_loop::WaitingLoop;
use core::ops::{Index, IndexMut};
use raddle_wire::step;

/// Threads that one steered run may create in all: as many as a step word can name.
pub const ENTRIES_MAX: usize = 1 << 16;

/// A thread's place in the roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ThreadIx(pub u32);

impl ThreadIx {
    pub const NOBODY: ThreadIx = ThreadIx(u32::MAX);

    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub fn is_nobody(self) -> bool {
        self == ThreadIx::NOBODY
    }
}

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
    /// Its operation would block, until the object of its request changes.
    Aside,
    /// As `Aside`, but it may also give up.
    AsideTimed,
    /// Asleep in the kernel, outside the runtime's reach.
    Away,
    /// At a stop point.
    Parked,
    Ended,
}

/// A thread. All zeroes are an entry that was never used.
pub struct Entry {
    pub(crate) phase: Phase,
    /// The thread's number in traces and reports.
    pub index: u32,
    /// What the kernel calls it: holders of locks are known by that. 0 until it has begun.
    pub os_tid: u32,
    /// Hash of the spawn path.
    pub path: u64,
    /// Visible operations done, when it last arrived or finished.
    pub steps: u32,
    /// Stop points that concern it, as bits.
    pub stops: u32,
    pub request: Request,
    /// The request with everything that is known about it.
    pub operation: Operation,
    pub(crate) waiting_loop: WaitingLoop,
    /// Found on a cycle of waiting threads.
    pub(crate) on_cycle: bool,
    /// Condition variable or futex word that the thread waits on, and whether it has been woken.
    pub(crate) waits_on: usize,
    pub(crate) woken: bool,
    /// When it began to wait, on the clock of tickets.
    pub(crate) waits_since: u64,
    /// Which arrival this was: who came first goes first.
    pub(crate) ticket: u64,
    pub(crate) cancelled: bool,
    /// Passed over although it was awake.
    pub(crate) lost: bool,
    /// The operation of this turn did not succeed.
    pub(crate) failed: bool,
    /// The operation of this turn left its object as it was.
    pub(crate) unchanged: bool,
    /// It has come to a new operation, and nobody has asked which.
    pub(crate) is_news: bool,
    /// The turn under way has been written down already.
    pub(crate) noted: bool,
    /// The thread let others go first.
    pub(crate) yielded: bool,
    /// Index into the schedule's thread table, or `u32::MAX`.
    pub(crate) schedule_thread: u32,
    pub access: ParkedAccess,
}

impl Entry {
    pub const FREE: Entry = Entry {
        phase: Phase::Free,
        index: 0,
        os_tid: 0,
        path: 0,
        steps: 0,
        stops: 0,
        request: Request { kind: step::NONE, object: 0, pc: 0 },
        operation: Operation::new(step::NONE, 0),
        waiting_loop: WaitingLoop::NONE,
        on_cycle: false,
        waits_on: 0,
        woken: false,
        waits_since: 0,
        ticket: 0,
        cancelled: false,
        lost: false,
        failed: false,
        unchanged: false,
        is_news: false,
        noted: false,
        yielded: false,
        schedule_thread: u32::MAX,
        access: ParkedAccess::NONE,
    };

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Was it passed over although it was awake?
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    pub fn has_yielded(&self) -> bool {
        self.yielded
    }

    /// Did the operation of the turn that is being finished fail?
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Did the operation of the turn that is being finished leave its object as it was?
    pub fn is_unchanged(&self) -> bool {
        self.unchanged
    }

    /// Has the turn under way been written down already?
    pub fn is_noted(&self) -> bool {
        self.noted
    }

    /// Can the thread be chosen?
    #[inline]
    pub fn eligible(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Waiting | Phase::AsideTimed | Phase::Acting)
            && !self.waiting_loop.waits()
    }

    /// Does its operation wait for something?
    #[inline]
    pub fn is_aside(&self) -> bool {
        matches!(self.phase, Phase::Aside | Phase::AsideTimed)
    }
}

/// Memory for the roster, and for what strategies keep at each thread. All three have the same length.
pub struct Tables<'t> {
    pub entries: &'t mut [Entry],
    pub living: &'t mut [ThreadIx],
    pub notes: &'t mut [Note],
}

/// All threads of a run.
pub struct Roster<'t> {
    entries: &'t mut [Entry],
    living: &'t mut [ThreadIx],
    used: usize,
    live: usize,
}

impl<'t> Roster<'t> {
    pub const fn empty() -> Roster<'t> {
        Roster { entries: &mut [], living: &mut [], used: 0, live: 0 }
    }

    pub fn new(entries: &'t mut [Entry], living: &'t mut [ThreadIx]) -> Roster<'t> {
        assert_eq!(entries.len(), living.len(), "one place a thread");
        Roster { entries, living, used: 0, live: 0 }
    }

    /// Is this a thread of the run, living or not?
    pub fn knows(&self, ix: ThreadIx) -> bool {
        ix.at() < self.used
    }

    /// A place for one more thread. `None`: there is no more.
    pub(crate) fn add(&mut self) -> Option<ThreadIx> {
        let at = self.used;
        if at >= self.entries.len().min(ENTRIES_MAX) {
            return None;
        }
        let ix = ThreadIx(at as u32);
        self.living[self.live] = ix;
        self.used += 1;
        self.live += 1;
        Some(ix)
    }

    /// The thread has ended: nobody asks for it any more.
    pub(crate) fn remove(&mut self, ix: ThreadIx) {
        let living = &mut self.living[..self.live];
        if let Some(at) = living.iter().position(|&other| other == ix) {
            living.copy_within(at + 1.., at);
            self.live -= 1;
        }
    }

    pub fn live_count(&self) -> usize {
        self.live
    }

    /// The living, in order of creation.
    #[inline]
    pub fn living(&self) -> impl Iterator<Item = ThreadIx> + '_ {
        self.living[..self.live].iter().copied()
    }

    /// Their entries.
    #[inline]
    pub fn living_entries(&self) -> impl Iterator<Item = &Entry> + '_ {
        self.living().map(|ix| &self[ix])
    }

    #[inline]
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(ThreadIx, &mut Entry)) {
        for &ix in &self.living[..self.live] {
            change(ix, &mut self.entries[ix.at()]);
        }
    }
}

impl Index<ThreadIx> for Roster<'_> {
    type Output = Entry;
    #[inline]
    fn index(&self, ix: ThreadIx) -> &Entry {
        &self.entries[ix.at()]
    }
}

impl IndexMut<ThreadIx> for Roster<'_> {
    #[inline]
    fn index_mut(&mut self, ix: ThreadIx) -> &mut Entry {
        &mut self.entries[ix.at()]
    }
}
