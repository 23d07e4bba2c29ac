//! The core language: what is left of a program after expansion.
//!
//! Expressions live in one arena in which children stand before their parents. Every bottom-up pass is therefore a
//! loop over the arena and no program, however deep, can exhaust the stack of an analysis.
//!
//! # Visible variables
//!
//! The machines need to know which variable accesses another thread could notice. A variable is *visible* when it is
//! captured (used in another procedure or spawned expression than the one that binds it) and either assigned after its
//! initialisation (`set!`, `cas`, `acquire`, `release`) or initialised at a moment at which a thread that sees it may
//! already run. The second happens in `letrec` and at top level only: a binding is *quiet* when neither its own
//! initialiser nor an earlier one of the same group calls or spawns anything. All other variables are written once,
//! before anybody else can reach them, so that reading them commutes with every step of every other thread.

use super::prim::{Prim, Touch};
use super::reader::{Symbol, Symbols};
use super::source::{Source, Span};
use crate::limits::Clock;
use num_bigint::BigInt;
use num_rational::BigRational;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            pub fn index(self) -> usize { self.0 as usize }
        }
    };
}
pub(crate) use index;

index!(
    /// An expression of the core language, and its place: analyses name program points by it.
    ExprId
);
index!(
    /// A variable, unique per binding occurrence.
    VarId
);
index!(LambdaId);
index!(
    /// A piece of code that runs in one go: the top level, a procedure body or a spawned expression.
    BodyId
);

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    Int(i64),
    Big(Arc<BigInt>),
    Ratio(Arc<BigRational>),
    Real(f64),
    Bool(bool),
    Str(Arc<str>),
    Char(char),
    Symbol(Symbol),
    Nil,
    Unspecified,
    /// `#locked` (true) or `#unlocked`.
    Lock(bool),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Const(Const),
    Var(VarId),
    Prim(Prim),
    Lambda(LambdaId),
    If(ExprId, ExprId, ExprId),
    Or(Box<[ExprId]>),
    /// `set!`, or the definition of a top-level variable.
    Set(VarId, ExprId),
    Begin(Box<[ExprId]>),
    Let(Box<[(VarId, ExprId)]>, ExprId),
    /// `letrec*`: all variables exist unassigned, then are initialised from left to right.
    Letrec(Box<[(VarId, ExprId)]>, ExprId),
    Call(ExprId, Box<[ExprId]>),
    PrimCall(Prim, Box<[ExprId]>),
    Spawn(ExprId),
    Join(ExprId),
    CasVar(VarId, ExprId, ExprId),
    /// On a variable: its value is `#locked`/`#unlocked`, or a lock made by `new-lock`.
    AcquireVar(VarId),
    ReleaseVar(VarId),
    Acquire(ExprId),
    Release(ExprId),
}

#[derive(Clone, Debug)]
pub struct Lambda {
    /// The variable it is bound to, where that is obvious.
    pub name: Option<Symbol>,
    pub params: Box<[VarId]>,
    pub rest: Option<VarId>,
    pub body: ExprId,
    pub body_id: BodyId,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Symbol,
    pub span: Span,
    /// Bound at top level: has one address for the whole run and stands in no environment.
    pub global: bool,
    pub assigned: bool,
    pub captured: bool,
    /// Initialised before any thread that knows it can run.
    pub quiet: bool,
}

/// A program in the core language.
#[derive(Clone, Debug)]
pub struct Program {
    pub source: Source,
    pub symbols: Symbols,
    pub exprs: Vec<Expr>,
    pub spans: Vec<Span>,
    /// The body in which an expression stands.
    pub homes: Vec<BodyId>,
    pub vars: Vec<Variable>,
    pub lambdas: Vec<Lambda>,
    /// The code of each body: the root, the lambda body or the spawned expression.
    pub bodies: Vec<ExprId>,
    pub root: ExprId,
    /// Free local (not top-level) variables of each expression, as an index into `free_sets`.
    free: Vec<u32>,
    free_sets: Vec<Box<[VarId]>>,
    pub spawns: bool,
    pub writes_pairs: bool,
    pub writes_vectors: bool,
    pub writes_refs: bool,
    pub cases: bool,
    /// Swaps that are tried again when they fail, as the text says.
    retried: FxHashSet<ExprId>,
    /// Variables that are an integer of the text and nothing else.
    known: Vec<Option<i64>>,
}

impl Program {
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    pub fn span(&self, id: ExprId) -> Span {
        self.spans[id.index()]
    }

