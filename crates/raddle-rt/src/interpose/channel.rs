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
//! one up. Terminals order nothing. What is read from a regular file may have been written by another thread, which may be how the reader
//! knows that it is there, so reading comes after writing; closing one matters only once the program locks files.

use crate::thread::{self, Thread};
use crate::{detect, observe, real, run};
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};
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
/// Names of files: that there is a file may say that something is done.
pub const NAMES: usize = CHANNELS | 24;
const NAMED_FIRST: usize = 4;
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
    Stream,
    Handler,
}

/// The channel of an object that the kernel knows by a number. Two whose numbers fall together are one channel.
pub fn named(kind: Kind, number: u64) -> usize {
    // Fibonacci hashing: neighbouring numbers of different kinds do not meet.
    let mixed = (number ^ (kind as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    CHANNELS + (NAMED_FIRST + mixed as usize % NAMED) * 8
}

pub(super) fn on() -> bool {
    detect::on() || run::recording()
}

fn about(fd: usize) -> Option<libc::stat> {
    // SAFETY: plain data; the structure is valid for the call.
    unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        let result = real::syscall(libc::SYS_fstat, [fd, &raw mut about as usize, 0, 0, 0, 0]);
        (result == 0).then_some(about)
    }
}

fn is_file(fd: usize) -> bool {
    about(fd).is_some_and(|about| about.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// The object that stands for a descriptor's channel.
pub fn object(fd: usize) -> Option<usize> {
    let about = about(fd)?;
    match about.st_mode & libc::S_IFMT {
        libc::S_IFSOCK => Some(SOCKETS),
        libc::S_IFIFO => Some(named(Kind::Pipe, about.st_ino ^ about.st_dev)),
        libc::S_IFREG => Some(named(Kind::File, about.st_ino ^ about.st_dev)),
        // Event counters and epoll descriptors have no type.
        0 => Some(COUNTERS),
        _ => None,
    }
}

/// What a signal's handler knows: who has installed it and who has sent the signal. The sender's own handlers order nothing.
pub fn of_signal(signal: c_int) -> usize {
    named(Kind::Handler, signal as u64)
}

/// What streams lead to, by descriptor: asking the kernel at each call would cost more than the call. 0: not known, 1: to nothing that
/// orders, else two more than the channel's number.
static LEADS: [AtomicU16; 1024] = [const { AtomicU16::new(0) }; 1024];

/// The channel of a stream's descriptor. Streams that lead to files are for what others read much later: they order nothing.
pub fn of_stream(fd: usize) -> Option<usize> {
    if !on() || thread::observed().is_none() {
        return None;
    }
    let known = LEADS.get(fd)?;
    let number = match known.load(Ordering::Relaxed) {
        0 => {
            let found =
                object(fd).filter(|_| !is_file(fd)).map_or(1, |object| ((object - CHANNELS) / 8 + 2) as u16);
            known.store(found, Ordering::Relaxed);
            found
        }
        number => number,
    };
    number.checked_sub(2).map(|number| CHANNELS + usize::from(number) * 8)
}

/// A descriptor is closed, or becomes another's duplicate.
pub fn forget(fd: usize) {
    if let Some(known) = LEADS.get(fd) {
        known.store(0, Ordering::Relaxed);
    }
}

/// Somebody waits for several descriptors at once, and is told of them by what the program likes: whatever is sent then concerns who waits.
static WATCHING: AtomicBool = AtomicBool::new(false);

pub fn note_watching() {
    WATCHING.store(true, Ordering::Relaxed);
}

/// A call on a descriptor is about to be made.
#[inline]
pub fn before(flow: Flow, fd: usize) {
    if flow == Flow::Out && on() {
        pass(fd, SyncOp::Send);
        if WATCHING.load(Ordering::Relaxed) {
            tell(thread::current(), SyncOp::Send, COUNTERS);
        }
    }
}

/// A call on a descriptor has been made.
#[inline]
pub fn after(flow: Flow, fd: usize, result: isize) {
    // The upper half of the register is not defined for those that return an `int`; nothing reads more than fits into one.
    if flow == Flow::In && result as i32 >= 0 && on() {
        pass(fd, SyncOp::Receive);
    }
}

/// In its turn a steered thread makes the program's call from inside the runtime; it is the program's call nevertheless.
fn pass(fd: usize, op: SyncOp) {
    let thread = thread::current();
    if thread.is_observed()
        && let Some(object) = object(fd)
    {
        tell(thread, op, object);
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
        tell(thread, op, object);
    }
}

fn tell(thread: &Thread, op: SyncOp, object: usize) {
    if thread.is_observed() {
        observe::sync(thread, thread.caller_pc(), op, object, 0);
    }
}
