//! Findings: what is handed to a person, a CI job or an editor. This crate stores and compares findings; it never renders for humans.

pub mod collection;
pub mod finding;
pub mod pattern;
pub mod sarif;
pub mod suppressions;

pub use collection::{Comparison, FindingsFile, compare, deduplicate};
pub use finding::{Finding, Frame, Grade, HeldLock, Kind, Party};
pub use sarif::{kind_name, sarif};
pub use suppressions::Suppressions;
