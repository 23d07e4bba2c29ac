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
