//! Uses of macros: which rule fits a form, and what its template writes.
//!
//! Patterns and templates are walked recursively, no deeper than their definition was checked to be; what a program of macros
//! writes in all is bounded, since a macro may write itself for ever, or double what it is given at every step.

use super::{Expander, Lost};
use crate::syntax::reader::{Datum, DatumId, Symbol};
use crate::syntax::source::{Span, SyntaxError};
use rustc_hash::FxHashMap;

/// Forms that the macros of a program may write.
const DATA_MAX: usize = 1_000_000;

/// What a pattern variable stands for.
enum Matched {
    One(DatumId),
    /// One for each form that the pattern before an ellipsis fits.
    Many(Vec<Matched>),
}

type Bindings = FxHashMap<Symbol, Matched>;
/// What pattern variables stand for in one place of a template.
type Known<'a> = FxHashMap<Symbol, &'a Matched>;

/// The writing out of one template.
struct Filling {
    rules: u32,
    ellipsis: Option<Symbol>,
    span: Span,
    /// The alias of each symbol that the template brings along.
    renamed: FxHashMap<Symbol, Symbol>,
}

impl Expander {
    // ---- uses ------------------------------------------------------------------------------------------------

    /// What a form that uses a macro stands for.
    pub(super) fn rewritten(&mut self, rules: u32, items: &[DatumId], span: Span) -> Result<DatumId, Lost> {
        self.stopped = self.stopped || self.clock.is_over();
        if self.stopped {
            return Err(Lost);
        }
        let name = self.symbol(items[0]).map(|symbol| self.name(symbol).to_owned()).unwrap_or_default();
        self.filled += 1;
        if self.filled > DATA_MAX {
            return self.endless(span);
        }
        for at in 0..self.macros[rules as usize].rules.len() {
            let (pattern, template) = self.macros[rules as usize].rules[at];
            let Datum::List(patterns, tail) = self.data.datum(pattern).clone() else { continue };
            let mut bindings = Bindings::default();
            let patterns = &patterns[1.min(patterns.len())..];
            if self.fit_all(rules, (patterns, tail), (&items[1..], None), span, &mut bindings) {
                let ellipsis = Some(self.macros[rules as usize].ellipsis);
                let mut filling = Filling { rules, ellipsis, span, renamed: FxHashMap::default() };
                let known: Known = bindings.iter().map(|(&symbol, matched)| (symbol, matched)).collect();
                return self.fill(template, &known, &mut filling);
            }
        }
        let error = SyntaxError::new(span, format!("no rule of {name} fits this form"));
        self.error(error.help("its rules are where it is defined"))
    }

    fn endless<T>(&mut self, span: Span) -> Result<T, Lost> {
        let message = format!("the macros of this program write more than {DATA_MAX} forms");
        self.error(SyntaxError::new(span, message).help("does each of them come to an end?"))
    }

    /// Whether what macros have written stands in no relation to the text. A form that is written once may stand in many places.
    pub(super) fn is_swollen(&self, size: usize) -> bool {
        !self.macros.is_empty() && size > 16 * self.data_read + 2 * DATA_MAX
    }

    fn is_ellipsis(&self, id: DatumId, ellipsis: Option<Symbol>) -> bool {
        self.symbol(id).is_some_and(|symbol| Some(self.written(symbol)) == ellipsis)
    }

    /// A list and what follows its dot, which may go on with a list.
    fn spread(&self, id: DatumId) -> Option<(Vec<DatumId>, Option<DatumId>)> {
        let Datum::List(items, tail) = self.data.datum(id) else { return None };
        let (mut all, mut tail) = (items.to_vec(), *tail);
        while let Some(Datum::List(more, next)) = tail.map(|id| self.data.datum(id)) {
            all.extend(more);
            tail = *next;
        }
        Some((all, tail))
    }

