//! Chores as a library, so that tests can run what `cargo xtask` runs.

pub mod bench;
pub mod corpus;
pub mod coverage;
pub mod deb;
pub mod external;
pub mod project;
pub mod results;
pub mod setup;
pub mod strategies;
pub mod test;
