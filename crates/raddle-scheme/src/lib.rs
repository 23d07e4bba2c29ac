//! Concurrent Scheme: a reader, two machines, and the analyses that find its races and deadlocks.
//!
//! The language is CScheme of Stiévenart, Nicolay, De Meuter and De Roover, *Detecting Concurrency Bugs in Higher-Order
//! Programs through Abstract Interpretation*, with both of its extensions (`cas` and locks) and the rest of what a small
//! Scheme program needs. The crate stands alone: it knows nothing of native programs.
//!
//! ```text
//! text --syntax--> core program --modular--> what is left --abs--> suspects --concrete--> findings --render--> person
//! ```
//!
//! * [`syntax`]: reader, expander, core language.
//! * [`machine`]: the rules of evaluation, shared by both machines.
//! * [`concrete`]: the concrete machine, its schedulers, and the exploration of all schedules.
//! * [`abs`]: the abstract machine, P(CEK*)S with k-CFA, abstract garbage collection and reductions.
//! * [`modular`]: each thread by itself.
//! * [`paper`]: the analyses exactly as published; [`analyze`]: the better default.

pub mod abs;
pub mod analyze;
pub mod concrete;
pub mod dot;
pub mod finding;
pub mod graph;
pub mod limits;
pub mod machine;
pub mod modular;
pub mod paper;
pub mod render;
pub mod suspect;
pub mod syntax;
pub mod tool;

pub use syntax::core::Program;
pub use syntax::expand::{Unread, parse, parse_within};
pub use syntax::source::Source;
