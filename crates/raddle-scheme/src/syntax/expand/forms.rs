//! Forms: what the head of a list says.
//!
//! Keywords, primitives and calls, in this order; a keyword that the program binds is a call. The forms that need more than
//! a line or two to become core expressions are in `derived`.

use super::{Expanded, Expander, Lost};
use crate::syntax::core::{Const, Expr, VarId};
use crate::syntax::prim::Prim;
use crate::syntax::reader::{Datum, DatumId, Symbol};
use crate::syntax::source::{Span, SyntaxError};

impl Expander {
    pub(super) fn form(&mut self, items: &[DatumId], span: Span, name: Option<Symbol>) -> Expanded {
        if let Some(rules) = self.macro_of(items) {
            let written = self.rewritten(rules, items, span)?;
            return self.expand_named(written, name);
        }
        let keyword = self.keyword(items).map(str::to_owned);
        let Some(keyword) = keyword else { return self.call(items, span) };
        let args = &items[1..];
        match (keyword.as_str(), args) {
            ("quote", &[datum]) => self.quoted(datum),
            ("quasiquote", &[datum]) => self.quasiquoted(datum, 1),
            ("lambda" | "λ", [params, body @ ..]) => match self.data.datum(*params).clone() {
                Datum::List(params, rest) => self.lambda(&params, rest, body, span, name),
                Datum::Symbol(_) => self.lambda(&[], Some(*params), body, span, name),
                _ => self
                    .error(SyntaxError::new(self.data.span(*params), "parameters are names in parentheses")),
            },
            ("if", &[test, then]) => {
                let (test, then) = (self.expand(test)?, self.expand(then)?);
                let other = self.constant(Const::Unspecified, span);
                Ok(self.emit(Expr::If(test, then, other), span))
            }
            ("if", &[test, then, other]) => {
                let (test, then, other) = (self.expand(test)?, self.expand(then)?, self.expand(other)?);
                Ok(self.emit(Expr::If(test, then, other), span))
            }
            ("when" | "unless", [test, body @ ..]) if !body.is_empty() => {
                let test = self.expand(*test)?;
                let body = self.sequence(body, span)?;
                let skip = self.constant(Const::Unspecified, span);
                let (then, other) = if keyword == "when" { (body, skip) } else { (skip, body) };
                Ok(self.emit(Expr::If(test, then, other), span))
            }
            ("set!", &[target, value]) => {
                let var = self.assigned(target)?;
                let value = self.expand(value)?;
                Ok(self.emit(Expr::Set(var, value), span))
            }
            ("begin", body) => self.sequence(body, span),
            ("and", parts) => self.and(parts, span),
            ("or", parts) => match parts.len() {
                0 => Ok(self.constant(Const::Bool(false), span)),
                1 => self.expand(parts[0]),
                _ => {
                    let parts = parts.iter().map(|&p| self.expand(p)).collect::<Result<Vec<_>, _>>()?;
                    Ok(self.emit(Expr::Or(parts.into()), span))
                }
            },
            ("cond", clauses) => self.cond(clauses, span),
            ("case", [key, clauses @ ..]) => self.case(*key, clauses, span),
            ("let", [first, body @ ..]) => match self.symbol(*first) {
                Some(name) if !body.is_empty() => self.named_let(name, body[0], &body[1..], span),
                _ => self.plain_let(*first, body, span),
            },
            ("let*", [bindings, body @ ..]) => self.let_star(*bindings, body, span),
            ("letrec" | "letrec*", [bindings, body @ ..]) => {
                let mut fields = Vec::new();
                for (name, span, init) in self.bindings(*bindings)? {
                    fields.push((name, self.variable(name, span, false), init, false));
                }
                self.letrec_of(fields, |this| this.body(body, span), span)
            }
            ("do", [bindings, exit, body @ ..]) => self.do_loop(*bindings, *exit, body, span),
            ("delay", &[code]) => {
                let promise = self.lambda(&[], None, &[code], span, None)?;
                let made = self.word_reference("promise-of", span)?;
                Ok(self.emit(Expr::Call(made, [promise].into()), span))
            }
            ("deref", &[target]) if self.futures => self.deref(target, span),
            ("spawn" | "fork" | "future", code) if !code.is_empty() => {
                let (code, body) = self.in_body(|this| this.body(code, span))?;
                self.program.bodies[body.index()] = code;
                Ok(self.emit(Expr::Spawn(code), span))
            }
            ("join", &[thread]) => {
                let thread = self.expand(thread)?;
                Ok(self.emit(Expr::Join(thread), span))
            }
            ("acquire" | "release", &[target]) => self.lock_operation(keyword == "acquire", target, span),
            ("cas", &[target, old, new]) => self.cas(target, old, new, span),
            ("cas", &[vector, index, old, new]) => {
                self.prim_call(Prim::CasVector, &[vector, index, old, new], span)
            }
            ("assert", &[test]) => {
                let then = self.constant(Const::Unspecified, span);
                let text = self.constant(Const::Str("assertion failed".into()), span);
                let other = self.emit(Expr::PrimCall(Prim::Error, [text].into()), span);
                let test = self.expand(test)?;
                Ok(self.emit(Expr::If(test, then, other), span))
            }
            ("let-syntax" | "letrec-syntax", [bindings, body @ ..]) => {
                self.let_syntax(keyword == "letrec-syntax", *bindings, body, span)
            }
            ("syntax-rules", _) => self.error(
                SyntaxError::new(span, "syntax-rules makes a macro and is no expression")
                    .help("write (define-syntax name (syntax-rules ...))"),
            ),
            ("let-values" | "let*-values", [clauses, body @ ..]) => {
                let code = self.values_bound(keyword == "let-values", *clauses, body, span)?;
                self.expand(code)
            }
            ("receive", [formals, producer, body @ ..]) => {
                let code = self.received(*formals, *producer, body, span);
                self.expand(code)
            }
            ("string-set!" | "string-fill!", _) => self.error(
                SyntaxError::new(span, "strings cannot be changed here")
                    .help("build a new one with substring and string-append"),
            ),
            ("define" | "define-syntax" | "define-values" | "define-record-type", _) => self.error(
                SyntaxError::new(span, "a definition stands at the beginning of a body")
                    .help("use let or letrec here"),
            ),
            (word, _) if FORMS.contains(&word) => {
                self.error(SyntaxError::new(span, format!("malformed {word}")).help(usage(word)))
            }
            (word, args) => match Prim::by_name(word) {
                Some(prim) => self.prim_call(prim, args, span),
                None => self.library_call(word, items, span),
            },
        }
    }

