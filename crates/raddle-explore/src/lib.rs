//! Which schedule to run next, and what has been seen so far. This crate does not know how a program is started.

pub mod campaign;
pub mod estimate;
pub mod shrink;
pub mod strategy;
pub mod systematic;

pub use campaign::{Blocked, Campaign, Ending, Observation, Seen};
pub use estimate::Estimate;
pub use strategy::Strategy;
