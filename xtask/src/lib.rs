//! Chores as a library, so that tests can run what `cargo xtask` runs.

pub mod bench;
pub mod corpus;
pub mod project;
pub mod setup;
pub mod test;