    /// `(list ...)` and `(cadr ...)` expand in place; everything else is a call.
    fn library_call(&mut self, word: &str, items: &[DatumId], span: Span) -> Expanded {
        let path = word.strip_prefix('c').and_then(|w| w.strip_suffix('r')).unwrap_or("");
        if (2..=4).contains(&path.len()) && path.bytes().all(|b| b == b'a' || b == b'd') {
            let &[_, argument] = items else {
                return self.error(SyntaxError::new(span, format!("{word} takes one argument")));
            };
            let mut value = self.expand(argument)?;
            for step in path.bytes().rev() {
                let prim = if step == b'a' { Prim::Car } else { Prim::Cdr };
                value = self.emit(Expr::PrimCall(prim, [value].into()), span);
            }
            return Ok(value);
        }
        self.call(items, span)
    }

    /// The variable of that name, which the prelude has.
    fn word_reference(&mut self, word: &str, span: Span) -> Expanded {
        let symbol = self.data.symbols.intern(word);
        self.reference(symbol, span)
    }

    /// The value of a future, which is waited for, or of a ref.
    fn deref(&mut self, target: DatumId, span: Span) -> Expanded {
        let target = self.expand(target)?;
        let var = self.fresh("it", span);
        let (asked, waited, read) = (
            self.emit(Expr::Var(var), span),
            self.emit(Expr::Var(var), span),
            self.emit(Expr::Var(var), span),
        );
        let test = self.emit(Expr::PrimCall(Prim::IsThread, [asked].into()), span);
        let wait = self.emit(Expr::Join(waited), span);
        let get = self.emit(Expr::PrimCall(Prim::Deref, [read].into()), span);
        let branch = self.emit(Expr::If(test, wait, get), span);
        Ok(self.emit(Expr::Let([(var, target)].into(), branch), span))
    }

    /// A quasiquoted datum, inside of so many of them.
    fn quasiquoted(&mut self, id: DatumId, level: usize) -> Expanded {
        if self.depth >= super::NESTING_MAX {
            return self.error(SyntaxError::new(self.data.span(id), "nested too deeply"));
        }
        self.depth += 1;
        let result = self.quasiquoted_datum(id, level);
        self.depth -= 1;
        result
    }

    fn quasiquoted_datum(&mut self, id: DatumId, level: usize) -> Expanded {
        let span = self.data.span(id);
        match self.data.datum(id).clone() {
            Datum::List(items, tail) if !items.is_empty() => {
                let word = self.keyword(&items).map(str::to_owned);
                let inner = match (word.as_deref(), &items[..], tail) {
                    (Some("unquote"), &[_, code], None) if level == 1 => return self.expand(code),
                    (Some("unquote"), [_, _], None) => level - 1,
                    (Some("quasiquote"), [_, _], None) => level + 1,
                    _ => level,
                };
                let mut list = match tail {
                    Some(tail) => self.quasiquoted(tail, inner)?,
                    None => self.constant(Const::Nil, span),
                };
                for &item in items.iter().rev() {
                    let parts = self.list(item).unwrap_or_default();
                    list = match (self.keyword(&parts), &parts[..]) {
                        (Some("unquote-splicing"), &[_, code]) if level == 1 => {
                            let append = self.word_reference("append", span)?;
                            let spliced = self.expand(code)?;
                            self.emit(Expr::Call(append, [spliced, list].into()), span)
                        }
                        _ => {
                            let item = self.quasiquoted(item, inner)?;
                            self.emit(Expr::PrimCall(Prim::Cons, [item, list].into()), span)
                        }
                    };
                }
                Ok(list)
            }
            Datum::Vector(items) => {
                let list = self.data.push(Datum::List(items, None), span);
                let list = self.quasiquoted(list, level)?;
                let vector = self.word_reference("list->vector", span)?;
                Ok(self.emit(Expr::Call(vector, [list].into()), span))
            }
            _ => self.quoted(id),
        }
    }

