//! Memory that the C library and the kernel read and write for the program.
//!
//! Their code has no hooks, but what they do to the program's memory are accesses of the program, made at the place of the call.
//! [`table`] has a line for each function: its arguments, and which of them is read or written for how many bytes, before and after the call.
//! A function that reads what others may wait for is told before the call; what it has written can be told only when it has come back, and
//! before what it has received from elsewhere counts as known ([`super::channel`]). `formats` reads the formats of `printf` and `scanf`,
//! `kernel` has the same lines for the calls that demos record, `measure` knows how long things are.
//!
//! What a function touches is never told larger than it is: less is a race missed, more would be one made up.

pub mod formats;
pub mod kernel;
pub mod measure;
pub mod streams;
pub mod table;

use crate::thread::{self, Thread};
use crate::{observe, run};
use raddle_wire::record::access::{LIBRARY, WRITE};

/// The calling thread, if its accesses matter.
#[inline]
pub fn watched() -> Option<&'static Thread> {
    let thread = thread::current();
    (thread.access.are_enabled() && !thread.is_busy() && run::instrumented()).then_some(thread)
}

fn touch(address: usize, bytes: usize, aux: u8) {
    if let (true, Some(thread)) = (address != 0 && bytes != 0, watched()) {
        observe::range(thread, thread.caller_pc(), aux | LIBRARY, address, bytes);
    }
}

/// So many bytes are read. No address, or no bytes, is no access.
pub fn r(address: usize, bytes: usize) {
    touch(address, bytes, 0);
}

/// So many bytes are written.
pub fn w(address: usize, bytes: usize) {
    touch(address, bytes, WRITE);
}

/// A value is read and written.
pub fn rw(address: usize, bytes: usize) {
    r(address, bytes);
    w(address, bytes);
}
