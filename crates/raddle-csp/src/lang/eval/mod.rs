//! The evaluator: from a checked script to closed process terms.
//!
//! Evaluation is lazy (arguments, local definitions, components of tuples, elements of sequences and values of maps are
//! evaluated when needed, at most once) and total: everything that can go wrong is a diagnostic at the place where it went wrong, and everything that may not end is bounded by
//! [`Limits`]. Tail calls are a loop, so that recursion over long sequences costs no stack.
//!
//! # Where processes come from
//!
//! A name of type process, applied to all its arguments, becomes a [`Process::Call`](crate::process::Process::Call):
//! equal definitions with equal arguments (and, for local definitions, the same surrounding frame) are the same call.
//! The engine asks for the body of a call with [`Definitions::unfold`] when it needs its transitions. Everything else
//! of type process is an operator and is built at once. Arguments of calls are evaluated completely, because they are
//! part of the identity of the call.

// Values are keys of maps and sets. What is lazy in them is filled in at most once and takes no part in their order.
#![allow(clippy::mutable_key_type)]

mod apply;
mod buffer;
mod builtins;
mod cycles;
mod data;
pub mod env;
mod expr;
mod lazy;
mod maps;
mod pattern;
mod prefix;
mod priority;
mod process;
mod sets;
mod show;
mod timed;
pub mod value;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use self::env::{Env, Frame, Slot, State, Thunk};
use self::value::{Closure, Code, Set, VALUE_DEPTH_MAX, Value};
use super::ast::{Ast, Clause, Decl, DeclId, ExprId};
use super::diagnostic::{Diagnostic, Stage};
use super::resolve::{Resolved, VarId, VarKind};
use super::source::Span;
use super::types::Types;
use crate::process::{CallId, Definitions, EvalError, EventId, Place, ProcId, Process, Processes};

/// Bounds of an evaluation; each has its own message.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Evaluations inside evaluations.
    pub depth_max: u32,
    /// Steps between two answers to the engine.
    pub steps_max: u64,
    /// Elements of one set or sequence.
    pub elements_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth_max: 50_000, steps_max: 100_000_000, elements_max: 10_000_000 }
    }
}

/// A script that passed all checks.
#[derive(Debug)]
pub struct Program {
    pub ast: Ast,
    pub resolved: Resolved,
    pub types: Types,
}

/// Why an evaluation has no value.
#[derive(Clone, Debug)]
pub struct Fault(pub Box<Diagnostic>);

impl Fault {
    pub fn new(span: Span, message: impl Into<String>) -> Fault {
        Fault(Box::new(Diagnostic::error(Stage::Evaluation, span, message)))
    }

    pub fn note(mut self, note: impl Into<String>) -> Fault {
        self.0.notes.push(note.into());
        self
    }
}

impl From<Fault> for EvalError {
    fn from(fault: Fault) -> EvalError {
        let span = fault.0.span;
        let mut error = EvalError::new(fault.0.message.clone()).at(Place {
            file: span.file.0,
            start: span.start,
            end: span.end,
        });
        error.notes = fault.0.notes.clone();
        error
    }
}

type Result<T> = std::result::Result<T, Fault>;

/// The identity of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallKey {
    var: VarId,
    frame: u64,
    args: Vec<Vec<Value>>,
}

#[derive(Clone, Debug)]
enum CallBody {
    Definition {
        decl: DeclId,
        var: VarId,
        env: Env,
        args: Vec<Vec<Value>>,
    },
    /// Built by the evaluator itself (the waiting loops of timed processes).
    Ready(ProcId),
    /// A buffer with what it holds.
    Buffer(Rc<buffer::Kind>, Vec<EventId>),
}

