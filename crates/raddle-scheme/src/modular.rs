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
//! time and they hold no lock in common; threads can be stuck only if they wait for each other in a cycle.
//!
//! # Why it is right
//!
//! Must-locksets need locks that stand for one concrete lock and that only their holder releases. An address is
//! *single* when its allocation is executed at most once, which follows from the call graph found on the way: the
//! top level is executed once, and so is a procedure with one call site in code that is executed once, in a thread that
//! exists once. A lock that some thread releases without holding it, or that is written or swapped by hand once threads
//! exist, is not trusted: it protects nothing and may block anybody. Neither is one that may be taken without a holder: who
//! holds a lock is part of its abstract value ([`bit::LOCKED`] by an `acquire`, [`bit::TAKEN`] by nobody), so it does not
//! matter in which position of the program such a lock is made, or which way its state takes into the lock's cell.
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
use crate::syntax::prim::Prim;
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

#[derive(Debug)]
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
    /// Reachable operations that have no meaning on anything they may be given, such as `(car 1)`.
    pub wrong: BTreeSet<ExprId>,
    /// Reachable operations that have no meaning on something they may be given; those of `wrong` are among them.
    pub fallible: BTreeSet<ExprId>,
    pub threads: usize,
    pub contexts: usize,
    pub rounds: usize,
    pub incomplete: Option<String>,
}

/// Contexts of all threads together.
const CONTEXTS_MAX: usize = 300_000;
/// Pairs of accesses that may race; a program with more of them is not worth an enumeration.
const CANDIDATES_MAX: usize = 200_000;

