//! Explores a model into an explicit machine.
//!
//! Breadth first, states numbered in the order they are found, so the machine is the same in every run.

use rustc_hash::FxHashMap;

use super::combinator::Label;
use super::layout::Key;
use super::machine::{Machine, State};
use super::model::{Emit, Model, with_words};
use super::room::Room;
use super::verdict::CheckError;
use crate::process::EventId;

/// The explicit machine of a model; an error beyond `limit` states or without room.
pub fn explicate(model: &Model, limit: usize, room: &Room) -> Result<Machine, CheckError> {
    with_words!(model.words(), W => explore::<W>(model, limit, room))
}

fn explore<const W: usize>(model: &Model, limit: usize, room: &Room) -> Result<Machine, CheckError> {
    let mut number: FxHashMap<Key<W>, State> = FxHashMap::default();
    let mut order: Vec<Key<W>> = vec![model.initial()];
    number.insert(order[0], 0);
    let mut lists: Vec<Vec<(EventId, State)>> = Vec::new();
    let mut omega = None;
    let mut transitions = 0;
    let mut at = 0;
    while at < order.len() {
        // In the index, with the room hash tables keep free, and in the list, with the room vectors do.
        let bytes = order.len() * (40 * W + 8) + 40 * lists.len() + 8 * transitions;
        room.hold(order.len(), bytes as u64)?;
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
            return Err(CheckError::TooManyStates { name: room.name.clone(), limit });
        }
        transitions += list.len();
        lists.push(list);
        at += 1;
    }
    drop((number, order));
    // The lists and the machine made of them.
    room.hold(lists.len(), (64 * lists.len() + 24 * transitions) as u64)?;
    Ok(Machine::reachable(&lists, 0, omega))
}
