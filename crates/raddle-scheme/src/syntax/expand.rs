//! The expander: data to core expressions.
//!
//! Derived forms become core forms here, names become variables, and every mistake that can be seen without running
//! the program is reported with its place. Keywords are not reserved: where a program binds `acquire` (as programs that
//! build locks from `cas` do) the binding wins, as lexical scope demands.
//!
//! Expansion is the one recursive pass of this crate. Its depth is bounded by [`NESTING_MAX`], counted in nested forms
//! of the text, and it runs on a stack of its own that is large enough for that depth; chains such as a `cond` of a
//! million clauses are folded in loops and count once.

mod derived;

use super::core::{BodyId, Const, Expr, ExprId, Program, VarId, Variable};
use super::prim::Prim;
use super::reader::{Data, Datum, DatumId, ERRORS_MAX, Symbol, read};
use super::source::{Source, Span, SyntaxError};
use rustc_hash::{FxHashMap, FxHashSet};

/// Forms nested deeper than this are refused.
pub const NESTING_MAX: usize = 1_000;
/// Stack for the expander: NESTING_MAX levels of at most three frames of a few kilobytes each, generously.
const STACK_BYTES: usize = 64 << 20;

/// Procedures that Scheme itself can express. Written for this project; only what a program mentions is loaded.
const PRELUDE: &str = include_str!("prelude.scm");

/// Reads and expands a program, or says everything that is wrong with it.
pub fn parse(source: Source) -> Result<Program, Vec<SyntaxError>> {
    let data = read(&source.text);
    if !data.errors.is_empty() {
        return Err(data.errors);
    }
    std::thread::scope(|scope| {
        let expander = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || Expander::new(source, data).program());
        match expander.map(|handle| handle.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                let message = format!("cannot start the expander's thread: {error}");
                Err(vec![SyntaxError::new(Span::new(0, 0), message)])
            }
        }
    })
}

/// A name in scope.
#[derive(Clone, Copy)]
struct Bound {
    var: VarId,
    body: BodyId,
}

/// Marks that an error was reported and this part of the tree is lost.
struct Lost;
type Expanded = Result<ExprId, Lost>;

struct Expander {
    data: Data,
    program: Program,
    scope: FxHashMap<Symbol, Vec<Bound>>,
    body: BodyId,
    errors: Vec<SyntaxError>,
    depth: usize,
    /// Per expression: evaluating it can neither call nor spawn.
    quiet: Vec<bool>,
}

impl Expander {
    fn new(source: Source, data: Data) -> Expander {
        let symbols = data.symbols.clone();
        Expander {
            data,
            program: Program::empty(source, symbols),
            scope: FxHashMap::default(),
            body: BodyId(0),
            errors: Vec::new(),
            depth: 0,
            quiet: Vec::new(),
        }
    }

    fn program(mut self) -> Result<Program, Vec<SyntaxError>> {
        let user = self.data.top.clone();
        let mut items = self.prelude(&user);
        items.extend(self.flatten(&user));
        self.program.bodies.push(ExprId(0));
        let root = self.top_level(&items);
        self.program.symbols = self.data.symbols.clone();
        match root {
            Ok(root) if self.errors.is_empty() => {
                self.program.root = root;
                self.program.bodies[0] = root;
                self.program.derive();
                Ok(self.program)
            }
            _ => Err(self.errors),
        }
    }

    // ---- building blocks -------------------------------------------------------------------------------------

    fn error<T>(&mut self, error: SyntaxError) -> Result<T, Lost> {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
        Err(Lost)
    }

    fn emit(&mut self, expr: Expr, span: Span) -> ExprId {
        let quiet = match &expr {
            Expr::Lambda(_) => true,
            Expr::Call(..) | Expr::Spawn(_) => false,
            expr => {
                let mut quiet = true;
                let exprs = &self.quiet;
                let mut visit = |child: ExprId| quiet &= exprs[child.index()];
                match expr {
                    Expr::If(a, b, c) => [*a, *b, *c].into_iter().for_each(&mut visit),
                    Expr::Or(parts) | Expr::Begin(parts) | Expr::PrimCall(_, parts) => {
                        parts.iter().copied().for_each(&mut visit)
                    }
                    Expr::Set(_, e) | Expr::Join(e) | Expr::Acquire(e) | Expr::Release(e) => visit(*e),
                    Expr::Let(bindings, body) | Expr::Letrec(bindings, body) => {
                        bindings.iter().for_each(|b| visit(b.1));
                        visit(*body);
                    }
                    Expr::CasVar(_, old, new) => [*old, *new].into_iter().for_each(&mut visit),
                    _ => {}
                }
                quiet
            }
        };
        self.quiet.push(quiet);
        self.program.exprs.push(expr);
        self.program.spans.push(span);
        self.program.homes.push(self.body);
        ExprId(self.program.exprs.len() as u32 - 1)
    }

