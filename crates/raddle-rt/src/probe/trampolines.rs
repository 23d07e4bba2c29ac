//! Where probed code arrives: three functions of the runtime, with unwind tables like those of any assembled function, so that
//! exceptions, panics, debuggers and `pthread_exit` pass them.
//!
//! The patched place jumps (or calls) to a stub of fifteen bytes beside its module, `push rbp; mov rbp, rsp; push ID; jmp *slot`, so all
//! three are entered with a finished frame. Everything that a caller may rely on is kept: all integer registers and the low halves of
//! the vector registers, which gcc's `-fipa-ra` leaves alive across calls of functions that do not touch them; the runtime touches no
//! upper halves and no x87.
//!
//! ```text
//! rbp + 16        arguments on the stack
//! rbp +  8        return address
//! rbp             rbp of the caller
//! rbp -  8        number of the probe
//! rbp - 16        where to go on, once that is known
//! rbp - 88 ..     rax rdi rsi rdx rcx r8 r9 r10 r11, from the top
//! rbp - 352 ..    xmm0 to xmm15
//! rbp - 608 ..    copy of the arguments on the stack (around), later the registers that the function returned with
//! ```

use super::hooks;
use core::arch::naked_asm;

/// Registers of a frame, from low addresses to high ones.
#[repr(C)]
pub struct Frame {
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rax: u64,
    pub target: u64,
    pub probe: u64,
    pub rbp: u64,
    pub return_address: u64,
    pub stack: [u64; 0],
}

const _: () = assert!(core::mem::offset_of!(Frame, rbp) == 88);

macro_rules! save {
    () => {
        "lea rsp, [rsp - 600]
        mov [rbp - 24], rax
        mov [rbp - 32], rdi
        mov [rbp - 40], rsi
        mov [rbp - 48], rdx
        mov [rbp - 56], rcx
        mov [rbp - 64], r8
        mov [rbp - 72], r9
        mov [rbp - 80], r10
        mov [rbp - 88], r11"
    };
}

macro_rules! save_vectors {
    () => {
        "movups [rbp - 352], xmm0
        movups [rbp - 336], xmm1
        movups [rbp - 320], xmm2
        movups [rbp - 304], xmm3
        movups [rbp - 288], xmm4
        movups [rbp - 272], xmm5
        movups [rbp - 256], xmm6
        movups [rbp - 240], xmm7
        movups [rbp - 224], xmm8
        movups [rbp - 208], xmm9
        movups [rbp - 192], xmm10
        movups [rbp - 176], xmm11
        movups [rbp - 160], xmm12
        movups [rbp - 144], xmm13
        movups [rbp - 128], xmm14
        movups [rbp - 112], xmm15"
    };
}

macro_rules! restore_vectors {
    () => {
        "movups xmm0, [rbp - 352]
        movups xmm1, [rbp - 336]
        movups xmm2, [rbp - 320]
        movups xmm3, [rbp - 304]
        movups xmm4, [rbp - 288]
        movups xmm5, [rbp - 272]
        movups xmm6, [rbp - 256]
        movups xmm7, [rbp - 240]
        movups xmm8, [rbp - 224]
        movups xmm9, [rbp - 208]
        movups xmm10, [rbp - 192]
        movups xmm11, [rbp - 176]
        movups xmm12, [rbp - 160]
        movups xmm13, [rbp - 144]
        movups xmm14, [rbp - 128]
        movups xmm15, [rbp - 112]"
    };
}

macro_rules! restore {
    () => {
        "mov rax, [rbp - 24]
        mov rdi, [rbp - 32]
        mov rsi, [rbp - 40]
        mov rdx, [rbp - 48]
        mov rcx, [rbp - 56]
        mov r8, [rbp - 64]
        mov r9, [rbp - 72]
        mov r10, [rbp - 80]
        mov r11, [rbp - 88]"
    };
}

macro_rules! framed {
    () => {
        ".cfi_def_cfa rbp, 16
        .cfi_offset rbp, -16"
    };
}

/// Events before a call or at the beginning of a function; then on to it, with stack and return address as they were. The target waits
/// below the stack pointer, in the 128 bytes that signal handlers leave alone.
#[unsafe(naked)]
pub unsafe extern "C" fn before() {
    naked_asm!(
        ".cfi_startproc",
        framed!(),
        save!(),
        save_vectors!(),
        "lea rdi, [rbp - 88]",
        "and rsp, -16",
        "call {hook}",
        "mov [rbp - 16], rax",
        restore_vectors!(),
        restore!(),
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        ".cfi_same_value rbp",
        "jmp qword ptr [rsp - 24]",
        ".cfi_endproc",
        hook = sym hooks::before,
    )
}

/// Events before and after: the function is called from here, with a copy of its arguments on the stack.
#[unsafe(naked)]
pub unsafe extern "C" fn around() {
    naked_asm!(
        ".cfi_startproc",
        framed!(),
        save!(),
        save_vectors!(),
        "lea rdi, [rbp - 88]",
        "and rsp, -16",
        "call {before}",
        "mov [rbp - 16], rax",
        "lea rsp, [rbp - 608]",
        "xor eax, eax",
        "2:",
        "movups xmm0, [rbp + rax + 16]",
        "movups [rsp + rax], xmm0",
        "add rax, 16",
        "cmp rax, {stack_bytes}",
        "jb 2b",
        restore_vectors!(),
        restore!(),
        "call qword ptr [rbp - 16]",
        save_vectors!(),
        "mov [rbp - 368], rax",
        "mov [rbp - 376], rdi",
        "mov [rbp - 384], rsi",
        "mov [rbp - 392], rdx",
        "mov [rbp - 400], rcx",
        "mov [rbp - 408], r8",
        "mov [rbp - 416], r9",
        "mov [rbp - 424], r10",
        "mov [rbp - 432], r11",
        "lea rdi, [rbp - 88]",
        "mov rsi, rax",
        "and rsp, -16",
        "call {after}",
        restore_vectors!(),
        "mov rax, [rbp - 368]",
        "mov rdi, [rbp - 376]",
        "mov rsi, [rbp - 384]",
        "mov rdx, [rbp - 392]",
        "mov rcx, [rbp - 400]",
        "mov r8, [rbp - 408]",
        "mov r9, [rbp - 416]",
        "mov r10, [rbp - 424]",
        "mov r11, [rbp - 432]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        ".cfi_same_value rbp",
        "ret",
        ".cfi_endproc",
        before = sym hooks::before,
        after = sym hooks::after,
        stack_bytes = const raddle_wire::probe::STACK_WORDS * 8,
    )
}

/// A line of code: everything stays as it was, the flags too. The stub has stepped over the 128 bytes below the stack pointer, and pushed
/// the program counter, the number of the probe and the way back to itself.
#[unsafe(naked)]
pub unsafe extern "C" fn line() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_signal_frame",
        ".cfi_def_cfa rsp, 152",
        ".cfi_offset rip, -136",
        "push rbp",
        ".cfi_def_cfa rsp, 160",
        ".cfi_offset rbp, -160",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        save!(),
        "lahf",
        "seto al",
        "mov [rbp - 96], rax",
        "cld",
        save_vectors!(),
        "mov rdi, [rbp + 16]",
        "mov rsi, [rbp + 24]",
        "and rsp, -16",
        "call {hook}",
        restore_vectors!(),
        "mov rax, [rbp - 96]",
        "add al, 127",
        "sahf",
        restore!(),
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 152",
        ".cfi_same_value rbp",
        "ret",
        ".cfi_endproc",
        hook = sym hooks::line,
    )
}
