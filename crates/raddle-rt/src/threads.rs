//! How a thread begins and ends.
//!
//! A thread begins when its creator has recorded the fork, and ends in the last round of destructors of thread-specific data, so that
//! the program's own destructors are still observed. Beginning and end are operations like others: steered threads wait for their
//! turn, and every observer hears of them.

use crate::thread::{self, Thread, crash_stack, phase};
use crate::{arch, detect, observe, real, record, registry, run, segment, shadow, steer};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use raddle_wire::{SyncOp, step};

static END_KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// glibc runs destructors of thread-specific data this often; the last round is ours, so that the program's own
/// destructors are still observed.
const DESTRUCTOR_ROUNDS: u32 = 4;

pub fn adopt_main() -> Option<&'static Thread> {
    let main = Thread::map()?;
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: registers a C function as destructor.
    if unsafe { libc::pthread_key_create(&mut key, Some(end_destructor)) } == 0 {
        END_KEY.store(key, Ordering::Release);
    }
    // SAFETY: no arguments.
    main.life.pthread.store(unsafe { libc::pthread_self() } as usize, Ordering::Relaxed);
    main.life.phase.store(phase::RUNNING, Ordering::Relaxed);
    registry::link(main);
    // It may end before the others, by `pthread_exit`.
    arm_end(main);
    if !detect::prepare(main) {
        return None;
    }
    Some(main)
}

/// The calling thread becomes `thread`, and its first event is written.
pub fn begin(thread: &'static Thread) {
    let number = if steer::kept::on() { steer::kept::fiber::number() } else { real::gettid() };
    thread.life.os_tid.store(number, Ordering::Relaxed);
    crash_stack::adopt(thread);
    thread.access.begin(shadow::base(), thread.index());
    thread.set_observed(true);
    segment::attach(thread);
    if let Some(header) = run::header() {
        header.threads.fetch_add(1, Ordering::Relaxed);
    }
    arch::set_current(thread);
    let (routine, parent) = (thread.life.routine.get(), u64::from(thread.life.parent.get()));
    if steer::on() {
        steer::start(thread);
    }
    if thread.index() == 0 {
        // The main thread is simply there: its beginning is no visible operation.
        observe::sync(thread, routine as u64, SyncOp::Start, routine, parent);
        thread.turns.begin_main();
    } else if steer::on() {
        let request = steer::Request { kind: step::START, object: 0, pc: routine as u64 };
        steer::visible(thread, request, |thread| {
            observe::sync(thread, routine as u64, SyncOp::Start, routine, parent);
        });
    } else {
        observe::sync(thread, routine as u64, SyncOp::Start, routine, parent);
    }
    if run::recording() {
        record::home(thread);
    }
    thread::refresh_enabled(thread);
}

/// Arms the destructor that tells us about the end of the calling thread.
pub fn arm_end(thread: &'static Thread) {
    let key = END_KEY.load(Ordering::Acquire);
    if key != u32::MAX {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(thread).cast()) };
    }
}

unsafe extern "C" fn end_destructor(value: *mut c_void) {
    // SAFETY: the value is the calling thread's own structure, which is never unmapped.
    let this: &'static Thread = unsafe { &*value.cast::<Thread>() };
    this.life.destructor_rounds.set(this.life.destructor_rounds.get() + 1);
    if this.life.destructor_rounds.get() < DESTRUCTOR_ROUNDS {
        arm_end(this);
        return;
    }
    end(this);
    if steer::kept::on() {
        steer::kept::fiber::depart();
    }
}

fn end(thread: &'static Thread) {
    if !thread.is_observed() {
        return;
    }
    thread.cancellation.disabled.store(true, Ordering::Relaxed);
    let routine = thread.life.routine.get();
    if steer::on() {
        let request = steer::Request { kind: step::END, object: 0, pc: routine as u64 };
        steer::visible(thread, request, |thread| {
            observe::sync(thread, routine as u64, SyncOp::End, 0, 0);
            steer::end_thread(thread);
        });
    } else {
        observe::sync(thread, routine as u64, SyncOp::End, 0, 0);
    }
    crash_stack::release(thread);
    thread.access.enabled.set(0);
    thread.set_observed(false);
    segment::detach(thread);
    record::close_slot(thread);
    arch::set_current(thread::idle());
    registry::ended(thread);
}

/// A fiber: something that is run by threads and is none. Its creator's past is its own.
pub fn create_fiber(parent: &Thread, pc: u64) -> Option<&'static Thread> {
    let _busy = thread::Busy::enter(parent);
    let fiber = allocate(parent.index())?;
    fiber.life.routine.set(parent.life.routine.get());
    registry::link(fiber);
    detect::fork(parent, fiber, pc);
    fiber.access.begin(shadow::base(), fiber.index());
    fiber.life.os_tid.store(parent.os_tid(), Ordering::Relaxed);
    // Nobody joins a fiber.
    fiber.life.phase.store(thread::phase::RUNNING | thread::phase::DETACHED, Ordering::Release);
    fiber.set_observed(true);
    segment::attach(fiber);
    thread::refresh_enabled(fiber);
    Some(fiber)
}

/// The fiber will not be switched to any more.
pub fn end_fiber(fiber: &Thread) {
    if fiber.life.phase.load(Ordering::Acquire) != thread::phase::RUNNING | thread::phase::DETACHED
        || !fiber.is_observed()
    {
        return;
    }
    fiber.access.enabled.set(0);
    fiber.set_observed(false);
    segment::detach(fiber);
    registry::ended(fiber);
}

/// The system's thread goes on as another fiber.
pub fn switch_to_fiber(from: &Thread, to: &'static Thread, orders: bool) {
    if orders {
        detect::hand_over(from, to);
    }
    to.life.os_tid.store(from.os_tid(), Ordering::Relaxed);
    arch::set_current(to);
}

/// A structure for a thread that is about to be created.
pub fn allocate(parent: u32) -> Option<&'static Thread> {
    let thread = registry::allocate(parent)?;
    if detect::prepare(thread) {
        return Some(thread);
    }
    registry::discard(thread);
    None
}