    fn constant(&mut self, value: Const, span: Span) -> ExprId {
        self.emit(Expr::Const(value), span)
    }

    fn variable(&mut self, name: Symbol, span: Span, global: bool) -> VarId {
        self.program.vars.push(Variable {
            name,
            span,
            global,
            assigned: false,
            captured: false,
            quiet: true,
        });
        VarId(self.program.vars.len() as u32 - 1)
    }

    fn fresh(&mut self, name: &str, span: Span) -> VarId {
        let name = self.data.symbols.intern(name);
        self.variable(name, span, false)
    }

    fn bind(&mut self, name: Symbol, var: VarId) {
        self.scope.entry(name).or_default().push(Bound { var, body: self.body });
    }

    fn unbind(&mut self, name: Symbol) {
        let stack = self.scope.get_mut(&name);
        debug_assert!(stack.is_some(), "unbind follows bind");
        if let Some(stack) = stack {
            stack.pop();
        }
    }

    fn lookup(&mut self, name: Symbol) -> Option<VarId> {
        let bound = *self.scope.get(&name)?.last()?;
        if bound.body != self.body {
            self.program.vars[bound.var.index()].captured = true;
        }
        Some(bound.var)
    }

    fn is_bound(&self, name: Symbol) -> bool {
        self.scope.get(&name).is_some_and(|stack| !stack.is_empty())
    }

