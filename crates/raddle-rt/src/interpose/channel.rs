//! Pipes, sockets, event counters, and other objects of the kernel: what is read was written before.
//!
//! A read from a pipe returns after the write that it reads from, so the writer's past happens before what the reader does
//! next. The kernel keeps this order; here it becomes one of the clocks and of the trace: who writes sends through the channel
//! ([`SyncOp::Send`]), who has read receives from it ([`SyncOp::Receive`]).
//!
//! A channel is named by what the kernel says about the descriptor, not by the descriptor, so that duplicates and reused
//! numbers are no matter. Both ends of a pipe are one file to the kernel. The two ends of a connection are not, nor are
//! event counters files of their own, so all sockets are one channel, and all event counters and epoll descriptors
//! another (ThreadSanitizer does the same for sockets). That orders more than there is: it can hide a race, never make
//! one up. Terminals order nothing, and regular files only once the program locks files.

use crate::thread;
use crate::{detect, observe, real, run};
use core::ffi::c_long;
use core::sync::atomic::{AtomicBool, Ordering};
use raddle_wire::SyncOp;

/// Which way a call on a descriptor passes something on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    None,
    In,
    Out,
}

impl Flow {
    pub fn of(number: c_long) -> Flow {
        match number {
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_close
            | libc::SYS_shutdown
            | libc::SYS_connect
            | libc::SYS_epoll_ctl => Flow::Out,
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait => Flow::In,
            _ => Flow::None,
        }
    }
}

/// Channels are objects at addresses that no program has: outside the address space, and at the place of its first pages
/// in the table of objects.
const CHANNELS: usize = 1 << 62;
const COUNTERS: usize = CHANNELS | 8;
const SOCKETS: usize = CHANNELS | 16;
/// Signals can be read from descriptors, which look like event counters.
pub const SIGNALS: usize = COUNTERS;
const NAMED_FIRST: usize = 3;
const NAMED: usize = 8192 - NAMED_FIRST;

/// What the number of an object of the kernel is a number of.
#[derive(Clone, Copy)]
pub enum Kind {
    Pipe,
    File,
    /// A set of semaphores that was raised, lowered.
    Raised,
    Lowered,
    Messages,
}

/// The channel of an object that the kernel knows by a number. Two whose numbers fall together are one channel.
pub fn named(kind: Kind, number: u64) -> usize {
    // Fibonacci hashing: neighbouring numbers of different kinds do not meet.
    let mixed = (number ^ (kind as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    CHANNELS + (NAMED_FIRST + mixed as usize % NAMED) * 8
}

/// The program has locked a file: closing one may give a lock back.
static LOCKS_FILES: AtomicBool = AtomicBool::new(false);

pub fn note_file_locks() {
    LOCKS_FILES.store(true, Ordering::Relaxed);
}

fn on() -> bool {
    detect::on() || run::recording()
}

/// The object that stands for a descriptor's channel.
pub fn object(fd: usize) -> Option<usize> {
    // SAFETY: plain data; the structure is valid for the call.
    let about = unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        if real::syscall(libc::SYS_fstat, [fd, &raw mut about as usize, 0, 0, 0, 0]) != 0 {
            return None;
        }
        about
    };
    match about.st_mode & libc::S_IFMT {
        libc::S_IFSOCK => Some(SOCKETS),
        libc::S_IFIFO => Some(named(Kind::Pipe, about.st_ino ^ about.st_dev)),
        libc::S_IFREG if LOCKS_FILES.load(Ordering::Relaxed) => {
            Some(named(Kind::File, about.st_ino ^ about.st_dev))
        }
        // Event counters and epoll descriptors have no type.
        0 => Some(COUNTERS),
        _ => None,
    }
}

/// A call on a descriptor is about to be made.
#[inline]
pub fn before(flow: Flow, fd: usize) {
    if flow == Flow::Out && on() {
        pass(fd, SyncOp::Send);
    }
}

/// A call on a descriptor has been made.
#[inline]
pub fn after(flow: Flow, fd: usize, result: isize) {
    if flow == Flow::In && result >= 0 && on() {
        pass(fd, SyncOp::Receive);
    }
}

fn pass(fd: usize, op: SyncOp) {
    if thread::observed().is_some()
        && let Some(object) = object(fd)
    {
        say(op, object);
    }
}

/// The thread's past goes into the channel. Called before what lets another thread go on.
pub fn send(object: usize) {
    say(SyncOp::Send, object);
}

/// What was sent is known. Called after what had to wait for it.
pub fn receive(object: usize) {
    say(SyncOp::Receive, object);
}

fn say(op: SyncOp, object: usize) {
    if let (true, Some(thread)) = (on(), thread::observed()) {
        observe::sync(thread, thread.caller_pc(), op, object, 0);
    }
}
