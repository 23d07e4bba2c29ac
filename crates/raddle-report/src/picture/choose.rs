//! Which steps of a run are shown. The rest is folded.
//!
//! A short run is shown whole. Of a long one: the last steps of the threads that take part in the error, where the locks were acquired
//! that they hold at the end, steps on the objects of the finding, the last synchronisation into each of these threads, their creation,
//! and the first steps that differ from the recorded run. In this order of importance, until the picture is full.

use super::order::{Interval, Link, Why};
use super::run::Run;
use super::{Mark, ROWS_MAX, Stretch};
use std::collections::BTreeSet;

/// Runs of up to so many steps are shown whole.
const WHOLE_MAX: usize = 24;
/// The last steps of each party.
const LAST_STEPS: usize = 6;
/// Differing steps that are shown for themselves.
const DIFFERENT_MAX: usize = 6;

/// What decides.
pub(super) struct Reasons<'a> {
    /// Threads of the parties.
    pub parties: &'a [usize],
    /// Names of the finding's objects as the schedule writes them after naming.
    pub objects: &'a [String],
    pub spans: &'a [Interval],
    pub links: &'a [Link],
    pub marks: &'a [Mark],
}

/// Indices of the steps to show.
pub(super) fn choose(run: &Run<'_>, reasons: &Reasons<'_>) -> BTreeSet<usize> {
    if run.steps.len() <= WHOLE_MAX {
        return (0..run.steps.len()).collect();
    }
    let mut chosen = BTreeSet::new();
    let mut add = |at: usize| {
        if chosen.len() < ROWS_MAX {
            chosen.insert(at);
        }
    };
    let of = |thread: usize| {
        run.steps.iter().enumerate().rev().filter(move |(_, step)| step.thread == thread).map(|(at, _)| at)
    };
    // One step of each party at a time, so that a picture with many parties shows something of all of them.
    for nth in 0..2 {
        reasons.parties.iter().filter_map(|&party| of(party).nth(nth)).for_each(&mut add);
    }
    let held = |span: &&Interval| {
        span.to.is_none() && span.stretch != Stretch::Waits && reasons.parties.contains(&span.thread)
    };
    reasons.spans.iter().filter(held).filter_map(|span| span.from).for_each(&mut add);
    for &party in reasons.parties {
        let into = |link: &&Link| run.steps[link.to].thread == party && link.why != Why::Creates;
        if let Some(link) = reasons.links.iter().rev().find(into) {
            add(link.from);
            add(link.to);
        }
    }
    for nth in 2..LAST_STEPS {
        reasons.parties.iter().filter_map(|&party| of(party).nth(nth)).for_each(&mut add);
    }
    for link in reasons.links.iter().filter(|link| link.why == Why::Creates) {
        if reasons.parties.contains(&run.steps[link.to].thread) {
            add(link.from);
            add(link.to);
        }
    }
    let differs = reasons.marks.iter().enumerate().filter(|(_, mark)| **mark != Mark::Plain);
    differs.take(DIFFERENT_MAX).for_each(|(at, _)| add(at));
    let concerned = |at: &usize| {
        let object = run.object(run.steps[*at].object);
        !object.is_empty() && reasons.objects.iter().any(|known| known == object)
    };
    (0..run.steps.len()).rev().filter(concerned).take(2 * LAST_STEPS).for_each(&mut add);
    chosen
}
