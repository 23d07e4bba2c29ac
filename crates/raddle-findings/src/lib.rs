//! Findings: what is handed to a person, a CI job or an editor. This crate stores and compares findings; it never renders for humans.

pub mod finding;

pub use finding::{Finding, Frame, Grade, Kind, Party};
