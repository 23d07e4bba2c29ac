//! The functions on maps.
//!
//! Keys are complete values, because a map is searched by comparing them; values are evaluated when somebody looks them
//! up. A map whose values are all known is kept as a [`Value::Map`], any other as a [`Value::LazyMap`]; a value that
//! can be had cheaply is evaluated when it is put in (see [`super::lazy`] on optimism), so that updating a map in a loop
//! builds no chain of delayed values.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::env::Slot;
use super::lazy::{cells, entries_of, map_of};
use super::value::{Lazy, List, Seq, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::builtin::Builtin;
use crate::lang::source::Span;

impl Evaluator {
    /// Applies a function on maps; `None` for all other functions.
    pub(super) fn map_builtin(
        &mut self,
        builtin: Builtin,
        args: &[Slot],
        span: Span,
    ) -> Result<Option<Value>> {
        let value = match (builtin, args) {
            (Builtin::MapFromList, [list]) => {
                let list = self.force(list, span)?;
                let mut entries = BTreeMap::new();
                for (key, value) in self.entries(list, span)? {
                    entries.insert(key, value);
                }
                map_of(entries)
            }
            (Builtin::MapUpdateMultiple, [map, list]) => {
                let map = self.a_map(map, span)?;
                let list = self.force(list, span)?;
                let mut entries = entries_of(&map);
                // As in FDR, of entries with the same key the first one counts.
                for (key, value) in self.entries(list, span)?.into_iter().rev() {
                    entries.insert(key, value);
                }
                map_of(entries)
            }
            (Builtin::MapLookup, [map, key]) => {
                let map = self.a_map(map, span)?;
                let key = self.force_fully(key, span)?;
                let found = match &map {
                    Value::Map(map) => map.get(&key).cloned().map(Slot::Value),
                    Value::LazyMap(map) => map.entries.get(&key).cloned(),
                    _ => None,
                };
                let Some(found) = found else {
                    return Err(Fault::new(
                        span,
                        format!("the map has no entry for {}", self.show_short(&key)),
                    )
                    .note("`mapMember` tells whether there is one"));
                };
                self.force(&found, span)?
            }
            (Builtin::MapMember, [map, key]) => {
                let map = self.a_map(map, span)?;
                let key = self.force_fully(key, span)?;
                Value::Bool(match &map {
                    Value::Map(map) => map.contains_key(&key),
                    Value::LazyMap(map) => map.entries.contains_key(&key),
                    _ => false,
                })
            }
            (Builtin::MapToList, [map]) => match self.a_map(map, span)? {
                Value::LazyMap(map) => {
                    let pairs = map.entries.iter().map(|(key, value)| {
                        let pair = vec![Slot::Value(key.clone()), value.clone()];
                        Slot::Value(Value::Lazy(Rc::new(Lazy::new(pair))))
                    });
                    cells(pairs.collect(), Slot::Value(Value::Seq(Seq::new(Vec::new()))))
                }
                Value::Map(map) => {
                    let pair = |(k, v): (&Value, &Value)| {
                        Value::Tuple(Rc::new(List::new(vec![k.clone(), v.clone()])))
                    };
                    Value::Seq(Seq::new(map.iter().map(pair).collect()))
                }
                other => return Err(self.wrong_kind(span, "a map", &other)),
            },
            (Builtin::MapUpdate, [map, key, value]) => {
                let map = self.a_map(map, span)?;
                let key = self.force_fully(key, span)?;
                match (&map, self.settled(value, span)) {
                    (Value::Map(map), Slot::Value(value)) if !value.is_lazy() => {
                        let mut map = (**map).clone();
                        map.insert(key, value);
                        Value::Map(Rc::new(map))
                    }
                    (map, value) => {
                        let mut entries = entries_of(map);
                        entries.insert(key, value);
                        map_of(entries)
                    }
                }
            }
            (Builtin::MapDelete, [map, key]) => {
                let map = self.a_map(map, span)?;
                let key = self.force_fully(key, span)?;
                match map {
                    Value::Map(map) => {
                        let mut map = (*map).clone();
                        map.remove(&key);
                        Value::Map(Rc::new(map))
                    }
                    map => {
                        let mut entries = entries_of(&map);
                        entries.remove(&key);
                        map_of(entries)
                    }
                }
            }
            _ => return Ok(None),
        };
        self.bounded(span, value).map(Some)
    }

    fn a_map(&mut self, slot: &Slot, span: Span) -> Result<Value> {
        match self.force(slot, span)? {
            map @ (Value::Map(_) | Value::LazyMap(_)) => Ok(map),
            other => Err(self.wrong_kind(span, "a map", &other)),
        }
    }

    /// The keys and values of a sequence of pairs.
    fn entries(&mut self, list: Value, span: Span) -> Result<Vec<(Value, Slot)>> {
        let mut out = Vec::new();
        self.each(list, span, &mut |this, slot| {
            let (key, value) = match this.force(slot, span)? {
                Value::Tuple(pair) if pair.items.len() == 2 => {
                    (pair.items[0].clone(), Slot::Value(pair.items[1].clone()))
                }
                Value::Lazy(pair) if pair.slots.len() == 2 => {
                    (this.force_fully(&pair.slots[0], span)?, pair.slots[1].clone())
                }
                other => return Err(this.wrong_kind(span, "a pair", &other)),
            };
            out.push((key, value));
            Ok(true)
        })?;
        Ok(out)
    }
}
