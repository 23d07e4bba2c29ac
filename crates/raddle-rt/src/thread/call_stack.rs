//! The shadow call stack: the calls of instrumented functions that a thread is in.
//!
//! Entry and exit hooks keep it. Two readers follow it, the recorder and the detector's history, and each is told of changes lazily:
//! only when an event follows, and only the difference. For that the stack keeps the lowest top since somebody was last told ([`low`]),
//! and for each reader how much of what it was told still stands ([`Mark::known`]). A reader is up to date exactly when `low`, top and
//! its mark agree, which is all that the frequent path compares. When one reader is told, `low` starts over at the top; what it said
//! so far is put into the other reader's mark first, so that neither depends on the other.
//!
//! [`low`]: CallStack::low

use core::cell::Cell;

/// One entry of the shadow call stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Frame {
    /// Return address in the caller, as the compiler passes it to the entry hook.
    pub pc: u64,
    /// Where the return address of the call to the entry hook lies, and later those of the function's other calls; frames below a
    /// live one are dead (after `longjmp`).
    pub sp: u64,
}

const _: () = assert!(size_of::<Frame>() == 16);

/// Deepest shadow stack; deeper frames are counted but not kept.
pub const STACK_FRAMES_MAX: usize = 1 << 16;

/// Who follows the stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    Recorder = 0,
    History = 1,
}

const READERS: usize = 2;

/// What one reader knows.
struct Mark {
    /// Below this, what the reader was told still stands.
    known: Cell<*mut Frame>,
    /// How deep the stack was when the reader was last told.
    shown: Cell<*mut Frame>,
}

impl Mark {
    const fn new() -> Mark {
        Mark { known: Cell::new(core::ptr::null_mut()), shown: Cell::new(core::ptr::null_mut()) }
    }
}

/// What a reader has to be told.
pub struct Changes {
    /// The stack was cut to this depth.
    pub cut_to: Option<usize>,
    /// From this depth on there are new calls.
    pub first_new: usize,
    /// So deep is the stack now.
    pub depth: usize,
}

pub struct CallStack {
    base: Cell<*mut Frame>,
    top: Cell<*mut Frame>,
    end: Cell<*mut Frame>,
    /// Lowest top since a reader was last told.
    low: Cell<*mut Frame>,
    marks: [Mark; READERS],
    /// Calls beyond the deepest that is kept.
    overflow: Cell<u32>,
    /// A `longjmp` happened: frames below the current stack pointer are dead.
    stale: Cell<bool>,
}

impl CallStack {
    pub const fn idle() -> CallStack {
        CallStack {
            base: Cell::new(core::ptr::null_mut()),
            top: Cell::new(core::ptr::null_mut()),
            end: Cell::new(core::ptr::null_mut()),
            low: Cell::new(core::ptr::null_mut()),
            marks: [const { Mark::new() }; READERS],
            overflow: Cell::new(0),
            stale: Cell::new(false),
        }
    }

    /// Gives the stack its memory.
    ///
    /// # Safety
    /// [`STACK_FRAMES_MAX`] frames from `start` on belong to this stack for ever.
    pub unsafe fn place(&self, start: *mut Frame) {
        self.base.set(start);
        // SAFETY: by contract, the end of the same piece of memory.
        self.end.set(unsafe { start.add(STACK_FRAMES_MAX) });
    }

    /// For a thread that is about to be created.
    pub fn clear(&self) {
        let base = self.base.get();
        self.top.set(base);
        self.low.set(base);
        for mark in &self.marks {
            mark.known.set(base);
            mark.shown.set(base);
        }
        self.overflow.set(0);
        self.stale.set(false);
    }

    /// An instrumented function begins.
    #[inline]
    pub fn enter(&self, pc: u64, sp: u64) {
        if self.top.get() >= self.end.get() {
            if !self.end.get().is_null() {
                self.overflow.set(self.overflow.get() + 1);
            }
            return;
        }
        let mut top = self.top.get();
        if self.stale.get() {
            top = self.drop_dead_frames(sp);
        }
        // SAFETY: below the end of the stack, so the frame and the place behind it belong to the stack's memory.
        unsafe {
            top.write(Frame { pc, sp });
            self.top.set(top.add(1));
        }
    }

