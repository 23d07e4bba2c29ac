//! `velodrome`: cycles in the transactional happens-before graph.
//!
//! **Definition** (Flanagan, Freund, Yi, *Velodrome: a sound and complete dynamic atomicity checker for multithreaded
//! programs*, PLDI 2008). Regions are transactions, everything outside is a transaction of its own. An edge leads from
//! a transaction to a later one if an event of it comes before and conflicts with an event of the other: same thread,
//! same lock, conflicting accesses to a variable, fork, join, send and receive. The observed run is serialisable
//! exactly if the graph has no cycle.
//!
//! **Sound and complete** for the observed run: the violation has happened, so the grade is *observed* (it is the
//! run's order, not a prediction, that is not serialisable). Whether a violation exists is also decided by
//! [`super::aerodrome`], in linear time.
//!
//! **Collection of dead nodes**: edges are only added *to* running transactions, so a transaction that has ended and has
//! no incoming edge can never be on a cycle. It is removed together with its outgoing edges, and so on. Most unary
//! transactions never get an edge and cost nothing.
//!
//! **Deviations**: an edge that would close a cycle is reported and left out, so that later cycles are found as well.
//! The blame assignment of the paper is reduced to naming the region and the step that closed the cycle.
//!
//! **Cost**: a search of the live graph for each new edge.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::region::{RegionTracker, Regions};
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{PerVar, Step, Sync};
use raddle_findings::{Basis, Detail, Kind, Role};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

pub const NAME: &str = "velodrome";

/// A node, with the generation of its slot, so that a reference to a removed node is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeIx {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Debug, Default)]
struct Node {
    generation: u32,
    incoming: u32,
    outgoing: Vec<u32>,
    ended: bool,
    begin: Site,
    region: bool,
    mark: u32,
}

/// The last transactions that touched something: the last writer and each thread's last reader since.
#[derive(Clone, Debug, Default)]
struct Touched {
    writer: Option<NodeIx>,
    readers: SmallVec<[NodeIx; 2]>,
}

#[derive(Clone, Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    free: Vec<u32>,
    mark: u32,
    live_max: usize,
}

