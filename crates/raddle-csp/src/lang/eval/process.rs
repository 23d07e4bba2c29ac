//! Process operators.

use super::env::Env;
use super::value::{Set, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::ast::{Expr, ExprId, ProcOp, RepOp, Stmt, SyncOp};
use crate::lang::source::Span;
use crate::process::{EventId, EventSetId, ProcId};

impl Evaluator {
    /// Evaluates an operand.
    fn operand(&mut self, expr: ExprId, env: &Env) -> Result<ProcId> {
        match self.eval(expr, env)? {
            Value::Process(id) => Ok(id),
            other => Err(self.wrong_kind(self.program.ast.span(expr), "a process", &other)),
        }
    }

    fn set_operand(&mut self, expr: ExprId, env: &Env) -> Result<EventSetId> {
        let value = self.eval(expr, env)?;
        self.event_set(&value, self.program.ast.span(expr))
    }

    /// The operands of a left-associative chain of one operator, read off by a loop: such chains get long.
    fn chain(&mut self, op: ProcOp, id: ExprId, env: &Env) -> Result<Vec<ProcId>> {
        let program = self.program.clone();
        let mut exprs = Vec::new();
        let mut at = id;
        loop {
            match program.ast.expr(at) {
                Expr::Process(inner, left, right) if *inner == op => {
                    exprs.push(*right);
                    at = *left;
                }
                _ => {
                    exprs.push(at);
                    break;
                }
            }
        }
        exprs.into_iter().rev().map(|e| self.operand(e, env)).collect()
    }

    pub(super) fn process_expr(&mut self, id: ExprId, env: &Env, span: Span) -> Result<ProcId> {
        let program = self.program.clone();
        match program.ast.expr(id) {
            Expr::Prefix { .. } => self.prefix(id, env),
            Expr::Process(op, a, b) => match op {
                ProcOp::ExtChoice => {
                    let operands = self.chain(*op, id, env)?;
                    self.external(id, operands)
                }
                ProcOp::IntChoice => {
                    let operands = self.chain(*op, id, env)?;
                    Ok(self.arena.internal_choice(operands))
                }
                ProcOp::Interleave => {
                    let operands = self.chain(*op, id, env)?;
                    self.interleave(id, operands)
                }
                ProcOp::Then => {
                    let (p, q) = (self.operand(*a, env)?, self.operand(*b, env)?);
                    Ok(self.arena.sequence(p, q))
                }
                ProcOp::Sliding => {
                    let (p, q) = (self.operand(*a, env)?, self.operand(*b, env)?);
                    Ok(self.arena.sliding(p, q))
                }
                ProcOp::Interrupt => {
                    let (p, q) = (self.operand(*a, env)?, self.operand(*b, env)?);
                    self.interrupt(id, p, q)
                }
            },
            Expr::Sync(op, a, set, b) => {
                let p = self.operand(*a, env)?;
                let set = self.set_operand(*set, env)?;
                let q = self.operand(*b, env)?;
                match op {
                    SyncOp::Parallel => {
                        let set = self.shared_with_time(id, set)?;
                        Ok(self.arena.parallel(vec![p, q], set))
                    }
                    SyncOp::SyncChoice => {
                        let set = self.with_tock(id, set)?;
                        Ok(self.arena.sync_choice(p, set, q))
                    }
                    SyncOp::SyncInterrupt => {
                        let set = self.with_tock(id, set)?;
                        Ok(self.arena.sync_interrupt(p, set, q))
                    }
                    SyncOp::Exception => Ok(self.arena.exception(p, set, q)),
                }
            }
            Expr::Alphabetised { left, left_set, right_set, right } => {
                let p = self.operand(*left, env)?;
                let a = self.set_operand(*left_set, env)?;
                let b = self.set_operand(*right_set, env)?;
                let q = self.operand(*right, env)?;
                let (a, b) = (self.shared_with_time(id, a)?, self.shared_with_time(id, b)?);
                Ok(self.arena.alphabetised(vec![(p, a), (q, b)]))
            }
            Expr::Linked { left, ties, stmts, right } => {
                self.untimed(id, "`[ <-> ]`", span)?;
                let p = self.operand(*left, env)?;
                let q = self.operand(*right, env)?;
                let mut pairs = Vec::new();
                self.comprehend(id, stmts, env, &mut |this, env| this.event_pairs(ties, env, &mut pairs))?;
                self.unambiguous(&pairs, span)?;
                Ok(self.arena.linked(p, pairs, q))
            }
            Expr::Hide(p, set) => {
                let (p, set) = (self.operand(*p, env)?, self.set_operand(*set, env)?);
                Ok(self.arena.hide(p, set))
            }
            Expr::Project(p, set) => {
                let (p, set) = (self.operand(*p, env)?, self.set_operand(*set, env)?);
                Ok(self.arena.project(p, set))
            }
            Expr::Rename { process, pairs, stmts } => {
                let p = self.operand(*process, env)?;
                let mut events = Vec::new();
                self.comprehend(id, stmts, env, &mut |this, env| this.event_pairs(pairs, env, &mut events))?;
                let renaming = self.arena.renaming(events);
                Ok(self.arena.rename(p, renaming))
            }
            Expr::Replicated { op, stmts, body } => self.replicated(id, op, stmts, *body, env, span),
            _ => Err(Fault::new(span, "this has no value")),
        }
    }

    /// The pairs of events that `old <- new` or `left <-> right` stand for: both sides are completed alike.
    fn event_pairs(
        &mut self,
        pairs: &[(ExprId, ExprId)],
        env: &Env,
        out: &mut Vec<(EventId, EventId)>,
    ) -> Result<()> {
        for &(a, b) in pairs {
            let (left, right) = (self.eval_fully(a, env)?, self.eval_fully(b, env)?);
            let (left_span, right_span) = (self.program.ast.span(a), self.program.ast.span(b));
            for rest in self.extensions(&left, left_span)? {
                let empty = matches!(&rest, Value::Dot(list) if list.items.is_empty());
                let (old, new) = if empty {
                    (left.clone(), right.clone())
                } else {
                    (self.dot(left.clone(), &rest), self.dot(right.clone(), &rest))
                };
                out.push((self.event(&old, left_span)?, self.event(&new, right_span)?));
            }
        }
        Ok(())
    }

    fn replicated(
        &mut self,
        id: ExprId,
        op: &RepOp,
        stmts: &[Stmt],
        body: ExprId,
        env: &Env,
        span: Span,
    ) -> Result<ProcId> {
        let sync = match op {
            RepOp::Parallel { sync } => {
                let set = self.set_operand(*sync, env)?;
                Some(self.shared_with_time(id, set)?)
            }
            RepOp::SyncChoice { sync } => {
                let set = self.set_operand(*sync, env)?;
                Some(self.with_tock(id, set)?)
            }
            _ => None,
        };
        let mut operands: Vec<ProcId> = Vec::new();
        let mut alphabets: Vec<EventSetId> = Vec::new();
        let mut links: Vec<Result<Vec<(EventId, EventId)>>> = Vec::new();
        if matches!(op, RepOp::Linked { .. }) {
            self.untimed(id, "`[ <-> ]`", span)?;
        }
        self.comprehend(id, stmts, env, &mut |this, env| {
            if let RepOp::Alphabetised { alphabet } = op {
                let set = this.set_operand(*alphabet, env)?;
                alphabets.push(this.shared_with_time(id, set)?);
            }
            if let RepOp::Linked { ties, tie_stmts } = op {
                let slots = this.program.resolved.tie_frames.get(&id).copied().unwrap_or(0);
                let frame = this.frame(slots, env);
                let mut pairs = Vec::new();
                let listed = this
                    .statements(tie_stmts, frame, &mut |this, env| this.event_pairs(ties, env, &mut pairs));
                links.push(listed.and_then(|()| this.unambiguous(&pairs, span)).map(|()| pairs));
            }
            operands.push(this.operand(body, env)?);
            this.check_size(span, operands.len())
        })?;
        match op {
            RepOp::ExtChoice => self.external(id, operands),
            RepOp::IntChoice if operands.is_empty() => Err(Fault::new(span, "an internal choice of nothing")
                .note("`|~|` over an empty set has no meaning; make sure the set has an element")),
            RepOp::IntChoice => Ok(self.arena.internal_choice(operands)),
            RepOp::Interleave if operands.is_empty() => self.composed_of_nothing(id),
            RepOp::Interleave => self.interleave(id, operands),
            RepOp::Then => {
                let last = match operands.pop() {
                    Some(last) => last,
                    None => return self.skipped(id),
                };
                Ok(operands.into_iter().rev().fold(last, |rest, p| self.arena.sequence(p, rest)))
            }
            RepOp::Parallel { .. } if operands.is_empty() => self.composed_of_nothing(id),
            RepOp::Parallel { .. } => match sync {
                Some(set) => Ok(self.arena.parallel(operands, set)),
                None => Err(Fault::new(span, "this has no value")),
            },
            RepOp::SyncChoice { .. } => {
                let mut operands = operands.into_iter();
                let Some(first) = operands.next() else { return self.stopped(id) };
                let Some(set) = sync else { return Err(Fault::new(span, "this has no value")) };
                Ok(operands.fold(first, |all, p| self.arena.sync_choice(all, set, p)))
            }
            RepOp::Alphabetised { .. } if operands.is_empty() => self.composed_of_nothing(id),
            RepOp::Alphabetised { .. } => {
                Ok(self.arena.alphabetised(operands.into_iter().zip(alphabets).collect()))
            }
            RepOp::Linked { .. } => {
                // As libcspm nests them: the ties of an operand link it with all operands after it.
                let Some(last) = operands.pop() else {
                    return Err(Fault::new(span, "a linked parallel of nothing")
                        .note("make sure the sequence has an element"));
                };
                // Those of the last link it with nothing; `[c.i <-> c.i+1]` need not make sense there.
                let mut chain = last;
                for (p, pairs) in operands.into_iter().zip(links).rev() {
                    chain = self.arena.linked(p, pairs?, chain);
                }
                Ok(chain)
            }
        }
    }

    /// An event of one side is linked with one event of the other, or it would not be known which of them it meets.
    fn unambiguous(&self, pairs: &[(EventId, EventId)], span: Span) -> Result<()> {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        pairs.dedup();
        let twice = |mut side: Vec<EventId>| {
            side.sort_unstable();
            side.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
        };
        let left = twice(pairs.iter().map(|p| p.0).collect());
        match left.or_else(|| twice(pairs.iter().map(|p| p.1).collect())) {
            None => Ok(()),
            Some(event) => {
                let name = self.arena.events.name(event).to_string();
                Err(Fault::new(span, format!("`{name}` is linked with more than one event"))
                    .note("each event may occur in one link of each side"))
            }
        }
    }

    /// The trace of `:[has trace]:` as events.
    pub fn trace(&mut self, expr: ExprId) -> Result<Vec<EventId>> {
        let span = self.program.ast.span(expr);
        match self.value(expr)? {
            Value::Seq(seq) => seq.items().to_vec().iter().map(|v| self.event(v, span)).collect(),
            other => Err(self.wrong_kind(span, "a trace", &other)),
        }
    }

    /// A closed set of events, for the options of assertions.
    pub fn events_of(&mut self, expr: ExprId) -> Result<EventSetId> {
        let value = self.value(expr)?;
        self.event_set(&value, self.program.ast.span(expr))
    }

    pub(super) fn set_list(&mut self, value: &Value, span: Span) -> Result<Set> {
        match value {
            Value::Set(set) => Ok(set.clone()),
            other => Err(self.wrong_kind(span, "a set", other)),
        }
    }
}
