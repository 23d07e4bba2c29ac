//! The crash report: what the runtime writes when the program is about to die of a signal, and where each thread stood when a
//! steered run was ended by decree.
//!
//! Both are one [`EndBlock`] in the region: a short head and a stream of words. The runtime writes it from a signal handler on a
//! stack of its own, with whatever the program has left of its memory, so the format is made to be written without memory
//! besides the block and to be useful when the writing is cut off: the block is *sealed* after each stage (the head, the
//! crashing thread, all threads), and a reader takes the last sealed state.
//!
//! ```text
//! HEAD_WORDS words   version | cause << 32
//!                    signal | code << 32
//!                    fault address
//!                    program counter
//!                    index of the crashing thread | threads that were alive << 32
//!                    threads that follow | kind of text ([`text`]) << 32
//!                    line | bytes of the expression << 32
//!                    bytes of the file | bytes of the function << 32
//! texts              expression, file, function, one behind the other, filled up to a whole word
//! threads            for each: index | flags << 32
//!                    hash of the spawn path
//!                    bytes of the name | frames << 16 | what it waits for << 32
//!                    object that it waits for
//!                    thread that holds the object | phase << 32
//!                    name, filled up to a whole word
//!                    frames: program counters, innermost first
//! ```
//!
//! Program counters of frames are return addresses, as everywhere in traces. That of a fault is made one: it lies one byte behind the
//! beginning of the instruction. The program counter in the head is the processor's own.
//!
//! The first thread is the crashing one. In a block about a steered run that was ended, the first threads are the parties of
//! the region's header, in their order.
//!
//! The program can overwrite the block by mistake, and a hostile one on purpose: [`EndBlock::check`] tells the first, and the reader
//! (`raddle_trace::crash`) trusts no count.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub const CRASH_VERSION: u32 = 1;

/// Frames kept of a thread's call stack.
pub const FRAMES_MAX: usize = 64;
/// Threads whose call stacks are kept.
pub const THREADS_MAX: usize = 512;
/// Bytes of all texts of a failed assertion together.
pub const TEXT_MAX: usize = 1024;
/// Bytes of a thread's spawn path; longer ones are cut.
pub const NAME_MAX: usize = 64;

pub const HEAD_WORDS: usize = 8;
pub const THREAD_HEAD_WORDS: usize = 5;
const THREAD_WORDS_MAX: usize = THREAD_HEAD_WORDS + NAME_MAX / 8 + FRAMES_MAX;
pub const BODY_WORDS: usize = HEAD_WORDS + TEXT_MAX / 8 + THREADS_MAX * THREAD_WORDS_MAX;

/// Bytes that a block takes in the region: whole pages.
pub const END_BYTES: usize = size_of::<EndBlock>().next_multiple_of(4096);

/// Values of [`EndBlock::state`].
pub mod state {
    pub const EMPTY: u32 = 0;
    /// Somebody writes it; nothing can be read yet.
    pub const CLAIMED: u32 = 1;
    /// What is there is right, but more was to come.
    pub const PARTIAL: u32 = 2;
    pub const COMPLETE: u32 = 3;
}

/// Why there is a report.
pub mod cause {
    /// A signal whose default action ends the program.
    pub const SIGNAL: u32 = 1;
    /// The runtime ended a steered run ([`crate::region::outcome`]).
    pub const OUTCOME: u32 = 2;
}

/// What the texts are.
pub mod text {
    pub const NONE: u32 = 0;
    /// Expression, file, line and function of a failed assertion.
    pub const ASSERTION: u32 = 1;
    /// In the place of the expression: what the C library says when it aborts the program.
    pub const MESSAGE: u32 = 2;
}

/// Bits of a thread's flags.
pub mod flag {
    /// The stack is deeper than what is told.
    pub const CUT: u32 = 1 << 0;
    /// The thread waits for an operation of [`crate::step`].
    pub const OPERATION: u32 = 1 << 1;
    /// The thread is in a system call: `what` is its number, the object its first argument.
    pub const CALL: u32 = 1 << 2;
}

/// No thread holds the object.
pub const NO_HOLDER: u32 = u32::MAX;

#[repr(C)]
#[derive(Debug)]
pub struct EndBlock {
    pub state: AtomicU32,
    /// Words of the body that are sealed.
    pub used: AtomicU32,
    /// [`check`] of these words.
    pub check: AtomicU64,
    pub body: [AtomicU64; BODY_WORDS],
}

/// A thread of a report, but for its frames.
#[derive(Clone, Copy, Debug)]
pub struct ThreadHead<'a> {
    pub index: u32,
    pub path: u64,
    pub name: &'a [u8],
    pub flags: u32,
    /// Operation or system call that it waits for.
    pub what: u32,
    pub object: u64,
    pub holder: u32,
    pub phase: u32,
}

/// What a report begins with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    pub cause: u32,
    pub signal: u32,
    pub code: i32,
    pub address: u64,
    pub pc: u64,
    pub thread: u32,
}

