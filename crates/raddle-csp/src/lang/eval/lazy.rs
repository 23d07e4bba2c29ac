//! Lazy data: tuples, sequences, maps and dots of which not everything has been evaluated.
//!
//! FDR evaluates the components of tuples, the elements of sequences and the values of maps when they are needed;
//! `head(<1, f(2)>)` does not ask what `f(2)` is, and `<x*x | x <- <0..>>` is a value as long as nobody wants all of it. Most data is small,
//! though, and cheaper to keep evaluated than delayed. So evaluation is *optimistic* (after Ennals and Peyton Jones
//! 2003): a component is evaluated at once, but with little fuel; when it fails or the fuel runs out, what was done is
//! forgotten and the component becomes a thunk, whose failure is reported only if somebody needs it. Evaluation has no
//! effects, so forgetting is safe.
//!
//! The fuel has two marks. After the *soft* one nothing new is tried, so that `f(n) = <n>^f(n+1)` gives a stretch of
//! evaluated cells with a thunk at its end rather than nothing; after the *hard* one what runs is given up.
//!
//! Where FDR is strict, so are we. A field of a constructor or channel is looked at as soon as it is given, because it
//! has to be one of the values declared; the elements of sets and the keys of maps are compared; the parts of a dot that
//! no constructor takes are evaluated until it is known whether they are dots themselves, but no further: in `1.(2, f(3))`
//! nobody asks what `f(3)` is.
//!
//! A value is *lazy* if it is a [`Value::Lazy`] tuple, a [`Value::Stream`], a [`Value::LazyMap`] or a
//! [`Value::LazyDot`]; components of all other values are complete. Only complete values are compared by order, hashed,
//! put into sets, constructors and keys of maps, or passed to processes; [`Evaluator::complete`] makes them so. Sequences that are known to be endless are reported there at once, others
//! after [`STREAM_MAX`] elements.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::env::{Env, Frame, Generator, Slot, State};
use super::expr::endless_sequence;
use super::value::{Lazy, LazyMap, List, Seq, Stream, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::ast::{Expr, ExprId, Items, Stmt};
use crate::lang::source::Span;

/// Steps after which an optimistic evaluation tries nothing new.
const SOFT_STEPS: u64 = 256;
/// Steps after which an optimistic evaluation is given up.
const HARD_STEPS: u64 = 4_096;
/// Steps after which listing a comprehension is given up in favour of a stream. Many, because a long list is better kept
/// as one; it is an element that takes for ever that this is about.
const LISTING_STEPS: u64 = 10_000_000;
/// Most elements that are taken from a sequence that was not listed at once.
const STREAM_MAX: usize = 250_000;
/// How far an unevaluated sequence is looked into to find out that it has no end.
const LOOK_MAX: u32 = 16;

/// The marks of the optimistic evaluation that is going on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fuel {
    pub soft: u64,
    pub hard: u64,
}

impl Fuel {
    pub const UNLIMITED: Fuel = Fuel { soft: u64::MAX, hard: u64::MAX };
}

impl Evaluator {
    /// Evaluates a component if that is quick and succeeds; delays it otherwise.
    pub(super) fn optimistic(&mut self, expr: ExprId, env: &Env) -> Slot {
        if let Some(value) = self.speculate(expr, env, 0) {
            return Slot::Value(value);
        }
        if self.steps <= self.fuel.soft {
            let tried = self.rationed(SOFT_STEPS, HARD_STEPS, |this| this.eval(expr, env));
            if let Ok(value) = tried {
                return Slot::Value(value);
            }
        }
        Slot::Thunk(self.thunk(State::Pending(expr, env.clone())))
    }

    /// The same for something that was delayed before.
    pub(super) fn settled(&mut self, slot: &Slot, span: Span) -> Slot {
        if let (Slot::Thunk(thunk), true) = (slot, self.steps <= self.fuel.soft) {
            let tried = self.rationed(SOFT_STEPS, HARD_STEPS, |this| this.force_thunk(thunk, span));
            if let Ok(value) = tried {
                return Slot::Value(value);
            }
        }
        slot.clone()
    }