pub struct Evaluator {
    program: Rc<Program>,
    /// The terms made so far. Lent by the engine while it unfolds a call.
    pub arena: Processes,
    pub limits: Limits,
    globals: FxHashMap<VarId, Rc<Thunk>>,
    functions: FxHashMap<VarId, Value>,
    calls: FxHashMap<CallKey, CallId>,
    bodies: FxHashMap<CallId, CallBody>,
    /// Where the definition of a call stands, by the name of the call.
    call_places: FxHashMap<Rc<str>, Span>,
    events: FxHashMap<Value, EventId>,
    field_sets: FxHashMap<VarId, Rc<Vec<Set>>>,
    type_sets: FxHashMap<DeclId, Set>,
    /// Datatypes whose values are being listed, and whether one turned out to contain itself.
    listing: Vec<(DeclId, bool)>,
    /// Constructors whose fields are being looked at.
    declaring: Vec<VarId>,
    /// Recursive processes the evaluator made itself (waiting prefixes, `TSKIP`, `loop`), by what they are made of.
    own_loops: FxHashMap<Vec<(EventId, ProcId)>, ProcId>,
    /// The frames of `let`s, by what their definitions depend on.
    lets: FxHashMap<(ExprId, Vec<Value>), Rc<Frame>>,
    /// The states of the buffers.
    buffers: FxHashMap<(Rc<buffer::Kind>, Vec<EventId>), ProcId>,
    /// About how many bytes the calls hold.
    bytes: u64,
    depth: u32,
    steps: u64,
    fuel: lazy::Fuel,
    next_id: u64,
    /// What may refer to itself.
    cycles: cycles::Cycles,
}