    pub fn var(&self, id: VarId) -> &Variable {
        &self.vars[id.index()]
    }

    pub fn var_name(&self, id: VarId) -> &str {
        self.symbols.name(self.var(id).name)
    }

    pub fn lambda(&self, id: LambdaId) -> &Lambda {
        &self.lambdas[id.index()]
    }

    pub fn lambda_name(&self, id: LambdaId) -> &str {
        self.lambda(id).name.map_or("lambda", |name| self.symbols.name(name))
    }

    /// Local variables that occur free in an expression, in ascending order.
    pub fn free(&self, id: ExprId) -> &[VarId] {
        &self.free_sets[self.free[id.index()] as usize]
    }

    /// Whether another thread can notice an access to the variable. See the head of this file.
    pub fn visible_var(&self, id: VarId) -> bool {
        let var = self.var(id);
        self.spawns && var.captured && (var.assigned || !var.quiet)
    }

    /// Whether another thread can notice that the primitive reads or writes a cell.
    pub fn visible_touch(&self, touch: Touch) -> bool {
        self.spawns
            && match touch {
                Touch::Nothing => false,
                Touch::ReadPair | Touch::WritePair => self.writes_pairs,
                Touch::ReadVector | Touch::WriteVector | Touch::CasVector => self.writes_vectors,
                Touch::ReadRef | Touch::WriteRef | Touch::CasRef => self.writes_refs,
            }
    }

    /// What an expression that waits for its part `index` may still evaluate, and the variable it may still write.
    pub fn remaining(&self, id: ExprId, index: u32) -> (SmallVec<[ExprId; 4]>, Option<VarId>) {
        let at = index as usize;
        let mut parts: SmallVec<[ExprId; 4]> = SmallVec::new();
        let mut written = None;
        match self.expr(id) {
            Expr::If(_, then, otherwise) => parts.extend([*then, *otherwise]),
            Expr::Or(all) | Expr::Begin(all) | Expr::PrimCall(_, all) => {
                parts.extend_from_slice(&all[(at + 1).min(all.len())..]);
            }
            Expr::Let(bindings, body) => {
                parts.extend(bindings[at + 1..].iter().map(|b| b.1));
                parts.push(*body);
            }
            Expr::Letrec(bindings, body) => {
                parts.extend(bindings[at + 1..].iter().map(|b| b.1));
                parts.push(*body);
                written = Some(bindings[at].0);
            }
            Expr::Call(_, args) => parts.extend_from_slice(&args[at.min(args.len())..]),
            Expr::CasVar(var, _, new) => {
                parts.extend((at == 0).then_some(*new));
                written = Some(*var);
            }
            Expr::Set(var, _) => written = Some(*var),
            _ => {}
        }
        (parts, written)
    }

    /// Children in evaluation order.
    pub fn children(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        children(&self.exprs[id.index()], &self.lambdas, &mut visit);
    }

    /// Fills in what is derived bottom-up. Called once by the expander. False when the clock ran out.
    pub(super) fn derive(&mut self, clock: &Clock) -> bool {
        self.derive_flags();
        self.derive_known();
        self.retried = super::retry::retried(self);
        let mut sets = Sets::default();
        let mut free: Vec<u32> = Vec::with_capacity(self.exprs.len());
        let mut own: Vec<VarId> = Vec::new();
        for expr in &self.exprs {
            if clock.is_over() {
                return false;
            }
            own.clear();
            let mut parts: SmallVec<[u32; 8]> = SmallVec::new();
            children(expr, &self.lambdas, &mut |child| parts.push(free[child.index()]));
            parts.sort_unstable();
            parts.dedup();
            for &part in &parts {
                own.extend_from_slice(sets.get(part));
            }
            let add = |own: &mut Vec<VarId>, var: VarId, vars: &[Variable]| {
                if !vars[var.index()].global {
                    own.push(var);
                }
            };
            let mut bound: SmallVec<[VarId; 8]> = SmallVec::new();
            match expr {
                Expr::Var(var)
                | Expr::Set(var, _)
                | Expr::CasVar(var, ..)
                | Expr::AcquireVar(var)
                | Expr::ReleaseVar(var) => add(&mut own, *var, &self.vars),
                Expr::Let(bindings, _) | Expr::Letrec(bindings, _) => {
                    bound.extend(bindings.iter().map(|b| b.0))
                }
                Expr::Lambda(lambda) => {
                    let lambda = &self.lambdas[lambda.index()];
                    bound.extend(lambda.params.iter().copied().chain(lambda.rest));
                }
                _ => {}
            }
            // Variables are numbered in binding order and unique, so a parallel `let` needs no care: its variables
            // cannot occur in its own initialisers.
            bound.sort_unstable();
            own.sort_unstable();
            own.dedup();
            own.retain(|var| bound.binary_search(var).is_err());
            free.push(sets.intern(&own));
        }
        self.free = free;
        self.free_sets = sets.sets;
        true
    }

