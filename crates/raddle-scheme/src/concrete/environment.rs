//! What surrounds a step: constants, the variables that it can see, and the calls and spawns by which a thread has come to it.
//!
//! Objects are named by the context that allocated them, so contexts keep no more of the past than the machine tracks.

use super::state::*;
use crate::syntax::core::{Const, Expr, ExprId, VarId};
use smallvec::SmallVec;
use std::rc::Rc;

impl Machine<'_> {
    pub fn constant(&self, expr: ExprId) -> Value {
        let Expr::Const(value) = self.program.expr(expr) else { unreachable!("asked for a constant") };
        match value {
            Const::Int(n) => Value::Int(*n),
            Const::Big(n) => Value::Big(n.clone()),
            Const::Ratio(q) => Value::Ratio(q.clone()),
            Const::Real(x) => Value::Real(*x),
            Const::Bool(b) => Value::Bool(*b),
            Const::Str(s) => Value::Str(s.clone()),
            Const::Char(c) => Value::Char(*c),
            Const::Symbol(s) => Value::Symbol(*s),
            Const::Nil => Value::Nil,
            Const::Unspecified => Value::Unspecified,
            Const::Lock(l) => Value::LockState(*l),
        }
    }

    /// The part of an environment that code with these free variables can see.
    pub(super) fn restrict(&self, env: &Env, free: &[VarId]) -> Env {
        if env.len() == free.len() {
            return env.clone();
        }
        env.iter().filter(|entry| free.binary_search(&entry.0).is_ok()).copied().collect()
    }

    pub(super) fn extend(
        &self,
        state: &mut State,
        id: ThreadId,
        env: &Env,
        vars: impl Iterator<Item = (VarId, Value)>,
    ) -> Result<Env, (FailureKind, String)> {
        self.check_heap(state)?;
        let context = state.thread(id).context.clone();
        let mut out: SmallVec<[(VarId, ObjId); 16]> = env.iter().copied().collect();
        for (var, value) in vars {
            let object = state.alloc(Origin::Var(var), context.clone(), [value].into_iter().collect());
            match out.binary_search_by_key(&var, |entry| entry.0) {
                Ok(at) => out[at].1 = object,
                Err(at) => out.insert(at, (var, object)),
            }
        }
        Ok(out.as_slice().into())
    }

    pub(super) fn enter_context(&self, state: &mut State, id: ThreadId, site: ExprId) {
        if self.track == 0 {
            return;
        }
        let thread = state.thread_mut(id);
        let mut context = (*thread.context).clone();
        context.calls.push(site);
        let extra = context.calls.len().saturating_sub(self.track);
        context.calls.drain(..extra);
        thread.context = Rc::new(context);
    }

    pub(super) fn spawn_context(&self, parent: &Rc<Context>, site: ExprId) -> Rc<Context> {
        if self.track == 0 {
            return parent.clone();
        }
        let mut context = (**parent).clone();
        let calls = std::mem::take(&mut context.calls);
        context.spawns.push((site, calls));
        let extra = context.spawns.len().saturating_sub(self.track);
        context.spawns.drain(..extra);
        Rc::new(context)
    }
}
