//! Deadlocks of locks, without a search over the whole trace.
//!
//! GoodLock (Havelund 2000; Agarwal, Bensalem) on classes of acquisitions: *thread T, holding the locks H, wants lock l*.
//! A cycle of classes of different threads, each wanting a lock that the next one holds, no two holding a common lock,
//! is an *abstract deadlock pattern* (Tunç, Mathur, Pavlogiannis, Viswanathan, "Sound dynamic deadlock prediction in linear
//! time", PLDI 2023). It is a deadlock if some reordering brings all its threads before such acquisitions at once, which
//! [`crate::reach`] decides for the instances of the pattern.
//!
//! Try-locks do not wait and are no part of a cycle; read-write locks count in their modes.

use crate::clocks::Clocks;
use crate::closure::Target;
use crate::ids::{LockIx, LocksetIx, Pos};
use crate::program::{Action, Program};
use raddle_trace::ThreadIx;
use rustc_hash::{FxHashMap, FxHashSet};

/// Threads in one cycle at most. Longer ones are left to the search.
const CYCLE_MAX: usize = 6;
/// Extensions of paths tried in all.
const EXTENSIONS_MAX: usize = 1_000_000;
/// Abstract patterns looked at.
const PATTERNS_MAX: usize = 5_000;
/// Instances of one pattern looked at.
const INSTANCES_MAX: usize = 2_000;

/// Acquisitions that are alike.
#[derive(Clone, Debug)]
struct Class {
    thread: ThreadIx,
    held: LocksetIx,
    lock: LockIx,
    shared: bool,
    positions: Vec<Pos>,
}

/// Finds all instances of patterns; `visit` gets the targets of each and says whether the pattern needs more instances.
pub fn lock_cycles(program: &Program, must: &Clocks, mut visit: impl FnMut(&[Target]) -> bool) {
    let classes = classes(program);
    let mut finder = Finder {
        program,
        must,
        classes: &classes,
        holders: FxHashMap::default(),
        patterns: 0,
        extensions: 0,
    };
    for (index, class) in classes.iter().enumerate() {
        for (lock, _) in &program.locksets[class.held.index()] {
            finder.holders.entry(*lock).or_default().push(index);
        }
    }
    for start in 0..classes.len() {
        let mut path = vec![start];
        finder.extend(&mut path, &mut visit);
    }
}

/// Classes that can be part of a cycle.
fn classes(program: &Program) -> Vec<Class> {
    let mut index: FxHashMap<(ThreadIx, LocksetIx, LockIx, bool), usize> = FxHashMap::default();
    let mut classes: Vec<Class> = Vec::new();
    for thread in program.thread_ids() {
        let steps = &program.threads[thread.index()];
        for (pos, step) in steps.steps.iter().enumerate() {
            let Action::Lock { lock, shared, tries: false } = step.action else { continue };
            let held = steps.locksets[pos];
            if program.locksets[held.index()].is_empty() {
                continue;
            }
            let next = classes.len();
            let class = *index.entry((thread, held, lock, shared)).or_insert(next);
            if class == next {
                classes.push(Class { thread, held, lock, shared, positions: Vec::new() });
            }
            classes[class].positions.push(pos as Pos);
        }
    }
    loop {
        let held = |class: &Class| program.locksets[class.held.index()].iter().map(|(lock, _)| *lock);
        let wanted: FxHashSet<LockIx> = classes.iter().map(|class| class.lock).collect();
        let holding: FxHashSet<LockIx> = classes.iter().flat_map(held).collect();
        let before = classes.len();
        classes
            .retain(|class| holding.contains(&class.lock) && held(class).any(|lock| wanted.contains(&lock)));
        if classes.len() == before {
            return classes;
        }
    }
}

struct Finder<'a> {
    program: &'a Program,
    must: &'a Clocks,
    classes: &'a [Class],
    holders: FxHashMap<LockIx, Vec<usize>>,
    patterns: usize,
    extensions: usize,
}

impl Finder<'_> {
    /// Is what `class` wants held by `other` in a conflicting mode?
    fn waits_for(&self, class: &Class, other: &Class) -> bool {
        let held = &self.program.locksets[other.held.index()];
        held.iter().any(|(lock, shared)| *lock == class.lock && !(*shared && class.shared))
    }

    fn compatible(&self, path: &[usize], next: &Class) -> bool {
        let held = |class: &Class| &self.program.locksets[class.held.index()];
        path.iter().map(|&index| &self.classes[index]).all(|class| {
            let common = held(class).iter().any(|(lock, shared)| {
                held(next).iter().any(|(other, other_shared)| lock == other && !(*shared && *other_shared))
            });
            class.thread != next.thread && !common
        })
    }

    fn extend(&mut self, path: &mut Vec<usize>, visit: &mut impl FnMut(&[Target]) -> bool) {
        self.extensions += 1;
        if self.patterns >= PATTERNS_MAX || self.extensions >= EXTENSIONS_MAX {
            return;
        }
        let last = &self.classes[path[path.len() - 1]];
        if path.len() > 1 && self.waits_for(last, &self.classes[path[0]]) {
            self.patterns += 1;
            self.instances(path, visit);
        }
        if path.len() == CYCLE_MAX {
            return;
        }
        let nexts: Vec<usize> = self.holders.get(&last.lock).cloned().unwrap_or_default();
        for next in nexts {
            // The smallest number comes first: each cycle is found once.
            if next > path[0]
                && self.waits_for(&self.classes[path[path.len() - 1]], &self.classes[next])
                && self.compatible(path, &self.classes[next])
            {
                path.push(next);
                self.extend(path, visit);
                path.pop();
            }
        }
    }

    fn instances(&self, path: &[usize], visit: &mut impl FnMut(&[Target]) -> bool) {
        let mut targets: Vec<Target> = Vec::new();
        let mut left = INSTANCES_MAX;
        self.choose(path, &mut targets, &mut left, visit);
    }

    /// Chooses an acquisition of each class. False when the pattern needs no more.
    fn choose(
        &self,
        path: &[usize],
        targets: &mut Vec<Target>,
        left: &mut usize,
        visit: &mut impl FnMut(&[Target]) -> bool,
    ) -> bool {
        let Some(&index) = path.get(targets.len()) else {
            return visit(targets);
        };
        let class = &self.classes[index];
        for &pos in &class.positions {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let target = Target { thread: class.thread, pos };
            let parallel =
                |other: &Target| self.must.parallel((other.thread, other.pos), (class.thread, pos));
            if !targets.iter().all(parallel) {
                continue;
            }
            targets.push(target);
            let more = self.choose(path, targets, left, visit);
            targets.pop();
            if !more {
                return false;
            }
        }
        true
    }
}
