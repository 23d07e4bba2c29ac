//! Determinism, by the normal form.
//!
//! A process is deterministic if no event it can do after a trace can also be refused after it (and, in `FD`, it does not
//! diverge). In the normal form that is a property of each node: every minimal acceptance must be the whole set of
//! events the node allows. Nodes are visited breadth first, so the trace found is shortest. FDR instead refines a
//! determinised copy of the process (Lazić 1999), which avoids large subsets for processes with much hidden concurrency;
//! here such processes cost their `τ`-closures.

use rustc_hash::{FxHashMap, FxHashSet};

use super::combinator::{Label, TAU, TICK};
use super::model::Model;
use super::normal::{NodeId, NormalForm};
use super::room::Room;
use super::verdict::CheckError;
use crate::process::EventId;

/// Why a process is not deterministic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// The event is possible and refused by a state that offers only the given events.
    Choice {
        event: EventId,
        offers: Vec<EventId>,
    },
    Divergence,
}

/// Flaws with the traces they come after.
pub type Flaws = Vec<(Vec<EventId>, Flaw)>;
/// A packed vector whose size is known only at run time.
type State = Box<[u64]>;

/// The flaws found, shortest trace first, at most `wanted`, and the number of nodes visited.
pub fn flaws(
    model: &Model,
    with_divergence: bool,
    wanted: usize,
    nodes_max: usize,
    room: Room,
) -> Result<(Flaws, usize), CheckError> {
    let mut form = NormalForm::new(model, &model.labels, nodes_max, room)?;
    let mut parent: FxHashMap<NodeId, (NodeId, EventId)> = FxHashMap::default();
    let mut seen: FxHashSet<NodeId> = FxHashSet::from_iter([0]);
    let mut order: Vec<NodeId> = vec![0];
    let mut found: Flaws = Vec::new();
    let mut at = 0;
    while at < order.len() && found.len() < wanted {
        let id = order[at];
        at += 1;
        let node = form.node(id)?;
        let trace = || {
            let mut events = Vec::new();
            let mut back = id;
            while let Some(&(from, event)) = parent.get(&back) {
                events.push(event);
                back = from;
            }
            events.reverse();
            events
        };
        if with_divergence && node.diverges {
            found.push((trace(), Flaw::Divergence));
            continue;
        }
        for offers in &node.required {
            if let Some(&event) = node.allowed.iter().find(|e| !offers.contains(e)) {
                let known = |f: &Flaw| matches!(f, Flaw::Choice { event: e, .. } if *e == event);
                if !found.iter().any(|(_, f)| known(f)) {
                    found.push((trace(), Flaw::Choice { event, offers: offers.clone() }));
                }
            }
        }
        for &(event, next) in &node.all {
            if seen.insert(next) {
                parent.insert(next, (id, event));
                order.push(next);
            }
        }
    }
    found.truncate(wanted);
    Ok((found, form.len()))
}

/// One step of a concrete run: label, next vector, rule.
pub type RunStep = (Label, Box<[u64]>, u32);

/// A run of the model with the given trace that ends in a state for which `goal` holds; fewest steps.
pub fn run_for(
    model: &Model,
    trace: &[EventId],
    mut goal: impl FnMut(&[u64]) -> bool,
) -> Option<(Vec<RunStep>, Box<[u64]>)> {
    type Place = (usize, Box<[u64]>);
    let start: Place = (0, model.start());
    let mut parent: FxHashMap<Place, (Place, Label, u32)> = FxHashMap::default();
    let mut queue = std::collections::VecDeque::from([start.clone()]);
    while let Some(place) = queue.pop_front() {
        if place.0 == trace.len() && goal(&place.1) {
            let end = place.1.clone();
            let mut steps = Vec::new();
            let mut back = place;
            while let Some((from, label, rule)) = parent.get(&back) {
                steps.push((*label, back.1.clone(), *rule));
                back = from.clone();
            }
            steps.reverse();
            return Some((steps, end));
        }
        for (label, next, rule) in model.successors(&place.1) {
            let position = match label {
                TAU => place.0,
                _ if trace.get(place.0) == Some(&model.event(label)) => place.0 + 1,
                _ => continue,
            };
            let to = (position, next);
            if to != start && !parent.contains_key(&to) {
                parent.insert(to.clone(), (place.clone(), label, rule));
                queue.push_back(to);
            }
        }
    }
    None
}

/// Whether a state is the one a minimal acceptance came from: stable with just these offers, or able to terminate.
pub fn accepts_only(model: &Model, key: &[u64], offers: &[EventId]) -> bool {
    let list = model.successors(key);
    if offers == [EventId::TICK] {
        return list.iter().any(|&(l, ..)| l == TICK);
    }
    let mut own: Vec<EventId> = list.iter().map(|&(l, ..)| model.event(l)).collect();
    own.sort_unstable();
    own.dedup();
    let mut wanted = offers.to_vec();
    wanted.sort_unstable();
    own == wanted
}

/// A `τ` loop through the state, if it lies on one.
pub fn loop_through(model: &Model, key: &[u64]) -> Option<Vec<RunStep>> {
    let mut parent: FxHashMap<State, (State, u32)> = FxHashMap::default();
    let mut queue = std::collections::VecDeque::from([Box::<[u64]>::from(key)]);
    while let Some(at) = queue.pop_front() {
        for (label, next, rule) in model.successors(&at) {
            if label != TAU {
                continue;
            }
            if *next == *key {
                let mut steps = vec![(TAU, next, rule)];
                let mut back = at;
                while let Some((from, rule)) = parent.get(&back) {
                    steps.push((TAU, back.clone(), *rule));
                    back = from.clone();
                }
                steps.reverse();
                return Some(steps);
            }
            if !parent.contains_key(&next) {
                parent.insert(next.clone(), (at.clone(), rule));
                queue.push_back(next);
            }
        }
    }
    None
}
