//! Failed assertions: their text goes into the crash report, and the C library says and does what it always does.
//!
//! The functions note where their arguments are and call the real ones, which abort the program; the handler of SIGABRT reads the
//! texts then (`crash::last_words`).

use crate::real::Real;
use crate::thread::{self, FailedAssertion};
use crate::{arch, export_with_pc, real_fn};
use core::ffi::{c_char, c_int, c_uint};

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

export_with_pc! {
    __assert_fail => do_assert_fail;
    __assert_perror_fail => do_assert_perror_fail;
    __assert => do_assert;
    _ZSt21__glibcxx_assert_failPKciS0_S0_ => do_glibcxx_assert_fail;
}
