//! One step of an abstract thread: the rules of [`crate::machine::plan`] on sets of values.
//!
//! Where a concrete machine does one thing, this one has a successor for each thing that may happen. Every successor
//! over-approximates: an update replaces only where the address stands for a single cell, a lock that may be free can be
//! taken, a thread that may have ended can be joined.

mod ops;
mod prims;
mod refine;

use super::space::*;
use super::trie::Root;
use super::value::{self, AbsVal, Arithmetic, Reference, ValId, bit};
use crate::concrete::state::Origin;
use crate::machine::access::Action;
use crate::machine::plan::{self, Plan, Values};
use crate::syntax::core::{Const, Expr, ExprId, VarId};
use crate::syntax::prim::Prim;
use smallvec::SmallVec;

/// An operation that other threads can notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbsOp {
    pub action: Action,
    pub site: ExprId,
    /// The cell; for a join, where the joined thread leaves its result.
    pub addr: AddrId,
    pub written: Option<ValId>,
    /// The operation can happen now.
    pub may_go: bool,
    /// The operation may have to wait.
    pub may_wait: bool,
}

pub type Ops = SmallVec<[AbsOp; 2]>;

/// Where a thread is after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    Goes(CtxId),
    /// Ended with this result.
    Ends(ValId),
    /// Stopped by an error; `raised` tells `(error ...)` from a type error.
    Fails {
        site: ExprId,
        raised: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Succ {
    pub next: Next,
    pub store: Root,
    pub spawned: Option<(TidId, CtxId)>,
    /// What was done, if it can be noticed; a `cas` says how it came out.
    pub done: Option<AbsOp>,
}

/// The state around a thread.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub threads: &'a [AbsThread],
    pub tid: TidId,
    pub store: Root,
}

impl View<'_> {
    fn is_live(&self, tid: TidId) -> bool {
        self.threads.iter().any(|thread| thread.tid == tid)
    }
}

