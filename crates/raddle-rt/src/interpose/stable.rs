//! Memory at addresses that depend on nothing but the program's own order of allocations.
//!
//! A program that iterates over a set of pointers does so in the order of their values. Even without address space
//! randomisation these depend on timing, because threads share the C library's arenas. Here every thread has a range of
//! addresses of its own, found by its number (the 257th thread shares one with the first), and takes blocks from it in its own order: where the n-th block of a
//! thread lies depends on the sizes that this thread has asked for and given back before, and on no other thread. A
//! block that a thread frees becomes its own, whoever allocated it: giving it back to its allocator would make that
//! thread's next address depend on when it was given back.
//!
//! Blocks are powers of two (from 16 bytes) with 16 bytes before them that hold their size. Memory is not returned to
//! the system while the program runs; that is the price.

use crate::{real, thread};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

/// Between where programs and libraries lie without randomisation; the shadow cells end below.
const BASE: usize = 0x6000_0000_0000;
const RANGE_BITS: u32 = 36;
const RANGES: usize = 256;
const HEAD_BYTES: usize = 16;
const CLASSES: usize = 36;

static ON: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn start() {
    ON.store(true, Ordering::Relaxed);
}

#[inline]
pub fn owns(memory: *mut c_void) -> bool {
    // Other memory may lie there when the range is not in use.
    on() && (BASE..BASE + (RANGES << RANGE_BITS)).contains(&(memory as usize))
}

/// The beginning of each range: where the next new block lies, and the free blocks of each size.
struct Range {
    next: usize,
    free: [usize; CLASSES],
    lock: core::sync::atomic::AtomicU32,
}

/// The calling thread's range. Threads beyond the last range, and those that the runtime does not know, share range 0
/// with the main thread.
fn range() -> Option<&'static mut Range> {
    let thread = thread::current();
    let index = if thread.is_observed() { thread.index() as usize % RANGES } else { 0 };
    let start = BASE + (index << RANGE_BITS);
    static MAPPED: [AtomicBool; RANGES] = [const { AtomicBool::new(false) }; RANGES];
    if !MAPPED[index].swap(true, Ordering::AcqRel) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let bytes = 1usize << RANGE_BITS;
        // SAFETY: MAP_FIXED_NOREPLACE disturbs no existing mapping.
        let at = unsafe {
            real::syscall(libc::SYS_mmap, [start, bytes, prot as usize, flags as usize, usize::MAX, 0])
        };
        if at != start as isize {
            crate::message::fatal(format_args!(
                "memory at fixed addresses is not to be had ({start:#x} is taken); leave out --stable-memory"
            ));
        }
        // SAFETY: the range is ours, zeroed, and nobody knows it yet.
        unsafe { (*(start as *mut Range)).next = start + size_of::<Range>().next_multiple_of(64) };
    }
    // SAFETY: mapped above, by this thread or before this thread got its number; shared ranges are locked.
    Some(unsafe { &mut *(start as *mut Range) })
}

fn class_of(bytes: usize) -> usize {
    bytes.max(16).next_power_of_two().trailing_zeros() as usize
}

pub fn allocate(bytes: usize, align: usize) -> *mut c_void {
    // A block of its own power of two is as aligned as 16 bytes; more alignment takes a larger one.
    let wanted = if align > HEAD_BYTES { bytes.saturating_add(align) } else { bytes };
    let class = class_of(wanted);
    if class >= CLASSES || wanted >= 1 << (RANGE_BITS - 1) {
        real::set_errno(libc::ENOMEM);
        return core::ptr::null_mut();
    }
    let Some(range) = range() else { return core::ptr::null_mut() };
    crate::spin::lock_word(&range.lock);
    let block = match range.free[class] {
        0 => {
            let block = range.next + HEAD_BYTES;
            range.next = block + (1 << class);
            block
        }
        block => {
            // SAFETY: a free block holds the address of the next one.
            range.free[class] = unsafe { *(block as *const usize) };
            block
        }
    };
    crate::spin::unlock_word(&range.lock);
    let memory = block.next_multiple_of(align.max(HEAD_BYTES));
    // SAFETY: the head lies before the block, or in the block before an aligned piece of it.
    unsafe {
        *((memory - HEAD_BYTES) as *mut usize) = class;
        *((memory - HEAD_BYTES + 8) as *mut usize) = block;
    }
    memory as *mut c_void
}

fn head(memory: *mut c_void) -> (usize, usize) {
    let at = memory as usize - HEAD_BYTES;
    // SAFETY: `owns` said that the block is ours, so it has a head.
    unsafe { (*(at as *const usize), *((at + 8) as *const usize)) }
}

/// Bytes that the program may use.
pub fn size(memory: *mut c_void) -> usize {
    let (class, block) = head(memory);
    block + (1usize << (class % CLASSES)) - memory as usize
}

pub fn free(memory: *mut c_void) {
    let (class, block) = head(memory);
    let Some(range) = range() else { return };
    if class >= CLASSES || !owns(block as *mut c_void) {
        return;
    }
    crate::spin::lock_word(&range.lock);
    // SAFETY: the block is free now, and large enough for an address.
    unsafe { *(block as *mut usize) = range.free[class] };
    range.free[class] = block;
    crate::spin::unlock_word(&range.lock);
}

pub fn resize(old: *mut c_void, bytes: usize) -> *mut c_void {
    if old.is_null() {
        return allocate(bytes, HEAD_BYTES);
    }
    let room = size(old);
    if bytes <= room && bytes > room / 4 {
        return old;
    }
    let new = allocate(bytes, HEAD_BYTES);
    if !new.is_null() {
        // SAFETY: both are valid for the smaller of the two sizes, and different blocks.
        unsafe { crate::arch::copy_forward(new.cast(), old.cast_const().cast(), room.min(bytes)) };
        free(old);
    }
    new
}

const _: () = assert!(
    size_of::<Range>() < 4096 && CLASSES <= RANGE_BITS as usize && BASE.is_multiple_of(1 << RANGE_BITS)
);
