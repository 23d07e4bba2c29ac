//! Partition refinement: the coarsest strong bisimulation, and through saturation the weak and delay ones.
//!
//! Strong bisimulation refines by signatures (the set of (event, block of target) of a state), but only where something
//! changed: when a block is split its largest part keeps the number, so a state changes its number at most `log n`
//! times, and only predecessors of changed states are looked at again. That is the "process the smaller half" argument
//! of Hopcroft and of Paige and Tarjan (1987) and gives `O(m log n)` signature work; the plain iteration would need a
//! round per state on the long chains that come from recorded traces.
//!
//! Weak bisimulation is strong bisimulation of the machine saturated with `τ* a τ*` (delay: `τ* a`), after the `τ`
//! loops are factored out, with divergence as one more observation (Boulgakov, Gibson-Robinson, Roscoe, "Computing
//! maximal weak and other bisimulations", 2016). With divergence observed both preserve `T`, `F` and `FD`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::compress::{TauClosure, tau_loop_factor};
use super::machine::{Machine, State};
use super::room::Room;
use super::verdict::CheckError;
use crate::process::EventId;

/// Quotient by strong bisimulation. `Ω` is distinguished from `STOP`.
pub fn strong(machine: &Machine, room: &Room) -> Result<Machine, CheckError> {
    room_to_refine(machine.len(), machine.transition_count(), room)?;
    let initial: Vec<u32> = machine.states().map(|s| u32::from(machine.omega() == Some(s))).collect();
    let lists: Vec<&[(EventId, State)]> = machine.states().map(|s| machine.from(s)).collect();
    let (block, blocks) = refine(&lists, initial);
    drop(lists);
    machine.room_for_quotient(room)?;
    Ok(machine.quotient(&block, blocks, |_| true))
}

/// What refinement holds at most: predecessors, blocks, positions and, in the first round, the signatures of all states.
fn room_to_refine(states: usize, transitions: usize, room: &Room) -> Result<(), CheckError> {
    room.hold(states, (128 * states + 16 * transitions) as u64)
}

/// Quotient by divergence-respecting delay bisimulation.
pub fn delay(machine: &Machine, room: &Room) -> Result<Machine, CheckError> {
    saturated(machine, false, room)
}

/// Quotient by divergence-respecting weak bisimulation.
pub fn weak(machine: &Machine, room: &Room) -> Result<Machine, CheckError> {
    saturated(machine, true, room)
}

fn saturated(machine: &Machine, after_too: bool, room: &Room) -> Result<Machine, CheckError> {
    let machine = tau_loop_factor(machine, room)?;
    let room = room.beside(machine.bytes());
    let closure = TauClosure::of(&machine, &room)?;
    let mut lists: Vec<Vec<(EventId, State)>> = Vec::with_capacity(machine.len());
    let mut transitions = 0;
    for s in machine.states() {
        let mut set: FxHashSet<(EventId, State)> = FxHashSet::default();
        for &u in closure.of_state(s) {
            // The set with its free slots, the list made of it, and the lists so far.
            let bytes = closure.bytes() + (48 * set.len() + 24 * machine.len() + 8 * transitions) as u64;
            room.hold(machine.len(), bytes)?;
            set.insert((EventId::TAU, u));
            for &(e, t) in machine.from(u).iter().filter(|&&(e, _)| e != EventId::TAU) {
                if after_too {
                    set.extend(closure.of_state(t).iter().map(|&v| (e, v)));
                } else {
                    set.insert((e, t));
                }
            }
        }
        let mut list: Vec<_> = set.into_iter().collect();
        list.sort_unstable();
        transitions += list.len();
        lists.push(list);
    }
    drop(closure);
    let room = room.beside((40 * lists.len() + 8 * transitions) as u64);
    room_to_refine(lists.len(), transitions, &room)?;
    // After factoring, a `τ` loop is a self-loop: exactly the divergent states have one. `Ω` is not `STOP`.
    let diverges: Vec<bool> =
        machine.states().map(|s| machine.after(s, EventId::TAU).iter().any(|&(_, t)| t == s)).collect();
    let initial = machine
        .states()
        .map(|s| if machine.omega() == Some(s) { 2 } else { u32::from(diverges[s as usize]) })
        .collect();
    let slices: Vec<&[(EventId, State)]> = lists.iter().map(|l| &l[..]).collect();
    let (block, blocks) = refine(&slices, initial);
    let mut keep = vec![false; blocks];
    for s in machine.states() {
        keep[block[s as usize] as usize] |= diverges[s as usize];
    }
    machine.room_for_quotient(&room)?;
    Ok(machine.quotient(&block, blocks, |b| keep[b as usize]))
}

