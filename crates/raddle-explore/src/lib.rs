//! Which schedule to run next, and what has been seen so far. This crate does not know how a program is started.

pub mod campaign;
pub mod strategy;

pub use campaign::{Campaign, Ending, Observation, Seen};
pub use strategy::Strategy;