impl Space<'_> {
    pub fn global_addr(&self, var: VarId) -> AddrId {
        self.globals[var.index()]
    }

    fn var_addr(&self, var: VarId, env: EnvId) -> AddrId {
        let global = self.globals[var.index()];
        if global != HALT {
            return global;
        }
        let env = self.env_of(env);
        match env.binary_search_by_key(&var, |entry| entry.0) {
            Ok(at) => env[at].1,
            Err(_) => unreachable!("the expander resolves every name"),
        }
    }

    /// Another cell of the same object.
    pub fn sibling(&mut self, addr: AddrId, cell: u32) -> AddrId {
        match self.addr_of(addr) {
            Addr::Cell(origin, _, time) => self.addr(Addr::Cell(origin, cell, time)),
            Addr::Length(site, time) => self.addr(Addr::Cell(Origin::Vector(site), cell, time)),
            other => unreachable!("{other:?} has no cells"),
        }
    }

    /// How many cells a vector made here has, where the text says so.
    fn vector_size(&self, site: ExprId) -> Option<u32> {
        match self.program.expr(site) {
            Expr::PrimCall(Prim::Vector, args) if args.len() <= CELLS_MAX => Some(args.len() as u32),
            Expr::PrimCall(Prim::MakeVector, args) => {
                let size = self.program.known_int(args[0])?;
                (0..=CELLS_MAX as i64).contains(&size).then_some(size as u32)
            }
            _ => None,
        }
    }

    pub fn vector_cells(&mut self, length: AddrId) -> Vec<AddrId> {
        let Addr::Length(site, _) = self.addr_of(length) else {
            unreachable!("vectors are named by their length")
        };
        match self.vector_size(site) {
            Some(size) => (0..size).map(|cell| self.sibling(length, cell)).collect(),
            None => vec![self.sibling(length, ANY_CELL)],
        }
    }

    fn plan(&self, ctx: Ctx) -> Option<(ExprId, Plan<ValId>, EnvId)> {
        match ctx.control {
            Control::Eval(expr, env) => Some((expr, plan::start(self.program, expr), env)),
            Control::Resume(frame, value) => {
                let frame = self.frame_of(frame);
                let plan = plan::resume(self.program, frame.expr, frame.index, &frame.values, value);
                Some((frame.expr, plan, frame.env))
            }
            Control::Done(_) => None,
        }
    }

    /// The expression that a context is at.
    pub fn site(&self, ctx: CtxId) -> ExprId {
        match self.ctx_of(ctx).control {
            Control::Eval(expr, _) => expr,
            Control::Resume(frame, _) => self.frame_of(frame).expr,
            Control::Done(_) => self.program.root,
        }
    }

    /// All that may happen when the context takes its next step.
    pub fn step(&mut self, view: View, id: CtxId) -> Vec<Succ> {
        self.crowd = view.threads.iter().any(|thread| thread.tid == view.tid && thread.many);
        let ctx = self.ctx_of(id);
        let Some((site, plan, env)) = self.plan(ctx) else { unreachable!("ended contexts are removed") };
        let mut out = Out { site, succs: Vec::new() };
        let store = view.store;
        match plan {
            Plan::Constant(expr) => {
                let value = self.constant(expr);
                self.give(&mut out, ctx, store, value, None);
            }
            Plan::Prim(prim) => {
                let value = self.value(AbsVal::reference(Reference::Prim(prim)));
                self.give(&mut out, ctx, store, value, None);
            }
            Plan::Lambda(lambda) => {
                let program = self.program;
                let env = self.restrict(env, program.free(site));
                let value = self.value(AbsVal::reference(Reference::Closure(lambda, env)));
                self.give(&mut out, ctx, store, value, None);
            }
            Plan::Read(var) => {
                let addr = self.var_addr(var, env);
                let done = self.program.visible_var(var).then_some(op(Action::Read, site, addr, None));
                self.give_cell(&mut out, ctx, store, addr, done);
            }
            Plan::Push { .. } | Plan::Tail(_) => self.follow(&mut out, ctx, site, plan, env, store),
            Plan::Value(value) => self.give(&mut out, ctx, store, value, None),
            Plan::Branch { test, then, otherwise } => {
                let test = self.value_of(test);
                for (branch, holds) in [(then, true), (otherwise, false)] {
                    if if holds { test.may_be_true() } else { test.may_be_false() } {
                        let (env, store) = self.refine(site, holds, env, store);
                        self.follow(&mut out, ctx, site, Plan::Tail(branch), env, store);
                    }
                }
            }
            Plan::OrTest { value, next } => {
                let known = self.value_of(value);
                if known.may_be_true() {
                    let mut truth = (*known).clone();
                    truth.bits &= !bit::FALSE;
                    let truth = self.value(truth);
                    self.give(&mut out, ctx, store, truth, None);
                }
                if known.may_be_false() {
                    let rest = plan::after_false(self.program, site, next);
                    self.follow(&mut out, ctx, site, rest, env, store);
                }
            }
            Plan::Bind { values } => {
                let Expr::Let(bindings, body) = self.program.expr(site) else {
                    unreachable!("only let binds")
                };
                let vars: Vec<(VarId, ValId)> = bindings.iter().map(|b| b.0).zip(values).collect();
                let (env, store) = self.extend(view, env, &vars, ctx.time);
                self.follow(&mut out, ctx, site, Plan::Tail(*body), env, store);
            }
            Plan::OpenLetrec => {
                let Expr::Letrec(bindings, _) = self.program.expr(site) else {
                    unreachable!("only letrec opens")
                };
                let vars: Vec<(VarId, ValId)> =
                    bindings.iter().map(|b| (b.0, self.unassigned(b.0))).collect();
                let (env, store) = self.extend(view, env, &vars, ctx.time);
                let first = plan::after_initialiser(self.program, site, 0);
                self.follow(&mut out, ctx, site, first, env, store);
            }
            Plan::Initialise { var, value, next } => {
                let addr = self.var_addr(var, env);
                let store = self.write(store, addr, value);
                let done =
                    self.program.visible_var(var).then_some(op(Action::Write, site, addr, Some(value)));
                let rest = plan::after_initialiser(self.program, site, next);
                self.follow(&mut out, ctx, site, rest, env, store);
                out.succs.iter_mut().for_each(|succ| succ.done = done);
            }
            Plan::Apply { f, args } => self.apply(&mut out, ctx, view, f, args),
            Plan::PrimApply { prim, args } => self.prim(&mut out, ctx, view, prim, &args),
            Plan::Spawn(code) => self.spawn(&mut out, ctx, view, code, env),
            Plan::Join(value) => self.join(&mut out, ctx, view, value),
            Plan::Set { var, value } => {
                let addr = self.var_addr(var, env);
                let store = self.write(store, addr, value);
                let done =
                    self.program.visible_var(var).then_some(op(Action::Write, site, addr, Some(value)));
                let unspecified = self.value(AbsVal::bits(bit::UNSPECIFIED));
                self.give(&mut out, ctx, store, unspecified, done);
            }
            Plan::CasVar { var, old, new } => {
                let addr = self.var_addr(var, env);
                self.compare_and_swap(&mut out, ctx, store, addr, old, new);
            }
            Plan::LockVar { var, acquire } => {
                let locks = self.lock_addrs_of_var(view, var, env);
                let addr = self.var_addr(var, env);
                let value = self.lookup_value(store, addr).map(|v| self.value_of(v));
                let certain = value.is_some_and(|v| {
                    v.bits & !bit::LOCK == 0
                        && v.int == value::Whole::None
                        && v.string == value::Flat::None
                        && v.refs.iter().all(|r| matches!(r, Reference::Lock(_)))
                });
                self.lock(&mut out, ctx, store, &locks, acquire, !certain);
            }
            Plan::LockValue { lock, acquire } => {
                let locks = self.locks_in(lock);
                let value = self.value_of(lock);
                let certain = value.refs.len() == locks.len()
                    && value.bits == 0
                    && value.int == value::Whole::None
                    && value.string == value::Flat::None;
                self.lock(&mut out, ctx, store, &locks, acquire, !certain);
            }
        }
        out.succs
    }

    /// Whether these are the successors of an operation that has no meaning on anything it may be given. A join of a thread
    /// that fails is none: the mistake is the thread's.
    pub fn is_wrong(&self, site: ExprId, succs: &[Succ]) -> bool {
        let fails = |succ: &Succ| matches!(succ.next, Next::Fails { raised: false, .. });
        !succs.is_empty() && succs.iter().all(fails) && !matches!(self.program.expr(site), Expr::Join(_))
    }

    /// Whether these are the successors of an operation that has no meaning on something it may be given.
    pub fn may_be_wrong(&self, site: ExprId, succs: &[Succ]) -> bool {
        let fails = |succ: &Succ| matches!(succ.next, Next::Fails { raised: false, .. });
        succs.iter().any(fails) && !matches!(self.program.expr(site), Expr::Join(_))
    }

    fn constant(&mut self, expr: ExprId) -> ValId {
        let Expr::Const(constant) = self.program.expr(expr) else { unreachable!("asked for a constant") };
        let value = match constant {
            Const::Int(_) if self.config.arithmetic == Arithmetic::None => AbsVal::any_int(),
            Const::Int(n) => AbsVal::int(*n),
            Const::Big(_) => AbsVal::any_int(),
            Const::Ratio(_) => AbsVal::bits(bit::RATIO),
            Const::Real(_) => AbsVal::bits(bit::REAL),
            Const::Bool(b) => AbsVal::bits(if *b { bit::TRUE } else { bit::FALSE }),
            Const::Str(_) if self.config.arithmetic == Arithmetic::None => AbsVal::any_string(),
            Const::Str(s) => AbsVal { string: value::Flat::One(self.string(s)), ..AbsVal::default() },
            Const::Char(_) => AbsVal::bits(bit::CHAR),
            Const::Symbol(s) => AbsVal::reference(Reference::Symbol(*s)),
            Const::Nil => AbsVal::bits(bit::NIL),
            Const::Unspecified => AbsVal::bits(bit::UNSPECIFIED),
            Const::Lock(true) if self.config.weak => AbsVal::bits(bit::TAKEN),
            Const::Lock(l) => AbsVal::bits(if *l { bit::LOCKED } else { bit::UNLOCKED }),
        };
        self.value(value)
    }

    fn restrict(&mut self, env: EnvId, free: &[VarId]) -> EnvId {
        let all = self.env_of(env);
        if all.len() == free.len() {
            return env;
        }
        let kept: Vec<(VarId, AddrId)> =
            all.iter().filter(|entry| free.binary_search(&entry.0).is_ok()).copied().collect();
        self.env(&kept)
    }

    /// What a variable holds before its initialiser has run. Where one store describes all moments this would never
    /// leave it again, so it is left out for quiet variables, which nobody sees in that state.
    pub fn unassigned(&mut self, var: VarId) -> ValId {
        let seen = !(self.config.weak && self.program.var(var).quiet);
        self.value(if seen { AbsVal::bits(bit::UNASSIGNED) } else { AbsVal::default() })
    }

    /// Returns a value to every continuation that may wait for it.
    fn give(&mut self, out: &mut Out, ctx: Ctx, store: Root, value: ValId, done: Option<AbsOp>) {
        if ctx.kont == HALT {
            out.succs.push(Succ { next: Next::Ends(value), store, spawned: None, done });
            return;
        }
        let Some(Entry { content: Content::Konts(konts), .. }) = self.lookup(store, ctx.kont) else {
            unreachable!("a live continuation is in the store")
        };
        for &(frame, next) in self.konts_of(konts).clone().iter() {
            let time = self.frame_of(frame).time;
            let ctx = self.ctx(Ctx { control: Control::Resume(frame, value), kont: next, time });
            out.succs.push(Succ { next: Next::Goes(ctx), store, spawned: None, done });
        }
    }

    /// What is read from a cell that holds this.
    pub(super) fn read_value(&mut self, held: ValId) -> ValId {
        let known = self.value_of(held);
        if !self.config.weak || known.bits & bit::LOCKED == 0 {
            return held;
        }
        self.value(known.as_value())
    }

    /// Returns what a cell holds; an unassigned variable is an error.
    fn give_cell(&mut self, out: &mut Out, ctx: Ctx, store: Root, addr: AddrId, done: Option<AbsOp>) {
        let Some(value) = self.lookup_value(store, addr) else {
            return out.fail(store, false, done);
        };
        let value = self.read_value(value);
        let known = self.value_of(value);
        if known.is_none() {
            // Nothing was written here yet, and nobody reads a quiet variable before something is.
            return;
        }
        if known.bits & bit::UNASSIGNED == 0 {
            return self.give(out, ctx, store, value, done);
        }
        out.fail(store, false, done);
        let mut rest = (*known).clone();
        rest.bits &= !bit::UNASSIGNED;
        if !rest.is_none() {
            let rest = self.value(rest);
            self.give(out, ctx, store, rest, done);
        }
    }

    fn follow(&mut self, out: &mut Out, ctx: Ctx, site: ExprId, plan: Plan<ValId>, env: EnvId, store: Root) {
        let (expr, kont, store) = match plan {
            Plan::Tail(expr) => (expr, ctx.kont, store),
            Plan::Push { child, index, values } => {
                let frame = self.frame(AbsFrame { expr: site, index, values, env, time: ctx.time });
                let kont = if self.config.thread_sensitive {
                    self.addr(Addr::Kont(site, index, env, ctx.time))
                } else {
                    self.addr(Addr::Kont(child, 0, EMPTY_ENV, ctx.time))
                };
                (child, kont, self.push_kont(store, kont, frame, ctx.kont))
            }
            other => unreachable!("{other:?} does not follow a part"),
        };
        let next = self.ctx(Ctx { control: Control::Eval(expr, env), kont, time: ctx.time });
        out.succs.push(Succ { next: Next::Goes(next), store, spawned: None, done: None });
    }

    /// Binds variables. Where an address is taken already, garbage is collected first: most often the binding that
    /// stands in the way is the one of the previous round of a loop.
    fn extend(&mut self, view: View, env: EnvId, vars: &[(VarId, ValId)], time: TimeId) -> (EnvId, Root) {
        let mut bound: Vec<(VarId, AddrId)> = self.env_of(env).to_vec();
        let mut addrs: SmallVec<[AddrId; 8]> = SmallVec::new();
        for &(var, _) in vars {
            let addr = self.addr(Addr::Cell(Origin::Var(var), 0, time));
            addrs.push(addr);
            match bound.binary_search_by_key(&var, |entry| entry.0) {
                Ok(at) => bound[at].1 = addr,
                Err(at) => bound.insert(at, (var, addr)),
            }
        }
        let mut store = view.store;
        if self.config.gc && self.config.por && addrs.iter().any(|&addr| self.lookup(store, addr).is_some()) {
            store = self.collect_all(view.threads, store);
        }
        for (&addr, &(_, value)) in addrs.iter().zip(vars) {
            store = self.alloc(store, addr, value, false);
        }
        (self.env(&bound), store)
    }

    /// Garbage collection with the contexts of all threads as roots.
    pub fn collect_all(&mut self, threads: &[AbsThread], store: Root) -> Root {
        let ctxs: SmallVec<[CtxId; 8]> =
            threads.iter().flat_map(|thread| thread.ctxs.iter().copied()).collect();
        self.collect(&ctxs, store)
    }

    fn called(&mut self, time: TimeId, site: ExprId) -> TimeId {
        if self.config.k == 0 {
            return time;
        }
        let mut time = self.time_of(time).clone();
        time.calls.push(site);
        let extra = time.calls.len().saturating_sub(self.config.k);
        time.calls.drain(..extra);
        self.time(time)
    }

    fn apply(&mut self, out: &mut Out, ctx: Ctx, view: View, f: ValId, args: Values<ValId>) {
        let callee = self.value_of(f);
        if callee.bits != 0 || callee.int != value::Whole::None || callee.string != value::Flat::None {
            out.fail(view.store, false, None);
        }
        for &reference in &callee.refs {
            match reference {
                Reference::Prim(prim) => self.prim(out, ctx, view, prim, &args),
                Reference::Kont(kont) => match args[..] {
                    [value] if kont == HALT || self.lookup(view.store, kont).is_some() => {
                        self.give(out, Ctx { kont, ..ctx }, view.store, value, None);
                    }
                    _ => out.fail(view.store, false, None),
                },
                Reference::Closure(lambda, env) => {
                    let program = self.program;
                    let lambda = program.lambda(lambda);
                    let fixed = lambda.params.len();
                    if args.len() < fixed || (args.len() > fixed && lambda.rest.is_none()) {
                        out.fail(view.store, false, None);
                        continue;
                    }
                    let time = self.called(ctx.time, out.site);
                    let mut vars: Vec<(VarId, ValId)> =
                        lambda.params.iter().copied().zip(args.iter().copied()).collect();
                    let mut view = view;
                    if let Some(rest) = lambda.rest {
                        let mut list = self.value(AbsVal::bits(bit::NIL));
                        for (at, &item) in args[fixed..].iter().enumerate().rev() {
                            let origin = Origin::Pair(out.site, at as u32);
                            let car = self.addr(Addr::Cell(origin, 0, time));
                            let cdr = self.sibling(car, 1);
                            view.store = self.alloc(view.store, car, item, false);
                            view.store = self.alloc(view.store, cdr, list, false);
                            list = self.value(AbsVal::reference(Reference::Pair(car)));
                        }
                        vars.push((rest, list));
                    }
                    // The rest list is not yet reachable from any context, so it must not meet the collector.
                    let (env, store) = if lambda.rest.is_some() {
                        self.extend_without_collecting(view.store, env, &vars, time)
                    } else {
                        self.extend(view, env, &vars, time)
                    };
                    let next =
                        self.ctx(Ctx { control: Control::Eval(lambda.body, env), kont: ctx.kont, time });
                    out.succs.push(Succ { next: Next::Goes(next), store, spawned: None, done: None });
                }
                _ => out.fail(view.store, false, None),
            }
        }
    }

    fn extend_without_collecting(
        &mut self,
        store: Root,
        env: EnvId,
        vars: &[(VarId, ValId)],
        time: TimeId,
    ) -> (EnvId, Root) {
        let gc = std::mem::replace(&mut self.config.gc, false);
        let view = View { threads: &[], tid: MAIN, store };
        let result = self.extend(view, env, vars, time);
        self.config.gc = gc;
        result
    }

    fn alloc_fresh(&mut self, view: View, addr: AddrId) -> Root {
        if self.config.gc && self.config.por && self.lookup(view.store, addr).is_some() {
            self.collect_all(view.threads, view.store)
        } else {
            view.store
        }
    }

    fn spawn(&mut self, out: &mut Out, ctx: Ctx, view: View, code: ExprId, env: EnvId) {
        let mut chain = self.tid_of(view.tid).clone();
        chain.push((self.spawn_name(out.site), self.time_of(ctx.time).calls.clone()));
        let extra = chain.len().saturating_sub(self.config.spawn_depth.max(1));
        chain.drain(..extra);
        let tid = self.tid(chain);
        let program = self.program;
        let env = self.restrict(env, program.free(code));
        let thread = if self.config.thread_sensitive { tid } else { MAIN };
        let time = self.time(Time { calls: SmallVec::new(), thread });
        let child = self.ctx(Ctx { control: Control::Eval(code, env), kont: HALT, time });
        let handle = self.value(AbsVal::reference(Reference::Thread(tid)));
        let from = out.succs.len();
        self.give(out, ctx, view.store, handle, None);
        out.succs[from..].iter_mut().for_each(|succ| succ.spawned = Some((tid, child)));
    }

    fn join(&mut self, out: &mut Out, ctx: Ctx, view: View, value: ValId) {
        let known = self.value_of(value);
        let mut wrong =
            known.bits != 0 || known.int != value::Whole::None || known.string != value::Flat::None;
        for &reference in &known.refs {
            let Reference::Thread(tid) = reference else {
                wrong = true;
                continue;
            };
            let addr = self.addr(Addr::Result(tid));
            let Some(result) = self.lookup_value(view.store, addr) else { continue };
            let mut known = (*self.value_of(result)).clone();
            let done = view.is_live(tid).then_some(op(Action::Join, out.site, addr, None));
            if known.bits & bit::FAILED != 0 {
                out.fail(view.store, false, done);
                known.bits &= !bit::FAILED;
            }
            if !known.is_none() {
                let result = self.value(known);
                self.give(out, ctx, view.store, result, done);
            }
        }
        if wrong {
            out.fail(view.store, false, None);
        }
    }

    fn lock(
        &mut self,
        out: &mut Out,
        ctx: Ctx,
        store: Root,
        locks: &[AddrId],
        acquire: bool,
        may_fail: bool,
    ) {
        for &addr in locks {
            if acquire && self.lock_bits(store, addr) & bit::UNLOCKED == 0 {
                continue;
            }
            let state = self.value(AbsVal::bits(if acquire { bit::LOCKED } else { bit::UNLOCKED }));
            let after = self.write(store, addr, state);
            let action = if acquire { Action::Acquire } else { Action::Release };
            let value = self.value(AbsVal::bits(bit::TRUE));
            self.give(out, ctx, after, value, Some(op(action, out.site, addr, None)));
        }
        if may_fail {
            out.fail(store, false, None);
        }
    }

    fn compare_and_swap(
        &mut self,
        out: &mut Out,
        ctx: Ctx,
        store: Root,
        addr: AddrId,
        old: ValId,
        new: ValId,
    ) {
        let Some(now) = self.lookup_value(store, addr) else { return out.fail(store, false, None) };
        let now = self.read_value(now);
        let (may_succeed, may_fail) = self.equal(store, &self.value_of(now), &self.value_of(old));
        if may_succeed {
            let after = self.write(store, addr, new);
            let value = self.value(AbsVal::bits(bit::TRUE));
            self.give(out, ctx, after, value, Some(op(Action::CasSucceeds, out.site, addr, Some(new))));
        }
        if may_fail {
            let value = self.value(AbsVal::bits(bit::FALSE));
            self.give(out, ctx, store, value, Some(op(Action::CasFails, out.site, addr, None)));
        }
    }

    /// Whether two values may be equal, and whether they may differ.
    pub fn equal(&self, store: Root, a: &AbsVal, b: &AbsVal) -> (bool, bool) {
        let single = |reference: Reference| match reference {
            Reference::Symbol(_) | Reference::Prim(_) => true,
            Reference::Pair(addr)
            | Reference::Vector(addr)
            | Reference::Ref(addr)
            | Reference::Lock(addr) => self.lookup(store, addr).is_some_and(|entry| !entry.many),
            Reference::Closure(..) | Reference::Thread(_) | Reference::Kont(_) => false,
        };
        let certainly_equal = a == b && a.exact(single);
        (a.meets(b), !certainly_equal)
    }
}

fn op(action: Action, site: ExprId, addr: AddrId, written: Option<ValId>) -> AbsOp {
    AbsOp { action, site, addr, written, may_go: true, may_wait: false }
}

/// Successors being collected.
struct Out {
    site: ExprId,
    succs: Vec<Succ>,
}

impl Out {
    fn fail(&mut self, store: Root, raised: bool, done: Option<AbsOp>) {
        let next = Next::Fails { site: self.site, raised };
        if !self.succs.iter().any(|succ| succ.next == next && succ.done == done) {
            self.succs.push(Succ { next, store, spawned: None, done });
        }
    }
}