    /// Whether a swap that fails is tried again by construction.
    pub fn is_retried(&self, swap: ExprId) -> bool {
        self.retried.contains(&swap)
    }

    /// The integer that an expression is, where the text says so.
    pub fn known_int(&self, id: ExprId) -> Option<i64> {
        match self.expr(id) {
            Expr::Const(Const::Int(n)) => Some(*n),
            Expr::Var(var) => self.known[var.index()],
            _ => None,
        }
    }

    fn derive_known(&mut self) {
        let mut known = vec![None; self.vars.len()];
        for expr in &self.exprs {
            let mut meet = |var: VarId, value: ExprId| {
                let once = !self.vars[var.index()].assigned && self.vars[var.index()].quiet;
                if let (true, Expr::Const(Const::Int(n))) = (once, &self.exprs[value.index()]) {
                    known[var.index()] = Some(*n);
                }
            };
            match expr {
                Expr::Set(var, value) => meet(*var, *value),
                Expr::Let(bindings, _) | Expr::Letrec(bindings, _) => {
                    bindings.iter().for_each(|b| meet(b.0, b.1))
                }
                _ => {}
            }
        }
        self.known = known;
    }

    fn derive_flags(&mut self) {
        for expr in &self.exprs {
            match expr {
                Expr::Spawn(_) => self.spawns = true,
                Expr::CasVar(..) => self.cases = true,
                Expr::PrimCall(prim, _) | Expr::Prim(prim) => match prim.touch() {
                    Touch::WritePair => self.writes_pairs = true,
                    Touch::WriteVector => self.writes_vectors = true,
                    Touch::WriteRef => self.writes_refs = true,
                    Touch::CasVector => (self.writes_vectors, self.cases) = (true, true),
                    Touch::CasRef => (self.writes_refs, self.cases) = (true, true),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

fn children(expr: &Expr, lambdas: &[Lambda], visit: &mut impl FnMut(ExprId)) {
    match expr {
        Expr::Const(_) | Expr::Var(_) | Expr::Prim(_) | Expr::AcquireVar(_) | Expr::ReleaseVar(_) => {}
        Expr::Lambda(lambda) => visit(lambdas[lambda.index()].body),
        Expr::If(test, then, other) => [*test, *then, *other].into_iter().for_each(visit),
        Expr::Or(parts) | Expr::Begin(parts) | Expr::PrimCall(_, parts) => {
            parts.iter().copied().for_each(visit)
        }
        Expr::Set(_, e) | Expr::Spawn(e) | Expr::Join(e) | Expr::Acquire(e) | Expr::Release(e) => visit(*e),
        Expr::Let(bindings, body) | Expr::Letrec(bindings, body) => {
            bindings.iter().map(|b| b.1).for_each(&mut *visit);
            visit(*body);
        }
        Expr::Call(f, args) => {
            visit(*f);
            args.iter().copied().for_each(visit);
        }
        Expr::CasVar(_, old, new) => [*old, *new].into_iter().for_each(visit),
    }
}

/// Interned sets of variables: most expressions share theirs with a neighbour.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    sets: Vec<Box<[VarId]>>,
    numbers: rustc_hash::FxHashMap<Box<[VarId]>, u32>,
}

impl Sets {
    pub(crate) fn get(&self, number: u32) -> &[VarId] {
        &self.sets[number as usize]
    }

    pub(crate) fn intern(&mut self, set: &[VarId]) -> u32 {
        if let Some(&number) = self.numbers.get(set) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(set.into());
        self.numbers.insert(set.into(), number);
        number
    }
}

impl Program {
    pub(super) fn empty(source: Source, symbols: Symbols) -> Program {
        Program {
            source,
            symbols,
            exprs: Vec::new(),
            spans: Vec::new(),
            homes: Vec::new(),
            vars: Vec::new(),
            lambdas: Vec::new(),
            bodies: Vec::new(),
            root: ExprId(0),
            free: Vec::new(),
            free_sets: Vec::new(),
            spawns: false,
            writes_pairs: false,
            writes_vectors: false,
            writes_refs: false,
            cases: false,
            retried: FxHashSet::default(),
            known: Vec::new(),
        }
    }
}
