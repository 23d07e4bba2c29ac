//! What the tests share: a naive twin of the solver, figures of the paper as traces, small helpers.
#![allow(dead_code)] // Each test binary uses its own part.

pub mod figures;
pub mod naive;

/// How many cases a property test tries; `RADDLE_TEST_CASES` says otherwise.
pub fn cases(default: u64) -> u64 {
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
