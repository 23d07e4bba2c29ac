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
    go_on: impl Fn() -> Result<(), CheckError>,
) -> Result<Machine, CheckError> {
    with_words!(model.words(), W => explore::<W>(model, name, limit, &go_on))
}

fn explore<const W: usize>(
    model: &Model,
    name: &str,
    limit: usize,
    go_on: &dyn Fn() -> Result<(), CheckError>,
) -> Result<Machine, CheckError> {
    let mut number: FxHashMap<Key<W>, State> = FxHashMap::default();
    let mut order: Vec<Key<W>> = vec![model.initial()];
    number.insert(order[0], 0);
    let mut lists: Vec<Vec<(EventId, State)>> = Vec::new();
    let mut omega = None;
    let mut at = 0;
    while at < order.len() {
        go_on()?;
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
        lists.push(list);
        at += 1;
    }
    Ok(Machine::reachable(&lists, 0, omega))
}
