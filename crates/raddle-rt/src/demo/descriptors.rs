//! Which descriptors lead outside.
//!
//! What is read from a regular file is the same in a replay, so it is not recorded. Pipes, socket pairs and event counters
//! that the program made itself only carry what the program put into them: reading from and writing to them is
//! *ordered*, and really done in a replay too. Everything else (sockets, terminals, devices, pipes that were there at
//! the start) leads outside. After a fork a pipe may lead to another process, so it counts as outside from then on.

use crate::real;
use core::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leads {
    /// Nowhere that matters: a regular file.
    Nowhere,
    /// Back into the program.
    Inside,
    Outside,
}

const UNKNOWN: u8 = 0;
const NOWHERE: u8 = 1;
const INSIDE: u8 = 2;
const OUTSIDE: u8 = 3;

/// All pipes of the program share one name: who waits for one tries again when something happens to any.
pub const PIPES: usize = 1 << 62;

const DESCRIPTORS_MAX: usize = 1 << 16;
static KINDS: [AtomicU8; DESCRIPTORS_MAX] = [const { AtomicU8::new(UNKNOWN) }; DESCRIPTORS_MAX];

fn cell(fd: i32) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd))
}

/// Standard output and error are what a replay is compared by: they are always the program's own.
pub fn leads(fd: i32) -> Leads {
    if fd == 1 || fd == 2 {
        return Leads::Nowhere;
    }
    let Some(cell) = cell(fd) else { return Leads::Nowhere };
    let mut kind = cell.load(Ordering::Relaxed);
    if kind == UNKNOWN {
        kind = look(fd);
        if kind != UNKNOWN {
            cell.store(kind, Ordering::Relaxed);
        }
    }
    match kind {
        INSIDE => Leads::Inside,
        OUTSIDE => Leads::Outside,
        _ => Leads::Nowhere,
    }
}

fn look(fd: i32) -> u8 {
    // SAFETY: plain data; the structure is valid for the call.
    let mode = unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        if real::syscall(libc::SYS_fstat, [fd as usize, &raw mut about as usize, 0, 0, 0, 0]) != 0 {
            return UNKNOWN;
        }
        about.st_mode & libc::S_IFMT
    };
    if mode == libc::S_IFREG || mode == libc::S_IFDIR || mode == libc::S_IFBLK { NOWHERE } else { OUTSIDE }
}

pub fn set(fd: i32, leads: Leads) {
    if let Some(cell) = cell(fd) {
        let kind = match leads {
            Leads::Nowhere => NOWHERE,
            Leads::Inside => INSIDE,
            Leads::Outside => OUTSIDE,
        };
        cell.store(kind, Ordering::Relaxed);
    }
}

pub fn closed(fd: i32) {
    if let Some(cell) = cell(fd) {
        cell.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// A descriptor is used in a way that is not seen: what it leads to may change at any time, whoever else leads there.
pub fn goes_unseen(fd: i32) {
    if leads(fd) == Leads::Inside {
        forked();
    }
}

/// Another process has copies of all descriptors now.
pub fn forked() {
    for cell in &KINDS {
        if cell.load(Ordering::Relaxed) == INSIDE {
            cell.store(OUTSIDE, Ordering::Relaxed);
        }
    }
}

pub fn closed_range(first: usize, last: usize) {
    let end = last.saturating_add(1).min(DESCRIPTORS_MAX);
    for cell in KINDS.get(first..end).unwrap_or(&[]) {
        cell.store(UNKNOWN, Ordering::Relaxed);
    }
}