    fn fits(&mut self, rules: u32, pattern: DatumId, form: DatumId, out: &mut Bindings) -> bool {
        match self.data.datum(pattern).clone() {
            Datum::Symbol(symbol) if self.is_literal(rules, symbol) => {
                self.symbol(form).is_some_and(|other| {
                    self.written(other) == self.written(symbol) && self.resolve(other).is_none()
                })
            }
            Datum::Symbol(symbol) => {
                if self.name(symbol) != "_" {
                    out.insert(symbol, Matched::One(form));
                }
                true
            }
            Datum::List(..) => match (self.spread(pattern), self.spread(form)) {
                (Some((patterns, tail)), Some((forms, rest))) => {
                    self.fit_all(rules, (&patterns, tail), (&forms, rest), self.data.span(form), out)
                }
                _ => false,
            },
            Datum::Vector(patterns) => match self.data.datum(form).clone() {
                Datum::Vector(forms) => {
                    self.fit_all(rules, (&patterns, None), (&forms, None), self.data.span(form), out)
                }
                _ => false,
            },
            atom => atom == *self.data.datum(form),
        }
    }

    fn is_literal(&self, rules: u32, symbol: Symbol) -> bool {
        self.macros[rules as usize].literals.contains(&self.written(symbol))
    }

    fn fit_all(
        &mut self,
        rules: u32,
        (patterns, tail): (&[DatumId], Option<DatumId>),
        (forms, rest): (&[DatumId], Option<DatumId>),
        span: Span,
        out: &mut Bindings,
    ) -> bool {
        let ellipsis = Some(self.macros[rules as usize].ellipsis);
        let dots = patterns.iter().skip(1).position(|&p| self.is_ellipsis(p, ellipsis));
        let (before, repeated, after) = match dots {
            Some(at) => (&patterns[..at], Some(patterns[at]), &patterns[at + 2..]),
            None => (patterns, None, &[][..]),
        };
        let Some(surplus) = forms.len().checked_sub(before.len() + after.len()) else { return false };
        let (first, others) = forms.split_at(before.len());
        let middle = if repeated.is_some() { surplus } else { 0 };
        let (middle, last) = others.split_at(middle);
        let (last, over) = last.split_at(after.len());
        if tail.is_none() && (rest.is_some() || !over.is_empty()) {
            return false;
        }
        let fixed = before.iter().zip(first).chain(after.iter().zip(last));
        for (&pattern, &form) in fixed {
            if !self.fits(rules, pattern, form, out) {
                return false;
            }
        }
        if let Some(repeated) = repeated {
            let mut fitted: Vec<Bindings> = Vec::with_capacity(middle.len());
            for &form in middle {
                let mut inner = Bindings::default();
                if !self.fits(rules, repeated, form, &mut inner) {
                    return false;
                }
                fitted.push(inner);
            }
            // Each variable of the repeated pattern finds its values here, also if there are none.
            for name in self.symbols(repeated) {
                if !self.is_literal(rules, name) && Some(self.written(name)) != ellipsis {
                    let values = fitted.iter_mut().filter_map(|inner| inner.remove(&name)).collect();
                    out.insert(name, Matched::Many(values));
                }
            }
        }
        match tail {
            // What is left of the list, or what follows its dot.
            Some(tail) => {
                let left = match rest {
                    Some(rest) if over.is_empty() => rest,
                    rest => self.data.push(Datum::List(over.into(), rest), span),
                };
                self.fits(rules, tail, left, out)
            }
            None => true,
        }
    }

    /// The symbols of a datum.
    fn symbols(&self, id: DatumId) -> Vec<Symbol> {
        let (mut work, mut out) = (vec![id], Vec::new());
        while let Some(id) = work.pop() {
            out.extend(self.symbol(id));
            work.extend(self.parts(id));
        }
        out
    }

    // ---- templates -------------------------------------------------------------------------------------------

