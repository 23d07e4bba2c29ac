//! The life of a worker: it stops where the program would go on, and makes one run after the other.
//!
//! Whoever ends a run switches to the *manager*, code on a stack that is not put back. It tells the result, puts everything back, waits
//! until another run is wanted, and lets the main thread go on where it stopped.

use super::super::server;
use super::{ON, Shared, calls, command, fiber, repeat, shared, verdict};
use crate::{arch, real, run};
use core::sync::atomic::{AtomicU32, Ordering};
use raddle_wire::server::kept_reason;

/// A worker lives so long: an error of ours would not live longer.
const RUNS_MAX: u32 = 100_000;
/// So often all memory is compared with what it was.
pub const VERIFY_EVERY: u32 = 1_000;

/// The run that the worker begins with, and the entries of the table of modules that there are before it.
static FIRST: AtomicU32 = AtomicU32::new(0);
static MODULES: AtomicU32 = AtomicU32::new(0);

/// In a worker, just forked: it is to make as many threads as the program had.
pub fn begin(threads: usize, run: u32, modules: u32) {
    FIRST.store(run, Ordering::Relaxed);
    MODULES.store(modules, Ordering::Relaxed);
    // A large page would be one page to the processor and hundreds to put back.
    // SAFETY: takes no pointers.
    unsafe { real::own_syscall(libc::SYS_prctl, [libc::PR_SET_THP_DISABLE as usize, 1, 0, 0, 0, 0]) };
    fiber::make(threads);
    for _ in 0..threads {
        // What a run would map, and give back at its end.
        if let Some(thread) = crate::thread::Thread::map() {
            crate::registry::discard(thread);
        }
    }
    ON.store(true, Ordering::Relaxed);
}

/// The process is ready for a run. In a worker this returns once for each run; elsewhere it does nothing.
pub fn remember() {
    if !super::on() {
        return;
    }
    let Some(shared) = shared() else { return };
    if !calls::start(shared) {
        repeat(kept_reason::SYSTEM, 0);
    }
    // SAFETY: the manager's stack is its own, and the main thread's place is a static.
    unsafe { arch::fiber::begin_on(shared.stack_end(), manage, fiber::main_stack()) };
}

extern "C" fn manage() -> ! {
    let (Some(shared), Some(header)) = (shared(), run::header()) else { real::exit_group(0) };
    // SAFETY: nobody else looks at the pages.
    let pages = unsafe { &mut *shared.pages.get() };
    if !pages.take() {
        repeat(kept_reason::SYSTEM, 1);
    }
    let mut run = FIRST.load(Ordering::Relaxed);
    let process = real::getpid();
    let mut compared = shared.asked.load(Ordering::Acquire).wrapping_sub(1);
    for made in 1..=RUNS_MAX {
        let serves = next(shared, header, &mut run, &mut compared);
        server::reset(header, MODULES.load(Ordering::Relaxed));
        // A forked child had the region in between.
        header.claimed_pid.store(process, Ordering::Release);
        pages.begin();
        calls::see(shared);
        let (main, thread_pointer) = (fiber::main_stack(), fiber::main_thread_pointer());
        // SAFETY: the main thread waits in `remember`; its place was put back with everything else.
        unsafe { arch::fiber::switch(shared.manager.as_ptr(), *main, thread_pointer) };
        calls::allow(shared);
        if calls::asked_who() {
            repeat(kept_reason::CALL, libc::SYS_gettid as u64);
        }
        let status = shared.status.load(Ordering::Relaxed);
        if !serves {
            shared.digest.set(server::digest(header, status));
        }
        calls::undo(shared);
        if !pages.restore() {
            repeat(kept_reason::SYSTEM, 2);
        }
        if (!serves || made.is_multiple_of(VERIFY_EVERY))
            && let Some(page) = pages.verify()
        {
            shared.detail.store(page as u64, Ordering::Relaxed);
            shared.verdict.store(verdict::BROKEN, Ordering::Release);
            real::exit_group(0);
        }
        if serves {
            header.server.kept_runs.fetch_add(1, Ordering::Relaxed);
            server::publish(header, run, status);
            run = run.wrapping_add(1);
        } else {
            compared = compared.wrapping_add(1);
            shared.done.store(compared, Ordering::Release);
            real::futex_wake(&shared.done, 1);
        }
    }
    shared.verdict.store(verdict::RETIRED, Ordering::Release);
    real::exit_group(0)
}

/// Waits for the next run. True: its result is to be published; false: it is one to compare.
fn next(shared: &Shared, header: &raddle_wire::Header, run: &mut u32, compared: &mut u32) -> bool {
    loop {
        if shared.command.load(Ordering::Acquire) == command::SERVE {
            *run = header.server.published.load(Ordering::Acquire);
            server::wait_for_request(header, *run);
            return true;
        }
        let asked = shared.asked.load(Ordering::Acquire);
        if asked != *compared {
            return false;
        }
        if !real::process_exists(header.collector_pid) {
            real::exit_group(0);
        }
        real::futex_wait(&shared.asked, asked, Some(server::WAIT_US));
    }
}