pub fn analyze(program: &Program, k: usize, clock: &Clock) -> Outcome {
    let mut run = Run::new(program, k, clock);
    let incomplete = run.fixpoint(clock);
    run.outcome(incomplete, clock)
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
    /// Operations that could only fail when they were visited last.
    wrong: BTreeSet<ExprId>,
    /// Operations that might fail when they were visited last.
    fallible: BTreeSet<ExprId>,
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
    fn new(program: &'p Program, k: usize, clock: &Clock) -> Run<'p> {
        let mut space = Space::new(program, Config::modular(k));
        let mut store = Root::EMPTY;
        for at in 0..program.vars.len() {
            if clock.is_over() {
                // The fixpoint asks next and gives the reason.
                break;
            }
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
            wrong: BTreeSet::new(),
            fallible: BTreeSet::new(),
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
            // Only the last round, in which nothing is new, knows everything that an operation may be given.
            self.wrong.clear();
            self.fallible.clear();
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
        let succs = self.space.step(view, ctx);
        if self.space.is_wrong(site, &succs) {
            self.wrong.insert(site);
        }
        if self.space.may_be_wrong(site, &succs) {
            self.fallible.insert(site);
        }
        for succ in succs {
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
                        && matches!(
                            self.space.program.expr(site),
                            Expr::Call(..) | Expr::PrimCall(Prim::CallCc, _)
                        )
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

    /// Nothing is concluded from a fixpoint that was not reached.
    fn outcome(mut self, incomplete: Option<String>, clock: &Clock) -> Outcome {
        let swaps = self.swaps.iter().filter(|(_, both)| **both == (true, true));
        let mut outcome = Outcome {
            races: BTreeSet::new(),
            deadlocks: BTreeSet::new(),
            spins: false,
            wavering: swaps.map(|(&site, _)| site).collect(),
            errors: std::mem::take(&mut self.errors),
            wrong: std::mem::take(&mut self.wrong),
            fallible: std::mem::take(&mut self.fallible),
            threads: self.threads.len(),
            contexts: self.items.len(),
            rounds: self.rounds,
            incomplete,
        };
        if outcome.incomplete.is_some() {
            return outcome;
        }
        let single = Singles::new(&self);
        let untrusted = self.untrusted(&single);
        let trusted = |addr: &AddrId| !untrusted.contains(addr) && single.addr(&self.space, *addr);
        let judged = self.races(&single, &trusted, clock).and_then(|races| {
            outcome.races = races;
            outcome.deadlocks = self.deadlocks(&single, &trusted, clock)?;
            Ok(())
        });
        outcome.incomplete = judged.err();
        outcome.spins = self.spins();
        outcome
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
            // A lock that was taken by nobody is given back by nobody.
            let held =
                self.space.lookup_value(self.store, op.addr).map_or(0, |v| self.space.value_of(v).bits);
            if bad || held & bit::TAKEN != 0 || !single.addr(&self.space, op.addr) {
                out.insert(op.addr);
            }
        }
        out
    }

    /// Pairs of accesses that may happen together. Accesses with the same thread and digest may happen together with the
    /// same others, so they are judged as one group: a thread of a million writes is compared with itself once.
    fn races(
        &self,
        single: &Singles,
        trusted: &impl Fn(&AddrId) -> bool,
        clock: &Clock,
    ) -> Result<BTreeSet<Candidate>, String> {
        type Group = BTreeMap<Action, BTreeSet<ExprId>>;
        let mut by_addr: FxHashMap<AddrId, FxHashMap<(TidId, &Digest), Group>> = FxHashMap::default();
        for Effect { tid, op, digest } in &self.effects {
            let groups = by_addr.entry(op.addr).or_default();
            groups.entry((*tid, &**digest)).or_default().entry(op.action).or_default().insert(op.site);
        }
        let mut out = BTreeSet::new();
        for (addr, groups) in by_addr {
            let Addr::Cell(origin, cell, _) = self.space.addr_of(addr) else { continue };
            let groups: Vec<((TidId, &Digest), Group)> = groups.into_iter().collect();
            for (i, (a, accesses)) in groups.iter().enumerate() {
                for (b, others) in &groups[i..] {
                    if clock.is_over() {
                        return Err(clock.reason());
                    }
                    let guarded = a.1.held.iter().any(|lock| b.1.held.contains(lock) && trusted(lock));
                    if guarded || !self.parallel(single, *a, *b) {
                        continue;
                    }
                    for (action, sites) in accesses {
                        let conflicting = others.iter().filter(|(other, _)| action.conflicts_with(**other));
                        for (x, y) in
                            conflicting.flat_map(|(_, ys)| ys).flat_map(|y| sites.iter().map(move |x| (x, y)))
                        {
                            out.insert(Candidate { sites: SitePair::new(*x, *y), origin, cell });
                            if out.len() > CANDIDATES_MAX {
                                return Err(format!("more than {CANDIDATES_MAX} pairs of accesses may race"));
                            }
                        }
                    }
                }
            }
        }
        Ok(out)
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

    /// Places on a circle of threads that wait for each other. Places at which the same thread waits for the same with the
    /// same behind it wait for, and are waited for by, the same others: they are one node.
    fn deadlocks(
        &self,
        single: &Singles,
        trusted: &impl Fn(&AddrId) -> bool,
        clock: &Clock,
    ) -> Result<BTreeSet<ExprId>, String> {
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        enum For {
            Lock(AddrId),
            Thread(TidId),
        }
        let leaked: FxHashSet<AddrId> = self.leaks.iter().map(|(_, lock)| *lock).collect();
        let mut out = BTreeSet::new();
        let mut points: FxHashMap<(TidId, &Digest, For), Vec<ExprId>> = FxHashMap::default();
        for Effect { tid, op, digest } in &self.effects {
            if op.action == Action::Acquire {
                // Nothing is known about such a lock; or it is known to be gone for good.
                if !trusted(&op.addr) || leaked.contains(&op.addr) || digest.held.contains(&op.addr) {
                    out.insert(op.site);
                }
                points.entry((*tid, &**digest, For::Lock(op.addr))).or_default().push(op.site);
            }
        }
        for (tid, site, target, digest) in &self.joins {
            // Whoever joins itself waits for ever; an id that stands for many may mean another one, or itself.
            if target == tid {
                out.insert(*site);
            }
            points.entry((*tid, &**digest, For::Thread(*target))).or_default().push(*site);
        }
        let points: Vec<(_, Vec<ExprId>)> = points.into_iter().collect();
        let mut holders: FxHashMap<For, Vec<u32>> = FxHashMap::default();
        for (at, ((tid, digest, _), _)) in points.iter().enumerate() {
            holders.entry(For::Thread(*tid)).or_default().push(at as u32);
            for &lock in &digest.held {
                holders.entry(For::Lock(lock)).or_default().push(at as u32);
            }
        }
        let mut next: Vec<Vec<u32>> = Vec::with_capacity(points.len());
        for ((tid, digest, what), _) in &points {
            let mut edges = Vec::new();
            for &at in holders.get(what).into_iter().flatten() {
                if clock.is_over() {
                    return Err(clock.reason());
                }
                let (other, before, _) = points[at as usize].0;
                let elsewhere = *tid != other || !single.tid(*tid);
                let gate = digest.held.iter().any(|lock| before.held.contains(lock) && trusted(lock));
                if elsewhere && !gate && self.parallel(single, (*tid, digest), (other, before)) {
                    edges.push(at);
                }
            }
            next.push(edges);
        }
        let component = components(&next);
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        component.iter().for_each(|c| *sizes.entry(*c).or_default() += 1);
        for (i, (_, sites)) in points.iter().enumerate() {
            if sizes[&component[i]] > 1 || next[i].contains(&(i as u32)) {
                out.extend(sites);
            }
        }
        Ok(out)
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
