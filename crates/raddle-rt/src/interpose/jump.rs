//! Non-local jumps: they leave functions without their exit hooks.

use crate::thread::FailedAssertion;
use crate::{export_with_pc, real_fn, thread};
use core::ffi::{c_int, c_void};

mod c {
    use super::*;
    real_fn! {
        fn longjmp(buffer: *mut c_void, value: c_int);
        fn _longjmp(buffer: *mut c_void, value: c_int);
        fn siglongjmp(buffer: *mut c_void, value: c_int);
        fn __longjmp_chk(buffer: *mut c_void, value: c_int);
    }
}

fn leave() {
    let thread = thread::current();
    thread.calls.jumped();
    // A handler that is left this way does not come back; a later one that it interrupted does not either.
    thread.signals.hold_only(0);
    if thread.is_observed() {
        // A handler of SIGABRT that jumps out: the program lives on, and what it dies of later is something else.
        thread.dying.assertion.set(FailedAssertion::NONE);
    }
}

macro_rules! jumps {
    ($($name:ident, $body:ident;)*) => {
        $(extern "C" fn $body(buffer: *mut c_void, value: c_int) {
            leave();
            // SAFETY: as the program asks; does not return.
            unsafe { c::$name(buffer, value) }
        })*
        export_with_pc! { $($name => $body;)* }
    };
}

jumps! {
    longjmp, do_longjmp;
    _longjmp, do_underscore_longjmp;
    siglongjmp, do_siglongjmp;
    __longjmp_chk, do_longjmp_chk;
}
