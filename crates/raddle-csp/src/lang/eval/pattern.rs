//! Matching values with patterns.
//!
//! The parts of a dot pattern are matched like the parts of a dotted value: a constructor takes as many parts after it
//! as it has fields, and the last part of the pattern takes everything that is left.

use std::rc::Rc;

use super::env::{Frame, Slot};
use super::value::{Set, Value};
use super::{Evaluator, Result};
use crate::lang::ast::{Pat, PatId};
use crate::lang::resolve::PatRef;

/// Told about every variable that a pattern binds.
type Binder<'a> = &'a mut dyn FnMut(PatId, PatRef, Slot);

impl Evaluator {
    /// Matches an argument without evaluating it when the pattern does not look.
    pub(super) fn match_slot(&mut self, pat: PatId, slot: &Slot, frame: &Rc<Frame>) -> Result<bool> {
        self.slot_bindings(pat, slot, &mut |_, reference, slot| {
            if let PatRef::Bind { slot: place, .. } = reference {
                frame.set(place, slot);
            }
        })
    }

    pub(super) fn match_value(&mut self, pat: PatId, value: &Value, frame: &Rc<Frame>) -> Result<bool> {
        self.bindings(pat, value, &mut |_, reference, slot| {
            if let PatRef::Bind { slot: place, .. } = reference {
                frame.set(place, slot);
            }
        })
    }

    fn slot_bindings(&mut self, pat: PatId, slot: &Slot, bind: Binder) -> Result<bool> {
        match self.program.ast.pat(pat) {
            Pat::Wildcard => return Ok(true),
            Pat::Name(_) => {
                if let reference @ PatRef::Bind { .. } = self.program.resolved.pat_ref(pat) {
                    bind(pat, reference, slot.clone());
                    return Ok(true);
                }
            }
            _ => {}
        }
        let value = self.force(slot, self.program.ast.pat_span(pat))?;
        self.bindings(pat, &value, bind)
    }

