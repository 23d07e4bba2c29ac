//! The fork server's part of the region: what is asked for, and what each run showed.
//!
//! A program that is to be run many times is started once. Its runtime stops before the program's own first code and
//! forks a child for every run that is asked for. Both sides count runs from 0 and only ever add to their counters, so
//! that none needs a lock:
//!
//! ```text
//! requested   `raddle` wants the runs below this number (futex word of the server)
//! published   the server has finished the runs below this number (futex word of `raddle`)
//! consumed    `raddle` has read the results below this number (futex word of the server)
//! ```
//!
//! Results travel through a ring of [`RunEntry`], entry n % [`RUNS_MAX`] for run n. The server waits while the ring is
//! full. It wakes `raddle` when the ring is half full or nothing is left to do, not after every run: a wake-up of
//! another processor costs as much as a tenth of a small run.
//!
//! The ring lies behind the blob, at the next page. Behind it lies another one, with the crash report ([`crate::crash`]) of each
//! of these runs; only those that crashed or were ended cost memory.

use crate::crash::END_BYTES;
use crate::region::{BLOB_OFFSET, PARTIES_MAX, PartyEntry};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Results that can wait to be read.
pub const RUNS_MAX: usize = 64;
pub const RUN_BYTES: usize = 8192;
/// Most output that travels in an entry. Longer output is left in the program's standard output (a file that `raddle`
/// made) until the entry has been read.
pub const RUN_OUTPUT_MAX: usize = RUN_BYTES - PARTIES_MAX * size_of::<PartyEntry>() - 64;

/// Values of [`ServerBlock::state`].
pub mod server_state {
    pub const NONE: u32 = 0;
    pub const SERVING: u32 = 1;
    /// The program has threads already: a fork would lose them.
    pub const REFUSED: u32 = 2;
}

/// Values of [`ServerBlock::mode`]: how runs are made.
pub mod mode {
    /// As fast as the program allows.
    pub const AUTO: u32 = 0;
    /// Each in a forked child.
    pub const FORK: u32 = 1;
    /// In a worker that keeps its process, however many runs have to be repeated in forked children.
    pub const FIBERS: u32 = 2;
}

/// Values of [`ServerBlock::kept_state`]: is there a worker that keeps its process between runs?
pub mod kept_state {
    /// No, for the reason that stands beside it.
    pub const OFF: u32 = 0;
    /// Its runs are compared with those of forked children.
    pub const COMPARED: u32 = 1;
    /// It makes the runs.
    pub const ON: u32 = 2;
}

/// Values of [`ServerBlock::kept_reason`]: why not, or why a run was repeated in a forked child.
pub mod kept_reason {
    pub const NONE: u32 = 0;
    /// Nobody asked for it.
    pub const NOT_WANTED: u32 = 1;
    /// More than one thread may run at a time.
    pub const STRATEGY: u32 = 2;
    /// The run is watched, or its memory is laid out by the runtime.
    pub const OPTIONS: u32 = 3;
    /// The system or the C library has not what is needed.
    pub const SYSTEM: u32 = 4;
    /// A system call; the detail is its number.
    pub const CALL: u32 = 5;
    /// More threads than there are; the detail says how many that is.
    pub const THREADS: u32 = 6;
    /// A thread with a stack or a scheduling policy of its own.
    pub const ATTRIBUTES: u32 = 7;
    /// Nobody could go on.
    pub const NOBODY: u32 = 8;
    /// The worker was ended, or ended by itself.
    pub const GONE: u32 = 9;
    /// A run was not what it was in a forked child: an error of Raddle's. The detail is the seed.
    pub const DISAGREED: u32 = 10;
    /// Memory was not what it was before the run: an error of Raddle's. The detail is the address of the page.
    pub const MEMORY: u32 = 11;
}

#[repr(C)]
#[derive(Debug)]
pub struct ServerBlock {
    /// Written before the program starts: is a server wanted?
    pub wanted: u32,
    pub state: AtomicU32,
    pub requested: AtomicU32,
    pub published: AtomicU32,
    pub consumed: AtomicU32,
    /// `raddle` is done: the server ends.
    pub quit: AtomicU32,
    /// Seed of run 0; run n has this plus n times `stride`.
    pub seed: AtomicU64,
    pub stride: AtomicU64,
    /// Process of the run that is going on.
    pub child: AtomicU32,
    /// One more than the number of a run that `raddle` ended because it took too long.
    pub ended: AtomicU32,
    /// Written before the program starts: one of [`mode`].
    pub mode: u32,
    /// One of [`kept_state`], and why.
    pub kept_state: AtomicU32,
    pub kept_reason: AtomicU32,
    /// How many runs of such a worker were repeated in a forked child.
    pub repeated: AtomicU32,
    pub kept_detail: AtomicU64,
    /// Runs of such workers whose results were published.
    pub kept_runs: AtomicU64,
}

impl ServerBlock {
    pub const fn new() -> ServerBlock {
        ServerBlock {
            wanted: 0,
            state: AtomicU32::new(server_state::NONE),
            requested: AtomicU32::new(0),
            published: AtomicU32::new(0),
            consumed: AtomicU32::new(0),
            quit: AtomicU32::new(0),
            seed: AtomicU64::new(0),
            stride: AtomicU64::new(1),
            child: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            mode: mode::AUTO,
            kept_state: AtomicU32::new(kept_state::OFF),
            kept_reason: AtomicU32::new(kept_reason::NONE),
            repeated: AtomicU32::new(0),
            kept_detail: AtomicU64::new(0),
            kept_runs: AtomicU64::new(0),
        }
    }
}

impl Default for ServerBlock {
    fn default() -> Self {
        ServerBlock::new()
    }
}

/// What one run showed.
#[repr(C)]
#[derive(Debug)]
pub struct RunEntry {
    pub seed: AtomicU64,
    /// Decisions or steps taken.
    pub steps: AtomicU64,
    /// Bytes printed; more than [`RUN_OUTPUT_MAX`] when the rest has to be fetched from the file.
    pub output_bytes: AtomicU64,
    /// As `wait` reports it.
    pub status: AtomicU32,
    /// One of [`crate::region::outcome`].
    pub outcome: AtomicU32,
    pub party_count: AtomicU32,
    pub threads: AtomicU32,
    /// As [`crate::region::Header::turns_hash`].
    pub turns_hash: AtomicU64,
    pub reserved: [u64; 2],
    pub parties: [PartyEntry; PARTIES_MAX],
    pub output: [AtomicU8; RUN_OUTPUT_MAX],
}

const _: () = assert!(size_of::<RunEntry>() == RUN_BYTES);

/// Where the ring begins in a region with a blob of this size.
pub const fn ring_offset(blob_bytes: usize) -> usize {
    (BLOB_OFFSET + blob_bytes).next_multiple_of(4096)
}

/// Where the crash report of this run begins, counted from the ring.
pub const fn end_offset(run: u32) -> usize {
    RUNS_MAX * RUN_BYTES + run as usize % RUNS_MAX * END_BYTES
}

pub const RING_BYTES: usize = RUNS_MAX * (RUN_BYTES + END_BYTES);