/// The coarsest stable refinement of `initial` (a block number per state): (block of each state, number of blocks).
pub fn refine(lists: &[&[(EventId, State)]], initial: Vec<u32>) -> (Vec<u32>, usize) {
    let states = lists.len();
    let mut predecessors: Vec<Vec<State>> = vec![Vec::new(); states];
    for (s, list) in lists.iter().enumerate() {
        for &(_, t) in *list {
            if predecessors[t as usize].last() != Some(&(s as State)) {
                predecessors[t as usize].push(s as State);
            }
        }
    }
    let mut block = compact(initial);
    let mut members: Vec<Vec<State>> = Vec::new();
    for (s, &b) in block.iter().enumerate() {
        if members.len() <= b as usize {
            members.resize(b as usize + 1, Vec::new());
        }
        members[b as usize].push(s as State);
    }
    // Position of a state within its block, so that it can be taken out in constant time.
    let mut position = vec![0u32; states];
    for list in &members {
        for (i, &s) in list.iter().enumerate() {
            position[s as usize] = i as u32;
        }
    }
    let mut dirty: Vec<State> = (0..states as State).collect();
    let mut is_dirty = vec![true; states];
    let mut signature: Vec<(EventId, u32)> = Vec::new();
    while !dirty.is_empty() {
        let mut by_block: FxHashMap<u32, Vec<State>> = FxHashMap::default();
        for &s in &dirty {
            by_block.entry(block[s as usize]).or_default().push(s);
        }
        let mut touched: Vec<_> = by_block.into_iter().collect();
        touched.sort_unstable_by_key(|&(b, _)| b);
        let round: Vec<State> = std::mem::take(&mut dirty);
        // Signatures refer to the partition at the start of the round; splits are applied after all were computed.
        let mut splits: Vec<(u32, Vec<Vec<State>>)> = Vec::new();
        for (b, changed) in touched {
            if members[b as usize].len() == 1 {
                continue;
            }
            let mut sign = |s: State| {
                signature.clear();
                signature.extend(lists[s as usize].iter().map(|&(e, t)| (e, block[t as usize])));
                signature.sort_unstable();
                signature.dedup();
                signature.clone().into_boxed_slice()
            };
            let mut classes: FxHashMap<Box<[(EventId, u32)]>, Vec<State>> = FxHashMap::default();
            for &s in &changed {
                classes.entry(sign(s)).or_default().push(s);
            }
            // The unchanged members still agree among themselves: one of them speaks for all.
            let unchanged = members[b as usize].len() - changed.len();
            let spokesman = members[b as usize].iter().copied().find(|&s| !is_dirty[s as usize]);
            let stay = spokesman.and_then(|s| classes.remove(&sign(s)));
            let staying = unchanged + stay.map_or(0, |l| l.len());
            let mut parts: Vec<Vec<State>> = classes.into_values().collect();
            parts.sort_unstable_by_key(|p| p[0]);
            if staying == 0 {
                let largest = (0..parts.len()).max_by_key(|&i| (parts[i].len(), std::cmp::Reverse(i)));
                parts.swap_remove(largest.expect("a touched block has members"));
            } else if let Some(i) = (0..parts.len()).find(|&i| parts[i].len() > staying) {
                // A changed class is the largest: it keeps the number and the rest moves.
                let kept: FxHashSet<State> = parts.swap_remove(i).into_iter().collect();
                let gone: FxHashSet<State> = parts.iter().flatten().copied().collect();
                let moved = members[b as usize]
                    .iter()
                    .copied()
                    .filter(|s| !kept.contains(s) && !gone.contains(s))
                    .collect();
                parts.push(moved);
            }
            if !parts.is_empty() {
                splits.push((b, parts));
            }
        }
        for &s in &round {
            is_dirty[s as usize] = false;
        }
        for (b, parts) in splits {
            for part in parts {
                let new = members.len() as u32;
                for &s in &part {
                    let old = &mut members[b as usize];
                    let at = position[s as usize] as usize;
                    old.swap_remove(at);
                    if let Some(&moved) = old.get(at) {
                        position[moved as usize] = at as u32;
                    }
                    block[s as usize] = new;
                    for &p in &predecessors[s as usize] {
                        if !is_dirty[p as usize] {
                            is_dirty[p as usize] = true;
                            dirty.push(p);
                        }
                    }
                }
                for (i, &s) in part.iter().enumerate() {
                    position[s as usize] = i as u32;
                }
                members.push(part);
            }
        }
    }
    let blocks = members.len();
    (block, blocks)
}

fn compact(initial: Vec<u32>) -> Vec<u32> {
    let mut number: FxHashMap<u32, u32> = FxHashMap::default();
    initial
        .into_iter()
        .map(|b| {
            let next = number.len() as u32;
            *number.entry(b).or_insert(next)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook version: recompute every signature until nothing changes.
    fn naive(lists: &[&[(EventId, State)]], initial: Vec<u32>) -> Vec<u32> {
        let mut block = compact(initial);
        loop {
            let mut number: FxHashMap<(u32, Vec<(EventId, u32)>), u32> = FxHashMap::default();
            let next: Vec<u32> = (0..lists.len())
                .map(|s| {
                    let mut sig: Vec<_> = lists[s].iter().map(|&(e, t)| (e, block[t as usize])).collect();
                    sig.sort_unstable();
                    sig.dedup();
                    let fresh = number.len() as u32;
                    *number.entry((block[s], sig)).or_insert(fresh)
                })
                .collect();
            let before = block.iter().collect::<FxHashSet<_>>().len();
            let after = next.iter().collect::<FxHashSet<_>>().len();
            block = next;
            if before == after {
                return block;
            }
        }
    }

    #[test]
    fn refinement_agrees_with_the_textbook() {
        let mut random = crate::semantics::random::Random::new(7);
        for case in 0..2000 {
            let n = 1 + random.below(12);
            let lists: Vec<Vec<(EventId, State)>> = (0..n)
                .map(|_| {
                    let mut l: Vec<_> = (0..random.below(4))
                        .map(|_| (EventId(2 + random.below(2) as u32), random.below(n) as State))
                        .collect();
                    l.sort_unstable();
                    l.dedup();
                    l
                })
                .collect();
            let slices: Vec<_> = lists.iter().map(|l| &l[..]).collect();
            let initial: Vec<u32> = (0..n).map(|_| random.below(2) as u32).collect();
            let (fast, _) = refine(&slices, initial.clone());
            let slow = naive(&slices, initial);
            for a in 0..n {
                for b in 0..n {
                    assert_eq!(
                        fast[a] == fast[b],
                        slow[a] == slow[b],
                        "case {case}, states {a} and {b}: {lists:?}"
                    );
                }
            }
        }
    }
}
