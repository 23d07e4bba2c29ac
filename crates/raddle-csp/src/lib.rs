//! CSP: the language CSPM and a refinement checker for it.

pub mod assertion;
pub mod bench_models;
pub mod engine;
pub mod lang;
pub mod process;
pub mod semantics;
