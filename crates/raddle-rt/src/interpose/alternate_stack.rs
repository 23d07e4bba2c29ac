//! Alternate signal stacks: the runtime's own for crashes, and the program's.
//!
//! A crash can be an overflowing stack, so its handler needs another one. The kernel knows one alternate stack a thread. As long as
//! the program has set none, that is ours, and the program is told that there is none; when it sets one, the kernel gets that,
//! and the handler of crashes goes over to ours by itself (`crash::entry`).
//!
//! A handler of the program that asks for the alternate stack (`SA_ONSTACK`) in a thread that has none natively runs on the stack that
//! was interrupted. The kernel would give it ours, so it is moved ([`on_interrupted_stack`]).

use crate::thread::crash_stack::{NONE, is_ours, ours, set};
use crate::thread::{self, CRASH_STACK_BYTES};
use crate::{arch, export_with_pc, real_fn};
use core::ffi::{c_int, c_void};

mod c {
    use super::*;
    real_fn! {
        fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int;
    }
}

extern "C" fn do_sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let thread = thread::current();
    let mut before = NONE;
    // SAFETY: as the program asks; our own structure takes the answer.
    let result = unsafe { c::sigaltstack(new, &mut before) };
    if result != 0 {
        return result;
    }
    if is_ours(thread, &before) {
        before = NONE;
    }
    // SAFETY: the program passes valid structures or null.
    unsafe {
        if !old.is_null() {
            *old = before;
        }
        if !new.is_null() && (*new).ss_flags & libc::SS_DISABLE != 0 && thread.is_observed() {
            set(&ours(thread), &mut NONE.clone());
        }
    }
    0
}

/// What a handler is told about the alternate stack is what the program set. True: it was ours, and is to be put back before the
/// handler returns, because the kernel then sets what stands there.
///
/// # Safety
/// `context` is what the kernel passed to a handler.
pub unsafe fn hide(context: *mut c_void) -> bool {
    let thread = thread::current();
    // SAFETY: by contract.
    let stack = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_stack };
    let hides = is_ours(thread, stack);
    if hides {
        *stack = NONE;
    }
    hides
}

/// # Safety
/// As [`hide`].
pub unsafe fn show(context: *mut c_void) {
    // SAFETY: by contract.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack = ours(thread::current()) };
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Does the calling handler run on the runtime's stack?
pub fn in_use() -> bool {
    let base = thread::current().dying.stack.get();
    base != 0 && arch::stack_pointer().wrapping_sub(base) < CRASH_STACK_BYTES
}

/// The part of a context that the kernel reads: flags, link, stack, registers and mask.
const CONTEXT_BYTES: usize = core::mem::offset_of!(libc::ucontext_t, uc_sigmask) + size_of::<u64>();
/// What a function may use below its stack pointer.
const RED_ZONE_BYTES: usize = 128;

#[repr(C, align(16))]
struct Moved {
    info: libc::siginfo_t,
    context: [u8; CONTEXT_BYTES],
}

/// Calls the handler on the stack that the signal interrupted, with a copy of what the kernel passed; what it changes in its context
/// holds.
///
/// # Safety
/// Called from a handler, with what the kernel passed to it.
pub unsafe fn on_interrupted_stack(
    handler: Handler,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: below the interrupted function's frame and red zone the stack is free; where it ends, the copy crashes as the kernel's
    // would have. `Moved` has nothing but bytes.
    unsafe {
        let interrupted =
            (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
        let place = (interrupted - RED_ZONE_BYTES - size_of::<Moved>()) & !15;
        let moved = place as *mut Moved;
        (&raw mut (*moved).info).copy_from(info, 1);
        let copy = (&raw mut (*moved).context).cast::<u8>();
        arch::copy_forward(copy, context.cast(), CONTEXT_BYTES);
        arch::call_on_stack(handler, signal, &raw mut (*moved).info, copy.cast(), place);
        arch::copy_forward(context.cast(), copy, CONTEXT_BYTES);
    }
}

export_with_pc! {
    sigaltstack => do_sigaltstack;
}
