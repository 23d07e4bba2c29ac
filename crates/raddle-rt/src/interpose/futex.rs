//! `syscall(SYS_futex, ...)`: how Rust's standard library and C++20's `atomic::wait` block.
//!
//! Every other system call goes to the kernel untouched, from the same stack frame: a call that returns twice or on
//! another stack must not pass through ours.

use crate::steer::{self, Patience, Request};
use crate::thread::{self, Thread};
use crate::{observe, real};
use core::ffi::c_long;
use core::sync::atomic::{AtomicU32, Ordering};
use raddle_wire::{SyncOp, step};

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
        pc = const core::mem::offset_of!(Thread, caller),
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
    let pc = thread::current().caller_pc();
    let command = op as i32 & libc::FUTEX_CMD_MASK;
    let waits = matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
    let wakes = matches!(command, libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET);
    if let (true, Some(thread)) = (steer::on() && (waits || wakes), thread::observed()) {
        let result = if waits {
            let result = wait_steered(thread, pc, word, value as u32, time != 0);
            if result == -(libc::ETIMEDOUT as isize) {
                limit_reached(command, time);
            }
            result
        } else {
            let wake = || steer::signal(word, value) as isize;
            super::step_with(thread, pc, SyncOp::FutexWake, word, value as u64, wake)
        };
        return if result < 0 { fail(result) } else { result as c_long };
    }
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

/// Looks at the word and waits, as the kernel would, but in the thread's turn.
fn wait_steered(thread: &Thread, pc: u64, word: usize, value: u32, timed: bool) -> isize {
    let patience = if timed { Patience::Timed } else { Patience::Forever };
    let mut waiting = false;
    let woken =
        steer::blocking(thread, Request { kind: step::FUTEX_WAIT, object: word, pc }, patience, |thread| {
            if waiting {
                if !steer::signalled(thread, false) {
                    return None;
                }
                observe::sync(thread, pc, SyncOp::FutexWait, word, 0);
                return Some(0);
            }
            // SAFETY: the program passes a valid futex word.
            if unsafe { (*(word as *const AtomicU32)).load(Ordering::SeqCst) } != value {
                observe::sync(thread, pc, SyncOp::FutexWaitFailed, word, 0);
                return Some(-(libc::EAGAIN as isize));
            }
            if steer::replaying() {
                // The schedule has the end of the wait only, and this is it: somebody woke the thread, and the word is as it
                // was, or is so again.
                observe::sync(thread, pc, SyncOp::FutexWait, word, 0);
                return Some(0);
            }
            steer::begin_wait(thread, word);
            waiting = true;
            None
        });
    woken.unwrap_or_else(|| {
        steer::signalled(thread, true);
        observe::sync(thread, pc, SyncOp::FutexWaitFailed, word, 0);
        steer::failed(thread);
        -(libc::ETIMEDOUT as isize)
    })
}

/// One form waits for a length of time, the other until a time.
fn limit_reached(command: i32, time: usize) {
    let time = time as *const libc::timespec;
    // SAFETY: the program passes a valid time.
    unsafe {
        if command == libc::FUTEX_WAIT {
            steer::clock::pass(steer::clock::length_ns(time));
        } else {
            steer::clock::reach(time);
        }
    }
}

fn say(op: SyncOp, word: usize, argument: u64, pc: u64) {
    if let Some(thread) = thread::observed() {
        observe::sync(thread, pc, op, word, argument);
    }
}
