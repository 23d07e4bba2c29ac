//! Traces: events, trace files, schedules, symbols, conversions. This crate never decides what is an error.

// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod collector;
pub mod conditions;
pub mod convert;
pub mod crash;
pub mod decode;
pub mod demo;
pub mod describe;
pub mod encode;
pub mod event;
pub mod file;
pub mod generate;
pub mod ids;
pub mod info;
pub mod journal;
pub mod model;
pub mod observed_schedule;
pub mod open;
pub mod payload;
pub mod perfetto;
pub mod region;
pub mod report;
pub mod schedule;
pub mod source;
pub mod std_format;
#[allow(clippy::wildcard_enum_match_arm, reason = "about DWARF, whose words are not ours")]
pub mod symbols;
pub mod tables;
pub mod validate;

#[doc(hidden)]
pub use raddle_wire;

pub use event::{AccessFlags, AtomicKind, Event, LockFlags, ObjectKind, Op, Order, Patience};
pub use ids::{Addr, ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};
pub use model::EventIx;
pub use open::{OpenTrace, open};
pub use source::{EventSource, MemorySource, MemoryTrace, TraceError};
pub use tables::{Location, Module, Tables, Thread};
