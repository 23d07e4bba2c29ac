//! A worker that keeps its process: many runs in one process, each from the same state.
//!
//! A fork for every run costs hundreds of microseconds, nearly all of them the kernel's: page tables are copied, pages are faulted in
//! again, kernel threads made and ended. So the fork server (`steer::server`) can fork a *worker*, which stops where the
//! program would go on, remembers the state of its process, and puts it back after each run:
//!
//! - *memory* ([`image`]): the pages that a run wrote are copied back. Which ones these are, the kernel's count of page faults and
//!   `/proc/self/pagemap` tell: after the fork all memory is shared with the server, so a page that is the worker's own was written.
//! - *threads* ([`fiber`]): they are stacks in one kernel thread, and whoever waits for its turn switches to whoever has it. They are
//!   real threads of the C library's, made before the first run, whose kernel threads have ended.
//! - *the kernel's state* ([`calls`]): every system call of a run is seen (Syscall User Dispatch). Those known to leave nothing
//!   behind are let through; of some it is known what they leave, and that is taken back.
//!
//! Anything else (an unknown system call, one that waits, a thread with a stack of its own, nobody able to go on) ends the worker at
//! that call, before it is made, and the server repeats the run in a forked child. What was let through before is the same the
//! second time. So a run's result is always that of a process which started fresh, and what cannot be done here costs time only.
//!
//! # Trust is earned
//!
//! The first runs of every program are made both ways, and each must agree with its twin: schedule, steps, outcome and output
//! ([`Digest`]). All writable memory is compared with the remembered state after each of them, and after every
//! [`worker::VERIFY_EVERY`]th run later. One difference, and the program is run by forks alone from there on, and
//! that is reported as an error of Raddle's.
//!
//! # Deviations
//!
//! Only runs in which one thread computes at a time are made here: there, switching between stacks cannot be told from switching
//! between kernel threads. A program that asks who its kernel thread is (`gettid`), sends signals to others, waits in the kernel, or
//! makes processes is run by forks.

pub mod calls;
pub mod fiber;
pub mod image;
pub mod keeper;
pub mod worker;

use crate::{arena, real};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use raddle_wire::Header;
use raddle_wire::region::{observe, option, steer};
use raddle_wire::server::{kept_reason, mode};

/// This process is a worker that keeps its state.
static ON: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// What a worker is told to do next.
pub mod command {
    /// Make the one run, and tell its digest.
    pub const COMPARE: u32 = 0;
    /// Make all runs that are asked for.
    pub const SERVE: u32 = 1;
}

/// Why a worker has ended.
pub mod verdict {
    /// It does not say: it was killed.
    pub const NONE: u32 = 0;
    /// It has made enough runs.
    pub const RETIRED: u32 = 1;
    /// The run under way has to be made by a fork.
    pub const REPEAT: u32 = 2;
    /// Memory is not what it was.
    pub const BROKEN: u32 = 3;
}

/// Stack of the code that puts the state back. It and everything else in [`Shared`] is not put back itself.
const MANAGER_STACK_BYTES: usize = 128 << 10;
/// Pages that may be the worker's own.
pub const PAGES_MAX: usize = 32 << 10;

/// What server and worker share, and what a worker remembers from run to run.
#[repr(C, align(4096))]
pub struct Shared {
    stack: UnsafeCell<[u8; MANAGER_STACK_BYTES]>,
    pub command: AtomicU32,
    /// Comparisons asked for, and done.
    pub asked: AtomicU32,
    pub done: AtomicU32,
    pub verdict: AtomicU32,
    pub reason: AtomicU32,
    pub detail: AtomicU64,
    pub digest: Digest,
    /// Whether system calls are seen: read by the kernel.
    pub selector: AtomicU32,
    /// How the run ended, as `wait` reports it.
    pub status: AtomicU32,
    /// Where the manager waits for the end of a run.
    pub manager: AtomicUsize,
    pub actions: UnsafeCell<[calls::Action; calls::SIGNALS]>,
    pub pages: UnsafeCell<image::Pages>,
}

// SAFETY: the cells belong to the one thread of the worker.
unsafe impl Sync for Shared {}

/// What two runs with one seed have to agree in.
#[repr(C)]
#[derive(Default)]
pub struct Digest {
    words: [AtomicU64; Digest::WORDS],
}

impl Digest {
    pub const WORDS: usize = 6;

    pub fn set(&self, words: [u64; Digest::WORDS]) {
        self.words.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Release));
    }

    pub fn get(&self) -> [u64; Digest::WORDS] {
        core::array::from_fn(|at| self.words[at].load(Ordering::Acquire))
    }
}

static SHARED: AtomicUsize = AtomicUsize::new(0);

/// What is shared with the server, if the server wanted workers.
pub fn shared() -> Option<&'static Shared> {
    let address = SHARED.load(Ordering::Relaxed);
    // SAFETY: mapped by `prepare` with this size, zeroed, which all fields may be; never unmapped.
    if address == 0 { None } else { Some(unsafe { &*(address as *const Shared) }) }
}

/// In the server, before the first fork: can the runs of this program be made by a worker? Otherwise why not.
pub fn prepare(header: &Header) -> Result<&'static Shared, u32> {
    let one_at_a_time = header.options & option::ONE_AT_A_TIME != 0;
    let foreign = option::DEBUGGER | option::STABLE_MEMORY | option::PROFILE;
    if header.server.mode == mode::FORK {
        return Err(kept_reason::NOT_WANTED);
    }
    if header.steer != steer::CONTROL || !one_at_a_time {
        return Err(kept_reason::STRATEGY);
    }
    let watched = header.observe & (observe::RECORD | observe::DETECT) != 0;
    // A search compares addresses of different runs, and stacks of threads are elsewhere in a forked child.
    let searched = header.journal_max != 0;
    if searched || watched || header.options & foreign != 0 || arena::shares_tables() {
        return Err(kept_reason::OPTIONS);
    }
    if !crate::arch::fiber::supported() || !fiber::prepare() {
        return Err(kept_reason::SYSTEM);
    }
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let memory = arena::map_with(size_of::<Shared>(), flags).ok_or(kept_reason::SYSTEM)?;
    SHARED.store(memory as usize, Ordering::Relaxed);
    shared().ok_or(kept_reason::SYSTEM)
}

impl Shared {
    fn stack_end(&self) -> usize {
        self.stack.get() as usize + MANAGER_STACK_BYTES
    }
}

/// The run under way cannot go on here: the server repeats it in a forked child.
pub fn repeat(reason: u32, detail: u64) -> ! {
    if let Some(shared) = shared() {
        shared.reason.store(reason, Ordering::Relaxed);
        shared.detail.store(detail, Ordering::Relaxed);
        shared.verdict.store(verdict::REPEAT, Ordering::Release);
    }
    real::exit_group(0)
}

/// The run is over; `status` as `wait` would report it. Does nothing in a process that is no worker.
pub fn end_run(status: u32) {
    if !on() {
        return;
    }
    let Some(shared) = shared() else { return };
    shared.status.store(status, Ordering::Relaxed);
    let mut nobody_returns = 0;
    // SAFETY: the manager waits where it has saved its stack, and belongs to the main thread.
    unsafe {
        crate::arch::fiber::switch(
            &mut nobody_returns,
            shared.manager.load(Ordering::Relaxed),
            fiber::main_thread_pointer(),
        );
    }
}

/// The run ends with this exit status.
pub fn end_with_exit(status: i32) {
    end_run((status as u32 & 0xff) << 8);
}
