//! Swaps that fail for good, in a graph whose states have no names for their threads.
//!
//! The question is about one thread: can it come back to the swap? A thread is followed through the graph as a pair of a state
//! and a rank, and an edge leads from the pair to where the same thread is afterwards. Pairs that are connected are the same
//! thread up to symmetry; they form the classes that stand for the threads of the graph with names.

use super::{Edge, Observed, Search, Stand, Unretried};
use crate::concrete::schedule::Step;
use crate::concrete::state::Origin;
use crate::concrete::symmetry::UNRANKED;
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::syntax::core::ExprId;
use std::collections::BTreeMap;

/// Pairs of states and ranks, as numbers.
struct Pairs<'a> {
    edges: &'a [Edge],
    width: usize,
    /// Edges by their source and by their target.
    next: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
}

/// Where a thread is on its way to something, or has it behind it.
struct Reached {
    pairs: Vec<bool>,
    /// Without the thread: it has ended, or nobody has spawned it.
    states: Vec<bool>,
}

impl Pairs<'_> {
    fn pair(&self, node: u32, rank: u8) -> usize {
        node as usize * self.width + rank as usize
    }

    fn count(&self) -> usize {
        self.next.len() * self.width
    }

    /// Where the threads of an edge's source are in its target.
    fn moves(edge: &Edge) -> impl Iterator<Item = (u8, u8)> + '_ {
        let moved = edge.moved.iter().flat_map(|moved| moved.iter());
        moved.enumerate().map(|(from, &to)| (from as u8, to)).filter(|&(_, to)| to != UNRANKED)
    }

    fn target(edge: &Edge, rank: u8) -> Option<u8> {
        edge.moved.as_ref()?.get(rank as usize).copied().filter(|&to| to != UNRANKED)
    }

    /// What the given pairs lead to, or what leads to them: pairs, and states in which the thread has ended, or is not there
    /// yet.
    fn reach(&self, starts: impl Iterator<Item = (u32, Option<u8>)>, forward: bool) -> Reached {
        let mut out = Reached { pairs: vec![false; self.count()], states: vec![false; self.next.len()] };
        let mut work: Vec<(u32, Option<u8>)> = starts.collect();
        while let Some((node, rank)) = work.pop() {
            let seen = match rank {
                Some(rank) => &mut out.pairs[self.pair(node, rank)],
                None => &mut out.states[node as usize],
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            let edges = if forward { &self.next } else { &self.before };
            for edge in edges[node as usize].iter().map(|&at| &self.edges[at as usize]) {
                match (forward, rank) {
                    (true, None) => work.push((edge.to, None)),
                    (false, None) => work.push((edge.from, None)),
                    (true, Some(rank)) => work.push((edge.to, Self::target(edge, rank))),
                    (false, Some(rank)) => {
                        let from = Self::moves(edge).find(|m| m.1 == rank).map(|m| m.0);
                        work.push((edge.from, from));
                    }
                }
            }
        }
        out
    }

    /// The class of each pair.
    fn classes(&self) -> Vec<u32> {
        let mut parent: Vec<u32> = (0..self.count() as u32).collect();
        fn find(parent: &mut [u32], mut at: u32) -> u32 {
            while parent[at as usize] != at {
                parent[at as usize] = parent[parent[at as usize] as usize];
                at = parent[at as usize];
            }
            at
        }
        for edge in self.edges {
            for (from, to) in Self::moves(edge) {
                let a = find(&mut parent, self.pair(edge.from, from) as u32);
                let b = find(&mut parent, self.pair(edge.to, to) as u32);
                parent[a.max(b) as usize] = a.min(b);
            }
        }
        (0..parent.len() as u32).map(|at| find(&mut parent, at)).collect()
    }
}

