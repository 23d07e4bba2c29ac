//! The thread-modular analysis: each abstract thread on its own, against one store that all of them fill.
//!
//! The machine of §3 explores interleavings, and their number is the product of what the threads do. Here every thread
//! is a component that is run to its fixpoint with the rules of the abstract machine but against a single, only growing
//! store; whatever one thread writes may be read by any other at any time. The work grows with the *sum* of what the
//! threads do. (The idea is ModConc's: Stiévenart, Nicolay, De Meuter, De Roover, *A General Method for Rendering Static
//! Analyses for Diverse Concurrency Models Modular*, 2019.)
//!
//! What interleavings would have told, digests tell: each context carries the locks that its thread holds, the threads
//! it may have created, and the threads it must have joined. Two accesses race only if their threads may run at the same
//! time and they hold no lock in common; threads can be stuck only if they wait for each other in a circle.
//!
//! # Why it is right
//!
//! Must-locksets need locks that stand for one concrete lock and that only their holder releases. An address is
//! *single* when its allocation is executed at most once, which follows from the call graph found on the way: the
//! top level is executed once, and so is a procedure with one call site in code that is executed once, in a thread that
//! exists once. A lock that some thread releases without holding it, or that is written or swapped by hand once threads
//! exist, is not trusted: it protects nothing and may block anybody.
//!
//! If every lock is single and trusted, nobody takes a lock twice, and nobody ends with one, then in a state in which
//! nobody can move each waiting thread waits for one that waits itself, and the places at which they wait form a cycle
//! in the graph that [`Outcome::deadlocks`] is computed from. Without cycle, no deadlock. Spinning is outside of this
//! argument; [`Outcome::spins`] says that somebody may.

use crate::abs::space::*;
use crate::abs::step::{AbsOp, Next, View};
use crate::abs::trie::Root;
use crate::abs::value::{AbsVal, bit};
use crate::concrete::state::Origin;
use crate::graph::components;
use crate::limits::Clock;
use crate::machine::access::{Action, SitePair};
use crate::syntax::core::{BodyId, Expr, ExprId, Program, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What a thread has behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Digest {
    held: BTreeSet<AddrId>,
    created: BTreeSet<TidId>,
    joined: BTreeSet<TidId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Item {
    tid: TidId,
    ctx: CtxId,
    digest: Rc<Digest>,
}

/// Something a thread does that others may notice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Effect {
    tid: TidId,
    op: AbsOp,
    digest: Rc<Digest>,
}

/// A pair of accesses that the analysis cannot rule out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub sites: SitePair,
    pub origin: Origin,
    pub cell: u32,
}

pub struct Outcome {
    pub races: BTreeSet<Candidate>,
    /// Places at which threads may wait for each other.
    pub deadlocks: BTreeSet<ExprId>,
    /// A thread may repeat a read or a swap of shared memory for ever.
    pub spins: bool,
    /// Swaps that may succeed and may fail: whether they are retried is a question for the other phases.
    pub wavering: BTreeSet<ExprId>,
    /// Reachable `(error ...)`.
    pub errors: BTreeSet<ExprId>,
    pub threads: usize,
    pub contexts: usize,
    pub rounds: usize,
    pub incomplete: Option<String>,
}

/// Contexts of all threads together.
const CONTEXTS_MAX: usize = 300_000;

pub fn analyze(program: &Program, k: usize, clock: &Clock) -> Outcome {
    let mut run = Run::new(program, k);
    let incomplete = run.fixpoint(clock);
    run.outcome(incomplete)
}

