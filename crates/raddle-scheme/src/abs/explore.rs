//! The graph of abstract states: `geval` of §3.1.2, with the reductions that [`Config`] switches on.
//!
//! # Partial order reduction
//!
//! A step that no other thread can notice commutes with everything the others do. With `por` set, threads therefore
//! take such steps at once (*settle*), and only visible operations of settled states are interleaved. Every concrete
//! run is equivalent to one that settles eagerly, the abstract run of which is in the graph; in it the threads pass the
//! same visible operations, wait at the same places and end with the same values. Two operations that are about to
//! happen together in some state are so in the settled state after it, too, because settling moves no thread past a
//! visible operation. A thread that would settle for ever is *parked*: it stays where it is and the others go on.
//!
//! # Subsumption
//!
//! A state whose threads are those of a known state and whose store lies below that state's store can do nothing that
//! the known one cannot; the edge leads to the known one instead.

use super::space::*;
use super::step::{AbsOp, Next, Ops, Succ, View};
use super::trie::Root;
use super::value::{AbsVal, bit};
use crate::limits::Clock;
use crate::syntax::core::{ExprId, index};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

index!(
    /// A node of the graph.
    StateId
);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbsState {
    pub threads: ThreadsId,
    pub store: Root,
}

#[derive(Clone, Copy, Debug)]
pub struct AbsEdge {
    pub from: StateId,
    pub to: StateId,
    pub tid: TidId,
    pub site: ExprId,
    pub done: Option<AbsOp>,
}

/// A place where a thread may stop with an error.
#[derive(Clone, Copy, Debug)]
pub struct MayFail {
    pub state: StateId,
    pub tid: TidId,
    /// `(error ...)`, not a type error.
    pub raised: bool,
    /// An operation that can do nothing else in that state.
    pub certain: bool,
}

pub struct Graph {
    pub states: Vec<AbsState>,
    pub edges: Vec<AbsEdge>,
    /// The edge by which a state was found first.
    pub found_by: Vec<Option<u32>>,
    pub failures: BTreeMap<ExprId, MayFail>,
    /// Results that the main thread may have.
    pub result: AbsVal,
    pub incomplete: Option<String>,
}

/// Local steps in one settling; a long program may take a few for each expression.
const SETTLE_MAX: usize = 200_000;

pub fn explore(space: &mut Space, states_max: usize, clock: &Clock) -> Graph {
    let mut search = Search {
        space,
        graph: Graph {
            states: Vec::new(),
            edges: Vec::new(),
            found_by: Vec::new(),
            failures: BTreeMap::new(),
            result: AbsVal::default(),
            incomplete: None,
        },
        numbers: FxHashMap::default(),
        buckets: FxHashMap::default(),
        queue: VecDeque::new(),
        clock,
    };
    search.start();
    while let Some(id) = search.next() {
        if search.graph.states.len() > states_max {
            search.graph.incomplete = Some(format!("the limit of {states_max} abstract states was reached"));
            break;
        }
        if clock.is_over() {
            search.graph.incomplete = Some(clock.reason());
            break;
        }
        search.expand(id);
    }
    if search.space.config.order == Order::DepthFirst {
        search.graph.shorten();
    }
    search.graph
}

struct Search<'s, 'p> {
    space: &'s mut Space<'p>,
    graph: Graph,
    numbers: FxHashMap<AbsState, StateId>,
    buckets: FxHashMap<ThreadsId, Vec<(Root, StateId)>>,
    queue: VecDeque<StateId>,
    clock: &'s Clock,
}

type Threads = Vec<AbsThread>;

/// How a successor came about, for its edge.
#[derive(Clone, Copy)]
struct Via {
    from: StateId,
    tid: TidId,
    site: ExprId,
    done: Option<AbsOp>,
}

impl Search<'_, '_> {
    fn next(&mut self) -> Option<StateId> {
        match self.space.config.order {
            Order::BreadthFirst => self.queue.pop_front(),
            Order::DepthFirst => self.queue.pop_back(),
        }
    }

    fn start(&mut self) {
        let space = &mut *self.space;
        let unassigned = space.value(AbsVal::bits(bit::UNASSIGNED));
        let mut store = Root::EMPTY;
        for at in 0..space.globals.len() {
            if self.clock.is_over() {
                self.graph.incomplete = Some(self.clock.reason());
                return;
            }
            let addr = space.globals[at];
            if addr != HALT {
                store = space.alloc(store, addr, unassigned, false);
            }
        }
        let control = Control::Eval(space.program.root, EMPTY_ENV);
        let ctx = space.ctx(Ctx { control, kont: HALT, time: START });
        let threads = vec![AbsThread { tid: MAIN, many: false, ctxs: [ctx].into_iter().collect() }];
        self.arrive(threads, store, None);
    }

