//! Expressions that are not processes.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::apply::Applied;
use super::env::{Env, Frame, Slot, State, lookup};
use super::value::{Code, Set, Value};
use super::{Evaluator, Fault, Result, has_arguments};
use crate::lang::ast::{BinOp, Decl, DeclId, Expr, ExprId, Items, Stmt, UnOp};
use crate::lang::resolve::{PatRef, Ref, VarId};
use crate::lang::source::Span;

/// Definitions of `let`s that are remembered; when there are more, all are forgotten.
const LETS_MAX: usize = 1 << 16;

impl Evaluator {
    pub(super) fn eval(&mut self, expr: ExprId, env: &Env) -> Result<Value> {
        let span = self.program.ast.span(expr);
        self.deeper(span, |this| this.run(expr, env.clone()))
    }

    /// The loop that makes tail calls cost no stack.
    fn run(&mut self, mut id: ExprId, mut env: Env) -> Result<Value> {
        let program = self.program.clone();
        let ast = &program.ast;
        loop {
            let span = ast.span(id);
            self.step(span)?;
            match ast.expr(id) {
                Expr::Paren(inner) => id = *inner,
                Expr::If(condition, yes, no) => {
                    id = if self.boolean(*condition, &env)? { *yes } else { *no };
                }
                Expr::Let(decls, body) => {
                    env = self.let_frame(id, decls, &env);
                    id = *body;
                }
                Expr::Call(function, args) => {
                    let function = self.eval(*function, &env)?;
                    let slots = args.iter().map(|&arg| self.argument(arg, &env)).collect();
                    match self.apply(&function, slots, span)? {
                        Applied::Value(value) => return Ok(value),
                        Applied::Continue(next, next_env) => (id, env) = (next, next_env),
                    }
                }
                Expr::Binary(BinOp::And, a, b) => {
                    if !self.boolean(*a, &env)? {
                        return Ok(Value::Bool(false));
                    }
                    id = *b;
                }
                Expr::Binary(BinOp::Or, a, b) => {
                    if self.boolean(*a, &env)? {
                        return Ok(Value::Bool(true));
                    }
                    id = *b;
                }
                Expr::Guard(condition, then) => {
                    if !self.boolean(*condition, &env)? {
                        return self.stopped(id).map(Value::Process);
                    }
                    id = *then;
                }
                _ => return self.simple(id, &env, span),
            }
        }
    }

