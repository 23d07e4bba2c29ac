//! The functions behind the ones that the runtime stands in for, and raw system calls.
//!
//! Functions are looked up with `dlsym(RTLD_NEXT)` on first use. A look-up that succeeds allocates nothing (glibc 2.34 and newer), so
//! the allocator's own functions can be looked up in the first call of `malloc`.

use crate::arch;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A lazily resolved function of the C library.
pub struct Real {
    name: &'static CStr,
    version: Option<&'static CStr>,
    address: AtomicUsize,
}

impl Real {
    pub const fn new(name: &'static CStr) -> Real {
        Real { name, version: None, address: AtomicUsize::new(0) }
    }

    /// glibc has two generations of condition variables under one name; the old one must not be picked.
    pub const fn versioned(name: &'static CStr, version: &'static CStr) -> Real {
        Real { name, version: Some(version), address: AtomicUsize::new(0) }
    }

    /// The address, if it was looked up before.
    #[inline]
    fn known(&self) -> Option<usize> {
        Some(self.address.load(Ordering::Acquire)).filter(|&address| address != 0)
    }

    pub fn find(&self) -> Option<usize> {
        if let known @ Some(_) = self.known() {
            return known;
        }
        // SAFETY: the names are C strings.
        let mut address = unsafe {
            match self.version {
                Some(version) => libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()),
                None => libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()),
            }
        } as usize;
        if address == 0 && self.version.is_some() {
            // SAFETY: as above.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        }
        if address == 0 {
            return None;
        }
        self.address.store(address, Ordering::Release);
        Some(address)
    }

    #[inline]
    pub fn get(&self) -> usize {
        match self.find() {
            Some(address) => address,
            None => crate::message::fatal(format_args!(
                "the C library has no function {}; raddle needs glibc 2.34 or newer",
                self.name.to_str().unwrap_or("?")
            )),
        }
    }
}

/// Declares typed wrappers around real functions: `real_fn! { fn NAME(args) -> ret; }` makes `real::NAME(args)`.
#[macro_export]
macro_rules! real_fn {
    ($($(#[version = $version:literal])? fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {$(
        /// # Safety
        /// As the C function of this name.
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            #[allow(unused_mut, unused_assignments)]
            const fn real() -> $crate::real::Real {
                let name = match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("function names have no inner NUL"),
                };
                let mut real = $crate::real::Real::new(name);
                $(real = $crate::real::Real::versioned(name, $version);)?
                real
            }
            static REAL: $crate::real::Real = real();
            let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? =
                // SAFETY: the address is that of the C function of this name, whose signature this is.
                unsafe { core::mem::transmute::<usize, _>(REAL.get()) };
            // SAFETY: by contract.
            unsafe { function($($arg),*) }
        }
    )*};
}

/// glibc's own allocator.
///
/// Other allocators (tcmalloc, mimalloc) define these names as well; the version says that glibc's are meant, and whoever has them from
/// there alone can be sure that a block comes back to where it was made. All are looked up by whoever comes first, `free` before the
/// others: `dlsym` frees the message of an earlier look-up that failed, so that a first `free` in there would look itself up for ever.
mod glibc {
    use super::Real;

    const VERSION: &core::ffi::CStr = c"GLIBC_2.2.5";
    static FUNCTIONS: [Real; 6] = [
        Real::versioned(c"__libc_free", VERSION),
        Real::versioned(c"__libc_malloc", VERSION),
        Real::versioned(c"__libc_calloc", VERSION),
        Real::versioned(c"__libc_realloc", VERSION),
        Real::versioned(c"__libc_memalign", VERSION),
        Real::versioned(c"malloc_usable_size", VERSION),
    ];

    #[inline]
    pub fn address<const INDEX: usize>() -> usize {
        match FUNCTIONS[INDEX].known() {
            Some(address) => address,
            None => look_up(INDEX),
        }
    }

    #[cold]
    fn look_up(index: usize) -> usize {
        FUNCTIONS.iter().for_each(|function| _ = function.get());
        FUNCTIONS[index].get()
    }
}

macro_rules! glibc_fn {
    ($($index:literal: fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        /// # Safety
        /// As the C function of this name.
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? =
                // SAFETY: the address is that of glibc's function of this name, whose signature this is.
                unsafe { core::mem::transmute::<usize, _>(glibc::address::<$index>()) };
            // SAFETY: by contract.
            unsafe { function($($arg),*) }
        }
    )*};
}

glibc_fn! {
    0: fn __libc_free(old: *mut c_void);
    1: fn __libc_malloc(size: usize) -> *mut c_void;
    2: fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    3: fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    4: fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    5: fn malloc_usable_size(memory: *mut c_void) -> usize;
}

/// # Safety
/// As the system call asks.
#[inline]
pub unsafe fn syscall(n: libc::c_long, arguments: [usize; 6]) -> isize {
    // SAFETY: by contract.
    unsafe { arch::syscall6(n as usize, arguments) }
}

/// As [`syscall`], for the runtime's own needs: in a worker that keeps its process between runs, all others are looked at
/// (`steer::kept`). For calls that leave no trace in the kernel, or whose trace is known there.
///
/// # Safety
/// As the system call asks.
#[inline]
pub unsafe fn own_syscall(n: libc::c_long, arguments: [usize; 6]) -> isize {
    // SAFETY: by contract.
    unsafe { arch::own_syscall6(n as usize, arguments) }
}

