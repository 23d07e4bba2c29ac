//! Tree clocks: vector clocks whose joins look only at what changes.
//!
//! **Definition** (Mathur, Pavlogiannis, Tunç, Viswanathan, *A tree clock data structure for causal orderings in
//! concurrent executions*, ASPLOS 2022). The entries of a clock form a tree. A child of a node was learnt through the
//! node's thread, at the time of that thread which the child carries (`learnt`); children are ordered by it, latest
//! first. When a clock is joined into another, a node that the other knows already needs no look at its subtree, and a
//! child that was learnt at a time which the other knows ends the row: nothing behind it can be new.
//!
//! **Right because** entries only ever arrive together with what their thread knew when they were passed on: who knows
//! a thread's time knows everything that was below it then. That holds if a thread's counter grows after each passing
//! on, as in [`crate::happens_before`].
//!
//! **Cost**: a join or copy takes time in the number of entries that change (and their siblings), not in the number of
//! threads. Each step costs several times that of a flat clock, so with few threads flat clocks win; the figures are in
//! `docs/detectors.md`, from `detect_bench N clocks`.

use raddle_trace::ThreadIx;

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    time: u32,
    /// Time of the parent's thread at which this was learnt.
    learnt: u32,
    parent: u32,
    first_child: u32,
    next: u32,
    previous: u32,
}

const ABSENT: Node = Node { time: 0, learnt: 0, parent: NONE, first_child: NONE, next: NONE, previous: NONE };

/// A clock; see the module's text.
#[derive(Clone, Debug)]
pub struct TreeClock {
    root: u32,
    nodes: Vec<Node>,
    /// Scratch of joins: nodes of the other clock that bring news, parents last.
    news: Vec<u32>,
}

impl Default for TreeClock {
    fn default() -> TreeClock {
        TreeClock { root: NONE, nodes: Vec::new(), news: Vec::new() }
    }
}

impl TreeClock {
    /// The clock of a thread that has not done anything.
    pub fn of(thread: ThreadIx) -> TreeClock {
        let mut clock = TreeClock { root: thread.0, ..TreeClock::default() };
        clock.room_for(thread.0);
        clock
    }

    #[inline]
    pub fn get(&self, thread: ThreadIx) -> u32 {
        self.nodes.get(thread.index()).map_or(0, |node| node.time)
    }

    /// Counts one step of the thread whose clock this is.
    pub fn tick(&mut self) {
        self.nodes[self.root as usize].time += 1;
    }

    fn room_for(&mut self, thread: u32) {
        if self.nodes.len() <= thread as usize {
            self.nodes.resize(thread as usize + 1, ABSENT);
        }
    }

    fn time(&self, thread: u32) -> u32 {
        self.nodes.get(thread as usize).map_or(0, |node| node.time)
    }

    /// Pointwise maximum. The other clock's root must not be ours.
    pub fn join(&mut self, other: &TreeClock) {
        if other.root == NONE || other.time(other.root) <= self.time(other.root) {
            return;
        }
        self.gather(other, false);
        self.detach();
        self.attach(other);
        let (news, root) = (other.root, self.root);
        self.nodes[news as usize].learnt = self.nodes[root as usize].time;
        self.push_child(news, root);
    }

    /// Becomes a copy of a clock that knows at least as much.
    pub fn copy_from_later(&mut self, other: &TreeClock) {
        if self.root == NONE {
            self.root = other.root;
            self.nodes.clone_from(&other.nodes);
            return;
        }
        self.gather(other, true);
        self.detach();
        self.attach(other);
        self.root = other.root;
    }

    /// Collects the nodes of `other` that are new, and, to copy, our own root, which will get another place.
    fn gather(&mut self, other: &TreeClock, copying: bool) {
        self.news.clear();
        let mut path = vec![(other.root, other.nodes[other.root as usize].first_child)];
        while let Some((node, child)) = path.pop() {
            if child == NONE {
                self.news.push(node);
                continue;
            }
            let candidate = &other.nodes[child as usize];
            if self.time(child) < candidate.time {
                path.push((node, candidate.next));
                path.push((child, candidate.first_child));
                continue;
            }
            if copying && child == self.root {
                self.news.push(child);
            }
            let goes_on = candidate.learnt > self.time(node);
            path.push((node, if goes_on { candidate.next } else { NONE }));
        }
    }

    fn detach(&mut self) {
        for at in 0..self.news.len() {
            let thread = self.news[at];
            self.room_for(thread);
            let node = self.nodes[thread as usize];
            if node.parent == NONE {
                continue;
            }
            match node.previous {
                NONE => self.nodes[node.parent as usize].first_child = node.next,
                previous => self.nodes[previous as usize].next = node.next,
            }
            if node.next != NONE {
                self.nodes[node.next as usize].previous = node.previous;
            }
            let node = &mut self.nodes[thread as usize];
            (node.parent, node.next, node.previous) = (NONE, NONE, NONE);
        }
    }

    /// Puts the new nodes where they are in `other`: parents first, later siblings before earlier ones.
    fn attach(&mut self, other: &TreeClock) {
        for at in (0..self.news.len()).rev() {
            let thread = self.news[at];
            let theirs = other.nodes[thread as usize];
            let mine = &mut self.nodes[thread as usize];
            mine.time = theirs.time;
            if thread != other.root {
                mine.learnt = theirs.learnt;
                self.push_child(thread, theirs.parent);
            }
        }
    }

    fn push_child(&mut self, child: u32, parent: u32) {
        let first = self.nodes[parent as usize].first_child;
        if first != NONE {
            self.nodes[first as usize].previous = child;
        }
        let node = &mut self.nodes[child as usize];
        (node.parent, node.next, node.previous) = (parent, first, NONE);
        self.nodes[parent as usize].first_child = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use raddle_trace::generate::Rng;

    /// Threads that acquire and release locks at random know the same with both kinds of clocks.
    #[test]
    fn tree_clocks_are_clocks() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let (threads, locks) = (2 + rng.below(12), 1 + rng.below(6));
            let mut flat: Vec<Clock> = vec![Clock::default(); threads as usize];
            let mut tree: Vec<TreeClock> =
                (0..threads).map(|thread| TreeClock::of(ThreadIx(thread))).collect();
            let mut flat_locks = vec![Clock::default(); locks as usize];
            let mut tree_locks = vec![TreeClock::default(); locks as usize];
            for (thread, (flat, tree)) in flat.iter_mut().zip(&mut tree).enumerate() {
                flat.tick(ThreadIx(thread as u32));
                tree.tick();
            }
            for step in 0..400 {
                let (thread, lock) = (rng.below(threads) as usize, rng.below(locks) as usize);
                flat[thread].join(&flat_locks[lock]);
                // A lock that the thread itself released last brings it nothing.
                if tree_locks[lock].root != thread as u32 {
                    tree[thread].join(&tree_locks[lock]);
                }
                flat_locks[lock].copy_from(&flat[thread]);
                tree_locks[lock].copy_from_later(&tree[thread]);
                flat[thread].tick(ThreadIx(thread as u32));
                tree[thread].tick();
                for other in (0..threads).map(ThreadIx) {
                    let case = format!("seed {seed}, step {step}, thread {thread} of {other:?}");
                    assert_eq!(tree[thread].get(other), flat[thread].get(other), "{case}");
                    assert_eq!(tree_locks[lock].get(other), flat_locks[lock].get(other), "lock, {case}");
                }
            }
        }
    }
}