    fn expand(&mut self, id: StateId) {
        let state = self.graph.states[id.index()];
        let threads = self.space.threads_of(state.threads);
        if self.space.is_final(&threads) {
            return;
        }
        for thread in threads.iter() {
            for &ctx in &thread.ctxs {
                let view = View { threads: &threads, tid: thread.tid, store: state.store };
                // In a settled state a context without a visible operation is parked.
                if self.space.config.por && self.space.ops(view, ctx).is_empty() {
                    continue;
                }
                let site = self.space.site(ctx);
                let succs = self.space.step(view, ctx);
                self.note_failures(id, thread.tid, site, &succs);
                for succ in succs {
                    let via = Via { from: id, tid: thread.tid, site, done: succ.done };
                    let (threads, store) = self.advance(&threads, thread.tid, ctx, succ, true);
                    self.arrive(threads, store, Some(via));
                }
            }
        }
    }

    fn note_failures(&mut self, state: StateId, tid: TidId, site: ExprId, succs: &[Succ]) {
        let certain = self.space.is_wrong(site, succs);
        for succ in succs {
            if let Next::Fails { site, raised } = succ.next {
                let new = MayFail { state, tid, raised, certain };
                let failure = self.graph.failures.entry(site).or_insert(new);
                if (raised && !failure.raised) || (certain && !failure.certain) {
                    *failure = MayFail {
                        raised: failure.raised || raised,
                        certain: failure.certain || certain,
                        ..new
                    };
                }
            }
        }
    }

    /// The threads and the store after a step of one context. With `keep`, a thread that stands for many keeps the
    /// context as well: perhaps only one of them moved.
    fn advance(
        &mut self,
        threads: &[AbsThread],
        tid: TidId,
        ctx: CtxId,
        succ: Succ,
        keep: bool,
    ) -> (Threads, Root) {
        let mut threads: Threads = threads.to_vec();
        let mut store = succ.store;
        // Where several threads take the step, several children are spawned.
        let crowd = threads.iter().any(|thread| thread.tid == tid && thread.many);
        if let Some(at) = threads.iter().position(|thread| thread.tid == tid) {
            let thread = &mut threads[at];
            if !(thread.many && keep) {
                thread.ctxs.retain(|&mut c| c != ctx);
            }
            match succ.next {
                Next::Goes(next) => insert(&mut thread.ctxs, next),
                Next::Ends(value) => {
                    if tid == MAIN {
                        let known = self.space.value_of(value);
                        self.graph.result = self.graph.result.join(&known);
                    }
                    let addr = self.space.addr(Addr::Result(tid));
                    store = self.space.alloc(store, addr, value, false);
                }
                Next::Fails { .. } => {
                    let failed = self.space.value(AbsVal::bits(bit::FAILED));
                    let addr = self.space.addr(Addr::Result(tid));
                    store = self.space.alloc(store, addr, failed, false);
                }
            }
            if threads[at].ctxs.is_empty() {
                threads.remove(at);
            }
        }
        if let Some((child, ctx)) = succ.spawned {
            match threads.binary_search_by_key(&child, |thread| thread.tid) {
                Ok(at) => {
                    threads[at].many = true;
                    insert(&mut threads[at].ctxs, ctx);
                }
                Err(at) => threads
                    .insert(at, AbsThread { tid: child, many: crowd, ctxs: [ctx].into_iter().collect() }),
            }
        }
        (threads, store)
    }

    fn arrive(&mut self, threads: Threads, store: Root, via: Option<Via>) {
        for (threads, store) in self.settle(threads, store, via.map_or(StateId(0), |via| via.from)) {
            self.add(threads, store, via);
        }
    }

    fn add(&mut self, threads: Threads, mut store: Root, via: Option<Via>) {
        if self.space.config.gc {
            store = self.space.collect_all(&threads, store);
        }
        let state = AbsState { threads: self.space.threads(threads), store };
        let to = self.number(state, via);
        if let Some(Via { from, tid, site, done }) = via {
            self.graph.edges.push(AbsEdge { from, to, tid, site, done });
        }
    }

    fn number(&mut self, state: AbsState, via: Option<Via>) -> StateId {
        if let Some(&id) = self.numbers.get(&state) {
            return id;
        }
        if self.space.config.subsume {
            let bucket = self.buckets.entry(state.threads).or_default();
            if let Some(&(_, id)) =
                bucket.iter().find(|(store, _)| self.space.store_below(state.store, *store))
            {
                self.numbers.insert(state, id);
                return id;
            }
            bucket.push((state.store, StateId(self.graph.states.len() as u32)));
        }
        let id = StateId(self.graph.states.len() as u32);
        self.numbers.insert(state, id);
        self.graph.states.push(state);
        self.graph.found_by.push(via.map(|_| self.graph.edges.len() as u32));
        self.queue.push_back(id);
        id
    }

    /// Whether a context takes its next step without being a state: any local step with the reduction, else only steps
    /// that walk into an expression.
    fn is_passing(&mut self, view: View, ctx: CtxId) -> bool {
        if self.space.config.por {
            self.space.ops(view, ctx).is_empty()
        } else {
            self.space.is_administrative(ctx)
        }
    }

