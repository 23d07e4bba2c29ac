//! `printf`, `scanf` and their kin: the format says what is read and written.
//!
//! A format with numbered arguments (`%1$s`) is read no further than to the first of them.

use super::measure::{text, text_up_to, wide_text, wide_up_to};
use super::{r, streams, w, watched};
use crate::arch::VaList;
use crate::interpose::input;
use crate::{export_format_with_pc, export_with_pc, real_fn, thread};
use core::ffi::c_int;

mod c {
    use super::*;
    real_fn! {
        fn vprintf(format: usize, list: *mut VaList) -> c_int;
        fn vfprintf(stream: usize, format: usize, list: *mut VaList) -> c_int;
        fn vdprintf(fd: usize, format: usize, list: *mut VaList) -> c_int;
        fn vsprintf(to: usize, format: usize, list: *mut VaList) -> c_int;
        fn vsnprintf(to: usize, room: usize, format: usize, list: *mut VaList) -> c_int;
        fn vasprintf(to: usize, format: usize, list: *mut VaList) -> c_int;
        fn __vprintf_chk(flag: usize, format: usize, list: *mut VaList) -> c_int;
        fn __vfprintf_chk(stream: usize, flag: usize, format: usize, list: *mut VaList) -> c_int;
        fn __vsprintf_chk(to: usize, flag: usize, size: usize, format: usize, list: *mut VaList) -> c_int;
        fn __vsnprintf_chk(to: usize, room: usize, flag: usize, size: usize, format: usize, list: *mut VaList) -> c_int;
        fn __vasprintf_chk(to: usize, flag: usize, format: usize, list: *mut VaList) -> c_int;
        fn vfscanf(stream: usize, format: usize, list: *mut VaList) -> c_int;
        fn vsscanf(s: usize, format: usize, list: *mut VaList) -> c_int;
        fn __isoc99_vfscanf(stream: usize, format: usize, list: *mut VaList) -> c_int;
        fn __isoc99_vsscanf(s: usize, format: usize, list: *mut VaList) -> c_int;
        fn __isoc23_vfscanf(stream: usize, format: usize, list: *mut VaList) -> c_int;
        fn __isoc23_vsscanf(s: usize, format: usize, list: *mut VaList) -> c_int;
    }
}

/// One conversion of a format.
struct Conversion {
    /// `*` in the place of the width (`printf`: it is an argument; `scanf`: nothing is stored).
    star: bool,
    width: Option<usize>,
    precision: Precision,
    /// Bytes of an integer of this size.
    bytes: usize,
    long: bool,
    long_double: bool,
    /// `m`: `scanf` allocates.
    allocates: bool,
    letter: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    None,
    Given(usize),
    Argument,
}

/// Goes through a format.
struct Format {
    at: usize,
    scans: bool,
}

impl Format {
    fn peek(&self) -> u8 {
        // SAFETY: inside a C string of the program, or at its end.
        unsafe { (self.at as *const u8).read_volatile() }
    }

    fn take(&mut self, wanted: u8) -> bool {
        // Adding the comparison to the place instead is what rustc 1.95 compiles wrongly.
        if self.peek() != wanted {
            return false;
        }
        self.at += 1;
        true
    }

    fn number(&mut self) -> Option<usize> {
        let mut value = None;
        while let digit @ b'0'..=b'9' = self.peek() {
            value =
                Some(value.unwrap_or(0usize).saturating_mul(10).saturating_add(usize::from(digit - b'0')));
            self.at += 1;
        }
        value
    }