impl EndBlock {
    /// The block is to be written by the caller. False: somebody was first.
    pub fn claim(&self) -> bool {
        self.state.compare_exchange(state::EMPTY, state::CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub fn clear(&self) {
        self.state.store(state::EMPTY, Ordering::Release);
    }

    /// Makes this block what the other one is.
    pub fn copy_from(&self, other: &EndBlock) {
        let from = other.state.load(Ordering::Acquire);
        if from >= state::PARTIAL {
            let used = (other.used.load(Ordering::Relaxed) as usize).min(BODY_WORDS);
            for (to, from) in self.body[..used].iter().zip(&other.body) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.used.store(used as u32, Ordering::Relaxed);
            self.check.store(other.check.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.state.store(from, Ordering::Release);
    }
}

/// Fills a block that its owner has claimed. What does not fit is left out; the limits above are such that everything does.
pub struct Writer<'a> {
    block: &'a EndBlock,
    used: usize,
    threads: u32,
    text: u32,
}

impl<'a> Writer<'a> {
    pub fn begin(block: &'a EndBlock, head: Head) -> Writer<'a> {
        let mut writer = Writer { block, used: 0, threads: 0, text: text::NONE };
        writer.push(pair(CRASH_VERSION, head.cause));
        writer.push(pair(head.signal, head.code as u32));
        writer.push(head.address);
        writer.push(head.pc);
        writer.push(pair(head.thread, 0));
        for _ in writer.used..HEAD_WORDS {
            writer.push(0);
        }
        writer
    }

    fn push(&mut self, word: u64) {
        if let Some(cell) = self.block.body.get(self.used) {
            cell.store(word, Ordering::Relaxed);
            self.used += 1;
        }
    }

    fn bytes<'b>(&mut self, bytes: impl Iterator<Item = &'b u8>) {
        let (mut word, mut filled) = ([0u8; 8], 0);
        for &byte in bytes {
            word[filled] = byte;
            filled += 1;
            if filled == 8 {
                self.push(u64::from_le_bytes(word));
                (word, filled) = ([0; 8], 0);
            }
        }
        if filled > 0 {
            self.push(u64::from_le_bytes(word));
        }
    }

    /// The texts of a failed assertion, or a message alone. Before the first thread.
    pub fn texts(&mut self, kind: u32, line: u32, texts: [&[u8]; 3]) {
        if self.threads > 0 || self.text != text::NONE {
            return;
        }
        let mut room = TEXT_MAX;
        // The expression may be long; the others are cut last.
        let [expression, file, function] = texts;
        let file = &file[..file.len().min(TEXT_MAX / 4)];
        let function = &function[..function.len().min(TEXT_MAX / 4)];
        room -= file.len() + function.len();
        let expression = &expression[..expression.len().min(room)];
        self.text = kind;
        let lengths = [expression.len(), file.len(), function.len()].map(|length| length as u32);
        self.block.body[6].store(pair(line, lengths[0]), Ordering::Relaxed);
        self.block.body[7].store(pair(lengths[1], lengths[2]), Ordering::Relaxed);
        self.bytes(expression.iter().chain(file).chain(function));
    }

    /// One more thread. False: there is no room for it.
    pub fn thread(&mut self, head: ThreadHead<'_>, frames: &[u64]) -> bool {
        if self.threads as usize >= THREADS_MAX || self.used + THREAD_WORDS_MAX > BODY_WORDS {
            return false;
        }
        let cut = if frames.len() > FRAMES_MAX { flag::CUT } else { 0 };
        let frames = &frames[..frames.len().min(FRAMES_MAX)];
        let name = &head.name[..head.name.len().min(NAME_MAX)];
        self.push(pair(head.index, head.flags | cut));
        self.push(head.path);
        self.push(pair(name.len() as u32 | (frames.len() as u32) << 16, head.what));
        self.push(head.object);
        self.push(pair(head.holder, head.phase));
        self.bytes(name.iter());
        for &frame in frames {
            self.push(frame);
        }
        self.threads += 1;
        true
    }

    /// What has been written so far can be read. `alive`: all threads, also those that did not fit.
    pub fn seal(&mut self, complete: bool, alive: u32) {
        let block = self.block;
        block.state.store(state::CLAIMED, Ordering::Release);
        let thread = block.body[4].load(Ordering::Relaxed) as u32;
        block.body[4].store(pair(thread, alive.max(self.threads)), Ordering::Relaxed);
        block.body[5].store(pair(self.threads, self.text), Ordering::Relaxed);
        block.used.store(self.used as u32, Ordering::Relaxed);
        let words = block.body[..self.used].iter().map(|cell| cell.load(Ordering::Relaxed));
        block.check.store(check(words), Ordering::Relaxed);
        block.state.store(if complete { state::COMPLETE } else { state::PARTIAL }, Ordering::Release);
    }
}

/// Two halves of a word.
pub const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Tells words that the program overwrote by mistake; FNV-1a over whole words, with the high half folded down.
pub fn check(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(crate::step::HASH_START, |state, word| {
        let mixed = (state ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ mixed >> 32
    })
}

const _: () = assert!(NAME_MAX.is_multiple_of(8) && TEXT_MAX.is_multiple_of(8));
const _: () = assert!(FRAMES_MAX < 1 << 16 && NAME_MAX < 1 << 16);