    /// All ways in which passing steps of all threads can come out.
    fn settle(&mut self, threads: Threads, store: Root, from: StateId) -> Vec<(Threads, Root)> {
        let mut settled = Vec::new();
        let mut seen: FxHashSet<(ThreadsId, Root, Vec<CtxId>)> = FxHashSet::default();
        let mut work: Vec<(Threads, Root, Vec<CtxId>)> = vec![(threads, store, Vec::new())];
        let mut steps = 0;
        while let Some((threads, store, mut parked)) = work.pop() {
            steps += 1;
            if steps > SETTLE_MAX.max(8 * self.space.program.exprs.len()) {
                self.graph.incomplete = Some("local computation has too many abstract outcomes".to_owned());
                return settled;
            }
            if self.clock.is_over() {
                self.graph.incomplete = Some(self.clock.reason());
                return settled;
            }
            let mut local = None;
            'threads: for thread in &threads {
                for &ctx in &thread.ctxs {
                    let view = View { threads: &threads, tid: thread.tid, store };
                    if !parked.contains(&ctx) && self.is_passing(view, ctx) {
                        local = Some((thread.tid, thread.many, ctx));
                        break 'threads;
                    }
                }
            }
            let Some((tid, many, ctx)) = local else {
                settled.push((threads, store));
                continue;
            };
            let key = self.space.threads(threads.clone());
            if !seen.insert((key, store, parked.clone())) {
                parked.push(ctx);
                if seen.insert((key, store, parked.clone())) {
                    work.push((threads, store, parked));
                }
                continue;
            }
            let view = View { threads: &threads, tid, store };
            let succs = self.space.step(view, ctx);
            let site = self.space.site(ctx);
            self.note_failures(from, tid, site, &succs);
            if !many {
                for succ in succs {
                    let (threads, store) = self.advance(&threads, tid, ctx, succ, false);
                    work.push((threads, store, parked.clone()));
                }
                continue;
            }
            // Several threads may stand here: each of them takes one of the successors.
            let (mut after, mut joined) = (threads.clone(), store);
            for succ in succs {
                let (moved, store) = self.advance(&after, tid, ctx, succ, true);
                joined = self.space.join_stores(joined, store);
                after = moved;
            }
            if let Some(at) = after.iter().position(|thread| thread.tid == tid) {
                after[at].ctxs.retain(|&mut c| c != ctx);
                if after[at].ctxs.is_empty() {
                    after.remove(at);
                }
            }
            if after == threads && joined == store {
                parked.push(ctx);
            }
            work.push((after, joined, parked));
        }
        settled
    }
}

fn insert(ctxs: &mut smallvec::SmallVec<[CtxId; 1]>, ctx: CtxId) {
    if let Err(at) = ctxs.binary_search(&ctx) {
        ctxs.insert(at, ctx);
    }
}

/// A context of a state with what it is about to do.
#[derive(Clone, Debug)]
pub struct Standing {
    pub tid: TidId,
    pub many: bool,
    pub ctx: CtxId,
    pub ops: Ops,
}

impl Graph {
    /// What all contexts of a state are about to do.
    pub fn standing(&self, space: &mut Space, id: StateId) -> Vec<Standing> {
        let state = self.states[id.index()];
        let threads = space.threads_of(state.threads);
        let mut out = Vec::new();
        for thread in threads.iter() {
            let view = View { threads: &threads, tid: thread.tid, store: state.store };
            for &ctx in &thread.ctxs {
                out.push(Standing { tid: thread.tid, many: thread.many, ctx, ops: space.ops(view, ctx) });
            }
        }
        out
    }

    pub fn ids(&self) -> impl Iterator<Item = StateId> + use<> {
        (0..self.states.len() as u32).map(StateId)
    }

    /// Lets every state be found by the last edge of a shortest path to it.
    fn shorten(&mut self) {
        let mut out: Vec<Vec<u32>> = vec![Vec::new(); self.states.len()];
        for (at, edge) in self.edges.iter().enumerate() {
            out[edge.from.index()].push(at as u32);
        }
        let mut seen = vec![false; self.states.len()];
        let mut queue: VecDeque<StateId> = self.ids().take(1).collect();
        while let Some(id) = queue.pop_front() {
            seen[id.index()] = true;
            for &at in &out[id.index()] {
                let to = self.edges[at as usize].to;
                if !std::mem::replace(&mut seen[to.index()], true) {
                    self.found_by[to.index()] = Some(at);
                    queue.push_back(to);
                }
            }
        }
    }

    /// Edges from the initial state to the given one, along which it was found.
    pub fn path(&self, to: StateId) -> Vec<AbsEdge> {
        let mut path = Vec::new();
        let mut at = to;
        while let Some(edge) = self.found_by[at.index()] {
            let edge = self.edges[edge as usize];
            path.push(edge);
            at = edge.from;
        }
        path.reverse();
        path
    }

    pub fn successors(&self) -> Vec<Vec<u32>> {
        let mut next = vec![Vec::new(); self.states.len()];
        self.edges.iter().for_each(|edge| next[edge.from.index()].push(edge.to.0));
        next
    }
}