    /// It ends.
    #[inline]
    pub fn exit(&self) {
        if self.overflow.get() != 0 {
            self.overflow.set(self.overflow.get() - 1);
            return;
        }
        let top = self.top.get();
        if top > self.base.get() {
            // SAFETY: above the base, so there is a frame below.
            let top = unsafe { top.sub(1) };
            self.top.set(top);
            if top < self.low.get() {
                self.low.set(top);
            }
        }
    }

    /// A jump leaves functions without their exit hooks.
    pub fn jumped(&self) {
        if !self.end.get().is_null() {
            self.stale.set(true);
        }
    }

    /// After a `longjmp`, frames that lie below the stack pointer were left without an exit hook.
    #[cold]
    fn drop_dead_frames(&self, sp: u64) -> *mut Frame {
        self.stale.set(false);
        self.overflow.set(0);
        let mut top = self.top.get();
        // SAFETY: stays between base and top, where all frames have been written.
        unsafe {
            while top > self.base.get() && (*top.sub(1)).sp <= sp {
                top = top.sub(1);
            }
        }
        self.top.set(top);
        if top < self.low.get() {
            self.low.set(top);
        }
        top
    }

    #[inline]
    pub fn depth(&self) -> usize {
        self.depth_of(self.top.get())
    }

    #[inline]
    fn depth_of(&self, at: *mut Frame) -> usize {
        (at as usize - self.base.get() as usize) / size_of::<Frame>()
    }

    /// The program counter at a depth below the present one.
    #[inline]
    pub fn pc_at(&self, depth: usize) -> u64 {
        debug_assert!(depth < self.depth());
        // SAFETY: below the top, so the frame has been written.
        unsafe { (*self.base.get().add(depth)).pc }
    }

    /// Does the reader know the stack as it is?
    #[inline(always)]
    pub fn is_known_to(&self, reader: Reader) -> bool {
        let known = self.marks[reader as usize].known.get();
        self.low.get() == known && self.top.get() == known
    }

    /// What the reader has to be told.
    #[inline]
    pub fn changes_for(&self, reader: Reader) -> Changes {
        let mark = &self.marks[reader as usize];
        let stands = self.low.get().min(mark.known.get());
        Changes {
            cut_to: (stands < mark.shown.get()).then(|| self.depth_of(stands)),
            first_new: self.depth_of(stands),
            depth: self.depth(),
        }
    }

    /// The reader has been told everything.
    #[inline]
    pub fn catch_up(&self, reader: Reader) {
        let (low, top) = (self.low.get(), self.top.get());
        let other = &self.marks[READERS - 1 - reader as usize];
        if low < other.known.get() {
            other.known.set(low);
        }
        let mark = &self.marks[reader as usize];
        mark.known.set(top);
        mark.shown.set(top);
        self.low.set(top);
    }

    /// The innermost calls, with the given place first; zeroes behind the outermost.
    pub fn innermost<const N: usize>(&self, pc: u64) -> [u64; N] {
        let mut frames = [0; N];
        frames[0] = pc;
        let depth = self.depth();
        for (ix, frame) in frames.iter_mut().skip(1).take(depth).enumerate() {
            *frame = self.pc_at(depth - 1 - ix);
        }
        frames
    }

    /// The frames, innermost first, without those that a jump has left if the stack pointer is known. Another thread may be
    /// changing its own stack at this moment: what is read is then partly old, but it is always the stack's own memory.
    pub fn frames(&self, stack_pointer: Option<u64>) -> Frames {
        // SAFETY: cells of a structure that stays mapped; its owner may be writing them, which volatile reads tolerate.
        let (base, end, top, stale) = unsafe {
            (
                self.base.as_ptr().read_volatile(),
                self.end.as_ptr().read_volatile(),
                self.top.as_ptr().read_volatile(),
                self.stale.as_ptr().cast::<u8>().read_volatile() != 0,
            )
        };
        let top = if base.is_null() { base } else { top.clamp(base, end) };
        Frames { base, next: top, dead_below: stack_pointer.filter(|_| stale).unwrap_or(0) }
    }
}

/// The frames of a stack, innermost first.
#[derive(Clone)]
pub struct Frames {
    base: *const Frame,
    next: *const Frame,
    /// Frames below this were left by a jump.
    dead_below: u64,
}

impl Iterator for Frames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        while self.next > self.base {
            // SAFETY: above the base and at most where the stack ends; a frame that its owner is writing is read as bytes.
            let frame = unsafe {
                self.next = self.next.sub(1);
                self.next.read_volatile()
            };
            if frame.sp >= self.dead_below {
                return Some(frame);
            }
        }
        None
    }
}