pub fn yield_now() {
    // SAFETY: no arguments.
    unsafe { own_syscall(libc::SYS_sched_yield, [0; 6]) };
}

pub fn gettid() -> u32 {
    // SAFETY: no arguments.
    unsafe { own_syscall(libc::SYS_gettid, [0; 6]) as u32 }
}

pub fn getpid() -> u32 {
    // SAFETY: no arguments.
    unsafe { own_syscall(libc::SYS_getpid, [0; 6]) as u32 }
}

pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { own_syscall(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

pub fn write_stderr(bytes: &[u8]) {
    // SAFETY: the buffer is valid for its length.
    unsafe { own_syscall(libc::SYS_write, [2, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
}

/// Milliseconds on a clock that only goes forward.
pub fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is valid for the call.
    unsafe {
        own_syscall(
            libc::SYS_clock_gettime,
            [libc::CLOCK_MONOTONIC as usize, &raw mut time as usize, 0, 0, 0, 0],
        );
    }
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

pub fn sleep_us(microseconds: u64) {
    let time = libc::timespec {
        tv_sec: (microseconds / 1_000_000) as i64,
        tv_nsec: (microseconds % 1_000_000 * 1000) as i64,
    };
    // SAFETY: the timespec is valid for the call.
    unsafe { own_syscall(libc::SYS_nanosleep, [&raw const time as usize, 0, 0, 0, 0, 0]) };
}

/// Waits while `word` holds `value`, at most `timeout_us` (none: for ever). The word may be shared between processes.
pub fn futex_wait(word: &AtomicU32, value: u32, timeout_us: Option<u64>) {
    let time = timeout_us.map(|us| libc::timespec {
        tv_sec: (us / 1_000_000) as i64,
        tv_nsec: (us % 1_000_000 * 1000) as i64,
    });
    let time = time.as_ref().map_or(0, |time| core::ptr::from_ref(time) as usize);
    let word = core::ptr::from_ref(word) as usize;
    // SAFETY: word and timespec are valid for the call.
    unsafe { own_syscall(libc::SYS_futex, [word, libc::FUTEX_WAIT as usize, value as usize, time, 0, 0]) };
}

pub fn futex_wake(word: &AtomicU32, count: u32) {
    let word = core::ptr::from_ref(word) as usize;
    // SAFETY: the word is valid.
    unsafe { own_syscall(libc::SYS_futex, [word, libc::FUTEX_WAKE as usize, count as usize, 0, 0, 0]) };
}

/// As [`futex_wait`], for a word that only this process uses.
pub fn futex_wait_private(word: &AtomicU32, value: u32, timeout_us: u64) {
    let time = libc::timespec {
        tv_sec: (timeout_us / 1_000_000) as i64,
        tv_nsec: (timeout_us % 1_000_000 * 1000) as i64,
    };
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let word = core::ptr::from_ref(word) as usize;
    // SAFETY: word and timespec are valid for the call.
    unsafe { own_syscall(libc::SYS_futex, [word, op, value as usize, &raw const time as usize, 0, 0]) };
}

/// Wakes the one thread that waits for a word of this process.
pub fn futex_wake_private(word: &AtomicU32) {
    let op = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word is valid.
    unsafe { own_syscall(libc::SYS_futex, [core::ptr::from_ref(word) as usize, op, 1, 0, 0, 0]) };
}

/// Keeps the calling thread, and all that it creates, on one processor. A machine that refuses is slower, nothing worse.
pub fn stay_on(processor: u32) {
    const WORDS: usize = 16;
    let mut set = [0u64; WORDS];
    if let Some(word) = set.get_mut(processor as usize / 64) {
        *word = 1 << (processor % 64);
        // SAFETY: the set is valid for its size.
        unsafe {
            syscall(
                libc::SYS_sched_setaffinity,
                [0, size_of::<[u64; WORDS]>(), set.as_ptr() as usize, 0, 0, 0],
            );
        }
    }
}

pub fn process_exists(pid: u32) -> bool {
    // SAFETY: signal 0 only checks.
    unsafe { syscall(libc::SYS_kill, [pid as usize, 0, 0, 0, 0, 0]) != -(libc::ESRCH as isize) }
}

/// An environment variable's value, as it stands in the environment block.
pub fn environment(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: getenv takes a C string; the runtime reads the result before the program can change it.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: getenv returns null or a C string.
    if value.is_null() { None } else { Some(unsafe { CStr::from_ptr(value) }) }
}

pub fn set_errno(value: c_int) {
    // SAFETY: glibc returns the calling thread's own errno.
    unsafe { *libc::__errno_location() = value };
}

/// Bytes of a block that is allocated. The exported function answers, which knows blocks at stable addresses, too.
///
/// # Safety
/// `memory` is what an allocation function returned, and has not been released.
pub unsafe fn usable_size(memory: usize) -> usize {
    // SAFETY: by contract.
    unsafe { libc::malloc_usable_size(memory as *mut c_void) }
}
