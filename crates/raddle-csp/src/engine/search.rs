//! The search: breadth first by ply over pairs of specification node and implementation state.
//!
//! A *ply* holds the pairs first reached by traces of the same length. It is explored in two passes: first `τ` steps,
//! layer by layer until nothing new comes (a pair reached by `τ` belongs to the same ply), then the visible steps of all
//! pairs of the ply, which make the next. So a violation in the earliest possible ply has a trace of minimal length in
//! *visible* events, however many `τ`s lie between; within the ply the fewest `τ`s are found too.
//!
//! A state of a concurrent system is reached in about as many ways as it has components, mostly from the same layer and
//! soon after each other. Each worker therefore remembers the successors it handed over last in a small table without
//! chains, and drops those it meets again before they cost a look into the store, which lies outside of the cache.
//!
//! Workers take chunks of a layer, each from what it found itself as long as there is some, expand them, and insert
//! batches of successors into the [`Store`]. Which pairs a layer has does not depend on the order of work; a pass is
//! always finished before its findings are looked at, and among several the least (by vector) is taken. So verdict,
//! counterexample and counts do not depend on the number of workers. When the store is full the workers stop where they
//! are, keep what they could not insert, and go on when there is room.
//! Parents are not stored: the path to a violation is found backwards by expanding the earlier layers again
//! ([`super::witness`]), which costs at most the search once more and only when there is something to show.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::combinator::{Label, TICK};
use super::layout::{Field, Key};
use super::model::Model;
use super::normal::{LabelSet, Node, NodeId, NormalForm, is_subset, set_words};
use super::probe::{self, Probe};
use super::reduction::{Chosen, Reduction};
use super::refusals::{self, AfterRefusal, Allowed};
use super::store::{Layer, Store};
use super::table::{INSERT_KEYS_MAX, hash};
use super::verdict::{CheckError, CheckOptions, Progress, Statistics};
use super::witness::Taken;
use super::{divergence, neighbours};

/// Pairs a worker takes at a time: at most, and, so that all finish a small pass together, at least.
const CHUNK_PAIRS_MAX: usize = 512;
const CHUNK_PAIRS_MIN: usize = 64;
/// Chunks of a pass for each worker, unless it is large.
const CHUNKS_PER_WORKER: usize = 16;
/// Words of a worker's table of recent successors: small enough for a core's own cache.
const RECENT_WORDS: usize = 1 << 15;
/// A pass over fewer pairs than this is done by one thread: waking others would take longer.
const PARALLEL_PAIRS_MIN: usize = 1024;

/// What is checked in each pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Claims {
    /// Stable states must offer one of the node's acceptances.
    pub refusals: bool,
    /// Stable states must offer something.
    pub deadlocks: bool,
    /// No `τ` loops where the node has none; and nothing at all is checked below a diverging node.
    pub divergences: bool,
    /// What is refused is matched with what can happen afterwards, see [`super::refusals`]. Takes the place of `refusals`.
    pub after_refusal: Option<AfterRefusal>,
}

/// What is wrong with a pair.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// It can do an event the specification does not allow.
    Event(Label),
    /// It is stable and offers just this.
    Refusal(LabelSet),
    /// It is stable, offers just this and does the event, which the specification does only when it offers more.
    Revival(Label, LabelSet),
    Deadlock,
    Divergence,
}

/// The layer of a pair that a probe found.
pub const PROBED: usize = usize::MAX;

/// A faulty pair and the layer it was found in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation<const W: usize> {
    pub key: Key<W>,
    pub layer: usize,
}

/// The specification's side.
pub enum Specification<'m> {
    /// Allows every event.
    Anything,
    Normal(Box<Mutex<NormalForm<'m>>>),
}

/// Layers of one ply: the first is reached by visible steps, each further one by `τ` from the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ply {
    pub first: usize,
    pub end: usize,
}