    /// `left.right`, where one of them is lazy.
    pub(super) fn lazy_dot(&mut self, left: &Value, right: &Value, span: Span) -> Result<Value> {
        let mut parts = dot_parts(left);
        for part in dot_parts(right) {
            match parts.pop() {
                Some(last) if !self.is_complete(&last) => {
                    let field = self.complete(part, span)?;
                    parts.push(self.dot(last, &field));
                }
                last => {
                    parts.extend(last);
                    parts.push(part);
                }
            }
        }
        Ok(dot_of(parts))
    }

    /// Runs something that may be given up and forgotten.
    fn rationed<T>(&mut self, soft: u64, hard: u64, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = self.fuel;
        self.fuel = Fuel {
            soft: outer.soft.min(self.steps.saturating_add(soft)),
            hard: outer.hard.min(self.steps.saturating_add(hard)),
        };
        let result = run(self);
        self.fuel = outer;
        result
    }

    /// A tuple of components that may be delayed.
    pub(super) fn tuple(&mut self, exprs: &[ExprId], env: &Env, span: Span) -> Result<Value> {
        let slots: Vec<Slot> = exprs.iter().map(|&e| self.optimistic(e, env)).collect();
        let value = match evaluated(&slots) {
            Some(items) => Value::Tuple(Rc::new(List::new(items))),
            None => Value::Lazy(Rc::new(Lazy::new(slots))),
        };
        self.bounded(span, value)
    }

    /// A sequence of elements that may be delayed.
    pub(super) fn sequence_of(&mut self, exprs: &[ExprId], env: &Env, span: Span) -> Result<Value> {
        let slots: Vec<Slot> = exprs.iter().map(|&e| self.optimistic(e, env)).collect();
        let value = match evaluated(&slots) {
            Some(items) => Value::Seq(Seq::new(items)),
            None => cells(slots, Slot::Value(Value::Seq(Seq::new(Vec::new())))),
        };
        self.bounded(span, value)
    }

    /// The same value with everything in it evaluated.
    pub(super) fn complete(&mut self, value: Value, span: Span) -> Result<Value> {
        match value {
            Value::Lazy(lazy) => self.deeper(span, |this| {
                let mut items = Vec::with_capacity(lazy.slots.len());
                for slot in &lazy.slots {
                    items.push(this.force_fully(slot, span)?);
                }
                this.bounded(span, Value::Tuple(Rc::new(List::new(items))))
            }),
            Value::Stream(_) => self.deeper(span, |this| {
                let mut items = Vec::new();
                this.each(value, span, &mut |this, slot| {
                    items.push(this.force_fully(slot, span)?);
                    Ok(true)
                })?;
                this.bounded(span, Value::Seq(Seq::new(items)))
            }),
            Value::LazyMap(map) => self.deeper(span, |this| {
                let mut entries = BTreeMap::new();
                for (key, slot) in &map.entries {
                    entries.insert(key.clone(), this.force_fully(slot, span)?);
                }
                this.bounded(span, Value::Map(Rc::new(entries)))
            }),
            Value::LazyDot(_) => self.deeper(span, |this| {
                let parts = dot_parts(&value)
                    .into_iter()
                    .map(|part| this.complete(part, span))
                    .collect::<Result<Vec<_>>>()?;
                this.bounded(span, Value::dotted(parts))
            }),
            other => Ok(other),
        }
    }

    pub(super) fn force_fully(&mut self, slot: &Slot, span: Span) -> Result<Value> {
        let value = self.force(slot, span)?;
        self.complete(value, span)
    }

    /// The value of an expression with everything in it evaluated.
    pub(super) fn eval_fully(&mut self, expr: ExprId, env: &Env) -> Result<Value> {
        let value = self.eval(expr, env)?;
        self.complete(value, self.program.ast.span(expr))
    }

    /// Runs `body` for all elements of a sequence; one that is known to be endless is refused at once.
    pub(super) fn each(
        &mut self,
        sequence: Value,
        span: Span,
        body: &mut dyn FnMut(&mut Evaluator, &Slot) -> Result<bool>,
    ) -> Result<()> {
        if is_endless(&Slot::Value(sequence.clone()), 0) {
            return Err(endless_sequence(span));
        }
        self.each_of_endless(sequence, span, body)
    }

