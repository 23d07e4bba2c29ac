//! Operations on sets, listed and endless.

use std::rc::Rc;

use super::value::{List, Set, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::resolve::VarKind;
use crate::lang::source::Span;

impl Evaluator {
    /// The elements of a set, or a diagnostic when they have no end.
    pub(super) fn listed(&mut self, set: &Set, span: Span) -> Result<Rc<List>> {
        match set {
            Set::List(list) => Ok(list.clone()),
            Set::Datatype(decl) => {
                let name = self.program.resolved.defines.get(decl).and_then(|v| v.first());
                let name = name.map_or(String::new(), |&v| self.program.resolved.var(v).path.to_string());
                Err(Fault::new(span, format!("the datatype `{name}` has infinitely many values"))
                    .note("it cannot be listed, but its values can be used and compared"))
            }
            other => {
                Err(Fault::new(span, format!("the set {} has no end", self.show(&Value::Set(other.clone()))))
                    .note("it cannot be listed; restrict it to finitely many values"))
            }
        }
    }

    pub(super) fn member(&mut self, value: &Value, set: &Set, span: Span) -> Result<bool> {
        Ok(match (set, value) {
            (Set::List(list), _) => list.contains(value),
            (Set::Integers, v) => matches!(v, Value::Int(_)),
            (Set::From(start), v) => matches!(v, Value::Int(n) if n >= start),
            (Set::Either(a, b), v) => self.member(v, a, span)? || self.member(v, b, span)?,
            (Set::Chars, v) => matches!(v, Value::Char(_)),
            (Set::Processes, v) => matches!(v, Value::Process(_)),
            (Set::Sequences(of), Value::Seq(seq)) => {
                for item in seq.items() {
                    if !self.member(item, of, span)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Set::Subsets(of), Value::Set(Set::List(list))) => {
                for item in &list.items {
                    if !self.member(item, of, span)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Set::Maps(keys, values), Value::Map(map)) => {
                for (k, v) in map.iter() {
                    if !self.member(k, keys, span)? || !self.member(v, values, span)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Set::Tuples(sets), Value::Tuple(list)) => self.all_members(&list.items, sets, span)?,
            (Set::Dots(sets), _) => self.dot_member(value.parts(), sets, span)?,
            (Set::Datatype(decl), Value::Data(con, fields)) => {
                let VarKind::Constructor(home, _) = self.program.resolved.var(*con).kind else {
                    return Ok(false);
                };
                if home != *decl {
                    return Ok(false);
                }
                let sets = self.fields_of(*con, span)?;
                let widths = self.program.types.fields.get(con).cloned().unwrap_or_default();
                if fields.items.len() != widths.iter().sum::<usize>() {
                    return Ok(false);
                }
                let mut start = 0;
                for (set, width) in sets.iter().zip(widths) {
                    let field = Value::dotted(fields.items[start..start + width].to_vec());
                    if !self.deeper(span, |this| this.member(&field, set, span))? {
                        return Ok(false);
                    }
                    start += width;
                }
                true
            }
            _ => false,
        })
    }

    fn all_members(&mut self, values: &[Value], sets: &[Set], span: Span) -> Result<bool> {
        if values.len() != sets.len() {
            return Ok(false);
        }
        for (value, set) in values.iter().zip(sets) {
            if !self.member(value, set, span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Dotted values against dotted sets; a set of dots takes as many values as its elements have parts.
    fn dot_member(&mut self, values: &[Value], sets: &[Set], span: Span) -> Result<bool> {
        let Some((set, rest)) = sets.split_first() else { return Ok(values.is_empty()) };
        for width in 1..=values.len() {
            let front = Value::dotted(values[..width].to_vec());
            if self.member(&front, set, span)? && self.dot_member(&values[width..], rest, span)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn union(&mut self, a: &Set, b: &Set, span: Span) -> Result<Set> {
        if let (Set::List(x), Set::List(y)) = (a, b) {
            self.check_size(span, x.items.len() + y.items.len())?;
            return Ok(Set::of(x.items.iter().chain(&y.items).cloned().collect()));
        }
        if let (Set::From(x), Set::From(y)) = (a, b) {
            return Ok(Set::From(*x.min(y)));
        }
        if a == b || self.includes(a, b, span)? {
            return Ok(a.clone());
        }
        if self.includes(b, a, span)? {
            return Ok(b.clone());
        }
        Ok(Set::Either(Rc::new(a.clone()), Rc::new(b.clone())))
    }

    /// `a <= b`
    pub(super) fn subset(&mut self, a: &Set, b: &Set, span: Span) -> Result<bool> {
        match (a, b) {
            (Set::List(_), _) => self.includes(b, a, span),
            (Set::From(x), Set::From(y)) => Ok(x >= y),
            (Set::From(_), Set::Integers) => Ok(true),
            (Set::Either(x, y), _) => Ok(self.subset(x, b, span)? && self.subset(y, b, span)?),
            _ if a == b => Ok(true),
            // A set without an end is no part of a listed one; what else there is cannot be decided.
            (_, Set::List(_)) => Ok(false),
            (Set::Integers, Set::From(_)) => Ok(false),
            _ => self.listed(a, span).map(|_| false),
        }
    }

    /// Whether every element of a listed set belongs to the other.
    fn includes(&mut self, whole: &Set, part: &Set, span: Span) -> Result<bool> {
        let Set::List(list) = part else { return Ok(false) };
        for item in &list.items {
            if !self.member(item, whole, span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn intersection(&mut self, a: &Set, b: &Set, span: Span) -> Result<Set> {
        match (a, b) {
            (Set::List(list), other) | (other, Set::List(list)) => self.filter(list, other, true, span),
            (Set::From(x), Set::From(y)) => Ok(Set::From(*x.max(y))),
            (Set::Integers, Set::From(x)) | (Set::From(x), Set::Integers) => Ok(Set::From(*x)),
            _ if a == b => Ok(a.clone()),
            _ => self.listed(a, span).map(Set::List),
        }
    }

    pub(super) fn difference(&mut self, a: &Set, b: &Set, span: Span) -> Result<Set> {
        match (a, b) {
            (Set::List(list), other) => self.filter(list, other, false, span),
            (_, Set::List(list)) if list.items.is_empty() => Ok(a.clone()),
            (Set::From(_), Set::Integers) => Ok(Set::of(Vec::new())),
            (Set::From(x), Set::From(y)) => {
                let count = y.checked_sub(*x).map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0));
                self.check_size(span, count)?;
                Ok(Set::of((*x..*y).map(Value::Int).collect()))
            }
            // What is taken away has to be the beginning, or not to be there at all.
            (Set::From(x), Set::List(list)) => {
                let mut start = *x;
                for item in &list.items {
                    match item {
                        Value::Int(n) if *n < start => {}
                        Value::Int(n) if *n == start => match start.checked_add(1) {
                            Some(next) => start = next,
                            None => return Err(super::expr::overflow(span)),
                        },
                        _ => return self.listed(a, span).map(Set::List),
                    }
                }
                Ok(Set::From(start))
            }
            _ if a == b => Ok(Set::of(Vec::new())),
            _ => self.listed(a, span).map(Set::List),
        }
    }

    fn filter(&mut self, list: &Rc<List>, by: &Set, keep: bool, span: Span) -> Result<Set> {
        let mut out = Vec::new();
        for item in &list.items {
            if self.member(item, by, span)? == keep {
                out.push(item.clone());
            }
        }
        Ok(Set::of(out))
    }

    /// `Set(a)`
    pub(super) fn subsets(&mut self, set: &Set, span: Span) -> Result<Set> {
        let Set::List(list) = set else { return Ok(Set::Subsets(Rc::new(set.clone()))) };
        let n = list.items.len();
        let count = u32::try_from(n).ok().and_then(|n| 1usize.checked_shl(n)).unwrap_or(usize::MAX);
        self.check_size(span, if n >= 40 { usize::MAX } else { count })?;
        let subsets = (0..count).map(|bits| {
            let chosen =
                list.items.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, v)| v.clone());
            Value::Set(Set::of(chosen.collect()))
        });
        Ok(Set::of(subsets.collect()))
    }

    /// `Map(k, v)`: all maps from some of the keys to the values.
    pub(super) fn all_maps(&mut self, keys: &Set, values: &Set, span: Span) -> Result<Set> {
        let (Set::List(keys), Set::List(values)) = (keys, values) else {
            return Ok(Set::Maps(Rc::new(keys.clone()), Rc::new(values.clone())));
        };
        let mut maps = vec![std::collections::BTreeMap::new()];
        for key in &keys.items {
            self.check_size(span, maps.len().saturating_mul(values.items.len() + 1))?;
            let without = maps.clone();
            maps.extend(without.iter().flat_map(|map| {
                values.items.iter().map(move |value| {
                    let mut map = map.clone();
                    map.insert(key.clone(), value.clone());
                    map
                })
            }));
        }
        Ok(Set::of(maps.into_iter().map(|m| Value::Map(Rc::new(m))).collect()))
    }
}
