//! The C library functions that the runtime stands in for, one kind of primitive a file.
//!
//! Each function has the same shape: if the calling thread is not observed, or is inside the runtime, the real
//! function does everything. Otherwise the real function does the work and [`crate::observe`] is told, after an
//! acquiring operation and before a releasing one. No frame here holds anything that needs dropping while a real
//! function runs, because threads may be unwound out of it.

pub mod allocator;
pub mod alternate_stack;
pub mod assertion;
pub mod barrier;
pub mod c11;
pub mod cancel;
mod channel;
mod clock_queries;
pub mod condition;
pub mod create;
mod files;
pub mod futex;
mod input;
pub mod jump;
pub mod kernel_objects;
pub mod layout;
pub mod library;
pub mod mapping;
pub mod memory;
pub mod modules;
pub mod mutex;
pub mod once;
mod polling;
pub mod process;
mod random;
pub mod rwlock;
mod scatter;
pub mod semaphore;
pub mod signal;
pub mod sleep;
pub mod stable;
mod stack;
pub mod system;

use crate::observe;
use crate::steer::{self, Detail, Request, noise};
use crate::thread::Thread;
use raddle_wire::SyncOp;

/// A visible operation that is nothing but its event.
pub fn step(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64) {
    step_with(thread, pc, op, object, argument, || ());
}

/// A visible operation that releases something: the event, then the operation, in one turn.
pub fn step_with<T>(
    thread: &Thread,
    pc: u64,
    op: SyncOp,
    object: usize,
    argument: u64,
    perform: impl FnOnce() -> T,
) -> T {
    step_with_detail(thread, pc, op, object, argument, Detail::NONE, perform)
}

/// As [`step_with`], with what an exhaustive search has to know about the operation.
pub fn step_with_detail<T>(
    thread: &Thread,
    pc: u64,
    op: SyncOp,
    object: usize,
    argument: u64,
    detail: Detail,
    perform: impl FnOnce() -> T,
) -> T {
    let kind = raddle_wire::step::of(op, argument);
    if !steer::on() || kind == raddle_wire::step::NONE {
        observe::sync(thread, pc, op, object, argument);
        let result = perform();
        if noise::on() {
            noise::released(thread, pc, op, object, argument);
        }
        return result;
    }
    let mut perform = Some(perform);
    let mut act = |thread: &Thread| {
        observe::sync(thread, pc, op, object, argument);
        let perform = perform.take().expect("an operation is performed once");
        let result = perform();
        steer::released(object);
        result
    };
    // A schedule cannot make such an operation fail; if it tries, the operation is performed all the same.
    match steer::visible_with(thread, Request { kind, object, pc }, detail, &mut act) {
        Some(result) => result,
        None => {
            let result = act(thread);
            steer::failed(thread);
            result
        }
    }
}
