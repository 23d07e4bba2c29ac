//! One file a published algorithm.

pub mod djit;
pub mod eraser;
pub mod fasttrack;
pub mod goldilocks;
pub mod hb11;
pub mod racetrack;
pub mod shb;
pub mod spd;
pub mod syncp;
pub mod wcp;
