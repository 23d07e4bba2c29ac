//! Compressions of explicit machines.
//!
//! Each takes a machine to one with the same traces, failures and divergences; the tests hold them to the oracle.
//!
//! * `tau_loop_factor`: the strongly connected components of `τ` become single states. States on a common `τ` loop
//!   reach the same states invisibly, so merging them changes nothing; a component with a loop keeps a `τ` to itself,
//!   which is its divergence.
//! * `diamond`: `τ` elimination. An unstable state takes over the visible transitions of everything it reaches by `τ`,
//!   and keeps `τ`s only to those stable states among them whose offers are minimal, since only those contribute
//!   refusals (larger offers refuse less). Divergence stays as a self-loop.
//! * `normal`: the subset construction with minimal acceptances (Roscoe 2010, 16.1), written back as a plain machine:
//!   a node with its visible transitions and a `τ` to one stable state for each minimal acceptance.
//!
//! Roscoe's signal semantics of `✓` shows in two places: a state that can do `✓` is not stable, and contributes the
//! acceptance `{✓}`, which its own `✓` transition already expresses.

use rustc_hash::FxHashMap;

use super::bisimulation;
use super::machine::{Machine, State};
use super::room::Room;
use super::verdict::CheckError;
use crate::process::{Compression, EventId};

/// Applies a compression; an error when it outgrows its room, or a normal form with more than `limit` nodes.
pub fn compress(
    how: Compression,
    machine: Machine,
    limit: usize,
    room: &Room,
) -> Result<Machine, CheckError> {
    let room = room.beside(machine.bytes());
    match how {
        Compression::Explicate => Ok(machine),
        Compression::StrongBisimulation => bisimulation::strong(&machine, &room),
        Compression::WeakBisimulation => bisimulation::weak(&machine, &room),
        Compression::DelayBisimulation => bisimulation::delay(&machine, &room),
        Compression::TauLoopFactor => tau_loop_factor(&machine, &room),
        Compression::Diamond => diamond(&machine, &room),
        Compression::Normal => normal(&machine, limit, &room),
    }
}

/// What each state reaches by `τ*`, itself included, sorted.
pub struct TauClosure {
    sets: Vec<Vec<State>>,
    members: usize,
}

impl TauClosure {
    pub fn of(machine: &Machine, room: &Room) -> Result<TauClosure, CheckError> {
        let mut sets = Vec::with_capacity(machine.len());
        let mut members = 0;
        let mut mark = vec![State::MAX; machine.len()];
        for s in machine.states() {
            let mut set = vec![s];
            mark[s as usize] = s;
            let mut at = 0;
            while at < set.len() {
                for &(_, t) in machine.after(set[at], EventId::TAU) {
                    if mark[t as usize] != s {
                        mark[t as usize] = s;
                        set.push(t);
                    }
                }
                at += 1;
            }
            set.sort_unstable();
            set.shrink_to_fit();
            members += set.len();
            // The sets, the marks, and what the next set may become while it is made.
            room.hold(machine.len(), (40 * machine.len() + 4 * members) as u64)?;
            sets.push(set);
        }
        Ok(TauClosure { sets, members })
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> u64 {
        (32 * self.sets.len() + 4 * self.members) as u64
    }

    pub fn of_state(&self, s: State) -> &[State] {
        &self.sets[s as usize]
    }
}

/// Merges `τ` loops.
pub fn tau_loop_factor(machine: &Machine, room: &Room) -> Result<Machine, CheckError> {
    room.hold(machine.len(), 40 * machine.len() as u64)?;
    machine.room_for_quotient(room)?;
    let (component, count) = tau_components(machine);
    let mut looping = vec![false; count];
    let mut size = vec![0u32; count];
    for s in machine.states() {
        let c = component[s as usize] as usize;
        size[c] += 1;
        looping[c] |= size[c] > 1 || machine.after(s, EventId::TAU).iter().any(|&(_, t)| t == s);
    }
    Ok(machine.quotient(&component, count, |c| looping[c as usize]))
}

/// Strongly connected components of the `τ` graph: (component of each state, number of them). Tarjan, iterative.
pub fn tau_components(machine: &Machine) -> (Vec<u32>, usize) {
    const UNSEEN: u32 = u32::MAX;
    let n = machine.len();
    let mut index = vec![UNSEEN; n];
    let mut low = vec![0u32; n];
    let mut component = vec![UNSEEN; n];
    let mut stack: Vec<State> = Vec::new();
    let mut next_index = 0;
    let mut count = 0;
    let mut work: Vec<(State, usize)> = Vec::new();
    for root in machine.states() {
        if index[root as usize] != UNSEEN {
            continue;
        }
        work.push((root, 0));
        while let Some(&mut (s, ref mut edge)) = work.last_mut() {
            if *edge == 0 && index[s as usize] == UNSEEN {
                index[s as usize] = next_index;
                low[s as usize] = next_index;
                next_index += 1;
                stack.push(s);
            }
            let edges = machine.after(s, EventId::TAU);
            if let Some(&(_, t)) = edges.get(*edge) {
                *edge += 1;
                if index[t as usize] == UNSEEN {
                    work.push((t, 0));
                } else if component[t as usize] == UNSEEN {
                    low[s as usize] = low[s as usize].min(index[t as usize]);
                }
                continue;
            }
            if low[s as usize] == index[s as usize] {
                loop {
                    let member = stack.pop().expect("the root of a component is on the stack");
                    component[member as usize] = count;
                    if member == s {
                        break;
                    }
                }
                count += 1;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent as usize] = low[parent as usize].min(low[s as usize]);
            }
        }
    }
    (component, count as usize)
}

