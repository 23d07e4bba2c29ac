//! What a thread's death needs: a stack of its own, and the assertion that it has failed. Owned by `crash`.

use core::cell::Cell;
use core::ffi::c_int;

/// Room for the kernel's frame (up to 11 KiB with the largest registers) and for the handler.
pub const CRASH_STACK_BYTES: usize = 64 << 10;

/// Where the texts of the assertion are that the thread has just failed.
#[derive(Clone, Copy)]
pub struct FailedAssertion {
    pub expression: usize,
    pub file: usize,
    pub function: usize,
    pub line: u32,
    /// `assert_perror`: the error in the place of an expression.
    pub error: c_int,
}

impl FailedAssertion {
    pub const NONE: FailedAssertion =
        FailedAssertion { expression: 0, file: 0, function: 0, line: 0, error: 0 };

    pub fn is_none(&self) -> bool {
        self.expression == 0 && self.file == 0
    }
}

#[repr(C)]
pub struct Dying {
    /// Where the stack begins on which a crash of the thread is reported; the handler's assembly reads it. 0: none.
    pub stack: Cell<usize>,
    /// The assertion that the thread has failed.
    pub assertion: Cell<FailedAssertion>,
}

impl Dying {
    pub const fn idle() -> Dying {
        Dying { stack: Cell::new(0), assertion: Cell::new(FailedAssertion::NONE) }
    }

    /// For a thread that is about to be created. The stack belongs to the structure.
    pub fn clear(&self) {
        self.assertion.set(FailedAssertion::NONE);
    }
}
