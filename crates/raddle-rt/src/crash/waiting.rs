//! What a thread waits for when the run ends, and where it stands.
//!
//! In a steered run the scheduler knows both. Otherwise the kernel does: a thread that sleeps in a system call says which one and
//! with which arguments (`/proc/self/task/ID/syscall`). For a futex the first argument is the word that it waits for, which lies
//! in the mutex, condition variable or semaphore.

use super::stack::Stack;
use super::{NO_HOLDER, head_of};
use crate::real;
use crate::steer::Standing;
use crate::thread::Thread;
use core::fmt::Write;
use raddle_wire::crash::{ThreadHead, Writer, flag};

pub fn tell(writer: &mut Writer<'_>, thread: &Thread, standing: Option<Standing>) {
    let name = thread.turns.name.get();
    let mut head = head_of(thread, &name);
    head.index = thread.index();
    let known = standing.filter(|standing| standing.pc != 0);
    let stack = Stack::of_other(thread, known.map(|standing| standing.pc));
    match standing {
        Some(standing) => {
            head.phase = standing.phase;
            if standing.blocked {
                head.flags = flag::OPERATION;
                head.what = u32::from(standing.kind);
                head.object = standing.object as u64;
                head.holder = standing.holder.unwrap_or(NO_HOLDER);
            } else if standing.asleep {
                tell_call(&mut head, thread);
            }
        }
        None => tell_call(&mut head, thread),
    }
    writer.thread(head, stack.as_slice());
}

fn tell_call(head: &mut ThreadHead<'_>, thread: &Thread) {
    if let Some((number, argument)) = call_of(thread.os_tid()) {
        head.flags = flag::CALL;
        head.what = number;
        head.object = argument;
    }
}

/// A path, without memory.
struct Path {
    bytes: [u8; 64],
    used: usize,
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // The last byte stays zero.
        let room = (self.bytes.len() - 1 - self.used).min(text.len());
        self.bytes[self.used..self.used + room].copy_from_slice(&text.as_bytes()[..room]);
        self.used += room;
        Ok(())
    }
}

/// The system call in which the thread sleeps, and its first argument. `None`: it runs, or nobody knows.
fn call_of(tid: u32) -> Option<(u32, u64)> {
    let mut path = Path { bytes: [0; 64], used: 0 };
    let _ = write!(path, "/proc/self/task/{tid}/syscall");
    let mut line = [0u8; 128];
    // SAFETY: the path is a C string, the buffer is valid for its length, the descriptor is closed again.
    let bytes = unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let file = real::own_syscall(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, path.bytes.as_ptr() as usize, flags, 0, 0, 0],
        );
        let file = usize::try_from(file).ok()?;
        let bytes =
            real::own_syscall(libc::SYS_read, [file, line.as_mut_ptr() as usize, line.len(), 0, 0, 0]);
        real::own_syscall(libc::SYS_close, [file, 0, 0, 0, 0, 0]);
        usize::try_from(bytes).ok()?
    };
    // A number, six arguments, stack pointer and program counter; or the word "running".
    let mut words = core::str::from_utf8(&line[..bytes]).ok()?.split(' ');
    let number = words.next()?.parse::<u32>().ok()?;
    let argument = u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok()?;
    Some((number, argument))
}