    /// Runs `inside` as the code of a new body.
    fn in_body<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, Lost>) -> Result<(T, BodyId), Lost> {
        let id = BodyId(self.program.bodies.len() as u32);
        self.program.bodies.push(ExprId(0));
        let outer = std::mem::replace(&mut self.body, id);
        let result = inside(self);
        self.body = outer;
        Ok((result?, id))
    }

    fn symbol(&self, id: DatumId) -> Option<Symbol> {
        match self.data.datum(id) {
            Datum::Symbol(symbol) => Some(*symbol),
            _ => None,
        }
    }

    fn list(&self, id: DatumId) -> Option<Box<[DatumId]>> {
        match self.data.datum(id) {
            Datum::List(items, None) => Some(items.clone()),
            _ => None,
        }
    }

    /// The head of a form, when it is a symbol that the program does not bind.
    fn keyword(&self, items: &[DatumId]) -> Option<&str> {
        let symbol = self.symbol(*items.first()?)?;
        (!self.is_bound(symbol)).then(|| self.data.symbols.name(symbol))
    }

    // ---- top level and bodies --------------------------------------------------------------------------------

    /// The prelude's definitions that the program mentions, directly or through each other.
    fn prelude(&mut self, user: &[DatumId]) -> Vec<DatumId> {
        let library = read(PRELUDE);
        debug_assert!(library.errors.is_empty(), "{:?}", library.errors);
        let base = self.data.len() as u32;
        let shift = |id: DatumId| DatumId(id.0 + base);
        let mut mentioned: FxHashSet<Symbol> = FxHashSet::default();
        for at in 0..base {
            mentioned.extend(self.symbol(DatumId(at)));
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
            .filter(|(name, _)| !defined.contains(name))
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

    /// Top-level `begin`s are spliced.
    fn flatten(&self, items: &[DatumId]) -> Vec<DatumId> {
        let mut out = Vec::with_capacity(items.len());
        let mut work: Vec<DatumId> = items.iter().rev().copied().collect();
        while let Some(item) = work.pop() {
            match self.list(item) {
                Some(parts)
                    if self.keyword(&parts) == Some("begin")
                        && parts.iter().any(|&p| self.defined_name(p).is_some()) =>
                {
                    work.extend(parts[1..].iter().rev());
                }
                _ => out.push(item),
            }
        }
        out
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

    fn top_level(&mut self, items: &[DatumId]) -> Expanded {
        for &item in items {
            if let Some(name) = self.defined_name(item)
                && !self.is_bound(name)
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
                None => self.expand(item),
                Some(name) => {
                    let var = self.scope[&name].last().map(|bound| bound.var).ok_or(Lost)?;
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
    fn body(&mut self, items: &[DatumId], span: Span) -> Expanded {
        if items.is_empty() {
            return self.error(SyntaxError::new(span, "this body is empty"));
        }
        let items = self.flatten(items);
        if !items.iter().any(|&item| self.defined_name(item).is_some()) {
            return self.sequence(&items, span);
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

    fn sequence(&mut self, items: &[DatumId], span: Span) -> Expanded {
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
    fn letrec_of(
        &mut self,
        bindings: Vec<(Symbol, VarId, DatumId, bool)>,
        body: impl FnOnce(&mut Self) -> Expanded,
        span: Span,
    ) -> Expanded {
        for &(name, var, _, _) in &bindings {
            self.bind(name, var);
        }
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
            Ok(self.emit(Expr::Letrec(inits.into(), body), span))
        })();
        for &(name, ..) in &bindings {
            self.unbind(name);
        }
        result
    }

    // ---- expressions -----------------------------------------------------------------------------------------

    fn expand(&mut self, id: DatumId) -> Expanded {
        self.expand_named(id, None)
    }

    fn expand_named(&mut self, id: DatumId, name: Option<Symbol>) -> Expanded {
        if self.depth >= NESTING_MAX {
            let message = format!("nested deeper than {NESTING_MAX} forms");
            return self.error(SyntaxError::new(self.data.span(id), message).help("split the expression up"));
        }
        self.depth += 1;
        let result = self.expand_datum(id, name);
        self.depth -= 1;
        result
    }

    fn expand_datum(&mut self, id: DatumId, name: Option<Symbol>) -> Expanded {
        let span = self.data.span(id);
        match self.data.datum(id).clone() {
            Datum::Symbol(symbol) => self.reference(symbol, span),
            Datum::List(items, None) if !items.is_empty() => self.form(&items, span, name),
            Datum::List(_, None) => self
                .error(SyntaxError::new(span, "() is no expression").help("the empty list is written '()")),
            Datum::List(_, Some(_)) => self.error(SyntaxError::new(span, "a dotted list is no expression")),
            _ => self.quoted(id),
        }
    }

    fn reference(&mut self, symbol: Symbol, span: Span) -> Expanded {
        if let Some(var) = self.lookup(symbol) {
            return Ok(self.emit(Expr::Var(var), span));
        }
        let name = self.data.symbols.name(symbol).to_owned();
        if let Some(prim) = Prim::by_name(&name) {
            return Ok(self.emit(Expr::Prim(prim), span));
        }
        if name == "nil" {
            return Ok(self.constant(Const::Nil, span));
        }
        let error = SyntaxError::new(span, format!("{name} is not bound"));
        self.error(if FORMS.contains(&name.as_str()) {
            error.help(format!("{name} is a keyword and stands at the head of a form"))
        } else {
            error.help("define it, or check the spelling")
        })
    }

    fn form(&mut self, items: &[DatumId], span: Span, name: Option<Symbol>) -> Expanded {
        let keyword = self.keyword(items).map(str::to_owned);
        let Some(keyword) = keyword else { return self.call(items, span) };
        let args = &items[1..];
        match (keyword.as_str(), args) {
            ("quote", &[datum]) => self.quoted(datum),
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
            ("spawn" | "fork", &[code]) => {
                let (code, body) = self.in_body(|this| this.expand(code))?;
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
            ("define", _) => self.error(
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
                let message = format!("{} is not bound", self.data.symbols.name(name));
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

const FORMS: &[&str] = &[
    "quote", "lambda", "if", "when", "unless", "set!", "begin", "and", "or", "cond", "case", "let", "let*",
    "letrec", "letrec*", "do", "spawn", "fork", "join", "acquire", "release", "cas", "assert", "define",
    "else", "=>",
];

fn usage(word: &str) -> &'static str {
    match word {
        "quote" => "write (quote datum)",
        "lambda" => "write (lambda (name ...) expression ...)",
        "if" => "write (if test then else)",
        "when" | "unless" => "write (when test expression ...)",
        "set!" => "write (set! name expression)",
        "let" | "let*" | "letrec" | "letrec*" => "write (let ((name value) ...) expression ...)",
        "do" => "write (do ((name init step) ...) (test result ...) expression ...)",
        "case" => "write (case key ((datum ...) expression ...) ...)",
        "spawn" | "fork" => "write (spawn expression)",
        "join" => "write (join thread)",
        "acquire" | "release" => "write (acquire lock)",
        "cas" => "write (cas variable old new), (cas vector index old new) or (cas-ref ref old new)",
        "assert" => "write (assert test)",
        _ => "see docs/scheme.md for the language",
    }
}
