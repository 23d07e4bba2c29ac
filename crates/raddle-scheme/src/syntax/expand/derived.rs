//! Derived forms: what `let`, `cond`, `case`, `do` and quotation become in the core language.
//!
//! Chains are folded from the back in loops, so that a thousand clauses nest in the core program but not on the stack.

use super::forms::usage;
use super::{Expanded, Expander, Lost};
use crate::syntax::core::{Const, Expr, ExprId, Lambda, LambdaId, VarId};
use crate::syntax::prim::Prim;
use crate::syntax::reader::{Datum, DatumId, Symbol};
use crate::syntax::source::{Span, SyntaxError};
use rustc_hash::{FxHashMap, FxHashSet};

impl Expander {
    pub(super) fn and(&mut self, parts: &[DatumId], span: Span) -> Expanded {
        let Some((&last, first)) = parts.split_last() else {
            return Ok(self.constant(Const::Bool(true), span));
        };
        let tests = first.iter().map(|&p| self.expand(p)).collect::<Result<Vec<_>, _>>()?;
        let mut result = self.expand(last)?;
        for test in tests.into_iter().rev() {
            let no = self.constant(Const::Bool(false), span);
            result = self.emit(Expr::If(test, result, no), span);
        }
        Ok(result)
    }

    pub(super) fn lambda(
        &mut self,
        params: &[DatumId],
        rest: Option<DatumId>,
        body: &[DatumId],
        span: Span,
        name: Option<Symbol>,
    ) -> Expanded {
        let mut names = Vec::with_capacity(params.len());
        let mut known = FxHashSet::default();
        for &param in params.iter().chain(&rest) {
            match self.symbol(param) {
                Some(name) if known.insert(name) => names.push(name),
                Some(name) => {
                    let message = format!("{} is a parameter twice", self.name(name));
                    return self.error(SyntaxError::new(self.data.span(param), message));
                }
                None => return self.error(SyntaxError::new(self.data.span(param), "a parameter is a name")),
            }
        }
        let spans: Vec<Span> = params.iter().chain(&rest).map(|&p| self.data.span(p)).collect();
        let vars: Vec<VarId> = names.iter().zip(spans).map(|(&n, s)| self.variable(n, s, false)).collect();
        let (code, body_id) = self.in_body(|this| {
            names.iter().zip(&vars).for_each(|(&name, &var)| this.bind(name, var));
            let code = this.body(body, span);
            names.iter().for_each(|&name| this.unbind(name));
            code
        })?;
        self.program.bodies[body_id.index()] = code;
        let rest = rest.and_then(|_| vars.last().copied());
        let params = vars[..params.len()].into();
        self.program.lambdas.push(Lambda { name, params, rest, body: code, body_id, span });
        let id = LambdaId(self.program.lambdas.len() as u32 - 1);
        Ok(self.emit(Expr::Lambda(id), span))
    }

    /// Splits `((name init) ...)`.
    pub(super) fn bindings(&mut self, id: DatumId) -> Result<Vec<(Symbol, Span, DatumId)>, Lost> {
        let Some(items) = self.list(id) else {
            return self
                .error(SyntaxError::new(self.data.span(id), "bindings are written ((name value) ...)"));
        };
        let mut out = Vec::with_capacity(items.len());
        for &item in &items {
            let span = self.data.span(item);
            match self.list(item).as_deref() {
                Some(&[name, init]) if self.symbol(name).is_some() => {
                    out.extend(self.symbol(name).map(|symbol| (symbol, self.data.span(name), init)));
                }
                _ => return self.error(SyntaxError::new(span, "a binding is written (name value)")),
            }
        }
        Ok(out)
    }

    pub(super) fn plain_let(&mut self, bindings: DatumId, body: &[DatumId], span: Span) -> Expanded {
        let mut fields = Vec::new();
        for (name, span, init) in self.bindings(bindings)? {
            let init = self.expand_named(init, Some(name))?;
            fields.push((name, self.variable(name, span, false), init));
        }
        fields.iter().for_each(|&(name, var, _)| self.bind(name, var));
        let body = self.body(body, span);
        fields.iter().for_each(|&(name, ..)| self.unbind(name));
        let fields: Box<[_]> = fields.into_iter().map(|(_, var, init)| (var, init)).collect();
        let body = body?;
        Ok(if fields.is_empty() { body } else { self.emit(Expr::Let(fields, body), span) })
    }

