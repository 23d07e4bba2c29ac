//! One thread of the tested program, as the runtime sees it.
//!
//! A [`Thread`] is split by what the runtime does: each part has a file here that says who owns it, and nobody else changes it. Parts
//! are made of cells, so that a thread is always reached through a shared reference: hooks, interposed functions and signal handlers
//! of one thread hold references to the same structure at the same time. Cells belong to the thread itself; what other threads
//! look at is atomic, or was set before they could find the thread. Structures are recycled, never unmapped: a late hook of an
//! ended thread finds valid memory.

pub mod access;
pub mod call_stack;
pub mod cancellation;
pub mod crash_stack;
pub mod detection;
pub mod dying;
pub mod home;
pub mod life;
pub mod recording;
pub mod signals;
pub mod turns;

pub use access::AccessState;
pub use call_stack::{CallStack, Frame, Reader, STACK_FRAMES_MAX};
pub use dying::{CRASH_STACK_BYTES, FailedAssertion};
pub use life::phase;
pub use signals::{DEFERRED_MAX, Deferred};

use crate::{arch, arena, run};
use cancellation::Cancellation;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use detection::Detection;
use dying::Dying;
use home::Home;
use life::Life;
use recording::RecordCursor;
use signals::PendingSignals;
use turns::Turns;

#[repr(C)]
pub struct Thread {
    /// Read by the assembly of the access hooks.
    pub access: AccessState,
    /// Program counter of the caller of the interposed function that is running; written by the assembly of the exports.
    pub caller: Cell<u64>,
    pub calls: CallStack,
    pub detection: Detection,
    pub records: RecordCursor,
    /// Whether synchronisation is observed: false for the idle thread and in forked children.
    observed: Cell<bool>,
    /// Non-zero while the thread is inside the runtime. Atomic, because the thread's signal handlers look.
    busy: AtomicU32,
    pub signals: PendingSignals,
    pub turns: Turns,
    pub cancellation: Cancellation,
    pub life: Life,
    pub home: Home,
    pub dying: Dying,
    /// The innermost `pthread_once` routine under way, owned by `interpose::once`.
    pub once: Cell<*mut core::ffi::c_void>,
}

// SAFETY: the cells of a thread are touched by that thread alone, except between its creation and its first instruction, when its
// creator has it, and in what was set by then (`life`, the names in `turns`), which does not change while others may look. The idle
// thread stands for several threads at once: every path leaves it alone except for `caller`, which is never read there.
unsafe impl Sync for Thread {}

impl Thread {
    pub const fn idle() -> Thread {
        Thread {
            access: AccessState::idle(),
            caller: Cell::new(0),
            calls: CallStack::idle(),
            detection: Detection::idle(),
            records: RecordCursor::idle(),
            observed: Cell::new(false),
            busy: AtomicU32::new(0),
            signals: PendingSignals::idle(),
            turns: Turns::idle(),
            cancellation: Cancellation::idle(),
            life: Life::idle(),
            home: Home::idle(),
            dying: Dying::idle(),
            once: Cell::new(core::ptr::null_mut()),
        }
    }

    /// Prepares a new or recycled structure for a thread that is about to be created.
    pub fn prepare(&self, parent: u32) {
        self.access.clear();
        self.calls.clear();
        self.detection.clear();
        self.records.clear();
        self.observed.set(false);
        self.busy.store(0, Ordering::Relaxed);
        self.signals.clear();
        self.turns.clear();
        self.cancellation.clear();
        self.life.clear(parent);
        self.home.clear();
        self.dying.clear();
        self.once.set(core::ptr::null_mut());
    }

    /// Maps a structure with its shadow stack and signal buffer.
    pub fn map() -> Option<&'static Thread> {
        let head = size_of::<Thread>().next_multiple_of(64);
        let deferred = (size_of::<Deferred>() * DEFERRED_MAX).next_multiple_of(4096);
        let stack = size_of::<Frame>() * STACK_FRAMES_MAX;
        let start = arena::map(head + deferred + stack + CRASH_STACK_BYTES)?;
        // SAFETY: fresh, zeroed and page-aligned memory, large enough for the structure and for what its parts are given; never unmapped.
        let thread = unsafe {
            start.cast::<Thread>().write(Thread::idle());
            let thread = &*start.cast::<Thread>();
            thread.signals.place(start.add(head).cast());
            thread.calls.place(start.add(head + deferred).cast());
            thread.dying.stack.set(start.add(head + deferred + stack) as usize);
            thread
        };
        thread.prepare(0);
        Some(thread)
    }

    /// Program counter of the caller of the interposed function that is running.
    #[inline(always)]
    pub fn caller_pc(&self) -> u64 {
        self.caller.get()
    }

    #[inline(always)]
    pub fn is_observed(&self) -> bool {
        self.observed.get()
    }

    pub fn set_observed(&self, observed: bool) {
        self.observed.set(observed);
    }

    /// Is the thread inside the runtime?
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Lets operations be seen although the thread is inside the runtime: a handler of the program's runs, or the thread is unwound and
    /// no frame of the runtime's is left. Returns what [`Thread::close`] puts back.
    pub fn open(&self) -> u32 {
        self.busy.swap(0, Ordering::Relaxed)
    }

    pub fn close(&self, busy: u32) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    /// Number of the thread; 0 is the main thread.
    #[inline(always)]
    pub fn index(&self) -> u32 {
        self.life.index.get()
    }

    /// The kernel's number of it.
    #[inline(always)]
    pub fn os_tid(&self) -> u32 {
        self.life.os_tid.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn place(&self) -> raddle_sched::ThreadIx {
        self.turns.place()
    }
}

/// The thread of every thread that the runtime does not (yet, or any longer) know.
pub static IDLE: Thread = Thread::idle();

pub fn idle() -> &'static Thread {
    &IDLE
}

/// The calling thread, if the runtime observes it and it is not inside the runtime already.
#[inline]
pub fn observed() -> Option<&'static Thread> {
    let thread = current();
    if thread.is_observed() && !thread.is_busy() { Some(thread) } else { None }
}

/// The calling thread, whatever its state.
#[inline(always)]
pub fn current() -> &'static Thread {
    // SAFETY: the slot always holds a structure that is never unmapped, and structures are shared through cells and atomics alone.
    unsafe { &*arch::current() }
}

/// Marks the thread as inside the runtime: signal handlers wait, and interposed functions called from here go straight
/// to the real ones.
pub struct Busy {
    thread: &'static Thread,
}

impl Busy {
    #[inline]
    pub fn enter(thread: &Thread) -> Busy {
        // SAFETY: structures of threads are never unmapped.
        let thread = unsafe { &*core::ptr::from_ref(thread) };
        // Not one instruction: nobody but the thread and its handlers changes it, and they leave it as it was.
        thread.busy.store(thread.busy.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Busy { thread }
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        let thread = self.thread;
        let busy = thread.busy.load(Ordering::Relaxed) - 1;
        thread.busy.store(busy, Ordering::Relaxed);
        if busy == 0 && thread.signals.any() {
            crate::interpose::signal::deliver_deferred(thread);
        }
    }
}

/// Turns observation of accesses on or off after a change of the run's state.
pub fn refresh_enabled(thread: &Thread) {
    thread
        .access
        .enabled
        .set(u32::from(thread.is_observed() && run::accesses_observed() && !thread.access.are_ignored()));
}