    /// Everything that is not a tail position.
    fn simple(&mut self, id: ExprId, env: &Env, span: Span) -> Result<Value> {
        let program = self.program.clone();
        match program.ast.expr(id) {
            Expr::Int(n) => Ok(Value::Int(*n)),
            Expr::Bool(b) => Ok(Value::Bool(*b)),
            Expr::Char(c) => Ok(Value::Char(*c)),
            Expr::Str(text) => Ok(Value::string(text)),
            Expr::Var(_) => self.variable(id, env, span),
            Expr::Tuple(list) => self.tuple(list, env, span),
            Expr::Dot(a, b) => {
                let left = self.eval(*a, env)?;
                let right = self.eval(*b, env)?;
                let value = if left.is_lazy() || right.is_lazy() {
                    self.lazy_dot(&left, &right, span)?
                } else {
                    self.dot(left, &right)
                };
                let value = self.checked(value, span)?;
                self.bounded(span, value)
            }
            Expr::Lambda(..) => Ok(self.closure(Code::Lambda(id), env)),
            Expr::Binary(BinOp::Concat, a, b) => {
                let left = self.eval(*a, env)?;
                let right = match left {
                    Value::SeqFrom(_) => return Ok(left),
                    Value::Seq(ref seq) if seq.items().is_empty() => return self.eval(*b, env),
                    _ => self.optimistic(*b, env),
                };
                self.joined(left, right, span)
            }
            Expr::Binary(op, a, b) => {
                let left = self.eval(*a, env)?;
                let right = self.eval(*b, env)?;
                self.binary(*op, left, right, span)
            }
            Expr::Unary(op, a) => {
                let value = self.eval(*a, env)?;
                match (op, value) {
                    (UnOp::Neg, Value::Int(n)) => {
                        n.checked_neg().map(Value::Int).ok_or_else(|| overflow(span))
                    }
                    (UnOp::Not, Value::Bool(b)) => Ok(Value::Bool(!b)),
                    (UnOp::Length, Value::Seq(seq)) => Ok(Value::Int(seq.items().len() as i64)),
                    (UnOp::Length, sequence @ (Value::SeqFrom(_) | Value::Stream(_))) => {
                        self.length(sequence, span)
                    }
                    (_, other) => Err(self.wrong_kind(span, "another kind of operand", &other)),
                }
            }
            Expr::Seq(..) => self.sequence(id, env, span),
            Expr::Set(items, stmts) => {
                let mut out = Vec::new();
                if let Items::From(start) = items {
                    // The union of endless ranges is the one that starts first.
                    let mut least: Option<i64> = None;
                    self.comprehend(id, stmts, env, &mut |this, env| {
                        let from = this.integer(*start, env)?;
                        least = Some(least.map_or(from, |n| n.min(from)));
                        Ok(())
                    })?;
                    return Ok(Value::Set(least.map_or_else(|| Set::of(Vec::new()), Set::From)));
                }
                self.comprehend(id, stmts, env, &mut |this, env| {
                    this.items(items, env, span, &mut out)?;
                    this.check_size(span, out.len())
                })?;
                self.bounded(span, Value::Set(Set::of(out)))
            }
            Expr::Productions(list, stmts) => {
                let mut out = Vec::new();
                self.comprehend(id, stmts, env, &mut |this, env| {
                    for &e in list {
                        let value = this.eval_fully(e, env)?;
                        let place = this.program.ast.span(e);
                        out.extend(this.completions(&value, place)?);
                    }
                    this.check_size(span, out.len())
                })?;
                Ok(Value::Set(Set::of(out)))
            }
            Expr::Map(entries) => {
                let mut map = BTreeMap::new();
                for &(k, v) in entries {
                    map.insert(self.eval_fully(k, env)?, self.optimistic(v, env));
                }
                self.bounded(span, super::lazy::map_of(map))
            }
            Expr::Error | Expr::Wildcard | Expr::As(..) => Err(Fault::new(span, "this has no value")),
            _ => self.process_expr(id, env, span).map(Value::Process),
        }
    }

    fn variable(&mut self, id: ExprId, env: &Env, span: Span) -> Result<Value> {
        match self.program.resolved.expr_ref(id) {
            Ref::Unresolved => Err(Fault::new(span, "this name is not in scope")),
            Ref::Builtin(builtin) => self.builtin_value(builtin, id, span),
            Ref::Global(var) => self.global(var, span),
            Ref::Local { hops, slot, .. } => {
                let slot = lookup(env, hops, slot);
                self.force(&slot, span)
            }
        }
    }

    pub(super) fn boolean(&mut self, expr: ExprId, env: &Env) -> Result<bool> {
        match self.eval(expr, env)? {
            Value::Bool(b) => Ok(b),
            other => Err(self.wrong_kind(self.program.ast.span(expr), "a truth value", &other)),
        }
    }

    pub(super) fn integer(&mut self, expr: ExprId, env: &Env) -> Result<i64> {
        match self.eval(expr, env)? {
            Value::Int(n) => Ok(n),
            other => Err(self.wrong_kind(self.program.ast.span(expr), "a number", &other)),
        }
    }

