//! Which schedule to run next, and what has been seen so far. This crate does not know how a program is started.

// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod campaign;
pub mod estimate;
pub mod feedback;
pub mod portfolio;
pub mod shrink;
pub mod strategy;
pub mod systematic;

pub use campaign::{Blocked, Campaign, Ending, Observation, Seen};
pub use estimate::Estimate;
pub use strategy::Strategy;
