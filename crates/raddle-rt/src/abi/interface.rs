//! `sanitizer/tsan_interface.h`: what a program may say about its own synchronisation.

use crate::thread::{self, Thread};
use crate::{detect, threads};
use crate::{export_with_pc, interpose, observe};
use core::ffi::{c_char, c_int, c_uint, c_void};
use raddle_wire::SyncOp;
use raddle_wire::record::lock;

fn say(op: SyncOp, object: usize, argument: u64) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        interpose::step(thread, pc, op, object, argument);
    }
}

extern "C" fn acquire(object: usize) {
    say(SyncOp::Acquire, object, 0);
}

extern "C" fn release(object: usize) {
    say(SyncOp::Release, object, 0);
}

/// Flags of `__tsan_mutex_*`, as the header numbers them.
const LINKER_INIT: c_uint = 1 << 0;
const WRITE_REENTRANT: c_uint = 1 << 1;
const READ_LOCK: c_uint = 1 << 3;
const TRY_LOCK: c_uint = 1 << 4;
const TRY_LOCK_FAILED: c_uint = 1 << 5;
const RECURSIVE_LOCK: c_uint = 1 << 6;
const NOT_STATIC: c_uint = 1 << 8;

fn lock_bits(flags: c_uint) -> u64 {
    let mut bits = 0;
    if flags & TRY_LOCK != 0 {
        bits |= lock::TRY;
    }
    if flags & READ_LOCK != 0 {
        bits |= lock::READ | lock::RWLOCK;
    }
    if flags & (WRITE_REENTRANT | RECURSIVE_LOCK) != 0 {
        bits |= lock::RECURSIVE;
    }
    bits
}

/// A region begins (`1`) or ends (`-1`) whose accesses are ignored.
pub fn ignore_accesses(by: i32) {
    let thread = thread::current();
    if thread.is_observed() {
        thread.access.ignore(by);
        thread::refresh_enabled(thread);
    }
}

pub fn ignore_sync(by: i32) {
    let thread = thread::current();
    if thread.is_observed() {
        thread.access.ignore_sync(by);
    }
}

/// What is between the two halves of an annotated operation is how a lock works, and not what it means: neither its accesses nor its
/// synchronisation count.
fn inside(by: i32) {
    ignore_accesses(by);
    ignore_sync(by);
}

/// A lock that is there from the beginning: it has no life whose begin and end would mean anything.
pub fn make_static(object: usize) {
    if detect::on() {
        detect::lasts(object, detect::Lasting::Always);
    }
}

pub fn is_static(object: usize) -> bool {
    detect::on() && detect::lasting(object) == detect::Lasting::Always
}

extern "C" fn mutex_create(object: usize, flags: c_uint) {
    if flags & LINKER_INIT != 0 {
        return make_static(object);
    }
    say(SyncOp::MutexInit, object, lock_bits(flags));
    if flags & NOT_STATIC != 0 && detect::on() {
        detect::lasts(object, detect::Lasting::FromCreation);
    }
}

extern "C" fn mutex_destroy(object: usize, flags: c_uint) {
    // One that says it is not static and was never created is static all the same.
    let never_created =
        flags & NOT_STATIC != 0 && detect::on() && detect::lasting(object) != detect::Lasting::FromCreation;
    if flags & LINKER_INIT == 0 && !is_static(object) && !never_created {
        say(SyncOp::MutexDestroy, object, 0);
    }
}

extern "C" fn mutex_pre_lock(_object: usize, _flags: c_uint) {
    inside(1);
}

extern "C" fn mutex_post_lock(object: usize, flags: c_uint, _recursion: c_int) {
    inside(-1);
    let op = match (flags & READ_LOCK != 0, flags & TRY_LOCK_FAILED != 0) {
        (false, false) => SyncOp::Lock,
        (false, true) => SyncOp::LockFailed,
        (true, false) => SyncOp::ReadLock,
        (true, true) => SyncOp::ReadLockFailed,
    };
    say(op, object, lock_bits(flags));
}

extern "C" fn mutex_pre_unlock(object: usize, flags: c_uint) -> c_int {
    say(SyncOp::Unlock, object, lock_bits(flags));
    inside(1);
    0
}

extern "C" fn mutex_post_unlock(_object: usize, _flags: c_uint) {
    inside(-1);
}

/// Waking others passes nothing on by itself: the lock does.
extern "C" fn mutex_pre_signal(_object: usize, _flags: c_uint) {
    inside(1);
}

