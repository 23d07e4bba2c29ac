//! The runtime inside the tested program.
//!
//! Programs reach it in two ways: through the calls that a compiler's ThreadSanitizer pass inserts ([`abi`]), and
//! through the C library functions that it stands in for ([`interpose`]). What it does with them is set by two
//! independent choices of the `raddle` process, written into the shared region: *observe* (record events, detect
//! races) and *steer* (leave the threads alone, or decide which runs next).
//!
//! **Architecture invariants.** The runtime is `no_std`, depends on `raddle-wire`, `raddle-hb`, `raddle-sched` and libc alone, and
//! never allocates through the program's allocator: its memory comes from private mappings ([`arena`]). It never calls a function that
//! it stands in for, only the real one behind it ([`real`]). It never prints; what it has to say goes through
//! [`message`]. A program that runs without `raddle` around it behaves as if the runtime were not there.
//!
//! It is built with `panic = "abort"` and without landing pads: forced unwinding (`pthread_exit`, cancellation) and
//! C++ exceptions pass through its frames, which hold nothing that needs dropping across calls into the program.

#![no_std]
// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]
#![warn(clippy::undocumented_unsafe_blocks)]
// Every exported function dereferences what the C caller passes, by C's own contracts.
#![allow(clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref)]

pub mod abi;
pub mod arch;
pub mod arena;
pub mod attach;
pub mod crash;
pub mod demo;
pub mod detect;
pub mod init;
pub mod interpose;
pub mod message;
pub mod observe;
pub mod own_memory;
pub mod probe;
pub mod real;
pub mod record;
pub mod registry;
pub mod run;
pub mod segment;
pub mod shadow;
pub mod spin;
mod standalone;
pub mod steer;
pub mod stripe;
pub mod thread;
pub mod threads;

#[cfg(not(test))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    message::internal_error(info);
    arch::abort()
}
