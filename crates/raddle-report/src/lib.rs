//! Findings for people: every sentence, diagnostics on a terminal, explanations. This crate shows results; it never computes
//! them.

pub mod explain;
pub mod listing;
pub mod markdown;
pub mod pace;
pub mod page;
pub mod picture;
pub mod sources;
mod stack;
pub mod summary;
pub mod terminal;
mod text;
pub mod wording;

pub use explain::{explain, grades};
pub use listing::list;
pub use markdown::markdown;
pub use page::{Page, Shown};
pub use sources::Sources;
pub use stack::call;
pub use summary::{AFTER_NOTHING, Summary};
pub use terminal::{Style, render};
pub use wording::English;