    /// The next conversion; none at the end, or where nothing more is understood.
    fn next(&mut self) -> Option<Conversion> {
        loop {
            match self.peek() {
                0 => return None,
                b'%' => {}
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 1;
            if self.take(b'%') {
                continue;
            }
            return self.conversion();
        }
    }

    fn conversion(&mut self) -> Option<Conversion> {
        let mut found = Conversion {
            star: false,
            width: None,
            precision: Precision::None,
            bytes: 4,
            long: false,
            long_double: false,
            allocates: false,
            letter: 0,
        };
        while !self.scans && matches!(self.peek(), b'-' | b'+' | b' ' | b'#' | b'0' | b'\'' | b'I') {
            self.at += 1;
        }
        while self.scans && self.take(b'\'') {}
        found.star = self.take(b'*');
        found.width = self.number();
        if !self.scans && self.take(b'.') {
            found.precision = match self.take(b'*') {
                true => Precision::Argument,
                false => Precision::Given(self.number().unwrap_or(0)),
            };
        }
        found.allocates = self.scans && self.take(b'm');
        loop {
            match self.peek() {
                b'h' => found.bytes = if found.bytes == 2 { 1 } else { 2 },
                b'l' | b'j' | b'z' | b't' => (found.bytes, found.long) = (8, self.peek() == b'l'),
                b'q' | b'L' => (found.bytes, found.long_double) = (8, true),
                _ => break,
            }
            self.at += 1;
        }
        found.letter = self.peek();
        if matches!(found.letter, 0 | b'$') {
            return None;
        }
        self.at += 1;
        if found.letter == b'[' {
            self.take(b'^');
            self.take(b']');
            while !matches!(self.peek(), 0 | b']') {
                self.at += 1;
            }
            self.take(b']');
        }
        Some(found)
    }
}

/// What a call of `printf` reads, and what it writes with `%n`.
fn prints(format: usize, list: *mut VaList) {
    if watched().is_none() {
        return;
    }
    r(format, text(format));
    // SAFETY: a list that the function behind will go through in the same way; this is a copy.
    let mut list = unsafe { *list };
    let mut rest = Format { at: format, scans: false };
    while let Some(conversion) = rest.next() {
        // SAFETY: the arguments are those that the format asks for (here and below).
        unsafe {
            if conversion.star {
                list.integer();
            }
            let precision = match conversion.precision {
                Precision::None => None,
                Precision::Given(given) => Some(given),
                // A negative one is none.
                Precision::Argument => usize::try_from(list.integer() as c_int).ok(),
            };
            match conversion.letter {
                b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' if conversion.long_double => {
                    list.skip_long_double();
                }
                b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => list.skip_double(),
                b's' | b'S' => {
                    let s = list.integer();
                    match (conversion.long || conversion.letter == b'S', precision) {
                        (false, None) => r(s, text(s)),
                        (false, Some(most)) => r(s, text_up_to(s, most)),
                        (true, None) => r(s, wide_text(s)),
                        (true, Some(most)) => r(s, wide_up_to(s, most)),
                    }
                }
                b'n' => w(list.integer(), conversion.bytes),
                b'm' => {}
                _ => {
                    list.integer();
                }
            }
        }
    }
}

/// What a call of `scanf` has written: that many conversions were made.
fn scanned(format: usize, mut list: VaList, count: c_int) {
    if watched().is_none() {
        return;
    }
    let mut left = count.max(0);
    let mut rest = Format { at: format, scans: true };
    while let Some(conversion) = rest.next() {
        if conversion.star {
            continue;
        }
        if left == 0 {
            return;
        }
        // SAFETY: the arguments are those that the format asks for.
        let to = unsafe { list.integer() };
        left -= c_int::from(conversion.letter != b'n');
        let bytes = match conversion.letter {
            _ if conversion.allocates => 8,
            b's' | b'[' | b'S' if conversion.long || conversion.letter == b'S' => wide_text(to),
            b's' | b'[' => text(to),
            b'c' if conversion.long => conversion.width.unwrap_or(1) * 4,
            b'c' => conversion.width.unwrap_or(1),
            b'C' => conversion.width.unwrap_or(1) * 4,
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' if conversion.long_double => 10,
            b'p' => 8,
            _ => conversion.bytes,
        };
        w(to, bytes);
    }
}

/// A call that prints: what it reads, then the call, then what it has written with a result.
fn print(format: usize, list: *mut VaList, call: impl FnOnce() -> c_int, after: impl FnOnce(usize)) -> c_int {
    let pc = thread::current().caller_pc();
    prints(format, list);
    let result = call();
    if watched().is_some() {
        thread::current().caller.set(pc);
        after(usize::try_from(result).map_or(0, |written| written + 1));
    }
    result
}

fn scan(format: usize, list: *mut VaList, call: impl FnOnce() -> c_int, after: impl FnOnce()) -> c_int {
    let pc = thread::current().caller_pc();
    if watched().is_none() {
        return call();
    }
    r(format, text(format));
    // SAFETY: the program's list, or ours.
    let before = unsafe { *list };
    let result = call();
    thread::current().caller.set(pc);
    scanned(format, before, result);
    after();
    result
}

fn to_stream(stream: usize) {
    if watched().is_some() {
        streams::writes(stream);
    }
}

fn to_descriptor(fd: usize) {
    use crate::interpose::channel::{Flow, before};
    if crate::steer::on() {
        crate::demo::descriptors::goes_unseen(fd as c_int);
    }
    before(Flow::Out, fd & 0xffff_ffff);
}

macro_rules! printing {
    ($($variadic:ident($save:literal, $register:literal) $plain:ident($($arg:ident,)* ; $format:ident) { $($before:tt)* } $written:ident { $($after:tt)* };)*) => {
        mod entry {
            use super::*;
            $(pub extern "C" fn $plain($($arg: usize,)* $format: usize, list: *mut VaList) -> c_int {
                $($before)*
                // SAFETY: as the program asks.
                print($format, list, || unsafe { c::$plain($($arg,)* $format, list) }, |$written| { $($after)* })
            })*
        }
        mod exported {
            use super::*;
            export_format_with_pc! { $($variadic($save, $register) => entry::$plain;)* }
            export_with_pc! { $($plain => entry::$plain;)* }
        }
    };
}

