//! Hash-consed maps from addresses to entries: the stores of the abstract machine.
//!
//! A store is a Patricia trie (Okasaki and Gill, *Fast Mergeable Integer Maps*, 1998) whose nodes are interned, so that
//! equal stores are the same number, an update shares all but a path with its origin, and comparing or joining two
//! stores costs no more than their difference. A state of the abstract machine needs eight bytes: the number of its
//! threads and the number of its store.

use crate::syntax::core::index;
use rustc_hash::FxHashMap;

index!(
    /// A store. `Root::EMPTY` has no entries.
    Root
);

impl Root {
    pub const EMPTY: Root = Root(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Empty,
    Leaf {
        key: u32,
        value: u32,
    },
    /// Keys agree above `bit`, have `prefix` there, and go left where `bit` is clear.
    Branch {
        prefix: u32,
        bit: u32,
        left: Root,
        right: Root,
    },
}

/// All tries that were ever built.
#[derive(Debug)]
pub struct Tries {
    nodes: Vec<Node>,
    numbers: FxHashMap<Node, Root>,
}

impl Default for Tries {
    fn default() -> Tries {
        Tries { nodes: vec![Node::Empty], numbers: [(Node::Empty, Root::EMPTY)].into_iter().collect() }
    }
}

/// The part of a key above a bit.
fn prefix(key: u32, bit: u32) -> u32 {
    key & !(bit | (bit - 1))
}

impl Tries {
    pub fn nodes_count(&self) -> usize {
        self.nodes.len()
    }

    fn node(&mut self, node: Node) -> Root {
        let next = Root(self.nodes.len() as u32);
        let nodes = &mut self.nodes;
        *self.numbers.entry(node).or_insert_with(|| {
            nodes.push(node);
            next
        })
    }

    fn branch(&mut self, prefix: u32, bit: u32, left: Root, right: Root) -> Root {
        match (left, right) {
            (Root::EMPTY, other) | (other, Root::EMPTY) => other,
            _ => self.node(Node::Branch { prefix, bit, left, right }),
        }
    }

    /// Two non-empty tries whose keys differ.
    fn link(&mut self, (a_key, a): (u32, Root), (b_key, b): (u32, Root)) -> Root {
        let bit = 1 << (31 - (a_key ^ b_key).leading_zeros());
        let prefix = prefix(a_key, bit);
        if a_key & bit == 0 { self.branch(prefix, bit, a, b) } else { self.branch(prefix, bit, b, a) }
    }

    pub fn get(&self, mut root: Root, key: u32) -> Option<u32> {
        loop {
            match self.nodes[root.index()] {
                Node::Empty => return None,
                Node::Leaf { key: found, value } => return (found == key).then_some(value),
                Node::Branch { bit, left, right, .. } => root = if key & bit == 0 { left } else { right },
            }
        }
    }

    pub fn insert(&mut self, root: Root, key: u32, value: u32) -> Root {
        let leaf = self.node(Node::Leaf { key, value });
        self.insert_leaf(root, key, leaf)
    }

    fn insert_leaf(&mut self, root: Root, key: u32, leaf: Root) -> Root {
        match self.nodes[root.index()] {
            Node::Empty => leaf,
            Node::Leaf { key: found, .. } if found == key => leaf,
            Node::Leaf { key: found, .. } => self.link((found, root), (key, leaf)),
            Node::Branch { prefix: p, bit, .. } if prefix(key, bit) != p => self.link((p, root), (key, leaf)),
            Node::Branch { prefix, bit, left, right } if key & bit == 0 => {
                let left = self.insert_leaf(left, key, leaf);
                self.branch(prefix, bit, left, right)
            }
            Node::Branch { prefix, bit, left, right } => {
                let right = self.insert_leaf(right, key, leaf);
                self.branch(prefix, bit, left, right)
            }
        }
    }

    /// The union; where both have an entry, `both` says what becomes of it.
    pub fn join(&mut self, a: Root, b: Root, both: &mut impl FnMut(u32, u32) -> u32) -> Root {
        if a == b || b == Root::EMPTY {
            return a;
        }
        if a == Root::EMPTY {
            return b;
        }
        match (self.nodes[a.index()], self.nodes[b.index()]) {
            (Node::Leaf { key, value }, _) => match self.get(b, key) {
                Some(other) => {
                    let value = both(value, other);
                    self.insert(b, key, value)
                }
                None => self.insert_leaf(b, key, a),
            },
            (_, Node::Leaf { key, value }) => match self.get(a, key) {
                Some(other) => {
                    let value = both(other, value);
                    self.insert(a, key, value)
                }
                None => self.insert_leaf(a, key, b),
            },
            (
                Node::Branch { prefix: p, bit: m, left: al, right: ar },
                Node::Branch { prefix: q, bit: n, left: bl, right: br },
            ) => {
                if m == n && p == q {
                    let left = self.join(al, bl, both);
                    let right = self.join(ar, br, both);
                    self.branch(p, m, left, right)
                } else if m > n && prefix(q, m) == p {
                    if q & m == 0 {
                        let left = self.join(al, b, both);
                        self.branch(p, m, left, ar)
                    } else {
                        let right = self.join(ar, b, both);
                        self.branch(p, m, al, right)
                    }
                } else if n > m && prefix(p, n) == q {
                    if p & n == 0 {
                        let left = self.join(a, bl, both);
                        self.branch(q, n, left, br)
                    } else {
                        let right = self.join(a, br, both);
                        self.branch(q, n, bl, right)
                    }
                } else {
                    self.link((p, a), (q, b))
                }
            }
            (Node::Empty, _) | (_, Node::Empty) => unreachable!("handled above"),
        }
    }

