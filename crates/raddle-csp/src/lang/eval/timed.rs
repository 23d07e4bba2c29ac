//! Timed sections: `Timed(duration) { ... }`, as libcspm translates them (`CSPM.Desugar`, `CSPM.Evaluator.Expr`).
//!
//! Time passes by the event `tock`, in which all parallel processes take part. Inside a timed section a process that
//! offers events also lets time pass while it waits; after an event `e` it lets `duration(e)` units pass. Choices and
//! interrupts are not resolved by `tock` (they synchronise on it), parallel operators synchronise on it, `STOP` and
//! `SKIP` let time pass. A replicated parallel of nothing and a false guard are the timed `STOP`, not `SKIP`. `[>`,
//! `RUN`, `CHAOS` and `BUFFER` mean what they mean elsewhere; the linked parallel and the input `$` are refused.
//!
//! # Termination
//!
//! `SKIP` becomes `TSKIP = SKIP [] tock -> TSKIP`: it is ready to terminate and lets time pass until its partners are.
//! That is the operational semantics of Timed CSP (Schneider, "Concurrent and Real-time Systems", 2000; Ouaknine's
//! discrete version, 2001), in which a parallel composition does `✓` when all operands do it together. With the rule for
//! untimed processes, where an operand's `✓` is a `τ` to `Ω`, the first operand to finish would stop the time of all
//! others. So the sets of parallel operators in a timed section contain `✓` beside `tock`, see [`crate::process`].

use std::rc::Rc;

use super::env::Env;
use super::value::Value;
use super::{Evaluator, Fault, Result};
use crate::lang::ast::ExprId;
use crate::lang::resolve::TimedId;
use crate::lang::source::Span;
use crate::process::{EventId, EventSetId, ProcId};

/// Longest delay: each unit is a state.
const DELAY_MAX: i64 = 1_000_000;

impl Evaluator {
    fn section(&self, id: ExprId) -> Option<TimedId> {
        self.program.resolved.timed.get(&id).copied()
    }

    fn tock(&mut self, span: Span) -> Result<EventId> {
        match self.program.resolved.tock {
            Some(var) => self.event(&Value::Data(var, Rc::default()), span),
            None => Err(Fault::new(span, "this needs the channel `tock`").note("declare `channel tock`")),
        }
    }

    pub(super) fn untimed(&self, id: ExprId, what: &str, span: Span) -> Result<()> {
        match self.section(id) {
            None => Ok(()),
            Some(_) => Err(Fault::new(span, format!("{what} has no meaning in a timed section"))
                .note("define this process outside the section")),
        }
    }

    /// The set of a parallel operator: in a timed section with `tock` and `✓`, which all operands do together.
    pub(super) fn shared_with_time(&mut self, id: ExprId, set: EventSetId) -> Result<EventSetId> {
        if self.section(id).is_none() {
            return Ok(set);
        }
        let set = self.with_tock(id, set)?;
        Ok(self.arena.with_tick(set))
    }

    /// A replicated parallel operator without operands: `SKIP`, or the timed `STOP`.
    pub(super) fn composed_of_nothing(&mut self, id: ExprId) -> Result<ProcId> {
        if self.section(id).is_none() { self.skipped(id) } else { self.stopped(id) }
    }

    /// The set with `tock` added, in a timed section.
    pub(super) fn with_tock(&mut self, id: ExprId, set: EventSetId) -> Result<EventSetId> {
        if self.section(id).is_none() {
            return Ok(set);
        }
        let tock = self.tock(self.program.ast.span(id))?;
        let events: Vec<EventId> = self.arena.events_of(set).iter().chain([tock]).collect();
        Ok(self.arena.set_of(events))
    }

    fn only_tock(&mut self, id: ExprId) -> Result<EventSetId> {
        let tock = self.tock(self.program.ast.span(id))?;
        Ok(self.arena.set_of([tock]))
    }

    /// `STOP` where the expression stands.
    pub(super) fn stopped(&mut self, id: ExprId) -> Result<ProcId> {
        if self.section(id).is_none() {
            return Ok(self.arena.stop());
        }
        self.timed_stop(self.program.ast.span(id))
    }

    pub(super) fn timed_stop(&mut self, span: Span) -> Result<ProcId> {
        let tock = self.tock(span)?;
        let set = self.arena.set_of([tock]);
        Ok(self.arena.run(set))
    }

