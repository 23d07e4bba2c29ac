//! A steered run under a debugger: threads carry their spawn paths as names, and where the run would end by decree (all
//! stop points reached, a deadlock, a divergence) it stops at a breakpoint instead, with everything in its place.

use crate::real;
use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, Ordering};
use raddle_wire::Header;
use raddle_wire::region::option;

static ON: AtomicBool = AtomicBool::new(false);

pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn start(header: &Header) {
    ON.store(header.options & option::DEBUGGER != 0, Ordering::Relaxed);
}

/// The calling thread takes its spawn path as its name.
pub fn name(thread: &Thread) {
    if on() {
        // SAFETY: the name is a C string; the system keeps its first 15 bytes.
        unsafe {
            real::syscall(
                libc::SYS_prctl,
                [libc::PR_SET_NAME as usize, thread.turns.name.get().as_ptr() as usize, 0, 0, 0, 0],
            );
        }
    }
}

/// Stops in the debugger. What the run is about has been said; the program does not go on by itself.
pub fn stop() -> ! {
    loop {
        // SAFETY: raises SIGTRAP, which the debugger catches.
        unsafe { core::arch::asm!("int3", options(nomem, nostack)) };
        real::sleep_us(1_000_000);
    }
}
