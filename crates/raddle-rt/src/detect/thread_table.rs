//! The table of threads, for reports: their parents, names, and where they were created.
//!
//! Kept by thread number in a table of fixed size, so that it can be told of threads that have ended; of very many
//! threads only the last ones are known.

use super::locks::frames;
use crate::arena;
use crate::thread::Thread;
use core::sync::atomic::{AtomicUsize, Ordering};

pub const CREATED_FRAMES: usize = 12;
const THREADS_KEPT: usize = 1 << 12;
const NAME_BYTES: usize = 16;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ThreadInfo {
    /// One more than the thread's number.
    number: u32,
    pub parent: u32,
    /// It is its parent's n-th child, from 1.
    pub ordinal: u32,
    pub name: [u8; NAME_BYTES],
    pub frames: [u64; CREATED_FRAMES],
}

static TABLE: AtomicUsize = AtomicUsize::new(0);

pub fn reserve() -> bool {
    match arena::map(THREADS_KEPT * size_of::<ThreadInfo>()) {
        Some(start) => {
            TABLE.store(start as usize, Ordering::Release);
            true
        }
        None => false,
    }
}

fn entry(index: u32) -> *mut ThreadInfo {
    (TABLE.load(Ordering::Relaxed) + (index as usize % THREADS_KEPT) * size_of::<ThreadInfo>())
        as *mut ThreadInfo
}

pub fn created(parent: &Thread, child: u32, ordinal: u32, pc: u64) {
    if TABLE.load(Ordering::Relaxed) == 0 {
        return;
    }
    let info = ThreadInfo {
        number: child + 1,
        parent: parent.index(),
        ordinal,
        name: [0; NAME_BYTES],
        frames: frames(parent, pc),
    };
    // SAFETY: inside the table; plain data.
    unsafe { entry(child).write_volatile(info) };
}

pub fn named(index: u32, name: &[u8]) {
    if let Some(mut info) = find(index) {
        info.name = [0; NAME_BYTES];
        let used = name.len().min(NAME_BYTES);
        info.name[..used].copy_from_slice(&name[..used]);
        // SAFETY: inside the table; plain data.
        unsafe { entry(index).write_volatile(info) };
    }
}

pub fn find(index: u32) -> Option<ThreadInfo> {
    if TABLE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // SAFETY: inside the table; plain data.
    let info = unsafe { entry(index).read_volatile() };
    (info.number == index + 1).then_some(info)
}
