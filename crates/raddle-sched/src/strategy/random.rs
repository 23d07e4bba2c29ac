//! `random`: every eligible thread is equally likely (tsan11rec §4.3).
//!
//! The choice is driven by the run's one seed. With two threads of n and m steps every interleaving has a positive
//! probability, but rare orders are exponentially rare; that is what `pct` is for.

use super::Strategy;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

pub struct Random;

impl Strategy for Random {
    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        pick_among(view.candidate_count, || view.candidates(), tools)
    }
}

/// One of `count` threads, each as likely as the others.
pub(super) fn pick_among<I: Iterator<Item = ThreadIx>>(
    count: usize,
    threads: impl FnOnce() -> I,
    tools: &mut Tools<'_>,
) -> ThreadIx {
    let n = tools.random.below(count);
    threads().nth(n).unwrap_or(ThreadIx(0))
}