    pub(super) fn items(&mut self, items: &Items, env: &Env, span: Span, out: &mut Vec<Value>) -> Result<()> {
        match items {
            Items::List(list) => {
                for &e in list {
                    out.push(self.eval_fully(e, env)?);
                }
            }
            Items::Range(a, b) => {
                let (from, to) = (self.integer(*a, env)?, self.integer(*b, env)?);
                let count = to.checked_sub(from).map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0));
                self.check_size(span, out.len().saturating_add(count))?;
                out.extend((from..=to).map(Value::Int));
            }
            Items::From(_) => {
                return Err(Fault::new(span, "a comprehension cannot list an endless range"));
            }
        }
        Ok(())
    }

    fn binary(&mut self, op: BinOp, left: Value, right: Value, span: Span) -> Result<Value> {
        let result = match (op, &left, &right) {
            (BinOp::Add, Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int),
            (BinOp::Sub, Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int),
            (BinOp::Mul, Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int),
            (BinOp::Div | BinOp::Mod, Value::Int(_), Value::Int(0)) => {
                return Err(Fault::new(span, "division by zero"));
            }
            // As libcspm (`CSPM.Evaluator.Expr`, Haskell's `div` and `mod`): the quotient is rounded down, the
            // remainder has the sign of the divisor. `(i-1) % N` is the left neighbour in a ring.
            (BinOp::Div, Value::Int(a), Value::Int(b)) => floor_div(*a, *b).map(Value::Int),
            (BinOp::Mod, Value::Int(a), Value::Int(b)) => Some(Value::Int(floor_mod(*a, *b))),
            (BinOp::Eq, a, b) => Some(Value::Bool(self.equal(a, b, span)?)),
            (BinOp::Ne, a, b) => Some(Value::Bool(!self.equal(a, b, span)?)),
            (BinOp::Lt, a, b) => Some(Value::Bool(self.less(a, b, true, span)?)),
            (BinOp::Gt, a, b) => Some(Value::Bool(self.less(b, a, true, span)?)),
            (BinOp::Le, a, b) => Some(Value::Bool(self.less(a, b, false, span)?)),
            (BinOp::Ge, a, b) => Some(Value::Bool(self.less(b, a, false, span)?)),
            _ => return Err(self.wrong_kind(span, "operands that fit the operator", &right)),
        };
        result.ok_or_else(|| overflow(span))
    }

    /// `a < b` (or `a <= b`): numbers by size, sequences by prefix, sets by inclusion, maps by inclusion of their keys
    /// with values in order, tuples by components from the left.
    fn less(&mut self, a: &Value, b: &Value, strict: bool, span: Span) -> Result<bool> {
        if matches!(a, Value::Stream(_)) || matches!(b, Value::Stream(_)) {
            let (prefix, equal) = self.prefix_of(a, b, span)?;
            return Ok(prefix && !(strict && equal));
        }
        if a.is_lazy() || b.is_lazy() {
            let (a, b) = (self.complete(a.clone(), span)?, self.complete(b.clone(), span)?);
            return self.less(&a, &b, strict, span);
        }
        if a == b {
            return Ok(!strict);
        }
        Ok(match (a, b) {
            (Value::Int(x), Value::Int(y)) => x < y,
            (Value::Bool(x), Value::Bool(y)) => x < y,
            (Value::Char(x), Value::Char(y)) => x < y,
            (Value::Seq(x), Value::Seq(y)) => y.items().starts_with(x.items()),
            (Value::Seq(_) | Value::SeqFrom(_), Value::Seq(_) | Value::SeqFrom(_)) => {
                self.prefix_of(a, b, span)?.0
            }
            (Value::Set(Set::List(x)), Value::Set(Set::List(y))) => x.items.iter().all(|v| y.contains(v)),
            (Value::Set(x), Value::Set(y)) => self.subset(x, y, span)?,
            (Value::Map(x), Value::Map(y)) => {
                for (key, value) in x.iter() {
                    match y.get(key) {
                        Some(other) if self.less(value, other, false, span)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Value::Tuple(x), Value::Tuple(y)) => {
                let differ = x.items.iter().zip(&y.items).find(|(p, q)| p != q);
                match differ {
                    Some((p, q)) => self.less(p, q, true, span)?,
                    None => false,
                }
            }
            _ => {
                return Err(Fault::new(
                    span,
                    format!("{} and {} have no order", self.show_short(a), self.show_short(b)),
                ));
            }
        })
    }

    /// `#sequence`, without asking for the elements.
    pub(super) fn length(&mut self, sequence: Value, span: Span) -> Result<Value> {
        let mut count = 0;
        self.each(sequence, span, &mut |_, _| {
            count += 1;
            Ok(true)
        })?;
        Ok(Value::Int(count))
    }

    // ---- frames

    /// The frame of a `let`: every name is delayed; processes become calls.
    fn let_frame(&mut self, id: ExprId, decls: &[DeclId], env: &Env) -> Env {
        let program = self.program.clone();
        let known = self.let_key(id, decls, env);
        if let Some(frame) = known.as_ref().and_then(|key| self.lets.get(key)).cloned() {
            let number = self.fresh_id();
            return Some(frame.moved(number, env.clone()));
        }
        let slots = program.resolved.frames.get(&id).copied().unwrap_or(0);
        let frame = self.frame(slots, env);
        let frame = self.cycles.frame(frame);
        let inner: Env = Some(frame.clone());
        if let Some(key) = known {
            if self.lets.len() >= LETS_MAX {
                self.lets.clear();
            }
            self.lets.insert(key, frame.clone());
        }
        for &decl in decls {
            let vars = program.resolved.defines.get(&decl).map_or(&[][..], |v| &v[..]);
            match program.ast.decl(decl) {
                Decl::Function { clauses, .. } => {
                    let Some(&var) = vars.first() else { continue };
                    let value = if has_arguments(clauses) {
                        Slot::Value(self.closure(Code::Definition(decl, var), &inner))
                    } else if program.types.processes.contains(&var) {
                        Slot::Value(Value::Process(self.call(decl, var, inner.clone(), Vec::new())))
                    } else {
                        // A constant is a clause of its own, with a frame of its own.
                        let clause: Env = Some(self.frame(0, &inner));
                        Slot::Thunk(self.thunk(State::Pending(clauses[0].body, clause)))
                    };
                    self.fill(&frame, var, value);
                }
                Decl::Pattern { pat, body } => {
                    let whole = self.thunk(State::Pending(*body, inner.clone()));
                    for &var in vars {
                        let part = self.thunk(State::Part(whole.clone(), *pat, var));
                        self.fill(&frame, var, Slot::Thunk(part));
                    }
                }
                _ => {}
            }
        }
        inner
    }

    /// What the definitions of a `let` depend on: where the values of the outer variables they use are the same, so are
    /// they. Only for processes, whose identity makes states meet (`|~| x:S @ (let P = ... within P) ; Q(x)` has one
    /// `P`), and only where the values are there already and small.
    fn let_key(&self, id: ExprId, decls: &[DeclId], env: &Env) -> Option<(ExprId, Vec<Value>)> {
        let program = &self.program;
        let defines = |decl: &DeclId| program.resolved.defines.get(decl).map_or(&[][..], |v| &v[..]);
        if !decls.iter().flat_map(defines).any(|var| program.types.processes.contains(var)) {
            return None;
        }
        let uses = program.resolved.let_uses.get(&id)?;
        let values = uses.iter().map(|&(hops, slot)| {
            let value = match lookup(env, hops, slot) {
                Slot::Value(value) => value,
                Slot::Thunk(thunk) => match &*thunk.state.borrow() {
                    super::env::State::Done(value) => value.clone(),
                    _ => return None,
                },
                Slot::Empty => return None,
            };
            matches!(
                value,
                Value::Int(_) | Value::Bool(_) | Value::Char(_) | Value::Data(..) | Value::Process(_)
            )
            .then_some(value)
        });
        Some((id, values.collect::<Option<Vec<Value>>>()?))
    }

    fn fill(&self, frame: &Rc<Frame>, var: VarId, value: Slot) {
        if let crate::lang::resolve::Home::Local { slot, .. } = self.program.resolved.var(var).home {
            frame.set(slot, value);
        }
    }

    /// Runs `body` for every way to satisfy the statements, in an environment with the frame of `id`.
    pub(super) fn comprehend(
        &mut self,
        id: ExprId,
        stmts: &[Stmt],
        env: &Env,
        body: &mut dyn FnMut(&mut Evaluator, &Env) -> Result<()>,
    ) -> Result<()> {
        // Without generators there is no frame.
        let Some(&slots) = self.program.resolved.frames.get(&id) else { return body(self, env) };
        let frame = self.frame(slots, env);
        self.statements(stmts, frame, body)
    }

    pub(super) fn statements(
        &mut self,
        stmts: &[Stmt],
        frame: Rc<Frame>,
        body: &mut dyn FnMut(&mut Evaluator, &Env) -> Result<()>,
    ) -> Result<()> {
        let Some((stmt, rest)) = stmts.split_first() else { return body(self, &Some(frame)) };
        match *stmt {
            Stmt::Condition(condition) => {
                if self.boolean(condition, &Some(frame.clone()))? {
                    self.statements(rest, frame, body)?;
                }
            }
            Stmt::Generator(_, from) => {
                let source = self.eval(from, &Some(frame.clone()))?;
                self.over(source, stmts, frame, body)?;
            }
        }
        Ok(())
    }

    /// Like [`Self::statements`], where the first statement is a generator over `source`.
    pub(super) fn over(
        &mut self,
        source: Value,
        stmts: &[Stmt],
        frame: Rc<Frame>,
        body: &mut dyn FnMut(&mut Evaluator, &Env) -> Result<()>,
    ) -> Result<()> {
        let Some((&Stmt::Generator(pat, from), rest)) = stmts.split_first() else { return Ok(()) };
        let span = self.program.ast.span(from);
        let items = match source {
            Value::Seq(seq) => seq.items().to_vec(),
            Value::Set(set) => self.listed(&set, span)?.items.clone(),
            Value::SeqFrom(_) => return Err(endless_sequence(span)),
            Value::Stream(_) => {
                return self.each(source, span, &mut |this, item| {
                    let id = this.fresh_id();
                    let next = frame.copy(id);
                    if this.match_slot(pat, item, &next)? {
                        this.statements(rest, next, body)?;
                    }
                    Ok(true)
                });
            }
            other => return Err(self.wrong_kind(span, "a set or a sequence", &other)),
        };
        for item in items {
            let id = self.fresh_id();
            let next = frame.copy(id);
            if self.match_value(pat, &item, &next)? {
                self.statements(rest, next, body)?;
            }
        }
        Ok(())
    }

    /// The variable `var` that a pattern binds in a value.
    pub(super) fn part(&mut self, pat: crate::lang::ast::PatId, value: &Value, var: VarId) -> Result<Value> {
        let mut found = None;
        let matched = self.bindings(pat, value, &mut |_, reference, slot| {
            if let PatRef::Bind { var: bound, .. } = reference
                && bound == var
            {
                found = Some(slot);
            }
        })?;
        match found {
            Some(slot) if matched => self.force(&slot, self.program.ast.pat_span(pat)),
            _ => Err(Fault::new(
                self.program.ast.pat_span(pat),
                format!("the value {} does not match this pattern", self.show_short(value)),
            )),
        }
    }
}

/// The quotient rounded down; nothing if it does not fit or the divisor is zero.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// What [`floor_div`] leaves: between zero and the divisor, which is not zero.
fn floor_mod(a: i64, b: i64) -> i64 {
    let rest = a.wrapping_rem(b);
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
}

pub(super) fn overflow(span: Span) -> Fault {
    Fault::new(span, "the result is too large for an integer").note("integers have 64 bits")
}

pub(super) fn endless_sequence(span: Span) -> Fault {
    Fault::new(span, "this sequence has no end").note("take what you need from its front: with `head` and `tail`, a pattern `<x>^s`, or a function that stops")
}
