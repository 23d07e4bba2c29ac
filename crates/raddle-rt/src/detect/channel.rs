//! Pipes, sockets and event counters: what is read was written before.
//!
//! A read from a pipe returns after the write that it reads from, so the writer's past happens before what the reader does
//! next. The kernel keeps this order; here it becomes one of the clocks: who writes releases to the channel, who has
//! read acquires from it.
//!
//! A channel is named by what the kernel says about the descriptor, not by the descriptor, so that duplicates and reused
//! numbers are no matter. Both ends of a pipe are one file to the kernel. The two ends of a connection are not, nor are
//! event counters files of their own, so all sockets are one channel, and all event counters and epoll descriptors
//! another (ThreadSanitizer does the same for sockets). That orders more than there is: it can hide a race, never make
//! one up. Regular files and terminals order nothing.

use super::{acquire, on, release};
use crate::real;
use crate::thread::{self, Busy};
use core::ffi::c_long;

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
const PIPES_FIRST: usize = 3;
const PIPES: usize = 8192 - PIPES_FIRST;

/// The object that stands for a descriptor's channel.
fn object(fd: usize) -> Option<usize> {
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
        // Two pipes whose numbers fall together are one channel.
        libc::S_IFIFO => {
            let number = PIPES_FIRST + (about.st_ino ^ about.st_dev) as usize % PIPES;
            Some(CHANNELS + number * 8)
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
        pass(fd, release);
    }
}

/// A call on a descriptor has been made.
#[inline]
pub fn after(flow: Flow, fd: usize, result: isize) {
    if flow == Flow::In && result >= 0 && on() {
        pass(fd, acquire);
    }
}

fn pass(fd: usize, how: fn(&mut thread::Thread, usize)) {
    let thread = thread::current();
    if thread.observed
        && let Some(object) = object(fd)
    {
        let _busy = Busy::enter(thread);
        how(thread, object);
    }
}
