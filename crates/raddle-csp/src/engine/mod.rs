//! The refinement engine.
//!
//! ```text
//! term --firing--> leaf machines --bisimulation--> components --rules--> combinator --search--> verdict
//! ```
//!
//! The way in is [`check`], or a [`Checker`] for several assertions of one script.

pub mod bisimulation;
mod branches;
pub mod check;
pub mod combinator;
pub mod compile;
pub mod compress;
pub mod describe;
pub mod determinism;
pub mod divergence;
pub mod explicate;
pub mod firing;
mod inside;
pub mod layout;
pub mod machine;
pub mod model;
pub mod neighbours;
pub mod normal;
pub mod probe;
pub mod reduction;
pub mod refusals;
pub mod render;
pub mod room;
pub mod rules;
pub mod search;
pub mod spill;
pub mod store;
pub mod table;
pub mod verdict;
pub mod walk;
pub mod witness;

pub use check::{Checker, check};
pub use verdict::{
    Behaviour, CheckError, CheckOptions, Component, Counterexample, Inner, Offered, Outcome, Progress,
    Statistics, Step,
};
