//! One file a published algorithm.

pub mod spd;
pub mod syncp;
