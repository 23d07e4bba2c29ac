//! Firing rules: the transitions of a closed term, operator by operator.
//!
//! This is the operational semantics of Roscoe (2010, chapter 9) with `✓` as a signal, see [`crate::process`]. It is
//! the reference: leaf machines are explored with it, and the combinator's rules ([`super::rules`]) must agree with it,
//! which the tests check on random terms.
//!
//! Transitions are remembered per term and sorted, so that everything built on them is reproducible. Compressions are
//! transparent here: they change the size of a machine, never its behaviour, and a leaf is reduced as a whole anyway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::room::{Room, Work};
use super::verdict::CheckError;
use crate::process::{CallId, Definitions, EventId, EventSetId, ProcId, Process, Processes};

/// Stack that must be free before another level of terms is entered, and how much is added when it is not.
const RED_ZONE_BYTES: usize = 128 * 1024;
const STACK_SEGMENT_BYTES: usize = 4 * 1024 * 1024;
/// Levels of operators and calls within one term. Deeper terms come from recursion without end, such as `P = P ; Q`.
pub const TERM_DEPTH_MAX: usize = 20_000;

/// How often somebody who watches is told how far a component is.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A transition of a term.
pub type Transition = (EventId, ProcId);

/// The terms of an arena as a labelled transition system.
pub struct Firing<'a> {
    pub arena: &'a mut Processes,
    definitions: &'a mut dyn Definitions,
    bodies: FxHashMap<CallId, ProcId>,
    known: FxHashMap<ProcId, Arc<[Transition]>>,
    /// Calls whose transitions are being computed: meeting one again is unguarded recursion.
    open: FxHashSet<CallId>,
    depth: usize,
    /// Told from time to time how large the component in work is.
    pub progress: Option<super::verdict::OnProgress>,
    reported: Option<Instant>,
    /// Set from outside to stop.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Bytes of the remembered transitions.
    known_bytes: u64,
    /// Bytes of the machines that were made and are kept.
    pub held_bytes: u64,
    /// The most bytes that leaves may take.
    pub memory_max_bytes: u64,
}

