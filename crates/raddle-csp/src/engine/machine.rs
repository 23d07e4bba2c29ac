//! Explicit labelled transition systems: what leaves and compressed processes are compiled to.
//!
//! States are numbers from 0, the initial one is 0. Transitions of a state are sorted by (event, target), so equal
//! machines are equal as data. `Ω`, the state after `✓`, is a state like any other but marked: having no transitions is
//! no deadlock there.

use rustc_hash::FxHashMap;

use super::firing::Firing;
use super::room::{Room, Work};
use super::verdict::CheckError;
use crate::process::{EventId, ProcId, Process};

/// A state of a [`Machine`].
pub type State = u32;

/// An explicit machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    offsets: Vec<u32>,
    transitions: Vec<(EventId, State)>,
    /// The state after `✓`, if it is reachable.
    omega: Option<State>,
}

impl Machine {
    /// Builds the machine whose state `i` has the transitions `lists[i]`; only what is reachable from `initial` stays,
    /// numbered in breadth-first order, so that equal behaviour from equal lists has equal numbers.
    pub fn reachable(lists: &[Vec<(EventId, State)>], initial: State, omega: Option<State>) -> Machine {
        let mut number: FxHashMap<State, State> = FxHashMap::default();
        let mut order = vec![initial];
        number.insert(initial, 0);
        let mut machine = Machine { offsets: vec![0], transitions: Vec::new(), omega: None };
        let mut at = 0;
        while at < order.len() {
            let mut list = lists[order[at] as usize].clone();
            list.sort_unstable();
            list.dedup();
            let start = machine.transitions.len();
            for (event, target) in list {
                let next = *number.entry(target).or_insert_with(|| {
                    order.push(target);
                    (order.len() - 1) as State
                });
                machine.transitions.push((event, next));
            }
            machine.transitions[start..].sort_unstable();
            machine
                .offsets
                .push(u32::try_from(machine.transitions.len()).expect("fewer than 2^32 transitions"));
            at += 1;
        }
        machine.omega = omega.and_then(|o| number.get(&o).copied());
        machine
    }

    /// The machine with exactly these states and numbers, reachable or not. For controllers, whose numbers mean modes.
    pub fn numbered(lists: Vec<Vec<(EventId, State)>>) -> Machine {
        let mut machine = Machine { offsets: vec![0], transitions: Vec::new(), omega: None };
        for mut list in lists {
            list.sort_unstable();
            list.dedup();
            machine.transitions.extend(list);
            machine.offsets.push(machine.transitions.len() as u32);
        }
        machine
    }

    /// Explores a term with the firing rules. `limit` bounds the states.
    pub fn of_term(firing: &mut Firing<'_>, root: ProcId, limit: usize) -> Result<Machine, CheckError> {
        let mut number: FxHashMap<ProcId, State> = FxHashMap::default();
        let mut order = vec![root];
        number.insert(root, 0);
        let mut machine = Machine { offsets: vec![0], transitions: Vec::new(), omega: None };
        let mut at = 0;
        while at < order.len() {
            firing.go_on()?;
            firing.report(root, order.len());
            if at % 64 == 0 {
                // The machine itself, and the numbers of its terms.
                let own = 12 * machine.transitions.len() + 32 * order.len();
                if firing.memory_bytes() + own as u64 > firing.memory_max_bytes {
                    let name = super::describe::term(firing.arena, root);
                    firing.room(Work::Explore, name, None).hold(order.len(), own as u64)?;
                }
            }
            let term = order[at];
            if *firing.arena.get(term) == Process::Omega {
                machine.omega = Some(at as State);
            }
            let start = machine.transitions.len();
            for &(event, target) in firing.transitions(term)?.iter() {
                let next = *number.entry(target).or_insert_with(|| {
                    order.push(target);
                    (order.len() - 1) as State
                });
                machine.transitions.push((event, next));
            }
            machine.transitions[start..].sort_unstable();
            if order.len() > limit {
                return Err(CheckError::TooManyStates {
                    name: super::describe::term(firing.arena, root),
                    limit,
                });
            }
            machine
                .offsets
                .push(u32::try_from(machine.transitions.len()).expect("fewer than 2^32 transitions"));
            at += 1;
        }
        Ok(machine)
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// A machine has at least its initial state.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn states(&self) -> impl Iterator<Item = State> + use<> {
        0..self.len() as State
    }

    /// Transitions of a state, sorted.
    pub fn from(&self, state: State) -> &[(EventId, State)] {
        &self.transitions[self.offsets[state as usize] as usize..self.offsets[state as usize + 1] as usize]
    }

    /// Targets of `state` under `event`.
    pub fn after(&self, state: State, event: EventId) -> &[(EventId, State)] {
        let list = self.from(state);
        let start = list.partition_point(|&(e, _)| e < event);
        let end = start + list[start..].partition_point(|&(e, _)| e == event);
        &list[start..end]
    }

    pub fn transition_count(&self) -> usize {
        self.transitions.len()
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> u64 {
        (4 * self.offsets.len() + 8 * self.transitions.len()) as u64
    }

    /// An error unless there is room for a quotient of this machine: the lists of its blocks, and the new machine with
    /// the numbers of its states.
    pub fn room_for_quotient(&self, room: &Room) -> Result<(), CheckError> {
        room.hold(self.len(), (60 * self.len() + 32 * self.transitions.len()) as u64)
    }

    pub fn omega(&self) -> Option<State> {
        self.omega
    }

    /// All labels used, sorted.
    pub fn alphabet(&self) -> Vec<EventId> {
        let mut events: Vec<_> = self.transitions.iter().map(|&(e, _)| e).collect();
        events.sort_unstable();
        events.dedup();
        events
    }

    /// No `τ` and no `✓`: only such states have refusals of their own.
    pub fn is_stable(&self, state: State) -> bool {
        self.from(state).first().is_none_or(|&(e, _)| e.is_visible())
    }

    /// The quotient: state `s` goes to block `block[s]`. `keep_loop(b)`: whether a `τ` from block `b` to itself stays.
    pub fn quotient(&self, block: &[u32], blocks: usize, keep_loop: impl Fn(u32) -> bool) -> Machine {
        let mut lists: Vec<Vec<(EventId, State)>> = vec![Vec::new(); blocks];
        for s in self.states() {
            let from = block[s as usize];
            for &(e, t) in self.from(s) {
                let to = block[t as usize];
                if e != EventId::TAU || from != to || keep_loop(from) {
                    lists[from as usize].push((e, to));
                }
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        Machine::reachable(&lists, block[0], self.omega.map(|o| block[o as usize]))
    }

    /// The transition lists, to be changed by a compression.
    pub fn lists(&self) -> Vec<Vec<(EventId, State)>> {
        self.states().map(|s| self.from(s).to_vec()).collect()
    }
}
