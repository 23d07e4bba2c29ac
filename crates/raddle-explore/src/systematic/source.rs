//! `source`: source sets.
//!
//! Abdulla, Aronis, Jonsson and Sagonas, *Optimal Dynamic Partial Order Reduction* (POPL 2014), algorithm 1. For every reversible
//! race e, e' of a run: if the state before e has no thread to be tried with which the reversed run could begin (an *initial*
//! of what did not need e, and then e'), one is added. Every class is run once; runs may be blocked.
//!
//! Deviations: races are looked for when the run is over, so the rest of the run is known; a state at which an initial is asleep
//! needs nothing, because its runs have been seen from above.

use super::history::{History, initials};
use super::search::Node;

/// States above `free` try everybody anyway.
pub fn update(path: &mut [Node], history: &History<'_>, free: usize) {
    for race in history.races() {
        if race.first < free {
            continue;
        }
        let mut reversed = history.without(race.first, race.second);
        reversed.push(*history.event(race.second));
        let node = &mut path[race.first];
        let initials = initials(&reversed);
        let covered = initials.iter().any(|thread| {
            node.backtrack.contains(thread) || node.asleep.iter().any(|event| event.thread == *thread)
        });
        if !covered && let Some(&thread) = initials.first() {
            node.backtrack.push(thread);
        }
    }
}