impl Graph {
    fn create(&mut self, begin: Site, region: bool) -> NodeIx {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        });
        self.live_max = self.live_max.max(self.nodes.len() - self.free.len());
        let node = &mut self.nodes[slot as usize];
        node.generation += 1;
        (node.incoming, node.ended, node.begin, node.region) = (0, false, begin, region);
        node.outgoing.clear();
        NodeIx { slot, generation: node.generation }
    }

    fn lives(&self, ix: NodeIx) -> bool {
        self.nodes[ix.slot as usize].generation == ix.generation
    }

    /// Adds an edge. False if it would close a cycle.
    fn edge(&mut self, from: NodeIx, to: NodeIx) -> bool {
        if from == to || !self.lives(from) || self.nodes[from.slot as usize].outgoing.contains(&to.slot) {
            return true;
        }
        if self.reaches(to.slot, from.slot) {
            return false;
        }
        self.nodes[from.slot as usize].outgoing.push(to.slot);
        self.nodes[to.slot as usize].incoming += 1;
        true
    }

    fn reaches(&mut self, from: u32, wanted: u32) -> bool {
        self.mark += 1;
        let mut stack = vec![from];
        while let Some(slot) = stack.pop() {
            if slot == wanted {
                return true;
            }
            let node = &mut self.nodes[slot as usize];
            if node.mark != self.mark {
                node.mark = self.mark;
                stack.extend_from_slice(&node.outgoing);
            }
        }
        false
    }

    /// Nodes on a shortest path, both ends included; 0 if there is none.
    fn nodes_between(&self, from: u32, to: u32) -> u64 {
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([from]);
        let (mut layer, mut length) = (vec![from], 1);
        while !layer.is_empty() {
            if layer.contains(&to) {
                return length;
            }
            let next = layer.iter().flat_map(|&slot| &self.nodes[slot as usize].outgoing).copied();
            layer = next.filter(|&slot| seen.insert(slot)).collect();
            length += 1;
        }
        0
    }

    /// The transaction has ended; it and what depends on it are removed if nothing leads to them.
    fn end(&mut self, ix: NodeIx) {
        self.nodes[ix.slot as usize].ended = true;
        let mut stack = vec![ix.slot];
        while let Some(slot) = stack.pop() {
            let node = &mut self.nodes[slot as usize];
            if !node.ended || node.incoming > 0 {
                continue;
            }
            // A new generation makes all references to it void.
            node.generation += 1;
            node.ended = false;
            let outgoing = std::mem::take(&mut node.outgoing);
            for &next in &outgoing {
                self.nodes[next as usize].incoming -= 1;
                stack.push(next);
            }
            self.free.push(slot);
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Actor {
    current: Option<NodeIx>,
    last: Option<NodeIx>,
    /// Forked by this transaction.
    parent: Option<NodeIx>,
}

#[derive(Clone, Debug, Default)]
pub struct Velodrome {
    tracker: RegionTracker,
    graph: Graph,
    actors: Vec<Actor>,
    variables: PerVar<Touched>,
    /// Releases: of writers, and of readers since.
    locks: Vec<Touched>,
    channels: Vec<SmallVec<[NodeIx; 2]>>,
    reports: Reports,
    violations: Vec<u64>,
}

fn entry<T: Default + Clone>(items: &mut Vec<T>, index: usize) -> &mut T {
    if items.len() <= index {
        items.resize(index + 1, T::default());
    }
    &mut items[index]
}

impl Velodrome {
    pub fn new(regions: Regions) -> Velodrome {
        Velodrome { tracker: RegionTracker::new(regions), ..Velodrome::default() }
    }

    /// Places of the steps that closed a cycle.
    pub fn violations(&self) -> &[u64] {
        &self.violations
    }

    /// The largest number of nodes that were alive at once.
    pub fn live_max(&self) -> usize {
        self.graph.live_max
    }

    fn end_current(&mut self, thread: usize) {
        if let Some(node) = self.actors[thread].current.take() {
            self.actors[thread].last = Some(node);
            self.graph.end(node);
        }
    }

    fn connect(&mut self, from: Option<NodeIx>, to: NodeIx, step: &Step<'_>) {
        let Some(from) = from else { return };
        if self.graph.edge(from, to) {
            return;
        }
        self.violations.push(step.position);
        // The cycle goes through the current transaction; if that is a unary one, a region is at the other end.
        let mut node = &self.graph.nodes[to.slot as usize];
        if !node.region {
            node = &self.graph.nodes[from.slot as usize];
        }
        let (begin, closing) = (node.begin, Site::of(step));
        let graph = &self.graph;
        self.reports.add(place_key(&[begin, closing], closing.position), || {
            let regions = graph.nodes_between(to.slot, from.slot);
            Report::new(NAME, Kind::AtomicityViolation, Basis::observed())
                .detail(Detail::Cycle { regions })
                .part(begin.plays(Role::BeginsRegion, None))
                .part(closing.plays(Role::ClosesCycle, Subject::of(step)))
        });
    }

    fn edges(&mut self, node: NodeIx, step: &Step<'_>) {
        if let Some(write) = step.plain_access() {
            for &var in step.vars {
                let touched = self.variables.get_mut(var).clone();
                self.connect(touched.writer, node, step);
                if write {
                    for reader in touched.readers {
                        self.connect(Some(reader), node, step);
                    }
                }
                touch(self.variables.get_mut(var), node, write, &self.graph);
            }
            return;
        }
        match step.sync {
            Sync::None => {}
            Sync::Acquire { lock, read } => {
                let touched = entry(&mut self.locks, lock.index()).clone();
                self.connect(touched.writer, node, step);
                if !read {
                    for reader in touched.readers {
                        self.connect(Some(reader), node, step);
                    }
                }
            }
            Sync::Release { lock, read } => {
                touch(entry(&mut self.locks, lock.index()), node, !read, &self.graph);
            }
            Sync::Fork(child) => entry(&mut self.actors, child.index()).parent = Some(node),
            Sync::Join(child) => {
                self.end_current_of_other(child.index());
                let last = entry(&mut self.actors, child.index()).last;
                self.connect(last, node, step);
            }
            Sync::Receive(channel) => self.receive(channel.index(), node, step),
            Sync::Send(channel) => self.send(channel.index(), node),
            Sync::Exchange(channel) => {
                self.receive(channel.index(), node, step);
                self.send(channel.index(), node);
            }
        }
    }

    /// A joined thread does nothing any more, whatever it left open.
    fn end_current_of_other(&mut self, thread: usize) {
        if thread < self.actors.len() {
            self.end_current(thread);
        }
    }

    fn receive(&mut self, channel: usize, node: NodeIx, step: &Step<'_>) {
        for sender in entry(&mut self.channels, channel).clone() {
            self.connect(Some(sender), node, step);
        }
    }

    fn send(&mut self, channel: usize, node: NodeIx) {
        let senders = entry(&mut self.channels, channel);
        let graph = &self.graph;
        senders.retain(|sender| *sender != node && graph.lives(*sender));
        senders.push(node);
    }
}

fn touch(touched: &mut Touched, node: NodeIx, write: bool, graph: &Graph) {
    if write {
        touched.writer = Some(node);
        touched.readers.clear();
    } else {
        touched.readers.retain(|reader| *reader != node && graph.lives(*reader));
        touched.readers.push(node);
    }
}

impl Detector for Velodrome {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let place = self.tracker.step(step);
        let thread = step.thread().index();
        entry(&mut self.actors, thread);
        if place.ended_before || place.begins {
            self.end_current(thread);
        }
        let node = match self.actors[thread].current {
            Some(node) => node,
            None => {
                let node = self.graph.create(Site::of(step), place.inside);
                self.actors[thread].current = Some(node);
                let (last, parent) = (self.actors[thread].last, self.actors[thread].parent.take());
                self.connect(last, node, step);
                self.connect(parent, node, step);
                node
            }
        };
        self.edges(node, step);
        if !place.inside || place.ends {
            self.end_current(thread);
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.reports.take()
    }
}
