//! C11 threads. glibc builds them on the same objects as POSIX threads but does not call the POSIX functions by name,
//! so each has to be stood in for as well; the work is done by the POSIX versions here, with C11's results.

use crate::interpose::mutex::Mutex;
use crate::interpose::{condition, create, mutex, once};
use crate::{export_with_pc, real_fn};
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;
use raddle_wire::SyncOp;

mod c {
    use super::*;
    real_fn! {
        fn mtx_init(m: *mut Mutex, kind: c_int) -> c_int;
        fn mtx_destroy(m: *mut Mutex);
        fn thrd_sleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int;
        fn thrd_yield();
    }
}

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

fn c11(result: c_int) -> c_int {
    match result {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// A C11 start routine returns `int`. The POSIX thread's result is the register's value, of which C11's join takes the
/// low half: the two kinds of routine can be called alike.
extern "C" fn do_thrd_create(
    handle: *mut libc::pthread_t,
    routine: create::Routine,
    argument: *mut c_void,
) -> c_int {
    c11(create::create(handle, core::ptr::null(), routine, argument))
}

extern "C" fn do_thrd_join(handle: libc::pthread_t, result: *mut c_int) -> c_int {
    let mut value: *mut c_void = core::ptr::null_mut();
    let status = c11(create::join(handle, &mut value));
    if status == SUCCESS && !result.is_null() {
        // SAFETY: the program passes a valid pointer.
        unsafe { *result = value as usize as c_int };
    }
    status
}

extern "C" fn do_thrd_detach(handle: libc::pthread_t) -> c_int {
    c11(create::detach(handle))
}

extern "C" fn do_thrd_sleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the program passes a valid time.
    if crate::interpose::sleep::sleeps(unsafe { crate::steer::clock::length_ns(time) }) {
        return 0;
    }
    // SAFETY: as the program asks.
    unsafe { c::thrd_sleep(time, left) }
}

extern "C" fn do_thrd_yield() {
    if crate::interpose::sleep::yields(0) {
        return;
    }
    // SAFETY: no arguments.
    unsafe { c::thrd_yield() }
}

extern "C" fn do_mtx_init(m: *mut Mutex, kind: c_int) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::mtx_init(m, kind) };
    if result == SUCCESS {
        mutex::announce(m, SyncOp::MutexInit);
    }
    result
}

extern "C" fn do_mtx_destroy(m: *mut Mutex) {
    mutex::announce(m, SyncOp::MutexDestroy);
    // SAFETY: as the program asks.
    unsafe { c::mtx_destroy(m) }
}

extern "C" fn do_mtx_lock(m: *mut Mutex) -> c_int {
    c11(mutex::lock(m))
}

extern "C" fn do_mtx_trylock(m: *mut Mutex) -> c_int {
    c11(mutex::trylock(m))
}

extern "C" fn do_mtx_timedlock(m: *mut Mutex, until: *const libc::timespec) -> c_int {
    c11(mutex::timedlock(m, until))
}

extern "C" fn do_mtx_unlock(m: *mut Mutex) -> c_int {
    c11(mutex::unlock(m))
}

extern "C" fn do_cnd_init(cond: *mut c_void) -> c_int {
    c11(condition::init(cond, core::ptr::null()))
}

extern "C" fn do_cnd_destroy(cond: *mut c_void) {
    condition::destroy(cond);
}

extern "C" fn do_cnd_signal(cond: *mut c_void) -> c_int {
    c11(condition::signal(cond))
}

extern "C" fn do_cnd_broadcast(cond: *mut c_void) -> c_int {
    c11(condition::broadcast(cond))
}

extern "C" fn do_cnd_wait(cond: *mut c_void, m: *mut Mutex) -> c_int {
    c11(condition::wait(cond, m))
}

extern "C" fn do_cnd_timedwait(cond: *mut c_void, m: *mut Mutex, until: *const libc::timespec) -> c_int {
    c11(condition::timedwait(cond, m, until))
}

extern "C" fn do_call_once(flag: *mut AtomicU32, routine: extern "C" fn()) {
    once::once(flag, routine);
}

// Thread-specific storage (`tss_*`) orders nothing between threads and needs no event; its destructors run while the
// thread is still observed.
export_with_pc! {
    thrd_create => do_thrd_create;
    thrd_join => do_thrd_join;
    thrd_detach => do_thrd_detach;
    thrd_sleep => do_thrd_sleep;
    thrd_yield => do_thrd_yield;
    mtx_init => do_mtx_init;
    mtx_destroy => do_mtx_destroy;
    mtx_lock => do_mtx_lock;
    mtx_trylock => do_mtx_trylock;
    mtx_timedlock => do_mtx_timedlock;
    mtx_unlock => do_mtx_unlock;
    cnd_init => do_cnd_init;
    cnd_destroy => do_cnd_destroy;
    cnd_signal => do_cnd_signal;
    cnd_broadcast => do_cnd_broadcast;
    cnd_wait => do_cnd_wait;
    cnd_timedwait => do_cnd_timedwait;
    call_once => do_call_once;
}
