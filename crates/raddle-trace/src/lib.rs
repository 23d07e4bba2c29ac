//! Traces: events, trace files, schedules, symbols, conversions. This crate never decides what is an error.

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
pub mod perfetto;
pub mod region;
pub mod report;
pub mod schedule;
pub mod source;
pub mod std_format;
pub mod symbols;
pub mod tables;
pub mod validate;

pub use event::{AccessFlags, AtomicKind, Event, LockFlags, ObjectKind, Op, Order, Patience};
pub use ids::{Addr, ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};
pub use model::EventIx;
pub use open::{OpenTrace, open};
pub use source::{EventSource, MemorySource, MemoryTrace, TraceError};
pub use tables::{Location, Module, Tables, Thread};