    /// Runs `body` for the elements of a sequence from the left until it says `false`.
    pub(super) fn each_of_endless(
        &mut self,
        mut sequence: Value,
        span: Span,
        body: &mut dyn FnMut(&mut Evaluator, &Slot) -> Result<bool>,
    ) -> Result<()> {
        let mut count = 0;
        loop {
            match &sequence {
                Value::Seq(seq) => {
                    for item in seq.items() {
                        if !body(self, &Slot::Value(item.clone()))? {
                            return Ok(());
                        }
                    }
                    return Ok(());
                }
                Value::Stream(_) | Value::SeqFrom(_) => {
                    count += 1;
                    if count > STREAM_MAX {
                        return Err(Fault::new(span, "this sequence does not seem to end")
                            .note(format!("stopped after {STREAM_MAX} elements")));
                    }
                    let Some((head, rest)) = self.uncons(&sequence, span)? else { return Ok(()) };
                    if !body(self, &head)? {
                        return Ok(());
                    }
                    sequence = self.force(&rest, span)?;
                }
                other => return Err(self.wrong_kind(span, "a sequence", other)),
            }
        }
    }

    /// The first element of a sequence and what follows it.
    pub(super) fn uncons(&mut self, sequence: &Value, span: Span) -> Result<Option<(Slot, Slot)>> {
        Ok(match sequence {
            Value::Seq(seq) => seq
                .items()
                .first()
                .map(|first| (Slot::Value(first.clone()), Slot::Value(Value::Seq(seq.skip(1))))),
            Value::SeqFrom(n) => match n.checked_add(1) {
                Some(next) => Some((Slot::Value(Value::Int(*n)), Slot::Value(Value::SeqFrom(next)))),
                None => return Err(super::expr::overflow(span)),
            },
            Value::Stream(cell) => Some((cell.head.clone(), cell.rest.clone())),
            other => return Err(self.wrong_kind(span, "a sequence", other)),
        })
    }

    /// Takes up to `n` elements off a sequence: what was taken, and what is left.
    pub(super) fn take_front(
        &mut self,
        sequence: &Value,
        n: usize,
        span: Span,
    ) -> Result<Option<(Vec<Slot>, Slot)>> {
        let mut taken = Vec::new();
        let mut rest = Slot::Value(sequence.clone());
        while taken.len() < n {
            let value = self.force(&rest, span)?;
            let Some((head, tail)) = self.uncons(&value, span)? else { return Ok(None) };
            taken.push(head);
            rest = tail;
        }
        Ok(Some((taken, rest)))
    }

    /// `left ^ right`, where `right` may be delayed.
    pub(super) fn joined(&mut self, left: Value, right: Slot, span: Span) -> Result<Value> {
        let value = match left {
            Value::Seq(a) if a.items().is_empty() => return self.force(&right, span),
            Value::Seq(a) => match right {
                Slot::Value(Value::Seq(b)) => {
                    let items = [a.items(), b.items()].concat();
                    self.check_size(span, items.len())?;
                    Value::Seq(Seq::new(items))
                }
                right => cells(a.items().iter().cloned().map(Slot::Value).collect(), right),
            },
            // What comes after an endless sequence is never reached.
            Value::SeqFrom(_) => left,
            Value::Stream(cell) => {
                let rest = self.thunk(State::Append(cell.rest.clone(), right));
                Value::Stream(Rc::new(Stream::new(cell.head.clone(), Slot::Thunk(rest))))
            }
            other => return Err(self.wrong_kind(span, "a sequence", &other)),
        };
        self.bounded(span, value)
    }

    /// The sequence that a thunk of two sequences stands for.
    pub(super) fn appended(&mut self, left: &Slot, right: &Slot, span: Span) -> Result<Value> {
        self.deeper(span, |this| {
            this.step(span)?;
            let left = this.force(left, span)?;
            this.joined(left, right.clone(), span)
        })
    }

