//! One-time initialisation: `pthread_once` and the guards of C++ function-local statics.

use crate::steer::{self, Patience, Request};
use crate::thread::{self, Thread};
use crate::{export_with_pc, observe, real_fn};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        fn pthread_once(control: *mut AtomicU32, routine: extern "C" fn()) -> c_int;
        fn __cxa_guard_acquire(guard: *mut c_void) -> c_int;
        fn __cxa_guard_release(guard: *mut c_void);
        fn __cxa_guard_abort(guard: *mut c_void);
    }
}

/// Most initialisers that may be under way at once under steering, over all threads.
const RUNNING_MAX: usize = 256;

/// `pthread_once` passes nothing to its routine: what to run waits here. The thread points to the innermost one, each one
/// to the next. An initialiser that is left by unwinding takes its entry off on the way ([`unwound`]).
struct Pending {
    outer: *mut c_void,
    routine: extern "C" fn(),
    control: *mut AtomicU32,
    pc: u64,
    ran: bool,
}

extern "C" fn run() {
    let pending = thread::current().once.get().cast::<Pending>();
    // SAFETY: `once` has put an entry there, in its frame, which is active.
    let Some(pending) = (unsafe { pending.as_mut() }) else { return };
    pending.ran = true;
    let (pc, control) = (pending.pc, pending.control as usize);
    if let (false, Some(thread)) = (steer::on(), thread::observed()) {
        observe::sync(thread, pc, SyncOp::OnceBegin, control, 0);
    }
    call_once_routine(pending.routine);
    ended(pc, control);
}

fn ended(pc: u64, control: usize) {
    match thread::observed() {
        Some(thread) => {
            super::step_with(thread, pc, SyncOp::OnceEnd, control, 0, || set_running(control, false));
        }
        None => set_running(control, false),
    }
}

crate::once_frame!(unwound);

/// The innermost routine of the calling thread is left by an exception, `pthread_exit` or a cancellation: the next caller
/// tries again.
fn unwound() {
    let thread = thread::current();
    // SAFETY: the unwinder is above the frame of `once`, which is still there.
    let Some(pending) = (unsafe { thread.once.get().cast::<Pending>().as_ref() }) else { return };
    let (pc, control) = (pending.pc, pending.control as usize);
    thread.once.set(pending.outer);
    ended(pc, control);
}

/// Initialisers that are being run, under steering.
struct Running {
    controls: [usize; RUNNING_MAX],
}

static RUNNING: crate::spin::Spin<Running> = crate::spin::Spin::new(Running { controls: [0; RUNNING_MAX] });

fn is_running(control: usize) -> bool {
    RUNNING.lock().controls.contains(&control)
}

fn set_running(control: usize, running: bool) {
    let mut table = RUNNING.lock();
    let (old, new) = if running { (0, control) } else { (control, 0) };
    if let Some(place) = table.controls.iter_mut().find(|place| **place == old) {
        *place = new;
    }
}

/// The decision whether this thread initialises, in its turn: true if it does.
fn decide(thread: &Thread, pc: u64, control: usize, done: impl Fn() -> bool) -> bool {
    let request = Request { kind: step::ONCE_BEGIN, object: control, pc };
    let mine = steer::blocking(thread, request, Patience::Forever, |thread| {
        if done() {
            observe::sync(thread, pc, SyncOp::OncePassed, control, 0);
            return Some(false);
        }
        if is_running(control) {
            return None;
        }
        set_running(control, true);
        observe::sync(thread, pc, SyncOp::OnceBegin, control, 0);
        Some(true)
    });
    mine.unwrap_or(false)
}

/// glibc's value of a finished `pthread_once_t`.
const ONCE_DONE: u32 = 2;

/// Does the C library say that an initialiser has run as [`ONCE_DONE`] says?
pub fn is_laid_out_as_expected() -> bool {
    extern "C" fn nothing() {}
    let control = AtomicU32::new(0);
    // SAFETY: the control word is ours and starts out as zero, as one must.
    unsafe { c::pthread_once((&raw const control).cast_mut(), nothing) };
    control.load(Ordering::Relaxed) & 3 == ONCE_DONE
}

pub extern "C" fn once(control: *mut AtomicU32, routine: extern "C" fn()) -> c_int {
    let Some(thread) = thread::observed() else {
        // SAFETY: as the program asks.
        return unsafe { c::pthread_once(control, routine) };
    };
    let pc = thread.caller_pc();
    // SAFETY: the program passes a valid control word.
    let is_done = || unsafe { (*control).load(Ordering::Acquire) } & 3 == ONCE_DONE;
    let steered = steer::on();
    let done = if steered { !decide(thread, pc, control as usize, is_done) } else { is_done() };
    let mut pending = Pending { outer: thread.once.get(), routine, control, pc, ran: steered };
    if !done {
        thread.once.set((&raw mut pending).cast());
        // SAFETY: `run` calls the program's routine.
        unsafe { c::pthread_once(control, run) };
        thread::current().once.set(pending.outer);
    }
    if !pending.ran
        && let Some(thread) = thread::observed()
    {
        observe::sync(thread, pc, SyncOp::OncePassed, control as usize, 0);
    }
    0
}

/// The first byte of a guard says that the initialisation is complete.
fn guard_done(guard: *mut c_void) -> bool {
    // SAFETY: the compiler passes a valid guard.
    unsafe { (*guard.cast::<AtomicU8>()).load(Ordering::Acquire) != 0 }
}

extern "C" fn guard_acquire(guard: *mut c_void) -> c_int {
    let pc = thread::current().caller_pc();
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        if !decide(thread, pc, guard as usize, || guard_done(guard)) {
            return 0;
        }
        // SAFETY: as the compiler asks; nobody else is initialising, so this does not block.
        return unsafe { c::__cxa_guard_acquire(guard) };
    }
    // SAFETY: as the compiler asks.
    let mine = unsafe { c::__cxa_guard_acquire(guard) };
    if let Some(thread) = thread::observed() {
        let op = if mine != 0 { SyncOp::OnceBegin } else { SyncOp::OncePassed };
        observe::sync(thread, pc, op, guard as usize, 0);
    }
    mine
}

extern "C" fn guard_release(guard: *mut c_void) {
    let finish = || {
        set_running(guard as usize, false);
        // SAFETY: as the compiler asks.
        unsafe { c::__cxa_guard_release(guard) }
    };
    match thread::observed() {
        Some(thread) => {
            let pc = thread.caller_pc();
            super::step_with(thread, pc, SyncOp::OnceEnd, guard as usize, 0, finish);
        }
        None => finish(),
    }
}

extern "C" fn guard_abort(guard: *mut c_void) {
    let finish = || {
        set_running(guard as usize, false);
        // SAFETY: as the compiler asks.
        unsafe { c::__cxa_guard_abort(guard) }
    };
    match thread::observed() {
        Some(thread) => {
            let pc = thread.caller_pc();
            super::step_with(thread, pc, SyncOp::OnceEnd, guard as usize, 0, finish);
        }
        None => finish(),
    }
}

export_with_pc! {
    pthread_once => once;
    __cxa_guard_acquire => guard_acquire;
    __cxa_guard_release => guard_release;
    __cxa_guard_abort => guard_abort;
}
