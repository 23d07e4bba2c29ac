//! Applying functions: clauses, lambdas, processes.

use std::rc::Rc;

use super::env::{Env, Slot, State, lookup};
use super::value::{Closure, Code, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::ast::{BinOp, Decl, DeclId, Expr, ExprId, UnOp};
use crate::lang::resolve::Ref;
use crate::lang::source::Span;

/// What an application turns into: a value, or an expression to go on with (a tail call).
pub enum Applied {
    Value(Value),
    Continue(ExprId, Env),
}

impl Evaluator {
    /// Prepares an argument: evaluated when that is cheap and cannot fail, delayed otherwise.
    pub(super) fn argument(&mut self, expr: ExprId, env: &Env) -> Slot {
        match self.speculate(expr, env, 0) {
            Some(value) => Slot::Value(value),
            None => {
                if let Expr::Var(_) = self.program.ast.expr(expr)
                    && let Ref::Local { hops, slot, .. } = self.program.resolved.expr_ref(expr)
                {
                    return lookup(env, hops, slot);
                }
                Slot::Thunk(self.thunk(State::Pending(expr, env.clone())))
            }
        }
    }

    /// Evaluates literals, known names and arithmetic on them. Delaying those would only build chains of thunks
    /// (`f(n-1, acc+1)`); failing ones are delayed, so that laziness is kept where it can be seen.
    pub(super) fn speculate(&self, expr: ExprId, env: &Env, depth: u32) -> Option<Value> {
        if depth > 8 {
            return None;
        }
        match self.program.ast.expr(expr) {
            Expr::Int(n) => Some(Value::Int(*n)),
            Expr::Bool(b) => Some(Value::Bool(*b)),
            Expr::Char(c) => Some(Value::Char(*c)),
            Expr::Paren(inner) => self.speculate(*inner, env, depth + 1),
            Expr::Var(_) => match self.program.resolved.expr_ref(expr) {
                Ref::Local { hops, slot, .. } => match lookup(env, hops, slot) {
                    Slot::Value(value) => Some(value),
                    Slot::Thunk(thunk) => match &*thunk.state.borrow() {
                        super::env::State::Done(value) => Some(value.clone()),
                        _ => None,
                    },
                    Slot::Empty => None,
                },
                _ => None,
            },
            Expr::Unary(UnOp::Neg, a) => match self.speculate(*a, env, depth + 1)? {
                Value::Int(n) => n.checked_neg().map(Value::Int),
                _ => None,
            },
            Expr::Binary(op, a, b) => {
                let (Value::Int(x), Value::Int(y)) =
                    (self.speculate(*a, env, depth + 1)?, self.speculate(*b, env, depth + 1)?)
                else {
                    return None;
                };
                match op {
                    BinOp::Add => x.checked_add(y).map(Value::Int),
                    BinOp::Sub => x.checked_sub(y).map(Value::Int),
                    BinOp::Mul => x.checked_mul(y).map(Value::Int),
                    BinOp::Eq => Some(Value::Bool(x == y)),
                    BinOp::Ne => Some(Value::Bool(x != y)),
                    BinOp::Lt => Some(Value::Bool(x < y)),
                    BinOp::Gt => Some(Value::Bool(x > y)),
                    BinOp::Le => Some(Value::Bool(x <= y)),
                    BinOp::Ge => Some(Value::Bool(x >= y)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Applies a function value to one group of arguments.
    pub(super) fn apply(&mut self, function: &Value, args: Vec<Slot>, span: Span) -> Result<Applied> {
        match function {
            Value::Builtin(builtin) => {
                if let Some(value) = self.lazy_builtin(*builtin, &args, span)? {
                    return Ok(Applied::Value(value));
                }
                let values =
                    args.iter().map(|slot| self.force_fully(slot, span)).collect::<Result<Vec<_>>>()?;
                self.builtin(*builtin, &values, span).map(Applied::Value)
            }
            Value::Image(relation) => {
                let wanted = match args.first() {
                    Some(slot) => self.force_fully(slot, span)?,
                    None => return Err(Fault::new(span, "this function takes one argument")),
                };
                Ok(Applied::Value(image(relation, &wanted)))
            }
            Value::Function(closure) => self.apply_closure(closure, args, span),
            other => Err(self.wrong_kind(span, "a function", other)),
        }
    }

    fn apply_closure(&mut self, closure: &Rc<Closure>, args: Vec<Slot>, span: Span) -> Result<Applied> {
        let program = self.program.clone();
        match closure.code {
            Code::Lambda(expr) => {
                let Expr::Lambda(pats, body) = program.ast.expr(expr) else {
                    return Err(Fault::new(span, "this is not a function"));
                };
                let slots = program.resolved.frames.get(&expr).copied().unwrap_or(0);
                let frame = self.frame(slots, &closure.env);
                for (&pat, slot) in pats.iter().zip(&args) {
                    if !self.match_slot(pat, slot, &frame)? {
                        let shown = self.force(slot, span)?;
                        let pat_span = program.ast.pat_span(pat);
                        return Err(Fault::new(
                            span,
                            "the argument does not match the pattern of this function",
                        )
                        .note(format!("the argument is {}", self.show_short(&shown)))
                        .also(pat_span, "this pattern"));
                    }
                }
                Ok(Applied::Continue(*body, Some(frame)))
            }
            Code::Definition(decl, var) => {
                let Decl::Function { clauses, .. } = program.ast.decl(decl) else {
                    return Err(Fault::new(span, "this is not a function"));
                };
                let mut groups = closure.args.clone();
                groups.push(args);
                if groups.len() < clauses[0].groups.len() {
                    let id = self.fresh_id();
                    let partial = Closure { id, code: closure.code, env: closure.env.clone(), args: groups };
                    return Ok(Applied::Value(Value::Function(Rc::new(partial))));
                }
                if program.types.processes.contains(&var) {
                    let mut values = Vec::with_capacity(groups.len());
                    for group in &groups {
                        values.push(
                            group
                                .iter()
                                .map(|slot| self.force_fully(slot, span))
                                .collect::<Result<Vec<_>>>()?,
                        );
                    }
                    return Ok(Applied::Value(Value::Process(self.call(
                        decl,
                        var,
                        closure.env.clone(),
                        values,
                    ))));
                }
                let (body, env) = self.select_clause(decl, &groups, &closure.env, span)?;
                Ok(Applied::Continue(body, env))
            }
        }
    }

    /// The first clause whose patterns match, with its frame.
    pub(super) fn select_clause(
        &mut self,
        decl: DeclId,
        groups: &[Vec<Slot>],
        env: &Env,
        span: Span,
    ) -> Result<(ExprId, Env)> {
        let program = self.program.clone();
        let Decl::Function { name, clauses } = program.ast.decl(decl) else {
            return Err(Fault::new(span, "this is not a function"));
        };
        for (i, clause) in clauses.iter().enumerate() {
            let slots = program.resolved.clause_frames.get(&(decl, i)).copied().unwrap_or(0);
            let frame = self.frame(slots, env);
            let mut matches = true;
            for (pats, args) in clause.groups.iter().zip(groups) {
                for (&pat, slot) in pats.iter().zip(args) {
                    matches = matches && self.match_slot(pat, slot, &frame)?;
                }
            }
            if matches {
                return Ok((clause.body, Some(frame)));
            }
        }
        let mut shown = String::new();
        for group in groups {
            let mut parts = Vec::new();
            for slot in group {
                let value = self.force(slot, span)?;
                parts.push(self.show_short(&value));
            }
            shown.push_str(&format!("({})", parts.join(", ")));
        }
        Err(Fault::new(span, format!("no clause of `{}` matches `{}{shown}`", name.name, name.name))
            .also(name.span, "the first clause is here")
            .note("add a clause for these arguments"))
    }

    /// Applies a function and evaluates what comes out.
    pub(super) fn apply_fully(&mut self, function: &Value, args: Vec<Value>, span: Span) -> Result<Value> {
        let slots = args.into_iter().map(Slot::Value).collect();
        match self.apply(function, slots, span)? {
            Applied::Value(value) => Ok(value),
            Applied::Continue(expr, env) => self.eval(expr, &env),
        }
    }
}

impl Fault {
    pub(super) fn also(mut self, span: Span, label: impl Into<String>) -> Fault {
        self.0.more.push((span, label.into()));
        self
    }
}

/// `{ b | (a, b) <- relation, a == wanted }`
fn image(relation: &super::value::List, wanted: &Value) -> Value {
    let mut found = Vec::new();
    for pair in &relation.items {
        if let Value::Tuple(pair) = pair
            && let [a, b] = &pair.items[..]
            && a == wanted
        {
            found.push(b.clone());
        }
    }
    Value::Set(super::value::Set::of(found))
}
