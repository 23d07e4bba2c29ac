//! `syscall(SYS_futex, ...)`: how Rust's standard library and C++20's `atomic::wait` block.
//!
//! Every other system call goes to the kernel untouched, from the same stack frame: a call that returns twice or on
//! another stack must not pass through ours.

use crate::thread;
use crate::{observe, real};
use core::ffi::c_long;
use raddle_wire::SyncOp;

/// Kernel results of this range are negated error numbers.
extern "C" fn fail(result: isize) -> c_long {
    real::set_errno(-result as i32);
    -1
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "cmp rdi, {futex}",
        "jne 2f",
        "mov r10, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
        "mov r10, qword ptr fs:[r10]",
        "mov r11, qword ptr [rsp]",
        "mov qword ptr [r10 + {pc}], r11",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov rcx, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "jmp {handle}",
        "2: mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 3f",
        "ret",
        "3: mov rdi, rax",
        "jmp {fail}",
        futex = const libc::SYS_futex,
        pc = const core::mem::offset_of!(thread::Thread, caller_pc),
        handle = sym futex,
        fail = sym fail,
    )
}

extern "C" fn futex(
    word: usize,
    op: usize,
    value: usize,
    time: usize,
    word2: usize,
    value3: usize,
) -> c_long {
    let pc = thread::current().caller_pc;
    let command = op as i32 & libc::FUTEX_CMD_MASK;
    let waits = matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
    if matches!(
        command,
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET | libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE
    ) {
        say(SyncOp::FutexWake, word, value as u64, pc);
    }
    // SAFETY: as the program asks.
    let result = unsafe { real::syscall(libc::SYS_futex, [word, op, value, time, word2, value3]) };
    if waits {
        say(if result == 0 { SyncOp::FutexWait } else { SyncOp::FutexWaitFailed }, word, 0, pc);
    }
    if (-4095..0).contains(&result) { fail(result) } else { result as c_long }
}

fn say(op: SyncOp, word: usize, argument: u64, pc: u64) {
    if let Some(thread) = thread::observed() {
        observe::sync(thread, pc, op, word, argument);
    }
}
