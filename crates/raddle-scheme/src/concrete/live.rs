//! Which variables code can still mention.
//!
//! The canonical form that recognises symmetric states ([`super::symmetry`]) leaves out what nobody can ask for any more. For
//! local variables that is said by the free variables of what is left to evaluate; top-level variables stand in no
//! environment, so the ones that an expression mentions, itself or in procedures written inside of it, are collected here.

use super::state::Machine;
use crate::syntax::core::{Expr, ExprId, Sets, VarId};
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// Variables that a waiting expression still needs: local ones, top-level ones.
pub type Needs = Rc<(Vec<VarId>, Vec<VarId>)>;

#[derive(Default)]
pub struct Live {
    globals: OnceCell<(Vec<u32>, Sets)>,
    waiting: RefCell<FxHashMap<(ExprId, u32), Needs>>,
}

impl Machine<'_> {
    /// Top-level variables that an expression mentions, ascending.
    pub fn mentioned(&self, expr: ExprId) -> &[VarId] {
        let (numbers, sets) = self.live.globals.get_or_init(|| self.mentions());
        sets.get(numbers[expr.index()])
    }

    /// What an expression needs when its part `index` has its value.
    pub fn needs(&self, expr: ExprId, index: u32) -> Needs {
        if let Some(needs) = self.live.waiting.borrow().get(&(expr, index)) {
            return needs.clone();
        }
        let (parts, written) = self.program.remaining(expr, index);
        let (mut locals, mut globals) = (Vec::new(), Vec::new());
        for part in parts {
            locals.extend_from_slice(self.program.free(part));
            globals.extend_from_slice(self.mentioned(part));
        }
        if let Some(var) = written {
            let known = if self.program.var(var).global { &mut globals } else { &mut locals };
            known.push(var);
        }
        for vars in [&mut locals, &mut globals] {
            vars.sort_unstable();
            vars.dedup();
        }
        let needs = Rc::new((locals, globals));
        self.live.waiting.borrow_mut().insert((expr, index), needs.clone());
        needs
    }

    fn mentions(&self) -> (Vec<u32>, Sets) {
        let program = self.program;
        let mut sets = Sets::default();
        let mut numbers: Vec<u32> = Vec::with_capacity(program.exprs.len());
        let mut own: Vec<VarId> = Vec::new();
        for (at, expr) in program.exprs.iter().enumerate() {
            own.clear();
            program.children(ExprId(at as u32), |child| {
                own.extend_from_slice(sets.get(numbers[child.index()]));
            });
            if let Expr::Var(var)
            | Expr::Set(var, _)
            | Expr::CasVar(var, ..)
            | Expr::AcquireVar(var)
            | Expr::ReleaseVar(var) = expr
                && program.var(*var).global
            {
                own.push(*var);
            }
            own.sort_unstable();
            own.dedup();
            numbers.push(sets.intern(&own));
        }
        (numbers, sets)
    }
}
