//! The bytes that cross the process boundary between the tested program (`raddle-rt`) and the `raddle` process.
//!
//! Two things live here: the *raw records* that the runtime writes while the program runs, and the *region*, the shared
//! memory through which they travel together with the run's configuration. Nothing in this crate allocates, and
//! nothing in it knows what an analysis is. Both sides are always built from the same sources, but a region still
//! starts with a magic number and a version, because a program can have been built by an older `raddle cc`.

#![no_std]
// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod calls;
pub mod crash;
pub mod follow;
pub mod journal;
pub mod operations;
pub mod probe;
pub mod record;
pub mod region;
pub mod report;
pub mod server;
pub mod step;

pub use operations::{Demand, Effect, Order, Outcome, Situation, StepKind};
pub use record::{Record, SyncOp, Tag};
pub use region::{Header, MessageEntry, ModuleEntry, SlotHeader};

/// Version of the region layout and of the raw records. A runtime refuses a region of another version.
pub const WIRE_VERSION: u32 = 6;
