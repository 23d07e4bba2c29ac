//! Top level and bodies: which names a sequence of definitions binds, and when they are initialised.
//!
//! A program is its own definitions and those of the prelude that it mentions; a body is a `letrec*`. While the
//! initialisers are expanded it is noted which variables are *quiet*: initialised before any thread that knows them runs, and
//! used by nobody before that.

use super::{Bound, Expanded, Expander, Lost, PRELUDE};
use crate::syntax::core::{Const, Expr, VarId};
use crate::syntax::reader::{Datum, DatumId, Symbol, read};
use crate::syntax::source::{Span, SyntaxError};
use rustc_hash::FxHashSet;

/// Forms, and the procedures of the prelude that they become calls of.
const CALLED: &[(&str, &str)] = &[
    ("unquote-splicing", "append"),
    ("quasiquote", "list->vector"),
    ("delay", "promise-of"),
    ("let-values", "call-with-values"),
    ("let*-values", "call-with-values"),
    ("receive", "call-with-values"),
    ("define-values", "call-with-values"),
    ("define-values", "list"),
];

/// A body without its macros.
pub(super) struct Flat {
    pub(super) items: Vec<DatumId>,
    /// The names of the macros, which are bound from here on.
    pub(super) macros: Vec<Symbol>,
}

impl Expander {
    /// The prelude's definitions that the program mentions, directly or through each other.
    pub(super) fn prelude(&mut self, user: &[DatumId]) -> Vec<DatumId> {
        let library = read(PRELUDE);
        debug_assert!(library.errors.is_empty(), "{:?}", library.errors);
        let base = self.data.len() as u32;
        let shift = |id: DatumId| DatumId(id.0 + base);
        let mut mentioned: FxHashSet<Symbol> = FxHashSet::default();
        for at in 0..base {
            mentioned.extend(self.symbol(DatumId(at)));
        }
        // Forms that are expanded to calls mention what they call.
        for &(form, procedure) in CALLED {
            let form = self.data.symbols.intern(form);
            if mentioned.contains(&form) {
                mentioned.insert(self.data.symbols.intern(procedure));
            }
        }
        for at in 0..library.len() as u32 {
            let datum = match library.datum(DatumId(at)) {
                Datum::Symbol(symbol) => {
                    Datum::Symbol(self.data.symbols.intern(library.symbols.name(*symbol)))
                }
                Datum::List(items, tail) => {
                    Datum::List(items.iter().map(|&x| shift(x)).collect(), tail.map(shift))
                }
                Datum::Vector(items) => Datum::Vector(items.iter().map(|&x| shift(x)).collect()),
                other => other.clone(),
            };
            self.data.push(datum, Span::PRELUDE);
        }
        let defined: FxHashSet<Symbol> = user.iter().filter_map(|&item| self.defined_name(item)).collect();
        let candidates: Vec<(Symbol, DatumId)> = library
            .top
            .iter()
            .map(|&id| shift(id))
            .filter_map(|id| Some((self.defined_name(id)?, id)))
            // What has a meaning already is a macro of the program.
            .filter(|(name, _)| !defined.contains(name) && !self.scope.contains_key(name))
            .collect();
        let mut taken = vec![false; candidates.len()];
        loop {
            let before = mentioned.len();
            for (at, &(name, id)) in candidates.iter().enumerate() {
                if !taken[at] && mentioned.contains(&name) {
                    taken[at] = true;
                    let mut work = vec![id];
                    while let Some(id) = work.pop() {
                        mentioned.extend(self.symbol(id));
                        if let Some(items) = self.list(id) {
                            work.extend(items);
                        }
                    }
                }
            }
            if mentioned.len() == before
                && candidates.iter().zip(&taken).all(|(c, t)| *t || !mentioned.contains(&c.0))
            {
                break;
            }
        }
        candidates.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(c, _)| c.1).collect()
    }

    /// The items of a body, or of the top level: `begin`s are spliced, macros that stand among the definitions are written out,
    /// and so are the forms that define several names.
    pub(super) fn flatten(&mut self, items: &[DatumId], global: bool) -> Flat {
        let mut flat = Flat { items: Vec::with_capacity(items.len()), macros: Vec::new() };
        let mut work: Vec<DatumId> = items.iter().rev().copied().collect();
        while let Some(item) = work.pop() {
            let Some(parts) = self.list(item) else {
                flat.items.push(item);
                continue;
            };
            let span = self.data.span(item);
            if let Some(rules) = self.macro_of(&parts) {
                work.extend(self.rewritten(rules, &parts, span));
                continue;
            }
            match self.keyword(&parts) {
                Some("begin") if parts.iter().any(|&part| self.is_defining(part)) => {
                    work.extend(parts[1..].iter().rev())
                }
                Some("define-syntax") => {
                    flat.macros.extend(self.define_syntax(&parts, span, global));
                }
                Some("define-values") => {
                    let definitions = self.defined_values(&parts, span).unwrap_or_default();
                    work.extend(definitions.into_iter().rev());
                }
                Some("define-record-type") => {
                    let definitions = self.record_type(&parts, span).unwrap_or_default();
                    work.extend(definitions.into_iter().rev());
                }
                _ => flat.items.push(item),
            }
        }
        flat
    }

    /// Whether a form defines something, or may do so once it is written out.
    fn is_defining(&self, id: DatumId) -> bool {
        let parts = self.list(id).unwrap_or_default();
        let defines = ["define", "define-syntax", "define-values", "define-record-type", "begin"];
        self.macro_of(&parts).is_some() || self.keyword(&parts).is_some_and(|word| defines.contains(&word))
    }

    /// The name that `(define ...)` defines.
    fn defined_name(&self, id: DatumId) -> Option<Symbol> {
        let Datum::List(items, None) = self.data.datum(id) else { return None };
        if self.keyword(items) != Some("define") {
            return None;
        }
        let mut target = *items.get(1)?;
        loop {
            match self.data.datum(target) {
                Datum::Symbol(symbol) => return Some(*symbol),
                Datum::List(parts, _) => target = *parts.first()?,
                _ => return None,
            }
        }
    }

    pub(super) fn top_level(&mut self, items: &[DatumId]) -> Expanded {
        for &item in items {
            if let Some(name) = self.defined_name(item)
                && !matches!(self.scope.get(&name).and_then(|stack| stack.last()), Some(Bound::Var { .. }))
            {
                let var = self.variable(name, self.data.span(item), true);
                self.bind(name, var);
            }
        }
        // `define` itself may have become bound just now; that is a mistake nobody makes twice.
        let mut parts = Vec::with_capacity(items.len());
        let mut seen: FxHashSet<VarId> = FxHashSet::default();
        let mut quiet_so_far = true;
        let mut early: FxHashSet<VarId> = FxHashSet::default();
        let mut lost = false;
        for &item in items {
            let from = self.program.exprs.len();
            let part = match self.defined_name(item) {
                None => {
                    let part = self.expand(item);
                    self.used_early(from, |var| !seen.contains(&var), &mut early);
                    part
                }
                Some(name) => {
                    let Some(&Bound::Var { var, .. }) = self.scope[&name].last() else { return Err(Lost) };
                    self.definition(item).map(|init| {
                        quiet_so_far &= self.quiet[init.index()];
                        self.used_early(from, |var| !seen.contains(&var), &mut early);
                        if seen.insert(var) {
                            self.program.vars[var.index()].quiet = quiet_so_far && !early.contains(&var);
                        } else {
                            self.program.vars[var.index()].assigned = true;
                        }
                        self.emit(Expr::Set(var, init), self.data.span(item))
                    })
                }
            };
            match part {
                Ok(part) => {
                    quiet_so_far &= self.quiet[part.index()];
                    parts.push(part);
                }
                Err(Lost) => lost = true,
            }
        }
        if lost {
            return Err(Lost);
        }
        self.nobody_else_knows(seen.iter().copied(), &early);
        let span = self.whole();
        Ok(match parts.len() {
            0 => self.constant(Const::Unspecified, span),
            1 => parts[0],
            _ => self.emit(Expr::Begin(parts.into()), span),
        })
    }

    /// Variables that the code emitted since `from` uses directly while they are not yet initialised. A quiet variable
    /// must not be among them: analyses rely on it that nobody finds it unassigned.
    fn used_early(&self, from: usize, pending: impl Fn(VarId) -> bool, early: &mut FxHashSet<VarId>) {
        for at in from..self.program.exprs.len() {
            if let Expr::Var(var) | Expr::CasVar(var, ..) | Expr::AcquireVar(var) | Expr::ReleaseVar(var) =
                self.program.exprs[at]
                && self.program.homes[at] == self.body
                && pending(var)
            {
                early.insert(var);
            }
        }
    }

    /// A variable that only the code around its definition mentions, and not before it, is found unassigned by nobody, whatever has
    /// been called or spawned by then.
    fn nobody_else_knows(&mut self, vars: impl Iterator<Item = VarId>, early: &FxHashSet<VarId>) {
        for var in vars.filter(|var| !early.contains(var)) {
            let info = &mut self.program.vars[var.index()];
            info.quiet |= !info.captured;
        }
    }

    fn whole(&self) -> Span {
        Span::new(0, self.program.source.text.len())
    }

    /// The value of a `(define ...)` form; curried definitions nest.
    fn definition(&mut self, id: DatumId) -> Expanded {
        let span = self.data.span(id);
        let items = self.list(id).unwrap_or_default();
        match self.data.datum(items[1]).clone() {
            Datum::Symbol(name) => match items.len() {
                2 => Ok(self.constant(Const::Unspecified, span)),
                3 => self.expand_named(items[2], Some(name)),
                _ => self.error(SyntaxError::new(span, "define takes a name and one expression")),
            },
            Datum::List(head, rest) if items.len() > 2 => {
                let name = self.symbol(head[0]);
                if name.is_none() {
                    return self.error(SyntaxError::new(span, "curried definitions are not supported"));
                }
                self.lambda(&head[1..], rest, &items[2..], span, name)
            }
            _ => self.error(SyntaxError::new(span, "this definition has no body")),
        }
    }

    /// A sequence that may begin with (or contain) definitions.
    pub(super) fn body(&mut self, items: &[DatumId], span: Span) -> Expanded {
        if items.is_empty() {
            return self.error(SyntaxError::new(span, "this body is empty"));
        }
        let flat = self.flatten(items, false);
        let result = self.flat_body(&flat.items, span);
        flat.macros.iter().for_each(|&name| self.unbind(name));
        result
    }

    fn flat_body(&mut self, items: &[DatumId], span: Span) -> Expanded {
        if items.is_empty() {
            return self.error(SyntaxError::new(span, "this body has no expression"));
        }
        if !items.iter().any(|&item| self.defined_name(item).is_some()) {
            self.capture_local();
            return self.sequence(items, span);
        }
        let last = items.iter().rposition(|&item| self.defined_name(item).is_some()).unwrap_or(0);
        if last + 1 == items.len() {
            let span = self.data.span(items[last]);
            return self
                .error(SyntaxError::new(span, "a body must end with an expression, not a definition"));
        }
        let mut bindings: Vec<(Symbol, VarId, DatumId, bool)> = Vec::new();
        for &item in &items[..=last] {
            let span = self.data.span(item);
            match self.defined_name(item) {
                Some(name) => bindings.push((name, self.variable(name, span, false), item, true)),
                None => {
                    let name = self.data.symbols.intern("_");
                    bindings.push((name, self.variable(name, span, false), item, false));
                }
            }
        }
        self.letrec_of(bindings, |this| this.sequence(&items[last + 1..], span), span)
    }

    pub(super) fn sequence(&mut self, items: &[DatumId], span: Span) -> Expanded {
        let mut parts = Vec::with_capacity(items.len());
        for &item in items {
            parts.push(self.expand(item)?);
        }
        Ok(match parts.len() {
            0 => self.constant(Const::Unspecified, span),
            1 => parts[0],
            _ => self.emit(Expr::Begin(parts.into()), span),
        })
    }

    /// `letrec*` over bindings whose fourth field says whether the datum is a definition or a bare expression.
    pub(super) fn letrec_of(
        &mut self,
        bindings: Vec<(Symbol, VarId, DatumId, bool)>,
        body: impl FnOnce(&mut Self) -> Expanded,
        span: Span,
    ) -> Expanded {
        for &(name, var, _, _) in &bindings {
            self.bind(name, var);
        }
        self.capture_local();
        let result = (|| {
            let mut inits = Vec::with_capacity(bindings.len());
            let mut quiet = true;
            let mut later: FxHashSet<VarId> = bindings.iter().map(|b| b.1).collect();
            let mut early: FxHashSet<VarId> = FxHashSet::default();
            for &(name, var, item, definition) in &bindings {
                let from = self.program.exprs.len();
                let init =
                    if definition { self.definition(item)? } else { self.expand_named(item, Some(name))? };
                quiet &= self.quiet[init.index()];
                self.used_early(from, |var| later.contains(&var), &mut early);
                later.remove(&var);
                self.program.vars[var.index()].quiet = quiet && !early.contains(&var);
                inits.push((var, init));
            }
            let body = body(self)?;
            self.nobody_else_knows(bindings.iter().map(|b| b.1), &early);
            Ok(self.emit(Expr::Letrec(inits.into(), body), span))
        })();
        for &(name, ..) in &bindings {
            self.unbind(name);
        }
        result
    }
}