    fn all_slots(&mut self, pats: &[PatId], slots: &[Slot], bind: Binder) -> Result<bool> {
        for (&pat, slot) in pats.iter().zip(slots) {
            if !self.slot_bindings(pat, slot, bind)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn bindings(&mut self, pat: PatId, value: &Value, bind: Binder) -> Result<bool> {
        let program = self.program.clone();
        Ok(match (program.ast.pat(pat), value) {
            (Pat::Error, _) => false,
            (Pat::Wildcard, _) => true,
            (Pat::Name(_) | Pat::Path(_), _) => match program.resolved.pat_ref(pat) {
                PatRef::Constructor(var) => {
                    matches!(value, Value::Data(con, list) if *con == var && list.items.is_empty())
                }
                reference @ PatRef::Bind { .. } => {
                    bind(pat, reference, Slot::Value(value.clone()));
                    true
                }
                PatRef::None => false,
            },
            (Pat::Int(n), Value::Int(m)) => n == m,
            (Pat::Bool(a), Value::Bool(b)) => a == b,
            (Pat::Char(a), Value::Char(b)) => a == b,
            (Pat::Str(text), Value::Seq(_) | Value::Stream(_)) => {
                let span = program.ast.pat_span(pat);
                self.equal(value, &Value::string(text), span)?
            }
            (Pat::Tuple(pats), Value::Tuple(list)) => {
                pats.len() == list.items.len() && self.all(pats, &list.items, bind)?
            }
            (Pat::Tuple(pats), Value::Lazy(lazy)) => {
                pats.len() == lazy.slots.len() && self.all_slots(pats, &lazy.slots, bind)?
            }
            (Pat::Seq(pats), Value::Stream(_)) => {
                let span = program.ast.pat_span(pat);
                match self.take_front(value, pats.len(), span)? {
                    Some((front, rest)) => {
                        let rest = self.force(&rest, span)?;
                        self.uncons(&rest, span)?.is_none() && self.all_slots(pats, &front, bind)?
                    }
                    None => false,
                }
            }
            (Pat::Seq(pats), Value::Seq(seq)) => {
                pats.len() == seq.items().len() && self.all(pats, seq.items(), bind)?
            }
            (Pat::Set(pats), Value::Set(Set::List(list))) => {
                pats.len() == list.items.len() && self.all(pats, &list.items, bind)?
            }
            (Pat::Concat(..), Value::Seq(_) | Value::SeqFrom(_) | Value::Stream(_)) => {
                self.concat(pat, value, bind)?
            }
            (Pat::Dot(..), _) => {
                let pats = self.dot_parts(pat);
                self.dotted(&pats, value, bind)?
            }
            (Pat::As(a, b), _) => self.bindings(*a, value, bind)? && self.bindings(*b, value, bind)?,
            _ => false,
        })
    }

    fn all(&mut self, pats: &[PatId], values: &[Value], bind: Binder) -> Result<bool> {
        for (&pat, value) in pats.iter().zip(values) {
            if !self.bindings(pat, value, bind)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `p1 ^ p2 ^ ...`: all parts but one have a known length, the open one takes the rest.
    fn concat(&mut self, pat: PatId, value: &Value, bind: Binder) -> Result<bool> {
        let program = self.program.clone();
        let mut parts = Vec::new();
        let mut todo = vec![pat];
        while let Some(pat) = todo.pop() {
            match program.ast.pat(pat) {
                Pat::Concat(a, b) => todo.extend([*b, *a]),
                _ => parts.push(pat),
            }
        }
        let length = |pat: PatId| match program.ast.pat(pat) {
            Pat::Seq(list) => Some(list.len()),
            Pat::Str(text) => Some(text.chars().count()),
            _ => None,
        };
        if let (Some((&last, front)), true) = (parts.split_last(), !matches!(value, Value::Seq(_))) {
            // The known front comes off without asking for more; the rest may be delayed.
            let span = program.ast.pat_span(pat);
            if length(last).is_none() && front.iter().all(|&p| length(p).is_some()) {
                let mut rest = Slot::Value(value.clone());
                for &part in front {
                    let at = self.force(&rest, span)?;
                    let n = length(part).unwrap_or(0);
                    let Some((taken, after)) = self.take_front(&at, n, span)? else { return Ok(false) };
                    let matched = match program.ast.pat(part) {
                        Pat::Seq(pats) => self.all_slots(pats, &taken, bind)?,
                        _ => {
                            let items = taken
                                .iter()
                                .map(|slot| self.force_fully(slot, span))
                                .collect::<Result<Vec<_>>>()?;
                            self.bindings(part, &Value::Seq(super::value::Seq::new(items)), bind)?
                        }
                    };
                    if !matched {
                        return Ok(false);
                    }
                    rest = after;
                }
                return self.slot_bindings(last, &rest, bind);
            }
            if matches!(value, Value::SeqFrom(_)) {
                return Err(super::expr::endless_sequence(span));
            }
            let listed = self.complete(value.clone(), span)?;
            return self.concat(pat, &listed, bind);
        }
        let Value::Seq(seq) = value else { return Ok(false) };
        let open = parts.iter().filter(|&&p| length(p).is_none()).count();
        if open > 1 {
            return Err(super::Fault::new(
                program.ast.pat_span(pat),
                "this pattern is ambiguous: more than one part has no fixed length",
            ));
        }
        let fixed: usize = parts.iter().filter_map(|&p| length(p)).sum();
        let total = seq.items().len();
        if total < fixed || (open == 0 && total != fixed) {
            return Ok(false);
        }
        let mut rest = seq.clone();
        for (i, &part) in parts.iter().enumerate() {
            let n = length(part).unwrap_or(total - fixed);
            let matched = if i + 1 == parts.len() {
                self.bindings(part, &Value::Seq(rest.clone()), bind)?
            } else {
                let items = rest.items()[..n].to_vec();
                self.bindings(part, &Value::Seq(super::value::Seq::new(items)), bind)?
            };
            if !matched {
                return Ok(false);
            }
            rest = rest.skip(n);
        }
        Ok(true)
    }

    pub(super) fn dot_parts(&self, pat: PatId) -> Vec<PatId> {
        let mut parts = Vec::new();
        let mut todo = vec![pat];
        while let Some(pat) = todo.pop() {
            match self.program.ast.pat(pat) {
                Pat::Dot(a, b) => todo.extend([*b, *a]),
                _ => parts.push(pat),
            }
        }
        parts
    }

    /// How many values the parts of a dot pattern stand for, constructors taken with their fields.
    pub(super) fn dot_width(&self, pat: PatId) -> usize {
        let parts = self.dot_parts(pat);
        let (mut at, mut width) = (0, 0);
        while at < parts.len() {
            at = self.skip_value(&parts, at);
            width += 1;
        }
        width
    }

    fn skip_value(&self, parts: &[PatId], at: usize) -> usize {
        let PatRef::Constructor(var) = self.program.resolved.pat_ref(parts[at]) else { return at + 1 };
        let mut next = at + 1;
        for _ in 0..self.arity(var) {
            if next >= parts.len() {
                break;
            }
            next = self.skip_value(parts, next);
        }
        next
    }

    /// How many values one part of a dot pattern stands for: more than one only for `p @@ q`, whose sides may be dots.
    fn part_width(&self, pat: PatId) -> usize {
        match self.program.ast.pat(pat) {
            Pat::As(a, b) => self.part_width(*a).max(self.part_width(*b)),
            Pat::Dot(..) => {
                let parts = self.dot_parts(pat);
                let (mut at, mut width) = (0, 0);
                while at < parts.len() {
                    width += self.part_width(parts[at]);
                    at = self.skip_value(&parts, at);
                }
                width
            }
            _ => 1,
        }
    }

    /// Matches the parts of a dot pattern with the parts of a value.
    ///
    /// A constructor is taken off the front of the value and leaves its fields there, so that the parts after it may
    /// reach from its last field into those of the constructor around it: `B.D.x` matches `B.(D.0).true` with `0.true`
    /// for `x`.
    fn dotted(&mut self, pats: &[PatId], value: &Value, bind: Binder) -> Result<bool> {
        let mut rest = super::lazy::dot_parts(value);
        rest.reverse();
        for (i, &pat) in pats.iter().enumerate() {
            if let PatRef::Constructor(var) = self.program.resolved.pat_ref(pat) {
                match rest.pop() {
                    Some(Value::Data(con, fields)) if con == var => {
                        rest.extend(fields.items.iter().rev().cloned());
                    }
                    _ => return Ok(false),
                }
                continue;
            }
            let width = if i + 1 == pats.len() { rest.len().max(1) } else { self.part_width(pat) };
            if rest.len() < width {
                return Ok(false);
            }
            let mut taken = rest.split_off(rest.len() - width);
            taken.reverse();
            let value = match taken.len() {
                1 => taken.swap_remove(0),
                _ => super::lazy::dot_of(taken),
            };
            if !self.bindings(pat, &value, bind)? {
                return Ok(false);
            }
        }
        Ok(rest.is_empty())
    }
}
