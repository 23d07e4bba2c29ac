//! Explores a model into an explicit machine.
//!
//! Breadth first, states numbered in the order they are found, so the machine is the same in every run.

use rustc_hash::FxHashMap;

use super::combinator::Label;
use super::layout::Key;
use super::machine::{Machine, State};
use super::model::{Emit, Model, with_words};
use super::verdict::CheckError;
use crate::process::EventId;

/// The explicit machine of a model; an error beyond `limit` states, naming `name`, or when `go_on` says so.
pub fn explicate(
    model: &Model,
    name: &str,
    limit: usize,
    room: impl Fn(usize, u64) -> Result<(), CheckError>,
) -> Result<Machine, CheckError> {
    with_words!(model.words(), W => explore::<W>(model, name, limit, &room))
}

fn explore<const W: usize>(
    model: &Model,
    name: &str,
    limit: usize,
    room: &dyn Fn(usize, u64) -> Result<(), CheckError>,
) -> Result<Machine, CheckError> {
    let mut number: FxHashMap<Key<W>, State> = FxHashMap::default();
    let mut order: Vec<Key<W>> = vec![model.initial()];
    number.insert(order[0], 0);
    let mut lists: Vec<Vec<(EventId, State)>> = Vec::new();
    let mut omega = None;
    let mut transitions = 0;
    let mut at = 0;
    while at < order.len() {
        // Twice in the index and once in the list, with the room hash tables keep free.
        let bytes = order.len() * (24 * W + 8) + 40 * lists.len() + 8 * transitions;
        room(order.len(), bytes as u64)?;
        let key = order[at];
        if model.is_terminated(&key) {
            omega = Some(at as State);
        }
        let mut list = Vec::new();
        let mut push = |label: Label, next: &Key<W>, _: u32| {
            let target = *number.entry(*next).or_insert_with(|| {
                order.push(*next);
                (order.len() - 1) as State
            });
            list.push((model.event(label), target));
            false
        };
        model.taus(&key, &mut push as Emit<'_, W>);
        model.visibles(&key, &mut push as Emit<'_, W>);
        if order.len() > limit {
            return Err(CheckError::TooManyStates { name: name.to_string(), limit });
        }
        transitions += list.len();
        lists.push(list);
        at += 1;
    }
    Ok(Machine::reachable(&lists, 0, omega))
}
