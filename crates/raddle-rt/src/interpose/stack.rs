//! Stacks of new threads at addresses that depend on nothing but how many threads there were before.
//!
//! A thread's handle is an address in its stack, and programs use handles: `std::barrier` finds its place in a table by the
//! hash of one. The C library takes the stack of a thread that has ended, if it has ended by then, and otherwise maps one
//! where there is room. With `--stable-memory` each thread gets a stack of its own here, one behind the other in order of
//! creation, which is part of the schedule.
//!
//! The stack has the size and the guard page that the C library would have given it. It goes when its thread is joined; the
//! stacks of detached threads stay, because nobody can tell when the system has done with them. A program that brings
//! stacks of its own keeps them.

use crate::interpose::stable;
use crate::{real, real_fn};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

mod c {
    use super::*;
    real_fn! {
        fn pthread_getattr_default_np(attr: *mut libc::pthread_attr_t) -> c_int;
        fn pthread_attr_getstack(attr: *const c_void, start: *mut usize, bytes: *mut usize) -> c_int;
        fn pthread_attr_setstack(attr: *mut libc::pthread_attr_t, start: usize, bytes: usize) -> c_int;
        fn pthread_attr_getstacksize(attr: *const c_void, bytes: *mut usize) -> c_int;
        fn pthread_attr_getguardsize(attr: *const c_void, bytes: *mut usize) -> c_int;
        fn pthread_attr_destroy(attr: *mut libc::pthread_attr_t) -> c_int;
    }
}

/// Below the memory of [`stable`], above where programs lie without randomisation.
const BASE: usize = 0x5f00_0000_0000;
const END: usize = 0x6000_0000_0000;
const PAGE: usize = 4096;

static NEXT: AtomicUsize = AtomicUsize::new(BASE);

/// A stack, and the attributes of a thread that is to run on it.
pub struct Stack {
    attributes: libc::pthread_attr_t,
    /// The attributes are the C library's own copy, and are given back.
    owned: bool,
    pub start: usize,
    pub bytes: usize,
}

impl Stack {
    /// `None`: the C library, or the program, chooses.
    pub fn take(given: *const c_void) -> Option<Stack> {
        if !stable::on() {
            return None;
        }
        // SAFETY: plain data.
        let mut attributes: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
        let owned = given.is_null();
        // SAFETY: given attributes are initialised and as large as these; a copy of them is only read, but for the stack.
        unsafe {
            if !owned {
                attributes = *given.cast::<libc::pthread_attr_t>();
            } else if c::pthread_getattr_default_np(&mut attributes) != 0 {
                return None;
            }
        }
        let mut stack = Stack { attributes, owned, start: 0, bytes: 0 };
        let at = (&raw const stack.attributes).cast();
        let (mut start, mut whole, mut bytes, mut guard) = (0, 0, 0, 0);
        // SAFETY: initialised attributes, and room for each answer.
        unsafe {
            c::pthread_attr_getstack(at, &mut start, &mut whole);
            c::pthread_attr_getstacksize(at, &mut bytes);
            c::pthread_attr_getguardsize(at, &mut guard);
        }
        // Without a stack, the answer is one that ends at zero.
        let brought = start.wrapping_add(whole) != 0;
        let (bytes, guard) = (bytes.next_multiple_of(PAGE), guard.next_multiple_of(PAGE));
        if brought || !stack.map(bytes, guard) {
            stack.forget();
            return None;
        }
        Some(stack)
    }

    fn map(&mut self, bytes: usize, guard: usize) -> bool {
        let start = NEXT.fetch_add(guard + bytes, Ordering::Relaxed);
        if start + guard + bytes > END {
            return false;
        }
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_STACK
            | libc::MAP_FIXED_NOREPLACE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: MAP_FIXED_NOREPLACE disturbs no existing mapping; the guard lies inside the new one.
        unsafe {
            let at = real::syscall(
                libc::SYS_mmap,
                [start, guard + bytes, prot as usize, flags as usize, usize::MAX, 0],
            );
            if at != start as isize {
                return false;
            }
            if guard > 0 {
                real::syscall(libc::SYS_mprotect, [start, guard, libc::PROT_NONE as usize, 0, 0, 0]);
            }
            (self.start, self.bytes) = (start, guard + bytes);
            c::pthread_attr_setstack(&mut self.attributes, start + guard, bytes) == 0
        }
    }

    pub fn attributes(&self) -> *const c_void {
        (&raw const self.attributes).cast()
    }

    /// The attributes are not needed any more.
    pub fn forget(&mut self) {
        if core::mem::take(&mut self.owned) {
            // SAFETY: the C library's own copy, given back once.
            unsafe { c::pthread_attr_destroy(&mut self.attributes) };
        }
    }
}

/// The thread that ran on the stack has been joined.
pub fn give_back(start: usize, bytes: usize) {
    if start != 0 {
        // SAFETY: mapped here, and nobody runs on it any more.
        unsafe { real::syscall(libc::SYS_munmap, [start, bytes, 0, 0, 0, 0]) };
    }
}
