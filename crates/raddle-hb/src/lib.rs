//! Happens-before while a program runs: what a thread knows, what memory remembers, what a load may read.
//!
//! This is the part of the runtime that can be right or wrong by itself. It has no statics, no system calls and no idea of how
//! an operation was intercepted, so every piece of it is tested on the host beside a slow twin that does the same by its
//! definition (`tests/`), and Miri looks over the pointers.
//!
//! # The pieces
//!
//! | file | what it is | its twin in `tests/` |
//! | --- | --- | --- |
//! | [`clock`], [`object_clock`] | vector clocks of threads and of objects, with generations | maps from slot to epoch |
//! | [`cell`] | the last four accesses to eight bytes, compared at once | one entry after the other |
//! | [`race`] | does an access race with what stands in its cell (FastTrack) | the whole history of accesses |
//! | [`segment`], [`slots`] | names for segments, used again without confusion | the set of all names ever given |
//! | [`location`], [`release_sequence`] | what an atomic passes on (Lidbury's thesis, fig. 3.12) | the table of the figure, with maps |
//! | [`stores`], [`weak`] | the stores of a location, and which of them a load may read | the axioms of C11, by brute force |
//!
//! # Who calls, and under which lock
//!
//! A [`thread_clocks::ThreadClocks`] belongs to its thread. A [`location::Location`] belongs to whoever holds the lock of the table that it
//! stands in; the runtime has such a table (`detect/vars.rs`), the tests have a map. What all threads share stands in one
//! [`domain::Domain`], whose parts have locks of their own ([`spin`]); they are leaves: nothing else is locked while one is held.
//! Memory comes from the [`host::Host`], and is never given back to it.

#![no_std]

pub mod cell;
pub mod clock;
pub mod domain;
pub mod host;
pub mod location;
pub mod memory_order;
pub mod object_clock;
pub mod pool;
pub mod race;
pub mod release_sequence;
pub mod segment;
pub mod slots;
pub mod spin;
pub mod stores;
pub mod thread_clocks;
pub mod weak;

pub use cell::{Cell, Lanes};
pub use clock::{Clock, Epoch, Generations, SLOTS};
pub use domain::Domain;
pub use host::Host;
pub use location::Location;
pub use memory_order::MemoryOrder;
pub use object_clock::ObjectClock;
pub use segment::Segment;
pub use thread_clocks::ThreadClocks;