    fn fill(&mut self, template: DatumId, known: &Known, filling: &mut Filling) -> Result<DatumId, Lost> {
        match self.data.datum(template).clone() {
            Datum::Symbol(symbol) => match known.get(&symbol) {
                Some(Matched::One(datum)) => Ok(*datum),
                Some(Matched::Many(_)) => {
                    let message = format!("{} stands for several forms", self.name(symbol));
                    let error = SyntaxError::new(self.data.span(template), message);
                    self.error(error.help("an ellipsis must follow it in the template as in the pattern"))
                }
                None => {
                    let alias = match filling.renamed.get(&symbol) {
                        Some(&alias) => alias,
                        None => {
                            // No text has a control character in a name.
                            let name = format!("{}\u{1}{}", self.name(symbol), self.aliases.len());
                            let alias = self.data.symbols.intern(&name);
                            self.aliases.insert(alias, (symbol, filling.rules));
                            filling.renamed.insert(symbol, alias);
                            alias
                        }
                    };
                    Ok(self.data.push(Datum::Symbol(alias), filling.span))
                }
            },
            Datum::List(items, tail) => {
                if let (&[dots, quoted], None) = (&items[..], tail)
                    && self.is_ellipsis(dots, filling.ellipsis)
                {
                    let ellipsis = filling.ellipsis.take();
                    let filled = self.fill(quoted, known, filling);
                    filling.ellipsis = ellipsis;
                    return filled;
                }
                let mut out = self.fill_all(&items, known, filling)?;
                let mut rest = None;
                if let Some(tail) = tail {
                    let tail = self.fill(tail, known, filling)?;
                    match self.spread(tail) {
                        Some((more, end)) => {
                            out.extend(more);
                            rest = end;
                        }
                        None => rest = Some(tail),
                    }
                }
                Ok(self.data.push(Datum::List(out.into(), rest), filling.span))
            }
            Datum::Vector(items) => {
                let out = self.fill_all(&items, known, filling)?;
                Ok(self.data.push(Datum::Vector(out.into()), filling.span))
            }
            _ => Ok(template),
        }
    }

    fn fill_all(
        &mut self,
        items: &[DatumId],
        known: &Known,
        filling: &mut Filling,
    ) -> Result<Vec<DatumId>, Lost> {
        let mut out = Vec::with_capacity(items.len());
        let mut at = 0;
        while at < items.len() {
            let dots = items[at + 1..].iter().take_while(|&&i| self.is_ellipsis(i, filling.ellipsis)).count();
            self.filled += 1;
            if dots == 0 {
                out.push(self.fill(items[at], known, filling)?);
            } else {
                self.fill_repeated(items[at], dots, known, filling, &mut out)?;
            }
            at += 1 + dots;
        }
        Ok(out)
    }

    fn fill_repeated(
        &mut self,
        item: DatumId,
        dots: usize,
        known: &Known,
        filling: &mut Filling,
        out: &mut Vec<DatumId>,
    ) -> Result<(), Lost> {
        let mut many = Vec::new();
        for symbol in self.symbols(item) {
            if let Some(Matched::Many(values)) = known.get(&symbol) {
                many.push((symbol, values));
            }
        }
        let count = many.iter().map(|(_, values)| values.len()).max();
        let Some(count) = count.filter(|&count| many.iter().all(|(_, values)| values.len() == count)) else {
            let message = match count {
                None => "nothing before this ellipsis stands for several forms",
                Some(_) => "what stands before this ellipsis stands for different numbers of forms",
            };
            return self.error(SyntaxError::new(self.data.span(item), message));
        };
        self.filled += count;
        if self.filled > DATA_MAX {
            return self.endless(filling.span);
        }
        for at in 0..count {
            let mut inner = known.clone();
            inner.extend(many.iter().map(|&(symbol, values)| (symbol, &values[at])));
            if dots > 1 {
                self.fill_repeated(item, dots - 1, &inner, filling, out)?;
            } else {
                out.push(self.fill(item, &inner, filling)?);
            }
        }
        Ok(())
    }
}