    pub(super) fn let_star(&mut self, bindings: DatumId, body: &[DatumId], span: Span) -> Expanded {
        let mut fields = Vec::new();
        let result = (|| {
            for (name, span, init) in self.bindings(bindings)? {
                let init = self.expand_named(init, Some(name))?;
                let var = self.variable(name, span, false);
                self.bind(name, var);
                fields.push((name, var, init));
            }
            self.body(body, span)
        })();
        fields.iter().for_each(|&(name, ..)| self.unbind(name));
        let mut result = result?;
        for (_, var, init) in fields.into_iter().rev() {
            result = self.emit(Expr::Let([(var, init)].into(), result), span);
        }
        Ok(result)
    }

    pub(super) fn named_let(
        &mut self,
        name: Symbol,
        bindings: DatumId,
        body: &[DatumId],
        span: Span,
    ) -> Expanded {
        let bindings = self.bindings(bindings)?;
        let inits = bindings.iter().map(|b| self.expand(b.2)).collect::<Result<Vec<_>, _>>()?;
        let params: Vec<DatumId> =
            bindings.iter().map(|&(name, span, _)| self.data.push(Datum::Symbol(name), span)).collect();
        let var = self.variable(name, span, false);
        self.bind(name, var);
        let procedure = self.lambda(&params, None, body, span, Some(name));
        self.unbind(name);
        let procedure = procedure?;
        let callee = self.emit(Expr::Var(var), span);
        let call = self.emit(Expr::Call(callee, inits.into()), span);
        Ok(self.emit(Expr::Letrec([(var, procedure)].into(), call), span))
    }

    pub(super) fn do_loop(
        &mut self,
        bindings: DatumId,
        exit: DatumId,
        body: &[DatumId],
        span: Span,
    ) -> Expanded {
        let (Some(bindings), Some(exit)) = (self.list(bindings), self.list(exit)) else {
            return self.error(SyntaxError::new(span, "malformed do").help(usage("do")));
        };
        let mut fields = Vec::new();
        for &binding in &bindings {
            match self.list(binding).as_deref() {
                Some(&[name, init]) if self.symbol(name).is_some() => fields.push((name, init, name)),
                Some(&[name, init, step]) if self.symbol(name).is_some() => fields.push((name, init, step)),
                _ => {
                    return self
                        .error(SyntaxError::new(self.data.span(binding), "malformed do").help(usage("do")));
                }
            }
        }
        let Some((&test, results)) = exit.split_first() else {
            return self.error(SyntaxError::new(span, "malformed do").help(usage("do")));
        };
        // (let %loop ((name init) ...) (if test (begin result ...) (begin body ... (%loop step ...))))
        let name = self.data.symbols.intern("%do-loop");
        let word = |this: &mut Self, text: &str| {
            let symbol = this.data.symbols.intern(text);
            this.data.push(Datum::Symbol(symbol), span)
        };
        let list =
            |this: &mut Self, items: Vec<DatumId>| this.data.push(Datum::List(items.into(), None), span);
        let callee = self.data.push(Datum::Symbol(name), span);
        let again = list(self, [callee].into_iter().chain(fields.iter().map(|f| f.2)).collect());
        let begin = word(self, "begin");
        let done = list(self, [begin].into_iter().chain(results.iter().copied()).collect());
        let next = list(self, [begin].into_iter().chain(body.iter().copied()).chain([again]).collect());
        let branch = word(self, "if");
        let code = list(self, vec![branch, test, done, next]);
        let pairs = fields.iter().map(|f| list(self, vec![f.0, f.1])).collect();
        let bindings = list(self, pairs);
        self.named_let(name, bindings, &[code], span)
    }

    pub(super) fn cond(&mut self, clauses: &[DatumId], span: Span) -> Expanded {
        enum Clause {
            Plain(ExprId, ExprId),
            Value(ExprId),
            Arrow(VarId, ExprId, ExprId),
        }
        let mut parts = Vec::new();
        let mut otherwise = None;
        for (at, &clause) in clauses.iter().enumerate() {
            let here = self.data.span(clause);
            let items = self.list(clause).unwrap_or_default();
            let Some((&test, body)) = items.split_first() else {
                return self.error(SyntaxError::new(here, "a clause is written (test expression ...)"));
            };
            if self.keyword(&items) == Some("else") {
                if at + 1 != clauses.len() {
                    return self.error(SyntaxError::new(here, "else must be the last clause"));
                }
                otherwise = Some(self.sequence(body, here)?);
                break;
            }
            let test = self.expand(test)?;
            parts.push(match body {
                [] => (Clause::Value(test), here),
                &[arrow, receiver] if self.keyword(&[arrow]) == Some("=>") => {
                    let receiver = self.expand(receiver)?;
                    (Clause::Arrow(self.fresh("it", here), test, receiver), here)
                }
                body => (Clause::Plain(test, self.sequence(body, here)?), here),
            });
        }
        let mut result = match otherwise {
            Some(result) => result,
            None => self.constant(Const::Unspecified, span),
        };
        for (clause, here) in parts.into_iter().rev() {
            result = match clause {
                Clause::Plain(test, body) => self.emit(Expr::If(test, body, result), here),
                Clause::Value(test) => self.emit(Expr::Or([test, result].into()), here),
                Clause::Arrow(var, test, receiver) => {
                    let (asked, passed) = (self.emit(Expr::Var(var), here), self.emit(Expr::Var(var), here));
                    let call = self.emit(Expr::Call(receiver, [passed].into()), here);
                    let branch = self.emit(Expr::If(asked, call, result), here);
                    self.emit(Expr::Let([(var, test)].into(), branch), here)
                }
            };
        }
        Ok(result)
    }

