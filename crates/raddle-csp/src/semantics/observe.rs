//! Behaviours read off a transition system, by their definition: follow every path.

use std::hash::Hash;

use rustc_hash::FxHashSet;

use super::denotation::{Denotation, Traces, refusals};
use crate::engine::firing::Firing;
use crate::engine::machine::Machine;
use crate::engine::verdict::CheckError;
use crate::process::{EventId, ProcId};

/// Anything with states and labelled transitions.
pub trait Transitions {
    type State: Clone + Eq + Hash;
    fn moves(&mut self, state: &Self::State) -> Result<Vec<(EventId, Self::State)>, CheckError>;
}

impl Transitions for Firing<'_> {
    type State = ProcId;

    fn moves(&mut self, state: &ProcId) -> Result<Vec<(EventId, ProcId)>, CheckError> {
        Ok(self.transitions(*state)?.to_vec())
    }
}

impl Transitions for Machine {
    type State = u32;

    fn moves(&mut self, state: &u32) -> Result<Vec<(EventId, u32)>, CheckError> {
        Ok(self.from(*state).to_vec())
    }
}

/// The denotation of a transition system from a state. `alphabet[i]` is event `i` of the denotation.
pub fn observe<T: Transitions>(
    system: &mut T,
    root: T::State,
    alphabet: &[EventId],
    length: usize,
) -> Result<Denotation, CheckError> {
    let space = Traces { events: alphabet.len(), length };
    let mut result = Denotation::nothing(space);
    let mut todo: Vec<(Vec<u8>, T::State)> = vec![(Vec::new(), root)];
    let mut seen: FxHashSet<(Vec<u8>, T::State)> = todo.iter().cloned().collect();
    while let Some((trace, state)) = todo.pop() {
        let n = space.number(&trace);
        result.traces[n] = true;
        let moves = system.moves(&state)?;
        if moves.iter().all(|(e, _)| e.is_visible()) {
            let offered = |i: usize| moves.iter().any(|&(e, _)| e == alphabet[i]);
            result.failures[n] |=
                refusals(space.events, |x| (0..space.events).all(|i| x & 1 << i == 0 || !offered(i)));
        }
        result.divergences[n] |= reaches_itself_by_tau(system, &state)?;
        for (event, next) in moves {
            let mut longer = trace.clone();
            match event {
                EventId::TAU => {}
                EventId::TICK => {
                    result.ticks[n] = true;
                    continue;
                }
                _ => {
                    longer.push(
                        alphabet.iter().position(|&a| a == event).expect("events of the alphabet") as u8
                    );
                    if longer.len() > length {
                        result.truncated = true;
                        continue;
                    }
                }
            }
            if seen.insert((longer.clone(), next.clone())) {
                todo.push((longer, next));
            }
        }
    }
    Ok(result.closed())
}

pub(super) fn reaches_itself_by_tau<T: Transitions>(
    system: &mut T,
    state: &T::State,
) -> Result<bool, CheckError> {
    let mut seen: FxHashSet<T::State> = FxHashSet::default();
    let mut todo = vec![state.clone()];
    while let Some(at) = todo.pop() {
        for (event, next) in system.moves(&at)? {
            if event != EventId::TAU {
                continue;
            }
            if next == *state {
                return Ok(true);
            }
            if seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    Ok(false)
}
