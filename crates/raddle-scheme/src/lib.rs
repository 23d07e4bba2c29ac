//! Concurrent Scheme.
pub mod concrete;
pub mod graph;
pub mod limits;
pub mod machine;
pub mod syntax;
