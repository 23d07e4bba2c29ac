//! Mutexes and spin locks.

use crate::arch::mutex as layout;
use crate::steer::{self, Detail, Patience, Request, noise};
use crate::thread::{self, Thread};
use crate::{detect, export_with_pc, observe, real, real_fn};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_sched::dependence::{GIVES_UP, REENTERS};
use raddle_wire::record::lock as bits;
use raddle_wire::{SyncOp, step};

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
    unsafe { (*m).owner.load(Ordering::Relaxed) == thread.os_tid() }
}

fn depth(m: *const Mutex) -> u32 {
    // SAFETY: as above.
    unsafe { (*m).count.load(Ordering::Relaxed) }
}

/// Reports the outcome of a lock operation.
pub fn report_lock(thread: &Thread, pc: u64, m: *mut Mutex, result: c_int, how: u64) {
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
        libc::EBUSY | libc::ETIMEDOUT | libc::EDEADLK => {
            observe::sync(thread, pc, SyncOp::LockFailed, m as usize, flags)
        }
        libc::EINVAL => invalid(thread, pc, m),
        _ => {}
    }
}

/// The C library says that this is no mutex: it was destroyed, or never initialised.
fn invalid(thread: &Thread, pc: u64, m: *mut Mutex) {
    if detect::on() {
        let _busy = thread::Busy::enter(thread);
        detect::misuse::tell(thread, pc, raddle_wire::report::kind::INVALID_OBJECT, m as usize);
    }
}

/// Takes the lock if it is free; otherwise says that the thread is about to wait for it.
fn try_first(thread: &Thread, pc: u64, m: *mut Mutex, how: u64) -> c_int {
    if noise::on() {
        noise::strike(thread, pc, step::LOCK, m as usize, noise::Moment::Before);
    }
    // SAFETY: the program passes an initialised mutex.
    let result = unsafe { c::pthread_mutex_trylock(m) };
    if result == libc::EBUSY && !(kind_bits(m) & bits::ERRORCHECK != 0 && owned_by_caller(m, thread)) {
        observe::sync(thread, pc, SyncOp::Request, m as usize, how | kind_bits(m));
    }
    result
}

/// What an exhaustive search has to know: a recursive mutex can be taken again by its owner, and one that checks for errors
/// answers its owner at once.
fn detail_of(m: *const Mutex, thread: &Thread) -> Detail {
    let kind = if steer::is_searched() { kind_bits(m) } else { 0 };
    let flags = match kind {
        kind if kind & bits::RECURSIVE != 0 => REENTERS,
        kind if kind & bits::ERRORCHECK != 0 && owned_by_caller(m, thread) => GIVES_UP,
        _ => 0,
    };
    Detail { flags, ..Detail::NONE }
}

/// Takes the mutex in the thread's turn, or is set aside until it is released.
pub fn lock_steered(thread: &Thread, pc: u64, m: *mut Mutex, patience: Patience, how: u64) -> c_int {
    let kind = if how & bits::WAIT != 0 { step::RELOCK } else { step::LOCK };
    let request = Request { kind, object: m as usize, pc };
    // A handler that runs while the thread waits may take another one.
    let outer = thread.turns.mutex.swap(m as usize, Ordering::Relaxed);
    let taken = steer::blocking_with(thread, request, detail_of(m, thread), patience, |thread| {
        // SAFETY: the program passes an initialised mutex.
        let mut result = unsafe { c::pthread_mutex_trylock(m) };
        if result == libc::EBUSY {
            if kind_bits(m) & bits::ERRORCHECK == 0
                || !owned_by_caller(m, thread)
                || patience == Patience::Not
            {
                return None;
            }
            result = libc::EDEADLK;
        }
        report_lock(thread, pc, m, result, how);
        Some(result)
    });
    thread.turns.mutex.store(outer, Ordering::Relaxed);
    taken.unwrap_or_else(|| {
        let result = if patience == Patience::Not { libc::EBUSY } else { libc::ETIMEDOUT };
        report_lock(thread, pc, m, result, how);
        steer::failed(thread);
        result
    })
}

pub extern "C" fn lock(m: *mut Mutex) -> c_int {
    let Some(thread) = thread::observed() else {
        // SAFETY: as the program asks.
        return unsafe { c::pthread_mutex_lock(m) };
    };
    let pc = thread.caller_pc();
    if steer::on() {
        return lock_steered(thread, pc, m, Patience::Forever, 0);
    }
    let mut result = try_first(thread, pc, m, 0);
    if result == libc::EBUSY {
        // SAFETY: as the program asks.
        result = unsafe { c::pthread_mutex_lock(m) };
    }
    report_lock(thread, pc, m, result, 0);
    result
}

pub extern "C" fn trylock(m: *mut Mutex) -> c_int {
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        let pc = thread.caller_pc();
        return lock_steered(thread, pc, m, Patience::Not, bits::TRY);
    }
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_mutex_trylock(m) };
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        report_lock(thread, pc, m, result, bits::TRY);
    }
    result
}

pub extern "C" fn timedlock(m: *mut Mutex, until: *const libc::timespec) -> c_int {
    timed(m, until, || {
        // SAFETY: as the program asks.
        unsafe { c::pthread_mutex_timedlock(m, until) }
    })
}

extern "C" fn clocklock(m: *mut Mutex, clock: c_int, until: *const libc::timespec) -> c_int {
    timed(m, until, || {
        // SAFETY: as the program asks.
        unsafe { c::pthread_mutex_clocklock(m, clock, until) }
    })
}

