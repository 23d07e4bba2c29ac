//! The built-in names.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::env::{Slot, State};
use super::value::{List, Seq, Set, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::ast::ExprId;
use crate::lang::builtin::Builtin;
use crate::lang::source::Span;
use crate::process::{Compression, EventId, ProcId};

impl Evaluator {
    /// The value of a built-in name that is not applied.
    pub(super) fn builtin_value(&mut self, builtin: Builtin, id: ExprId, span: Span) -> Result<Value> {
        Ok(match builtin {
            Builtin::Stop => Value::Process(self.stopped(id)?),
            Builtin::Skip => Value::Process(self.skipped(id)?),
            Builtin::Div => Value::Process(self.arena.div()),
            Builtin::TStop => Value::Process(self.timed_stop(span)?),
            Builtin::TSkip => Value::Process(self.timed_skip(span)?),
            Builtin::Int => Value::Set(Set::Integers),
            Builtin::Bool => Value::Set(Set::of(vec![Value::Bool(false), Value::Bool(true)])),
            Builtin::Char => Value::Set(Set::Chars),
            Builtin::Proc => Value::Set(Set::Processes),
            Builtin::Events => self.all_events(span)?,
            Builtin::EmptyMap => Value::Map(Rc::new(BTreeMap::new())),
            function => Value::Builtin(function),
        })
    }

    /// The functions that do not look at all of their arguments, where the argument is not listed.
    pub(super) fn lazy_builtin(
        &mut self,
        builtin: Builtin,
        args: &[Slot],
        span: Span,
    ) -> Result<Option<Value>> {
        if let Some(value) = self.map_builtin(builtin, args, span)? {
            return Ok(Some(value));
        }
        if !matches!(
            builtin,
            Builtin::Head | Builtin::Tail | Builtin::Null | Builtin::Length | Builtin::Concat | Builtin::Elem
        ) {
            return Ok(None);
        }
        let Some(last) = args.last() else { return Ok(None) };
        let sequence = self.force(last, span)?;
        let lazy = matches!(sequence, Value::Stream(_) | Value::SeqFrom(_));
        Ok(match builtin {
            Builtin::Head | Builtin::Tail if lazy => match self.uncons(&sequence, span)? {
                Some((head, _)) if builtin == Builtin::Head => Some(self.force(&head, span)?),
                Some((_, tail)) => Some(self.force(&tail, span)?),
                None => None,
            },
            Builtin::Null if lazy => Some(Value::Bool(false)),
            Builtin::Length if lazy => Some(self.length(sequence, span)?),
            Builtin::Concat if lazy => Some(self.concatenated(sequence, span)?),
            // A listed sequence of listed sequences is joined at once.
            Builtin::Elem if matches!(sequence, Value::Stream(_)) => {
                let wanted = self.force_fully(&args[0], span)?;
                let mut found = false;
                self.each_of_endless(sequence, span, &mut |this, slot| {
                    let item = this.force(slot, span)?;
                    found = this.equal(&wanted, &item, span)?;
                    Ok(!found)
                })?;
                Some(Value::Bool(found))
            }
            _ => None,
        })
    }

    /// Applies a built-in function; the type checker has counted the arguments.
    pub(super) fn builtin(&mut self, builtin: Builtin, args: &[Value], span: Span) -> Result<Value> {
        let value = match (builtin, args) {
            // Their meaning is not published precisely enough; what does not need them is not concerned.
            (
                Builtin::WeakBuffer
                | Builtin::FailureWatchdog
                | Builtin::TraceWatchdog
                | Builtin::LazyCompile,
                _,
            ) => {
                return Err(Fault::new(span, format!("`{}` is not supported", builtin.name()))
                    .note("assertions that do not need it are answered"));
            }
            (Builtin::Chaos, [set]) => {
                let set = self.event_set(set, span)?;
                Value::Process(self.arena.chaos(set))
            }
            (Builtin::Run, [set]) => {
                let set = self.event_set(set, span)?;
                Value::Process(self.arena.run(set))
            }
            (Builtin::Wait, [Value::Int(n)]) => {
                let then = self.timed_skip(span)?;
                Value::Process(self.delayed(*n, then, span)?)
            }

            (Builtin::Union, [Value::Set(a), Value::Set(b)]) => Value::Set(self.union(a, b, span)?),
            (Builtin::Inter, [Value::Set(a), Value::Set(b)]) => Value::Set(self.intersection(a, b, span)?),
            (Builtin::Diff, [Value::Set(a), Value::Set(b)]) => Value::Set(self.difference(a, b, span)?),
            (Builtin::BigUnion, [Value::Set(sets)]) => {
                let mut all: Vec<Value> = Vec::new();
                let mut endless: Option<Set> = None;
                for set in &self.listed(sets, span)?.items {
                    match set {
                        Value::Set(Set::List(list)) => all.extend_from_slice(&list.items),
                        Value::Set(other) => {
                            endless = Some(match endless {
                                None => other.clone(),
                                Some(before) => self.union(&before, other, span)?,
                            });
                        }
                        other => return Err(self.wrong_kind(span, "a set", other)),
                    }
                    self.check_size(span, all.len())?;
                }
                let listed = Set::of(all);
                Value::Set(match endless {
                    None => listed,
                    Some(endless) => self.union(&endless, &listed, span)?,
                })
            }
            (Builtin::BigInter, [Value::Set(sets)]) => {
                let sets = self.listed(sets, span)?;
                let Some((first, rest)) = sets.items.split_first() else {
                    return Err(Fault::new(span, "the intersection of no sets")
                        .note("`Inter` needs at least one set"));
                };
                let mut all = self.set_list(first, span)?;
                for set in rest {
                    let set = self.set_list(set, span)?;
                    all = self.intersection(&all, &set, span)?;
                }
                Value::Set(all)
            }
            (Builtin::Member, [value, Value::Set(set)]) => Value::Bool(self.member(value, set, span)?),
            (Builtin::Card, [Value::Set(set)]) => Value::Int(self.listed(set, span)?.items.len() as i64),
            (Builtin::Empty, [Value::Set(set)]) => {
                Value::Bool(matches!(set, Set::List(list) if list.items.is_empty()))
            }
            (Builtin::SetOf, [Value::Seq(seq)]) => Value::Set(Set::of(seq.items().to_vec())),
            (Builtin::SetOf, [Value::SeqFrom(n)]) => Value::Set(Set::From(*n)),
            (Builtin::PowerSet, [Value::Set(set)]) => Value::Set(self.subsets(set, span)?),
            (Builtin::AllSeqs, [Value::Set(set)]) => Value::Set(match set {
                Set::List(list) if list.items.is_empty() => Set::of(vec![Value::Seq(Seq::new(Vec::new()))]),
                _ => Set::Sequences(Rc::new(set.clone())),
            }),
            (Builtin::SeqOf, [Value::Set(Set::From(n))]) => Value::SeqFrom(*n),
            (Builtin::SeqOf, [Value::Set(set)]) => {
                Value::Seq(Seq::new(self.listed(set, span)?.items.clone()))
            }

            (Builtin::Length, [Value::Seq(seq)]) => Value::Int(seq.items().len() as i64),
            (Builtin::Null, [Value::Seq(seq)]) => Value::Bool(seq.items().is_empty()),
            (Builtin::Head, [Value::Seq(seq)]) => match seq.items().first() {
                Some(first) => first.clone(),
                None => return Err(Fault::new(span, "`head` of an empty sequence")),
            },
            (Builtin::Tail, [Value::Seq(seq)]) => {
                if seq.items().is_empty() {
                    return Err(Fault::new(span, "`tail` of an empty sequence"));
                }
                Value::Seq(seq.skip(1))
            }
            (Builtin::Concat, [Value::Seq(seq)]) => {
                let mut all = Vec::new();
                for (i, part) in seq.items().iter().enumerate() {
                    match part {
                        Value::Seq(part) => all.extend_from_slice(part.items()),
                        Value::SeqFrom(_) => {
                            let rest = Slot::Value(Value::Seq(seq.skip(i)));
                            let endless = Slot::Thunk(self.thunk(State::Concat(rest)));
                            return self.joined(Value::Seq(Seq::new(all)), endless, span);
                        }
                        other => return Err(self.wrong_kind(span, "a sequence", other)),
                    }
                    self.check_size(span, all.len())?;
                }
                Value::Seq(Seq::new(all))
            }
            (Builtin::Elem, [value, Value::Seq(seq)]) => Value::Bool(seq.items().contains(value)),
            (Builtin::Elem, [Value::Int(n), Value::SeqFrom(start)]) => Value::Bool(n >= start),

            (Builtin::AllMaps, [Value::Set(keys), Value::Set(values)]) => {
                Value::Set(self.all_maps(keys, values, span)?)
            }

            // libcspm's type checker refuses it (test `extensions_empty_dot_list`).
            (Builtin::Extensions, [value]) if self.is_complete(value) => {
                let shown = self.show_short(value);
                return Err(Fault::new(span, format!("`{shown}` has all its fields"))
                    .note("`extensions` lists what a value lacks; `productions` lists whole values"));
            }
            (Builtin::Extensions, [value]) => Value::Set(Set::of(self.extensions(value, span)?)),
            (Builtin::Productions, [value]) => Value::Set(Set::of(self.completions(value, span)?)),
            (Builtin::Error, [message]) => {
                let text = match message {
                    Value::Seq(seq) => seq
                        .items()
                        .iter()
                        .map(|v| if let Value::Char(c) = v { *c } else { '?' })
                        .collect::<String>(),
                    other => self.show(other),
                };
                return Err(Fault::new(span, format!("the script reports: {text}")));
            }
            (Builtin::Show, [value]) => Value::string(&self.show(value)),

            (Builtin::RelationalImage, [Value::Set(relation)]) => Value::Image(self.listed(relation, span)?),
            (Builtin::RelationalInverseImage, [Value::Set(relation)]) => {
                let turned = self.transposed(relation, span)?;
                Value::Image(Rc::new(turned))
            }
            (Builtin::Transpose, [Value::Set(relation)]) => {
                Value::Set(Set::List(Rc::new(self.transposed(relation, span)?)))
            }

            (Builtin::TransitiveClosure, [Value::Set(relation), Value::Set(among)]) => {
                self.representatives(relation, among, span)?
            }

            (Builtin::Prioritise | Builtin::PrioritiseNoCache, [_, Value::Seq(order)])
                if order.items().is_empty() =>
            {
                return Err(Fault::new(span, "`prioritise` needs at least one set of events")
                    .note("the first set has the same priority as hidden events and termination"));
            }
            (Builtin::Prioritise | Builtin::PrioritiseNoCache, [Value::Process(p), Value::Seq(order)]) => {
                let order = order
                    .items()
                    .to_vec()
                    .iter()
                    .map(|s| self.event_set(s, span))
                    .collect::<Result<Vec<_>>>()?;
                Value::Process(self.arena.prioritise(*p, order))
            }
            (
                Builtin::PrioritisePo,
                [Value::Process(p), Value::Set(among), Value::Set(order), Value::Set(first)],
            ) => Value::Process(self.prioritised_by_order(*p, among, order, first, span)?),
            (Builtin::Deter, [Value::Process(p)]) => Value::Process(self.arena.determinise(*p)),
            (Builtin::Buffer, [Value::Int(n), Value::Set(pairs)]) => {
                Value::Process(self.buffer(*n, pairs, span)?)
            }
            (Builtin::TimedPriority, [Value::Process(p)]) => {
                let Some(tock) = self.program.resolved.tock else {
                    return Err(Fault::new(span, "`timed_priority` needs the channel `tock`")
                        .note("declare `channel tock`"));
                };
                let tock = self.event(&Value::Data(tock, Rc::default()), span)?;
                let order = vec![self.arena.set_of([]), self.arena.set_of([tock])];
                Value::Process(self.arena.prioritise(*p, order))
            }
            (Builtin::Chase | Builtin::ChaseNoCache, [Value::Process(p)]) => {
                Value::Process(self.arena.chase(*p))
            }
            (Builtin::Loop, [Value::Process(p)]) => {
                let key = vec![(EventId::TAU, *p)];
                if let Some(&known) = self.own_loops.get(&key) {
                    return Ok(Value::Process(known));
                }
                let (call, again) = self.own_call("loop");
                let body = self.arena.sequence(*p, again);
                self.define(call, body);
                self.own_loops.insert(key, again);
                Value::Process(again)
            }
            (compression, [Value::Process(p)]) => match compression_of(compression) {
                Some(kind) => Value::Process(self.arena.compress(kind, *p)),
                None => Value::Process(self.unchanged(*p)),
            },
            (_, [first, ..]) => return Err(self.wrong_kind(span, "arguments that fit the function", first)),
            (_, []) => return Err(Fault::new(span, format!("`{}` takes arguments", builtin.name()))),
        };
        self.bounded(span, value)
    }

    /// `lazyenumerate` and `lazynorm` only tell FDR how to explore; the meaning is that of the process.
    fn unchanged(&self, p: ProcId) -> ProcId {
        p
    }

    pub(super) fn pairs(&mut self, relation: &Set, span: Span) -> Result<Vec<(Value, Value)>> {
        let mut out = Vec::new();
        for entry in &self.listed(relation, span)?.items {
            match entry {
                Value::Tuple(entry) if entry.items.len() == 2 => {
                    out.push((entry.items[0].clone(), entry.items[1].clone()));
                }
                other => return Err(self.wrong_kind(span, "a pair", other)),
            }
        }
        Ok(out)
    }

    /// `mtransclose(R, S)`: the classes of the symmetric and transitive closure of `R`, as pairs of the representative
    /// of a class in `S` and another of its elements in `S`. Which element represents a class is left open by FDR; here
    /// it is the least.
    fn representatives(&mut self, relation: &Set, among: &Set, span: Span) -> Result<Value> {
        let pairs = self.pairs(relation, span)?;
        let mut nodes: Vec<Value> = pairs.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let index = |value: &Value| nodes.binary_search(value).unwrap_or(0);
        let mut parent: Vec<usize> = (0..nodes.len()).collect();
        fn root(parent: &mut [usize], mut at: usize) -> usize {
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        }
        for (a, b) in &pairs {
            let (a, b) = (root(&mut parent, index(a)), root(&mut parent, index(b)));
            parent[a.max(b)] = a.min(b);
        }
        let mut least: Vec<Option<usize>> = vec![None; nodes.len()];
        let mut out = Vec::new();
        // In order: the first element of a class that is met is its least.
        for at in 0..nodes.len() {
            if !self.member(&nodes[at], among, span)? {
                continue;
            }
            let class = root(&mut parent, at);
            match least[class] {
                Some(first) => out.push(pair(nodes[first].clone(), nodes[at].clone())),
                None => least[class] = Some(at),
            }
        }
        Ok(Value::Set(Set::of(out)))
    }

    fn transposed(&mut self, relation: &Set, span: Span) -> Result<List> {
        let pairs = self.pairs(relation, span)?;
        Ok(List::sorted(pairs.into_iter().map(|(a, b)| pair(b, a)).collect()))
    }
}

fn pair(a: Value, b: Value) -> Value {
    Value::Tuple(Rc::new(List::new(vec![a, b])))
}

fn compression_of(builtin: Builtin) -> Option<Compression> {
    Some(match builtin {
        Builtin::Normal => Compression::Normal,
        // FDR chooses by the model of the check; strong bisimulation is right in all of them.
        Builtin::Sbisim | Builtin::ModelCompress => Compression::StrongBisimulation,
        Builtin::Wbisim => Compression::WeakBisimulation,
        Builtin::Dbisim => Compression::DelayBisimulation,
        Builtin::Diamond => Compression::Diamond,
        Builtin::TauLoopFactor => Compression::TauLoopFactor,
        Builtin::Explicate => Compression::Explicate,
        _ => return None,
    })
}
