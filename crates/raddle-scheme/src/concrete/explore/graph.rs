//! What is seen in the whole graph: threads that spin for ever, and swaps that fail for good.

use super::{Observed, Search, Stand, Unretried};
use crate::concrete::schedule::Step;
use crate::concrete::state::Origin;
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::syntax::core::ExprId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

impl Search<'_, '_> {
    fn successors(&self) -> Vec<Vec<u32>> {
        let mut next = vec![Vec::new(); self.nodes.len()];
        self.edges.iter().enumerate().for_each(|(at, edge)| next[edge.from as usize].push(at as u32));
        next
    }

    pub(super) fn livelocks(&self, observed: &mut Observed) {
        let next = self.successors();
        let graph: Vec<Vec<u32>> =
            next.iter().map(|edges| edges.iter().map(|&e| self.edges[e as usize].to).collect()).collect();
        let component = crate::graph::components(&graph);
        let count = component.iter().max().map_or(0, |&max| max as usize + 1);
        let mut stuck = vec![true; count];
        let mut stands: Vec<BTreeSet<Stand>> = vec![BTreeSet::new(); count];
        let mut entry: Vec<Option<u32>> = vec![None; count];
        for (node, &c) in component.iter().enumerate() {
            entry[c as usize].get_or_insert(node as u32);
        }
        for edge in &self.edges {
            let c = component[edge.from as usize] as usize;
            let idle = !matches!(edge.action, Action::Write | Action::CasSucceeds);
            if component[edge.to as usize] as usize != c || !idle {
                stuck[c] = false;
            } else if matches!(edge.action, Action::Read | Action::CasFails) {
                stands[c].insert(Stand { thread: edge.thread.clone(), site: edge.site, action: edge.action });
            }
        }
        for c in 0..count {
            if let Some(node) = entry[c]
                && stuck[c]
                && !stands[c].is_empty()
            {
                let stands = std::mem::take(&mut stands[c]).into_iter().collect();
                observed.livelocks.entry(stands).or_insert_with(|| self.path(node));
            }
        }
    }

    /// A failed `cas` of a thread that cannot reach the same `cas` again. One that no order of the threads lets succeed is
    /// no matter of concurrency: it must succeed somewhere, and another thread must write the cell before it in one run and
    /// after it in another.
    ///
    /// False when the clock ran out on the way.
    pub(super) fn unretried(&self, observed: &mut Observed, clock: &Clock) -> bool {
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            next[edge.from as usize].push(edge.to);
            before[edge.to as usize].push(edge.from);
        }
        let mut groups: BTreeMap<(Rc<[u32]>, ExprId), Vec<u32>> = BTreeMap::new();
        for (at, edge) in self.edges.iter().enumerate() {
            if edge.action.is_cas() && !self.machine.program.is_retried(edge.site) {
                groups.entry((edge.thread.clone(), edge.site)).or_default().push(at as u32);
            }
        }
        for ((thread, site), edges) in groups {
            if clock.is_over() {
                return false;
            }
            // Everything from which an execution of this cas by this thread lies ahead.
            let starts: Vec<u32> = edges.iter().map(|&e| self.edges[e as usize].from).collect();
            let ahead = reach(&before, &starts);
            let failed = edges
                .iter()
                .map(|&e| &self.edges[e as usize])
                .find(|edge| edge.action == Action::CasFails && !ahead[edge.to as usize]);
            if let Some(edge) = failed
                && let Some((origin, cell)) = edge.cell
                && edges.iter().any(|&e| self.edges[e as usize].action == Action::CasSucceeds)
                && self.is_contended(&thread, &next, &edges, &ahead, (origin, cell))
            {
                let stand = Stand { thread: thread.clone(), site, action: Action::CasFails };
                let seen = || {
                    // To the state before, and then the swap that fails.
                    let mut schedule = self.path(edge.from);
                    schedule.steps.push(Step::Act { thread: thread.clone(), what: None });
                    Unretried { stand, origin, cell, schedule }
                };
                observed.unretried.entry(site).or_insert_with(seen);
            }
        }
        true
    }

    /// Whether some write of another thread to the cell comes before one of the given swaps and after one of them.
    fn is_contended(
        &self,
        thread: &[u32],
        next: &[Vec<u32>],
        swaps: &[u32],
        ahead: &[bool],
        cell: (Origin, u32),
    ) -> bool {
        let ends: Vec<u32> = swaps.iter().map(|&e| self.edges[e as usize].to).collect();
        let behind = reach(next, &ends);
        let mut seen: BTreeMap<(&[u32], ExprId), (bool, bool)> = BTreeMap::new();
        for edge in &self.edges {
            let writes = matches!(edge.action, Action::Write | Action::CasSucceeds);
            if edge.cell != Some(cell) || &*edge.thread == thread {
                continue;
            }
            let (before, after) = seen.entry((&edge.thread, edge.site)).or_default();
            *before |= writes && ahead[edge.to as usize];
            // When it comes second it may itself be a swap that fails.
            *after |= (writes || edge.action == Action::CasFails) && behind[edge.from as usize];
        }
        seen.values().any(|&(before, after)| before && after)
    }
}

/// The nodes that the given ones lead to, themselves included.
fn reach(next: &[Vec<u32>], starts: &[u32]) -> Vec<bool> {
    let mut seen = vec![false; next.len()];
    let mut work = starts.to_vec();
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            work.extend(&next[node as usize]);
        }
    }
    seen
}