impl Evaluator {
    pub fn new(program: Rc<Program>, limits: Limits) -> Evaluator {
        Evaluator {
            program,
            arena: Processes::default(),
            limits,
            globals: FxHashMap::default(),
            functions: FxHashMap::default(),
            calls: FxHashMap::default(),
            bodies: FxHashMap::default(),
            call_places: FxHashMap::default(),
            events: FxHashMap::default(),
            field_sets: FxHashMap::default(),
            type_sets: FxHashMap::default(),
            listing: Vec::new(),
            declaring: Vec::new(),
            own_loops: FxHashMap::default(),
            lets: FxHashMap::default(),
            buffers: FxHashMap::default(),
            bytes: 0,
            depth: 0,
            steps: 0,
            fuel: lazy::Fuel::UNLIMITED,
            next_id: 1,
            cycles: cycles::Cycles::default(),
        }
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Lets the script grow by further expressions, as an interactive session does. Nothing that exists may change.
    pub fn extend(&mut self, grow: impl FnOnce(Program) -> Program) {
        let empty = Program { ast: Ast::default(), resolved: Resolved::default(), types: Types::default() };
        let program = std::mem::replace(&mut self.program, Rc::new(empty));
        match Rc::try_unwrap(program) {
            Ok(program) => self.program = Rc::new(grow(program)),
            // Only an evaluation holds the script, and none is going on.
            Err(shared) => self.program = shared,
        }
    }

    /// Evaluates a closed expression of the script.
    pub fn value(&mut self, expr: ExprId) -> Result<Value> {
        self.steps = 0;
        self.depth = 0;
        self.fuel = lazy::Fuel::UNLIMITED;
        self.eval_fully(expr, &None)
    }

    /// Evaluates a closed expression of type process.
    pub fn process(&mut self, expr: ExprId) -> Result<ProcId> {
        let span = self.program.ast.span(expr);
        match self.value(expr)? {
            Value::Process(id) => Ok(id),
            other => Err(self.wrong_kind(span, "a process", &other)),
        }
    }

    /// Where the definition stands that a call of this name unfolds.
    pub fn place_of_call(&self, name: &str) -> Option<Span> {
        self.call_places.get(name).copied()
    }

    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn frame(&mut self, slots: u32, parent: &Env) -> Rc<Frame> {
        let id = self.fresh_id();
        Frame::new(id, slots, parent.clone())
    }

    fn thunk(&mut self, state: State) -> Rc<Thunk> {
        self.cycles.thunk(Thunk::new(state))
    }

    fn wrong_kind(&self, span: Span, wanted: &str, found: &Value) -> Fault {
        // The type checker prevents this; a script that gets here is reported rather than believed.
        Fault::new(span, format!("expected {wanted}, found {}", self.show_short(found)))
    }

    /// Counts a step.
    fn step(&mut self, span: Span) -> Result<()> {
        self.steps += 1;
        if self.steps > self.fuel.hard {
            return Err(Fault::new(span, "this evaluation is put off"));
        }
        if self.steps > self.limits.steps_max {
            return Err(Fault::new(span, "this evaluation does not seem to end").note(format!(
                "stopped after {} steps; is a recursion missing its base case?",
                self.limits.steps_max
            )));
        }
        Ok(())
    }

    /// Runs an evaluation one level deeper.
    fn deeper<T>(&mut self, span: Span, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= self.limits.depth_max {
            return Err(Fault::new(span, "the recursion is too deep").note(format!(
                "{} evaluations inside each other; is a recursion missing its base case?",
                self.limits.depth_max
            )));
        }
        self.depth += 1;
        let result = stacker::maybe_grow(128 << 10, 4 << 20, || run(self));
        self.depth -= 1;
        result
    }

    /// Guards against values too deep to be compared.
    fn bounded(&self, span: Span, value: Value) -> Result<Value> {
        if value.depth() > VALUE_DEPTH_MAX {
            return Err(Fault::new(span, "this value is nested too deeply")
                .note(format!("at most {VALUE_DEPTH_MAX} levels are supported")));
        }
        Ok(value)
    }

    fn check_size(&self, span: Span, elements: usize) -> Result<()> {
        if elements > self.limits.elements_max {
            return Err(Fault::new(span, "this set or sequence is too large")
                .note(format!("at most {} elements are kept", self.limits.elements_max)));
        }
        Ok(())
    }

    // ---- lazy values

    fn force(&mut self, slot: &Slot, span: Span) -> Result<Value> {
        match slot {
            Slot::Value(value) => Ok(value.clone()),
            Slot::Thunk(thunk) => self.force_thunk(thunk, span),
            Slot::Empty => Err(Fault::new(span, "this name has no value yet")),
        }
    }

    fn force_thunk(&mut self, thunk: &Rc<Thunk>, span: Span) -> Result<Value> {
        let state = std::mem::replace(&mut *thunk.state.borrow_mut(), State::Running);
        let result = match &state {
            State::Done(value) => Ok(value.clone()),
            State::Running => Err(Fault::new(span, "this value depends on itself")),
            State::Pending(expr, env) => self.eval(*expr, env),
            State::Part(whole, pat, var) => {
                let whole = whole.clone();
                let (pat, var) = (*pat, *var);
                self.force_thunk(&whole, span).and_then(|value| self.part(pat, &value, var))
            }
            State::Append(left, right) => self.appended(left, right, span),
            State::Concat(rest) => self.force(rest, span).and_then(|rest| self.concatenated(rest, span)),
            State::Rest(generator) => self.generate(generator),
        };
        *thunk.state.borrow_mut() = match &result {
            Ok(value) => State::Done(value.clone()),
            // The same question gets the same answer.
            Err(_) => state,
        };
        result
    }

    /// The value of a global name.
    fn global(&mut self, var: VarId, span: Span) -> Result<Value> {
        match self.program.resolved.var(var).kind {
            VarKind::Channel(..) | VarKind::Constructor(..) => Ok(Value::Data(var, Rc::default())),
            VarKind::TypeName(decl) => Ok(Value::Set(self.type_set(decl, span)?)),
            VarKind::Defined(decl) => self.defined(decl, var, span),
            VarKind::Bound => Err(Fault::new(span, "this name has no value")),
        }
    }

    fn defined(&mut self, decl: DeclId, var: VarId, span: Span) -> Result<Value> {
        let program = self.program.clone();
        match program.ast.decl(decl) {
            Decl::Function { clauses, .. } if has_arguments(clauses) => {
                if let Some(value) = self.functions.get(&var) {
                    return Ok(value.clone());
                }
                let value = self.closure(Code::Definition(decl, var), &None);
                self.functions.insert(var, value.clone());
                Ok(value)
            }
            Decl::Function { .. } if program.types.processes.contains(&var) => {
                Ok(Value::Process(self.call(decl, var, None, Vec::new())))
            }
            Decl::Function { clauses, .. } => {
                let body = clauses[0].body;
                let thunk = match self.globals.get(&var) {
                    Some(thunk) => thunk.clone(),
                    None => {
                        let thunk = self.thunk(State::Pending(body, None));
                        self.globals.insert(var, thunk.clone());
                        thunk
                    }
                };
                self.force_thunk(&thunk, span)
            }
            Decl::Pattern { pat, body } => {
                if !self.globals.contains_key(&var) {
                    let whole = self.thunk(State::Pending(*body, None));
                    for &sibling in program.resolved.defines.get(&decl).into_iter().flatten() {
                        let part = self.thunk(State::Part(whole.clone(), *pat, sibling));
                        self.globals.insert(sibling, part);
                    }
                }
                match self.globals.get(&var).cloned() {
                    Some(thunk) => self.force_thunk(&thunk, span),
                    None => Err(Fault::new(span, "this name has no value")),
                }
            }
            _ => Err(Fault::new(span, "this name has no value")),
        }
    }

    fn closure(&mut self, code: Code, env: &Env) -> Value {
        let id = self.fresh_id();
        Value::Function(Rc::new(Closure { id, code, env: env.clone(), args: Vec::new() }))
    }

    // ---- calls of process definitions

    /// The term for a call of a definition with complete arguments.
    fn call(&mut self, decl: DeclId, var: VarId, env: Env, args: Vec<Vec<Value>>) -> ProcId {
        debug_assert!(args.iter().flatten().all(|v| !v.is_lazy()));
        let frame = env.as_ref().map_or(0, |f| f.id);
        let key = CallKey { var, frame, args };
        if let Some(&call) = self.calls.get(&key) {
            return self.arena.intern(Process::Call(call));
        }
        let name = self.call_name(var, &key.args);
        self.bytes += CALL_BYTES + 2 * name.len() as u64;
        self.bytes += key.args.iter().flatten().map(value::Value::fresh_bytes).sum::<u64>();
        let span = self.program.resolved.var(var).span;
        self.call_places.insert(Rc::from(name.as_str()), span);
        let call = self.arena.fresh_call(name);
        let body = CallBody::Definition { decl, var, env, args: key.args.clone() };
        self.bodies.insert(call, body);
        self.calls.insert(key, call);
        self.arena.intern(Process::Call(call))
    }

    /// A call whose body the evaluator knows already, or sets with [`Self::define`].
    fn own_call(&mut self, name: &str) -> (CallId, ProcId) {
        let call = self.arena.fresh_call(name);
        (call, self.arena.intern(Process::Call(call)))
    }

    fn define(&mut self, call: CallId, body: ProcId) {
        self.bodies.insert(call, CallBody::Ready(body));
    }

    fn call_name(&self, var: VarId, args: &[Vec<Value>]) -> String {
        let mut name = self.program.resolved.var(var).path.to_string();
        for group in args {
            let shown: Vec<String> = group.iter().map(|v| self.show_short(v)).collect();
            name.push_str(&format!("({})", shown.join(",")));
        }
        name
    }

    fn body(&mut self, call: CallId) -> Result<ProcId> {
        let Some(body) = self.bodies.get(&call).cloned() else {
            let span = Span { file: super::source::FileId(0), start: 0, end: 0 };
            return Err(Fault::new(span, "a call of a process that was never made"));
        };
        match body {
            CallBody::Ready(id) => Ok(id),
            CallBody::Buffer(kind, held) => Ok(self.buffer_body(&kind, &held)),
            CallBody::Definition { decl, var, env, args } => {
                self.steps = 0;
                self.depth = 0;
                self.fuel = lazy::Fuel::UNLIMITED;
                let span = self.program.resolved.var(var).span;
                let groups = args
                    .iter()
                    .map(|group| group.iter().cloned().map(Slot::Value).collect())
                    .collect::<Vec<_>>();
                let (expr, env) = self.select_clause(decl, &groups, &env, span)?;
                match self.eval(expr, &env)? {
                    Value::Process(id) => Ok(id),
                    other => Err(self.wrong_kind(span, "a process", &other)),
                }
            }
        }
    }
}

/// What a call costs besides its name and its arguments: entries of four tables, and its frame.
const CALL_BYTES: u64 = 600;

impl Definitions for Evaluator {
    fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    fn unfold(&mut self, call: CallId, arena: &mut Processes) -> std::result::Result<ProcId, EvalError> {
        std::mem::swap(&mut self.arena, arena);
        let result = self.body(call);
        std::mem::swap(&mut self.arena, arena);
        result.map_err(|fault| {
            let name = arena.call_name(call);
            EvalError::from(fault.note(format!("while evaluating `{name}`")))
        })
    }
}

fn has_arguments(clauses: &[Clause]) -> bool {
    clauses.first().is_some_and(|c| !c.groups.is_empty())
}

#[cfg(test)]
mod tests;
