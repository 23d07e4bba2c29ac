//! Streams that lead outside, in a demo.
//!
//! What `fgets` or `fread` take from a pipe, the C library reads by itself, where nobody sees it. So while a demo is recorded or given again,
//! functions that read from such a stream are given another one in its place, made with `fopencookie`, which fills its buffer through
//! our `read`: that one is held. All else about streams (lines, formats, what was pushed back) stays the library's work. The program keeps its own stream,
//! whose buffer stays empty; only its marks for the end and for errors are kept up to date.

use super::library::streams;
use crate::demo::descriptors::{self, Leads};
use crate::spin::Spin;
use crate::{demo, real_fn, thread};
use core::ffi::{c_char, c_int};

/// `cookie_io_functions_t`: read, write, seek, close.
#[repr(C)]
#[derive(Clone, Copy)]
struct Functions([usize; 4]);

mod c {
    use super::*;
    real_fn! {
        fn fopencookie(cookie: usize, mode: *const c_char, functions: Functions) -> usize;
        fn fclose(stream: usize) -> c_int;
        fn fflush(stream: usize) -> c_int;
        fn setvbuf(stream: usize, buffer: usize, mode: c_int, bytes: usize) -> c_int;
        fn clearerr(stream: usize);
        fn getc(stream: usize) -> c_int;
    }
}

/// Parts of glibc's binary interface (`struct _IO_FILE`): the marks at its start, the number of the descriptor.
mod layout {
    pub const NUMBER_OFFSET: usize = 112;
    pub const UNBUFFERED: u32 = 0x2;
    pub const ENDED: u32 = 0x10;
    pub const FAILED: u32 = 0x20;
}

fn marks(stream: usize) -> &'static core::sync::atomic::AtomicU32 {
    // SAFETY: a stream begins with its marks, and lives while the program uses it.
    unsafe { &*(stream as *const core::sync::atomic::AtomicU32) }
}

fn number(stream: usize) -> c_int {
    // SAFETY: a field of a stream that the program uses.
    unsafe { *((stream + layout::NUMBER_OFFSET) as *const c_int) }
}

#[derive(Clone, Copy)]
struct Replaced {
    stream: usize,
    by: usize,
}

/// Streams that lead outside at one time; what is beyond is read unseen.
const STREAMS_MAX: usize = 256;
static TABLE: Spin<([Replaced; STREAMS_MAX], usize)> =
    Spin::new(([Replaced { stream: 0, by: 0 }; STREAMS_MAX], 0));

fn known(stream: usize) -> Option<usize> {
    let table = TABLE.lock();
    table.0[..table.1].iter().find(|entry| entry.stream == stream).map(|entry| entry.by)
}

/// Fills the buffer of a stream in the place of another.
extern "C" fn fill(stream: usize, buffer: usize, bytes: usize) -> isize {
    let fd = number(stream);
    // SAFETY: asks about a descriptor; flushes a stream that always is.
    unsafe {
        if libc::isatty(fd) != 0 {
            // As the library does before it waits for somebody to type.
            c::fflush(streams::output());
        }
    }
    super::system::read(fd as usize, buffer, bytes)
}

fn replace(stream: usize) -> Option<usize> {
    let functions = Functions([fill as *const () as usize, 0, 0, 0]);
    // SAFETY: the cookie is the program's stream, which lives longer.
    let by = unsafe { c::fopencookie(stream, c"r".as_ptr(), functions) };
    if by == 0 {
        return None;
    }
    let mut table = TABLE.lock();
    let (entries, used) = &mut *table;
    if let Some(entry) = entries[..*used].iter().find(|entry| entry.stream == stream) {
        let first = entry.by;
        drop(table);
        // SAFETY: nobody has it.
        unsafe { c::fclose(by) };
        return Some(first);
    }
    let entry = entries.get_mut(*used)?;
    *entry = Replaced { stream, by };
    *used += 1;
    Some(by)
}

/// The stream to read from in the place of this one.
#[inline]
pub fn of(stream: usize) -> usize {
    if demo::on() { found(stream) } else { stream }
}

fn found(stream: usize) -> usize {
    if stream == 0 || thread::observed().is_none() {
        return stream;
    }
    if let Some(by) = known(stream) {
        return by;
    }
    // A stream without a descriptor leads nowhere, those made here among them.
    if descriptors::leads(number(stream)) != Leads::Outside {
        return stream;
    }
    let Some(by) = replace(stream) else { return stream };
    if marks(stream).load(core::sync::atomic::Ordering::Relaxed) & layout::UNBUFFERED != 0 {
        // SAFETY: nothing has been read from it.
        unsafe { c::setvbuf(by, 0, libc::_IONBF, 0) };
    }
    by
}

/// The program's stream has the marks of the one that was read from.
#[inline]
pub fn settle(stream: usize, by: usize) {
    use core::sync::atomic::Ordering::Relaxed;
    if by != stream {
        let both = layout::ENDED | layout::FAILED;
        let is = marks(by).load(Relaxed) & both;
        marks(stream).fetch_and(is | !both, Relaxed);
        marks(stream).fetch_or(is, Relaxed);
    }
}

/// Calls a function that reads from a stream.
pub fn through<T>(stream: usize, call: impl FnOnce(usize) -> T) -> T {
    let by = of(stream);
    let result = call(by);
    settle(stream, by);
    result
}

/// The stream is about to end.
pub fn ends(stream: usize) {
    let by = {
        let mut table = TABLE.lock();
        let (entries, used) = &mut *table;
        let Some(at) = entries[..*used].iter().position(|entry| entry.stream == stream) else { return };
        let by = entries[at].by;
        entries[at] = entries[*used - 1];
        *used -= 1;
        by
    };
    // SAFETY: made by `replace`, and out of the table.
    unsafe { c::fclose(by) };
}

pub extern "C" fn getchar() -> usize {
    // SAFETY: a stream (here and below).
    through(streams::input(), |stream| unsafe { c::getc(stream) }) as usize
}

pub extern "C" fn clearerr(stream: usize) {
    if let Some(by) = known(stream) {
        // SAFETY: as above.
        unsafe { c::clearerr(by) };
    }
    // SAFETY: as above.
    unsafe { c::clearerr(stream) };
}

/// The program reads without a buffer from now on.
pub extern "C" fn setvbuf(stream: usize, buffer: usize, mode: usize, bytes: usize) -> usize {
    if let (libc::_IONBF, Some(by)) = (mode as c_int, known(stream)) {
        // SAFETY: as above.
        unsafe { c::setvbuf(by, 0, libc::_IONBF, 0) };
    }
    // SAFETY: as the program asks.
    unsafe { c::setvbuf(stream, buffer, mode as c_int, bytes) as usize }
}
