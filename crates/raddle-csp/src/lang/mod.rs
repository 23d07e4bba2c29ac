//! CSPM, the machine-readable language of CSP as FDR4 accepts it: lexer, parser, name resolution, type checker, lazy
//! evaluator, formatter.
//!
//! A script goes through the stages in this order; each reports [`diagnostic::Diagnostic`]s and none panics:
//!
//! ```text
//! text -> token -> parser -> ast -> modules -> resolve -> types -> eval -> process tree for the engine
//! ```

pub mod ast;
pub mod builtin;
mod copy;
pub mod diagnostic;
pub mod eval;
pub mod format;
pub mod graph;
pub mod load;
pub mod parser;
pub mod resolve;
pub mod session;
pub mod source;
pub mod token;
pub mod types;
