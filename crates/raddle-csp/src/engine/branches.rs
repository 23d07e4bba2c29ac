//! Internal choices over parallel systems.
//!
//! `|~| x : S @ (P(x) [| A |] Q(x))` could keep the leaves of all its branches in every state, though only those of the
//! branch taken ever move: `|S|` times as many as needed. But the branches are mostly the same composition of different
//! components. Branches of the same *shape* (the same operators with the same sets and renamings, and leaves at the same
//! places) share their leaves: the machines at one place are put side by side, reduced by strong bisimulation
//! together, and get one more state in which the leaf rests before the choice. The `τ` of the choice takes each leaf from
//! rest to the start of its machine in the branch taken. A state then holds one branch, and branches that come to the
//! same state meet in it.
//!
//! That is right because the rules of a composition depend on its shape and on the events of its leaves only, and a rule
//! for an event that a leaf does not offer never fires.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bisimulation;
use super::combinator::LeafSource;
use super::compile::{Compiler, Leaves};
use super::machine::{Machine, State};
use super::room::{Room, Work};
use super::rules::{self, BRANCHES_MAX, Entry, LeafId, Subtree};
use super::verdict::CheckError;
use crate::process::{EventId, ProcId, Process};

/// One operator of a shape, or something about it.
type Token = (u8, u32, u32);

impl Compiler<'_> {
    /// Builds the branches of an internal choice: one subtree for those of the same shape, and the ways into it.
    pub(super) fn branches(
        &mut self,
        list: &[ProcId],
        leaves: &mut Leaves,
    ) -> Result<Vec<(Subtree, Vec<Entry>)>, CheckError> {
        let mut groups: Vec<Vec<ProcId>> = Vec::new();
        let mut known: FxHashMap<Vec<Token>, usize> = FxHashMap::default();
        for &branch in list {
            let mut shape = Vec::new();
            self.shape(branch, &mut shape)?;
            let fresh = groups.len();
            let group = *known.entry(shape).or_insert(fresh);
            if group == fresh || groups[group].len() >= BRANCHES_MAX {
                groups.push(vec![branch]);
            } else {
                groups[group].push(branch);
            }
        }
        groups.into_iter().map(|group| self.shared(&group, leaves)).collect()
    }

    /// One subtree for branches of the same shape.
    fn shared(
        &mut self,
        branches: &[ProcId],
        leaves: &mut Leaves,
    ) -> Result<(Subtree, Vec<Entry>), CheckError> {
        if let [only] = branches[..] {
            return Ok((self.build(only, leaves)?, vec![Entry::new()]));
        }
        let mut members: Vec<Vec<LeafSource>> = Vec::new();
        for &branch in branches {
            let mut own = Leaves::default();
            self.build(branch, &mut own)?;
            own.sources.retain(|leaf| !leaf.is_controller);
            members.push(own.sources);
        }
        let places = members[0].len();
        debug_assert!(members.iter().all(|m| m.len() == places), "the same shape has the same leaves");
        let (mut names, mut joined) = (Vec::new(), Vec::new());
        let mut entries: Vec<Vec<(usize, EventId)>> = vec![Vec::new(); branches.len()];
        for place in 0..places {
            let at: Vec<&LeafSource> = members.iter().map(|m| &m[place]).collect();
            let room = self.room(Work::Reduce, branches[0]);
            let machine = side_by_side(&at, &room)?;
            joined.push(machine.is_some());
            if machine.is_some() {
                for (branch, entry) in entries.iter_mut().enumerate() {
                    entry.push((place, rules::enter(branch as u32)));
                }
            }
            leaves.given.push_back(machine.map_or_else(|| at[0].machine.clone(), Arc::new));
            let same = at.iter().all(|leaf| leaf.name == at[0].name);
            names.push(if same { at[0].name.clone() } else { format!("{} or another branch", at[0].name) });
        }
        let start = leaves.sources.len();
        let tree = self.build(branches[0], leaves)?;
        debug_assert!(leaves.given.is_empty(), "every machine found its place");
        let mut ids = Vec::new();
        for (number, leaf) in leaves.sources.iter_mut().enumerate().skip(start) {
            if !leaf.is_controller {
                leaf.name.clone_from(&names[ids.len()]);
                if joined[ids.len()] {
                    // It would be that of the first branch.
                    leaf.inside = None;
                }
                ids.push(LeafId(number as u32));
            }
        }
        let entries =
            entries.into_iter().map(|entry| entry.into_iter().map(|(place, e)| (ids[place], e)).collect());
        Ok((tree, entries.collect()))
    }

    /// What the rules of a process depend on beside its leaves, in the order in which they are built.
    fn shape(&mut self, p: ProcId, out: &mut Vec<Token>) -> Result<(), CheckError> {
        if !self.is_high(p)? {
            out.push((0, 0, 0));
            return Ok(());
        }
        let term = self.firing.arena.get(p).clone();
        let below: Vec<ProcId> = match &term {
            Process::Call(call) => vec![self.firing.body(*call)?],
            Process::Interleave(list) => {
                out.push((1, list.len() as u32, 0));
                list.to_vec()
            }
            Process::Parallel(list, set) => {
                out.push((2, list.len() as u32, set.0));
                list.to_vec()
            }
            Process::Alphabetised(list) => {
                out.push((3, list.len() as u32, 0));
                out.extend(list.iter().map(|(_, set)| (3, set.0, 1)));
                list.iter().map(|&(q, _)| q).collect()
            }
            Process::Linked(l, links, r) => {
                out.push((4, links.len() as u32, 0));
                out.extend(links.iter().map(|(a, b)| (4, a.0, b.0)));
                vec![*l, *r]
            }
            Process::Hide(q, set) => {
                out.push((5, set.0, 0));
                vec![*q]
            }
            Process::Project(q, set) => {
                out.push((6, set.0, 0));
                vec![*q]
            }
            Process::Rename(q, renaming) => {
                out.push((7, renaming.0, 0));
                vec![*q]
            }
            Process::Sequence(l, r) => {
                out.push((8, 0, 0));
                vec![*l, *r]
            }
            Process::ExternalChoice(list) => {
                out.push((9, list.len() as u32, 0));
                list.to_vec()
            }
            // Its own branches may share leaves in their own way, so a branch that contains one is like no other.
            Process::InternalChoice(_) => {
                self.unlike += 1;
                out.push((10, self.unlike, 0));
                return Ok(());
            }
            Process::Sliding(l, r) => {
                out.push((11, 0, 0));
                vec![*l, *r]
            }
            Process::SyncChoice(l, set, r) => {
                out.push((12, set.0, 0));
                vec![*l, *r]
            }
            Process::Interrupt(l, r) => {
                out.push((13, 0, 0));
                vec![*l, *r]
            }
            Process::SyncInterrupt(l, set, r) => {
                out.push((14, set.0, 0));
                vec![*l, *r]
            }
            Process::Exception(l, set, r) => {
                out.push((15, set.0, 0));
                vec![*l, *r]
            }
            // Everything else is a leaf.
            _ => {
                out.push((0, 0, 0));
                return Ok(());
            }
        };
        for q in below {
            stacker::maybe_grow(128 << 10, 4 << 20, || self.shape(q, out))?;
        }
        Ok(())
    }
}

