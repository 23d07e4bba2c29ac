//! Spawns that start the same thread.
//!
//! An abstract thread is named by the place where it was spawned, and a program that starts twelve equal threads at twelve places
//! has twelve of them: the product of what they do is larger than what the concrete machine needs, which counts equal threads
//! ([`crate::concrete::symmetry`]). Places that spawn the same code over the same variables therefore share a name when there are
//! many of them. The thread of that name stands for one or for many, as it does for a spawn in a loop.
//!
//! A name is an abstraction like any other, so sharing one is always right. It is less exact (threads that share a name
//! are never all known to have ended), so a few equal threads keep theirs.

use crate::syntax::core::{Expr, ExprId, Program};
use rustc_hash::FxHashMap;

/// Equal spawns from which on they share a name.
const TWINS_MIN: usize = 5;
/// Expressions of spawned code that are compared.
const NODES_MAX: usize = 64;

/// For each spawn that shares the name of another, that one.
pub fn twins(program: &Program) -> FxHashMap<ExprId, ExprId> {
    let mut classes: FxHashMap<Vec<String>, Vec<ExprId>> = FxHashMap::default();
    for at in 0..program.exprs.len() {
        let id = ExprId(at as u32);
        if let Expr::Spawn(code) = program.expr(id)
            && let Some(words) = spelled(program, *code)
        {
            classes.entry(words).or_default().push(id);
        }
    }
    let shared = classes.into_values().filter(|class| class.len() >= TWINS_MIN);
    shared.flat_map(|class| class.clone().into_iter().map(move |id| (id, class[0]))).collect()
}

/// The code as a sequence of words; none if it binds variables of its own, or is long.
fn spelled(program: &Program, code: ExprId) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut work = vec![code];
    while let Some(id) = work.pop() {
        if words.len() == NODES_MAX {
            return None;
        }
        words.push(match program.expr(id) {
            Expr::Const(value) => format!("{value:?}"),
            Expr::Var(var) | Expr::AcquireVar(var) | Expr::ReleaseVar(var) => {
                format!("{:?} {}", std::mem::discriminant(program.expr(id)), var.0)
            }
            Expr::Set(var, _) | Expr::CasVar(var, ..) => {
                format!("{:?} {}", std::mem::discriminant(program.expr(id)), var.0)
            }
            Expr::Prim(prim) => format!("{prim:?}"),
            Expr::PrimCall(prim, args) => format!("{prim:?} of {}", args.len()),
            Expr::Call(_, parts) | Expr::Or(parts) | Expr::Begin(parts) => {
                format!("{:?} {}", std::mem::discriminant(program.expr(id)), parts.len())
            }
            Expr::If(..) | Expr::Join(_) | Expr::Acquire(_) | Expr::Release(_) => {
                format!("{:?}", std::mem::discriminant(program.expr(id)))
            }
            Expr::Lambda(_) | Expr::Let(..) | Expr::Letrec(..) | Expr::Spawn(_) => return None,
        });
        program.children(id, |child| work.push(child));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abs::explore::explore;
    use crate::abs::space::{Config, Space};
    use crate::limits::Clock;
    use crate::{Source, parse};

    fn program(spawns: &[&str]) -> Program {
        let spawns: String =
            spawns.iter().enumerate().map(|(at, code)| format!("(define t{at} (spawn {code}))")).collect();
        let text = format!("(define x 0) (define (f n) (set! x n)) {spawns}");
        parse(Source::new("twins.scm", text)).expect("well formed")
    }

    #[test]
    fn equal_code_is_told_from_other_code() {
        let shared = |spawns: &[&str]| twins(&program(spawns)).len();
        assert_eq!(shared(&["(f 1)"; 5]), 5);
        assert_eq!(shared(&["(f 1)"; 4]), 0, "a few keep their names");
        assert_eq!(shared(&["(f 1)", "(f 1)", "(f 2)", "(f 1)", "(f 1)", "(f 1)"]), 5);
        assert_eq!(shared(&["(begin (f 1) x)"; 6]), 6);
        assert_eq!(shared(&["(let ((y 1)) (f y))"; 6]), 0);
    }

    /// The abstract graph does not grow with the number of equal threads.
    #[test]
    fn graphs_of_many_equal_threads_are_small() {
        let states = |n: usize| {
            let program = program(&vec!["(f 1)"; n]);
            let mut space = Space::new(&program, Config::better(1));
            let graph = explore(&mut space, 100_000, &Clock::unlimited());
            assert_eq!(graph.incomplete, None);
            graph.states.len()
        };
        assert!(states(20) <= states(6) + 20, "{} and {}", states(20), states(6));
    }
}
