//! One thread of the tested program, as the runtime sees it.
//!
//! A [`Thread`] is only ever touched by the thread that it describes, except for the few atomic fields that others
//! look at (joiners, the creator). Structures are recycled, never unmapped: a late hook of an ended thread finds valid
//! memory.

use crate::interpose::alternate_stack::CRASH_STACK_BYTES;
use crate::interpose::assertion::Failed;
use crate::{arch, arena, init};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use raddle_hb::{Epoch, Segment};
use raddle_sched::ThreadIx;
use raddle_wire::Record;
use raddle_wire::crash::NAME_MAX;

/// One entry of the shadow call stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Frame {
    /// Return address in the caller, as the compiler passes it to the entry hook.
    pub pc: u64,
    /// Where the return address of the call to the entry hook lies, and later those of the function's other calls; frames below a
    /// live one are dead (after `longjmp`).
    pub sp: u64,
}

/// Deepest shadow stack; deeper frames are counted but not kept.
pub const STACK_FRAMES_MAX: usize = 1 << 16;

/// Signals that arrived while the thread was inside the runtime.
pub const DEFERRED_MAX: usize = 8;

#[derive(Clone, Copy)]
pub struct Deferred {
    pub signal: i32,
    /// Which of its thread's signals that had to wait this is.
    pub order: u32,
    pub info: libc::siginfo_t,
    pub context: libc::ucontext_t,
}

#[repr(C)]
pub struct Thread {
    // Read by the access hooks.
    /// Non-zero when plain accesses are observed.
    pub enabled: u32,
    /// The current thread segment, as it stands in shadow cells (see `segment`).
    pub segment: u32,
    pub shadow_base: usize,
    /// Program counter of the caller of the interposed function that is running.
    pub caller_pc: u64,

    // Shadow call stack.
    pub stack_base: *mut Frame,
    pub stack_top: *mut Frame,
    pub stack_end: *mut Frame,
    /// Lowest top since the last record.
    pub stack_low: *mut Frame,
    /// Top that the reader of the records knows.
    pub stack_known: *mut Frame,
    pub stack_overflow: u32,
    /// A `longjmp` happened: frames below the current stack pointer are dead.
    pub stack_stale: u32,

    // Online detection.
    /// The thread's `detect::state::State`; null when detection is off.
    pub detect: *mut u8,
    /// Where the next record of the history goes.
    pub history: *mut Record,
    pub history_end: *mut Record,
    /// The segment that the history knows.
    pub history_segment: u32,
    /// The ring that the history goes to; the last one, while the thread has no slot. 0: none.
    pub history_ring: u32,
    /// How often the thread's slot has started over: part of the names in its history.
    pub slot_life: u32,
    /// Size of the thread's stack, as its creator asked for it.
    pub stack_bytes: usize,

    // Recording.
    pub cursor: *mut Record,
    pub cursor_end: *mut Record,
    pub slot: u32,
    pub slot_ordinal: u32,

    /// Whether synchronisation is observed: false for the idle thread and in forked children.
    pub observed: bool,
    /// Non-zero while the thread is inside the runtime.
    pub busy: u32,
    pub deferred_count: AtomicU32,
    pub deferred_order: AtomicU32,
    pub deferred: *mut Deferred,
    /// Signals that wait until the handlers that run now have ended, as bits.
    pub held: u64,
    pub sid: u32,
    pub epoch: u32,
    pub index: u32,
    pub parent: u32,
    pub random: u32,

    // Steering.
    /// Entry in the scheduler's table.
    pub sched: u32,
    /// Hash of the spawn path.
    pub path: u64,
    pub parent_path: u64,
    /// The spawn path as a C string, as far as there is room.
    pub name: [u8; NAME_MAX],
    pub children: u32,
    /// Visible operations done so far.
    pub steps: u32,
    /// Stop points of the schedule that concern this thread, as bits.
    pub stops: u32,
    /// The turn of a visible access is not over yet.
    pub owes_turn: bool,
    /// The thread has yielded or slept since its last turn.
    pub yields: bool,
    /// In a system call that waits for the outside world.
    pub away: bool,
    /// The operation under way is no cancellation point although others of its kind are.
    pub tries: bool,