    /// `SKIP` where the expression stands.
    pub(super) fn skipped(&mut self, id: ExprId) -> Result<ProcId> {
        if self.section(id).is_none() {
            return Ok(self.arena.skip());
        }
        self.timed_skip(self.program.ast.span(id))
    }

    /// Terminates, or lets time pass and then terminates.
    pub(super) fn timed_skip(&mut self, span: Span) -> Result<ProcId> {
        let tock = self.tock(span)?;
        let key = vec![(EventId::TICK, ProcId(0)), (tock, ProcId(0))];
        if let Some(&known) = self.own_loops.get(&key) {
            return Ok(known);
        }
        let (call, skip) = self.own_call("TSKIP");
        let wait = self.arena.prefix(tock, skip);
        let done = self.arena.skip();
        let body = self.arena.external_choice(vec![done, wait]);
        self.define(call, body);
        self.own_loops.insert(key, skip);
        Ok(skip)
    }

    /// `delay` units of time, then `then`.
    pub(super) fn delayed(&mut self, delay: i64, then: ProcId, span: Span) -> Result<ProcId> {
        if !(0..=DELAY_MAX).contains(&delay) {
            return Err(Fault::new(span, format!("a delay of {delay} units"))
                .note(format!("delays lie between 0 and {DELAY_MAX}")));
        }
        let tock = self.tock(span)?;
        Ok((0..delay).fold(then, |rest, _| self.arena.prefix(tock, rest)))
    }

    /// What follows an event of a prefix that stands in `env`: the continuation, after the time the event takes.
    pub(super) fn after(&mut self, id: ExprId, env: &Env, value: &Value, then: ProcId) -> Result<ProcId> {
        let Some(section) = self.section(id) else { return Ok(then) };
        let span = self.program.ast.span(id);
        let function = match self.program.resolved.local_durations.get(&id).copied() {
            Some(name) => Some(self.eval(name, env)?),
            None => match self.program.resolved.durations.get(section.0 as usize).copied().flatten() {
                Some(function) => Some(self.eval(function, &None)?),
                None => None,
            },
        };
        let delay = match function {
            None => 1,
            Some(function) => match self.apply_fully(&function, vec![value.clone()], span)? {
                Value::Int(n) => n,
                other => return Err(self.wrong_kind(span, "a number", &other)),
            },
        };
        self.delayed(delay, then, span)
    }

    /// The choice of prefixes, which in a timed section waits as long as it has to.
    pub(super) fn offer(&mut self, id: ExprId, mut branches: Vec<(EventId, ProcId)>) -> Result<ProcId> {
        if self.section(id).is_none() {
            return Ok(self.arena.prefixes(branches));
        }
        let tock = self.tock(self.program.ast.span(id))?;
        branches.sort_unstable();
        if let Some(&known) = self.own_loops.get(&branches) {
            return Ok(known);
        }
        let (call, waiting) = self.own_call("timed prefix");
        let key = branches.clone();
        branches.push((tock, waiting));
        let body = self.arena.prefixes(branches);
        self.define(call, body);
        self.own_loops.insert(key, waiting);
        Ok(waiting)
    }

    pub(super) fn external(&mut self, id: ExprId, operands: Vec<ProcId>) -> Result<ProcId> {
        if self.section(id).is_none() {
            return Ok(self.arena.external_choice(operands));
        }
        let set = self.only_tock(id)?;
        let mut operands = operands.into_iter();
        let Some(first) = operands.next() else { return self.stopped(id) };
        Ok(operands.fold(first, |all, p| self.arena.sync_choice(all, set, p)))
    }

    pub(super) fn interleave(&mut self, id: ExprId, operands: Vec<ProcId>) -> Result<ProcId> {
        if self.section(id).is_none() {
            return Ok(self.arena.interleave(operands));
        }
        let set = self.only_tock(id)?;
        let set = self.arena.with_tick(set);
        Ok(self.arena.parallel(operands, set))
    }

    pub(super) fn interrupt(&mut self, id: ExprId, p: ProcId, q: ProcId) -> Result<ProcId> {
        if self.section(id).is_none() {
            return Ok(self.arena.interrupt(p, q));
        }
        let set = self.only_tock(id)?;
        Ok(self.arena.sync_interrupt(p, set, q))
    }
}