/// The machines of the leaves with a state of rest before them; nothing if they are all the same.
fn side_by_side(leaves: &[&LeafSource], room: &Room) -> Result<Option<Machine>, CheckError> {
    let first = &leaves[0].machine;
    if leaves.iter().all(|leaf| Arc::ptr_eq(&leaf.machine, first) || leaf.machine == *first) {
        return Ok(None);
    }
    let states: usize = 2 + leaves.iter().map(|leaf| leaf.machine.len()).sum::<usize>();
    let transitions: usize = leaves.iter().map(|leaf| leaf.machine.transition_count()).sum();
    room.hold(states, (64 * states + 24 * transitions) as u64)?;
    // The state of rest, `Ω` for all, then the machines one after the other.
    const OMEGA_STATE: State = 1;
    let mut lists: Vec<Vec<(EventId, State)>> = vec![Vec::new(), Vec::new()];
    let mut ends = false;
    for (branch, leaf) in leaves.iter().enumerate() {
        let machine = &leaf.machine;
        let base = lists.len() as State;
        let place = |s: State| if machine.omega() == Some(s) { OMEGA_STATE } else { base + s };
        ends |= machine.omega().is_some();
        lists[0].push((rules::enter(branch as u32), place(0)));
        for s in machine.states() {
            lists.push(machine.from(s).iter().map(|&(e, t)| (e, place(t))).collect());
        }
    }
    let omega = ends.then_some(OMEGA_STATE);
    let together = Machine::reachable(&lists, 0, omega);
    drop(lists);
    bisimulation::strong(&together, room).map(Some)
}
