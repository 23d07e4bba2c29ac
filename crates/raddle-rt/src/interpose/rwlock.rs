//! Read-write locks.

use crate::steer::{self, Patience, Request};
use crate::thread::{self, Thread};
use crate::{export_with_pc, observe, real, real_fn};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use raddle_wire::record::lock as bits;
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        fn pthread_rwlock_init(l: *mut c_void, attr: *const c_void) -> c_int;
        fn pthread_rwlock_destroy(l: *mut c_void) -> c_int;
        fn pthread_rwlock_rdlock(l: *mut c_void) -> c_int;
        fn pthread_rwlock_tryrdlock(l: *mut c_void) -> c_int;
        fn pthread_rwlock_timedrdlock(l: *mut c_void, until: *const libc::timespec) -> c_int;
        fn pthread_rwlock_clockrdlock(l: *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int;
        fn pthread_rwlock_wrlock(l: *mut c_void) -> c_int;
        fn pthread_rwlock_trywrlock(l: *mut c_void) -> c_int;
        fn pthread_rwlock_timedwrlock(l: *mut c_void, until: *const libc::timespec) -> c_int;
        fn pthread_rwlock_clockwrlock(l: *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int;
        fn pthread_rwlock_unlock(l: *mut c_void) -> c_int;
    }
}

fn say(op: SyncOp, l: *mut c_void, how: u64) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        observe::sync(thread, pc, op, l as usize, how | bits::RWLOCK);
    }
}

fn outcome(l: *mut c_void, read: bool, result: c_int, how: u64, pc: u64) {
    let op = match (read, result) {
        (false, 0) => SyncOp::Lock,
        (true, 0) => SyncOp::ReadLock,
        (false, libc::EBUSY | libc::ETIMEDOUT) => SyncOp::LockFailed,
        (true, libc::EBUSY | libc::ETIMEDOUT) => SyncOp::ReadLockFailed,
        _ => return,
    };
    let read_bit = if read { bits::READ } else { 0 };
    if let Some(thread) = thread::observed() {
        observe::sync(thread, pc, op, l as usize, how | read_bit | bits::RWLOCK);
    }
}

fn steered(thread: &Thread, pc: u64, l: *mut c_void, read: bool, patience: Patience, how: u64) -> c_int {
    let request = Request { kind: if read { step::READ_LOCK } else { step::LOCK }, object: l as usize, pc };
    let mode = if read { bits::READ | bits::RWLOCK } else { bits::RWLOCK };
    let taken = steer::blocking(thread, request, patience, |thread| {
        // SAFETY: as the program asks.
        let result =
            unsafe { if read { c::pthread_rwlock_tryrdlock(l) } else { c::pthread_rwlock_trywrlock(l) } };
        if result == libc::EBUSY {
            return None;
        }
        if result == 0 {
            observe::sync(
                thread,
                pc,
                if read { SyncOp::ReadLock } else { SyncOp::Lock },
                l as usize,
                how | mode,
            );
        }
        Some(result)
    });
    taken.unwrap_or_else(|| {
        let op = if read { SyncOp::ReadLockFailed } else { SyncOp::LockFailed };
        observe::sync(thread, pc, op, l as usize, how | mode);
        steer::failed(thread);
        if patience == Patience::Not { libc::EBUSY } else { libc::ETIMEDOUT }
    })
}

/// Tries first, so that a thread that has to wait can say so.
fn acquire(
    l: *mut c_void,
    read: bool,
    how: u64,
    until: *const libc::timespec,
    wait: impl Fn() -> c_int,
) -> c_int {
    let Some(thread) = thread::observed() else { return wait() };
    let pc = thread.caller_pc();
    if steer::on() {
        let patience = if how & bits::TIMED != 0 { Patience::Timed } else { Patience::Forever };
        let result = steered(thread, pc, l, read, patience, how);
        if result == libc::ETIMEDOUT {
            // SAFETY: the program passes a valid time.
            unsafe { steer::clock::reach(until) };
        }
        return result;
    }
    // SAFETY: as the program asks.
    let mut result =
        unsafe { if read { c::pthread_rwlock_tryrdlock(l) } else { c::pthread_rwlock_trywrlock(l) } };
    if result == libc::EBUSY {
        let read_bit = if read { bits::READ } else { 0 };
        observe::sync(thread, pc, SyncOp::Request, l as usize, how | read_bit | bits::RWLOCK);
        result = wait();
    }
    outcome(l, read, result, how, pc);
    result
}