/// A search in progress.
pub struct Search<'m, const W: usize> {
    pub model: &'m Model,
    pub specification: &'m Specification<'m>,
    pub node_field: Field,
    pub claims: Claims,
    pub reduction: Option<Reduction<'m>>,
    pub options: &'m CheckOptions,
    pub store: Store<W>,
    pub layers: Vec<Layer>,
    pub plies: Vec<Ply>,
    /// The way to a deadlock that a probe found.
    pub probed: Option<Vec<Taken<W>>>,
    /// Whether the leaves' neighbours showed that there is nothing to find.
    by_neighbours: bool,
    started: Instant,
    memory_bytes_max: u64,
    transitions: AtomicU64,
    stop: AtomicBool,
    /// The store has no room left.
    full: AtomicBool,
    failure: Mutex<Option<CheckError>>,
}

/// What a thread keeps between passes, on cache lines of its own.
#[repr(align(128))]
struct Worker<const W: usize> {
    /// Its part of the store.
    number: usize,
    /// Successors to be inserted.
    buffer: Vec<(u64, Key<W>)>,
    /// Pairs that were handed over before, at a place that their hash gives.
    recent: Box<[Key<W>]>,
    nodes: Vec<Option<Arc<Node>>>,
    offers: Vec<u64>,
    faults: FxHashMap<Fault, Violation<W>>,
    transitions: u64,
}

/// A piece of work: some pairs of a layer.
struct Chunk {
    layer: usize,
    part: usize,
    range: std::ops::Range<usize>,
}

/// The chunks of one part. Its worker takes them from the front, those who help from the back.
#[derive(Default)]
#[repr(align(128))]
struct Queue {
    chunks: Vec<Chunk>,
    claimed: AtomicUsize,
    front: AtomicUsize,
    back: AtomicUsize,
}

