//! Condition variables.
//!
//! A wait is four events: the mutex is released, the wait begins, the wait ends (signalled or timed out), the mutex is
//! held again. A thread that is cancelled inside the wait holds the mutex while its clean-up handlers run, so a
//! clean-up handler of ours, installed for the duration of the real call, reports the second half in that case.

use crate::interpose::mutex::{self, Mutex, kind_bits};
use crate::steer::cancellation as cancel;
use crate::steer::{self, Detail, Patience, Request};
use crate::thread::{self, Thread};
use crate::{export_with_pc, observe, real_fn};
use core::ffi::{c_int, c_void};
use raddle_wire::record::{LOW48, lock as bits};
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        #[version = c"GLIBC_2.3.2"]
        fn pthread_cond_init(c: *mut c_void, attr: *const c_void) -> c_int;
        #[version = c"GLIBC_2.3.2"]
        fn pthread_cond_destroy(c: *mut c_void) -> c_int;
        #[version = c"GLIBC_2.3.2"]
        fn pthread_cond_signal(c: *mut c_void) -> c_int;
        #[version = c"GLIBC_2.3.2"]
        fn pthread_cond_broadcast(c: *mut c_void) -> c_int;
        #[version = c"GLIBC_2.3.2"]
        fn pthread_cond_wait(c: *mut c_void, m: *mut Mutex) -> c_int;
        #[version = c"GLIBC_2.3.2"]
        fn pthread_cond_timedwait(c: *mut c_void, m: *mut Mutex, until: *const libc::timespec) -> c_int;
        fn pthread_cond_clockwait(c: *mut c_void, m: *mut Mutex, clock: c_int, until: *const libc::timespec) -> c_int;
        fn _pthread_cleanup_push(buffer: *mut Cleanup, routine: extern "C" fn(*mut c_void), argument: *mut c_void);
        fn _pthread_cleanup_pop(buffer: *mut Cleanup, execute: c_int);
    }
}

/// glibc's `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Cleanup {
    routine: usize,
    argument: usize,
    cancel_type: c_int,
    previous: usize,
}

struct Waiting {
    pc: u64,
    cond: *mut c_void,
    mutex: *mut Mutex,
}

extern "C" fn cancelled(waiting: *mut c_void) {
    // SAFETY: the frame that holds it is being unwound and is still there.
    let waiting = unsafe { &*waiting.cast::<Waiting>() };
    end_wait(waiting, libc::ETIMEDOUT);
}

fn end_wait(waiting: &Waiting, result: c_int) {
    if let Some(thread) = thread::observed() {
        let arg = waiting.mutex as u64 & LOW48;
        let op = if result == 0 { SyncOp::Wait } else { SyncOp::WaitFailed };
        observe::sync(thread, waiting.pc, op, waiting.cond as usize, arg);
        let flags = kind_bits(waiting.mutex) | bits::WAIT;
        observe::sync(thread, waiting.pc, SyncOp::Lock, waiting.mutex as usize, flags);
    }
}

/// The three operations of a wait: release the mutex and begin to wait; be woken, or give up; take the mutex back.
fn wait_steered(thread: &Thread, pc: u64, cond: *mut c_void, mutex: *mut Mutex, patience: Patience) -> c_int {
    let (object, arg) = (cond as usize, mutex as u64 & LOW48);
    let begin = |thread: &Thread| {
        observe::will_wait(thread, pc, object);
        observe::sync(thread, pc, SyncOp::Unlock, mutex as usize, kind_bits(mutex) | bits::WAIT);
        observe::sync(thread, pc, SyncOp::WaitBegin, object, arg);
        steer::begin_wait(thread, object);
        mutex::release(mutex);
        steer::released(mutex as usize);
    };
    let detail = Detail { second: mutex as u64, ..Detail::NONE };
    steer::visible_with(thread, Request { kind: step::WAIT, object, pc }, detail, begin);
    let woken = steer::blocking(thread, Request { kind: step::WAKE, object, pc }, patience, |thread| {
        if !steer::signalled(thread, false) {
            return None;
        }
        observe::sync(thread, pc, SyncOp::Wait, object, arg);
        Some(())
    });
    let mut cancelled = false;
    if woken.is_none() {
        cancelled = steer::is_cancelled(thread) && cancel::ends_waiting(thread, step::WAKE);
        steer::signalled(thread, true);
        observe::sync(thread, pc, SyncOp::WaitFailed, object, arg);
        steer::failed(thread);
    }
    mutex::lock_steered(thread, pc, mutex, Patience::Forever, bits::WAIT);
    if cancelled {
        // It holds the mutex, as the standard demands.
        cancel::act(thread);
    }
    if woken.is_some() { 0 } else { libc::ETIMEDOUT }
}

