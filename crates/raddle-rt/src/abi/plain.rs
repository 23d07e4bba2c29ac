//! Plain memory accesses, function entry and exit.

use crate::probe::globals;
use crate::thread::{self, Thread};
use crate::{access_hook, detect, export_with_pc, observe, wide_access_hook};
use raddle_wire::record::access::{COMPOUND, LIBRARY, SIZE_MASK, VOLATILE, VPTR, WRITE};

/// An access that the fast path could not settle.
pub extern "C" fn slow_access(address: usize, pc: u64, aux: u32) {
    let thread = thread::current();
    if !thread.is_busy() {
        if detect::alone() {
            return detect::cells::plain(thread, pc, aux as u8, address);
        }
        observed_access(thread, pc, aux as u8, address);
    }
}

/// An access to a variable that the user named is an event besides.
#[inline]
fn observed_access(thread: &Thread, pc: u64, aux: u8, address: usize) {
    let bytes = 1usize << (aux & SIZE_MASK);
    if !globals::concerns(address, bytes) {
        return observe::access(thread, pc, aux, address);
    }
    globals::before(thread, pc, address, bytes, aux & (WRITE | COMPOUND) != WRITE, aux & WRITE != 0);
    observe::access(thread, pc, aux, address);
    globals::after(thread);
}

/// The same for sixteen bytes.
pub extern "C" fn slow_wide_access(address: usize, pc: u64, aux: u32) {
    let thread = thread::current();
    if address & 7 == 0 && !thread.is_busy() && detect::alone() {
        return detect::cells::whole_pair(thread, pc, aux as u8, address);
    }
    slow_access(address, pc, aux)
}

macro_rules! hooks {
    (wide $($name:ident, $aux:expr;)*) => {$(
        wide_access_hook!($name, slow = slow_wide_access, read = ($aux & WRITE) == 0, aux = ($aux | 4) as u32);
    )*};
    // With the last place in a cell at which such an access stays inside it.
    (unaligned $($name:ident, $log2:expr, $last:literal, $aux:expr;)*) => {$(
        access_hook!(
            $name,
            slow = slow_access,
            mask = (1u32 << (1u32 << $log2)) - 1,
            read = ($aux & WRITE) == 0,
            aux = ($aux | $log2) as u32,
            last = $last
        );
    )*};
    ($($name:ident, $log2:expr, $aux:expr;)*) => {$(
        access_hook!(
            $name,
            slow = slow_access,
            mask = (1u32 << (1u32 << $log2)) - 1,
            read = ($aux & WRITE) == 0,
            aux = ($aux | $log2) as u32
        );
    )*};
}

hooks! {
    __tsan_read1, 0, 0;
    __tsan_read2, 1, 0;
    __tsan_read4, 2, 0;
    __tsan_read8, 3, 0;
    __tsan_write1, 0, WRITE;
    __tsan_write2, 1, WRITE;
    __tsan_write4, 2, WRITE;
    __tsan_write8, 3, WRITE;
    __tsan_volatile_read1, 0, VOLATILE;
    __tsan_volatile_read2, 1, VOLATILE;
    __tsan_volatile_read4, 2, VOLATILE;
    __tsan_volatile_read8, 3, VOLATILE;
    __tsan_volatile_write1, 0, WRITE | VOLATILE;
    __tsan_volatile_write2, 1, WRITE | VOLATILE;
    __tsan_volatile_write4, 2, WRITE | VOLATILE;
    __tsan_volatile_write8, 3, WRITE | VOLATILE;
    __tsan_read_write1, 0, WRITE | COMPOUND;
    __tsan_read_write2, 1, WRITE | COMPOUND;
    __tsan_read_write4, 2, WRITE | COMPOUND;
    __tsan_read_write8, 3, WRITE | COMPOUND;
    __tsan_vptr_read, 3, VPTR;
}

fn access(address: usize, aux: u8) {
    let thread = thread::current();
    if thread.access.are_enabled() && !thread.is_busy() {
        let pc = thread.caller_pc();
        observed_access(thread, pc, aux, address);
    }
}

