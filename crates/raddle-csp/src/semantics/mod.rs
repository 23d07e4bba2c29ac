//! Semantics by definition: the naive twins of the engine, for tests.
//!
//! [`clauses`] computes traces, stable failures and divergences from the structure of a term, [`observe`] from its
//! transitions, [`refusal_tests`] what the models of revivals and refusal testing record; all up to a bound and by the book. [`generate`] makes the random terms on which they, and the engine,
//! must agree.

pub mod clauses;
pub mod denotation;
pub mod generate;
pub mod observe;
pub mod random;
pub mod refusal_tests;