    // Seen by other threads.
    pub pthread: AtomicUsize,
    pub os_tid: AtomicU32,
    pub phase: AtomicU32,
    /// Cancellation under steering ([`crate::interpose::cancel`]): put off, and allowed at any time.
    pub uncancellable: AtomicBool,
    pub asynchronous: AtomicBool,
    /// The child process that the thread waits for; 0: none, negative: any of them.
    pub awaits: AtomicI32,
    /// Where the thread sleeps; 1 wakes it.
    pub sleep_word: AtomicU32,
    pub next: *mut Thread,
    pub routine: usize,
    pub argument: usize,
    /// The stack that the runtime gave it ([`crate::interpose`]'s `stack`): where it begins, and its size.
    pub own_stack: (usize, usize),
    pub destructor_rounds: u32,
    /// Where the stack begins on which a crash of the thread is told ([`crate::interpose::alternate_stack`]). 0: none.
    pub crash_stack: usize,
    /// The assertion that the thread has failed.
    pub assertion: Failed,
    /// The innermost `pthread_once` routine under way, owned by `interpose::once`.
    pub once: *mut core::ffi::c_void,
}

pub mod phase {
    /// Made by the creator, not yet allowed to run.
    pub const NEW: u32 = 0;
    pub const RUNNING: u32 = 1;
    pub const ENDED: u32 = 2;
    /// Bit: nobody will join it.
    pub const DETACHED: u32 = 1 << 8;
}

impl Thread {
    pub const fn idle() -> Thread {
        Thread {
            enabled: 0,
            segment: 0,
            shadow_base: 0,
            caller_pc: 0,
            stack_base: core::ptr::null_mut(),
            stack_top: core::ptr::null_mut(),
            stack_end: core::ptr::null_mut(),
            stack_low: core::ptr::null_mut(),
            stack_known: core::ptr::null_mut(),
            stack_overflow: 0,
            stack_stale: 0,
            detect: core::ptr::null_mut(),
            history: core::ptr::null_mut(),
            history_end: core::ptr::null_mut(),
            history_segment: 0,
            history_ring: 0,
            slot_life: 0,
            stack_bytes: 0,
            cursor: core::ptr::null_mut(),
            cursor_end: core::ptr::null_mut(),
            slot: 0,
            slot_ordinal: 0,
            observed: false,
            busy: 0,
            deferred_count: AtomicU32::new(0),
            deferred_order: AtomicU32::new(0),
            deferred: core::ptr::null_mut(),
            held: 0,
            sid: 0,
            epoch: 0,
            index: 0,
            parent: 0,
            random: 0,
            sched: u32::MAX,
            path: 0,
            parent_path: 0,
            name: [0; NAME_MAX],
            children: 0,
            steps: 0,
            stops: 0,
            owes_turn: false,
            yields: false,
            away: false,
            tries: false,
            pthread: AtomicUsize::new(0),
            os_tid: AtomicU32::new(0),
            phase: AtomicU32::new(0),
            uncancellable: AtomicBool::new(false),
            asynchronous: AtomicBool::new(false),
            awaits: AtomicI32::new(0),
            sleep_word: AtomicU32::new(0),
            next: core::ptr::null_mut(),
            routine: 0,
            argument: 0,
            own_stack: (0, 0),
            destructor_rounds: 0,
            crash_stack: 0,
            assertion: Failed::NONE,
            once: core::ptr::null_mut(),
        }
    }

    /// Does the thread wait for a child process that is awake?
    pub fn awaits_kin(&self) -> bool {
        match self.awaits.load(Ordering::Relaxed) {
            0 => false,
            child if child > 0 => crate::steer::tasks::process_awake(child),
            _ => crate::interpose::process::any_child(crate::steer::tasks::process_awake),
        }
    }

    /// Prepares a new or recycled structure for a thread that is about to be created.
    pub fn prepare(&mut self, parent: u32) {
        self.enabled = 0;
        self.once = core::ptr::null_mut();
        self.segment = 0;
        self.stack_top = self.stack_base;
        self.stack_low = self.stack_base;
        self.stack_known = self.stack_base;
        self.stack_overflow = 0;
        self.stack_stale = 0;
        self.history = core::ptr::null_mut();
        self.history_end = core::ptr::null_mut();
        self.history_segment = 0;
        self.history_ring = 0;
        self.slot_life = 0;
        self.cursor = core::ptr::null_mut();
        self.cursor_end = core::ptr::null_mut();
        self.slot_ordinal = 0;
        self.observed = false;
        self.busy = 0;
        self.sid = 0;
        self.epoch = 0;
        self.index = u32::MAX;
        self.parent = parent;
        self.destructor_rounds = 0;
        self.awaits = AtomicI32::new(0);
        self.sched = u32::MAX;
        self.children = 0;
        self.steps = 0;
        self.stops = 0;
        self.owes_turn = false;
        self.yields = false;
        self.away = false;
        self.tries = false;
        self.own_stack = (0, 0);
        self.assertion = Failed::NONE;
        self.uncancellable.store(false, Ordering::Relaxed);
        self.asynchronous.store(false, Ordering::Relaxed);
        self.sleep_word.store(0, Ordering::Relaxed);
        self.phase.store(phase::NEW, Ordering::Relaxed);
        crate::interpose::signal::forget_deferred(self);
        self.held = 0;
    }

