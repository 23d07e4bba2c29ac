//! Macros: `define-syntax`, `let-syntax` and `letrec-syntax` with `syntax-rules`.
//!
//! A macro's rules are matched against the form and the template of the first that fits is written out in its place. What keeps the
//! names of macro and program apart is renaming (Clinger and Rees, *Macros That Work*, POPL 1991): each symbol that a template
//! brings along becomes an *alias*, a symbol of its own that remembers where it comes from. If the form that was written binds the
//! alias, nothing else in the program has that name; if it does not, the alias means what its original meant where the
//! macro was defined: a variable, another macro, or a keyword. Quotation takes aliases back to what was written.
//!
//! Deviations: what a macro at top level brings along means what it means at top level, also when a definition there comes after the
//! macro, which is what a program at a prompt expects. A macro must be defined before its first use. How a use is matched and written
//! out is in `rewrite`.

use super::{Bound, Expanded, Expander, Lost, NESTING_MAX};
use crate::syntax::reader::{Datum, DatumId, Symbol};
use crate::syntax::source::{Span, SyntaxError};
use rustc_hash::FxHashMap;

pub(super) struct Macro {
    pub(super) literals: Vec<Symbol>,
    pub(super) ellipsis: Symbol,
    /// Patterns and templates.
    pub(super) rules: Vec<(DatumId, DatumId)>,
    /// Defined at top level.
    global: bool,
    /// What the names of the templates mean where a local macro is defined; none until its neighbours are bound.
    seen: Option<FxHashMap<Symbol, Bound>>,
}

impl Expander {
    // ---- names -----------------------------------------------------------------------------------------------

    /// The symbol that was written, for an alias.
    pub(super) fn written(&self, mut symbol: Symbol) -> Symbol {
        while let Some(&(original, _)) = self.aliases.get(&symbol) {
            symbol = original;
        }
        symbol
    }

    pub(super) fn name(&self, symbol: Symbol) -> &str {
        self.data.symbols.name(self.written(symbol))
    }

    /// What a symbol means here; none for a keyword, a primitive or nothing at all.
    pub(super) fn resolve(&self, mut symbol: Symbol) -> Option<Bound> {
        loop {
            if let Some(bound) = self.scope.get(&symbol).and_then(|stack| stack.last()) {
                return Some(*bound);
            }
            let &(original, rules) = self.aliases.get(&symbol)?;
            let rules = &self.macros[rules as usize];
            match &rules.seen {
                Some(seen) => return seen.get(&original).copied(),
                None if rules.global && !self.aliases.contains_key(&original) => {
                    return self.outermost(original);
                }
                None => symbol = original,
            }
        }
    }

    /// What a symbol means at top level.
    fn outermost(&self, symbol: Symbol) -> Option<Bound> {
        let first = *self.scope.get(&symbol)?.first()?;
        let global = match first {
            Bound::Var { var, .. } => self.program.var(var).global,
            Bound::Macro(rules) => self.macros[rules as usize].global,
        };
        global.then_some(first)
    }

    /// The macro that a form uses.
    pub(super) fn macro_of(&self, items: &[DatumId]) -> Option<u32> {
        match self.resolve(self.symbol(*items.first()?)?)? {
            Bound::Macro(rules) => Some(rules),
            Bound::Var { .. } => None,
        }
    }

    // ---- definitions -----------------------------------------------------------------------------------------

    /// Binds the name of a `define-syntax` form, and returns it.
    pub(super) fn define_syntax(
        &mut self,
        items: &[DatumId],
        span: Span,
        global: bool,
    ) -> Result<Symbol, Lost> {
        let &[_, name, rules] = items else {
            return self.error(
                SyntaxError::new(span, "malformed define-syntax")
                    .help("write (define-syntax name (syntax-rules ...))"),
            );
        };
        let Some(name) = self.symbol(name) else {
            let error = SyntaxError::new(self.data.span(name), "the name of a macro is a symbol");
            return self.error(error.help("write (define-syntax name (syntax-rules ...))"));
        };
        let rules = self.rules(rules, global)?;
        if !global {
            self.uncaptured.push(rules);
        }
        self.scope.entry(name).or_default().push(Bound::Macro(rules));
        Ok(name)
    }