macro_rules! scanning {
    ($($variadic:ident($save:literal, $register:literal) $plain:ident($($arg:ident,)* ; $format:ident, $list:ident) { $($before:tt)* } $call:block { $($after:tt)* };)*) => {
        mod scan_entry {
            use super::*;
            $(pub extern "C" fn $plain($($arg: usize,)* $format: usize, $list: *mut VaList) -> c_int {
                $($before)*
                scan($format, $list, || $call, || { $($after)* })
            })*
        }
        mod scan_exported {
            use super::*;
            export_format_with_pc! { $($variadic($save, $register) => scan_entry::$plain;)* }
            export_with_pc! { $($plain => scan_entry::$plain;)* }
        }
    };
}

printing! {
    printf("8", "rsi") vprintf(; format) { to_stream(streams::output()); } _written {};
    fprintf("16", "rdx") vfprintf(stream, ; format) { to_stream(stream); } _written {};
    dprintf("16", "rdx") vdprintf(fd, ; format) { to_descriptor(fd); } _written {};
    sprintf("16", "rdx") vsprintf(to, ; format) {} written { w(to, written); };
    snprintf("24", "rcx") vsnprintf(to, room, ; format) {} written { w(to, written.min(room)); };
    asprintf("16", "rdx") vasprintf(to, ; format) {} written { w(to, if written == 0 { 0 } else { 8 }); };
    __printf_chk("16", "rdx") __vprintf_chk(flag, ; format) { to_stream(streams::output()); } _written {};
    __fprintf_chk("24", "rcx") __vfprintf_chk(stream, flag, ; format) { to_stream(stream); } _written {};
    __sprintf_chk("32", "r8") __vsprintf_chk(to, flag, size, ; format) {} written { w(to, written); };
    __snprintf_chk("40", "r9") __vsnprintf_chk(to, room, flag, size, ; format) {} written { w(to, written.min(room)); };
    __asprintf_chk("24", "rcx") __vasprintf_chk(to, flag, ; format) {} written { w(to, if written == 0 { 0 } else { 8 }); };
}

/// What reads from a stream: the function with a list of arguments, and the stream of the program.
fn scan_stream(
    scan: unsafe fn(usize, usize, *mut VaList) -> c_int,
    stream: usize,
    format: usize,
    list: *mut VaList,
) -> c_int {
    // SAFETY: as the program asks.
    input::through(stream, |stream| unsafe { scan(stream, format, list) })
}

/// As [`scan_stream`], for a string.
fn scan_text(
    scan: unsafe fn(usize, usize, *mut VaList) -> c_int,
    s: usize,
    format: usize,
    list: *mut VaList,
) -> c_int {
    // SAFETY: as the program asks.
    unsafe { scan(s, format, list) }
}

scanning! {
    scanf("8", "rsi") vscanf(; format, list) {} { scan_stream(c::vfscanf, streams::input(), format, list) } { streams::has_read(streams::input()); };
    fscanf("16", "rdx") vfscanf(stream, ; format, list) {} { scan_stream(c::vfscanf, stream, format, list) } { streams::has_read(stream); };
    sscanf("16", "rdx") vsscanf(s, ; format, list) { r(s, text(s)); } { scan_text(c::vsscanf, s, format, list) } {};
    __isoc99_scanf("8", "rsi") __isoc99_vscanf(; format, list) {} { scan_stream(c::__isoc99_vfscanf, streams::input(), format, list) } { streams::has_read(streams::input()); };
    __isoc99_fscanf("16", "rdx") __isoc99_vfscanf(stream, ; format, list) {} { scan_stream(c::__isoc99_vfscanf, stream, format, list) } { streams::has_read(stream); };
    __isoc99_sscanf("16", "rdx") __isoc99_vsscanf(s, ; format, list) { r(s, text(s)); } { scan_text(c::__isoc99_vsscanf, s, format, list) } {};
    __isoc23_scanf("8", "rsi") __isoc23_vscanf(; format, list) {} { scan_stream(c::__isoc23_vfscanf, streams::input(), format, list) } { streams::has_read(streams::input()); };
    __isoc23_fscanf("16", "rdx") __isoc23_vfscanf(stream, ; format, list) {} { scan_stream(c::__isoc23_vfscanf, stream, format, list) } { streams::has_read(stream); };
    __isoc23_sscanf("16", "rdx") __isoc23_vsscanf(s, ; format, list) { r(s, text(s)); } { scan_text(c::__isoc23_vsscanf, s, format, list) } {};
}