extern "C" fn rdlock(l: *mut c_void) -> c_int {
    // SAFETY: as the program asks (here and below).
    acquire(l, true, 0, core::ptr::null(), || unsafe { c::pthread_rwlock_rdlock(l) })
}

extern "C" fn wrlock(l: *mut c_void) -> c_int {
    // SAFETY: as the program asks.
    acquire(l, false, 0, core::ptr::null(), || unsafe { c::pthread_rwlock_wrlock(l) })
}

extern "C" fn timedrdlock(l: *mut c_void, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    acquire(l, true, bits::TIMED, until, || unsafe { c::pthread_rwlock_timedrdlock(l, until) })
}

extern "C" fn timedwrlock(l: *mut c_void, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    acquire(l, false, bits::TIMED, until, || unsafe { c::pthread_rwlock_timedwrlock(l, until) })
}

extern "C" fn clockrdlock(l: *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    acquire(l, true, bits::TIMED, until, || unsafe { c::pthread_rwlock_clockrdlock(l, clock, until) })
}

extern "C" fn clockwrlock(l: *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int {
    // SAFETY: as the program asks.
    acquire(l, false, bits::TIMED, until, || unsafe { c::pthread_rwlock_clockwrlock(l, clock, until) })
}

extern "C" fn tryrdlock(l: *mut c_void) -> c_int {
    let pc = thread::current().caller_pc();
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        return steered(thread, pc, l, true, Patience::Not, bits::TRY);
    }
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_rwlock_tryrdlock(l) };
    outcome(l, true, result, bits::TRY, pc);
    result
}

extern "C" fn trywrlock(l: *mut c_void) -> c_int {
    let pc = thread::current().caller_pc();
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        return steered(thread, pc, l, false, Patience::Not, bits::TRY);
    }
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_rwlock_trywrlock(l) };
    outcome(l, false, result, bits::TRY, pc);
    result
}

extern "C" fn unlock(l: *mut c_void) -> c_int {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        // SAFETY: the program passes an initialised lock.
        let writer = unsafe { writer(l) }.load(Ordering::Relaxed);
        let read_bit = if writer == thread.os_tid() { 0 } else { bits::READ };
        // SAFETY: as the program asks.
        let release = || unsafe { c::pthread_rwlock_unlock(l) };
        return super::step_with(thread, pc, SyncOp::Unlock, l as usize, bits::RWLOCK | read_bit, release);
    }
    // SAFETY: as the program asks.
    unsafe { c::pthread_rwlock_unlock(l) }
}

/// glibc keeps the thread id of the current writer at this offset of `pthread_rwlock_t`.
const WRITER_OFFSET: usize = 24;

unsafe fn writer<'a>(l: *mut c_void) -> &'a AtomicU32 {
    // SAFETY: by contract.
    unsafe { &*l.cast::<u8>().add(WRITER_OFFSET).cast::<AtomicU32>() }
}

/// Does the C library keep the writer where [`WRITER_OFFSET`] says?
pub fn is_laid_out_as_expected() -> bool {
    // A lock of zeroes is an initialised one; 64 bytes hold it.
    let mut room = [0u64; 8];
    let l: *mut c_void = (&raw mut room).cast();
    // SAFETY: the lock is ours.
    unsafe {
        let taken = c::pthread_rwlock_trywrlock(l) == 0;
        let held = writer(l).load(Ordering::Relaxed) == real::gettid();
        c::pthread_rwlock_unlock(l);
        taken && held && writer(l).load(Ordering::Relaxed) == 0
    }
}

extern "C" fn init(l: *mut c_void, attr: *const c_void) -> c_int {
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_rwlock_init(l, attr) };
    say(SyncOp::RwlockInit, l, 0);
    result
}

extern "C" fn destroy(l: *mut c_void) -> c_int {
    say(SyncOp::RwlockDestroy, l, 0);
    // SAFETY: as the program asks.
    unsafe { c::pthread_rwlock_destroy(l) }
}

export_with_pc! {
    pthread_rwlock_init => init;
    pthread_rwlock_destroy => destroy;
    pthread_rwlock_rdlock => rdlock;
    pthread_rwlock_tryrdlock => tryrdlock;
    pthread_rwlock_timedrdlock => timedrdlock;
    pthread_rwlock_clockrdlock => clockrdlock;
    pthread_rwlock_wrlock => wrlock;
    pthread_rwlock_trywrlock => trywrlock;
    pthread_rwlock_timedwrlock => timedwrlock;
    pthread_rwlock_clockwrlock => clockwrlock;
    pthread_rwlock_unlock => unlock;
}