    /// `concat(sequence)`
    pub(super) fn concatenated(&mut self, sequence: Value, span: Span) -> Result<Value> {
        self.deeper(span, |this| {
            let mut rest = Slot::Value(sequence);
            loop {
                this.step(span)?;
                let value = this.force(&rest, span)?;
                let Some((head, tail)) = this.uncons(&value, span)? else {
                    return Ok(Value::Seq(Seq::new(Vec::new())));
                };
                let head = this.force(&head, span)?;
                if !matches!(&head, Value::Seq(seq) if seq.items().is_empty()) {
                    let rest = this.thunk(State::Concat(tail));
                    return this.joined(head, Slot::Thunk(rest), span);
                }
                rest = tail;
            }
        })
    }

    // ---- comparison

    /// `a == b`, looking no further than the first difference.
    pub(super) fn equal(&mut self, a: &Value, b: &Value, span: Span) -> Result<bool> {
        match (a, b) {
            (Value::Lazy(_), Value::Lazy(_) | Value::Tuple(_)) | (Value::Tuple(_), Value::Lazy(_)) => self
                .deeper(span, |this| {
                    let (x, y) = (slots_of(a), slots_of(b));
                    for (p, q) in x.iter().zip(&y) {
                        let (p, q) = (this.force(p, span)?, this.force(q, span)?);
                        if !this.equal(&p, &q, span)? {
                            return Ok(false);
                        }
                    }
                    Ok(x.len() == y.len())
                }),
            (Value::LazyDot(_), Value::LazyDot(_) | Value::Dot(_)) | (Value::Dot(_), Value::LazyDot(_)) => {
                let (x, y) = (dot_parts(a), dot_parts(b));
                self.deeper(span, |this| {
                    for (p, q) in x.iter().zip(&y) {
                        if !this.equal(p, q, span)? {
                            return Ok(false);
                        }
                    }
                    Ok(x.len() == y.len())
                })
            }
            (Value::LazyMap(_), Value::LazyMap(_) | Value::Map(_)) | (Value::Map(_), Value::LazyMap(_)) => {
                let (x, y) = (entries_of(a), entries_of(b));
                self.deeper(span, |this| {
                    if !x.keys().eq(y.keys()) {
                        return Ok(false);
                    }
                    for (p, q) in x.values().zip(y.values()) {
                        let (p, q) = (this.force(p, span)?, this.force(q, span)?);
                        if !this.equal(&p, &q, span)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                })
            }
            (Value::Stream(_), _) | (_, Value::Stream(_)) => Ok(self.shared(a, b, span)?.0 == Shared::Both),
            // `<n..>` against a listed sequence: different, because one of them ends.
            _ => Ok(a == b),
        }
    }

    /// Whether `a` is a prefix of `b`, and whether they are equal.
    pub(super) fn prefix_of(&mut self, a: &Value, b: &Value, span: Span) -> Result<(bool, bool)> {
        let ended = self.shared(a, b, span)?.0;
        Ok((matches!(ended, Shared::Left | Shared::Both), ended == Shared::Both))
    }

    /// Walks along two sequences as long as they agree.
    fn shared(&mut self, a: &Value, b: &Value, span: Span) -> Result<(Shared, usize)> {
        self.deeper(span, |this| {
            let (mut a, mut b) = (a.clone(), b.clone());
            let mut count = 0;
            loop {
                this.step(span)?;
                if let (Value::SeqFrom(x), Value::SeqFrom(y)) = (&a, &b) {
                    let ended = if x == y { Shared::Both } else { Shared::Neither };
                    return Ok((ended, count));
                }
                let (p, q) = match (this.uncons(&a, span)?, this.uncons(&b, span)?) {
                    (None, None) => return Ok((Shared::Both, count)),
                    (None, Some(_)) => return Ok((Shared::Left, count)),
                    (Some(_), None) => return Ok((Shared::Right, count)),
                    (Some(p), Some(q)) => (p, q),
                };
                let (x, y) = (this.force(&p.0, span)?, this.force(&q.0, span)?);
                if !this.equal(&x, &y, span)? {
                    return Ok((Shared::Neither, count));
                }
                count += 1;
                if count > STREAM_MAX {
                    return Err(Fault::new(span, "these sequences do not seem to end")
                        .note(format!("they agree in {STREAM_MAX} elements")));
                }
                (a, b) = (this.force(&p.1, span)?, this.force(&q.1, span)?);
            }
        })
    }

    // ---- comprehensions

    /// `<items | statements>`: listed if that is quick, a stream otherwise.
    pub(super) fn sequence(&mut self, id: ExprId, env: &Env, span: Span) -> Result<Value> {
        let program = self.program.clone();
        let Expr::Seq(items, stmts) = program.ast.expr(id) else {
            return Err(Fault::new(span, "this is not a sequence"));
        };
        // Without statements there is no frame.
        let Some(&slots) = program.resolved.frames.get(&id) else {
            return self.elements(items, env, span);
        };
        let frame = self.frame(slots, env);
        if let Some(Stmt::Generator(_, from)) = stmts.first() {
            let source = self.eval(*from, &Some(frame.clone()))?;
            if matches!(source, Value::Stream(_) | Value::SeqFrom(_)) {
                return self.generate(&Generator { expr: id, at: 0, source: Slot::Value(source), frame });
            }
            let listed = self.rationed(u64::MAX, LISTING_STEPS, |this| {
                let mut out = Vec::new();
                this.over(source.clone(), stmts, frame.clone(), &mut |this, env| {
                    this.items(items, env, span, &mut out)?;
                    this.check_size(span, out.len())
                })?;
                this.bounded(span, Value::Seq(Seq::new(out)))
            });
            return match listed {
                Ok(value) => Ok(value),
                Err(_) => self.generate(&Generator { expr: id, at: 0, source: Slot::Value(source), frame }),
            };
        }
        self.comprehension(id, 0, frame)
    }

    /// The sequence that the statements from `at` on give.
    fn comprehension(&mut self, expr: ExprId, mut at: usize, frame: Rc<Frame>) -> Result<Value> {
        let program = self.program.clone();
        let span = program.ast.span(expr);
        let Expr::Seq(items, stmts) = program.ast.expr(expr) else {
            return Err(Fault::new(span, "this is not a sequence"));
        };
        let env: Env = Some(frame.clone());
        loop {
            match stmts.get(at) {
                None => return self.elements(items, &env, span),
                Some(Stmt::Condition(condition)) => {
                    if !self.boolean(*condition, &env)? {
                        return Ok(Value::Seq(Seq::new(Vec::new())));
                    }
                    at += 1;
                }
                Some(Stmt::Generator(_, from)) => {
                    let source = Slot::Value(self.eval(*from, &env)?);
                    return self.generate(&Generator { expr, at, source, frame });
                }
            }
        }
    }

    /// What the values that are left of a generator give: at least one element, or nothing.
    pub(super) fn generate(&mut self, generator: &Generator) -> Result<Value> {
        let program = self.program.clone();
        let Generator { expr, at, source, frame } = generator;
        let span = program.ast.span(*expr);
        let Expr::Seq(_, stmts) = program.ast.expr(*expr) else {
            return Err(Fault::new(span, "this is not a sequence"));
        };
        let Some(Stmt::Generator(pat, from)) = stmts.get(*at) else {
            return Err(Fault::new(span, "this is not a generator"));
        };
        let from = program.ast.span(*from);
        self.deeper(span, |this| {
            let mut source = source.clone();
            loop {
                this.step(span)?;
                let value = match this.force(&source, from)? {
                    Value::Set(set) => Value::Seq(Seq::new(this.listed(&set, from)?.items.clone())),
                    other => other,
                };
                let Some((item, rest)) = this.uncons(&value, from)? else {
                    return Ok(Value::Seq(Seq::new(Vec::new())));
                };
                let id = this.fresh_id();
                let next = frame.copy(id);
                if this.match_slot(*pat, &item, &next)? {
                    let found = this.comprehension(*expr, at + 1, next)?;
                    if !matches!(&found, Value::Seq(seq) if seq.items().is_empty()) {
                        let rest = Generator { expr: *expr, at: *at, source: rest, frame: frame.clone() };
                        let rest = this.thunk(State::Rest(Box::new(rest)));
                        return this.joined(found, Slot::Thunk(rest), span);
                    }
                }
                source = rest;
            }
        })
    }

    /// The sequence of what stands before the bar.
    fn elements(&mut self, items: &Items, env: &Env, span: Span) -> Result<Value> {
        match items {
            Items::List(list) => self.sequence_of(list, env, span),
            Items::From(start) => Ok(Value::SeqFrom(self.integer(*start, env)?)),
            Items::Range(..) => {
                let mut out = Vec::new();
                self.items(items, env, span, &mut out)?;
                Ok(Value::Seq(Seq::new(out)))
            }
        }
    }
}

/// Where two sequences stop to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shared {
    /// Both end at the same place.
    Both,
    /// The left one ends first.
    Left,
    Right,
    /// They differ.
    Neither,
}

