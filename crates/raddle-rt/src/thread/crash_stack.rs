//! The stack on which a thread tells what it dies of: an alternate signal stack as long as the program has set none.
//!
//! What the program sees of it, and what it sets itself, is `interpose::alternate_stack`'s.

use super::{CRASH_STACK_BYTES, Thread};
use crate::real;
use core::ffi::c_void;

pub fn set(stack: &libc::stack_t, old: &mut libc::stack_t) -> bool {
    let [new, old] = [core::ptr::from_ref(stack) as usize, core::ptr::from_mut(old) as usize];
    // SAFETY: both structures are valid for the call.
    unsafe { real::own_syscall(libc::SYS_sigaltstack, [new, old, 0, 0, 0, 0]) == 0 }
}

pub const NONE: libc::stack_t =
    libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };

pub fn ours(thread: &Thread) -> libc::stack_t {
    libc::stack_t { ss_sp: thread.dying.stack.get() as *mut c_void, ss_flags: 0, ss_size: CRASH_STACK_BYTES }
}

/// The calling thread begins: crashes are told from the runtime's stack, unless somebody has set one already.
pub fn adopt(thread: &Thread) {
    let mut before = NONE;
    if set(&ours(thread), &mut before) && before.ss_flags & libc::SS_DISABLE == 0 {
        set(&before, &mut NONE.clone());
    }
}

/// The calling thread ends: its structure, and the stack with it, may soon be another one's.
pub fn release(thread: &Thread) {
    let mut before = NONE;
    if set(&NONE, &mut before) && !is_ours(thread, &before) {
        set(&before, &mut NONE.clone());
    }
}

pub fn is_ours(thread: &Thread, stack: &libc::stack_t) -> bool {
    thread.dying.stack.get() != 0 && stack.ss_sp as usize == thread.dying.stack.get()
}
