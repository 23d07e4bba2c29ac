//! Which invisible places can code reach?
//!
//! Nodes are the functions of rebuilt modules, one node for each module that was not rebuilt, and one node that stands for *any
//! function whose address was taken*. Edges are direct calls, jumps out of a function, calls through slots (resolved as
//! the dynamic linker does: the first module in the order of loading that exports the name), and
//!
//! * from a function that calls through a pointer to the node of all functions whose address was taken;
//! * from a function that takes an address to that function, because it may hand it to a library that calls it (`qsort`). The address
//!   of a thread's start function that goes straight into `pthread_create` is not such a case: another thread runs it.
//!
//! So whatever a function can run without starting a thread is reachable from it, as long as it gets its functions by calls and
//! pointers and not by computing addresses.

use super::interfaces::Interface;
use super::scan::{Call, Facts};

/// A node's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIx(pub u32);

/// A place's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceIx(pub u32);

/// The node of all functions whose address was taken.
pub const ANY: NodeIx = NodeIx(0);

#[derive(Clone, Copy, Debug)]
struct Edge {
    /// Where the call returns to; 0 if the edge is no call.
    returns_to: u64,
    to: NodeIx,
}

#[derive(Clone, Debug, Default)]
struct Node {
    edges: Vec<Edge>,
    places: Vec<PlaceIx>,
    /// As in [`Facts::loops`].
    loops: Vec<(u64, u64)>,
}

/// The call graph of a process.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
}

/// Where a call leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    Node(NodeIx),
    /// A function of a known runtime that orders threads.
    Interface(&'static Interface),
    /// A function that is not counted.
    Known,
}

/// Code that a thread is in: the function, and behind which of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub node: NodeIx,
    /// The call of this position led to the next one.
    pub returns_to: Option<u64>,
}

impl Graph {
    /// A graph of so many nodes, without edges.
    pub fn new(nodes: usize) -> Graph {
        Graph { nodes: vec![Node::default(); nodes.max(1)] }
    }

    pub fn add_function(&mut self, node: NodeIx, facts: &mut Facts) {
        self.node(node).loops = std::mem::take(&mut facts.loops);
    }

    pub fn add_call(&mut self, node: NodeIx, call: &Call, to: NodeIx) {
        self.node(node).edges.push(Edge { returns_to: call.returns_to, to });
    }

    pub fn add_taken(&mut self, node: NodeIx, to: NodeIx) {
        self.node(node).edges.push(Edge { returns_to: 0, to });
    }

    pub fn add_place(&mut self, node: NodeIx, place: PlaceIx) {
        self.node(node).places.push(place);
    }

    fn node(&mut self, node: NodeIx) -> &mut Node {
        &mut self.nodes[node.0 as usize]
    }

    /// Removes edges that are there more than once: big functions call the same ones again and again.
    pub fn finish(&mut self) {
        let mut seen = vec![u32::MAX; self.nodes.len()];
        for (number, node) in self.nodes.iter_mut().enumerate() {
            // Calls outside loops are kept apart: a position may rule out one of them and not the others.
            let loops = std::mem::take(&mut node.loops);
            node.edges.retain(|edge| {
                let alone = edge.returns_to != 0 && !in_loop(&loops, edge.returns_to);
                alone || std::mem::replace(&mut seen[edge.to.0 as usize], number as u32) != number as u32
            });
            node.loops = loops;
        }
    }