fn wait_with(
    cond: *mut c_void,
    mutex: *mut Mutex,
    patience: Patience,
    until: *const libc::timespec,
    wait: impl Fn() -> c_int,
) -> c_int {
    let Some(thread) = thread::observed() else { return wait() };
    let pc = thread.caller_pc();
    if steer::on() {
        let result = wait_steered(thread, pc, cond, mutex, patience);
        if result != 0 {
            // SAFETY: the program passes a valid time.
            unsafe { steer::clock::reach(until) };
        }
        return result;
    }
    observe::will_wait(thread, pc, cond as usize);
    observe::sync(thread, pc, SyncOp::Unlock, mutex as usize, kind_bits(mutex) | bits::WAIT);
    observe::sync(thread, pc, SyncOp::WaitBegin, cond as usize, mutex as u64 & LOW48);
    let mut waiting = Waiting { pc, cond, mutex };
    let mut buffer = Cleanup { routine: 0, argument: 0, cancel_type: 0, previous: 0 };
    // SAFETY: buffer and argument live in this frame until the pop.
    unsafe { c::_pthread_cleanup_push(&mut buffer, cancelled, (&raw mut waiting).cast()) };
    let result = wait();
    // SAFETY: pops what was pushed.
    unsafe { c::_pthread_cleanup_pop(&mut buffer, 0) };
    end_wait(&waiting, result);
    result
}

pub extern "C" fn wait(cond: *mut c_void, mutex: *mut Mutex) -> c_int {
    // SAFETY: as the program asks (here and below).
    wait_with(cond, mutex, Patience::Forever, core::ptr::null(), || unsafe {
        c::pthread_cond_wait(cond, mutex)
    })
}

pub extern "C" fn timedwait(cond: *mut c_void, mutex: *mut Mutex, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    wait_with(cond, mutex, Patience::Timed, until, || unsafe {
        c::pthread_cond_timedwait(cond, mutex, until)
    })
}

extern "C" fn clockwait(
    cond: *mut c_void,
    mutex: *mut Mutex,
    clock: c_int,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: as the program asks.
    wait_with(cond, mutex, Patience::Timed, until, || unsafe {
        c::pthread_cond_clockwait(cond, mutex, clock, until)
    })
}

fn say(op: SyncOp, cond: *mut c_void) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        observe::sync(thread, pc, op, cond as usize, 0);
    }
}

pub extern "C" fn signal(cond: *mut c_void) -> c_int {
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        let pc = thread.caller_pc();
        super::step_with(thread, pc, SyncOp::Signal, cond as usize, 0, || steer::signal(cond as usize, 1));
        return 0;
    }
    say(SyncOp::Signal, cond);
    // SAFETY: as the program asks.
    unsafe { c::pthread_cond_signal(cond) }
}

pub extern "C" fn broadcast(cond: *mut c_void) -> c_int {
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        let pc = thread.caller_pc();
        super::step_with(thread, pc, SyncOp::Broadcast, cond as usize, 0, || {
            steer::signal(cond as usize, usize::MAX)
        });
        return 0;
    }
    say(SyncOp::Broadcast, cond);
    // SAFETY: as the program asks.
    unsafe { c::pthread_cond_broadcast(cond) }
}

pub extern "C" fn init(cond: *mut c_void, attr: *const c_void) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_cond_init(cond, attr) };
    say(SyncOp::CondInit, cond);
    result
}

pub extern "C" fn destroy(cond: *mut c_void) -> c_int {
    say(SyncOp::CondDestroy, cond);
    // SAFETY: as the program asks.
    unsafe { c::pthread_cond_destroy(cond) }
}

export_with_pc! {
    pthread_cond_init => init;
    pthread_cond_destroy => destroy;
    pthread_cond_signal => signal;
    pthread_cond_broadcast => broadcast;
    pthread_cond_wait => wait;
    pthread_cond_timedwait => timedwait;
    pthread_cond_clockwait => clockwait;
}
