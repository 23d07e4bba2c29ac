//! Prefixes: `c!x?y:A$z -> P`.
//!
//! Fields are taken from the left. An input `?` is an external choice over the values the field may have (those of its
//! set, or those the channel declares), `$` an internal one, `!` is one value. A value that does not match the pattern
//! of an input is not offered. As long as there is no `$` the result is one choice of prefixes.

use std::rc::Rc;

use super::env::{Env, Frame};
use super::value::Value;
use super::{Evaluator, Result};
use crate::lang::ast::{Expr, ExprId, Field, FieldKind};
use crate::lang::source::Span;
use crate::process::{EventId, ProcId};

/// The parts of a prefix expression that do not change from branch to branch.
struct Prefix<'a> {
    id: ExprId,
    /// Where the whole prefix stands.
    env: &'a Env,
    channel: ExprId,
    fields: &'a [Field],
    then: ExprId,
}

impl Prefix<'_> {
    /// Where the event is written.
    fn span(&self, evaluator: &Evaluator) -> Span {
        let channel = evaluator.program.ast.span(self.channel);
        self.fields.last().map_or(channel, |last| channel.to(last.span))
    }
}

impl Evaluator {
    /// Evaluates a prefix. A chain of prefixes without inputs is followed by a loop, because it may be as long as a
    /// recorded trace.
    pub(super) fn prefix(&mut self, id: ExprId, env: &Env) -> Result<ProcId> {
        let program = self.program.clone();
        let mut chain: Vec<(ExprId, Value, EventId)> = Vec::new();
        let mut at = id;
        let last = loop {
            let Expr::Prefix { channel, fields, then } = program.ast.expr(at) else {
                match self.eval(at, env)? {
                    Value::Process(process) => break process,
                    other => return Err(self.wrong_kind(program.ast.span(at), "a process", &other)),
                }
            };
            self.step(program.ast.span(at))?;
            let prefix = Prefix { id: at, env, channel: *channel, fields, then: *then };
            let mut value = self.eval_fully(*channel, env)?;
            if let Some(&slots) = program.resolved.frames.get(&at) {
                let frame = self.frame(slots, env);
                let mut branches = Vec::new();
                break match self.choose(&prefix, 0, value, frame, &mut branches)? {
                    None => self.offer(at, branches)?,
                    Some(choice) => choice,
                };
            }
            for field in fields {
                if let FieldKind::Output(expr) = field.kind {
                    let output = self.eval_fully(expr, env)?;
                    value = self.dot(value, &output);
                }
            }
            let event = self.event(&value, prefix.span(self))?;
            chain.push((at, value, event));
            at = *then;
        };
        let mut process = last;
        for (at, value, event) in chain.into_iter().rev() {
            let then = self.after(at, env, &value, process)?;
            process = self.offer(at, vec![(event, then)])?;
        }
        Ok(process)
    }

    /// Takes the fields from `at` on. Pushes branches as long as all is deterministic; returns a process as soon as a
    /// `$` makes it a choice of choices.
    fn choose(
        &mut self,
        prefix: &Prefix,
        at: usize,
        value: Value,
        frame: Rc<Frame>,
        branches: &mut Vec<(EventId, ProcId)>,
    ) -> Result<Option<ProcId>> {
        let Some(field) = prefix.fields.get(at) else {
            let event = self.event(&value, prefix.span(self))?;
            let then = match self.eval(prefix.then, &Some(frame))? {
                Value::Process(id) => id,
                other => {
                    return Err(self.wrong_kind(self.program.ast.span(prefix.then), "a process", &other));
                }
            };
            let then = self.after(prefix.id, prefix.env, &value, then)?;
            branches.push((event, then));
            return Ok(None);
        };
        match field.kind {
            FieldKind::Output(expr) => {
                let output = self.eval_fully(expr, &Some(frame.clone()))?;
                let value = self.dot(value, &output);
                self.choose(prefix, at + 1, value, frame, branches)
            }
            FieldKind::Input(pat, set) | FieldKind::Choose(pat, set) => {
                if matches!(field.kind, FieldKind::Choose(..)) {
                    self.untimed(prefix.id, "an input with `$`", field.span)?;
                }
                let candidates = match set {
                    Some(set) => {
                        let span = self.program.ast.span(set);
                        match self.eval(set, &Some(frame.clone()))? {
                            Value::Set(set) => self.listed(&set, span)?.items.clone(),
                            other => return Err(self.wrong_kind(span, "a set", &other)),
                        }
                    }
                    None => {
                        let last = at + 1 == prefix.fields.len();
                        let width = if last { None } else { Some(self.dot_width(pat)) };
                        self.inputs(&value, width, field.span)?
                    }
                };
                let internal = matches!(field.kind, FieldKind::Choose(..));
                let more_choices =
                    prefix.fields[at + 1..].iter().any(|f| matches!(f.kind, FieldKind::Choose(..)));
                let mut choices = Vec::new();
                for candidate in candidates {
                    let id = self.fresh_id();
                    let next = frame.copy(id);
                    if !self.match_value(pat, &candidate, &next)? {
                        continue;
                    }
                    let value = self.dot(value.clone(), &candidate);
                    if !internal && !more_choices {
                        self.choose(prefix, at + 1, value, next, branches)?;
                        continue;
                    }
                    let mut own = Vec::new();
                    let choice = match self.choose(prefix, at + 1, value, next, &mut own)? {
                        Some(choice) => choice,
                        None => self.offer(prefix.id, own)?,
                    };
                    choices.push(choice);
                }
                if !internal && !more_choices {
                    return Ok(None);
                }
                if !internal {
                    return self.external(prefix.id, choices).map(Some);
                }
                if choices.is_empty() {
                    return Err(super::Fault::new(field.span, "there is no value to choose from")
                        .note("an internal choice needs at least one alternative"));
                }
                Ok(Some(self.arena.internal_choice(choices)))
            }
        }
    }
}
