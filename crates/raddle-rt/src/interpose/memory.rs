//! Memory and string functions: gcc calls them without an instrumentation hook, and their accesses are the program's.
//!
//! What is reported is what the function is known to touch: for functions that stop at a terminator or at a
//! difference, the bytes up to there.
//!
//! Functions that the compiler calls by itself are exported under another name here, and renamed when the runtime's object
//! is made: see [`crate::own_memory`].

use crate::thread;
use crate::{arch, export_with_pc, observe, own_memory, run};
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::record::access::{LIBRARY, WRITE};

/// A C function that may be needed while it is being looked up.
struct Early {
    name: &'static core::ffi::CStr,
    address: AtomicUsize,
}

const LOOKING: usize = 1;

impl Early {
    const fn new(name: &'static core::ffi::CStr) -> Early {
        Early { name, address: AtomicUsize::new(0) }
    }

    /// None while the look-up is under way: the loader itself may call the function.
    #[inline]
    fn get(&self) -> Option<usize> {
        match self.address.load(Ordering::Acquire) {
            0 => self.look_up(),
            LOOKING => None,
            address => Some(address),
        }
    }

    #[cold]
    fn look_up(&self) -> Option<usize> {
        self.address.store(LOOKING, Ordering::Release);
        // SAFETY: the name is a C string.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.address.store(address, Ordering::Release);
        if address == 0 { None } else { Some(address) }
    }
}

static MEMMOVE: Early = Early::new(c"memmove");
static MEMSET: Early = Early::new(c"memset");

/// # Safety
/// As C's memmove.
#[inline]
pub unsafe fn real_memmove(dst: *mut u8, src: *const u8, bytes: usize) {
    if let Some(address) = MEMMOVE.get() {
        // SAFETY: the address is memmove's.
        let function = unsafe {
            core::mem::transmute::<usize, unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8>(address)
        };
        // SAFETY: by contract.
        unsafe { function(dst, src, bytes) };
    } else {
        // SAFETY: by contract.
        unsafe { own_memory::raddle_own_memmove(dst, src, bytes) };
    }
}

/// # Safety
/// As C's memset.
#[inline]
pub unsafe fn real_memset(dst: *mut u8, byte: c_int, bytes: usize) {
    if let Some(address) = MEMSET.get() {
        // SAFETY: the address is memset's.
        let function = unsafe {
            core::mem::transmute::<usize, unsafe extern "C" fn(*mut u8, c_int, usize) -> *mut u8>(address)
        };
        // SAFETY: by contract.
        unsafe { function(dst, byte, bytes) };
    } else {
        // SAFETY: by contract.
        unsafe { arch::fill(dst, byte as u8, bytes) };
    }
}

#[inline]
fn touch(address: usize, bytes: usize, aux: u8) {
    let thread = thread::current();
    if thread.access.are_enabled() && !thread.is_busy() && run::instrumented() {
        let pc = thread.caller_pc();
        observe::range(thread, pc, aux | LIBRARY, address, bytes);
    }
}

extern "C" fn do_memcpy(dst: *mut u8, src: *const u8, bytes: usize) -> *mut u8 {
    if run::instrumented() {
        touch(src as usize, bytes, 0);
        touch(dst as usize, bytes, WRITE);
    }
    // SAFETY: as the program asks.
    unsafe { real_memmove(dst, src, bytes) };
    dst
}

extern "C" fn do_memset(dst: *mut u8, byte: c_int, bytes: usize) -> *mut u8 {
    touch(dst as usize, bytes, WRITE);
    // SAFETY: as the program asks.
    unsafe { real_memset(dst, byte, bytes) };
    dst
}

export_with_pc! {
    raddle_export_memcpy => do_memcpy;
    raddle_export_memmove => do_memcpy;
    raddle_export_memset => do_memset;
}

mod c {
    use super::*;
    crate::real_fn! {
        fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> c_int;
        fn memchr(s: *const u8, byte: c_int, bytes: usize) -> *const u8;
        fn strlen(s: *const c_char) -> usize;
        fn strnlen(s: *const c_char, max: usize) -> usize;
        fn strcpy(dst: *mut c_char, src: *const c_char) -> *mut c_char;
        fn strncpy(dst: *mut c_char, src: *const c_char, max: usize) -> *mut c_char;
        fn strcat(dst: *mut c_char, src: *const c_char) -> *mut c_char;
        fn strncat(dst: *mut c_char, src: *const c_char, max: usize) -> *mut c_char;
        fn strcmp(a: *const c_char, b: *const c_char) -> c_int;
        fn strncmp(a: *const c_char, b: *const c_char, max: usize) -> c_int;
        fn strchr(s: *const c_char, byte: c_int) -> *mut c_char;
        fn strrchr(s: *const c_char, byte: c_int) -> *mut c_char;
        fn strstr(s: *const c_char, part: *const c_char) -> *mut c_char;
        fn strdup(s: *const c_char) -> *mut c_char;
    }
}

/// Length of a string without a hook.
fn length(s: *const c_char) -> usize {
    let mut at = 0;
    // SAFETY: the program passes a C string.
    while unsafe { s.add(at).read_volatile() } != 0 {
        at += 1;
    }
    at
}

fn length_up_to(s: *const c_char, max: usize) -> usize {
    let mut at = 0;
    // SAFETY: the program passes a C string or at least `max` bytes.
    while at < max && unsafe { s.add(at).read_volatile() } != 0 {
        at += 1;
    }
    at
}