/// All components, if they are complete values.
fn evaluated(slots: &[Slot]) -> Option<Vec<Value>> {
    slots
        .iter()
        .map(|slot| match slot {
            Slot::Value(value) if !value.is_lazy() => Some(value.clone()),
            _ => None,
        })
        .collect()
}

/// The components of a tuple.
fn slots_of(tuple: &Value) -> Vec<Slot> {
    match tuple {
        Value::Lazy(lazy) => lazy.slots.clone(),
        Value::Tuple(list) => list.items.iter().cloned().map(Slot::Value).collect(),
        _ => Vec::new(),
    }
}

/// The entries of a map.
pub(super) fn entries_of(map: &Value) -> BTreeMap<Value, Slot> {
    match map {
        Value::LazyMap(map) => map.entries.clone(),
        Value::Map(map) => map.iter().map(|(k, v)| (k.clone(), Slot::Value(v.clone()))).collect(),
        _ => BTreeMap::new(),
    }
}

/// The map with these entries.
pub(super) fn map_of(entries: BTreeMap<Value, Slot>) -> Value {
    let is_complete = |slot: &Slot| matches!(slot, Slot::Value(value) if !value.is_lazy());
    if !entries.values().all(is_complete) {
        return Value::LazyMap(Rc::new(LazyMap::new(entries)));
    }
    let known = entries.into_iter().filter_map(|(key, slot)| match slot {
        Slot::Value(value) => Some((key, value)),
        _ => None,
    });
    Value::Map(Rc::new(known.collect()))
}

