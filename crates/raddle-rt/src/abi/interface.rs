//! `sanitizer/tsan_interface.h`: what a program may say about its own synchronisation.

use crate::thread;
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
const WRITE_REENTRANT: c_uint = 1 << 1;
const READ_LOCK: c_uint = 1 << 3;
const TRY_LOCK: c_uint = 1 << 4;
const TRY_LOCK_FAILED: c_uint = 1 << 5;
const RECURSIVE_LOCK: c_uint = 1 << 6;

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

extern "C" fn mutex_create(object: usize, flags: c_uint) {
    say(SyncOp::MutexInit, object, lock_bits(flags));
}

extern "C" fn mutex_destroy(object: usize, _flags: c_uint) {
    say(SyncOp::MutexDestroy, object, 0);
}

extern "C" fn mutex_pre_lock(_object: usize, _flags: c_uint) {}

extern "C" fn mutex_post_lock(object: usize, flags: c_uint, _recursion: c_int) {
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
    0
}

extern "C" fn mutex_post_unlock(_object: usize, _flags: c_uint) {}
extern "C" fn mutex_pre_signal(object: usize, _flags: c_uint) {
    say(SyncOp::Signal, object, 0);
}
extern "C" fn mutex_post_signal(_object: usize, _flags: c_uint) {}
extern "C" fn mutex_pre_divert(_object: usize, _flags: c_uint) {}
extern "C" fn mutex_post_divert(_object: usize, _flags: c_uint) {}

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

// Fibers: a fiber's handle is any non-null address. Accesses of a fiber count as those of the thread that runs it.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_current_fiber() -> *mut c_void {
    crate::arch::current().cast_mut().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_create_fiber(_flags: c_uint) -> *mut c_void {
    crate::arch::current().cast_mut().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_destroy_fiber(_fiber: *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_switch_to_fiber(_fiber: *mut c_void, _flags: c_uint) {}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_set_fiber_name(_fiber: *mut c_void, _name: *const c_char) {}

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
    thread::current().access.enabled.set(0);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_end() {
    thread::refresh_enabled(thread::current());
}
