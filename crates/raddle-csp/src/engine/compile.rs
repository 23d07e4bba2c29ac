//! From a term to a [`Model`].
//!
//! The tree is cut into leaves and the operators above them. An operator is worth keeping when a parallel composition
//! (or a function that needs its operand as a machine) lies below it without a prefix in between; everything else is
//! explored as a leaf with the firing rules and reduced by strong bisimulation. A definition that reaches itself through
//! kept operators cannot be part of a finite tree, so it becomes a leaf: `P = (Q ||| R) ; P` is explored by terms.
//! Where the cut is made changes speed and memory, never the answer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::combinator::{Combinator, Label, LeafSource, TAU};
use super::explicate::explicate;
use super::firing::{Firing, TERM_DEPTH_MAX, priority_of};
use super::machine::Machine;
use super::model::{Model, Outer, WORDS};
use super::room::{Room, Work};
use super::rules::{self, LeafId, Sharing, Subtree};
use super::verdict::CheckError;
use super::{bisimulation, compress, describe};
use crate::process::{
    CallId, Compression, Definitions, EventId, EventSet, EventSetId, ProcId, Process, Processes, RenamingId,
};

const RED_ZONE_BYTES: usize = 128 * 1024;
const STACK_SEGMENT_BYTES: usize = 4 * 1024 * 1024;

/// Compiles terms of one arena; leaves are shared between the processes it compiles.
pub struct Compiler<'a> {
    pub(super) firing: Firing<'a>,
    leaf_states_max: usize,
    machines: FxHashMap<ProcId, Arc<Machine>>,
    /// What compressions and their kin were made of, for counterexamples.
    insides: FxHashMap<ProcId, Arc<Model>>,
    /// Compressions that keep failures but not what is refused on the way: those made, and whether the terms compiled since
    /// [`Compiler::forget_coarse`] have one.
    coarse: FxHashSet<ProcId>,
    meets_coarse: bool,
    /// Internal choices inside branches of others that were met, see [`super::branches`].
    pub(super) unlike: u32,
    high: FxHashMap<ProcId, bool>,
    /// Calls on the way from the root, and those that were met again.
    open: FxHashSet<CallId>,
    recursive: FxHashSet<CallId>,
    /// The definitions whose bodies are being compiled, outermost first.
    within: Vec<CallId>,
    depth: usize,
}

/// Leaves gathered while one tree is walked.
#[derive(Default)]
pub(super) struct Leaves {
    pub(super) sources: Vec<LeafSource>,
    /// Machines to take for the next leaves instead of making them.
    pub(super) given: std::collections::VecDeque<Arc<Machine>>,
}

impl Leaves {
    fn add(&mut self, name: String, machine: Arc<Machine>, is_controller: bool) -> LeafId {
        self.sources.push(LeafSource { name, machine, is_controller, inside: None });
        LeafId(self.sources.len() as u32 - 1)
    }
}

