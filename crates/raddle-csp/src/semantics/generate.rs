//! Random small processes.
//!
//! Terms over a few events, with every operator of the language. Finite ones (no recursion) can be hidden without
//! trouble; recursive ones, `RUN` and `CHAOS` are mixed in with a small share. The outermost operator can be asked for,
//! so that each gets its number of cases.

use super::clauses::Alphabet;
use super::random::Random;
use crate::process::{Compression, Equations, EventId, EventSetId, ProcId, Processes};

/// The outermost operators a generated term can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Constant,
    Prefix,
    InternalChoice,
    ExternalChoice,
    Sliding,
    SyncChoice,
    Sequence,
    Interleave,
    Parallel,
    Alphabetised,
    Linked,
    Hide,
    Project,
    Rename,
    Interrupt,
    Exception,
    SyncInterrupt,
    Compress,
    Recursion,
}

impl Shape {
    pub const ALL: [Shape; 19] = [
        Shape::Constant,
        Shape::Prefix,
        Shape::InternalChoice,
        Shape::ExternalChoice,
        Shape::Sliding,
        Shape::SyncChoice,
        Shape::Sequence,
        Shape::Interleave,
        Shape::Parallel,
        Shape::Alphabetised,
        Shape::Linked,
        Shape::Hide,
        Shape::Project,
        Shape::Rename,
        Shape::Interrupt,
        Shape::Exception,
        Shape::SyncInterrupt,
        Shape::Compress,
        Shape::Recursion,
    ];
}

/// A generator with the arena it fills.
pub struct Generator {
    pub arena: Processes,
    pub equations: Equations,
    pub alphabet: Alphabet,
    pub random: Random,
    /// Whether compressions may occur. Below `prioritise` they do not preserve the semantics, in FDR neither.
    pub compressions: bool,
}

impl Generator {
    /// `events` of at most three letters `a`, `b`, `c`.
    pub fn new(seed: u64, events: usize) -> Generator {
        let mut arena = Processes::default();
        let events: Vec<EventId> = ["a", "b", "c"][..events].iter().map(|e| arena.events.plain(e)).collect();
        Generator {
            arena,
            equations: Equations::default(),
            alphabet: Alphabet { events },
            random: Random::new(seed),
            compressions: true,
        }
    }

    fn event(&mut self) -> EventId {
        let i = self.random.below(self.alphabet.events.len());
        self.alphabet.events[i]
    }

    /// A random set, sometimes empty.
    pub fn set(&mut self) -> EventSetId {
        let bits = self.random.number();
        let events: Vec<EventId> = self
            .alphabet
            .events
            .iter()
            .enumerate()
            .filter(|(i, _)| bits & 1 << i != 0)
            .map(|(_, &e)| e)
            .collect();
        self.arena.set_of(events)
    }

    /// Any process of at most `depth` operators on a path.
    pub fn process(&mut self, depth: usize) -> ProcId {
        if depth == 0 || self.random.one_in(6) {
            return self.shaped(Shape::Constant, 0);
        }
        let shape = Shape::ALL[self.random.below(Shape::ALL.len())];
        // Prefixes more often than the rest: without events there is nothing to compose.
        let shape = if self.random.one_in(3) { Shape::Prefix } else { shape };
        self.shaped(shape, depth)
    }