impl Queue {
    fn take(&self, helps: bool) -> Option<&Chunk> {
        // A claim that succeeds leaves a chunk for itself: there are never more claims than chunks.
        if self.claimed.load(Ordering::Relaxed) >= self.chunks.len()
            || self.claimed.fetch_add(1, Ordering::Relaxed) >= self.chunks.len()
        {
            return None;
        }
        let number = if helps {
            self.chunks.len() - 1 - self.back.fetch_add(1, Ordering::Relaxed)
        } else {
            self.front.fetch_add(1, Ordering::Relaxed)
        };
        Some(&self.chunks[number])
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Taus,
    Visibles,
}

/// What a finished search knows: the faults of the first ply (or plies, if more were asked for) that has any.
pub type Faults<const W: usize> = Vec<(Fault, Violation<W>)>;

impl<'m, const W: usize> Search<'m, W> {
    pub fn new(
        model: &'m Model,
        specification: &'m Specification<'m>,
        node_field: Field,
        claims: Claims,
        reduction: Option<Reduction<'m>>,
        options: &'m CheckOptions,
        store: Store<W>,
    ) -> Search<'m, W> {
        Search {
            model,
            specification,
            node_field,
            claims,
            reduction,
            options,
            store,
            layers: Vec::new(),
            plies: Vec::new(),
            probed: None,
            by_neighbours: false,
            started: Instant::now(),
            memory_bytes_max: 0,
            transitions: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            full: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Explores until `wanted` different faults are found or there is nothing left.
    pub fn run(&mut self, wanted: usize) -> Result<Faults<W>, CheckError> {
        let label_words = set_words(self.model.labels.len());
        let initial: Key<W> = self.model.initial();
        let mut workers: Vec<Worker<W>> = (0..self.options.workers.max(1))
            .map(|number| Worker {
                number,
                buffer: Vec::with_capacity(INSERT_KEYS_MAX),
                // The initial pair is in the store from the start.
                recent: vec![initial; (RECENT_WORDS / W).next_power_of_two()].into(),
                nodes: Vec::new(),
                offers: vec![0; label_words],
                faults: FxHashMap::default(),
                transitions: 0,
            })
            .collect();
        assert!(self.store.insert(0, &[(hash(&initial), initial)]), "a new store has room");
        let mut layer = self.finish_layer()?;
        let taus = self.model.may_have_taus();
        let loops = self.claims.divergences && divergence::possible(self.model);
        let mut found: Faults<W> = Vec::new();
        let mut ahead = self.probes(wanted).then(|| Probe::new(self.model));
        let mut may_ask_neighbours = self.may_ask_neighbours(loops);
        while !layer.is_empty() {
            let first = self.layers.len();
            self.layers.push(layer);
            let mut more = taus;
            while more {
                let last = self.layers.len() - 1;
                self.pass(&mut workers, last..last + 1, Pass::Taus)?;
                let next = self.finish_layer()?;
                more = !next.is_empty();
                if more {
                    self.layers.push(next);
                    if let Some(fault) = self.probe(&mut ahead)? {
                        return Ok(vec![fault]);
                    }
                }
            }
            let ply = Ply { first, end: self.layers.len() };
            self.plies.push(ply);
            let mut here: FxHashMap<Fault, Violation<W>> = FxHashMap::default();
            if loops && let Some(violation) = divergence::find(self, ply)? {
                here.insert(Fault::Divergence, violation);
            }
            self.pass(&mut workers, ply.first..ply.end, Pass::Visibles)?;
            for worker in &mut workers {
                for (fault, violation) in worker.faults.drain() {
                    self.keep_least(&mut here, fault, violation);
                }
            }
            let mut here: Vec<_> =
                here.into_iter().filter(|(f, _)| !found.iter().any(|(g, _)| f == g)).collect();
            // Refusals and divergences end a trace one shorter than a forbidden event does; so does a forbidden `✓`,
            // which is also a refusal of everything else.
            here.sort_unstable_by(|a, b| {
                let late = |f: &Fault| match f {
                    Fault::Event(label) => *label != TICK,
                    Fault::Revival(..) => true,
                    _ => false,
                };
                let by_state = late(&a.0).cmp(&late(&b.0)).then_with(|| self.compare(&a.1.key, &b.1.key));
                by_state.then_with(|| a.0.cmp(&b.0))
            });
            found.extend(here);
            layer = self.finish_layer()?;
            if found.len() >= wanted {
                break;
            }
            if may_ask_neighbours && self.store.state_count() >= probe::FIRST_PAIRS {
                may_ask_neighbours = false;
                self.by_neighbours = neighbours::deadlock_free(self.model);
                if self.by_neighbours {
                    break;
                }
            }
            if found.is_empty()
                && let Some(fault) = self.probe(&mut ahead)?
            {
                return Ok(vec![fault]);
            }
        }
        found.truncate(wanted);
        self.memory_bytes_max = self.memory_bytes_max.max(self.store.memory_bytes());
        Ok(found)
    }

    /// Whether a directed search may look for deadlocks beside this one.
    fn probes(&self, wanted: usize) -> bool {
        let anything = matches!(self.specification, Specification::Anything);
        self.claims.deadlocks && anything && wanted == 1 && !self.options.shortest
    }

    /// Whether neighbouring leaves could show that there is nothing to find: no deadlock is, and nothing else is looked for.
    fn may_ask_neighbours(&self, may_diverge: bool) -> bool {
        let anything = matches!(self.specification, Specification::Anything);
        self.claims.deadlocks && anything && !may_diverge && !self.options.every_state
    }

    /// Lets a directed search look for a deadlock if enough pairs have been found since the last time.
    fn probe(&mut self, ahead: &mut Option<Probe<W>>) -> Result<Option<(Fault, Violation<W>)>, CheckError> {
        let Some(ahead) = ahead else { return Ok(None) };
        let pairs = self.store.state_count();
        let Some(steps) = ahead.go_on(self.model, pairs, self.options.cancel.as_deref())? else {
            return Ok(None);
        };
        let key = steps.last().map_or_else(|| self.model.initial(), |step| step.to);
        self.probed = Some(steps);
        self.memory_bytes_max = self.memory_bytes_max.max(self.store.memory_bytes());
        Ok(Some((Fault::Deadlock, Violation { key, layer: PROBED })))
    }

    /// Sizes so far; compile time and bits are the caller's to fill in.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            pairs: self.store.state_count(),
            transitions: self.transitions.load(Ordering::Relaxed),
            spec_nodes: match self.specification {
                Specification::Anything => 1,
                Specification::Normal(form) => lock(form).len() as u64,
            },
            plies: self.plies.len() as u64,
            components: self.model.combinator.leaves.iter().filter(|l| !l.is_controller).count(),
            state_bytes: 8 * W,
            memory_bytes_max: self.memory_bytes_max,
            spilled_bytes: self.store.disk_bytes(),
            by_neighbours: self.by_neighbours,
            explore_time: self.started.elapsed(),
            ..Statistics::default()
        }
    }