impl Search<'_, '_> {
    /// As [`Search::unretried`], for classes of threads.
    pub(super) fn unretried_in_orbits(&self, observed: &mut Observed, clock: &Clock) -> bool {
        let open = |edge: &&Edge| edge.action.is_cas() && !self.machine.program.is_retried(edge.site);
        if !self.edges.iter().any(|edge| open(&edge)) {
            return true;
        }
        let mut pairs = Pairs {
            edges: &self.edges,
            width: self.edges.iter().filter_map(|e| e.moved.as_ref()).map(|m| m.len() + 1).max().unwrap_or(1),
            next: vec![Vec::new(); self.nodes.len()],
            before: vec![Vec::new(); self.nodes.len()],
        };
        for (at, edge) in self.edges.iter().enumerate() {
            // Ranks of the target may be one more than those of any source.
            let ranks = Pairs::moves(edge).map(|m| m.1 as usize + 1).max().unwrap_or(0);
            pairs.width = pairs.width.max(ranks).max(edge.rank as usize + 1);
            pairs.next[edge.from as usize].push(at as u32);
            pairs.before[edge.to as usize].push(at as u32);
        }
        let classes = pairs.classes();
        let mut groups: BTreeMap<(u32, ExprId), Vec<&Edge>> = BTreeMap::new();
        for edge in self.edges.iter().filter(open) {
            let class = classes[pairs.pair(edge.from, edge.rank)];
            groups.entry((class, edge.site)).or_default().push(edge);
        }
        for ((class, site), edges) in groups {
            if clock.is_over() {
                return false;
            }
            if !edges.iter().any(|edge| edge.action == Action::CasSucceeds) {
                continue;
            }
            let ahead = pairs.reach(edges.iter().map(|edge| (edge.from, Some(edge.rank))), false);
            let comes_back = |edge: &Edge| {
                Pairs::target(edge, edge.rank).is_some_and(|rank| ahead.pairs[pairs.pair(edge.to, rank)])
            };
            let failed = edges.iter().find(|edge| edge.action == Action::CasFails && !comes_back(edge));
            let Some((edge, cell)) = failed.and_then(|edge| Some((*edge, edge.cell?))) else { continue };
            let ends = edges.iter().map(|edge| (edge.to, Pairs::target(edge, edge.rank)));
            let behind = pairs.reach(ends, true);
            if self.is_contended_in_orbits(&pairs, &classes, class, (&ahead, &behind), cell) {
                let (origin, cell) = cell;
                let stand = Stand { thread: edge.thread.clone(), site, action: Action::CasFails };
                let seen = || {
                    let mut schedule = self.path(edge.from);
                    schedule.steps.push(Step::Act { thread: edge.thread.clone(), what: None });
                    Unretried { stand, origin, cell, schedule }
                };
                observed.unretried.entry(site).or_insert_with(seen);
            }
        }
        true
    }

    /// Whether some write of another thread to the cell comes before one of the class's swaps and after one of them.
    fn is_contended_in_orbits(
        &self,
        pairs: &Pairs,
        classes: &[u32],
        class: u32,
        (ahead, behind): (&Reached, &Reached),
        cell: (Origin, u32),
    ) -> bool {
        let mut seen: BTreeMap<(u32, ExprId), (bool, bool)> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| edge.cell == Some(cell)) {
            let writes = matches!(edge.action, Action::Write | Action::CasSucceeds);
            let key = (classes[pairs.pair(edge.from, edge.rank)], edge.site);
            let (before, after) = seen.entry(key).or_default();
            // When it comes second it may itself be a swap that fails.
            let follows = writes || edge.action == Action::CasFails;
            *before |= writes && ahead.states[edge.to as usize];
            *after |= follows && behind.states[edge.from as usize];
            for (from, to) in Pairs::moves(edge) {
                if from != edge.rank && classes[pairs.pair(edge.from, from)] == class {
                    *before |= writes && ahead.pairs[pairs.pair(edge.to, to)];
                    *after |= follows && behind.pairs[pairs.pair(edge.from, from)];
                }
            }
        }
        seen.values().any(|&(before, after)| before && after)
    }
}
