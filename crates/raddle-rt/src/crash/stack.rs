//! The call stack of a thread, innermost frame first.
//!
//! Instrumented functions keep a shadow stack: at its entry each leaves the return address into its caller, and where on the real
//! stack that address of the hook's own call lies ([`Frame::sp`]). So the shadow stack has every instrumented function but
//! says nothing about *where in the innermost one* the thread is. That is
//!
//! - the program counter, if the thread crashed there, or
//! - the return address of the last call that it made, if the thread is in something that it called: a function that is not
//!   instrumented, or the runtime. A function has its stack pointer at the same place for all of its calls, so the address
//!   lies where that of the entry hook lay. (A function that moves its stack pointer in between, as `alloca` does, leaves an
//!   older one there: the function is then right and the line is not.)
//!
//! The stack pointer tells which of the two it is: in the function itself it is above that place.
//!
//! Of a thread without a shadow stack the frame pointers are followed, as long as they lead up the stack and each return address
//! lies in some module.

use super::memory;
use crate::run;
use crate::thread::call_stack::Frames;
use crate::thread::{Frame, Thread};
use core::sync::atomic::Ordering;
use raddle_wire::ModuleEntry;
use raddle_wire::crash::FRAMES_MAX;
use raddle_wire::region::{MODULES_MAX, MODULES_OFFSET};

/// Where a thread was when a signal interrupted it.
#[derive(Clone, Copy)]
pub struct Registers {
    pub pc: u64,
    pub stack: u64,
    pub frame: u64,
}

impl Registers {
    pub fn of(context: &libc::ucontext_t) -> Registers {
        let register = |number: i32| context.uc_mcontext.gregs[number as usize] as u64;
        Registers {
            pc: register(libc::REG_RIP),
            stack: register(libc::REG_RSP),
            frame: register(libc::REG_RBP),
        }
    }
}

/// One more than what is kept: whoever writes it sees that it was cut.
const ROOM: usize = FRAMES_MAX + 1;

pub struct Stack {
    frames: [u64; ROOM],
    count: usize,
}

impl Stack {
    fn new() -> Stack {
        Stack { frames: [0; ROOM], count: 0 }
    }

    pub fn as_slice(&self) -> &[u64] {
        &self.frames[..self.count]
    }

    fn push(&mut self, pc: u64) {
        if self.count < ROOM {
            self.frames[self.count] = pc;
            self.count += 1;
        }
    }

    /// Of the calling thread, which a signal interrupted behind the first byte of the instruction that `innermost` lies in.
    pub fn of_crash(thread: &Thread, registers: Registers, innermost: u64) -> Stack {
        let mut stack = Stack::new();
        stack.push(innermost);
        let shadow = thread.calls.frames(Some(registers.stack));
        match shadow.clone().next() {
            Some(top) => {
                if registers.stack <= top.sp {
                    stack.push_last_call(top);
                }
                stack.push_shadow(shadow);
            }
            None => stack.push_frame_pointers(registers),
        }
        stack
    }

    /// Of another thread, which stands at `pc` if anybody knows.
    pub fn of_other(thread: &Thread, pc: Option<u64>) -> Stack {
        let mut stack = Stack::new();
        let shadow = thread.calls.frames(None);
        match (pc, shadow.clone().next()) {
            (Some(pc), _) => stack.push(pc),
            (None, Some(top)) => stack.push_last_call(top),
            // Its first function has not begun, or is not instrumented.
            (None, None) => stack.push(thread.life.routine.get() as u64 + 1),
        }
        stack.push_shadow(shadow);
        stack
    }

    fn push_last_call(&mut self, top: Frame) {
        if let Some(pc) = memory::word(top.sp as usize).filter(|&pc| in_module(pc)) {
            self.push(pc);
        }
    }

    fn push_shadow(&mut self, shadow: Frames) {
        for frame in shadow.take(ROOM) {
            self.push(frame.pc);
        }
    }

    fn push_frame_pointers(&mut self, registers: Registers) {
        let mut frame = registers.frame;
        let mut below = registers.stack;
        for _ in 0..ROOM {
            if frame < below || !frame.is_multiple_of(8) {
                return;
            }
            let (Some(next), Some(pc)) = (memory::word(frame as usize), memory::word(frame as usize + 8))
            else {
                return;
            };
            if !in_module(pc) {
                return;
            }
            self.push(pc);
            (below, frame) = (frame + 1, next);
        }
    }
}

/// Does the address lie in a file that the program has loaded?
fn in_module(address: u64) -> bool {
    let Some(header) = run::header() else { return false };
    let count = (header.modules.load(Ordering::Acquire) as usize).min(MODULES_MAX);
    let first = (core::ptr::from_ref(header) as usize + MODULES_OFFSET) as *const ModuleEntry;
    (0..count).any(|index| {
        // SAFETY: entries below the count are complete and lie in the mapped region.
        let entry = unsafe { &*first.add(index) };
        (entry.start..entry.end).contains(&address)
    })
}