    /// `(let-syntax ((name rules) ...) body ...)`, and the same with `letrec-syntax`.
    pub(super) fn let_syntax(
        &mut self,
        recursive: bool,
        bindings: DatumId,
        body: &[DatumId],
        span: Span,
    ) -> Expanded {
        let mut made = Vec::new();
        for (name, _, rules) in self.bindings(bindings)? {
            made.push((name, self.rules(rules, false)?));
        }
        if !recursive {
            made.iter().for_each(|&(_, rules)| self.capture(rules));
        }
        for &(name, rules) in &made {
            self.scope.entry(name).or_default().push(Bound::Macro(rules));
        }
        if recursive {
            made.iter().for_each(|&(_, rules)| self.capture(rules));
        }
        let result = self.body(body, span);
        made.iter().for_each(|&(name, _)| self.unbind(name));
        result
    }

    fn rules(&mut self, id: DatumId, global: bool) -> Result<u32, Lost> {
        let span = self.data.span(id);
        let items = self.list(id).unwrap_or_default();
        if self.keyword(&items) != Some("syntax-rules") {
            let error = SyntaxError::new(span, "a macro is made of syntax-rules here");
            return self.error(error.help("write (syntax-rules (literal ...) (pattern template) ...)"));
        }
        if self.is_deep(id) {
            return self.error(SyntaxError::new(span, format!("nested deeper than {NESTING_MAX} forms")));
        }
        let mut rest = &items[1..];
        let mut ellipsis = self.data.symbols.intern("...");
        if let [own, others @ ..] = rest
            && let Some(symbol) = self.symbol(*own)
        {
            (ellipsis, rest) = (self.written(symbol), others);
        }
        let literals = match rest.first().and_then(|&first| self.list(first)) {
            Some(literals) => literals.iter().map(|&l| self.symbol(l)).collect::<Option<Vec<Symbol>>>(),
            None => None,
        };
        let Some(literals) = literals else {
            let error = SyntaxError::new(span, "syntax-rules begins with a list of literals");
            return self.error(error.help("write (syntax-rules (literal ...) (pattern template) ...)"));
        };
        let literals = literals.into_iter().map(|literal| self.written(literal)).collect();
        let mut rules = Vec::new();
        for &rule in &rest[1..] {
            match self.list(rule).as_deref() {
                Some(&[pattern, template]) if matches!(self.data.datum(pattern), Datum::List(..)) => {
                    rules.push((pattern, template));
                }
                _ => {
                    let error =
                        SyntaxError::new(self.data.span(rule), "a rule is written (pattern template)");
                    return self
                        .error(error.help("a pattern is a list that begins with the name of the macro"));
                }
            }
        }
        self.macros.push(Macro { literals, ellipsis, rules, global, seen: None });
        Ok(self.macros.len() as u32 - 1)
    }

    /// Notes what the names in the templates of local macros mean, once the names beside them are bound.
    pub(super) fn capture_local(&mut self) {
        for rules in std::mem::take(&mut self.uncaptured) {
            self.capture(rules);
        }
    }

    fn capture(&mut self, rules: u32) {
        let mut seen = FxHashMap::default();
        let mut work: Vec<DatumId> = self.macros[rules as usize].rules.iter().map(|rule| rule.1).collect();
        while let Some(id) = work.pop() {
            if let Some(symbol) = self.symbol(id)
                && let Some(bound) = self.resolve(symbol)
            {
                seen.insert(symbol, bound);
            }
            work.extend(self.parts(id));
        }
        self.macros[rules as usize].seen = Some(seen);
    }

    pub(super) fn parts(&self, id: DatumId) -> Vec<DatumId> {
        match self.data.datum(id) {
            Datum::List(items, tail) => items.iter().chain(tail).copied().collect(),
            Datum::Vector(items) => items.to_vec(),
            _ => Vec::new(),
        }
    }

    fn is_deep(&self, id: DatumId) -> bool {
        let mut work = vec![(id, 0)];
        while let Some((id, depth)) = work.pop() {
            if depth > NESTING_MAX {
                return true;
            }
            work.extend(self.parts(id).into_iter().map(|part| (part, depth + 1)));
        }
        false
    }
}