impl<'a> Compiler<'a> {
    pub fn new(
        arena: &'a mut Processes,
        definitions: &'a mut dyn Definitions,
        leaf_states_max: usize,
    ) -> Compiler<'a> {
        Compiler {
            firing: Firing::new(arena, definitions),
            leaf_states_max,
            machines: FxHashMap::default(),
            insides: FxHashMap::default(),
            coarse: FxHashSet::default(),
            meets_coarse: false,
            unlike: 0,
            high: FxHashMap::default(),
            open: FxHashSet::default(),
            recursive: FxHashSet::default(),
            within: Vec::new(),
            depth: 0,
        }
    }

    /// Lets the flag stop a compilation.
    pub fn cancelled_by(&mut self, cancel: Option<Arc<AtomicBool>>) {
        self.firing.cancel = cancel;
    }

    /// Lets somebody watch.
    pub fn watched_by(&mut self, progress: Option<super::verdict::OnProgress>) {
        self.firing.progress = progress;
    }

    /// Makes leaves that need more memory an error.
    pub fn limited_to(&mut self, bytes: u64) {
        self.firing.memory_max_bytes = bytes;
    }

    pub fn arena(&mut self) -> &mut Processes {
        self.firing.arena
    }

    /// Compiles a process.
    pub fn compile(&mut self, root: ProcId) -> Result<Model, CheckError> {
        let outside = self.within.len();
        let model = self.compile_inside(root);
        self.within.truncate(outside);
        model
    }

    fn compile_inside(&mut self, root: ProcId) -> Result<Model, CheckError> {
        let mut wrappers: Vec<ProcId> = Vec::new();
        let mut inner = root;
        // Wrappers count only down to the last `prioritise`, `chase` or the like: what is below is the combinator's.
        let mut cut = (0, root);
        let mut seen = FxHashSet::default();
        loop {
            match self.firing.arena.get(inner).clone() {
                Process::Call(call) => {
                    if !seen.insert(call) || seen.len() > TERM_DEPTH_MAX {
                        break;
                    }
                    self.within.push(call);
                    inner = self.firing.body(call)?;
                }
                Process::Prioritise(p, _)
                | Process::PrioritiseOrder(p, _)
                | Process::OneOfEach(p)
                | Process::Chase(p) => {
                    wrappers.push(inner);
                    inner = p;
                    cut = (wrappers.len(), inner);
                }
                Process::Hide(p, _) | Process::Project(p, _) | Process::Rename(p, _) => {
                    wrappers.push(inner);
                    inner = p;
                }
                _ => break,
            }
        }
        wrappers.truncate(cut.0);
        let mut leaves = Leaves::default();
        let tree = self.build(cut.1, &mut leaves)?;
        let combinator = Combinator::new(leaves.sources, tree.rules);
        let limit = WORDS[WORDS.len() - 1] - 1;
        if combinator.layout.words() > limit {
            return Err(CheckError::VectorTooLong { bits: combinator.layout.bits(), limit: limit * 64 });
        }
        Ok(self.wrapped(combinator, &wrappers))
    }

    fn wrapped(&self, combinator: Combinator, wrappers: &[ProcId]) -> Model {
        let arena = &*self.firing.arena;
        let mut labels = combinator.labels.clone();
        let mut number: FxHashMap<EventId, Label> =
            labels.iter().enumerate().map(|(i, &e)| (e, i as Label)).collect();
        let mut outer = Vec::new();
        for &wrapper in wrappers.iter().rev() {
            let own = labels.clone();
            outer.push(match arena.get(wrapper) {
                Process::Prioritise(_, order) => {
                    Outer::Prioritise(own.iter().map(|&e| rank(arena, order, e)).collect())
                }
                Process::PrioritiseOrder(_, above) => {
                    let over = |below: &EventId| {
                        above
                            .iter()
                            .filter(|p| p.1 == *below)
                            .filter_map(|p| number.get(&p.0).copied())
                            .collect()
                    };
                    Outer::Order(own.iter().map(over).collect())
                }
                Process::OneOfEach(_) => Outer::OneOfEach,
                Process::Chase(_) => Outer::Chase,
                Process::Hide(_, set) => {
                    let set = arena.events_of(*set);
                    let hide = |e: &EventId| smallvec![if set.contains(*e) { TAU } else { number[e] }];
                    Outer::Relabel(own.iter().map(hide).collect())
                }
                Process::Project(_, set) => {
                    let set = arena.events_of(*set);
                    let keeps = |e: EventId| !e.is_visible() || set.contains(e);
                    let hide = |e: &EventId| smallvec![if keeps(*e) { number[e] } else { TAU }];
                    Outer::Relabel(own.iter().map(hide).collect())
                }
                Process::Rename(_, renaming) => {
                    let images = |&e: &EventId| self.images(*renaming, e, &mut labels, &mut number);
                    Outer::Relabel(own.iter().map(images).collect())
                }
                other => unreachable!("{other:?} is no wrapper"),
            });
        }
        Model { combinator, outer, labels }
    }

    fn images(
        &self,
        renaming: RenamingId,
        event: EventId,
        labels: &mut Vec<EventId>,
        number: &mut FxHashMap<EventId, Label>,
    ) -> SmallVec<[Label; 1]> {
        if !event.is_visible() {
            return smallvec![number[&event]];
        }
        self.firing
            .arena
            .renamed(renaming, event)
            .map(|e| {
                *number.entry(e).or_insert_with(|| {
                    labels.push(e);
                    labels.len() as Label - 1
                })
            })
            .collect()
    }

    /// Whether a term is to be kept as an operator rather than explored as a leaf.
    pub(super) fn is_high(&mut self, p: ProcId) -> Result<bool, CheckError> {
        if let Some(&known) = self.high.get(&p) {
            return Ok(known);
        }
        if self.depth >= TERM_DEPTH_MAX {
            return Ok(false);
        }
        self.depth += 1;
        let answer = stacker::maybe_grow(RED_ZONE_BYTES, STACK_SEGMENT_BYTES, || self.look(p));
        self.depth -= 1;
        let answer = answer?;
        self.high.insert(p, answer);
        Ok(answer)
    }

    fn look(&mut self, p: ProcId) -> Result<bool, CheckError> {
        let operands: SmallVec<[ProcId; 4]> = match self.firing.arena.get(p).clone() {
            Process::Interleave(list) => return self.all_grounded(list.iter().copied()),
            Process::Parallel(list, _) => return self.all_grounded(list.iter().copied()),
            Process::Alphabetised(list) => return self.all_grounded(list.iter().map(|&(q, _)| q)),
            Process::Linked(l, _, r) => return self.all_grounded([l, r].into_iter()),
            Process::Prioritise(q, _)
            | Process::PrioritiseOrder(q, _)
            | Process::OneOfEach(q)
            | Process::Chase(q)
            | Process::Compress(_, q) => {
                return self.all_grounded([q].into_iter());
            }
            Process::Hide(q, _) | Process::Project(q, _) | Process::Rename(q, _) => smallvec![q],
            Process::ExternalChoice(list) | Process::InternalChoice(list) => list.iter().copied().collect(),
            Process::Sliding(l, r)
            | Process::SyncChoice(l, _, r)
            | Process::Sequence(l, r)
            | Process::Interrupt(l, r)
            | Process::Exception(l, _, r)
            | Process::SyncInterrupt(l, _, r) => smallvec![l, r],
            Process::Call(call) => {
                if !self.open.insert(call) {
                    self.recursive.insert(call);
                    return Ok(false);
                }
                let body = self.firing.body(call).and_then(|body| self.is_high(body));
                self.open.remove(&call);
                return Ok(body? && !self.recursive.contains(&call));
            }
            _ => return Ok(false),
        };
        let mut high = false;
        for q in operands {
            high |= self.is_high(q)?;
        }
        Ok(high)
    }

    /// Looks below an operator that is always kept, so that recursion through it is noticed.
    fn all_grounded(&mut self, operands: impl Iterator<Item = ProcId>) -> Result<bool, CheckError> {
        for q in operands {
            self.is_high(q)?;
        }
        Ok(true)
    }

    pub(super) fn build(&mut self, p: ProcId, leaves: &mut Leaves) -> Result<Subtree, CheckError> {
        if !self.is_high(p)? {
            let name = describe::term(self.firing.arena, p);
            let machine = match leaves.given.pop_front() {
                Some(machine) => machine,
                None => self.leaf(p)?,
            };
            let id = leaves.add(name, machine.clone(), false);
            return Ok(Subtree::leaf(id, &machine));
        }
        stacker::maybe_grow(RED_ZONE_BYTES, STACK_SEGMENT_BYTES, || self.build_operator(p, leaves))
    }

    fn build_operator(&mut self, p: ProcId, leaves: &mut Leaves) -> Result<Subtree, CheckError> {
        let term = self.firing.arena.get(p).clone();
        let name = describe::term(self.firing.arena, p);
        let (tree, controller) = match term {
            Process::Call(call) => {
                let body = self.firing.body(call)?;
                self.within.push(call);
                let tree = self.build(body, leaves)?;
                self.within.pop();
                return Ok(tree);
            }
            Process::Interleave(list) => {
                let children = self.build_all(list.iter().copied(), leaves)?;
                return rules::compose(children, &Sharing::Common(&EventSet::default()), &name);
            }
            Process::Parallel(list, set) => {
                let children = self.build_all(list.iter().copied(), leaves)?;
                let set = self.set(set);
                return rules::compose(children, &Sharing::Common(&set), &name);
            }
            Process::Alphabetised(list) => {
                let children = self.build_all(list.iter().map(|&(q, _)| q), leaves)?;
                let sets: Vec<EventSet> = list.iter().map(|&(_, s)| self.set(s)).collect();
                return rules::compose(children, &Sharing::Alphabets(&sets), &name);
            }
            Process::Linked(l, links, r) => {
                let l = self.build(l, leaves)?;
                let r = self.build(r, leaves)?;
                return Ok(rules::link(l, &links, r));
            }
            Process::Hide(q, set) => {
                let set = self.set(set);
                let hide = |e| [if set.contains(e) { EventId::TAU } else { e }];
                return Ok(self.build(q, leaves)?.relabelled(hide));
            }
            Process::Project(q, set) => {
                let set = self.set(set);
                let hide = |e| [if set.contains(e) { e } else { EventId::TAU }];
                return Ok(self.build(q, leaves)?.relabelled(hide));
            }
            Process::Rename(q, renaming) => {
                let tree = self.build(q, leaves)?;
                let arena = &*self.firing.arena;
                return Ok(tree.relabelled(|e| arena.renamed(renaming, e).collect::<Vec<_>>()));
            }
            Process::Prioritise(..)
            | Process::PrioritiseOrder(..)
            | Process::OneOfEach(_)
            | Process::Chase(_)
            | Process::Compress(..) => {
                let machine = match leaves.given.pop_front() {
                    Some(machine) => machine,
                    None => self.function(p)?,
                };
                let id = leaves.add(name, machine.clone(), false);
                leaves.sources[id.0 as usize].inside = self.insides.get(&p).cloned();
                return Ok(Subtree::leaf(id, &machine));
            }
            Process::Sequence(l, r) => {
                let (l, r) = (self.build(l, leaves)?, self.build(r, leaves)?);
                rules::sequence(LeafId(leaves.sources.len() as u32), l, r)
            }
            Process::ExternalChoice(list) => {
                let children = self.build_all(list.iter().copied(), leaves)?;
                rules::external_choice(LeafId(leaves.sources.len() as u32), children)
            }
            Process::InternalChoice(list) => {
                let children = self.branches(&list, leaves)?;
                rules::internal_choice(LeafId(leaves.sources.len() as u32), children)
            }
            Process::Sliding(l, r) => {
                let (l, r) = (self.build(l, leaves)?, self.build(r, leaves)?);
                rules::sliding(LeafId(leaves.sources.len() as u32), l, r)
            }
            Process::SyncChoice(l, set, r) => {
                let (l, r) = (self.build(l, leaves)?, self.build(r, leaves)?);
                rules::synchronised(LeafId(leaves.sources.len() as u32), l, &self.set(set), r, false)
            }
            Process::Interrupt(l, r) => {
                let (l, r) = (self.build(l, leaves)?, self.build(r, leaves)?);
                let none = EventSet::default();
                rules::synchronised(LeafId(leaves.sources.len() as u32), l, &none, r, true)
            }
            Process::SyncInterrupt(l, set, r) => {
                let (l, r) = (self.build(l, leaves)?, self.build(r, leaves)?);
                rules::synchronised(LeafId(leaves.sources.len() as u32), l, &self.set(set), r, true)
            }
            Process::Exception(l, set, r) => {
                let (l, r) = (self.build(l, leaves)?, self.build(r, leaves)?);
                rules::exception(LeafId(leaves.sources.len() as u32), l, &self.set(set), r)
            }
            other => unreachable!("{other:?} is compiled as a leaf"),
        };
        leaves.add(name, Arc::new(controller), true);
        Ok(tree)
    }

    fn build_all(
        &mut self,
        list: impl Iterator<Item = ProcId>,
        leaves: &mut Leaves,
    ) -> Result<Vec<Subtree>, CheckError> {
        list.map(|q| self.build(q, leaves)).collect()
    }

    fn set(&self, set: EventSetId) -> EventSet {
        self.firing.arena.events_of(set).clone()
    }

    /// A sequential process as a machine, reduced.
    fn leaf(&mut self, p: ProcId) -> Result<Arc<Machine>, CheckError> {
        if let Some(known) = self.machines.get(&p) {
            return Ok(known.clone());
        }
        let machine = Machine::of_term(&mut self.firing, p, self.leaf_states_max)?;
        let room = self.room(Work::Reduce, p).beside(machine.bytes());
        let machine = match bisimulation::strong(&machine, &room) {
            Ok(reduced) => reduced,
            // The reduction saves memory later; where there is none for it now, the leaf stays as it is.
            Err(CheckError::Memory { .. }) => machine,
            Err(other) => return Err(other),
        };
        Ok(self.keep(p, machine))
    }

    fn keep(&mut self, p: ProcId, machine: Machine) -> Arc<Machine> {
        self.firing.held_bytes += machine.bytes();
        let machine = Arc::new(machine);
        self.machines.insert(p, machine.clone());
        machine
    }

    /// Starts to watch for compressions that keep failures only.
    pub fn forget_coarse(&mut self) {
        self.meets_coarse = false;
    }

    /// Whether one was met since.
    pub fn meets_coarse(&self) -> bool {
        self.meets_coarse
    }

    /// The room for work on a process.
    pub(super) fn room(&self, work: Work, p: ProcId) -> Room {
        let name = describe::term(self.firing.arena, p);
        let within = self.within.last().map(|&call| self.firing.arena.call_name(call).to_owned());
        self.firing.room(work, name, within)
    }

    /// The room for a normal form that belongs to no machine.
    pub fn room_for_normal_form(&self, work: Work, p: ProcId) -> Room {
        self.room(work, p)
    }

    /// Bytes of the machines made so far.
    pub fn held_bytes(&self) -> u64 {
        self.firing.memory_bytes()
    }

    /// `prioritise`, `chase`, `deter` or a compression below other operators: its operand explored as a machine.
    fn function(&mut self, p: ProcId) -> Result<Arc<Machine>, CheckError> {
        if let Some(known) = self.machines.get(&p) {
            self.meets_coarse |= self.coarse.contains(&p);
            return Ok(known.clone());
        }
        let met_before = std::mem::take(&mut self.meets_coarse);
        let machine = match *self.firing.arena.get(p) {
            Process::Compress(how, q) => {
                self.meets_coarse |= matches!(how, Compression::Normal | Compression::Diamond);
                let inner = self.compile(q)?;
                let room = self.room(Work::Explore, q);
                let machine = explicate(&inner, self.leaf_states_max, &room)?;
                self.insides.insert(p, Arc::new(inner));
                compress::compress(how, machine, self.leaf_states_max, &room.to(Work::Compress(how)))?
            }
            _ => {
                let inner = self.compile(p)?;
                let room = self.room(Work::Explore, p);
                let machine = explicate(&inner, self.leaf_states_max, &room)?;
                self.insides.insert(p, Arc::new(inner));
                bisimulation::strong(&machine, &room.to(Work::Reduce).beside(machine.bytes()))?
            }
        };
        if self.meets_coarse {
            self.coarse.insert(p);
        }
        self.meets_coarse |= met_before;
        Ok(self.keep(p, machine))
    }

    /// The explicit machine of a whole process, reduced by strong bisimulation if `reduce`.
    pub fn machine(&mut self, p: ProcId, reduce: bool) -> Result<Machine, CheckError> {
        let model = self.compile(p)?;
        let room = self.room(Work::Explore, p);
        let machine = explicate(&model, self.leaf_states_max, &room)?;
        if !reduce {
            return Ok(machine);
        }
        bisimulation::strong(&machine, &room.to(Work::Reduce).beside(machine.bytes()))
    }
}

fn rank(arena: &Processes, order: &[EventSetId], event: EventId) -> Option<u32> {
    priority_of(arena, order, event).map(|r| r as u32)
}
