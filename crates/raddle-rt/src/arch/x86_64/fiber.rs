//! Switching between stacks inside one kernel thread, and turning a thread of the C library's into a stack to switch to.
//!
//! What is saved on a switch is what a function may not change: six registers, and the control words of the two floating-point
//! units. The thread pointer goes along, so that each stack keeps its thread-local storage; that needs an instruction which old
//! kernels forbid ([`supported`]).

use core::arch::{asm, global_asm};
use core::sync::atomic::AtomicU32;

/// Puts what a function may not change onto the stack.
macro_rules! save {
    () => {
        "push rbp
        push rbx
        push r12
        push r13
        push r14
        push r15
        sub rsp, 8
        stmxcsr dword ptr [rsp]
        fnstcw word ptr [rsp + 4]"
    };
}

global_asm!(
    ".text",
    // rdi: where to save the stack pointer; rsi: the stack to go to; rdx: its thread pointer.
    ".p2align 4",
    ".hidden raddle_switch",
    ".globl raddle_switch",
    ".type raddle_switch,@function",
    "raddle_switch:",
    save!(),
    "mov qword ptr [rdi], rsp",
    "mov rsp, rsi",
    "wrfsbase rdx",
    "ldmxcsr dword ptr [rsp]",
    "fldcw word ptr [rsp + 4]",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size raddle_switch, .-raddle_switch",
    // rdi: where to save the stack pointer; rsi: the word that the kernel clears when the kernel thread is gone. Returns when
    // somebody switches to the saved stack.
    ".p2align 4",
    ".hidden raddle_leave_stack",
    ".globl raddle_leave_stack",
    ".type raddle_leave_stack,@function",
    "raddle_leave_stack:",
    save!(),
    "mov qword ptr [rdi], rsp",
    "mov rdi, rsi",
    "mov eax, {set_tid_address}",
    "syscall",
    "xor edi, edi",
    "mov eax, {exit}",
    "syscall",
    "ud2",
    ".size raddle_leave_stack, .-raddle_leave_stack",
    // rdi: the stack; rsi: the function, which does not return; rdx: where to save the stack pointer.
    ".p2align 4",
    ".hidden raddle_begin_on",
    ".globl raddle_begin_on",
    ".type raddle_begin_on,@function",
    "raddle_begin_on:",
    save!(),
    "mov qword ptr [rdx], rsp",
    "mov rsp, rdi",
    "call rsi",
    "ud2",
    ".size raddle_begin_on, .-raddle_begin_on",
    set_tid_address = const libc::SYS_set_tid_address,
    exit = const libc::SYS_exit,
);

unsafe extern "C" {
    fn raddle_switch(save: *mut usize, stack: usize, thread_pointer: usize);
    fn raddle_leave_stack(save: *mut usize, gone: *const AtomicU32);
    fn raddle_begin_on(stack: usize, function: extern "C" fn() -> !, save: *mut usize);
}

/// Saves where the caller is, and goes on where `stack` was saved. Returns when somebody switches back.
///
/// # Safety
/// `stack` was saved by one of the functions here, nobody has gone on there since, and `thread_pointer` belongs to it. `save` is valid.
pub unsafe fn switch(save: *mut usize, stack: usize, thread_pointer: usize) {
    // SAFETY: by contract.
    unsafe { raddle_switch(save, stack, thread_pointer) }
}

/// Ends the calling kernel thread and leaves its stack as it is, for somebody to go on there. The kernel clears `gone` and wakes who
/// waits for it.
///
/// # Safety
/// `save` and `gone` stay valid; nothing that belongs to the kernel thread itself is needed afterwards.
pub unsafe fn leave_stack(save: *mut usize, gone: *const AtomicU32) {
    // SAFETY: by contract.
    unsafe { raddle_leave_stack(save, gone) }
}

/// Calls a function on another stack and returns when somebody switches back to what is saved.
///
/// # Safety
/// The memory below `stack`, which is 16-byte aligned, is free; `save` is valid.
pub unsafe fn begin_on(stack: usize, function: extern "C" fn() -> !, save: *mut usize) {
    // SAFETY: by contract.
    unsafe { raddle_begin_on(stack, function, save) }
}

/// Bit of `AT_HWCAP2`: the kernel allows `wrfsbase`.
const FSGSBASE: u64 = 1 << 1;

pub fn supported() -> bool {
    // SAFETY: asks for a word of the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & FSGSBASE != 0 }
}

/// The calling thread's thread pointer, which is also its handle.
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word behind the thread pointer holds the pointer itself.
    unsafe { asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags, pure)) };
    pointer
}

/// Copies one page, aligned.
///
/// # Safety
/// Both are valid for a page and do not overlap.
#[inline]
pub unsafe fn copy_page(to: usize, from: usize) {
    // SAFETY: by contract; the direction flag is clear.
    unsafe {
        asm!("rep movsq", inout("rcx") 512usize => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

/// Fills one page with zeroes.
///
/// # Safety
/// Valid for a page.
#[inline]
pub unsafe fn clear_page(at: usize) {
    // SAFETY: by contract; the direction flag is clear.
    unsafe {
        asm!("rep stosq", inout("rcx") 512usize => _, inout("rdi") at => _, in("rax") 0usize, options(nostack, preserves_flags));
    }
}