    /// Maps a structure with its shadow stack and signal buffer.
    pub fn map() -> Option<*mut Thread> {
        let head = size_of::<Thread>().next_multiple_of(64);
        let deferred = (size_of::<Deferred>() * DEFERRED_MAX).next_multiple_of(4096);
        let stack = size_of::<Frame>() * STACK_FRAMES_MAX;
        let start = arena::map(head + deferred + stack + CRASH_STACK_BYTES)?;
        let thread = start.cast::<Thread>();
        // SAFETY: fresh, zeroed, large enough and page-aligned memory.
        unsafe {
            thread.write(Thread::idle());
            (*thread).deferred = start.add(head).cast();
            (*thread).stack_base = start.add(head + deferred).cast();
            (*thread).stack_end = (*thread).stack_base.add(STACK_FRAMES_MAX);
            (*thread).crash_stack = start.add(head + deferred + stack) as usize;
            (*thread).prepare(0);
        }
        Some(thread)
    }

    /// The thread's place among those of a steered run.
    #[inline(always)]
    pub fn place(&self) -> ThreadIx {
        ThreadIx(self.sched)
    }

    /// The segment that the thread is in.
    #[inline(always)]
    pub fn current_segment(&self) -> Segment {
        Segment { slot: self.sid as u8, epoch: self.epoch as Epoch }
    }

    #[inline(always)]
    pub fn enter_segment(&mut self, segment: Segment) {
        self.sid = u32::from(segment.slot);
        self.epoch = u32::from(segment.epoch);
        self.segment = segment.name();
    }

    #[inline(always)]
    pub fn next_random(&mut self) -> u32 {
        // xorshift32: only spreads shadow evictions, quality does not matter.
        let mut x = self.random | 1;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random = x;
        x
    }
}

pub struct IdleThread(UnsafeCell<Thread>);

// SAFETY: every hook leaves the idle thread alone except for `caller_pc`, which is written by several threads at once
// and never read.
unsafe impl Sync for IdleThread {}

/// The thread of every thread that the runtime does not (yet, or any longer) know.
pub static IDLE: IdleThread = IdleThread(UnsafeCell::new(Thread::idle()));

pub fn idle() -> *mut Thread {
    IDLE.0.get()
}

/// The calling thread, if the runtime observes it and it is not inside the runtime already.
#[inline]
pub fn observed() -> Option<&'static mut Thread> {
    // SAFETY: the current pointer is always valid, and only its own thread uses the structure.
    let thread = unsafe { &mut *arch::current() };
    if thread.observed && thread.busy == 0 { Some(thread) } else { None }
}

/// The calling thread, whatever its state.
#[inline]
pub fn current() -> &'static mut Thread {
    // SAFETY: as above.
    unsafe { &mut *arch::current() }
}

/// Marks the thread as inside the runtime: signal handlers wait, and interposed functions called from here go straight
/// to the real ones.
pub struct Busy {
    thread: *mut Thread,
}

impl Busy {
    #[inline]
    pub fn enter(thread: &mut Thread) -> Busy {
        thread.busy += 1;
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Busy { thread }
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        // SAFETY: the thread outlives its own call into the runtime.
        let thread = unsafe { &mut *self.thread };
        thread.busy -= 1;
        if thread.busy == 0 && thread.deferred_count.load(Ordering::Relaxed) != 0 {
            crate::interpose::signal::deliver_deferred(thread);
        }
    }
}

/// Turns observation of accesses on or off after a change of the run's state.
pub fn refresh_enabled(thread: &mut Thread) {
    thread.enabled = u32::from(thread.observed && init::accesses_observed());
}
