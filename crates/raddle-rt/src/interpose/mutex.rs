//! Mutexes and spin locks.

use crate::arch::mutex as layout;
use crate::thread::{self, Thread};
use crate::{export_with_pc, observe, real_fn};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::SyncOp;
use raddle_wire::record::lock as bits;

pub type Mutex = layout::Mutex;

mod c {
    use super::*;
    real_fn! {
        fn pthread_mutex_init(m: *mut Mutex, attr: *const c_void) -> c_int;
        fn pthread_mutex_destroy(m: *mut Mutex) -> c_int;
        fn pthread_mutex_lock(m: *mut Mutex) -> c_int;
        fn pthread_mutex_trylock(m: *mut Mutex) -> c_int;
        fn pthread_mutex_timedlock(m: *mut Mutex, until: *const libc::timespec) -> c_int;
        fn pthread_mutex_clocklock(m: *mut Mutex, clock: c_int, until: *const libc::timespec) -> c_int;
        fn pthread_mutex_unlock(m: *mut Mutex) -> c_int;
        fn pthread_spin_init(s: *mut c_int, shared: c_int) -> c_int;
        fn pthread_spin_destroy(s: *mut c_int) -> c_int;
        fn pthread_spin_lock(s: *mut c_int) -> c_int;
        fn pthread_spin_trylock(s: *mut c_int) -> c_int;
        fn pthread_spin_unlock(s: *mut c_int) -> c_int;
    }
}

/// What the mutex itself says about its kind.
pub fn kind_bits(m: *const Mutex) -> u64 {
    // SAFETY: the program passes an initialised mutex.
    let kind = unsafe { (*m).kind.load(Ordering::Relaxed) };
    let mut flags = match kind & layout::KIND_MASK {
        layout::RECURSIVE => bits::RECURSIVE,
        layout::ERRORCHECK => bits::ERRORCHECK,
        _ => 0,
    };
    if kind & layout::ROBUST != 0 {
        flags |= bits::ROBUST;
    }
    flags
}

fn owned_by_caller(m: *const Mutex, thread: &Thread) -> bool {
    // SAFETY: as above.
    unsafe { (*m).owner.load(Ordering::Relaxed) == thread.os_tid.load(Ordering::Relaxed) }
}

fn depth(m: *const Mutex) -> u32 {
    // SAFETY: as above.
    unsafe { (*m).count.load(Ordering::Relaxed) }
}

/// Reports the outcome of a lock operation.
pub fn report_lock(thread: &mut Thread, pc: u64, m: *mut Mutex, result: c_int, how: u64) {
    let mut flags = how | kind_bits(m);
    match result {
        0 | libc::EOWNERDEAD => {
            if flags & bits::RECURSIVE != 0 && depth(m) > 1 {
                flags |= bits::NESTED;
            }
            if result == libc::EOWNERDEAD {
                flags |= bits::OWNER_DIED;
            }
            observe::sync(thread, pc, SyncOp::Lock, m as usize, flags);
        }
        libc::EBUSY | libc::ETIMEDOUT => observe::sync(thread, pc, SyncOp::LockFailed, m as usize, flags),
        _ => {}
    }
}

/// Takes the lock if it is free; otherwise says that the thread is about to wait for it.
fn try_first(thread: &mut Thread, pc: u64, m: *mut Mutex, how: u64) -> c_int {
    // SAFETY: the program passes an initialised mutex.
    let result = unsafe { c::pthread_mutex_trylock(m) };
    if result == libc::EBUSY && !(kind_bits(m) & bits::ERRORCHECK != 0 && owned_by_caller(m, thread)) {
        observe::sync(thread, pc, SyncOp::Request, m as usize, how | kind_bits(m));
    }
    result
}

pub extern "C" fn lock(m: *mut Mutex) -> c_int {
    let Some(thread) = thread::observed() else {
        // SAFETY: as the program asks.
        return unsafe { c::pthread_mutex_lock(m) };
    };
    let pc = thread.caller_pc;
    let mut result = try_first(thread, pc, m, 0);
    if result == libc::EBUSY {
        // SAFETY: as the program asks.
        result = unsafe { c::pthread_mutex_lock(m) };
    }
    report_lock(thread, pc, m, result, 0);
    result
}

pub extern "C" fn trylock(m: *mut Mutex) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_mutex_trylock(m) };
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc;
        report_lock(thread, pc, m, result, bits::TRY);
    }
    result
}

