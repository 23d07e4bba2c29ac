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
mod forms;
mod macros;
mod records;
mod rewrite;
mod scope;

use super::core::{BodyId, Const, Expr, ExprId, Program, VarId, Variable};
use super::prim::Prim;
use super::reader::{Data, Datum, DatumId, ERRORS_MAX, Symbol, read_within};
use super::source::{Source, Span, SyntaxError};
use crate::limits::Clock;
use rustc_hash::FxHashMap;

/// Forms nested deeper than this are refused.
pub const NESTING_MAX: usize = 1_000;
/// Stack for the expander: NESTING_MAX levels of at most three frames of a few kilobytes each, generously.
const STACK_BYTES: usize = 64 << 20;

const SWOLLEN: &str = "the macros of this program write too many expressions";

/// Procedures that Scheme itself can express. Written for this project; only what a program mentions is loaded.
const PRELUDE: &str = include_str!("prelude.scm");

/// Why there is no program.
#[derive(Clone, Debug)]
pub enum Unread {
    /// The text is none; this is all that is wrong with it.
    Wrong(Vec<SyntaxError>),
    /// The clock ran out; this is its reason.
    Stopped(String),
}

/// Reads and expands a program, or says everything that is wrong with it.
pub fn parse(source: Source) -> Result<Program, Vec<SyntaxError>> {
    parse_within(source, &Clock::unlimited()).map_err(|unread| match unread {
        Unread::Wrong(errors) => errors,
        Unread::Stopped(reason) => vec![SyntaxError::new(Span::new(0, 0), reason)],
    })
}

/// [`parse`], until the clock runs out.
pub fn parse_within(source: Source, clock: &Clock) -> Result<Program, Unread> {
    let Some(data) = read_within(&source.text, clock) else { return Err(Unread::Stopped(clock.reason())) };
    if !data.errors.is_empty() {
        return Err(Unread::Wrong(data.errors));
    }
    std::thread::scope(|scope| {
        let expander = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || Expander::new(source, data, clock.clone()).program());
        match expander.map(|handle| handle.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                let message = format!("cannot start the expander's thread: {error}");
                Err(Unread::Wrong(vec![SyntaxError::new(Span::new(0, 0), message)]))
            }
        }
    })
}

/// A name in scope.
#[derive(Clone, Copy)]
enum Bound {
    Var { var: VarId, body: BodyId },
    Macro(u32),
}

/// Marks that an error was reported and this part of the tree is lost.
struct Lost;
type Expanded = Result<ExprId, Lost>;

struct Expander {
    data: Data,
    program: Program,
    scope: FxHashMap<Symbol, Vec<Bound>>,
    macros: Vec<macros::Macro>,
    /// Data of the text.
    data_read: usize,
    /// Forms that macros have written.
    filled: usize,
    /// Symbols that a macro brought along: what was written, and the macro.
    aliases: FxHashMap<Symbol, (Symbol, u32)>,
    /// Local macros whose neighbours are not bound yet.
    uncaptured: Vec<u32>,
    body: BodyId,
    errors: Vec<SyntaxError>,
    depth: usize,
    /// Per expression: evaluating it can neither call nor spawn.
    quiet: Vec<bool>,
    clock: Clock,
    stopped: bool,
    /// The program has futures: `deref` may be asked for the value of one.
    futures: bool,
}

impl Expander {
    fn new(source: Source, data: Data, clock: Clock) -> Expander {
        let symbols = data.symbols.clone();
        Expander {
            program: Program::empty(source, symbols),
            scope: FxHashMap::default(),
            macros: Vec::new(),
            data_read: data.len(),
            filled: 0,
            data,
            aliases: FxHashMap::default(),
            uncaptured: Vec::new(),
            body: BodyId(0),
            errors: Vec::new(),
            depth: 0,
            quiet: Vec::new(),
            clock,
            stopped: false,
            futures: false,
        }
    }