fn range(address: usize, bytes: usize, aux: u8) {
    let thread = thread::current();
    if thread.access.are_enabled() && !thread.is_busy() {
        let pc = thread.caller_pc();
        if bytes == 0 || !globals::concerns(address, bytes) {
            return observe::range(thread, pc, aux, address, bytes);
        }
        globals::before(thread, pc, address, bytes, aux & WRITE == 0, aux & WRITE != 0);
        observe::range(thread, pc, aux, address, bytes);
        globals::after(thread);
    }
}

hooks! {
    wide
    __tsan_read16, 0;
    __tsan_write16, WRITE;
    __tsan_volatile_read16, VOLATILE;
    __tsan_volatile_write16, WRITE | VOLATILE;
    __tsan_read_write16, WRITE | COMPOUND;
    __tsan_unaligned_read16, 0;
    __tsan_unaligned_write16, WRITE;
    __tsan_unaligned_volatile_read16, VOLATILE;
    __tsan_unaligned_volatile_write16, WRITE | VOLATILE;
    __tsan_unaligned_read_write16, WRITE | COMPOUND;
}

hooks! {
    unaligned
    __tsan_unaligned_read2, 1, "6", 0;
    __tsan_unaligned_read4, 2, "4", 0;
    __tsan_unaligned_read8, 3, "0", 0;
    __tsan_unaligned_write2, 1, "6", WRITE;
    __tsan_unaligned_write4, 2, "4", WRITE;
    __tsan_unaligned_write8, 3, "0", WRITE;
    __tsan_unaligned_volatile_read2, 1, "6", VOLATILE;
    __tsan_unaligned_volatile_read4, 2, "4", VOLATILE;
    __tsan_unaligned_volatile_read8, 3, "0", VOLATILE;
    __tsan_unaligned_volatile_write2, 1, "6", WRITE | VOLATILE;
    __tsan_unaligned_volatile_write4, 2, "4", WRITE | VOLATILE;
    __tsan_unaligned_volatile_write8, 3, "0", WRITE | VOLATILE;
    __tsan_unaligned_read_write2, 1, "6", WRITE | COMPOUND;
    __tsan_unaligned_read_write4, 2, "4", WRITE | COMPOUND;
    __tsan_unaligned_read_write8, 3, "0", WRITE | COMPOUND;
}

extern "C" fn read_range(address: usize, bytes: usize) {
    range(address, bytes, 0);
}

extern "C" fn write_range(address: usize, bytes: usize) {
    range(address, bytes, WRITE);
}

/// A virtual table pointer is only written when it changes: constructors of derived classes store the same value again
/// in code that other threads may already read.
extern "C" fn vptr_update(address: usize, value: usize) {
    // SAFETY: the program is about to store to this address.
    if unsafe { *(address as *const usize) } != value {
        access(address, 3 | WRITE | VPTR);
    }
}

export_with_pc! {
    __tsan_read_range => read_range;
    __tsan_write_range => write_range;
    __tsan_vptr_update => vptr_update;
    __tsan_memcpy => memcpy;
    __tsan_memmove => memcpy;
    __tsan_memset => memset;
}

extern "C" fn memcpy(dst: *mut u8, src: *const u8, bytes: usize) -> *mut u8 {
    range(src as usize, bytes, LIBRARY);
    range(dst as usize, bytes, WRITE | LIBRARY);
    // SAFETY: as the program asks; memmove allows overlap.
    unsafe { crate::interpose::memory::real_memmove(dst, src, bytes) };
    dst
}

extern "C" fn memset(dst: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    range(dst as usize, bytes, WRITE | LIBRARY);
    // SAFETY: as the program asks.
    unsafe { crate::interpose::memory::real_memset(dst, byte, bytes) };
    dst
}

/// Notes where the return address of this call lies: those of the function's later calls will lie there too ([`crate::crash::stack`]).
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_func_entry(_pc: u64) {
    core::arch::naked_asm!("mov rsi, rsp", "jmp {target}", target = sym enter_function)
}

extern "C" fn enter_function(pc: u64, sp: u64) {
    thread::current().calls.enter(pc, sp);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_exit() {
    thread::current().calls.exit();
}
