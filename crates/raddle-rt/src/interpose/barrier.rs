//! Barriers.

use crate::steer::{self, Detail, Patience, Request};
use crate::thread::{self, Thread};
use crate::{export_with_pc, observe, real_fn};
use core::ffi::{c_int, c_uint, c_void};
use raddle_wire::{SyncOp, step};

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
    let pc = thread::current().caller_pc();
    // SAFETY: as the program asks.
    let result = unsafe { c::pthread_barrier_init(b, attr, count) };
    if result == 0 {
        say(SyncOp::BarrierInit, b, u64::from(count), pc);
        if steer::on() {
            steer::barrier_init(b as usize, count);
        }
    }
    result
}

extern "C" fn destroy(b: *mut c_void) -> c_int {
    say(SyncOp::BarrierDestroy, b, 0, thread::current().caller_pc());
    // SAFETY: as the program asks.
    unsafe { c::pthread_barrier_destroy(b) }
}

/// Under steering the real barrier is not used: it can only block.
fn wait_steered(thread: &Thread, pc: u64, b: *mut c_void) -> c_int {
    let object = b as usize;
    let enter = Request { kind: step::BARRIER_ENTER, object, pc };
    let detail = Detail { second: u64::from(steer::barrier_count(object)), ..Detail::NONE };
    let entered = steer::visible_with(thread, enter, detail, |thread| {
        observe::sync(thread, pc, SyncOp::BarrierEnter, object, 0);
        steer::arrive_barrier(object)
    });
    let (generation, last) = entered.unwrap_or((u32::MAX, false));
    let exit = Request { kind: step::BARRIER_EXIT, object, pc };
    steer::blocking(thread, exit, Patience::Forever, |thread| {
        if !steer::barrier_passed(object, generation) {
            return None;
        }
        observe::sync(thread, pc, SyncOp::BarrierExit, object, 0);
        Some(())
    });
    if last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}

extern "C" fn wait(b: *mut c_void) -> c_int {
    let pc = thread::current().caller_pc();
    if let (true, Some(thread)) = (steer::on(), thread::observed()) {
        return wait_steered(thread, pc, b);
    }
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