/// `τ` elimination.
pub fn diamond(machine: &Machine, room: &Room) -> Result<Machine, CheckError> {
    let machine = tau_loop_factor(machine, room)?;
    let room = room.beside(machine.bytes());
    let closure = TauClosure::of(&machine, &room)?;
    let mut lists: Vec<Vec<(EventId, State)>> = Vec::with_capacity(machine.len());
    let mut transitions = 0;
    for s in machine.states() {
        if machine.after(s, EventId::TAU).is_empty() {
            transitions += machine.from(s).len();
            lists.push(machine.from(s).to_vec());
            continue;
        }
        let reach = closure.of_state(s);
        let mut list: Vec<(EventId, State)> = Vec::new();
        let mut diverges = false;
        let mut stable: Vec<(Vec<EventId>, State)> = Vec::new();
        for &u in reach {
            let bytes = 16 * list.len() + 64 * stable.len() + 24 * machine.len() + 8 * transitions;
            room.hold(machine.len(), closure.bytes() + bytes as u64)?;
            list.extend(machine.from(u).iter().filter(|&&(e, _)| e != EventId::TAU));
            diverges |= machine.after(u, EventId::TAU).iter().any(|&(_, t)| t == u);
            if machine.is_stable(u) {
                stable.push((offers(&machine, u), u));
            }
        }
        stable.sort_unstable();
        for (i, (offer, u)) in stable.iter().enumerate() {
            let beaten = stable.iter().enumerate().any(|(j, (other, _))| {
                j != i && is_subset(other, offer) && (other.len() < offer.len() || j < i)
            });
            if !beaten {
                list.push((EventId::TAU, *u));
            }
        }
        if diverges {
            list.push((EventId::TAU, s));
        }
        list.sort_unstable();
        list.dedup();
        list.shrink_to_fit();
        transitions += list.len();
        lists.push(list);
    }
    drop(closure);
    // A state that is the only minimal one and has all the transitions could stand for the unstable one; strong
    // bisimulation afterwards finds what remains to merge.
    let listed = listed(&lists, 0, machine.omega(), &room)?;
    drop(lists);
    let room = room.beside(listed.bytes());
    bisimulation::strong(&listed, &room)
}

/// The machine of these lists.
fn listed(
    lists: &[Vec<(EventId, State)>],
    initial: State,
    omega: Option<State>,
    room: &Room,
) -> Result<Machine, CheckError> {
    let transitions: usize = lists.iter().map(Vec::len).sum();
    room.hold(lists.len(), (64 * lists.len() + 24 * transitions) as u64)?;
    Ok(Machine::reachable(lists, initial, omega))
}

fn offers(machine: &Machine, s: State) -> Vec<EventId> {
    let mut list: Vec<_> = machine.from(s).iter().map(|&(e, _)| e).collect();
    list.dedup();
    list
}

/// Both sorted.
pub fn is_subset<T: Ord>(small: &[T], large: &[T]) -> bool {
    let mut rest = large;
    small.iter().all(|x| match rest.binary_search(x) {
        Ok(i) => {
            rest = &rest[i + 1..];
            true
        }
        Err(_) => false,
    })
}

/// Keeps the sets of which no other is a subset, sorted, each once.
pub fn minimal_sets<T: Ord>(mut sets: Vec<Vec<T>>) -> Vec<Vec<T>> {
    sets.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    sets.dedup();
    let mut kept: Vec<Vec<T>> = Vec::new();
    for set in sets {
        if !kept.iter().any(|k| is_subset(k, &set)) {
            kept.push(set);
        }
    }
    kept
}