fn timed(m: *mut Mutex, until: *const libc::timespec, wait: impl Fn() -> c_int) -> c_int {
    let Some(thread) = thread::observed() else { return wait() };
    let pc = thread.caller_pc();
    if steer::on() {
        let result = lock_steered(thread, pc, m, Patience::Timed, bits::TIMED);
        if result == libc::ETIMEDOUT {
            // SAFETY: the program passes a valid time.
            unsafe { steer::clock::reach(until) };
        }
        return result;
    }
    let mut result = try_first(thread, pc, m, bits::TIMED);
    if result == libc::EBUSY {
        result = wait();
    }
    report_lock(thread, pc, m, result, bits::TIMED);
    result
}

pub extern "C" fn unlock(m: *mut Mutex) -> c_int {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        let mut flags = kind_bits(m);
        let checked = flags & (bits::RECURSIVE | bits::ERRORCHECK | bits::ROBUST) != 0;
        // A checked mutex that the caller does not own will not be released: nothing to report.
        if !checked || owned_by_caller(m, thread) {
            if flags & bits::RECURSIVE != 0 && depth(m) > 1 {
                flags |= bits::NESTED;
            }
            let release = || {
                // SAFETY: as the program asks.
                let result = unsafe { c::pthread_mutex_unlock(m) };
                if result == libc::EINVAL {
                    invalid(thread, pc, m);
                }
                result
            };
            return super::step_with(thread, pc, SyncOp::Unlock, m as usize, flags, release);
        }
    }
    // SAFETY: as the program asks.
    unsafe { c::pthread_mutex_unlock(m) }
}

/// Finds the functions that nearly every program uses (see [`super::create::rehearse`]).
pub fn rehearse() {
    // A `pthread_mutex_t` of zeroes is an initialised one; 64 bytes hold it.
    let mut room = [0u64; 8];
    let m: *mut Mutex = (&raw mut room).cast();
    // SAFETY: the mutex is ours.
    unsafe {
        c::pthread_mutex_trylock(m);
        c::pthread_mutex_unlock(m);
    }
}

/// Does the C library keep a mutex's holder, depth and kind where [`layout::Mutex`] says?
pub fn is_laid_out_as_expected() -> bool {
    let kinds = [
        (libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_STALLED, 0, 1),
        (libc::PTHREAD_MUTEX_ERRORCHECK, libc::PTHREAD_MUTEX_STALLED, layout::ERRORCHECK, 1),
        (libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_ROBUST, layout::RECURSIVE | layout::ROBUST, 2),
    ];
    let tid = real::gettid();
    kinds.into_iter().all(|(kind, robustness, bits, depth)| {
        let mut room = [0u64; 8];
        let m: *mut Mutex = (&raw mut room).cast();
        // SAFETY: all fields may be zero; it is initialised before it is used. The mutex is ours, and given back as often as it was taken.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_settype(&raw mut attributes, kind);
            libc::pthread_mutexattr_setrobust(&raw mut attributes, robustness);
            c::pthread_mutex_init(m, (&raw const attributes).cast());
            libc::pthread_mutexattr_destroy(&raw mut attributes);
            let taken = (0..depth).all(|_| c::pthread_mutex_trylock(m) == 0);
            let held = layout::holder(m as usize) == tid;
            let counted = depth == 1 || self::depth(m) == depth;
            let is_kind = (*m).kind.load(Ordering::Relaxed) & (layout::KIND_MASK | layout::ROBUST) == bits;
            (0..depth).for_each(|_| {
                c::pthread_mutex_unlock(m);
            });
            let is_free = layout::holder(m as usize) == 0;
            c::pthread_mutex_destroy(m);
            taken && held && counted && is_kind && is_free
        }
    })
}

/// The real unlock, for the wait on a condition variable.
pub fn release(m: *mut Mutex) {
    // SAFETY: the program waits with this mutex held.
    unsafe { c::pthread_mutex_unlock(m) };
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
        let pc = thread.caller_pc();
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
        let pc = thread.caller_pc();
        observe::sync(thread, pc, op, s as usize, how | bits::SPIN);
    }
}

fn spin_steered(thread: &Thread, s: *mut c_int, patience: Patience, how: u64) -> c_int {
    let pc = thread.caller_pc();
    let request = Request { kind: step::LOCK, object: s as usize, pc };
    let taken = steer::blocking(thread, request, patience, |thread| {
        // SAFETY: as the program asks.
        if unsafe { c::pthread_spin_trylock(s) } != 0 {
            return None;
        }
        observe::sync(thread, pc, SyncOp::Lock, s as usize, how | bits::SPIN);
        Some(0)
    });
    taken.unwrap_or_else(|| {
        observe::sync(thread, pc, SyncOp::LockFailed, s as usize, how | bits::SPIN);
        steer::failed(thread);
        libc::EBUSY
    })
}

extern "C" fn spin_lock(s: *mut c_int) -> c_int {
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        return spin_steered(thread, s, Patience::Forever, 0);
    }
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
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        return spin_steered(thread, s, Patience::Not, bits::TRY);
    }
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_spin_trylock(s) };
    spin_event(s, if result == 0 { SyncOp::Lock } else { SyncOp::LockFailed }, bits::TRY);
    result
}

extern "C" fn spin_unlock(s: *mut c_int) -> c_int {
    // SAFETY: as the program asks.
    let release = || unsafe { c::pthread_spin_unlock(s) };
    match thread::observed() {
        Some(thread) => {
            let pc = thread.caller_pc();
            super::step_with(thread, pc, SyncOp::Unlock, s as usize, bits::SPIN, release)
        }
        None => release(),
    }
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
