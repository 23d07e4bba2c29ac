//! Streams of the C library: which of them pass something on between threads, and the stream itself as memory.
//!
//! What is written to a stream leaves when the library thinks fit, so each call that writes to one that leads into a pipe or a socket sends
//! ([`crate::interpose::channel`]): earlier than it does, which orders too much rather than too little. A stream is used by every call on it
//! and ends with `fclose`: that is a read and a write of its memory, so that the end races with uses that nothing orders. The
//! reads are atomic, because the library locks the stream for each of them.

use super::watched;
use crate::interpose::channel;
use crate::{observe, real_fn};
use core::ffi::c_int;
use raddle_wire::record::access::{LIBRARY, WRITE};

mod c {
    use super::*;
    real_fn! {
        fn fileno(stream: usize) -> c_int;
    }
}

fn descriptor(stream: usize) -> Option<usize> {
    if stream == 0 {
        return None;
    }
    // SAFETY: a stream that the program uses.
    usize::try_from(unsafe { c::fileno(stream) }).ok()
}

/// The streams of `stdio.h` are never closed by accident, and are used everywhere.
fn used(stream: usize) {
    if let (true, Some(thread)) = (stream != 0, watched()) {
        observe::range(thread, thread.caller_pc(), LIBRARY, stream, 1);
    }
}

/// The program reads from a stream, which is about to happen.
pub fn reads(stream: usize) {
    used(stream);
}

/// It has read.
pub fn has_read(stream: usize) {
    if let Some(object) = descriptor(stream).and_then(channel::of_stream) {
        channel::receive(object);
    }
}

/// It is about to write.
pub fn writes(stream: usize) {
    used(stream);
    if let Some(object) = descriptor(stream).and_then(channel::of_stream) {
        channel::send(object);
    }
}

/// The stream ends.
pub fn ends(stream: usize) {
    writes(stream);
    if let Some(fd) = descriptor(stream) {
        channel::forget(fd);
    }
    if let (true, Some(thread)) = (stream != 0, watched()) {
        observe::range(thread, thread.caller_pc(), LIBRARY | WRITE, stream, 1);
    }
}

/// The program has locked a stream for itself.
pub fn is_locked(stream: usize) {
    channel::receive(channel::named(channel::Kind::Stream, stream as u64));
}

/// It is about to let go.
pub fn unlocks(stream: usize) {
    channel::send(channel::named(channel::Kind::Stream, stream as u64));
}

/// `stdout`, where `puts` and `printf` write.
pub fn output() -> usize {
    unsafe extern "C" {
        static stdout: usize;
    }
    // SAFETY: the C library's own variable.
    unsafe { stdout }
}

/// `stdin`.
pub fn input() -> usize {
    unsafe extern "C" {
        static stdin: usize;
    }
    // SAFETY: the C library's own variable.
    unsafe { stdin }
}