/// The parts of a dot, lazy or not; a single part for everything else.
pub(super) fn dot_parts(value: &Value) -> Vec<Value> {
    match value {
        Value::LazyDot(lazy) => lazy
            .slots
            .iter()
            .filter_map(|slot| if let Slot::Value(part) = slot { Some(part.clone()) } else { None })
            .collect(),
        other => other.parts().to_vec(),
    }
}

/// One value of several parts, of which some may be lazy.
pub(super) fn dot_of(parts: Vec<Value>) -> Value {
    if parts.len() == 1 || !parts.iter().any(Value::is_lazy) {
        return Value::dotted(parts);
    }
    Value::LazyDot(Rc::new(Lazy::new(parts.into_iter().map(Slot::Value).collect())))
}

/// A stream that begins with these elements.
pub(super) fn cells(heads: Vec<Slot>, rest: Slot) -> Value {
    let empty = Value::Seq(Seq::new(Vec::new()));
    let mut sequence = rest;
    for head in heads.into_iter().rev() {
        sequence = Slot::Value(Value::Stream(Rc::new(Stream::new(head, sequence))));
    }
    match sequence {
        Slot::Value(value) => value,
        _ => empty,
    }
}

/// Whether a sequence is known to have no end, without evaluating anything.
fn is_endless(slot: &Slot, looked: u32) -> bool {
    if looked > LOOK_MAX {
        return false;
    }
    match slot {
        Slot::Value(Value::SeqFrom(_)) => true,
        Slot::Value(Value::Stream(cell)) => is_endless(&cell.rest, looked + 1),
        Slot::Value(_) | Slot::Empty => false,
        Slot::Thunk(thunk) => match &*thunk.state.borrow() {
            State::Done(value) => is_endless(&Slot::Value(value.clone()), looked + 1),
            State::Append(left, right) => is_endless(left, looked + 1) || is_endless(right, looked + 1),
            State::Rest(generator) => is_endless(&generator.source, looked + 1),
            _ => false,
        },
    }
}