    /// Whether every entry of `a` is below the entry of `b` at the same key.
    pub fn below(&self, a: Root, b: Root, leq: &mut impl FnMut(u32, u32) -> bool) -> bool {
        if a == b || a == Root::EMPTY {
            return true;
        }
        match (self.nodes[a.index()], self.nodes[b.index()]) {
            (_, Node::Empty) => false,
            (Node::Leaf { key, value }, _) => self.get(b, key).is_some_and(|other| leq(value, other)),
            (_, Node::Leaf { .. }) => false,
            (
                Node::Branch { prefix: p, bit: m, left: al, right: ar },
                Node::Branch { prefix: q, bit: n, left: bl, right: br },
            ) => {
                if m == n && p == q {
                    self.below(al, bl, leq) && self.below(ar, br, leq)
                } else if n > m && prefix(p, n) == q {
                    self.below(a, if p & n == 0 { bl } else { br }, leq)
                } else {
                    false
                }
            }
            (Node::Empty, _) => true,
        }
    }

    /// Keeps the entries whose key passes.
    pub fn filter(&mut self, root: Root, keep: &mut impl FnMut(u32) -> bool) -> Root {
        match self.nodes[root.index()] {
            Node::Empty => root,
            Node::Leaf { key, .. } => {
                if keep(key) {
                    root
                } else {
                    Root::EMPTY
                }
            }
            Node::Branch { prefix, bit, left, right } => {
                let (l, r) = (self.filter(left, keep), self.filter(right, keep));
                if l == left && r == right { root } else { self.branch(prefix, bit, l, r) }
            }
        }
    }

    /// All entries, ascending.
    pub fn entries(&self, root: Root) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        let mut work = vec![root];
        while let Some(root) = work.pop() {
            match self.nodes[root.index()] {
                Node::Empty => {}
                Node::Leaf { key, value } => out.push((key, value)),
                Node::Branch { left, right, .. } => work.extend([right, left]),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concrete::run::Dice;
    use std::collections::BTreeMap;

    fn build(tries: &mut Tries, entries: &[(u32, u32)]) -> (Root, BTreeMap<u32, u32>) {
        let mut root = Root::EMPTY;
        for &(key, value) in entries {
            root = tries.insert(root, key, value);
        }
        (root, entries.iter().copied().collect())
    }

    /// Entries with a few small keys, so that maps overlap, and some from the whole range.
    fn entries(dice: &mut Dice) -> Vec<(u32, u32)> {
        let key = |dice: &mut Dice| match dice.below(3) {
            0 => (dice.below(1 << 16) << 16 | dice.below(1 << 16)) as u32,
            _ => dice.below(24) as u32,
        };
        (0..dice.below(24)).map(|_| (key(dice), dice.below(6) as u32)).collect()
    }

    #[test]
    fn behaves_like_a_map() {
        for seed in 0..2_000 {
            let mut dice = Dice::new(seed);
            let mut tries = Tries::default();
            let (a, b) = (entries(&mut dice), entries(&mut dice));
            let (ra, ma) = build(&mut tries, &a);
            let (rb, mb) = build(&mut tries, &b);
            assert_eq!(tries.entries(ra), ma.clone().into_iter().collect::<Vec<_>>(), "seed {seed}");
            for probe in 0..24 {
                assert_eq!(tries.get(ra, probe), ma.get(&probe).copied(), "seed {seed}");
            }
            assert_eq!(ra == rb, ma == mb, "seed {seed}: equal maps are one number");

            let mut union = mb.clone();
            for (&key, &value) in &ma {
                union.entry(key).and_modify(|other| *other = value.max(*other)).or_insert(value);
            }
            let joined = tries.join(ra, rb, &mut |x, y| x.max(y));
            assert_eq!(tries.entries(joined), union.into_iter().collect::<Vec<_>>(), "seed {seed}");

            let below = ma.iter().all(|(key, value)| mb.get(key).is_some_and(|other| value <= other));
            assert_eq!(tries.below(ra, rb, &mut |x, y| x <= y), below, "seed {seed}");
            assert!(tries.below(ra, joined, &mut |x, y| x <= y), "seed {seed}");

            let kept = tries.filter(ra, &mut |key| key % 2 == 0);
            let even: Vec<_> = ma.into_iter().filter(|(key, _)| key % 2 == 0).collect();
            assert_eq!(tries.entries(kept), even, "seed {seed}");
        }
    }
}