    /// A process with the given outermost operator.
    pub fn shaped(&mut self, shape: Shape, depth: usize) -> ProcId {
        let below = depth.saturating_sub(1);
        match shape {
            Shape::Constant => self.constant(),
            Shape::Prefix => {
                let mut branches = Vec::new();
                for _ in 0..=self.random.below(2) {
                    let event = self.event();
                    branches.push((event, self.process(below)));
                }
                self.arena.prefixes(branches)
            }
            Shape::InternalChoice => {
                let list = self.several(below);
                self.arena.internal_choice(list)
            }
            Shape::ExternalChoice => {
                let list = self.several(below);
                self.arena.external_choice(list)
            }
            Shape::Sliding => {
                let (l, r) = (self.process(below), self.process(below));
                self.arena.sliding(l, r)
            }
            Shape::SyncChoice => {
                let (l, set, r) = (self.process(below), self.set(), self.process(below));
                self.arena.sync_choice(l, set, r)
            }
            Shape::Sequence => {
                let (l, r) = (self.process(below), self.process(below));
                self.arena.sequence(l, r)
            }
            Shape::Interleave => {
                let list = self.several(below);
                self.arena.interleave(list)
            }
            Shape::Parallel => {
                let (list, set) = (self.several(below), self.set());
                self.arena.parallel(list, set)
            }
            Shape::Alphabetised => {
                let list = self.several(below).into_iter().map(|p| (p, self.set())).collect();
                self.arena.alphabetised(list)
            }
            Shape::Linked => {
                let (l, r) = (self.process(below), self.process(below));
                let links: Vec<_> =
                    (0..=self.random.below(2)).map(|_| (self.event(), self.event())).collect();
                self.arena.linked(l, links, r)
            }
            Shape::Hide => {
                let (p, set) = (self.process(below), self.set());
                self.arena.hide(p, set)
            }
            Shape::Project => {
                let (p, set) = (self.process(below), self.set());
                self.arena.project(p, set)
            }
            Shape::Rename => {
                let p = self.process(below);
                let pairs: Vec<_> =
                    (0..=self.random.below(3)).map(|_| (self.event(), self.event())).collect();
                let renaming = self.arena.renaming(pairs);
                self.arena.rename(p, renaming)
            }
            Shape::Interrupt => {
                let (l, r) = (self.process(below), self.process(below));
                self.arena.interrupt(l, r)
            }
            Shape::Exception => {
                let (l, set, r) = (self.process(below), self.set(), self.process(below));
                self.arena.exception(l, set, r)
            }
            Shape::SyncInterrupt => {
                let (l, set, r) = (self.process(below), self.set(), self.process(below));
                self.arena.sync_interrupt(l, set, r)
            }
            Shape::Compress if !self.compressions => self.process(below),
            Shape::Compress => {
                let how = [
                    Compression::Explicate,
                    Compression::StrongBisimulation,
                    Compression::WeakBisimulation,
                    Compression::DelayBisimulation,
                    Compression::Diamond,
                    Compression::TauLoopFactor,
                    Compression::Normal,
                ][self.random.below(7)];
                let p = self.process(below);
                self.arena.compress(how, p)
            }
            Shape::Recursion => {
                // X = e1 -> (… X …) [] e2 -> P: guarded by construction, and tail recursive, so finite.
                let name = self.arena.call("X");
                let mut branches = Vec::new();
                for _ in 0..=self.random.below(2) {
                    let event = self.event();
                    let next = match self.random.below(4) {
                        0 => self.process(below),
                        1 => {
                            let other = self.process(below.min(1));
                            self.arena.internal_choice(vec![name, other])
                        }
                        _ => name,
                    };
                    branches.push((event, next));
                }
                let body = self.arena.prefixes(branches);
                self.equations.define(&self.arena, name, body);
                name
            }
        }
    }

    fn several(&mut self, depth: usize) -> Vec<ProcId> {
        let count = if self.random.one_in(8) { 3 } else { 2 };
        (0..count).map(|_| self.process(depth)).collect()
    }

    fn constant(&mut self) -> ProcId {
        match self.random.below(12) {
            0..=3 => self.arena.stop(),
            4..=7 => self.arena.skip(),
            8 => self.arena.div(),
            9 => {
                let set = self.set();
                self.arena.run(set)
            }
            10 => {
                let set = self.set();
                self.arena.chaos(set)
            }
            _ => {
                let (event, skip) = (self.event(), self.arena.skip());
                self.arena.prefix(event, skip)
            }
        }
    }
}
