//! When a steered thread acts on its cancellation (`interpose::cancel` says how requests come in), and what it does then.

use crate::real_fn;
use crate::thread::Thread;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::step;

mod c {
    use super::*;
    real_fn! {
        fn pthread_cancel(handle: libc::pthread_t) -> c_int;
        fn pthread_exit(result: *mut c_void);
    }
}

/// Processor time that a thread may go on computing after it was cancelled.
pub const PATIENCE_MS: u64 = 200;

/// `PTHREAD_CANCELED`.
const CANCELED: *mut c_void = usize::MAX as *mut c_void;
/// Operations that are cancellation points, unless the thread only tries. The wait for a condition has its own way.
pub const fn is_point(kind: u8) -> bool {
    matches!(kind, step::SEM_WAIT | step::JOIN | step::SYSCALL)
}

/// Does a thread that was cancelled act on it at an operation of this kind?
pub fn due(thread: &Thread, kind: u8) -> bool {
    !thread.cancellation.disabled.load(Ordering::Relaxed)
        && !matches!(kind, step::START | step::END | step::WAKE | step::RELOCK)
        && (thread.cancellation.asynchronous.load(Ordering::Relaxed)
            || is_point(kind) && !thread.cancellation.tries.get())
}

/// Does a request end the thread's waiting at an operation of this kind?
pub fn ends_waiting(thread: &Thread, kind: u8) -> bool {
    due(thread, kind) || kind == step::WAKE && !thread.cancellation.disabled.load(Ordering::Relaxed)
}

/// May the thread be cancelled wherever it is?
pub fn at_any_time(thread: &Thread) -> bool {
    thread.cancellation.asynchronous.load(Ordering::Relaxed)
        && !thread.cancellation.disabled.load(Ordering::Relaxed)
}

/// The thread ends as a cancelled one. No frame of ours is left in order, so what they would have put back is put back here.
pub fn act(thread: &Thread) -> ! {
    thread.cancellation.disabled.store(true, Ordering::Relaxed);
    thread.cancellation.tries.set(false);
    thread.open();
    loop {
        // SAFETY: unwinds the thread, as its cancellation would.
        unsafe { c::pthread_exit(CANCELED) };
    }
}

/// The C library cancels the thread, which allows it at any time, where it is.
pub fn strike(handle: usize) {
    // SAFETY: the handle is that of a thread that has not ended.
    unsafe { c::pthread_cancel(handle as libc::pthread_t) };
}
