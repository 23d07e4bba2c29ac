//! Where machine formats get their sentences from.
//!
//! This crate makes no sentence. Formats that carry text for people (the `message` of a JSON finding, SARIF, JUnit) ask
//! whoever can speak: `raddle-report` implements [`Wording`].

use crate::finding::{Creation, Finding, HeldLock, Party};
use crate::kind::Kind;
use crate::object::{Allocation, Object};

/// What a kind of finding is called and how it is explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindWords {
    /// `Data race`.
    pub title: String,
    /// One or two sentences: what it is.
    pub description: String,
    /// What to do about it.
    pub help: String,
}

pub trait Wording {
    /// The finding in one sentence.
    fn headline(&self, finding: &Finding) -> String;
    /// What a party does, as the end of a sentence about its thread: ``writes 4 bytes of `x` ``.
    fn action(&self, party: &Party) -> String;
    /// `thread 1.2 (worker)`.
    fn thread(&self, party: &Party) -> String;
    /// Further sentences, most important first; the first says how it is known.
    fn notes(&self, finding: &Finding) -> Vec<String>;
    /// Where a lock was acquired that a party holds: ``thread 1.2 acquires mutex `m` ``.
    fn acquired(&self, party: &Party, held: &HeldLock) -> String;
    /// Where a party's thread was created.
    fn created(&self, party: &Party, creation: &Creation) -> String;
    /// Where a block of the heap was allocated.
    fn allocated(&self, object: &Object, allocation: &Allocation) -> String;
    fn kind(&self, kind: Kind) -> KindWords;
}