extern "C" fn mutex_post_signal(_object: usize, _flags: c_uint) {
    inside(-1);
}

/// Within an operation, code that has nothing to do with the lock is about to run: it counts.
extern "C" fn mutex_pre_divert(_object: usize, _flags: c_uint) {
    inside(-1);
}

extern "C" fn mutex_post_divert(_object: usize, _flags: c_uint) {
    inside(1);
}

export_with_pc! {
    __tsan_acquire => acquire;
    __tsan_release => release;
    __tsan_mutex_create => mutex_create;
    __tsan_mutex_destroy => mutex_destroy;
    __tsan_mutex_pre_lock => mutex_pre_lock;
    __tsan_mutex_post_lock => mutex_post_lock;
    __tsan_mutex_pre_unlock => mutex_pre_unlock;
    __tsan_mutex_post_unlock => mutex_post_unlock;
    __tsan_mutex_pre_signal => mutex_pre_signal;
    __tsan_mutex_post_signal => mutex_post_signal;
    __tsan_mutex_pre_divert => mutex_pre_divert;
    __tsan_mutex_post_divert => mutex_post_divert;
}

// Fibers. When races are all that a run wants, a fiber is a thread that has no life of its own: it runs where it is switched to, and has
// a call stack, clocks, and locks. Recorded and steered runs know threads of the system alone, so there a fiber is the thread that runs it.

/// Flag of a switch that orders nothing.
const NO_SYNC: c_uint = 1;

extern "C" fn current_fiber() -> *mut c_void {
    core::ptr::from_ref(thread::current()).cast_mut().cast()
}

extern "C" fn create_fiber(_flags: c_uint) -> *mut c_void {
    let thread = thread::current();
    let own = || {
        let here = thread::observed().filter(|_| detect::alone())?;
        threads::create_fiber(here, here.caller_pc())
    };
    core::ptr::from_ref(own().unwrap_or(thread)).cast_mut().cast()
}

/// # Safety
/// The handle is one that `create_fiber` or `current_fiber` returned (here and below).
unsafe fn fiber(handle: *mut c_void) -> Option<&'static Thread> {
    // SAFETY: by contract; structures are never unmapped.
    unsafe { handle.cast::<Thread>().as_ref() }
}

extern "C" fn destroy_fiber(handle: *mut c_void) {
    // SAFETY: as the program asks.
    if let Some(fiber) = unsafe { fiber(handle) }.filter(|&fiber| !core::ptr::eq(fiber, thread::current())) {
        threads::end_fiber(fiber);
    }
}

extern "C" fn switch_to_fiber(handle: *mut c_void, flags: c_uint) {
    let thread = thread::current();
    // SAFETY: as the program asks.
    if let Some(fiber) = unsafe { fiber(handle) }.filter(|&fiber| !core::ptr::eq(fiber, thread)) {
        threads::switch_to_fiber(thread, fiber, flags & NO_SYNC == 0);
    }
}

extern "C" fn set_fiber_name(handle: *mut c_void, name: *const c_char) {
    // SAFETY: as the program asks.
    if let (Some(fiber), false) = (unsafe { fiber(handle) }, name.is_null()) {
        // SAFETY: a C string.
        let name = unsafe { core::ffi::CStr::from_ptr(name) };
        detect::thread_table::named(fiber.index(), name.to_bytes());
    }
}

export_with_pc! {
    __tsan_get_current_fiber => current_fiber;
    __tsan_create_fiber => create_fiber;
    __tsan_destroy_fiber => destroy_fiber;
    __tsan_switch_to_fiber => switch_to_fiber;
    __tsan_set_fiber_name => set_fiber_name;
}

// External objects: a library announces the accesses of its callers.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_external_register_tag(_name: *const c_char) -> *mut c_void {
    core::ptr::without_provenance_mut(1)
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_external_register_header(_tag: *mut c_void, _header: *const c_char) {}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_external_assign_tag(_address: *mut c_void, _tag: *mut c_void) {}

fn external(address: usize, pc: u64, aux: u8) {
    if let Some(thread) = thread::observed()
        && thread.access.are_enabled()
    {
        observe::access(thread, pc, aux, address);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_external_read(address: usize, pc: u64, _tag: *mut c_void) {
    external(address, pc, 0);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_external_write(address: usize, pc: u64, _tag: *mut c_void) {
    external(address, pc, raddle_wire::record::access::WRITE);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_flush_memory() {}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_begin() {
    ignore_accesses(1);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_end() {
    ignore_accesses(-1);
}