    fn program(mut self) -> Result<Program, Unread> {
        let user = self.data.top.clone();
        self.refuse();
        let flat = self.flatten(&user, true);
        let user = flat.items;
        let mut items = self.prelude(&user);
        items.extend(user);
        self.program.bodies.push(ExprId(0));
        let root = self.top_level(&items);
        self.program.symbols = self.data.symbols.clone();
        match root {
            Ok(root) if self.errors.is_empty() => {
                self.program.root = root;
                self.program.bodies[0] = root;
                if !self.program.derive(&self.clock) {
                    return Err(Unread::Stopped(self.clock.reason()));
                }
                Ok(self.program)
            }
            _ if self.stopped => Err(Unread::Stopped(self.clock.reason())),
            _ => Err(Unread::Wrong(self.errors)),
        }
    }

    /// Notes which parts of the language the text mentions, and refuses what does not go together.
    fn refuse(&mut self) {
        let mut escapes = false;
        let mut winds = None;
        for at in 0..self.data.len() as u32 {
            let Some(symbol) = self.symbol(DatumId(at)) else { continue };
            match self.data.symbols.name(symbol) {
                "call/cc" | "call-with-current-continuation" => escapes = true,
                "dynamic-wind" => winds = winds.or(Some(self.data.span(DatumId(at)))),
                "future" => self.futures = true,
                _ => {}
            }
        }
        if let (true, Some(span)) = (escapes, winds) {
            let error = SyntaxError::new(span, "dynamic-wind is not supported together with call/cc");
            let _ = self
                .error::<()>(error.help("an escape would have to run the last procedure of dynamic-wind"));
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
            Expr::Call(..) | Expr::Spawn(_) | Expr::PrimCall(Prim::CallCc, _) => false,
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
        let name = self.written(name);
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
        self.scope.entry(name).or_default().push(Bound::Var { var, body: self.body });
    }

    fn unbind(&mut self, name: Symbol) {
        let stack = self.scope.get_mut(&name);
        debug_assert!(stack.is_some(), "unbind follows bind");
        if let Some(stack) = stack {
            stack.pop();
        }
    }

    fn lookup(&mut self, name: Symbol) -> Option<VarId> {
        let Bound::Var { var, body } = self.resolve(name)? else { return None };
        if body != self.body {
            self.program.vars[var.index()].captured = true;
        }
        Some(var)
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
        self.resolve(symbol).is_none().then(|| self.name(symbol))
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
        self.stopped = self.stopped || self.clock.is_over();
        if self.stopped {
            return Err(Lost);
        }
        if self.is_swollen(self.program.exprs.len()) {
            return self.error(SyntaxError::new(self.data.span(id), SWOLLEN));
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
        let name = self.name(symbol).to_owned();
        if self.resolve(symbol).is_some() {
            let error = SyntaxError::new(span, format!("{name} is a macro"));
            return self.error(error.help("a macro stands at the head of a form"));
        }
        // Forms with one part that a program may pass on as if they were procedures.
        if matches!(name.as_str(), "join" | "acquire" | "release") || (name == "deref" && self.futures) {
            let part = self.data.symbols.intern("it");
            let (head, part) =
                (self.data.push(Datum::Symbol(symbol), span), self.data.push(Datum::Symbol(part), span));
            let code = self.data.push(Datum::List([head, part].into(), None), span);
            return self.lambda(&[part], None, &[code], span, Some(symbol));
        }
        if let Some(prim) = Prim::by_name(&name) {
            return Ok(self.emit(Expr::Prim(prim), span));
        }
        if name == "nil" {
            return Ok(self.constant(Const::Nil, span));
        }
        let error = SyntaxError::new(span, format!("{name} is not bound"));
        self.error(if forms::FORMS.contains(&name.as_str()) {
            error.help(format!("{name} is a keyword and stands at the head of a form"))
        } else {
            error.help("define it, or check the spelling")
        })
    }
}
