//! Confirming predictions: each candidate of `raddle-predict` is replayed in a process of its own, and the run has to show
//! the error.

pub mod confirm;
pub mod detectors;
pub mod unordered;
