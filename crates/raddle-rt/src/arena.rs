//! The runtime's own memory: anonymous mappings, never the program's allocator.

use crate::real;

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