struct Run<'p> {
    space: Space<'p>,
    store: Root,
    items: Vec<Item>,
    numbers: FxHashMap<Item, u32>,
    edges: FxHashSet<(u32, u32)>,
    effects: FxHashSet<Effect>,
    joins: FxHashSet<(TidId, ExprId, TidId, Rc<Digest>)>,
    /// Threads that may end (or fail) with these locks in hand.
    leaks: FxHashSet<(TidId, AddrId)>,
    errors: BTreeSet<ExprId>,
    /// Whether each swap may succeed and may fail.
    swaps: BTreeMap<ExprId, (bool, bool)>,
    /// Who spawned whom, and where.
    parents: BTreeMap<TidId, BTreeSet<(TidId, ExprId)>>,
    /// Where a thread calls a procedure.
    calls: BTreeMap<(TidId, BodyId), BTreeSet<ExprId>>,
    bodies: FxHashMap<ExprId, BodyId>,
    rounds: usize,
    threads: BTreeSet<TidId>,
}

impl<'p> Run<'p> {
    fn new(program: &'p Program, k: usize) -> Run<'p> {
        let mut space = Space::new(program, Config::modular(k));
        let mut store = Root::EMPTY;
        for at in 0..program.vars.len() {
            let addr = space.global_addr(VarId(at as u32));
            let unassigned = space.unassigned(VarId(at as u32));
            if addr != HALT {
                store = space.alloc(store, addr, unassigned, false);
            }
        }
        let ctx = space.ctx(Ctx { control: Control::Eval(program.root, EMPTY_ENV), kont: HALT, time: START });
        let bodies = program.lambdas.iter().map(|lambda| (lambda.body, lambda.body_id)).collect();
        let mut run = Run {
            space,
            store,
            items: Vec::new(),
            numbers: FxHashMap::default(),
            edges: FxHashSet::default(),
            effects: FxHashSet::default(),
            joins: FxHashSet::default(),
            leaks: FxHashSet::default(),
            errors: BTreeSet::new(),
            swaps: BTreeMap::new(),
            parents: BTreeMap::new(),
            calls: BTreeMap::new(),
            bodies,
            rounds: 0,
            threads: BTreeSet::new(),
        };
        run.number(Item { tid: MAIN, ctx, digest: Rc::default() });
        run
    }

    fn number(&mut self, item: Item) -> u32 {
        if let Some(&number) = self.numbers.get(&item) {
            return number;
        }
        let number = self.items.len() as u32;
        self.threads.insert(item.tid);
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        number
    }

    /// Repeats all contexts until neither they nor the store grow.
    fn fixpoint(&mut self, clock: &Clock) -> Option<String> {
        loop {
            self.rounds += 1;
            let before = self.store;
            let count = self.items.len();
            let mut at = 0;
            while at < self.items.len() {
                if clock.is_over() {
                    return Some(clock.reason());
                }
                if self.items.len() > CONTEXTS_MAX {
                    return Some(format!("the limit of {CONTEXTS_MAX} contexts was reached"));
                }
                self.visit(at as u32);
                at += 1;
            }
            if self.store == before && self.items.len() == count {
                return None;
            }
        }
    }

    fn visit(&mut self, number: u32) {
        let Item { tid, ctx, digest } = self.items[number as usize].clone();
        let view = View { threads: &[], tid, store: self.store };
        for op in self.space.ops(view, ctx) {
            if op.action != Action::Join {
                self.effects.insert(Effect { tid, op, digest: digest.clone() });
            }
        }
        let site = self.space.site(ctx);
        let targets = self.space.join_targets(ctx);
        for &target in targets.iter().flatten() {
            self.joins.insert((tid, site, target, digest.clone()));
        }
        for succ in self.space.step(view, ctx) {
            if let Some(op) = succ.done.filter(|op| op.action.is_cas()) {
                let (succeeds, fails) = self.swaps.entry(op.site).or_default();
                *succeeds |= op.action == Action::CasSucceeds;
                *fails |= op.action == Action::CasFails;
            }
            self.store = self.space.join_stores(self.store, succ.store);
            let mut after = digest.clone();
            match succ.done {
                Some(op) if op.action == Action::Acquire => {
                    Rc::make_mut(&mut after).held.insert(op.addr);
                }
                Some(op) if op.action == Action::Release => {
                    Rc::make_mut(&mut after).held.remove(&op.addr);
                }
                _ => {}
            }
            if let Some([target]) = targets.as_deref() {
                Rc::make_mut(&mut after).joined.insert(*target);
            }
            if let Some((child, start)) = succ.spawned {
                self.parents.entry(child).or_default().insert((tid, site));
                let inherited = Digest { held: BTreeSet::new(), ..(*digest).clone() };
                self.number(Item { tid: child, ctx: start, digest: Rc::new(inherited) });
                Rc::make_mut(&mut after).created.insert(child);
            }
            match succ.next {
                Next::Goes(next) => {
                    if let Control::Eval(expr, _) = self.space.ctx_of(next).control
                        && matches!(self.space.program.expr(site), Expr::Call(..))
                        && let Some(&body) = self.bodies.get(&expr)
                    {
                        self.calls.entry((tid, body)).or_default().insert(site);
                    }
                    let to = self.number(Item { tid, ctx: next, digest: after });
                    self.edges.insert((number, to));
                }
                Next::Ends(value) => self.end(tid, value, &after),
                Next::Fails { site, raised } => {
                    if raised {
                        self.errors.insert(site);
                    }
                    let failed = self.space.value(AbsVal::bits(bit::FAILED));
                    self.end(tid, failed, &after);
                }
            }
        }
    }

    fn end(&mut self, tid: TidId, value: crate::abs::value::ValId, digest: &Digest) {
        let addr = self.space.addr(Addr::Result(tid));
        self.store = self.space.alloc(self.store, addr, value, false);
        self.leaks.extend(digest.held.iter().map(|&lock| (tid, lock)));
    }

    // ---- what the fixpoint means -----------------------------------------------------------------------------

    fn outcome(mut self, incomplete: Option<String>) -> Outcome {
        let single = Singles::new(&self);
        let untrusted = self.untrusted(&single);
        let trusted = |addr: &AddrId| !untrusted.contains(addr) && single.addr(&self.space, *addr);
        let effects: Vec<Effect> = self.effects.iter().cloned().collect();
        let races = self.races(&effects, &single, &trusted);
        let deadlocks = self.deadlocks(&effects, &single, &trusted);
        let spins = self.spins();
        Outcome {
            races,
            deadlocks,
            spins,
            wavering: self
                .swaps
                .iter()
                .filter(|(_, both)| **both == (true, true))
                .map(|(&site, _)| site)
                .collect(),
            errors: std::mem::take(&mut self.errors),
            threads: self.threads.len(),
            contexts: self.items.len(),
            rounds: self.rounds,
            incomplete,
        }
    }

    /// Locks that somebody else than the holder may open, or that are used as plain memory.
    fn untrusted(&self, single: &Singles) -> FxHashSet<AddrId> {
        let mut out = FxHashSet::default();
        for Effect { tid, op, digest } in &self.effects {
            let bad = match op.action {
                Action::Release => !digest.held.contains(&op.addr),
                // The definition of a lock variable writes it before any thread exists.
                Action::Write => *tid != MAIN || !digest.created.is_empty(),
                Action::CasSucceeds | Action::CasFails => true,
                // Taking it twice means that somebody let go of it in between.
                Action::Acquire => digest.held.contains(&op.addr),
                Action::Read | Action::Join => false,
            };
            if bad || !single.addr(&self.space, op.addr) {
                out.insert(op.addr);
            }
        }
        // A lock that starts out taken belongs to nobody.
        for at in 0..self.space.program.exprs.len() {
            if let Expr::Set(var, value) = &self.space.program.exprs[at]
                && let Expr::Const(crate::syntax::core::Const::Lock(true)) = self.space.program.expr(*value)
            {
                out.insert(self.space.global_addr(*var));
            }
        }
        out
    }

    fn races(
        &self,
        effects: &[Effect],
        single: &Singles,
        trusted: &impl Fn(&AddrId) -> bool,
    ) -> BTreeSet<Candidate> {
        let mut by_addr: FxHashMap<AddrId, Vec<&Effect>> = FxHashMap::default();
        for effect in effects {
            by_addr.entry(effect.op.addr).or_default().push(effect);
        }
        let mut out = BTreeSet::new();
        for (addr, effects) in by_addr {
            let Addr::Cell(origin, cell, _) = self.space.addr_of(addr) else { continue };
            for (i, a) in effects.iter().enumerate() {
                for b in &effects[i..] {
                    let candidate = Candidate { sites: SitePair::new(a.op.site, b.op.site), origin, cell };
                    if a.op.action.conflicts_with(b.op.action)
                        && !out.contains(&candidate)
                        && self.parallel(single, (a.tid, &a.digest), (b.tid, &b.digest))
                        && !a.digest.held.iter().any(|lock| b.digest.held.contains(lock) && trusted(lock))
                    {
                        out.insert(candidate);
                    }
                }
            }
        }
        out
    }

    /// Whether two threads may be at these points of theirs at the same time.
    fn parallel(
        &self,
        single: &Singles,
        (a, before_a): (TidId, &Digest),
        (b, before_b): (TidId, &Digest),
    ) -> bool {
        if a == b {
            return !single.tid(a);
        }
        let joined = |who: TidId, digest: &Digest| single.tid(who) && digest.joined.contains(&who);
        if joined(a, before_b) || joined(b, before_a) {
            return false;
        }
        // Before an ancestor has created the branch in which a thread lives, the thread does not exist.
        let exists = |ancestor: TidId, digest: &Digest, thread: TidId| {
            let mut at = thread;
            for _ in 0..=self.parents.len() {
                let Some(parents) = self.parents.get(&at) else { return true };
                if parents.len() != 1 {
                    return true;
                }
                let Some(&(parent, _)) = parents.first() else { return true };
                if parent == ancestor {
                    return digest.created.contains(&at);
                }
                at = parent;
            }
            true
        };
        exists(a, before_a, b) && exists(b, before_b, a)
    }

    fn deadlocks(
        &self,
        effects: &[Effect],
        single: &Singles,
        trusted: &impl Fn(&AddrId) -> bool,
    ) -> BTreeSet<ExprId> {
        struct Point<'a> {
            tid: TidId,
            site: ExprId,
            digest: &'a Digest,
            lock: Option<AddrId>,
            target: Option<TidId>,
        }
        let mut out = BTreeSet::new();
        let mut points: Vec<Point> = Vec::new();
        for Effect { tid, op, digest } in effects {
            if op.action == Action::Acquire {
                // Nothing is known about such a lock; or it is known to be gone for good.
                let leaked = self.leaks.iter().any(|(_, lock)| *lock == op.addr);
                if !trusted(&op.addr) || leaked || digest.held.contains(&op.addr) {
                    out.insert(op.site);
                }
                points.push(Point { tid: *tid, site: op.site, digest, lock: Some(op.addr), target: None });
            }
        }
        for (tid, site, target, digest) in &self.joins {
            points.push(Point { tid: *tid, site: *site, digest, lock: None, target: Some(*target) });
        }
        let next: Vec<Vec<u32>> = points
            .iter()
            .enumerate()
            .map(|(i, a)| {
                let waits_for = |&(j, b): &(usize, &Point)| {
                    let elsewhere = a.tid != b.tid || !single.tid(a.tid);
                    let gate = a.digest.held.iter().any(|lock| b.digest.held.contains(lock) && trusted(lock));
                    let waits = match (a.lock, a.target) {
                        (Some(lock), _) => b.digest.held.contains(&lock),
                        (_, Some(target)) => target == b.tid,
                        _ => false,
                    };
                    waits
                        && elsewhere
                        && !gate
                        && (i != j || !single.tid(a.tid))
                        && self.parallel(single, (a.tid, a.digest), (b.tid, b.digest))
                };
                points.iter().enumerate().filter(waits_for).map(|(j, _)| j as u32).collect()
            })
            .collect();
        let component = components(&next);
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        component.iter().for_each(|c| *sizes.entry(*c).or_default() += 1);
        for (i, point) in points.iter().enumerate() {
            if sizes[&component[i]] > 1 || next[i].contains(&(i as u32)) {
                out.insert(point.site);
            }
        }
        out
    }

