//! The allocator: a piece of memory begins and ends its life. The work is glibc's, also where the program brings another allocator
//! along: the runtime's functions come first, so that the other one is never asked.

use super::stable;
use crate::thread::{self, Thread};
use crate::{detect, export_with_pc, observe, real};
use core::ffi::{c_int, c_void};

fn allocated(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if !memory.is_null() {
        match thread::observed() {
            Some(thread) => {
                let pc = thread.caller_pc();
                super::signal::not_in_handler(thread, pc);
                observe::alloc(thread, pc, memory as usize, bytes);
            }
            // Nobody has asked, but what was there is over.
            None => observe::anew(memory as usize, bytes),
        }
    }
    memory
}

fn released(thread: Option<&Thread>, memory: *mut c_void) {
    if let Some(thread) = thread
        && !memory.is_null()
    {
        let pc = thread.caller_pc();
        super::signal::not_in_handler(thread, pc);
        observe::free(thread, pc, memory as usize);
    }
}

extern "C" fn do_malloc(bytes: usize) -> *mut c_void {
    if stable::on() {
        return allocated(stable::allocate(bytes, 16), bytes);
    }
    // SAFETY: as the program asks (here and below).
    allocated(unsafe { real::__libc_malloc(bytes) }, bytes)
}

extern "C" fn do_calloc(count: usize, bytes: usize) -> *mut c_void {
    if stable::on() {
        let Some(total) = count.checked_mul(bytes) else { return core::ptr::null_mut() };
        let memory = stable::allocate(total, 16);
        if !memory.is_null() {
            // SAFETY: just allocated with this size; a used block is not zero.
            unsafe { crate::arch::fill(memory.cast(), 0, total) };
        }
        return allocated(memory, total);
    }
    // SAFETY: as the program asks.
    allocated(unsafe { real::__libc_calloc(count, bytes) }, count.wrapping_mul(bytes))
}

extern "C" fn do_realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    released(thread::observed(), old);
    if stable::owns(old) || (old.is_null() && stable::on()) {
        return allocated(stable::resize(old, bytes), bytes);
    }
    // SAFETY: as the program asks.
    let new = unsafe { real::__libc_realloc(old, bytes) };
    if new.is_null() && bytes != 0 && !old.is_null() {
        // It was not released after all.
        // SAFETY: the block is still the program's.
        observe::anew(old as usize, unsafe { real::malloc_usable_size(old) });
    }
    allocated(new, bytes)
}

extern "C" fn do_reallocarray(old: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(total) => do_realloc(old, total),
        None => {
            real::set_errno(libc::ENOMEM);
            core::ptr::null_mut()
        }
    }
}

extern "C" fn do_free(memory: *mut c_void) {
    let thread = thread::observed();
    released(thread, memory);
    if stable::owns(memory) {
        return stable::free(memory);
    }
    let memory = match thread {
        Some(thread) if detect::on() => detect::quarantine(thread, memory as usize) as *mut c_void,
        _ => memory,
    };
    // SAFETY: as the program asks, this time or before.
    unsafe { real::__libc_free(memory) }
}

extern "C" fn do_memalign(align: usize, bytes: usize) -> *mut c_void {
    if stable::on() && align.is_power_of_two() {
        return allocated(stable::allocate(bytes, align), bytes);
    }
    // SAFETY: as the program asks.
    allocated(unsafe { real::__libc_memalign(align, bytes) }, bytes)
}

extern "C" fn do_usable_size(memory: *mut c_void) -> usize {
    if stable::owns(memory) {
        return stable::size(memory);
    }
    // SAFETY: as the program asks.
    unsafe { real::malloc_usable_size(memory) }
}

const PAGE_BYTES: usize = 4096;

extern "C" fn do_valloc(bytes: usize) -> *mut c_void {
    do_memalign(PAGE_BYTES, bytes)
}

extern "C" fn do_pvalloc(bytes: usize) -> *mut c_void {
    do_memalign(PAGE_BYTES, bytes.next_multiple_of(PAGE_BYTES))
}

extern "C" fn do_posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let memory = do_memalign(align, bytes);
    if memory.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the program passes a valid pointer.
    unsafe { *out = memory };
    0
}

/// Has glibc's allocator get its first memory from the system: a fork server does this once instead of every run.
pub fn rehearse() {
    const BYTES: usize = 2_000;
    // SAFETY: allocated and released at once. It is larger than what threads keep for themselves, so it goes back where it was.
    unsafe { real::__libc_free(real::__libc_malloc(BYTES)) };
}

export_with_pc! {
    malloc => do_malloc;
    malloc_usable_size => do_usable_size;
    calloc => do_calloc;
    realloc => do_realloc;
    reallocarray => do_reallocarray;
    free => do_free;
    memalign => do_memalign;
    aligned_alloc => do_memalign;
    valloc => do_valloc;
    pvalloc => do_pvalloc;
    posix_memalign => do_posix_memalign;
}
