//! The C library functions that the runtime stands in for, one kind of primitive a file.
//!
//! Each function has the same shape: if the calling thread is not observed, or is inside the runtime, the real
//! function does everything. Otherwise the real function does the work and [`crate::observe`] is told, after an
//! acquiring operation and before a releasing one. No frame here holds anything that needs dropping while a real
//! function runs, because threads may be unwound out of it.

pub mod allocator;
pub mod barrier;
pub mod c11;
pub mod condition;
pub mod create;
pub mod futex;
pub mod jump;
pub mod memory;
pub mod modules;
pub mod mutex;
pub mod once;
pub mod process;
pub mod rwlock;
pub mod semaphore;
pub mod signal;
pub mod sleep;
