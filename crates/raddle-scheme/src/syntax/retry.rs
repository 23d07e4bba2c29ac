//! Swaps that are tried again by construction.
//!
//! ```scheme
//! (define (withdraw n)
//!   (let ((old (deref balance)))
//!     (cond ((< old n) #f)
//!           ((compare-and-set! balance old (- old n)) #t)
//!           (else (withdraw n)))))
//! ```
//!
//! When the swap fails the procedure that it stands in is called again, and looks at the new value. It may then decide not to
//! swap at all; that is an answer to the failure, not an oversight. So a swap counts as retried when it is the test of a branch
//! whose other side, on all its ways, ends in a call of the procedure that contains the swap. (The paper, §4.2.1, asks
//! whether the thread comes to the swap again in some run, which [`crate::concrete::explore`] does for all other swaps.)

use super::core::{BodyId, Expr, ExprId, Program, VarId};
use super::prim::{Prim, Touch};
use rustc_hash::{FxHashMap, FxHashSet};

/// The swaps of a program that are tried again by construction.
pub fn retried(program: &Program) -> FxHashSet<ExprId> {
    let procedures = procedures(program);
    let mut out = FxHashSet::default();
    for expr in &program.exprs {
        let (test, then, other) = match expr {
            Expr::If(test, then, other) => (*test, Some(*then), Some(*other)),
            // (or (cas ...) (retry))
            Expr::Or(parts) if parts.len() == 2 => (parts[0], None, Some(parts[1])),
            _ => continue,
        };
        let (swap, failing) = match program.expr(test) {
            Expr::PrimCall(Prim::Not, args) => (args[0], then),
            _ => (test, other),
        };
        let is_swap = match program.expr(swap) {
            Expr::CasVar(..) => true,
            Expr::PrimCall(prim, _) => matches!(prim.touch(), Touch::CasRef | Touch::CasVector),
            _ => false,
        };
        if is_swap
            && let Some(failing) = failing
            && comes_back(program, &procedures, failing, program.homes[swap.index()])
        {
            out.insert(swap);
        }
    }
    out
}

/// The bodies of the procedures that variables stand for, and for nothing else, ever.
fn procedures(program: &Program) -> FxHashMap<VarId, BodyId> {
    let mut out = FxHashMap::default();
    let mut meet = |var: VarId, value: ExprId| {
        if let (false, Expr::Lambda(lambda)) = (program.var(var).assigned, program.expr(value)) {
            out.insert(var, program.lambda(*lambda).body_id);
        }
    };
    for expr in &program.exprs {
        match expr {
            Expr::Set(var, value) => meet(*var, *value),
            Expr::Let(bindings, _) | Expr::Letrec(bindings, _) => {
                bindings.iter().for_each(|b| meet(b.0, b.1))
            }
            _ => {}
        }
    }
    out
}

/// Whether all ways through an expression end in a call of the procedure with that body.
fn comes_back(program: &Program, procedures: &FxHashMap<VarId, BodyId>, expr: ExprId, body: BodyId) -> bool {
    let mut work = vec![expr];
    while let Some(expr) = work.pop() {
        match program.expr(expr) {
            Expr::If(_, then, other) => work.extend([*then, *other]),
            Expr::Begin(parts) => work.extend(parts.last()),
            Expr::Let(_, inner) | Expr::Letrec(_, inner) => work.push(*inner),
            Expr::Call(callee, _) => match program.expr(*callee) {
                Expr::Var(var) if procedures.get(var) == Some(&body) => {}
                _ => return false,
            },
            _ => return false,
        }
    }
    true
}