    pub(super) fn case(&mut self, key: DatumId, clauses: &[DatumId], span: Span) -> Expanded {
        let key = self.expand(key)?;
        let var = self.fresh("key", span);
        let mut parts = Vec::new();
        let mut result = None;
        for &clause in clauses {
            let here = self.data.span(clause);
            let items = self.list(clause).unwrap_or_default();
            let Some((&choices, body)) = items.split_first() else {
                return self
                    .error(SyntaxError::new(here, "a clause is written ((datum ...) expression ...)"));
            };
            if self.keyword(&items) == Some("else") {
                result = Some(self.sequence(body, here)?);
                break;
            }
            let Some(choices) = self.list(choices) else {
                return self
                    .error(SyntaxError::new(here, "a clause is written ((datum ...) expression ...)"));
            };
            let mut tests = Vec::new();
            for &choice in &choices {
                let (value, datum) = (self.emit(Expr::Var(var), here), self.quoted(choice)?);
                tests.push(self.emit(Expr::PrimCall(Prim::Eqv, [value, datum].into()), here));
            }
            let test = match tests.len() {
                0 => self.constant(Const::Bool(false), here),
                1 => tests[0],
                _ => self.emit(Expr::Or(tests.into()), here),
            };
            parts.push((test, self.sequence(body, here)?, here));
        }
        let mut result = match result {
            Some(result) => result,
            None => self.constant(Const::Unspecified, span),
        };
        for (test, body, here) in parts.into_iter().rev() {
            result = self.emit(Expr::If(test, body, result), here);
        }
        Ok(self.emit(Expr::Let([(var, key)].into(), result), span))
    }

    /// A quoted datum: an atom is a constant, structure is built by `cons` and `vector`. The arena order of data makes
    /// one loop over the parts enough.
    pub(super) fn quoted(&mut self, id: DatumId) -> Expanded {
        let mut parts: Vec<DatumId> = Vec::new();
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            if self.is_swollen(parts.len()) {
                return self.error(SyntaxError::new(self.data.span(id), super::SWOLLEN));
            }
            parts.push(id);
            match self.data.datum(id) {
                Datum::List(items, tail) => work.extend(items.iter().chain(tail).copied()),
                Datum::Vector(items) => work.extend(items.iter().copied()),
                _ => {}
            }
        }
        let mut built: FxHashMap<DatumId, ExprId> = FxHashMap::default();
        for id in parts.into_iter().rev() {
            let span = self.data.span(id);
            let expr = match self.data.datum(id).clone() {
                Datum::Int(n) => self.constant(Const::Int(n), span),
                Datum::Big(n) => self.constant(Const::Big(n), span),
                Datum::Ratio(q) => self.constant(Const::Ratio(q), span),
                Datum::Real(x) => self.constant(Const::Real(x), span),
                Datum::Bool(b) => self.constant(Const::Bool(b), span),
                Datum::Str(s) => self.constant(Const::Str(s), span),
                Datum::Char(c) => self.constant(Const::Char(c), span),
                Datum::Symbol(s) => self.constant(Const::Symbol(self.written(s)), span),
                Datum::Lock(l) => self.constant(Const::Lock(l), span),
                Datum::Vector(items) => {
                    let items = items.iter().map(|item| built[item]).collect();
                    self.emit(Expr::PrimCall(Prim::Vector, items), span)
                }
                Datum::List(items, tail) => {
                    let mut list = match tail {
                        Some(tail) => built[&tail],
                        None => self.constant(Const::Nil, span),
                    };
                    for item in items.iter().rev() {
                        list = self.emit(Expr::PrimCall(Prim::Cons, [built[item], list].into()), span);
                    }
                    list
                }
            };
            built.insert(id, expr);
        }
        Ok(built[&id])
    }
}
