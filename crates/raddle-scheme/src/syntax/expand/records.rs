//! Forms that define or bind several names at once: several values, and records.
//!
//! They are rewritten as data, in the words of the language. A record is a vector whose first element is the pair that was made
//! for its type; two accesses of one field race as those of a vector's element do.

use super::forms::usage;
use super::{Expander, Lost};
use crate::syntax::reader::{Datum, DatumId};
use crate::syntax::source::{Span, SyntaxError};

impl Expander {
    fn word(&mut self, text: &str, span: Span) -> DatumId {
        let symbol = self.data.symbols.intern(text);
        self.data.push(Datum::Symbol(symbol), span)
    }

    fn form_of(&mut self, items: impl IntoIterator<Item = DatumId>, span: Span) -> DatumId {
        self.data.push(Datum::List(items.into_iter().collect(), None), span)
    }

    /// A form of a keyword and other forms.
    fn written_form(&mut self, head: &str, items: impl IntoIterator<Item = DatumId>, span: Span) -> DatumId {
        let head = self.word(head, span);
        self.form_of([head].into_iter().chain(items), span)
    }

    /// A name that no text has.
    fn fresh_word(&mut self, text: &str, span: Span) -> DatumId {
        self.word(&format!("{text}\u{2}{}", self.data.len()), span)
    }

    /// `(receive formals producer body ...)`
    pub(super) fn received(
        &mut self,
        formals: DatumId,
        producer: DatumId,
        body: &[DatumId],
        span: Span,
    ) -> DatumId {
        let nothing = self.form_of([], span);
        let producer = self.written_form("lambda", [nothing, producer], span);
        let consumer = self.written_form("lambda", [formals].into_iter().chain(body.iter().copied()), span);
        self.written_form("call-with-values", [producer, consumer], span)
    }

    /// `let-values` and `let*-values`, as nested calls. In the first the values wait under other names until all are there.
    pub(super) fn values_bound(
        &mut self,
        parallel: bool,
        clauses: DatumId,
        body: &[DatumId],
        span: Span,
    ) -> Result<DatumId, Lost> {
        let mut parts = Vec::new();
        let mut pairs = Vec::new();
        for clause in self.list(clauses).unwrap_or_default() {
            let Some(&[formals, producer]) = self.list(clause).as_deref() else {
                let error = SyntaxError::new(self.data.span(clause), "malformed clause");
                return self.error(error.help(usage("let-values")));
            };
            let formals = if parallel { self.renamed(formals, &mut pairs, span) } else { formals };
            parts.push((formals, producer));
        }
        let pairs = self.form_of(pairs, span);
        let mut code = self.written_form("let", [pairs].into_iter().chain(body.iter().copied()), span);
        for (formals, producer) in parts.into_iter().rev() {
            code = self.received(formals, producer, &[code], span);
        }
        Ok(code)
    }

    /// Formals under other names, and the bindings that give the values back to the names.
    fn renamed(&mut self, formals: DatumId, pairs: &mut Vec<DatumId>, span: Span) -> DatumId {
        match self.data.datum(formals).clone() {
            Datum::Symbol(_) => {
                let other = self.fresh_word("values", span);
                pairs.push(self.form_of([formals, other], span));
                other
            }
            Datum::List(items, tail) => {
                let items = items.iter().map(|&item| self.renamed_name(item, pairs, span)).collect();
                let tail = tail.map(|tail| self.renamed_name(tail, pairs, span));
                self.data.push(Datum::List(items, tail), span)
            }
            _ => formals,
        }
    }

    fn renamed_name(&mut self, name: DatumId, pairs: &mut Vec<DatumId>, span: Span) -> DatumId {
        if self.symbol(name).is_some() { self.renamed(name, pairs, span) } else { name }
    }

    /// `(define-values (name ...) producer)`: the values as a list, and a definition for each name.
    pub(super) fn defined_values(&mut self, items: &[DatumId], span: Span) -> Result<Vec<DatumId>, Lost> {
        let (&[_, formals, producer], help) = (items, "write (define-values (name ...) expression)") else {
            let error = SyntaxError::new(span, "malformed define-values");
            return self.error(error.help("write (define-values (name ...) expression)"));
        };
        let Some(names) = self.list(formals) else {
            return self.error(SyntaxError::new(span, "malformed define-values").help(help));
        };
        let all = self.fresh_word("values", span);
        let nothing = self.form_of([], span);
        let producer = self.written_form("lambda", [nothing, producer], span);
        let (formals, code) = {
            let list = self.written_form("list", names.iter().copied(), span);
            (formals, list)
        };
        let consumer = self.written_form("lambda", [formals, code], span);
        let values = self.written_form("call-with-values", [producer, consumer], span);
        let mut out = vec![self.written_form("define", [all, values], span)];
        for (at, &name) in names.iter().enumerate() {
            let mut rest = all;
            for _ in 0..at {
                rest = self.written_form("cdr", [rest], span);
            }
            let value = self.written_form("car", [rest], span);
            out.push(self.written_form("define", [name, value], span));
        }
        Ok(out)
    }

