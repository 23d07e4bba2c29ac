//! What the concrete and the abstract machine share.

pub mod access;
pub mod plan;
