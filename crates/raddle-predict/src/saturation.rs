//! Orders that hold in every reordering that reaches some positions; by them, most positions that cannot be reached are refuted.
//!
//! Reaching two accesses with every read keeping its writer is NP-hard in general (Mathur, Pavlogiannis, Viswanathan, "The
//! complexity of dynamic data race prediction", LICS 2020). What makes it easy in practice is *saturation* (Pavlogiannis,
//! "Fast, sound, and effectively complete dynamic race prediction", POPL 2020): the steps that every such reordering has are
//! known, and some orders between them force others:
//!
//! * a write that comes before a read which saw another write comes before that other write; one that comes after the write
//!   that a read saw comes after the read;
//! * of two times that a lock was held in conflicting modes, if one acquisition comes before the other's release, so does its
//!   own release come before the other's acquisition; a time that is not over when the targets are reached is the last.
//!
//! A circle of such orders means that there is no reordering. Otherwise they are handed to the search, which then does not
//! even try what contradicts them. The paper goes on to choose an order where none is forced; here the search does that, so
//! nothing is lost.

use crate::clocks::Clocks;
use crate::closure::Target;
use crate::ids::{Pos, ValueIx};
use crate::program::{Action, Hold, Need, Program};
use raddle_trace::ThreadIx;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Steps beyond which this is not tried: the rules look at pairs.
const STEPS_MAX: usize = 3_000;
/// Rounds of all rules at most; what was found until then holds.
const ROUNDS_MAX: usize = 64;

/// A step.
type Node = (ThreadIx, Pos);

/// What saturation came to.
pub enum Saturated {
    /// No reordering reaches the targets.
    Refuted,
    /// These orders hold in each that does (the need comes before the step), and so far must each thread come.
    Orders(Vec<(ThreadIx, Pos, Need)>, Vec<Pos>),
    /// Too large to say.
    Unknown,
}

/// Applies the rules to the steps that every reordering to the targets has.
pub fn saturate(program: &Program, must: &Clocks, targets: &[Target], needed: &[Pos]) -> Saturated {
    if needed.iter().map(|&pos| pos as usize).sum::<usize>() > STEPS_MAX {
        return Saturated::Unknown;
    }
    let mut saturation = Saturation {
        program,
        must,
        targets,
        needed: needed.to_vec(),
        edges: BTreeSet::new(),
        before: Vec::new(),
    };
    for target in targets {
        let needed = &mut saturation.needed[target.thread.index()];
        *needed = (*needed).max(target.pos);
    }
    for _ in 0..ROUNDS_MAX {
        let known = (saturation.edges.len(), saturation.needed.clone());
        if saturation.order().is_none() || saturation.registers().is_none() || saturation.locks().is_none() {
            return Saturated::Refuted;
        }
        if (saturation.edges.len(), saturation.needed.clone()) == known {
            break;
        }
    }
    let order =
        |((before, pos), (after, at)): (Node, Node)| (after, at, Need { thread: before, pos: pos + 1 });
    Saturated::Orders(saturation.edges.into_iter().map(order).collect(), saturation.needed)
}

struct Saturation<'a> {
    program: &'a Program,
    must: &'a Clocks,
    targets: &'a [Target],
    /// How far each thread must come.
    needed: Vec<Pos>,
    /// Orders beyond those of the program.
    edges: BTreeSet<(Node, Node)>,
    /// For each needed step, how many steps of each thread come before it.
    before: Vec<Vec<Vec<Pos>>>,
}

