//! One file a published algorithm.

pub mod aerodrome;
pub mod atomicsets;
pub mod atomizer;
pub mod avio;
pub mod blocked;
pub mod contracts;
pub mod correlated;
pub mod djit;
pub mod eraser;
pub mod fasttrack;
pub mod goldilocks;
pub mod goodlock;
pub mod hb11;
pub mod lockdep;
pub mod missedsignal;
pub mod nonprogress;
pub mod order;
pub mod racetrack;
pub mod segments;
pub mod shb;
pub mod spd;
pub mod syncp;
pub mod velodrome;
pub mod views;
pub mod waitfor;
pub mod wcp;