    fn finish_layer(&mut self) -> Result<Layer, CheckError> {
        let layer = self.store.finish_layer();
        self.disk(layer)
    }

    pub fn disk<T>(&self, result: io::Result<T>) -> Result<T, CheckError> {
        result.map_err(|cause| CheckError::Spill {
            folder: self
                .options
                .spill_folder
                .as_deref()
                .unwrap_or(&std::env::temp_dir())
                .display()
                .to_string(),
            cause: cause.to_string(),
        })
    }

    /// Expands the layers with all workers.
    fn pass(
        &mut self,
        workers: &mut [Worker<W>],
        layers: std::ops::Range<usize>,
        pass: Pass,
    ) -> Result<(), CheckError> {
        let pairs: usize = self.layers[layers.clone()].iter().map(Layer::len).sum();
        let alone = workers.len() == 1 || pairs < PARALLEL_PAIRS_MIN;
        let queues = self.queues(layers, pairs / (workers.len() * CHUNKS_PER_WORKER));
        loop {
            let (leader, others) = workers.split_first_mut().expect("at least one worker");
            let search = &*self;
            if alone {
                search.work(leader, &queues, pass);
            } else {
                std::thread::scope(|scope| {
                    for worker in others {
                        let queues = &queues;
                        scope.spawn(move || search.work(worker, queues, pass));
                    }
                    search.work(leader, &queues, pass);
                });
            }
            for worker in &mut *workers {
                *self.transitions.get_mut() += std::mem::take(&mut worker.transitions);
            }
            self.memory_bytes_max = self.memory_bytes_max.max(self.store.memory_bytes());
            if let Some(error) = lock(&self.failure).take() {
                return Err(error);
            }
            if !std::mem::take(self.full.get_mut()) {
                return Ok(());
            }
            let form_bytes = match self.specification {
                Specification::Anything => 0,
                Specification::Normal(form) => lock(form).bytes(),
            };
            let made = self.store.make_room(form_bytes);
            self.disk(made)?;
        }
    }

    /// The work of a pass in chunks, by part.
    fn queues(&self, layers: std::ops::Range<usize>, chunk_pairs: usize) -> Vec<Queue> {
        let chunk_pairs = chunk_pairs.clamp(CHUNK_PAIRS_MIN, CHUNK_PAIRS_MAX);
        let mut queues: Vec<Queue> = Vec::new();
        for layer in layers {
            let ranges = &self.layers[layer].ranges;
            queues.resize_with(ranges.len(), Queue::default);
            for (part, range) in ranges.iter().enumerate() {
                let starts = range.clone().step_by(chunk_pairs);
                queues[part].chunks.extend(starts.map(|start| Chunk {
                    layer,
                    part,
                    range: start..range.end.min(start + chunk_pairs),
                }));
            }
        }
        queues
    }

    fn work(&self, worker: &mut Worker<W>, queues: &[Queue], pass: Pass) {
        let leads = worker.number == 0;
        let mut keys = Vec::new();
        let mut rounds = 0u32;
        let mut halted = !self.flush(worker.number, &mut worker.buffer);
        // What it found itself first; then it helps others.
        for i in 0..queues.len() {
            let queue = &queues[(worker.number + i) % queues.len()];
            while !halted && !self.stop.load(Ordering::Relaxed) && !self.full.load(Ordering::Relaxed) {
                let Some(chunk) = queue.take(i > 0) else { break };
                let read = self.disk(self.store.read(chunk.part, chunk.range.clone(), &mut keys));
                let result = read.and_then(|()| {
                    for key in &keys {
                        match pass {
                            Pass::Taus => self.expand_taus(worker, key)?,
                            Pass::Visibles => self.expand_visibles(worker, key, chunk.layer)?,
                        }
                    }
                    rounds += 1;
                    if leads && rounds.is_multiple_of(64) { self.interlude() } else { Ok(()) }
                });
                if let Err(error) = result {
                    return self.fail(error);
                }
            }
            halted |= self.full.load(Ordering::Relaxed);
        }
        self.flush(worker.number, &mut worker.buffer);
        if leads && let Err(error) = self.interlude() {
            self.fail(error);
        }
    }