pub extern "C" fn timedlock(m: *mut Mutex, until: *const libc::timespec) -> c_int {
    timed(m, || {
        // SAFETY: as the program asks.
        unsafe { c::pthread_mutex_timedlock(m, until) }
    })
}

extern "C" fn clocklock(m: *mut Mutex, clock: c_int, until: *const libc::timespec) -> c_int {
    timed(m, || {
        // SAFETY: as the program asks.
        unsafe { c::pthread_mutex_clocklock(m, clock, until) }
    })
}

fn timed(m: *mut Mutex, wait: impl Fn() -> c_int) -> c_int {
    let Some(thread) = thread::observed() else { return wait() };
    let pc = thread.caller_pc;
    let mut result = try_first(thread, pc, m, bits::TIMED);
    if result == libc::EBUSY {
        result = wait();
    }
    report_lock(thread, pc, m, result, bits::TIMED);
    result
}

pub extern "C" fn unlock(m: *mut Mutex) -> c_int {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc;
        let mut flags = kind_bits(m);
        let checked = flags & (bits::RECURSIVE | bits::ERRORCHECK | bits::ROBUST) != 0;
        // A checked mutex that the caller does not own will not be released: nothing to report.
        if !checked || owned_by_caller(m, thread) {
            if flags & bits::RECURSIVE != 0 && depth(m) > 1 {
                flags |= bits::NESTED;
            }
            observe::sync(thread, pc, SyncOp::Unlock, m as usize, flags);
        }
    }
    // SAFETY: as the program asks.
    unsafe { c::pthread_mutex_unlock(m) }
}

pub extern "C" fn init(m: *mut Mutex, attr: *const c_void) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_mutex_init(m, attr) };
    if result == 0 {
        announce(m, SyncOp::MutexInit);
    }
    result
}

/// Reports the beginning or the end of a mutex's life.
pub fn announce(m: *mut Mutex, op: SyncOp) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc;
        let flags = if op == SyncOp::MutexInit { kind_bits(m) } else { 0 };
        observe::sync(thread, pc, op, m as usize, flags);
    }
}

extern "C" fn destroy(m: *mut Mutex) -> c_int {
    announce(m, SyncOp::MutexDestroy);
    // SAFETY: as the program asks.
    unsafe { c::pthread_mutex_destroy(m) }
}

extern "C" fn spin_init(s: *mut c_int, shared: c_int) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_spin_init(s, shared) };
    spin_event(s, SyncOp::MutexInit, 0);
    result
}

extern "C" fn spin_destroy(s: *mut c_int) -> c_int {
    spin_event(s, SyncOp::MutexDestroy, 0);
    // SAFETY: as the program asks.
    unsafe { c::pthread_spin_destroy(s) }
}

fn spin_event(s: *mut c_int, op: SyncOp, how: u64) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc;
        observe::sync(thread, pc, op, s as usize, how | bits::SPIN);
    }
}

extern "C" fn spin_lock(s: *mut c_int) -> c_int {
    // SAFETY: as the program asks.
    let mut result = unsafe { c::pthread_spin_trylock(s) };
    if result != 0 {
        spin_event(s, SyncOp::Request, 0);
        // SAFETY: as the program asks.
        result = unsafe { c::pthread_spin_lock(s) };
    }
    spin_event(s, SyncOp::Lock, 0);
    result
}

extern "C" fn spin_trylock(s: *mut c_int) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_spin_trylock(s) };
    spin_event(s, if result == 0 { SyncOp::Lock } else { SyncOp::LockFailed }, bits::TRY);
    result
}

extern "C" fn spin_unlock(s: *mut c_int) -> c_int {
    spin_event(s, SyncOp::Unlock, 0);
    // SAFETY: as the program asks.
    unsafe { c::pthread_spin_unlock(s) }
}

export_with_pc! {
    pthread_mutex_init => init;
    pthread_mutex_destroy => destroy;
    pthread_mutex_lock => lock;
    pthread_mutex_trylock => trylock;
    pthread_mutex_timedlock => timedlock;
    pthread_mutex_clocklock => clocklock;
    pthread_mutex_unlock => unlock;
    pthread_spin_init => spin_init;
    pthread_spin_destroy => spin_destroy;
    pthread_spin_lock => spin_lock;
    pthread_spin_trylock => spin_trylock;
    pthread_spin_unlock => spin_unlock;
}