impl Saturation<'_> {
    /// Follows all orders. `None` if they run in a circle.
    fn order(&mut self) -> Option<()> {
        let threads = self.program.thread_count();
        let mut into: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
        for &(before, after) in &self.edges {
            into.entry(after).or_default().push(before);
        }
        // What has to come before a step may make threads go further.
        let mut grown = true;
        while std::mem::take(&mut grown) {
            for (thread, pos) in self.nodes() {
                let needs = self
                    .program
                    .needs_of(self.program.step(thread, pos)?)
                    .iter()
                    .map(|need| (need.thread, need.pos));
                let clock = self.must.at(thread, pos);
                let edges =
                    into.get(&(thread, pos)).into_iter().flatten().map(|&(other, at)| (other, at + 1));
                let clocks = clock.iter().enumerate().map(|(other, &at)| (ThreadIx(other as u32), at));
                for (other, at) in needs.chain(edges).chain(clocks).collect::<Vec<_>>() {
                    if self.needed[other.index()] < at {
                        self.grow(other, at)?;
                        grown = true;
                    }
                }
            }
        }
        self.before = self.needed.iter().map(|&pos| vec![vec![0; threads]; pos as usize]).collect();
        let mut at: Vec<Pos> = vec![0; threads];
        loop {
            let mut moved = false;
            for thread in self.program.thread_ids() {
                while at[thread.index()] < self.needed[thread.index()] {
                    let pos = at[thread.index()];
                    let step = self.program.step(thread, pos)?;
                    let needs = self.program.needs_of(step).iter().map(|need| (need.thread, need.pos));
                    let edges =
                        into.get(&(thread, pos)).into_iter().flatten().map(|&(other, at)| (other, at + 1));
                    let all: Vec<(ThreadIx, Pos)> = needs.chain(edges).collect();
                    if all.iter().any(|&(other, needed)| at[other.index()] < needed) {
                        break;
                    }
                    let mut clock = self.must.at(thread, pos).to_vec();
                    clock[thread.index()] = pos;
                    let own = pos.checked_sub(1).map(|last| (thread, last + 1));
                    for (other, needed) in all.into_iter().chain(own) {
                        let Some(last) = needed.checked_sub(1) else { continue };
                        for (entry, &known) in
                            clock.iter_mut().zip(&self.before[other.index()][last as usize])
                        {
                            *entry = known.max(*entry);
                        }
                        let entry = &mut clock[other.index()];
                        *entry = needed.max(*entry);
                    }
                    self.before[thread.index()][pos as usize] = clock;
                    at[thread.index()] += 1;
                    moved = true;
                }
            }
            if at == self.needed {
                return Some(());
            }
            if !moved {
                return None;
            }
        }
    }

    fn nodes(&self) -> Vec<Node> {
        let of = |(thread, &end): (usize, &Pos)| (0..end).map(move |pos| (ThreadIx(thread as u32), pos));
        self.needed.iter().enumerate().flat_map(of).collect()
    }

    fn grow(&mut self, thread: ThreadIx, pos: Pos) -> Option<()> {
        if self.targets.iter().any(|target| target.thread == thread) {
            return None;
        }
        self.needed[thread.index()] = pos;
        Some(())
    }

    /// Does the first step come before the second in every reordering, as far as is known?
    fn comes_before(&self, first: Node, second: Node) -> bool {
        self.before[second.0.index()][second.1 as usize][first.0.index()] > first.1
    }

    fn add(&mut self, before: Node, after: Node) -> Option<()> {
        if before == after || self.comes_before(after, before) {
            return None;
        }
        if before.0 != after.0 && !self.comes_before(before, after) {
            self.edges.insert((before, after));
        }
        Some(())
    }

    /// Reads keep their writers.
    fn registers(&mut self) -> Option<()> {
        if !self.program.keeps_reads {
            return Some(());
        }
        let mut writes: FxHashMap<u32, Vec<Node>> = FxHashMap::default();
        let mut reads: Vec<(u32, Node, ValueIx)> = Vec::new();
        let mut writer: FxHashMap<ValueIx, Node> = FxHashMap::default();
        for (thread, pos) in self.nodes() {
            let Some(step) = self.program.step(thread, pos) else { continue };
            let Action::Atomic { register, expects, sets } = step.action else { continue };
            if sets != ValueIx::NONE {
                writes.entry(register.0).or_default().push((thread, pos));
                writer.insert(sets, (thread, pos));
            }
            if expects != ValueIx::NONE {
                reads.push((register.0, (thread, pos), expects));
            }
        }
        for (register, read, value) in reads {
            let seen = writer.get(&value).copied();
            for &other in writes.get(&register).into_iter().flatten() {
                if Some(other) == seen || other == read {
                    continue;
                }
                if self.comes_before(other, read) {
                    self.add(other, seen?)?;
                } else if seen.is_none_or(|seen| self.comes_before(seen, other)) {
                    self.add(read, other)?;
                }
            }
        }
        Some(())
    }

    /// Nobody takes a lock that another has.
    fn locks(&mut self) -> Option<()> {
        let program = self.program;
        for lock in &program.locks {
            let mut holds: Vec<(ThreadIx, Hold)> = Vec::new();
            for (thread, uses) in &lock.uses {
                let needed = self.needed[thread.index()];
                let within = uses.exclusive.iter().chain(&uses.shared).filter(|hold| hold.acquire < needed);
                holds.extend(within.map(|hold| (*thread, *hold)));
            }
            for &(a_thread, a) in &holds {
                for &(b_thread, b) in &holds {
                    if a_thread == b_thread || (a.shared && b.shared) {
                        continue;
                    }
                    self.two_holds((a_thread, a), (b_thread, b))?;
                }
            }
        }
        Some(())
    }

    fn two_holds(&mut self, (a_thread, a): (ThreadIx, Hold), (b_thread, b): (ThreadIx, Hold)) -> Option<()> {
        let is_over = |thread: ThreadIx, hold: Hold, needed: &[Pos]| hold.release < needed[thread.index()];
        let is_target = |thread: ThreadIx| self.targets.iter().any(|target| target.thread == thread);
        let (a_over, b_over) = (is_over(a_thread, a, &self.needed), is_over(b_thread, b, &self.needed));
        let (a_kept, b_kept) = (!a_over && is_target(a_thread), !b_over && is_target(b_thread));
        // The first was taken before the second: it is given back before.
        let first = (b.acquire as usize) < self.before[b_thread.index()].len()
            && (a.acquire as usize) < self.before[a_thread.index()].len()
            && self.comes_before((a_thread, a.acquire), (b_thread, b.acquire));
        match (a_kept, b_kept) {
            (true, true) => return None,
            (true, false) if first => return None,
            (false, true) | (false, false) if first && !a_over => {
                return match a.release {
                    Pos::MAX => None,
                    release => self.grow(a_thread, release + 1),
                };
            }
            // What is kept comes last: the other time is over by then.
            (true, false) => {
                return match (b.release, b_over) {
                    (Pos::MAX, _) => None,
                    (release, false) => self.grow(b_thread, release + 1),
                    (release, true) if self.is_known(b_thread, release) => {
                        self.add((b_thread, release), (a_thread, a.acquire))
                    }
                    (_, true) => Some(()),
                };
            }
            (false, _) => {}
        }
        // One is taken before the other is given back: then it is given back before the other is taken.
        let known = a_over
            && b_over
            && self.is_known(a_thread, a.release)
            && self.is_known(b_thread, b.release)
            && self.comes_before((a_thread, a.acquire), (b_thread, b.release));
        if known {
            self.add((a_thread, a.release), (b_thread, b.acquire))?;
        }
        Some(())
    }

    /// Was the step needed when the orders were followed last?
    fn is_known(&self, thread: ThreadIx, pos: Pos) -> bool {
        (pos as usize) < self.before[thread.index()].len()
    }
}
