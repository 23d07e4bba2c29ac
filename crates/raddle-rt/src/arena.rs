//! The runtime's own memory: anonymous mappings, never the program's allocator.
//!
//! # Sparse tables
//!
//! Shadow cells and the index of synchronisation objects are tables whose places are computed from addresses. They span more
//! memory than any machine has, and only the pages that are touched exist. Where the system promises no more memory than
//! it has (`vm.overcommit_memory=2`), it refuses such a mapping, even without reservation. A file in memory is charged page
//! by page as it grows, so there the tables are mapped from one. Two things are then different: pages are given back by
//! punching holes, and a forked process shares them, so that one which goes on observing must have new ones.

use crate::real;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tables that are mapped from a file in memory: start and bytes. Written before there is a second thread.
static SHARED: [(AtomicUsize, AtomicUsize); SHARED_MAX] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; SHARED_MAX];
const SHARED_MAX: usize = 4;

/// Map all sparse tables from files, even where it is not needed.
static ALWAYS_SHARED: AtomicBool = AtomicBool::new(false);

pub fn share_tables() {
    ALWAYS_SHARED.store(true, Ordering::Relaxed);
}

/// Are there tables that a forked process would share?
pub fn shares_tables() -> bool {
    shared().next().is_some()
}

fn shared() -> impl Iterator<Item = (usize, usize)> {
    let read = |(start, bytes): &(AtomicUsize, AtomicUsize)| {
        (start.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    };
    SHARED.iter().map(read).filter(|&(start, _)| start != 0)
}

/// Maps a sparse table: at `place`, if there is one and it is free, or anywhere.
pub fn map_sparse(place: Option<usize>, bytes: usize) -> Option<*mut u8> {
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    if !ALWAYS_SHARED.load(Ordering::Relaxed) {
        let at = |place| map_at(place, bytes, private | libc::MAP_FIXED_NOREPLACE, usize::MAX);
        if let Some(start) = place.and_then(at).or_else(|| map_with(bytes, private)) {
            return Some(start);
        }
    }
    let entry = SHARED.iter().find(|entry| entry.0.load(Ordering::Relaxed) == 0)?;
    let at = |place| map_file(place, bytes, libc::MAP_FIXED_NOREPLACE);
    let start = place.and_then(at).or_else(|| map_file(ANYWHERE, bytes, 0))?;
    entry.1.store(bytes, Ordering::Relaxed);
    entry.0.store(start as usize, Ordering::Relaxed);
    Some(start)
}

fn map_file(place: usize, bytes: usize, flags: i32) -> Option<*mut u8> {
    // SAFETY: the name is terminated; the descriptor is ours and closed again, the mapping keeps the file.
    unsafe {
        let name = c"raddle".as_ptr() as usize;
        let file = real::syscall(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0]);
        let descriptor = usize::try_from(file).ok()?;
        let start = match real::syscall(libc::SYS_ftruncate, [descriptor, bytes, 0, 0, 0, 0]) {
            0 => map_at(place, bytes, libc::MAP_SHARED | libc::MAP_NORESERVE | flags, descriptor),
            _ => None,
        };
        real::syscall(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]);
        start
    }
}

/// The place of what may stand anywhere.
const ANYWHERE: usize = 0;

/// Maps memory at a place; `None` if it came to stand elsewhere or nowhere.
fn map_at(place: usize, bytes: usize, flags: i32, descriptor: usize) -> Option<*mut u8> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: either anywhere, or where nothing is (MAP_FIXED_NOREPLACE), or over a mapping of ours (`renew`).
    let result =
        unsafe { real::syscall(libc::SYS_mmap, [place, bytes, prot, flags as usize, descriptor, 0]) };
    let start = usize::try_from(result).ok()?;
    if place != ANYWHERE && start != place {
        // SAFETY: just mapped, by an old kernel that takes the place for a hint.
        unsafe { unmap(start as *mut u8, bytes) };
        return None;
    }
    Some(start as *mut u8)
}

/// Gives pages of a sparse table back: they read as zero afterwards.
pub fn empty(start: usize, bytes: usize) {
    let is_shared = shared().any(|(from, length)| (from..from + length).contains(&start));
    let advice = if is_shared { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
    // SAFETY: the range is ours.
    unsafe { real::syscall(libc::SYS_madvise, [start, bytes, advice as usize, 0, 0, 0]) };
}

/// In a forked process that is going to be observed: tables of its own, empty. False when the system refuses.
pub fn renew() -> bool {
    shared().all(|(start, bytes)| map_file(start, bytes, libc::MAP_FIXED).is_some())
}

/// Maps `bytes` of zeroed memory, or `None` when the system refuses.
pub fn map(bytes: usize) -> Option<*mut u8> {
    map_with(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE)
}

pub fn map_with(bytes: usize, flags: i32) -> Option<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice disturbs nothing.
    let result =
        unsafe { real::syscall(libc::SYS_mmap, [0, bytes, prot as usize, flags as usize, usize::MAX, 0]) };
    if (-4095..0).contains(&result) { None } else { Some(result as *mut u8) }
}

/// # Safety
/// The range was obtained from [`map`] and nobody uses it any more.
pub unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: by contract.
    unsafe { real::syscall(libc::SYS_munmap, [start as usize, bytes, 0, 0, 0, 0]) };
}