    fn call(&mut self, items: &[DatumId], span: Span) -> Expanded {
        let f = self.expand(items[0])?;
        let args = items[1..].iter().map(|&arg| self.expand(arg)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.emit(Expr::Call(f, args.into()), span))
    }

    fn prim_call(&mut self, prim: Prim, args: &[DatumId], span: Span) -> Expanded {
        if !prim.accepts(args.len()) {
            let (min, max) = prim.arity();
            let wanted = match max {
                Some(max) if max == min => min.to_string(),
                Some(max) => format!("{min} to {max}"),
                None => format!("at least {min}"),
            };
            let message = format!("{} takes {wanted} arguments, not {}", prim.name(), args.len());
            return self.error(SyntaxError::new(span, message));
        }
        let args = args.iter().map(|&arg| self.expand(arg)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.emit(Expr::PrimCall(prim, args.into()), span))
    }

    fn assigned(&mut self, target: DatumId) -> Result<VarId, Lost> {
        let span = self.data.span(target);
        let Some(name) = self.symbol(target) else {
            return self.error(SyntaxError::new(span, "only a variable can be assigned"));
        };
        match self.lookup(name) {
            Some(var) => {
                self.program.vars[var.index()].assigned = true;
                Ok(var)
            }
            None => {
                let message = format!("{} is not bound", self.name(name));
                self.error(SyntaxError::new(span, message).help("define it first"))
            }
        }
    }

    fn cas(&mut self, target: DatumId, old: DatumId, new: DatumId, span: Span) -> Expanded {
        if self.symbol(target).is_none() {
            return self.prim_call(Prim::CasRef, &[target, old, new], span);
        }
        let var = self.assigned(target)?;
        let (old, new) = (self.expand(old)?, self.expand(new)?);
        Ok(self.emit(Expr::CasVar(var, old, new), span))
    }

    fn lock_operation(&mut self, acquire: bool, target: DatumId, span: Span) -> Expanded {
        if self.symbol(target).is_some() {
            // Whether the variable holds a lock or *is* one shows at run time, so it counts as assigned.
            let var = self.assigned(target)?;
            return Ok(self.emit(if acquire { Expr::AcquireVar(var) } else { Expr::ReleaseVar(var) }, span));
        }
        let lock = self.expand(target)?;
        Ok(self.emit(if acquire { Expr::Acquire(lock) } else { Expr::Release(lock) }, span))
    }
}

pub(super) const FORMS: &[&str] = &[
    "quote",
    "lambda",
    "if",
    "when",
    "unless",
    "set!",
    "begin",
    "and",
    "or",
    "cond",
    "case",
    "let",
    "let*",
    "letrec",
    "letrec*",
    "do",
    "spawn",
    "fork",
    "future",
    "delay",
    "quasiquote",
    "join",
    "acquire",
    "release",
    "cas",
    "assert",
    "define",
    "define-syntax",
    "define-values",
    "define-record-type",
    "let-syntax",
    "letrec-syntax",
    "syntax-rules",
    "let-values",
    "let*-values",
    "receive",
    "else",
    "=>",
];

pub(super) fn usage(word: &str) -> &'static str {
    match word {
        "quote" => "write (quote datum)",
        "lambda" => "write (lambda (name ...) expression ...)",
        "if" => "write (if test then else)",
        "when" | "unless" => "write (when test expression ...)",
        "set!" => "write (set! name expression)",
        "let" | "let*" | "letrec" | "letrec*" => "write (let ((name value) ...) expression ...)",
        "do" => "write (do ((name init step) ...) (test result ...) expression ...)",
        "case" => "write (case key ((datum ...) expression ...) ...)",
        "spawn" | "fork" | "future" => "write (spawn expression ...)",
        "delay" => "write (delay expression)",
        "quasiquote" => "write (quasiquote datum)",
        "join" => "write (join thread)",
        "acquire" | "release" => "write (acquire lock)",
        "cas" => "write (cas variable old new), (cas vector index old new) or (cas-ref ref old new)",
        "assert" => "write (assert test)",
        "let-syntax" | "letrec-syntax" => "write (let-syntax ((name (syntax-rules ...)) ...) expression ...)",
        "let-values" | "let*-values" => "write (let-values (((name ...) expression) ...) expression ...)",
        "receive" => "write (receive (name ...) expression expression ...)",
        _ => "see docs/scheme.md for the language",
    }
}
