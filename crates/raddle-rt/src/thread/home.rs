//! Where a thread lives: its stack, its thread-local memory, and the frames of its calls.
//!
//! Memory that is neither static nor a block of the heap belongs to somebody all the same, and reports say to whom. The C library
//! lays a thread out like this (glibc; the thread pointer is also the handle):
//!
//! ```text
//! low ... stack, growing down ... end  | thread-local memory of the modules loaded at the start | pointer: its own block
//! ```
//!
//! The main thread's thread-local memory lies elsewhere; its name is found by the distance to the thread pointer, as everywhere.
//!
//! A frame is known by its canonical address, the stack pointer before the call of its function: one word above the return address.
//! The shadow call stack has the return address and where those of the caller's calls lie, so one look tells. A call through
//! code that was not instrumented (a thread's first function, `qsort`) is looked for between this frame and the next.

use super::Thread;
use super::call_stack::{Frame, Frames};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::report::home;

/// How far a return address is looked for above the place where it should be.
const SEARCH_BYTES_MAX: usize = 1 << 16;

pub struct Home {
    low: AtomicUsize,
    end: AtomicUsize,
    pointer: AtomicUsize,
    /// Size of the stack, as the thread's creator asked for it.
    bytes: AtomicUsize,
}

impl Home {
    pub const fn idle() -> Home {
        Home {
            low: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            pointer: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// For a thread that is about to be created.
    pub fn clear(&self) {
        for part in [&self.low, &self.end, &self.pointer, &self.bytes] {
            part.store(0, Ordering::Relaxed);
        }
    }

    /// Size of the stack; 0: not known.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What the thread's creator asks for.
    pub fn ask(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The calling thread lives here. All frames of the program's lie below `end`.
    pub fn settle(&self, end: usize) {
        self.pointer.store(crate::arch::fiber::thread_pointer(), Ordering::Relaxed);
        self.low.store(end.saturating_sub(self.bytes()), Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    /// The main thread was there before us: the kernel has made its stack.
    pub fn settle_main(&self) {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: room for the answer.
        unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
        self.ask((limit.rlim_cur as usize).min(MAIN_STACK_BYTES_MAX));
        // SAFETY: the loader has set it before anybody else runs, and nobody changes it.
        self.settle(unsafe { __libc_stack_end } as usize);
    }

    pub fn stack(&self) -> core::ops::Range<usize> {
        self.low.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)
    }

    pub fn pointer(&self) -> usize {
        self.pointer.load(Ordering::Relaxed)
    }

    /// Which part of the thread's own memory an address is in, as a word of [`home`].
    pub fn part(&self, address: usize) -> Option<u32> {
        let (stack, pointer) = (self.stack(), self.pointer());
        if stack.contains(&address) {
            return Some(home::STACK);
        }
        let start = if stack.end < pointer && pointer - stack.end < THREAD_LOCAL_BYTES_MAX {
            stack.end
        } else {
            pointer.saturating_sub(THREAD_LOCAL_NEAR)
        };
        (start..pointer).contains(&address).then_some(home::THREAD_LOCAL)
    }
}

/// A main thread whose stack has no limit does not own all memory below.
const MAIN_STACK_BYTES_MAX: usize = 64 << 20;
/// The thread pointer is this near to the end of a stack that the C library made, or lies elsewhere.
const THREAD_LOCAL_BYTES_MAX: usize = 1 << 20;
/// What certainly is thread-local memory, where its extent is not known.
const THREAD_LOCAL_NEAR: usize = 256;

unsafe extern "C" {
    static __libc_stack_end: *const u8;
}

/// A frame of the program.
#[derive(Clone, Copy)]
pub struct Place {
    /// Behind the call, or at the operation, at which the function is.
    pub pc: u64,
    /// Its canonical address.
    pub address: u64,
    /// How many calls it is deep, 1 for the outermost.
    pub depth: usize,
}

/// The frames of a thread, innermost first, each with the lowest address that can be its own. Frames whose place cannot be made out
/// are left out. `here` is where the thread is in the innermost function; 0: not known.
pub fn each_frame(thread: &Thread, here: u64, mut see: impl FnMut(Place, u64)) {
    let end = thread.home.stack().end as u64;
    let mut frames: Frames = thread.calls.frames(None);
    let mut depth = thread.calls.depth();
    let mut next = frames.next();
    let mut pc = here;
    while let Some(frame) = next {
        next = frames.next();
        if frame.sp.is_multiple_of(8) && frame.sp < end {
            let caller = next.filter(|caller| caller.sp > frame.sp).map(|caller| caller.sp);
            if let Some(at) = return_address(frame, caller, end) {
                // Where its calls put their return addresses, the last one has left a place inside the function.
                // SAFETY: on the thread's stack, where its calls have been.
                let pc = if pc == 0 { unsafe { word(frame.sp) } } else { pc };
                see(Place { pc, address: at + 8, depth }, frame.sp + 8);
            }
        }
        (pc, depth) = (0, depth.saturating_sub(1));
    }
}

/// # Safety
/// The address lies on the stack of a thread that lives, not below where its calls have been: the shadow stack tells that, the stack's
/// end bounds it on the other side.
unsafe fn word(at: u64) -> u64 {
    // SAFETY: by contract it is mapped; its owner may be writing it, and any value will do.
    unsafe { (at as *const u64).read_volatile() }
}

/// Where the return address of a function lies that is called at `frame`.
fn return_address(frame: Frame, caller: Option<u64>, end: u64) -> Option<u64> {
    // SAFETY: asked for addresses above the frame only.
    let is_it = |at: u64| at < end && unsafe { word(at) } == frame.pc;
    if let Some(at) = caller.filter(|&at| at.is_multiple_of(8) && is_it(at)) {
        return Some(at);
    }
    let stop = caller.unwrap_or(end).min(end).min(frame.sp.saturating_add(SEARCH_BYTES_MAX as u64));
    (frame.sp + 8..stop).step_by(8).find(|&at| is_it(at))
}
