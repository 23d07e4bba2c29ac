//! Properties that the user wrote in CSPM, checked against a trace.
//!
//! RaceQuest's custom properties (thesis, §6.3): the trace becomes the process PROGRAM, in which every interleaving of its events is
//! possible that synchronisation allows; the user's script says by assertions what PROGRAM may do. [`script`] joins both. [`check`] decides each
//! assertion in one of two ways:
//!
//! * *directly*, where its shape allows: a specification, or a watchdog beside PROGRAM, is a small automaton ([`automaton`]), and a search over
//!   the states of the trace ([`search`]) carries it along;
//! * by the *refinement engine* of `raddle-csp`, whatever the shape and the model.
//!
//! Both answer with the same violations (tests/agreement.rs). A violation is a sequence of the threads' steps, from which a schedule is made. Whether
//! a run that was recorded violates an assertion is decided by the automaton, or by the engine with a PROGRAM that can do only what was done
//! ([`check::observed`]); nothing is searched for.
//!
//! **Architecture Invariant:** never runs programs.

pub mod automaton;
pub mod check;
pub mod events;
pub mod script;
pub mod search;

pub use check::{Checked, Violation, check, observed};

/// Why a property could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum PropertyError {
    /// The script has mistakes: rendered diagnostics.
    #[error("{0}")]
    Script(String),
    #[error("assertion {number} cannot be decided: {reason}")]
    Undecided { number: usize, reason: String },
}
