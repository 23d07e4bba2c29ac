//! Semantics by definition: the naive twins of the engine, for tests.

pub mod random;
