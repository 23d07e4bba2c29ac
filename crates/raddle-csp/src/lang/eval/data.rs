//! Constructors, channels, dots and events.
//!
//! A constructor or channel is a value that collects fields: `c.0.1` is `c` with two. How many it takes is known from
//! its type; which values a field may have is the set written in its declaration, evaluated when it is first needed.
//! A written field may stand for several dotted values (`channel c : Pair.Bool` with `nametype Pair = A.B`).

use std::rc::Rc;

use super::value::{List, Set, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::ast::{Decl, DeclId, Expr, ExprId};
use crate::lang::resolve::{VarId, VarKind};
use crate::lang::source::Span;
use crate::process::{EventId, EventSetId};

impl Evaluator {
    /// The number of values a constructor or channel takes.
    pub(super) fn arity(&self, con: VarId) -> usize {
        self.program.types.fields.get(&con).map_or(0, |widths| widths.iter().sum())
    }

    pub(super) fn is_complete(&self, value: &Value) -> bool {
        match value {
            Value::Data(con, fields) => {
                fields.items.len() == self.arity(*con)
                    && fields.items.last().is_none_or(|f| self.is_complete(f))
            }
            Value::Dot(parts) => parts.items.last().is_none_or(|p| self.is_complete(p)),
            _ => true,
        }
    }

    /// `a.b`
    pub(super) fn dot(&self, left: Value, right: &Value) -> Value {
        let mut whole: Vec<Value> = left.parts().to_vec();
        for part in right.parts() {
            match whole.last_mut() {
                Some(last) if !self.is_complete(last) => *last = self.feed(last, part),
                _ => whole.push(part.clone()),
            }
        }
        Value::dotted(whole)
    }

    /// Gives an incomplete constructor its next field, or that field's next field.
    fn feed(&self, data: &Value, field: &Value) -> Value {
        let Value::Data(con, fields) = data else { return data.clone() };
        let mut items = fields.items.clone();
        match items.last_mut() {
            Some(last) if !self.is_complete(last) => *last = self.feed(last, field),
            _ => items.push(field.clone()),
        }
        Value::Data(*con, Rc::new(List::new(items)))
    }

    // ---- sets of types

    /// The values of a datatype, subtype or nametype.
    pub(super) fn type_set(&mut self, decl: DeclId, span: Span) -> Result<Set> {
        if let Some(set) = self.type_sets.get(&decl) {
            return Ok(set.clone());
        }
        if let Some(entry) = self.listing.iter_mut().find(|(d, _)| *d == decl) {
            entry.1 = true;
            return Ok(Set::Datatype(decl));
        }
        self.listing.push((decl, false));
        let result = self.deeper(span, |this| this.list_type(decl, span));
        let recursive = self.listing.pop().is_some_and(|(_, recursive)| recursive);
        let set = if recursive { Set::Datatype(decl) } else { result? };
        // What was listed while an outer datatype was open may mention that one only as a description.
        if self.listing.is_empty() || !recursive {
            self.type_sets.insert(decl, set.clone());
        }
        Ok(set)
    }

    fn list_type(&mut self, decl: DeclId, span: Span) -> Result<Set> {
        let program = self.program.clone();
        match program.ast.decl(decl) {
            Decl::Nametype { set, .. } => self.field_set(*set),
            Decl::Datatype { variants, .. } => {
                let mut out = Vec::new();
                for &con in program.resolved.defines.get(&decl).map_or(&[][..], |v| &v[1..]) {
                    let sets = self.fields_of(con, span)?;
                    if sets.iter().any(|s| !matches!(s, Set::List(_))) {
                        return Ok(Set::Datatype(decl));
                    }
                    out.extend(self.completions(&Value::Data(con, Rc::default()), span)?);
                    self.check_size(span, out.len())?;
                }
                debug_assert!(out.len() >= variants.iter().filter(|v| v.fields.is_none()).count());
                Ok(Set::of(out))
            }
            Decl::Subtype { variants, .. } => {
                let mut out = Vec::new();
                for variant in variants {
                    let key = (decl, variant.name.name.clone());
                    let Some(&con) = program.resolved.signature_types.get(&key) else { continue };
                    let head = Value::Data(con, Rc::default());
                    let place = variant.fields.map_or(variant.name.span, |f| program.ast.span(f));
                    match variant.fields {
                        None => out.extend(self.completions(&head, place)?),
                        Some(fields) => {
                            let set = self.field_set(fields)?;
                            for value in self.listed(&set, place)?.items.iter() {
                                let begun = self.dot(head.clone(), value);
                                out.extend(self.completions(&begun, place)?);
                            }
                        }
                    }
                    self.check_size(place, out.len())?;
                }
                Ok(Set::of(out))
            }
            _ => Err(Fault::new(span, "this is not a type")),
        }
    }

    /// The set of a written field: a product of sets for dots and tuples.
    fn field_set(&mut self, expr: ExprId) -> Result<Set> {
        let program = self.program.clone();
        let span = program.ast.span(expr);
        match program.ast.expr(expr) {
            Expr::Paren(inner) => self.field_set(*inner),
            Expr::Dot(a, b) => {
                let sets = vec![self.field_set(*a)?, self.field_set(*b)?];
                self.product(sets, span, |this, parts| {
                    let mut parts = parts.into_iter();
                    let first = parts.next().unwrap_or(Value::Bool(false));
                    parts.fold(first, |whole, part| this.dot(whole, &part))
                })
                .map(|r| r.unwrap_or_else(Set::Dots))
            }
            Expr::Tuple(list) => {
                let sets = list.iter().map(|&e| self.field_set(e)).collect::<Result<Vec<_>>>()?;
                self.product(sets, span, |_, parts| Value::Tuple(Rc::new(List::new(parts))))
                    .map(|r| r.unwrap_or_else(Set::Tuples))
            }
            _ => match self.eval(expr, &None)? {
                Value::Set(set) => Ok(set),
                other => Err(self.wrong_kind(span, "a set", &other)),
            },
        }
    }

    /// All combinations, or the sets themselves when one has no end.
    fn product(
        &mut self,
        sets: Vec<Set>,
        span: Span,
        join: impl Fn(&Self, Vec<Value>) -> Value,
    ) -> Result<std::result::Result<Set, Rc<Vec<Set>>>> {
        if sets.iter().any(|s| !matches!(s, Set::List(_))) {
            return Ok(Err(Rc::new(sets)));
        }
        let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
        for set in &sets {
            let items = self.listed(set, span)?;
            self.check_size(span, rows.len().saturating_mul(items.items.len()))?;
            rows = rows
                .iter()
                .flat_map(|row| {
                    items.items.iter().map(|item| [&row[..], std::slice::from_ref(item)].concat())
                })
                .collect();
        }
        Ok(Ok(Set::of(rows.into_iter().map(|row| join(self, row)).collect())))
    }

    /// The sets of the written fields of a constructor or channel.
    pub(super) fn fields_of(&mut self, con: VarId, span: Span) -> Result<Rc<Vec<Set>>> {
        if let Some(sets) = self.field_sets.get(&con) {
            return Ok(sets.clone());
        }
        let program = self.program.clone();
        let written = match program.resolved.var(con).kind {
            VarKind::Channel(decl, _) => match program.ast.decl(decl) {
                Decl::Channel { fields, .. } => *fields,
                _ => None,
            },
            VarKind::Constructor(decl, index) => match program.ast.decl(decl) {
                Decl::Datatype { variants, .. } => variants.get(index).and_then(|v| v.fields),
                _ => None,
            },
            _ => None,
        };
        let mut sets = Vec::new();
        let mut todo: Vec<ExprId> = written.into_iter().collect();
        while let Some(expr) = todo.pop() {
            match program.ast.expr(expr) {
                Expr::Dot(a, b) => todo.extend([*b, *a]),
                _ => {
                    let set = self.deeper(span, |this| this.field_set(expr))?;
                    self.rectangular(&set, con, program.ast.span(expr))?;
                    sets.push(set);
                }
            }
        }
        let sets = Rc::new(sets);
        // While a recursive datatype is being listed its own set is only a description; do not keep that.
        if self.listing.is_empty() {
            self.field_sets.insert(con, sets.clone());
        }
        Ok(sets)
    }

    /// A set of dotted values in a declaration has to be a product, so that each field has values of its own: libcspm's
    /// test `rectangular_datatype`. Sets of values of datatypes need not be.
    fn rectangular(&self, set: &Set, con: VarId, span: Span) -> Result<()> {
        let Set::List(list) = set else { return Ok(()) };
        let width = list.items.first().map_or(1, |v| v.parts().len());
        if width < 2 || list.items.iter().any(|v| v.parts().len() != width) {
            return Ok(());
        }
        let sides = (0..width).map(|i| {
            let side: std::collections::BTreeSet<&Value> = list.items.iter().map(|v| &v.parts()[i]).collect();
            side.len()
        });
        if sides.fold(1usize, usize::saturating_mul) == list.items.len() {
            return Ok(());
        }
        let name = &self.program.resolved.var(con).path;
        Err(Fault::new(span, format!("the fields of `{name}` are not a product of sets")).note(
            "every combination of their values has to be there; restrict it with `if`, a guard or a subset of events",
        ))
    }

    /// Which written field the `index`-th value belongs to, and where that field begins.
    fn field_at(&self, con: VarId, index: usize) -> (usize, usize) {
        let mut start = 0;
        for (i, &width) in self.program.types.fields.get(&con).into_iter().flatten().enumerate() {
            if index < start + width {
                return (i, start);
            }
            start += width;
        }
        (0, 0)
    }

    /// All complete values that begin with this one; itself if it is complete.
    pub(super) fn completions(&mut self, value: &Value, span: Span) -> Result<Vec<Value>> {
        let mut done = Vec::new();
        let mut open = vec![value.clone()];
        while let Some(value) = open.pop() {
            self.step(span)?;
            if self.is_complete(&value) {
                done.push(value);
                self.check_size(span, done.len())?;
                continue;
            }
            for next in self.next_fields(&value, span)? {
                let mut grown = value.clone();
                for part in next.parts() {
                    grown = self.dot(grown, part);
                }
                open.push(grown);
            }
            self.check_size(span, open.len())?;
        }
        done.reverse();
        Ok(done)
    }

    /// The values the next written field of an incomplete value may have (or what is left of that field).
    fn next_fields(&mut self, value: &Value, span: Span) -> Result<Vec<Value>> {
        let data = value.parts().last().cloned().unwrap_or(Value::Bool(false));
        let Value::Data(con, fields) = &data else { return Ok(Vec::new()) };
        let begun = fields.items.last().filter(|last| !self.is_complete(last));
        let index = fields.items.len() - usize::from(begun.is_some());
        let (field, start) = self.field_at(*con, index);
        let sets = self.fields_of(*con, span)?;
        let Some(set) = sets.get(field) else { return Ok(Vec::new()) };
        if let Some(begun) = begun
            && !self.restricts(set, begun, span)?
        {
            return self.next_fields(begun, span);
        }
        let listed = self.listed_field(set, *con, field, span)?;
        let given = &fields.items[start..index];
        let rest = |v: &Value| {
            let rest = v.parts().strip_prefix(given)?;
            let Some(begun) = begun else { return Some(Value::dotted(rest.to_vec())) };
            let (first, others) = rest.split_first()?;
            let mut open = self.begins(begun, first).then(|| self.remainder(begun, first))?;
            open.extend_from_slice(others);
            Some(Value::dotted(open))
        };
        Ok(listed.items.iter().filter_map(rest).collect())
    }

    /// Whether a field's set leaves out values of the datatype that a begun value of the field belongs to: `A.0.1` and
    /// `A.1.0` but not `A.0.0`. Then the rest of the value depends on what the set has, not on `A` alone.
    fn restricts(&mut self, set: &Set, begun: &Value, span: Span) -> Result<bool> {
        let (Set::List(list), Value::Data(con, _)) = (set, begun) else { return Ok(false) };
        let VarKind::Constructor(decl, _) = self.program.resolved.var(*con).kind else { return Ok(true) };
        Ok(match self.type_set(decl, span)? {
            Set::List(all) => all.items.len() != list.items.len(),
            _ => true,
        })
    }

    /// Whether a value begins with an incomplete one.
    fn begins(&self, begun: &Value, whole: &Value) -> bool {
        let (Value::Data(a, given), Value::Data(b, all)) = (begun, whole) else { return false };
        let Some((last, front)) = given.items.split_last() else { return a == b };
        let n = front.len();
        a == b
            && all.items.len() > n
            && all.items[..n] == *front
            && (all.items[n] == *last || (!self.is_complete(last) && self.begins(last, &all.items[n])))
    }

    fn listed_field(&mut self, set: &Set, con: VarId, field: usize, span: Span) -> Result<Rc<List>> {
        let name = self.program.resolved.var(con).path.clone();
        let home = self.program.resolved.var(con).span;
        self.listed(set, span).map_err(|fault| {
            if matches!(set, Set::List(_)) {
                return fault;
            }
            fault
                .note(format!("all values of field {} of `{name}` are needed here", field + 1))
                .also(home, "declared here")
        })
    }

    /// What has to be added to `prefix` to get each of its completions.
    pub(super) fn extensions(&mut self, prefix: &Value, span: Span) -> Result<Vec<Value>> {
        let all = self.completions(prefix, span)?;
        Ok(all.iter().map(|whole| Value::dotted(self.remainder(prefix, whole))).collect())
    }

    fn remainder(&self, prefix: &Value, whole: &Value) -> Vec<Value> {
        match (prefix, whole) {
            (Value::Data(_, given), Value::Data(_, all)) => {
                let n = given.items.len();
                let mut rest = match given.items.last() {
                    Some(last) if !self.is_complete(last) => self.remainder(last, &all.items[n - 1]),
                    _ => Vec::new(),
                };
                rest.extend_from_slice(&all.items[n..]);
                rest
            }
            (Value::Dot(given), Value::Dot(all)) => {
                let n = given.items.len();
                let mut rest = match given.items.last() {
                    Some(last) => self.remainder(last, &all.items[n - 1]),
                    None => Vec::new(),
                };
                rest.extend_from_slice(&all.items[n..]);
                rest
            }
            _ => Vec::new(),
        }
    }

    /// The possible values of the next `width` fields of an incomplete value; of all that are left without a width.
    pub(super) fn inputs(&mut self, prefix: &Value, width: Option<usize>, span: Span) -> Result<Vec<Value>> {
        let Some(width) = width else { return self.extensions(prefix, span) };
        // The common case: one field, and the declaration gives its set.
        if width == 1 {
            let next = self.next_fields(prefix, span)?;
            if next.iter().all(|v| v.parts().len() == 1 && self.is_complete(v)) {
                return Ok(next);
            }
        }
        let mut out: Vec<Value> = self
            .extensions(prefix, span)?
            .iter()
            .map(|v| Value::dotted(v.parts()[..width.min(v.parts().len())].to_vec()))
            .collect();
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// Which field that a constructor or channel has so far is none of the values declared for it, in words.
    fn misfit(&mut self, con: VarId, fields: &[Value], span: Span) -> Result<Option<String>> {
        let sets = self.fields_of(con, span)?;
        let widths = self.program.types.fields.get(&con).cloned().unwrap_or_default();
        let mut start = 0;
        for (i, (set, width)) in sets.iter().zip(widths).enumerate() {
            let given = &fields[start.min(fields.len())..(start + width).min(fields.len())];
            start += width;
            let fits = match given.last() {
                None => break,
                Some(last) if given.len() == width && self.is_complete(last) => {
                    self.member(&Value::dotted(given.to_vec()), set, span)?
                }
                Some(_) => self.may_become_member(given, set, span)?,
            };
            if !fits {
                let path = &self.program.resolved.var(con).path;
                let shown = self.show_short(&Value::dotted(given.to_vec()));
                let number = i + 1;
                let what = if given.len() == width && given.last().is_some_and(|v| self.is_complete(v)) {
                    format!("is not among the values declared for field {number} of `{path}`")
                } else {
                    format!("begins none of the values declared for field {number} of `{path}`")
                };
                return Ok(Some(format!("{shown} {what}")));
            }
        }
        Ok(None)
    }

    /// Whether a set has a value that begins with these, the last of which may lack fields.
    fn may_become_member(&mut self, given: &[Value], set: &Set, span: Span) -> Result<bool> {
        let Some((last, front)) = given.split_last() else { return Ok(true) };
        let begun = !self.is_complete(last);
        // What a begun constructor has was compared with its own declaration when it was dotted on.
        if begun && front.is_empty() && !self.restricts(set, last, span)? {
            return Ok(true);
        }
        let Set::List(list) = set else { return Ok(true) };
        Ok(list.items.iter().any(|value| {
            let rest = value.parts().strip_prefix(front).and_then(<[Value]>::first);
            rest.is_some_and(|next| if begun { self.begins(last, next) } else { next == last })
        }))
    }

    /// A dot as it was written: the fields that a constructor or channel has so far are as they were declared. libcspm
    /// compares them when they are dotted on (`checkIsValidForField` in `CSPM.Evaluator.Dot`; tests `datatype_alphabets`,
    /// `channel_alphabets`, `outside_event_set`).
    pub(super) fn checked(&mut self, value: Value, span: Span) -> Result<Value> {
        let Some(last) = value.parts().last().cloned() else { return Ok(value) };
        self.check_fields(&last, &last, span)?;
        Ok(value)
    }

    /// Looks at the fields of `part`, which is `whole` or a begun value at its end.
    fn check_fields(&mut self, whole: &Value, part: &Value, span: Span) -> Result<()> {
        let Value::Data(con, fields) = part else { return Ok(()) };
        let con = *con;
        // A declaration whose fields are written with the constructor itself cannot be asked about it.
        if fields.items.is_empty() || self.declaring.contains(&con) || self.events.contains_key(part) {
            return Ok(());
        }
        self.declaring.push(con);
        let misfit = self.misfit(con, &fields.items, span);
        self.declaring.pop();
        if let Some(note) = misfit? {
            let resolved = &self.program.resolved;
            let channel = |con: VarId| matches!(resolved.var(con).kind, VarKind::Channel(..));
            let (home, declared) = (
                resolved.var(con).span,
                if channel(con) {
                    "the channel is declared here"
                } else {
                    "the constructor is declared here"
                },
            );
            let event = matches!(whole, Value::Data(outer, _) if channel(*outer));
            let shown = self.show_short(whole);
            let message = match (event, self.is_complete(whole)) {
                (true, true) => format!("`{shown}` is not an event"),
                (true, false) => format!("no event begins with `{shown}`"),
                (false, true) => format!("`{shown}` is not a value of its datatype"),
                (false, false) => format!("no value of its datatype begins with `{shown}`"),
            };
            return Err(Fault::new(span, message).note(note).also(home, declared));
        }
        match fields.items.last() {
            Some(begun) if !self.is_complete(begun) => self.check_fields(whole, begun, span),
            _ => Ok(()),
        }
    }

    // ---- events

    /// The event that a value stands for.
    pub(super) fn event(&mut self, value: &Value, span: Span) -> Result<EventId> {
        if let Some(&event) = self.events.get(value) {
            return Ok(event);
        }
        let Value::Data(con, fields) = value else {
            return Err(self.wrong_kind(span, "an event", value));
        };
        if !matches!(self.program.resolved.var(*con).kind, VarKind::Channel(..)) {
            return Err(self.wrong_kind(span, "an event", value));
        }
        if !self.is_complete(value) {
            return Err(Fault::new(span, format!("`{}` is not a complete event", self.show_short(value)))
                .note(format!("the channel has {} fields", self.arity(*con))));
        }
        if let Some(note) = self.misfit(*con, &fields.items, span)? {
            let home = self.program.resolved.var(*con).span;
            return Err(Fault::new(span, format!("`{}` is not an event", self.show_short(value)))
                .note(note)
                .also(home, "the channel is declared here"));
        }
        let channel = self.program.resolved.var(*con).path.clone();
        let shown: Vec<String> = fields.items.iter().map(|f| self.show(f)).collect();
        let event = self.arena.events.intern(&channel, &shown);
        self.events.insert(value.clone(), event);
        Ok(event)
    }

    /// A set of events for the engine.
    pub(super) fn event_set(&mut self, value: &Value, span: Span) -> Result<EventSetId> {
        let Value::Set(set) = value else { return Err(self.wrong_kind(span, "a set of events", value)) };
        let listed = self.listed(set, span)?;
        let events = listed.items.iter().map(|v| self.event(v, span)).collect::<Result<Vec<_>>>()?;
        Ok(self.arena.set_of(events))
    }

    /// `Events`
    pub(super) fn all_events(&mut self, span: Span) -> Result<Value> {
        let program = self.program.clone();
        let mut out = Vec::new();
        for &channel in &program.resolved.channels {
            out.extend(self.completions(&Value::Data(channel, Rc::default()), span)?);
            self.check_size(span, out.len())?;
        }
        Ok(Value::Set(Set::of(out)))
    }
}
