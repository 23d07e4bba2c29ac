//! Barriers.

use crate::thread;
use crate::{export_with_pc, observe, real_fn};
use core::ffi::{c_int, c_uint, c_void};
use raddle_wire::SyncOp;

mod c {
    use super::*;
    real_fn! {
        fn pthread_barrier_init(b: *mut c_void, attr: *const c_void, count: c_uint) -> c_int;
        fn pthread_barrier_destroy(b: *mut c_void) -> c_int;
        fn pthread_barrier_wait(b: *mut c_void) -> c_int;
    }
}

fn say(op: SyncOp, b: *mut c_void, argument: u64, pc: u64) {
    if let Some(thread) = thread::observed() {
        observe::sync(thread, pc, op, b as usize, argument);
    }
}

extern "C" fn init(b: *mut c_void, attr: *const c_void, count: c_uint) -> c_int {
    let pc = thread::current().caller_pc;
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_barrier_init(b, attr, count) };
    if result == 0 {
        say(SyncOp::BarrierInit, b, u64::from(count), pc);
    }
    result
}

extern "C" fn destroy(b: *mut c_void) -> c_int {
    say(SyncOp::BarrierDestroy, b, 0, thread::current().caller_pc);
    // SAFETY: as the program asks.
    unsafe { c::pthread_barrier_destroy(b) }
}

extern "C" fn wait(b: *mut c_void) -> c_int {
    let pc = thread::current().caller_pc;
    say(SyncOp::BarrierEnter, b, 0, pc);
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_barrier_wait(b) };
    say(SyncOp::BarrierExit, b, 0, pc);
    result
}

export_with_pc! {
    pthread_barrier_init => init;
    pthread_barrier_destroy => destroy;
    pthread_barrier_wait => wait;
}
