//! A thread of a steered run: its name among the others, and how far it has come. Owned by `steer`.
//!
//! The count of steps is kept in every run, because schedules and noise name operations by it. It moves in one place,
//! [`Turns::count_step`].

use core::cell::Cell;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use raddle_sched::ThreadIx;
use raddle_wire::crash::NAME_MAX;

pub struct Turns {
    /// Entry in the scheduler's table.
    place: Cell<u32>,
    /// Hash of the spawn path.
    pub path: Cell<u64>,
    pub parent_path: Cell<u64>,
    /// The spawn path as a C string, as far as there is room.
    pub name: Cell<[u8; NAME_MAX]>,
    /// Threads created so far.
    pub children: Cell<u32>,
    steps: Cell<u32>,
    /// Stop points of the schedule that concern this thread, as bits.
    pub stops: Cell<u32>,
    /// The turn of a visible access is not over yet.
    pub owes_turn: Cell<bool>,
    /// The thread has yielded or slept since its last turn.
    pub yields: Cell<bool>,
    /// In a system call that waits for the outside world.
    pub away: Cell<bool>,
    /// The mutex of the C library that the thread is taking in its turn; 0: none. Read by whoever asks who waits for whom.
    pub mutex: AtomicUsize,
    /// The child process that the thread waits for; 0: none, negative: any of them. Read by whoever watches over the turns.
    pub awaits: AtomicI32,
    /// Where the thread sleeps; 1 wakes it.
    pub sleep_word: AtomicU32,
}

impl Turns {
    pub const fn idle() -> Turns {
        Turns {
            place: Cell::new(u32::MAX),
            path: Cell::new(0),
            parent_path: Cell::new(0),
            name: Cell::new([0; NAME_MAX]),
            children: Cell::new(0),
            steps: Cell::new(0),
            stops: Cell::new(0),
            owes_turn: Cell::new(false),
            yields: Cell::new(false),
            away: Cell::new(false),
            mutex: AtomicUsize::new(0),
            awaits: AtomicI32::new(0),
            sleep_word: AtomicU32::new(0),
        }
    }

    /// For a thread that is about to be created. It gets its name from its creator.
    pub fn clear(&self) {
        self.place.set(u32::MAX);
        self.children.set(0);
        self.steps.set(0);
        self.stops.set(0);
        self.owes_turn.set(false);
        self.yields.set(false);
        self.away.set(false);
        self.mutex.store(0, Ordering::Relaxed);
        self.awaits.store(0, Ordering::Relaxed);
        self.sleep_word.store(0, Ordering::Relaxed);
    }

    /// The thread's place among those of a steered run.
    #[inline(always)]
    pub fn place(&self) -> ThreadIx {
        ThreadIx(self.place.get())
    }

    pub fn set_place(&self, place: ThreadIx) {
        self.place.set(place.0);
    }

    /// Visible operations done so far.
    #[inline(always)]
    pub fn steps(&self) -> u32 {
        self.steps.get()
    }

    /// The thread has performed a visible operation, or one has failed.
    #[inline(always)]
    pub fn count_step(&self) {
        self.steps.set(self.steps.get().wrapping_add(1));
    }

    /// The beginning of the main thread is no visible operation, although it is an event.
    pub fn begin_main(&self) {
        self.steps.set(0);
    }
}
