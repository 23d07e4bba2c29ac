//! Counterexamples through compressions.
//!
//! A compressed process is one leaf of a composition, so a counterexample shows only what it did as a whole. What its own
//! components did is found afterwards: a run of the operand with the same events is searched (breadth first over pairs of
//! state and position in the trace, hidden steps free), and split like the counterexample itself, down through further
//! compressions. Compressions keep traces and stable failures, so there is one; where the leaf is stable in the end, one
//! that ends in a stable state which offers nothing the leaf does not offer.

use rustc_hash::FxHashMap;

use super::check::{components, step};
use super::combinator::{Label, TAU};
use super::model::Model;
use super::render::own_events;
use super::verdict::{Inner, Step};
use crate::process::EventId;

/// The most pairs that are looked at; a larger search shows nothing.
const PAIRS_MAX: usize = 400_000;

type State = Box<[u64]>;

/// What the components of a compressed process did in a run with this trace that ends where only `offers` is possible
/// (without `offers`: anywhere).
pub fn components_of(model: &Model, trace: &[EventId], offers: Option<&[EventId]>) -> Vec<Inner> {
    let Some((path, end)) = run(model, trace, offers) else { return Vec::new() };
    let leaves = model.combinator.leaves.iter().filter(|leaf| !leaf.is_controller);
    leaves
        .zip(components(model))
        .enumerate()
        .map(|(i, (leaf, component))| {
            let own = own_events(&path, i);
            let inside = leaf.inside.as_ref().map_or_else(Vec::new, |inner| {
                let state = leaf.field.get(&end);
                stacker::maybe_grow(128 << 10, 4 << 20, || {
                    components_of(inner, &own, offers_of(leaf, state).as_deref())
                })
            });
            Inner { name: component.name, trace: own, inside }
        })
        .collect()
}

/// What a leaf offers in a stable state.
pub fn offers_of(leaf: &super::combinator::Leaf, state: u32) -> Option<Vec<EventId>> {
    let stable = leaf.machine.is_stable(state) && leaf.machine.omega() != Some(state);
    stable.then(|| leaf.machine.from(state).iter().map(|&(e, _)| e).collect())
}

fn run(model: &Model, trace: &[EventId], offers: Option<&[EventId]>) -> Option<(Vec<Step>, State)> {
    let start = (model.start(), 0usize);
    let mut order: Vec<(State, usize)> = vec![start.clone()];
    let mut parents: Vec<(usize, Label, u32)> = vec![(0, TAU, 0)];
    let mut number: FxHashMap<(State, usize), usize> = FxHashMap::from_iter([(start, 0)]);
    let mut any_end = None;
    let mut at = 0;
    while at < order.len() && order.len() < PAIRS_MAX {
        let (state, position) = order[at].clone();
        let successors = model.successors(&state);
        if position == trace.len() {
            any_end.get_or_insert(at);
            let fits = match offers {
                None => true,
                Some(offers) => {
                    let visible = successors.iter().map(|&(label, ..)| model.event(label));
                    let mut visible = visible.peekable();
                    let stable = visible.clone().all(|e| e.is_visible());
                    stable
                        && (visible.peek().is_some() || offers.is_empty())
                        && visible.all(|e| offers.contains(&e))
                }
            };
            if fits {
                return Some((path(model, &parents, at), state));
            }
        }
        for (label, next, rule) in successors {
            let event = model.event(label);
            let after = match event {
                EventId::TAU => position,
                _ if trace.get(position) == Some(&event) => position + 1,
                _ => continue,
            };
            let key = (next, after);
            if !number.contains_key(&key) {
                number.insert(key.clone(), order.len());
                order.push(key);
                parents.push((at, label, rule));
            }
        }
        at += 1;
    }
    let end = any_end?;
    Some((path(model, &parents, end), order[end].0.clone()))
}

fn path(model: &Model, parents: &[(usize, Label, u32)], end: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = end;
    while at != 0 {
        let (parent, label, rule) = parents[at];
        steps.push(step(model, label, rule));
        at = parent;
    }
    steps.reverse();
    steps
}
