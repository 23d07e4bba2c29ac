//! Findings as data: what is handed to a person, a CI job or an editor, and the store in which it is kept.
//!
//! A [`Finding`] says what went wrong ([`Kind`]), what each thread does ([`Action`]) to which [`Object`], and how that is
//! known ([`Basis`], from which the [`Grade`] follows). This crate stores, compares and converts findings; it makes no
//! sentence: whoever needs one asks a [`Wording`].

pub mod action;
pub mod basis;
pub mod collection;
pub mod evidence;
pub mod file;
pub mod finding;
pub mod formats;
pub mod id;
pub mod kind;
pub mod naming;
pub mod object;
pub mod pattern;
pub mod store;
pub mod suppressions;
pub mod wording;

pub use action::{Access, Action, Role, Wait};
pub use basis::{Attempt, Basis, Fidelity, Grade, Invisible, InvisibleKind, Shown};
pub use collection::{Comparison, compare, deduplicate};
pub use evidence::Evidence;
pub use file::{FindingsFile, ReadError};
pub use finding::{Detail, Finding, Frame, HeldLock, Misuse, Party, Remark, Seen, Thread, headline_frame};
pub use formats::Listing;
pub use kind::Kind;
pub use object::{Object, Place, What};
pub use store::Store;
pub use suppressions::Suppressions;
pub use wording::{KindWords, Wording};
