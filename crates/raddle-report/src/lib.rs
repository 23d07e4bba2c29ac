//! Findings for people: diagnostics on a terminal. This crate shows results; it never computes them.

pub mod sources;
pub mod summary;
pub mod terminal;

pub use sources::Sources;
pub use summary::summary_line;
pub use terminal::{Style, render};
