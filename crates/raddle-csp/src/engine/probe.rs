//! Deadlocks early: a directed look ahead of the breadth-first search.
//!
//! A search by plies meets a deadlock that needs `n` events only after everything that needs fewer, which for a ring of
//! processes that block each other is nearly every state. The way to a deadlock leads through states in which less and
//! less is possible, so a second search takes the state with the fewest steps first, the youngest among equals (greedy
//! best-first search; Edelkamp, Leue and Lluch-Lafuente, "Directed explicit-state model checking", 2004, use the same
//! measure, the number of enabled transitions). That makes it depth first as long as nothing gets freer.
//!
//! It runs beside the breadth-first search: when that one has found [`FIRST_PAIRS`] pairs, and then four times as many, and
//! so on, the probe goes on where it stopped, until it has looked at some thousand states and a small part of as many as
//! have been found so far. So a check that holds takes a hundredth longer, small models keep their shortest counterexample,
//! and the answer does not depend on the number of workers or on time. [`super::CheckOptions::shortest`] turns it off.
//!
//! What it finds is a deadlock with the path to it; when it finds none, that says nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashSet;

use super::combinator::{Label, TAU};
use super::layout::Key;
use super::model::{Emit, Model};
use super::verdict::CheckError;
use super::witness::Taken;

/// Pairs of the breadth-first search before the first probe.
pub const FIRST_PAIRS: u64 = 50_000;
/// Times as many pairs before the probe goes on.
const GROWTH: u64 = 4;
/// States a probe may look at: this many, and one for each so many pairs.
const STATES: u64 = 6_000;
const PAIRS_PER_STATE: u64 = 256;
/// The most bytes a probe holds for its states.
const BYTES_MAX: usize = 512 << 20;

/// A state, and the step it was first reached by.
struct Seen<const W: usize> {
    key: Key<W>,
    from: u32,
    label: Label,
    rule: u32,
}

/// How far a directed search has come.
pub struct Probe<const W: usize> {
    states: Vec<Seen<W>>,
    known: FxHashSet<Key<W>>,
    open: BinaryHeap<(Reverse<u32>, u32)>,
    /// Pairs of the breadth-first search before it goes on.
    next_pairs: u64,
}

/// Steps that are possible in a state: all, and those that are seen from outside.
fn steps<const W: usize>(model: &Model, key: &Key<W>) -> u32 {
    let mut count = 0;
    let mut note = |_: Label, _: &Key<W>, _: u32| {
        count += 1;
        false
    };
    model.taus(key, &mut note as Emit<'_, W>);
    model.visibles(key, &mut note as Emit<'_, W>);
    count
}

impl<const W: usize> Probe<W> {
    pub fn new(model: &Model) -> Probe<W> {
        let initial: Key<W> = model.initial();
        Probe {
            states: vec![Seen { key: initial, from: 0, label: TAU, rule: 0 }],
            known: FxHashSet::from_iter([initial]),
            open: BinaryHeap::from([(Reverse(0), 0)]),
            next_pairs: FIRST_PAIRS,
        }
    }

    /// Looks ahead of a search that has found so many pairs, if it is time; the path to a deadlock, if it met one.
    pub fn go_on(
        &mut self,
        model: &Model,
        pairs: u64,
        cancel: Option<&AtomicBool>,
    ) -> Result<Option<Vec<Taken<W>>>, CheckError> {
        if pairs < self.next_pairs {
            return Ok(None);
        }
        self.next_pairs = (self.next_pairs * GROWTH).max(pairs);
        let states_max = STATES + pairs / PAIRS_PER_STATE;
        // A state stands in the list, in the set (with the room it keeps free) and in the heap.
        let states_max = usize::try_from(states_max).unwrap_or(usize::MAX).min(BYTES_MAX / (24 * W + 40));
        let mut rounds = 0u32;
        while self.states.len() < states_max {
            let Some((_, at)) = self.open.pop() else { break };
            rounds += 1;
            if rounds.is_multiple_of(1024) && cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                return Err(CheckError::Cancelled);
            }
            if let Some(end) = self.expand(model, at) {
                return Ok(Some(path(&self.states, end)));
            }
        }
        Ok(None)
    }

    /// Adds the new states after one of them; a deadlock, if that is among them.
    fn expand(&mut self, model: &Model, at: u32) -> Option<u32> {
        let key = self.states[at as usize].key;
        let mut found: Vec<(Label, Key<W>, u32)> = Vec::new();
        let mut push = |label: Label, next: &Key<W>, rule: u32| {
            found.push((label, *next, rule));
            false
        };
        model.taus(&key, &mut push as Emit<'_, W>);
        model.visibles(&key, &mut push as Emit<'_, W>);
        for (label, next, rule) in found {
            if !self.known.insert(next) {
                continue;
            }
            let number = self.states.len() as u32;
            self.states.push(Seen { key: next, from: at, label, rule });
            let possible = steps(model, &next);
            if possible == 0 && !model.is_terminated(&next) {
                return Some(number);
            }
            self.open.push((Reverse(possible), number));
        }
        None
    }
}

fn path<const W: usize>(states: &[Seen<W>], end: u32) -> Vec<Taken<W>> {
    let mut steps = Vec::new();
    let mut at = end;
    while at != 0 {
        let seen = &states[at as usize];
        steps.push(Taken { label: seen.label, rule: seen.rule, to: seen.key });
        at = seen.from;
    }
    steps.reverse();
    steps
}