impl<'a> Firing<'a> {
    pub fn new(arena: &'a mut Processes, definitions: &'a mut dyn Definitions) -> Firing<'a> {
        Firing {
            arena,
            definitions,
            bodies: FxHashMap::default(),
            known: FxHashMap::default(),
            open: FxHashSet::default(),
            depth: 0,
            progress: None,
            reported: None,
            cancel: None,
            known_bytes: 0,
            held_bytes: 0,
            memory_max_bytes: u64::MAX,
        }
    }

    /// An error if the check was cancelled.
    pub fn go_on(&self) -> Result<(), CheckError> {
        match &self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(CheckError::Cancelled),
            _ => Ok(()),
        }
    }

    /// Says how many states the component in work has, from time to time.
    pub fn report(&mut self, component: ProcId, states: usize) {
        let Some(progress) = &self.progress else { return };
        if self.reported.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            return;
        }
        self.reported = Some(Instant::now());
        progress(&super::Progress {
            compiling: true,
            component: super::describe::term(self.arena, component),
            pairs: states as u64,
            memory_bytes: self.memory_bytes(),
            ..Default::default()
        });
    }

    /// About how many bytes the terms, their definitions, their transitions and the machines made of them take.
    pub fn memory_bytes(&self) -> u64 {
        self.arena.memory_bytes() + self.definitions.memory_bytes() + self.known_bytes + self.held_bytes
    }

    /// The room that is left for a machine.
    pub fn room(&self, work: Work, name: String, within: Option<String>) -> Room {
        Room {
            work,
            name,
            within,
            held_bytes: self.memory_bytes(),
            max_bytes: self.memory_max_bytes,
            cancel: self.cancel.clone(),
        }
    }

    /// The body of a call, evaluated once.
    pub fn body(&mut self, call: CallId) -> Result<ProcId, CheckError> {
        if let Some(&body) = self.bodies.get(&call) {
            return Ok(body);
        }
        let body = self.definitions.unfold(call, self.arena)?;
        self.bodies.insert(call, body);
        Ok(body)
    }

    /// All transitions of a term, sorted, without duplicates.
    pub fn transitions(&mut self, p: ProcId) -> Result<Arc<[Transition]>, CheckError> {
        if let Some(known) = self.known.get(&p) {
            return Ok(known.clone());
        }
        if self.depth >= TERM_DEPTH_MAX {
            let name =
                self.open.iter().next().map_or("a process".into(), |&c| self.arena.call_name(c).to_string());
            return Err(CheckError::UnguardedRecursion { name });
        }
        self.depth += 1;
        let result = stacker::maybe_grow(RED_ZONE_BYTES, STACK_SEGMENT_BYTES, || self.fire(p));
        self.depth -= 1;
        let mut list = result?;
        list.sort_unstable();
        list.dedup();
        let list: Arc<[Transition]> = list.into();
        self.known_bytes += 64 + 8 * list.len() as u64;
        self.known.insert(p, list.clone());
        Ok(list)
    }

    fn fire(&mut self, p: ProcId) -> Result<Vec<Transition>, CheckError> {
        let term = self.arena.get(p).clone();
        Ok(match term {
            Process::Stop | Process::Omega => Vec::new(),
            Process::Skip => vec![(EventId::TICK, self.arena.omega())],
            Process::Div => vec![(EventId::TAU, p)],
            Process::Chaos(set) => {
                let stop = self.arena.stop();
                let events = self.arena.events_of(set).clone();
                events.iter().map(|e| (e, p)).chain([(EventId::TAU, stop)]).collect()
            }
            Process::Run(set) => self.arena.events_of(set).iter().map(|e| (e, p)).collect(),
            Process::Prefix(branches) => branches.to_vec(),
            Process::InternalChoice(operands) => operands.iter().map(|&q| (EventId::TAU, q)).collect(),
            Process::ExternalChoice(operands) => self.external_choice(&operands)?,
            Process::Sliding(left, right) => {
                let mut list = vec![(EventId::TAU, right)];
                for &(e, next) in self.transitions(left)?.iter() {
                    let next = if e == EventId::TAU { self.arena.sliding(next, right) } else { next };
                    list.push((e, next));
                }
                list
            }
            Process::SyncChoice(left, set, right) => {
                let rebuild = |a: &mut Processes, l, r| a.sync_choice(l, set, r);
                self.synchronised(left, set, right, rebuild, |_, next, _| next)?
            }
            Process::SyncInterrupt(left, set, right) => {
                let rebuild = move |a: &mut Processes, l, r| a.sync_interrupt(l, set, r);
                self.synchronised(left, set, right, rebuild, |arena, next, right| {
                    arena.sync_interrupt(next, set, right)
                })?
            }
            Process::Sequence(left, right) => {
                let mut list = Vec::new();
                let skip = self.arena.skip();
                for &(e, next) in self.transitions(left)?.iter() {
                    list.push(match e {
                        EventId::TICK => (EventId::TAU, right),
                        // `SKIP ; Q` only has the `τ` to `Q`, and `SKIP ; Q = Q` in every model. FDR's counts of states say that
                        // it does the same. Not where the sequence begins: `P = SKIP ; P` diverges.
                        _ if next == skip => (e, right),
                        _ => (e, self.arena.sequence(next, right)),
                    });
                }
                list
            }
            Process::Interleave(operands) => {
                let empty = self.arena.set_of([]);
                self.shared(&operands, empty, |arena, list| arena.interleave(list))?
            }
            Process::Parallel(operands, set) => {
                self.shared(&operands, set, move |arena, list| arena.parallel(list, set))?
            }
            Process::Alphabetised(operands) => self.alphabetised(&operands)?,
            Process::Linked(left, links, right) => self.linked(left, &links, right)?,
            Process::Hide(inner, set) => {
                let mut list = Vec::new();
                for &(e, next) in self.transitions(inner)?.iter() {
                    let e = if self.arena.events_of(set).contains(e) { EventId::TAU } else { e };
                    list.push((e, self.under(e, next, |a, q| a.hide(q, set))));
                }
                list
            }
            Process::Project(inner, set) => {
                let mut list = Vec::new();
                for &(e, next) in self.transitions(inner)?.iter() {
                    let hidden = e.is_visible() && !self.arena.events_of(set).contains(e);
                    let e = if hidden { EventId::TAU } else { e };
                    list.push((e, self.under(e, next, |a, q| a.project(q, set))));
                }
                list
            }
            Process::Rename(inner, renaming) => {
                let mut list = Vec::new();
                for &(e, next) in self.transitions(inner)?.iter() {
                    let next = self.under(e, next, |a, q| a.rename(q, renaming));
                    list.extend(self.arena.renamed(renaming, e).map(|new| (new, next)));
                }
                list
            }
            Process::Interrupt(left, right) => {
                let mut list = Vec::new();
                for &(e, next) in self.transitions(left)?.iter() {
                    list.push((e, self.under(e, next, |a, q| a.interrupt(q, right))));
                }
                for &(e, next) in self.transitions(right)?.iter() {
                    let next = if e == EventId::TAU { self.arena.interrupt(left, next) } else { next };
                    list.push((e, next));
                }
                list
            }
            Process::Exception(left, set, right) => {
                let mut list = Vec::new();
                for &(e, next) in self.transitions(left)?.iter() {
                    let thrown = self.arena.events_of(set).contains(e);
                    let next =
                        if thrown { right } else { self.under(e, next, |a, q| a.exception(q, set, right)) };
                    list.push((e, next));
                }
                list
            }
            Process::Prioritise(inner, order) => {
                let list = self.transitions(inner)?;
                let rank = |arena: &Processes, e| priority_of(arena, &order, e);
                let first = list.iter().filter_map(|&(e, _)| rank(self.arena, e)).min();
                let mut kept = Vec::new();
                for &(e, next) in list.iter() {
                    if rank(self.arena, e).is_none_or(|r| Some(r) == first) {
                        kept.push((e, self.under(e, next, |a, q| a.prioritise(q, order.to_vec()))));
                    }
                }
                kept
            }
            Process::PrioritiseOrder(inner, above) => {
                let list = self.transitions(inner)?;
                let mut kept = Vec::new();
                for &(e, next) in list.iter() {
                    if !list.iter().any(|&(other, _)| above.binary_search(&(other, e)).is_ok()) {
                        kept.push((e, self.under(e, next, |a, q| a.prioritise_order(q, above.to_vec()))));
                    }
                }
                kept
            }
            Process::OneOfEach(inner) => {
                let list = self.transitions(inner)?;
                let ticks = list.iter().any(|&(e, _)| e == EventId::TICK);
                let mut kept: Vec<Transition> = Vec::new();
                for &(e, next) in list.iter() {
                    let wanted =
                        if ticks { e == EventId::TICK } else { kept.last().is_none_or(|l| l.0 != e) };
                    if wanted {
                        kept.push((e, self.under(e, next, |a, q| a.one_of_each(q))));
                    }
                }
                kept
            }
            Process::Chase(inner) => self.chase(p, inner)?,
            Process::Compress(_, inner) => self.transitions(inner)?.to_vec(),
            Process::Call(call) => {
                if !self.open.insert(call) {
                    let name = self.arena.call_name(call).to_string();
                    return Err(CheckError::UnguardedRecursion { name });
                }
                let result = self.body(call).and_then(|body| self.transitions(body));
                self.open.remove(&call);
                result?.to_vec()
            }
        })
    }

    /// The state after `e` below an operator that stays, except that `✓` leaves nothing of it.
    fn under(
        &mut self,
        e: EventId,
        next: ProcId,
        wrap: impl FnOnce(&mut Processes, ProcId) -> ProcId,
    ) -> ProcId {
        if e == EventId::TICK { self.arena.omega() } else { wrap(self.arena, next) }
    }

    fn external_choice(&mut self, operands: &[ProcId]) -> Result<Vec<Transition>, CheckError> {
        let mut list = Vec::new();
        for (i, &q) in operands.iter().enumerate() {
            for &(e, next) in self.transitions(q)?.iter() {
                if e == EventId::TAU {
                    let mut all = operands.to_vec();
                    all[i] = next;
                    list.push((e, self.arena.intern(Process::ExternalChoice(all.into()))));
                } else {
                    list.push((e, next));
                }
            }
        }
        Ok(list)
    }

    /// Both `[+ +]` and `/+ +\`: `τ` and shared events keep the operator (`rebuild`); the left operand's own events
    /// lead where `left_goes` says, the right one's own events leave only the right.
    fn synchronised(
        &mut self,
        left: ProcId,
        set: EventSetId,
        right: ProcId,
        rebuild: impl Fn(&mut Processes, ProcId, ProcId) -> ProcId,
        left_goes: impl Fn(&mut Processes, ProcId, ProcId) -> ProcId,
    ) -> Result<Vec<Transition>, CheckError> {
        let lefts = self.transitions(left)?;
        let rights = self.transitions(right)?;
        let set = self.arena.events_of(set).clone();
        let mut list = Vec::new();
        for &(e, next) in lefts.iter() {
            if e == EventId::TAU {
                list.push((e, rebuild(self.arena, next, right)));
            } else if set.contains(e) {
                for &(_, other) in rights.iter().filter(|&&(f, _)| f == e) {
                    list.push((e, rebuild(self.arena, next, other)));
                }
            } else {
                let next = if e == EventId::TICK { next } else { left_goes(self.arena, next, right) };
                list.push((e, next));
            }
        }
        for &(e, next) in rights.iter() {
            if e == EventId::TAU {
                list.push((e, rebuild(self.arena, left, next)));
            } else if !set.contains(e) {
                list.push((e, next));
            }
        }
        Ok(list)
    }

    /// `|||` and `[| A |]`.
    fn shared(
        &mut self,
        operands: &[ProcId],
        set: EventSetId,
        rebuild: impl Fn(&mut Processes, Vec<ProcId>) -> ProcId,
    ) -> Result<Vec<Transition>, CheckError> {
        let set = self.arena.events_of(set).clone();
        self.composed(operands, |_, e| set.contains(e), |_, _| true, |_, _| true, rebuild)
    }

    fn alphabetised(&mut self, operands: &[(ProcId, EventSetId)]) -> Result<Vec<Transition>, CheckError> {
        let sets: Vec<_> = operands.iter().map(|&(_, s)| self.arena.events_of(s).clone()).collect();
        let ids: Vec<_> = operands.iter().map(|&(_, s)| s).collect();
        let processes: Vec<_> = operands.iter().map(|&(q, _)| q).collect();
        self.composed(
            &processes,
            |_, _| true,
            |i, e| sets[i].contains(e),
            |i, e| sets[i].contains(e),
            move |arena, list| {
                arena.intern(Process::Alphabetised(list.into_iter().zip(ids.iter().copied()).collect()))
            },
        )
    }

    /// Parallel composition in general: `allowed(i, e)`: operand `i` may do `e` at all; if `joint(i, e)`, together with
    /// every operand `j` for which `takes_part(j, e)`, else alone.
    fn composed(
        &mut self,
        operands: &[ProcId],
        joint: impl Fn(usize, EventId) -> bool,
        takes_part: impl Fn(usize, EventId) -> bool,
        allowed: impl Fn(usize, EventId) -> bool,
        rebuild: impl Fn(&mut Processes, Vec<ProcId>) -> ProcId,
    ) -> Result<Vec<Transition>, CheckError> {
        let omega = self.arena.omega();
        if operands.iter().all(|&q| q == omega) {
            return Ok(vec![(EventId::TICK, omega)]);
        }
        let moves: Vec<_> = operands.iter().map(|&q| self.transitions(q)).collect::<Result<_, _>>()?;
        let mut list = Vec::new();
        for (i, own) in moves.iter().enumerate() {
            for &(e, next) in own.iter() {
                if e == EventId::TICK && joint(i, e) && takes_part(i, e) {
                    let ready = |m: &Arc<[Transition]>| m.iter().any(|&(f, _)| f == EventId::TICK);
                    if i == 0 && moves.iter().all(ready) {
                        list.push((EventId::TICK, omega));
                    }
                } else if !e.is_visible() {
                    let mut all = operands.to_vec();
                    all[i] = if e == EventId::TICK { omega } else { next };
                    list.push((EventId::TAU, rebuild(self.arena, all)));
                } else if !allowed(i, e) {
                } else if !joint(i, e) {
                    let mut all = operands.to_vec();
                    all[i] = next;
                    list.push((e, rebuild(self.arena, all)));
                } else if !(0..i).any(|j| takes_part(j, e)) {
                    // The first participant leads, so that each joint step is found once.
                    let mut partial = vec![{
                        let mut all = operands.to_vec();
                        all[i] = next;
                        all
                    }];
                    for (j, other) in moves.iter().enumerate().skip(i + 1).filter(|&(j, _)| takes_part(j, e))
                    {
                        let targets: Vec<_> =
                            other.iter().filter(|&&(f, _)| f == e).map(|&(_, t)| t).collect();
                        partial = partial
                            .into_iter()
                            .flat_map(|all| {
                                targets.iter().map(move |&t| {
                                    let mut all = all.clone();
                                    all[j] = t;
                                    all
                                })
                            })
                            .collect();
                    }
                    for all in partial {
                        list.push((e, rebuild(self.arena, all)));
                    }
                }
            }
        }
        Ok(list)
    }

    fn linked(
        &mut self,
        left: ProcId,
        links: &[(EventId, EventId)],
        right: ProcId,
    ) -> Result<Vec<Transition>, CheckError> {
        let omega = self.arena.omega();
        if left == omega && right == omega {
            return Ok(vec![(EventId::TICK, omega)]);
        }
        let lefts = self.transitions(left)?;
        let rights = self.transitions(right)?;
        let mut list = Vec::new();
        for &(e, next) in lefts.iter() {
            if !e.is_visible() {
                list.push((EventId::TAU, self.arena.linked(next, links.iter().copied(), right)));
            } else if links.iter().any(|&(a, _)| a == e) {
                for &(f, other) in rights.iter().filter(|&&(f, _)| links.contains(&(e, f))) {
                    debug_assert!(f.is_visible());
                    list.push((EventId::TAU, self.arena.linked(next, links.iter().copied(), other)));
                }
            } else {
                list.push((e, self.arena.linked(next, links.iter().copied(), right)));
            }
        }
        for &(f, next) in rights.iter() {
            if !f.is_visible() {
                list.push((EventId::TAU, self.arena.linked(left, links.iter().copied(), next)));
            } else if !links.iter().any(|&(_, b)| b == f) {
                list.push((f, self.arena.linked(left, links.iter().copied(), next)));
            }
        }
        Ok(list)
    }

    fn chase(&mut self, whole: ProcId, inner: ProcId) -> Result<Vec<Transition>, CheckError> {
        let mut seen = FxHashSet::default();
        let mut at = inner;
        loop {
            let list = self.transitions(at)?;
            let Some(&(_, next)) = list.iter().find(|&&(e, _)| e == EventId::TAU) else {
                let mut out = Vec::new();
                for &(e, next) in list.iter() {
                    out.push((e, self.under(e, next, |a, q| a.chase(q))));
                }
                return Ok(out);
            };
            if !seen.insert(at) {
                return Ok(vec![(EventId::TAU, whole)]);
            }
            at = next;
        }
    }
}

/// The place of an event in a priority order: 0 is first; `None`: not ordered.
pub fn priority_of(arena: &Processes, order: &[EventSetId], event: EventId) -> Option<usize> {
    if !event.is_visible() {
        return Some(0);
    }
    order.iter().position(|&set| arena.events_of(set).contains(event))
}