    /// The places that a thread can reach that starts at, or is in, these positions; nearest first.
    ///
    /// A call through a pointer that is not in a loop was made once, and what it led to is the next position; so the pointer's other
    /// targets are not followed. A call by name of anything but the next position is: what it led to called back from code that
    /// keeps no frames.
    pub fn reach(&self, positions: &[Position]) -> Vec<PlaceIx> {
        let mut found = Vec::new();
        let mut visited = vec![false; self.nodes.len()];
        let mut queue: Vec<NodeIx> = Vec::new();
        for (number, position) in positions.iter().enumerate() {
            let node = &self.nodes[position.node.0 as usize];
            let passed = position.returns_to.filter(|&returns_to| !in_loop(&node.loops, returns_to));
            match passed {
                None => queue.push(position.node),
                Some(passed) => {
                    let next = positions.get(number + 1).map(|next| next.node);
                    let is_passed =
                        |edge: &&Edge| edge.returns_to == passed && (edge.to == ANY || Some(edge.to) == next);
                    found.extend(&node.places);
                    queue.extend(node.edges.iter().filter(|edge| !is_passed(edge)).map(|edge| edge.to));
                }
            }
        }
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            if std::mem::replace(&mut visited[node.0 as usize], true) {
                continue;
            }
            let node = &self.nodes[node.0 as usize];
            found.extend(&node.places);
            queue.extend(node.edges.iter().map(|edge| edge.to).filter(|to| !visited[to.0 as usize]));
        }
        let mut known = rustc_hash::FxHashSet::default();
        found.retain(|place| known.insert(*place));
        found
    }
}

fn in_loop(loops: &[(u64, u64)], returns_to: u64) -> bool {
    loops.iter().any(|&(from, to)| from < returns_to && returns_to <= to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visibility::interfaces::Constants;
    use proptest::prelude::*;

    fn call(returns_to: u64) -> Call {
        Call { returns_to, target: None, arguments: Constants::default() }
    }

    fn at(node: u32, returns_to: Option<u64>) -> Position {
        Position { node: NodeIx(node), returns_to }
    }

    #[test]
    fn a_call_that_was_made_once_is_known_by_the_next_position() {
        // 1 calls any function at 100 and is, with 2, what any function may be; 3 has the place.
        let mut graph = Graph::new(4);
        graph.add_call(NodeIx(1), &call(100), ANY);
        graph.add_taken(ANY, NodeIx(2));
        graph.add_taken(ANY, NodeIx(3));
        graph.add_place(NodeIx(3), PlaceIx(7));
        assert_eq!(graph.reach(&[at(1, None)]), [PlaceIx(7)]);
        assert_eq!(graph.reach(&[at(1, Some(100)), at(2, None)]), []);
        graph.add_call(NodeIx(2), &call(50), NodeIx(3));
        assert_eq!(graph.reach(&[at(2, Some(50)), at(1, None)]), [PlaceIx(7)], "3 has called back");
        graph.node(NodeIx(2)).edges.clear();
        graph.node(NodeIx(1)).loops.push((90, 110));
        assert_eq!(
            graph.reach(&[at(1, Some(100)), at(2, None)]),
            [PlaceIx(7)],
            "the loop may have called others"
        );
    }

    /// Reachability by the transitive closure of a matrix.
    fn naive(count: usize, edges: &[(u32, u32)], from: u32) -> Vec<bool> {
        let mut closure = vec![vec![false; count]; count];
        for (ix, row) in closure.iter_mut().enumerate() {
            row[ix] = true;
        }
        for &(a, b) in edges {
            closure[a as usize][b as usize] = true;
        }
        for middle in 0..count {
            for a in 0..count {
                for b in 0..count {
                    closure[a][b] |= closure[a][middle] && closure[middle][b];
                }
            }
        }
        closure[from as usize].clone()
    }

    proptest! {
        #[test]
        fn reach_is_the_transitive_closure(edges in prop::collection::vec((0u32..9, 0u32..9), 0..24), from in 0u32..9, finish: bool) {
            let mut graph = Graph::new(9);
            for (number, &(a, b)) in edges.iter().enumerate() {
                match number % 2 {
                    0 => graph.add_call(NodeIx(a), &call(number as u64 + 1), NodeIx(b)),
                    _ => graph.add_taken(NodeIx(a), NodeIx(b)),
                }
            }
            for node in 0..9 {
                graph.add_place(NodeIx(node), PlaceIx(node));
            }
            if finish {
                graph.finish();
            }
            let mut found: Vec<u32> = graph.reach(&[at(from, None)]).into_iter().map(|place| place.0).collect();
            found.sort_unstable();
            let expected: Vec<u32> = naive(9, &edges, from).iter().enumerate().filter(|(_, is)| **is).map(|(ix, _)| ix as u32).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