    /// `(define-record-type name (constructor field ...) predicate (field accessor [modifier]) ...)`
    pub(super) fn record_type(&mut self, items: &[DatumId], span: Span) -> Result<Vec<DatumId>, Lost> {
        let malformed = |this: &mut Self| {
            this.error(SyntaxError::new(span, "malformed define-record-type").help(
                "write (define-record-type name (constructor field ...) predicate (field accessor modifier) ...)",
            ))
        };
        let &[_, name, constructor, predicate, ref fields @ ..] = items else { return malformed(self) };
        let name = self.list(name).and_then(|parts| parts.first().copied()).unwrap_or(name);
        let Some(symbol) = self.symbol(name) else { return malformed(self) };
        let name = self.name(symbol).to_owned();
        let mut named = Vec::new();
        for &field in fields {
            let parts = self.list(field).unwrap_or_else(|| [field].into());
            match parts[..] {
                [field, ..] if parts.len() <= 3 && self.symbol(field).is_some() => named.push((field, parts)),
                _ => return malformed(self),
            }
        }
        let tag = self.fresh_word(&name, span);
        let quoted = self.word(&name, span);
        let quoted = self.written_form("quote", [quoted], span);
        let pair = self.written_form("cons", [quoted, quoted], span);
        let mut out = vec![self.written_form("define", [tag, pair], span)];
        // The constructor: the fields that it does not take have no value yet.
        let taken = match self.data.datum(constructor).clone() {
            Datum::List(parts, None) if !parts.is_empty() => Some((parts[0], parts[1..].to_vec())),
            Datum::Symbol(_) => Some((constructor, named.iter().map(|field| field.0).collect())),
            _ => None,
        };
        if let Some((maker, taken)) = taken {
            let unknown = taken.iter().find(|&&t| !named.iter().any(|f| self.symbol(f.0) == self.symbol(t)));
            if let Some(&unknown) = unknown {
                return self.error(SyntaxError::new(self.data.span(unknown), "the record has no such field"));
            }
            let mut values = vec![tag];
            for (field, _) in &named {
                let given = taken.iter().copied().find(|&t| self.symbol(t) == self.symbol(*field));
                values.push(match given {
                    Some(given) => given,
                    None => self.data.push(Datum::Bool(false), span),
                });
            }
            let span = self.data.span(constructor);
            let made = self.written_form("vector", values, span);
            let head = self.form_of([maker].into_iter().chain(taken), span);
            out.push(self.written_form("define", [head, made], span));
        }
        let check = |this: &mut Self, it: DatumId, span: Span| {
            let (zero, length) =
                (this.data.push(Datum::Int(0), span), this.written_form("vector-length", [it], span));
            let (is_vector, some) =
                (this.written_form("vector?", [it], span), this.written_form("<", [zero, length], span));
            let first = this.written_form("vector-ref", [it, zero], span);
            let same = this.written_form("eq?", [first, tag], span);
            this.written_form("and", [is_vector, some, same], span)
        };
        let it = self.fresh_word("it", span);
        if self.symbol(predicate).is_some() {
            let (head, code) = (self.form_of([predicate, it], span), check(self, it, span));
            out.push(self.written_form("define", [head, code], span));
        }
        for (at, (_, parts)) in named.iter().enumerate() {
            for (role, &procedure) in parts[1..].iter().enumerate() {
                let Some(symbol) = self.symbol(procedure) else { return malformed(self) };
                // What races is told at the field, not at the whole definition.
                let span = self.data.span(procedure);
                let index = self.data.push(Datum::Int(at as i64 + 1), span);
                let to = self.fresh_word("to", span);
                let (head, code) = if role == 0 {
                    (self.form_of([procedure, it], span), self.written_form("vector-ref", [it, index], span))
                } else {
                    let code = self.written_form("vector-set!", [it, index, to], span);
                    (self.form_of([procedure, it, to], span), code)
                };
                let message = format!("{} needs a record of type {name}", self.name(symbol));
                let message = self.data.push(Datum::Str(message.into()), span);
                let wrong = self.written_form("error", [message], span);
                let fits = check(self, it, span);
                let code = self.written_form("if", [fits, code, wrong], span);
                out.push(self.written_form("define", [head, code], span));
            }
        }
        Ok(out)
    }
}