/// The normal form as a plain machine.
pub fn normal(machine: &Machine, limit: usize, room: &Room) -> Result<Machine, CheckError> {
    room.hold(machine.len(), 40 * machine.len() as u64)?;
    let (component, _) = tau_components(machine);
    let mut component_size: FxHashMap<u32, u32> = FxHashMap::default();
    for &c in &component {
        *component_size.entry(c).or_insert(0) += 1;
    }
    let on_loop = |s: State| {
        component_size[&component[s as usize]] > 1
            || machine.after(s, EventId::TAU).iter().any(|&(_, t)| t == s)
    };
    let close = |mut set: Vec<State>| {
        let mut seen: rustc_hash::FxHashSet<State> = set.iter().copied().collect();
        let mut at = 0;
        while at < set.len() {
            for &(_, t) in machine.after(set[at], EventId::TAU) {
                if seen.insert(t) {
                    set.push(t);
                }
            }
            at += 1;
        }
        set.sort_unstable();
        set.dedup();
        set
    };
    let mut number: FxHashMap<Vec<State>, State> = FxHashMap::default();
    let mut nodes: Vec<Vec<State>> = vec![close(vec![0])];
    number.insert(nodes[0].clone(), 0);
    // Nodes are numbered 0.. while they are found; acceptance states are appended after all nodes are known.
    let mut node_lists: Vec<Vec<(EventId, State)>> = Vec::new();
    let mut extra: Vec<(State, Vec<Vec<EventId>>, bool)> = Vec::new();
    let mut omega = None;
    // Members of the nodes, transitions, and what acceptances take.
    let (mut members, mut transitions, mut accepted) = (nodes[0].len(), 0, 0);
    let mut at = 0;
    while at < nodes.len() {
        if nodes.len() > limit {
            let name = format!("the normal form of {}", room.name);
            return Err(CheckError::TooManyStates { name, limit });
        }
        let node = nodes[at].clone();
        let mut by_event: FxHashMap<EventId, Vec<State>> = FxHashMap::default();
        for &s in &node {
            for &(e, t) in machine.from(s).iter().filter(|&&(e, _)| e != EventId::TAU) {
                by_event.entry(e).or_default().push(t);
            }
        }
        let mut events: Vec<_> = by_event.into_iter().collect();
        events.sort_unstable_by_key(|&(e, _)| e);
        let mut list = Vec::new();
        for (e, targets) in events {
            let mut set = close(targets);
            set.shrink_to_fit();
            // Each set is the key of a table and a node; it was made with marks of its members.
            let bytes = 210 * nodes.len() + 8 * members + 48 * set.len() + 16 * transitions + accepted;
            room.hold(nodes.len(), bytes as u64)?;
            let next = *number.entry(set.clone()).or_insert_with(|| {
                members += set.len();
                nodes.push(set);
                (nodes.len() - 1) as State
            });
            list.push((e, next));
        }
        transitions += list.len();
        if node.len() == 1 && machine.omega() == Some(node[0]) {
            omega = Some(at as State);
        }
        let stable: Vec<_> =
            node.iter().filter(|&&s| machine.is_stable(s)).map(|&s| offers(machine, s)).collect();
        let acceptances = minimal_sets(stable);
        accepted += acceptances.iter().map(|a| 40 + 20 * a.len()).sum::<usize>();
        extra.push((at as State, acceptances, node.iter().any(|&s| on_loop(s))));
        node_lists.push(list);
        at += 1;
    }
    drop((number, nodes));
    for (node, acceptances, diverges) in extra {
        let own: Vec<EventId> = node_lists[node as usize].iter().map(|&(e, _)| e).collect();
        let plain = !diverges && acceptances.len() == 1 && acceptances[0] == own;
        if plain {
            continue;
        }
        for acceptance in &acceptances {
            let list =
                node_lists[node as usize].iter().filter(|(e, _)| acceptance.contains(e)).copied().collect();
            let state = node_lists.len() as State;
            node_lists.push(list);
            node_lists[node as usize].push((EventId::TAU, state));
        }
        if diverges {
            node_lists[node as usize].push((EventId::TAU, node));
        }
    }
    let listed = listed(&node_lists, 0, omega, room)?;
    drop(node_lists);
    let room = room.beside(listed.bytes());
    bisimulation::strong(&listed, &room)
}