fn watching() -> bool {
    let thread = thread::current();
    thread.access.are_enabled() && !thread.is_busy() && run::instrumented()
}

/// How many bytes two strings are compared over, terminator or first difference included.
fn compared(a: *const c_char, b: *const c_char, max: usize) -> usize {
    let mut at = 0;
    while at < max {
        // SAFETY: the program passes C strings.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        at += 1;
        if x != y || x == 0 {
            break;
        }
    }
    at
}

extern "C" fn do_memcmp(a: *const u8, b: *const u8, bytes: usize) -> c_int {
    touch(a as usize, bytes, 0);
    touch(b as usize, bytes, 0);
    // SAFETY: as the program asks (here and below).
    unsafe { c::memcmp(a, b, bytes) }
}

extern "C" fn do_memchr(s: *const u8, byte: c_int, bytes: usize) -> *const u8 {
    // SAFETY: as the program asks.
    let found = unsafe { c::memchr(s, byte, bytes) };
    let read = if found.is_null() { bytes } else { found as usize - s as usize + 1 };
    touch(s as usize, read, 0);
    found
}

extern "C" fn do_strlen(s: *const c_char) -> usize {
    // SAFETY: as the program asks.
    let found = unsafe { c::strlen(s) };
    touch(s as usize, found + 1, 0);
    found
}

extern "C" fn do_strnlen(s: *const c_char, max: usize) -> usize {
    // SAFETY: as the program asks.
    let found = unsafe { c::strnlen(s, max) };
    touch(s as usize, max.min(found + 1), 0);
    found
}

extern "C" fn do_strcpy(dst: *mut c_char, src: *const c_char) -> *mut c_char {
    if watching() {
        let bytes = length(src) + 1;
        touch(src as usize, bytes, 0);
        touch(dst as usize, bytes, WRITE);
    }
    // SAFETY: as the program asks.
    unsafe { c::strcpy(dst, src) }
}

extern "C" fn do_strncpy(dst: *mut c_char, src: *const c_char, max: usize) -> *mut c_char {
    if watching() {
        touch(src as usize, max.min(length_up_to(src, max) + 1), 0);
        touch(dst as usize, max, WRITE);
    }
    // SAFETY: as the program asks.
    unsafe { c::strncpy(dst, src, max) }
}

fn appended(dst: *mut c_char, src: *const c_char, max: usize) {
    if watching() {
        let (old, new) = (length(dst), length_up_to(src, max));
        touch(src as usize, max.min(new + 1), 0);
        touch(dst as usize, old + 1, 0);
        touch(dst as usize + old, new + 1, WRITE);
    }
}

extern "C" fn do_strcat(dst: *mut c_char, src: *const c_char) -> *mut c_char {
    appended(dst, src, usize::MAX);
    // SAFETY: as the program asks.
    unsafe { c::strcat(dst, src) }
}

extern "C" fn do_strncat(dst: *mut c_char, src: *const c_char, max: usize) -> *mut c_char {
    appended(dst, src, max);
    // SAFETY: as the program asks.
    unsafe { c::strncat(dst, src, max) }
}

extern "C" fn do_strcmp(a: *const c_char, b: *const c_char) -> c_int {
    if watching() {
        let bytes = compared(a, b, usize::MAX);
        touch(a as usize, bytes, 0);
        touch(b as usize, bytes, 0);
    }
    // SAFETY: as the program asks.
    unsafe { c::strcmp(a, b) }
}

extern "C" fn do_strncmp(a: *const c_char, b: *const c_char, max: usize) -> c_int {
    if watching() {
        let bytes = compared(a, b, max);
        touch(a as usize, bytes, 0);
        touch(b as usize, bytes, 0);
    }
    // SAFETY: as the program asks.
    unsafe { c::strncmp(a, b, max) }
}

extern "C" fn do_strchr(s: *const c_char, byte: c_int) -> *mut c_char {
    // SAFETY: as the program asks.
    let found = unsafe { c::strchr(s, byte) };
    if watching() {
        let read = if found.is_null() { length(s) + 1 } else { found as usize - s as usize + 1 };
        touch(s as usize, read, 0);
    }
    found
}

extern "C" fn do_strrchr(s: *const c_char, byte: c_int) -> *mut c_char {
    if watching() {
        touch(s as usize, length(s) + 1, 0);
    }
    // SAFETY: as the program asks.
    unsafe { c::strrchr(s, byte) }
}

extern "C" fn do_strstr(s: *const c_char, part: *const c_char) -> *mut c_char {
    if watching() {
        touch(s as usize, length(s) + 1, 0);
        touch(part as usize, length(part) + 1, 0);
    }
    // SAFETY: as the program asks.
    unsafe { c::strstr(s, part) }
}

extern "C" fn do_strdup(s: *const c_char) -> *mut c_char {
    if watching() {
        touch(s as usize, length(s) + 1, 0);
    }
    // SAFETY: as the program asks.
    unsafe { c::strdup(s) }
}

export_with_pc! {
    raddle_export_memcmp => do_memcmp;
    raddle_export_bcmp => do_memcmp;
    memchr => do_memchr;
    raddle_export_strlen => do_strlen;
    strnlen => do_strnlen;
    strcpy => do_strcpy;
    strncpy => do_strncpy;
    strcat => do_strcat;
    strncat => do_strncat;
    strcmp => do_strcmp;
    strncmp => do_strncmp;
    strchr => do_strchr;
    strrchr => do_strrchr;
    strstr => do_strstr;
    strdup => do_strdup;
}
