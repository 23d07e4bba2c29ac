//! The rules of evaluation, said once for both machines.
//!
//! What an expression asks for next does not depend on whether values are concrete or abstract: `(if a b c)` evaluates
//! `a` and then branches, in every interpretation. [`start`] and [`resume`] give that next demand as a [`Plan`]; the
//! concrete machine carries it out on one heap, the abstract one on a store of approximations. A frame of the
//! continuation is therefore always the same four things: the expression that waits, how far it has come, the values
//! it has collected, and its environment.

use crate::syntax::core::{Expr, ExprId, LambdaId, Program, VarId};
use crate::syntax::prim::Prim;
use smallvec::SmallVec;

/// The part of a frame that waits for the value of a whole call: what `call/cc` returns to.
pub const MARK: u32 = u32::MAX;

/// Values collected so far by a waiting expression.
pub type Values<V> = SmallVec<[V; 4]>;

/// What has to happen next.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan<V> {
    Constant(ExprId),
    Lambda(LambdaId),
    Prim(Prim),
    Read(VarId),
    /// Evaluate `child` and come back with the frame `(index, values)`.
    Push {
        child: ExprId,
        index: u32,
        values: Values<V>,
    },
    /// Evaluate in tail position.
    Tail(ExprId),
    /// This is the result.
    Value(V),
    Branch {
        test: V,
        then: ExprId,
        otherwise: ExprId,
    },
    /// The result if true, else go on with part `next` of the `or`.
    OrTest {
        value: V,
        next: u32,
    },
    /// Bind the variables of a `let` and evaluate its body.
    Bind {
        values: Values<V>,
    },
    /// Allocate the variables of a `letrec`, then evaluate its first initialiser.
    OpenLetrec,
    /// Initialise a variable of a `letrec`, then go on with initialiser `next` or the body.
    Initialise {
        var: VarId,
        value: V,
        next: u32,
    },
    Apply {
        f: V,
        args: Values<V>,
    },
    PrimApply {
        prim: Prim,
        args: Values<V>,
    },
    Spawn(ExprId),
    Join(V),
    Set {
        var: VarId,
        value: V,
    },
    CasVar {
        var: VarId,
        old: V,
        new: V,
    },
    /// `acquire` (true) or `release` on a variable.
    LockVar {
        var: VarId,
        acquire: bool,
    },
    LockValue {
        lock: V,
        acquire: bool,
    },
}

/// What evaluating an expression asks for first.
pub fn start<V: Clone>(program: &Program, id: ExprId) -> Plan<V> {
    let push = |child: ExprId| Plan::Push { child, index: 0, values: Values::new() };
    match program.expr(id) {
        Expr::Const(_) => Plan::Constant(id),
        Expr::Var(var) => Plan::Read(*var),
        Expr::Prim(prim) => Plan::Prim(*prim),
        Expr::Lambda(lambda) => Plan::Lambda(*lambda),
        Expr::If(test, ..) => push(*test),
        Expr::Or(parts) => push(parts[0]),
        Expr::Begin(parts) if parts.len() == 1 => Plan::Tail(parts[0]),
        Expr::Begin(parts) => push(parts[0]),
        Expr::Set(_, value) => push(*value),
        Expr::Let(bindings, _) => push(bindings[0].1),
        Expr::Letrec(..) => Plan::OpenLetrec,
        Expr::Call(f, _) => push(*f),
        Expr::PrimCall(prim, args) if args.is_empty() => Plan::PrimApply { prim: *prim, args: Values::new() },
        Expr::PrimCall(_, args) => push(args[0]),
        Expr::Spawn(code) => Plan::Spawn(*code),
        Expr::Join(thread) => push(*thread),
        Expr::CasVar(_, old, _) => push(*old),
        Expr::AcquireVar(var) => Plan::LockVar { var: *var, acquire: true },
        Expr::ReleaseVar(var) => Plan::LockVar { var: *var, acquire: false },
        Expr::Acquire(lock) | Expr::Release(lock) => push(*lock),
    }
}

/// What a waiting expression asks for when its part `index` has the given value.
pub fn resume<V: Clone>(program: &Program, id: ExprId, index: u32, values: &[V], value: V) -> Plan<V> {
    if index == MARK {
        return Plan::Value(value);
    }
    let next = index as usize + 1;
    let collect = |value: V| -> Values<V> { values.iter().cloned().chain([value]).collect() };
    match program.expr(id) {
        Expr::If(_, then, otherwise) => Plan::Branch { test: value, then: *then, otherwise: *otherwise },
        Expr::Or(_) => Plan::OrTest { value, next: next as u32 },
        Expr::Begin(parts) => advance(parts, next),
        Expr::Set(var, _) => Plan::Set { var: *var, value },
        Expr::Let(bindings, _) if next < bindings.len() => {
            Plan::Push { child: bindings[next].1, index: next as u32, values: collect(value) }
        }
        Expr::Let(..) => Plan::Bind { values: collect(value) },
        Expr::Letrec(bindings, _) => {
            Plan::Initialise { var: bindings[index as usize].0, value, next: next as u32 }
        }
        Expr::Call(_, args) if index as usize == args.len() => match values.split_first() {
            Some((f, rest)) => {
                Plan::Apply { f: f.clone(), args: rest.iter().cloned().chain([value]).collect() }
            }
            None => Plan::Apply { f: value, args: Values::new() },
        },
        Expr::Call(_, args) => {
            Plan::Push { child: args[index as usize], index: next as u32, values: collect(value) }
        }
        Expr::PrimCall(prim, args) if next == args.len() => {
            Plan::PrimApply { prim: *prim, args: collect(value) }
        }
        Expr::PrimCall(_, args) => {
            Plan::Push { child: args[next], index: next as u32, values: collect(value) }
        }
        Expr::Join(_) => Plan::Join(value),
        Expr::CasVar(_, _, new) if index == 0 => Plan::Push { child: *new, index: 1, values: collect(value) },
        Expr::CasVar(var, ..) => Plan::CasVar { var: *var, old: values[0].clone(), new: value },
        Expr::Acquire(_) => Plan::LockValue { lock: value, acquire: true },
        Expr::Release(_) => Plan::LockValue { lock: value, acquire: false },
        other => unreachable!("{other:?} never waits for a part"),
    }
}

/// The next part of a sequence; the last one is in tail position.
pub fn advance<V>(parts: &[ExprId], next: usize) -> Plan<V> {
    if next + 1 >= parts.len() {
        Plan::Tail(parts[parts.len() - 1])
    } else {
        Plan::Push { child: parts[next], index: next as u32, values: Values::new() }
    }
}

/// What follows the initialiser `next - 1` of a `letrec`.
pub fn after_initialiser<V>(program: &Program, id: ExprId, next: u32) -> Plan<V> {
    let Expr::Letrec(bindings, body) = program.expr(id) else { unreachable!("only letrec initialises") };
    match bindings.get(next as usize) {
        Some(&(_, init)) => Plan::Push { child: init, index: next, values: Values::new() },
        None => Plan::Tail(*body),
    }
}

/// What follows a false part `next - 1` of an `or`.
pub fn after_false<V>(program: &Program, id: ExprId, next: u32) -> Plan<V> {
    let Expr::Or(parts) = program.expr(id) else { unreachable!("only or tests its parts") };
    advance(parts, next as usize)
}
