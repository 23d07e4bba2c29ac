//! From text to the core language: places, data, primitives, core expressions, expansion.

pub mod core;
pub mod expand;
pub mod prim;
pub mod reader;
mod retry;
pub mod source;
