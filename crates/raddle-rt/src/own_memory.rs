//! The runtime's own `memcpy` and its kin.
//!
//! The compiler turns copies of larger values into calls of `memcpy`, wherever it likes. If those went to the functions
//! that [`crate::interpose::memory`] puts before the program's, the runtime would observe itself: its own clocks would
//! race, and a signal that is delivered late would be copied, observed and delivered again for ever. So the runtime's object
//! is edited when it is built (`crates/raddle/build.rs`): what it calls `memcpy` becomes [`raddle_own_memcpy`], and
//! what it exports as `raddle_export_memcpy` becomes `memcpy`. The list of names is there.

use crate::arch;
use core::ffi::{c_char, c_int};

/// # Safety
/// As C's `memcpy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_own_memcpy(dst: *mut u8, src: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: by contract.
    unsafe { arch::copy_forward(dst, src, bytes) };
    dst
}

/// # Safety
/// As C's `memmove`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_own_memmove(dst: *mut u8, src: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: by contract; the order of copying suits the positions. Volatile, or the loop would become a call of
    // this function.
    unsafe {
        if (dst as usize) <= src as usize || dst as usize >= src as usize + bytes {
            arch::copy_forward(dst, src, bytes);
        } else {
            for at in (0..bytes).rev() {
                dst.add(at).write_volatile(src.add(at).read_volatile());
            }
        }
    }
    dst
}

/// # Safety
/// As C's `memset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_own_memset(dst: *mut u8, byte: c_int, bytes: usize) -> *mut u8 {
    // SAFETY: by contract.
    unsafe { arch::fill(dst, byte as u8, bytes) };
    dst
}

/// # Safety
/// As C's `memcmp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_own_memcmp(a: *const u8, b: *const u8, bytes: usize) -> c_int {
    for at in 0..bytes {
        // SAFETY: by contract.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if x != y {
            return c_int::from(x) - c_int::from(y);
        }
    }
    0
}

/// # Safety
/// As C's `bcmp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_own_bcmp(a: *const u8, b: *const u8, bytes: usize) -> c_int {
    // SAFETY: by contract.
    unsafe { raddle_own_memcmp(a, b, bytes) }
}

/// # Safety
/// As C's `strlen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_own_strlen(s: *const c_char) -> usize {
    let mut bytes = 0;
    // SAFETY: by contract.
    while unsafe { s.add(bytes).read_volatile() } != 0 {
        bytes += 1;
    }
    bytes
}