    /// Whether a loop of some thread touches shared memory without writing it by plain means.
    fn spins(&self) -> bool {
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); self.items.len()];
        self.edges.iter().for_each(|&(from, to)| next[from as usize].push(to));
        let component = components(&next);
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        component.iter().for_each(|c| *sizes.entry(*c).or_default() += 1);
        let reads: FxHashSet<(TidId, ExprId)> = self
            .effects
            .iter()
            .filter(|e| e.op.action == Action::Read || e.op.action.is_cas())
            .map(|e| (e.tid, e.op.site))
            .collect();
        self.items.iter().enumerate().any(|(at, item)| {
            let looping = sizes[&component[at]] > 1 || next[at].contains(&(at as u32));
            looping && reads.contains(&(item.tid, self.space.site(item.ctx)))
        })
    }
}

/// Which threads and allocations exist at most once.
struct Singles {
    threads: BTreeSet<TidId>,
    bodies: BTreeSet<(TidId, BodyId)>,
    /// The body in which a variable is bound.
    homes: Vec<BodyId>,
}

impl Singles {
    /// The least fixpoint: a recursive procedure would have to be executed once already to count.
    fn new(run: &Run) -> Singles {
        let program = run.space.program;
        let mut homes = vec![BodyId(0); program.vars.len()];
        for (at, expr) in program.exprs.iter().enumerate() {
            if let Expr::Let(bindings, _) | Expr::Letrec(bindings, _) = expr {
                bindings.iter().for_each(|b| homes[b.0.index()] = program.homes[at]);
            }
        }
        for lambda in &program.lambdas {
            lambda.params.iter().chain(&lambda.rest).for_each(|var| homes[var.index()] = lambda.body_id);
        }
        let mut single = Singles { threads: [MAIN].into(), bodies: [(MAIN, BodyId(0))].into(), homes };
        loop {
            let before = (single.threads.len(), single.bodies.len());
            for (&child, parents) in &run.parents {
                if let Some(&(parent, site)) = parents.first()
                    && parents.len() == 1
                    && single.bodies.contains(&(parent, program.homes[site.index()]))
                    && let Expr::Spawn(code) = program.expr(site)
                {
                    single.threads.insert(child);
                    single.bodies.insert((child, program.homes[code.index()]));
                }
            }
            for (&(tid, body), sites) in &run.calls {
                if let Some(site) = sites.first()
                    && sites.len() == 1
                    && single.bodies.contains(&(tid, program.homes[site.index()]))
                {
                    single.bodies.insert((tid, body));
                }
            }
            if before == (single.threads.len(), single.bodies.len()) {
                return single;
            }
        }
    }

    fn tid(&self, tid: TidId) -> bool {
        self.threads.contains(&tid)
    }

    fn addr(&self, space: &Space, addr: AddrId) -> bool {
        let Addr::Cell(origin, cell, time) = space.addr_of(addr) else { return false };
        let tid = space.time_of(time).thread;
        match origin {
            Origin::Var(var) if space.program.var(var).global => true,
            Origin::Var(var) => self.bodies.contains(&(tid, self.homes[var.index()])),
            Origin::Pair(site, _) | Origin::Vector(site) | Origin::Ref(site) | Origin::Lock(site) => {
                cell != ANY_CELL && self.bodies.contains(&(tid, space.program.homes[site.index()]))
            }
        }
    }
}
