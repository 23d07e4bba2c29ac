//! FailedAssertion assertions: their text goes into the crash report, and the C library says and does what it always does.
//!
//! The functions note where their arguments are and call the real ones, which abort the program; the handler of SIGABRT reads the
//! texts then. What the C library itself says when it aborts a program (a corrupt heap, an overflowing buffer, a smashed
//! stack) it keeps for debuggers in `__abort_msg`.

use crate::crash::memory;
use crate::real::Real;
use crate::thread::{self, FailedAssertion, Thread};
use crate::{arch, export_with_pc, real_fn};
use core::ffi::{c_char, c_int, c_uint};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::crash::{TEXT_MAX, Writer, text};

mod c {
    use super::*;
    real_fn! {
        fn __assert_fail(expression: *const c_char, file: *const c_char, line: c_uint, function: *const c_char);
        fn __assert_perror_fail(error: c_int, file: *const c_char, line: c_uint, function: *const c_char);
        fn __assert(expression: *const c_char, file: *const c_char, line: c_int);
    }
}

/// `std::__glibcxx_assert_fail(file, line, function, condition)`.
static LIBSTDCXX: Real = Real::new(c"_ZSt21__glibcxx_assert_failPKciS0_S0_");

fn note(failed: FailedAssertion) {
    let thread = thread::current();
    // The idle thread is several threads.
    if thread.is_observed() {
        thread.dying.assertion.set(failed);
    }
}

extern "C" fn do_assert_fail(
    expression: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) {
    let [expression_at, file_at, function_at] = [expression, file, function].map(|text| text as usize);
    note(FailedAssertion { expression: expression_at, file: file_at, function: function_at, line, error: 0 });
    // SAFETY: the texts are what the program passed to the function of this name.
    unsafe { c::__assert_fail(expression, file, line, function) };
    arch::abort()
}

extern "C" fn do_assert_perror_fail(
    error: c_int,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) {
    note(FailedAssertion { expression: 0, file: file as usize, function: function as usize, line, error });
    // SAFETY: the texts are what the program passed to the function of this name.
    unsafe { c::__assert_perror_fail(error, file, line, function) };
    arch::abort()
}

extern "C" fn do_assert(expression: *const c_char, file: *const c_char, line: c_int) {
    let [expression_at, file_at] = [expression, file].map(|text| text as usize);
    note(FailedAssertion {
        expression: expression_at,
        file: file_at,
        function: 0,
        line: line as u32,
        error: 0,
    });
    // SAFETY: the texts are what the program passed to the function of this name.
    unsafe { c::__assert(expression, file, line) };
    arch::abort()
}

extern "C" fn do_glibcxx_assert_fail(
    file: *const c_char,
    line: c_int,
    function: *const c_char,
    condition: *const c_char,
) {
    let [expression, file_at, function_at] = [condition, file, function].map(|text| text as usize);
    note(FailedAssertion { expression, file: file_at, function: function_at, line: line as u32, error: 0 });
    match LIBSTDCXX.find() {
        Some(address) => {
            // SAFETY: the function of this name, whose signature this is.
            let real: extern "C" fn(*const c_char, c_int, *const c_char, *const c_char) =
                unsafe { core::mem::transmute::<usize, _>(address) };
            real(file, line, function, condition);
        }
        // SAFETY: ends the program. A libstdc++ that was linked statically left its own function out, because ours was there.
        None => unsafe { libc::abort() },
    }
    arch::abort()
}

/// Where the C library keeps a pointer to its last words: their size, and they themselves.
static MESSAGE: AtomicUsize = AtomicUsize::new(0);

/// Looked up beforehand: a handler must not.
pub fn find_message() {
    // SAFETY: the names are C strings.
    let found =
        unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr(), c"GLIBC_PRIVATE".as_ptr()) };
    MESSAGE.store(found as usize, Ordering::Relaxed);
}

/// Puts what the thread died of into the report.
pub fn tell(thread: &Thread, writer: &mut Writer<'_>) {
    let failed = thread.dying.assertion.get();
    let mut room = [0u8; TEXT_MAX];
    if !failed.is_none() {
        let (first, rest) = room.split_at_mut(TEXT_MAX / 2);
        let (second, third) = rest.split_at_mut(TEXT_MAX / 4);
        let expression = match failed.expression {
            0 => error_text(failed.error, first),
            at => memory::text(at, first),
        };
        let texts = [expression, memory::text(failed.file, second), memory::text(failed.function, third)];
        return writer.texts(text::ASSERTION, failed.line, texts);
    }
    let at = MESSAGE.load(Ordering::Relaxed);
    let message = if at == 0 { None } else { memory::word(at).filter(|&message| message != 0) };
    if let Some(message) = message {
        let said = memory::text(message as usize + size_of::<c_uint>(), &mut room);
        if !said.is_empty() {
            writer.texts(text::MESSAGE, 0, [said.trim_ascii_end(), &[], &[]]);
        }
    }
}

/// As `error 2`.
fn error_text(error: c_int, into: &mut [u8]) -> &[u8] {
    const WORD: &[u8] = b"error ";
    into[..WORD.len()].copy_from_slice(WORD);
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    let mut rest = error.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let number = &digits[at..];
    into[WORD.len()..WORD.len() + number.len()].copy_from_slice(number);
    &into[..WORD.len() + number.len()]
}

export_with_pc! {
    __assert_fail => do_assert_fail;
    __assert_perror_fail => do_assert_perror_fail;
    __assert => do_assert;
    _ZSt21__glibcxx_assert_failPKciS0_S0_ => do_glibcxx_assert_fail;
}
