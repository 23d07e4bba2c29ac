//! Memory that the program maps and unmaps itself: what was done there before is over.

use crate::{detect, export_with_pc, real, thread};
use core::ffi::c_long;

fn call(number: c_long, arguments: [usize; 6]) -> Result<usize, i32> {
    // SAFETY: as the program asks.
    let result = unsafe { real::syscall(number, arguments) };
    if (-4095..0).contains(&result) { Err(-result as i32) } else { Ok(result as usize) }
}

fn answer(result: Result<usize, i32>) -> usize {
    result.unwrap_or_else(|error| {
        real::set_errno(error);
        usize::MAX
    })
}

fn forget(address: usize, bytes: usize) {
    if detect::on() && thread::current().is_observed() {
        detect::unmapped(address, bytes);
    }
}

extern "C" fn map(at: usize, bytes: usize, prot: usize, flags: usize, fd: usize, offset: usize) -> usize {
    let result = call(libc::SYS_mmap, [at, bytes, prot, flags, fd, offset]);
    // Places were forgotten when they were unmapped, but not all unmapping is seen.
    if let Ok(address) = result {
        forget(address, bytes);
    }
    answer(result)
}

extern "C" fn unmap(address: usize, bytes: usize) -> usize {
    // Before the call: afterwards another thread may have got the place.
    forget(address, bytes);
    answer(call(libc::SYS_munmap, [address, bytes, 0, 0, 0, 0]))
}

extern "C" fn remap(old: usize, old_bytes: usize, bytes: usize, flags: usize, new: usize) -> usize {
    let result = call(libc::SYS_mremap, [old, old_bytes, bytes, flags, new, 0]);
    if let Ok(address) = result
        && address != old
    {
        forget(old, old_bytes);
        forget(address, bytes);
    }
    answer(result)
}

export_with_pc! {
    mmap => map;
    mmap64 => map;
    munmap => unmap;
    mremap => remap;
}
