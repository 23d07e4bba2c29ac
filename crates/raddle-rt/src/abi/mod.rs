//! The calls that a compiler's ThreadSanitizer pass inserts, as gcc 12 and clang 22 spell them.

pub mod annotate;
pub mod atomic;
pub mod interface;
pub mod plain;
pub mod reports;
pub mod sanitizer;
pub mod syscall_hooks;