    /// Progress, limits and cancellation, from time to time on the caller's thread.
    fn interlude(&self) -> Result<(), CheckError> {
        if self.options.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(CheckError::Cancelled);
        }
        if self.options.progress.is_none() && self.options.pairs_max.is_none() {
            return Ok(());
        }
        let pairs = self.store.state_count();
        if let Some(limit) = self.options.pairs_max
            && pairs > limit
        {
            return Err(CheckError::PairLimit { limit });
        }
        if let Some(progress) = &self.options.progress {
            progress(&Progress {
                compiling: false,
                component: String::new(),
                plies: self.plies.len() as u64,
                pairs,
                transitions: self.transitions.load(Ordering::Relaxed),
                memory_bytes: self.store.memory_bytes(),
                elapsed: self.started.elapsed(),
            });
        }
        Ok(())
    }

    fn fail(&self, error: CheckError) {
        self.stop.store(true, Ordering::Relaxed);
        lock(&self.failure).get_or_insert(error);
    }

    /// Inserts what a worker has gathered. False if there was no room for all; the rest stays.
    fn flush(&self, worker: usize, buffer: &mut Vec<(u64, Key<W>)>) -> bool {
        let mut inserted = 0;
        while inserted < buffer.len() {
            let end = buffer.len().min(inserted + INSERT_KEYS_MAX);
            if !self.store.insert(worker, &buffer[inserted..end]) {
                self.full.store(true, Ordering::Relaxed);
                buffer.drain(..inserted);
                return false;
            }
            inserted = end;
        }
        buffer.clear();
        true
    }

    /// The node of a pair, from the worker's own table if it was there before.
    fn node<'w>(
        &self,
        nodes: &'w mut Vec<Option<Arc<Node>>>,
        id: NodeId,
    ) -> Result<Option<&'w Node>, CheckError> {
        let Specification::Normal(form) = self.specification else { return Ok(None) };
        let id = id as usize;
        if nodes.len() <= id {
            nodes.resize(id + 1, None);
        }
        if nodes[id].is_none() {
            nodes[id] = Some(lock(form).node(id as NodeId)?);
        }
        Ok(nodes[id].as_deref())
    }

    /// The order among pairs by which findings are chosen: by implementation state, then by what the node contains.
    /// Node numbers do not count, since workers may have given them in any order.
    pub fn compare(&self, a: &Key<W>, b: &Key<W>) -> std::cmp::Ordering {
        let bare = |key: &Key<W>| {
            let mut key = *key;
            self.node_field.set(&mut key, 0);
            key
        };
        bare(a).cmp(&bare(b)).then_with(|| match self.specification {
            Specification::Normal(form) if a != b => {
                let form = lock(form);
                form.content(self.node_field.get(a)).cmp(&form.content(self.node_field.get(b)))
            }
            _ => std::cmp::Ordering::Equal,
        })
    }

    fn keep_least(&self, faults: &mut FxHashMap<Fault, Violation<W>>, fault: Fault, violation: Violation<W>) {
        faults
            .entry(fault)
            .and_modify(|known| {
                if self.compare(&violation.key, &known.key).is_lt() {
                    *known = violation.clone();
                }
            })
            .or_insert(violation);
    }

    /// What the specification says about a pair.
    pub fn node_of(&self, key: &Key<W>) -> Result<Option<Arc<Node>>, CheckError> {
        match self.specification {
            Specification::Anything => Ok(None),
            Specification::Normal(form) => lock(form).node(self.node_field.get(key)).map(Some),
        }
    }

    /// `τ` steps of a pair as the search takes them.
    #[inline]
    pub fn taus(&self, key: &Key<W>, mut emit: impl FnMut(Label, &Key<W>, u32) -> bool) -> bool {
        let Some(reduction) = &self.reduction else { return self.model.taus(key, emit) };
        let mut chosen = Chosen::new(reduction, key);
        self.model.taus(key, |l, next, rule| chosen.includes(rule) && emit(l, next, rule))
    }

    /// The other steps; next keys still have the old node.
    #[inline]
    pub fn visibles(&self, key: &Key<W>, mut emit: impl FnMut(Label, &Key<W>, u32) -> bool) -> bool {
        let Some(reduction) = &self.reduction else { return self.model.visibles(key, emit) };
        let mut chosen = Chosen::new(reduction, key);
        self.model.visibles(key, |l, next, rule| chosen.includes(rule) && emit(l, next, rule))
    }

    fn expand_taus(&self, worker: &mut Worker<W>, key: &Key<W>) -> Result<(), CheckError> {
        let Worker { number, buffer, recent, nodes, transitions, .. } = worker;
        if self.claims.divergences
            && self.node(nodes, self.node_field.get(key))?.is_some_and(|node| node.diverges)
        {
            return Ok(());
        }
        self.taus(key, |_, next, _| {
            *transitions += 1;
            self.push(*number, buffer, recent, next);
            false
        });
        Ok(())
    }

    #[inline(always)]
    fn push(&self, worker: usize, buffer: &mut Vec<(u64, Key<W>)>, recent: &mut [Key<W>], next: &Key<W>) {
        let h = hash(next);
        // The store indexes by the low bits and marks by the high ones.
        let known = &mut recent[(h >> 16) as usize & (recent.len() - 1)];
        if known == next {
            return;
        }
        *known = *next;
        buffer.push((h, *next));
        // Once the store is full, what comes until the end of the chunk is kept.
        if buffer.len().is_multiple_of(INSERT_KEYS_MAX) {
            self.flush(worker, buffer);
        }
    }

    /// Kept apart from the expansion of all other models, which is the innermost loop and slower with this inside.
    #[inline(never)]
    fn expand_after_refusals(
        &self,
        worker: &mut Worker<W>,
        key: &Key<W>,
        layer: usize,
        kind: AfterRefusal,
    ) -> Result<(), CheckError> {
        let Worker { number, buffer, recent, faults, transitions, .. } = worker;
        let look = refusals::look(self, key, kind)?;
        if self.claims.divergences && look.node.diverges {
            return Ok(());
        }
        let here = Violation { key: *key, layer };
        if look.refuses_too_much {
            self.keep_least(faults, Fault::Refusal(look.offers.clone()), here.clone());
        }
        for (label, next, _) in &look.next {
            *transitions += 1;
            match look.after(*label) {
                Allowed::To(after) => {
                    let mut next = *next;
                    self.node_field.set(&mut next, after);
                    self.push(*number, buffer, recent, &next);
                }
                Allowed::Never => self.keep_least(faults, Fault::Event(*label), here.clone()),
                Allowed::NotAfterRefusal => {
                    self.keep_least(faults, Fault::Revival(*label, look.offers.clone()), here.clone());
                }
            }
        }
        Ok(())
    }

    fn expand_visibles(&self, worker: &mut Worker<W>, key: &Key<W>, layer: usize) -> Result<(), CheckError> {
        if let Some(kind) = self.claims.after_refusal {
            return self.expand_after_refusals(worker, key, layer, kind);
        }
        let Worker { number, buffer, recent, nodes, offers, faults, transitions } = worker;
        let node = self.node(nodes, self.node_field.get(key))?;
        if self.claims.divergences && node.is_some_and(|n| n.diverges) {
            return Ok(());
        }
        offers.fill(0);
        self.visibles(key, |label, next, _| {
            *transitions += 1;
            offers[label as usize / 64] |= 1 << (label % 64);
            match node {
                None => self.push(*number, buffer, recent, next),
                Some(node) => match node.after(label) {
                    Some(after) => {
                        let mut next = *next;
                        self.node_field.set(&mut next, after);
                        self.push(*number, buffer, recent, &next);
                    }
                    None => self.keep_least(faults, Fault::Event(label), Violation { key: *key, layer }),
                },
            }
            false
        });
        if self.claims.deadlocks && offers.iter().all(|&w| w == 0) {
            let ended = self.model.is_terminated(key) || self.model.taus(key, |_, _, _| true);
            if !ended {
                self.keep_least(faults, Fault::Deadlock, Violation { key: *key, layer });
            }
        }
        if self.claims.refusals
            && let Some(node) = node
            && offers[0] & 1 << TICK == 0
            && !node.acceptances.iter().any(|a| is_subset(a, offers))
            && !self.model.is_terminated(key)
            && !self.model.taus(key, |_, _, _| true)
        {
            self.keep_least(faults, Fault::Refusal(offers[..].into()), Violation { key: *key, layer });
        }
        Ok(())
    }
}

/// A lock whose holder panicked is still good to read: the panic itself is what gets reported.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
