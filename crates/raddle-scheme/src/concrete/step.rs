//! One step of one thread, and what a thread is about to do.
//!
//! A thread's next step is *local* when no other thread can notice it, *visible* when it touches memory that others may
//! touch, *blocked* when it waits. Local steps commute with all steps of all other threads, so a scheduler need only
//! choose between visible ones ([`Machine::settle`] performs the rest). Joining an ended thread is local as well: it
//! can never be disabled again. So is spawning: names of threads come from their parents, not from a global counter.

use super::number::Number;
use super::prims::{self, kind};
use super::state::*;
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::machine::plan::{self, Plan, Values};
use crate::syntax::core::{Expr, ExprId};
use crate::syntax::prim::{Prim, Touch};
use smallvec::SmallVec;
use std::rc::Rc;

/// A visible operation that a thread is about to perform.
#[derive(Clone, Debug)]
pub struct Op {
    pub action: Action,
    pub site: ExprId,
    pub loc: Option<Loc>,
    /// The thread that a join waits for.
    pub target: Option<ThreadId>,
    /// What would be written.
    pub written: Option<Value>,
}

impl Op {
    /// Whether the order of the two matters.
    pub fn depends_on(&self, other: &Op) -> bool {
        self.loc.is_some() && self.loc == other.loc && self.action.depends_on(other.action)
    }
}

#[derive(Clone, Debug)]
pub enum Pending {
    Local,
    Visible(Op),
    Blocked(Op),
    Finished,
}

/// Where nondeterministic values come from: given `n`, a number below `n`.
pub type Chooser<'a> = &'a mut dyn FnMut(i64) -> i64;

/// What a step let out of the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    None,
    Output(String),
    Spawned(ThreadId),
    Joined(ThreadId),
}

/// How settling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Yes,
    /// A thread did more local steps than allowed: it loops, or works for longer than we follow it.
    OutOfSteps,
    /// The clock ran out.
    OutOfTime,
}

/// Local steps that one call of [`Machine::settle`] may take; a long program may take a few for each expression.
pub const LOCAL_STEPS_MAX: usize = 500_000;
/// Local steps between two looks at the clock; a step may copy as many values as a call has arguments.
const CLOCK_STEPS: usize = 64;

impl Machine<'_> {
    /// The next demand of a thread and the expression it belongs to.
    pub(super) fn plan(&self, thread: &Thread) -> Option<(ExprId, Plan<Value>)> {
        let (site, plan) = match &thread.control {
            Control::Eval(expr, _) => (*expr, plan::start(self.program, *expr)),
            Control::Return(value) => {
                let frame = thread.stack.last()?;
                (
                    frame.expr,
                    plan::resume(self.program, frame.expr, frame.index, &frame.values, value.clone()),
                )
            }
            Control::Done(_) | Control::Failed(_) => return None,
        };
        Some(match plan {
            Plan::Apply { f: Value::Prim(prim), args } => (site, Plan::PrimApply { prim, args }),
            plan => (site, plan),
        })
    }

    fn env<'a>(&self, thread: &'a Thread) -> &'a Env {
        match &thread.control {
            Control::Eval(_, env) => env,
            _ => match thread.stack.last() {
                Some(frame) => &frame.env,
                None => unreachable!("a thread that returns to nobody has no environment to ask for"),
            },
        }
    }

    pub fn pending(&self, state: &State, id: ThreadId) -> Pending {
        let thread = state.thread(id);
        if thread.finished() {
            return Pending::Finished;
        }
        let Some((site, plan)) = self.plan(thread) else { return Pending::Local };
        let op = |action, loc, written| {
            Pending::Visible(Op { action, site, loc: Some(loc), target: None, written })
        };
        let var_loc = |var| Loc { object: self.var_object(var, self.env(thread)), cell: 0 };
        let lock = |loc: Loc, acquire: bool| {
            let action = if acquire { Action::Acquire } else { Action::Release };
            let op = Op { action, site, loc: Some(loc), target: None, written: None };
            match state.read(loc) {
                Value::LockState(true) if acquire => Pending::Blocked(op),
                _ => Pending::Visible(op),
            }
        };
        match plan {
            Plan::Read(var) if self.program.visible_var(var) => op(Action::Read, var_loc(var), None),
            Plan::Set { var, value } | Plan::Initialise { var, value, .. }
                if self.program.visible_var(var) =>
            {
                op(Action::Write, var_loc(var), Some(value))
            }
            Plan::CasVar { var, old, new } => {
                // Visible even where no other thread sees the variable: a cas that spins must show as a loop.
                let loc = var_loc(var);
                let action = if state.read(loc).same(&old) { Action::CasSucceeds } else { Action::CasFails };
                op(action, loc, Some(new))
            }
            Plan::LockVar { var, acquire } => {
                let loc = var_loc(var);
                match state.read(loc) {
                    Value::LockState(_) => lock(loc, acquire),
                    Value::Lock(object) => lock(Loc { object: *object, cell: 0 }, acquire),
                    _ => Pending::Local,
                }
            }
            Plan::LockValue { lock: Value::Lock(object), acquire } => lock(Loc { object, cell: 0 }, acquire),
            Plan::Join(Value::Thread(target)) if !state.thread(target).finished() => Pending::Blocked(Op {
                action: Action::Join,
                site,
                loc: None,
                target: Some(target),
                written: None,
            }),
            Plan::PrimApply { prim, args }
                if self.program.visible_touch(prim.touch())
                    || matches!(prim.touch(), Touch::CasRef | Touch::CasVector) =>
            {
                match self.cell(state, prim, &args) {
                    Err(_) => Pending::Local,
                    Ok(loc) => {
                        let (action, written) = match prim.touch() {
                            Touch::ReadPair | Touch::ReadVector | Touch::ReadRef => (Action::Read, None),
                            Touch::CasRef | Touch::CasVector => {
                                let old = &args[args.len() - 2];
                                let succeeds = state.read(loc).same(old);
                                let action = if succeeds { Action::CasSucceeds } else { Action::CasFails };
                                (action, args.last().cloned())
                            }
                            _ => (Action::Write, args.last().cloned()),
                        };
                        op(action, loc, written)
                    }
                }
            }
            _ => Pending::Local,
        }
    }

    /// The cell that a primitive touches, or why there is none.
    fn cell(&self, state: &State, prim: Prim, args: &[Value]) -> Result<Loc, String> {
        let cell = |object: ObjId, cell: u32| Ok(Loc { object, cell });
        if !prim.accepts(args.len()) {
            return Err(format!("{} does not take {} arguments", prim.name(), args.len()));
        }
        match (prim.touch(), args) {
            (Touch::ReadPair | Touch::WritePair, [Value::Pair(object), ..]) => {
                cell(*object, matches!(prim, Prim::Cdr | Prim::SetCdr) as u32)
            }
            (Touch::ReadRef | Touch::WriteRef | Touch::CasRef, [Value::Ref(object), ..]) => cell(*object, 0),
            (
                Touch::ReadVector | Touch::WriteVector | Touch::CasVector,
                [Value::Vector(object), Value::Int(at), ..],
            ) => {
                let len = state.heap[object.index()].cells.len();
                if (0..len as i64).contains(at) {
                    cell(*object, *at as u32)
                } else {
                    Err(format!("index {at} is outside of a vector of length {len}"))
                }
            }
            (Touch::ReadVector | Touch::WriteVector | Touch::CasVector, [Value::Vector(object), at, ..]) => {
                let len = state.heap[object.index()].cells.len();
                let at = self.show(state, at, true);
                Err(format!("{at} is no index of a vector of length {len}"))
            }
            _ => Err(format!("{} cannot work on {}", prim.name(), args.first().map_or("nothing", kind))),
        }
    }

    /// Performs the next step of a thread, which must be neither finished nor blocked.
    pub fn step(&self, state: &mut State, id: ThreadId, choose: Chooser) -> Event {
        if let Control::Return(value) = &state.thread(id).control
            && state.thread(id).stack.is_empty()
        {
            let value = value.clone();
            state.thread_mut(id).control = Control::Done(value);
            return Event::None;
        }
        let Some((site, plan)) = self.plan(state.thread(id)) else {
            unreachable!("the thread has not finished")
        };
        let env = self.env(state.thread(id)).clone();
        if matches!(state.thread(id).control, Control::Return(_))
            && let Some(frame) = state.thread_mut(id).stack.pop()
        {
            state.thread_mut(id).context = frame.context;
        }
        let mut event = Event::None;
        if let Err((kind, message)) = self.perform(state, id, site, plan, env, choose, &mut event) {
            let thread = state.thread_mut(id);
            thread.stack = Vec::new();
            thread.control = Control::Failed(Rc::new(Failure { site, message, kind }));
        }
        event
    }

    #[allow(clippy::too_many_arguments)]
    fn perform(
        &self,
        state: &mut State,
        id: ThreadId,
        site: ExprId,
        plan: Plan<Value>,
        env: Env,
        choose: Chooser,
        event: &mut Event,
    ) -> Result<(), (FailureKind, String)> {
        let wrong = |message: String| (FailureKind::Wrong, message);
        let control = match plan {
            Plan::Constant(expr) => Control::Return(self.constant(expr)),
            Plan::Prim(prim) => Control::Return(Value::Prim(prim)),
            Plan::Lambda(lambda) => {
                Control::Return(Value::Closure(lambda, self.restrict(&env, self.program.free(site))))
            }
            Plan::Read(var) => {
                let object = self.var_object(var, &env);
                match state.read(Loc { object, cell: 0 }) {
                    Value::Unassigned => {
                        let name = self.program.var_name(var);
                        return Err(wrong(format!("{name} is used before it is initialised")));
                    }
                    value => Control::Return(value.clone()),
                }
            }
            Plan::Push { child, index, values } => self.push(state, id, site, child, index, values, env)?,
            Plan::Tail(expr) => Control::Eval(expr, env),
            Plan::Value(value) => Control::Return(value),
            Plan::Branch { test, then, otherwise } => {
                Control::Eval(if test.truthy() { then } else { otherwise }, env)
            }
            Plan::OrTest { value, .. } if value.truthy() => Control::Return(value),
            Plan::OrTest { next, .. } => {
                self.follow(state, id, site, plan::after_false(self.program, site, next), env)?
            }
            Plan::Bind { values } => {
                let Expr::Let(bindings, body) = self.program.expr(site) else {
                    unreachable!("only let binds")
                };
                let vars = bindings.iter().map(|b| b.0).zip(values);
                let env = self.extend(state, id, &env, vars)?;
                Control::Eval(*body, env)
            }
            Plan::OpenLetrec => {
                let Expr::Letrec(bindings, _) = self.program.expr(site) else {
                    unreachable!("only letrec opens")
                };
                let vars = bindings.iter().map(|b| (b.0, Value::Unassigned));
                let env = self.extend(state, id, &env, vars)?;
                self.follow(state, id, site, plan::after_initialiser(self.program, site, 0), env)?
            }
            Plan::Initialise { var, value, next } => {
                let object = self.var_object(var, &env);
                state.write(Loc { object, cell: 0 }, value);
                self.follow(state, id, site, plan::after_initialiser(self.program, site, next), env)?
            }
            Plan::Apply { f, args } => self.apply(state, id, site, f, args)?,
            // A primitive has returned before anybody could use the continuation.
            Plan::PrimApply { prim: Prim::CallCc, args } if matches!(args[..], [Value::Prim(prim)] if prim != Prim::CallCc) =>
            {
                let Value::Prim(prim) = args[0] else { unreachable!("a primitive was asked for") };
                self.check_heap(state)?;
                let context = state.thread(id).context.clone();
                let cells = [Value::Unspecified].into_iter().collect();
                let escape = Value::Escape(state.alloc(Origin::Ref(site), context, cells));
                Control::Return(self.prim(state, id, site, prim, &[escape], choose, event)?)
            }
            Plan::PrimApply { prim: Prim::CallCc, args } if args.len() == 1 => {
                self.call_with_escape(state, id, site, args[0].clone(), env)?
            }
            Plan::PrimApply { prim, args } => {
                Control::Return(self.prim(state, id, site, prim, &args, choose, event)?)
            }
            Plan::Spawn(code) => {
                if state.threads.len() >= THREADS_MAX {
                    return Err((FailureKind::Limit, format!("more than {THREADS_MAX} threads")));
                }
                let child = ThreadId(state.threads.len() as u32);
                let parent = state.thread_mut(id);
                parent.children += 1;
                let path = parent.path.iter().copied().chain([parent.children]).collect();
                let context = self.spawn_context(&parent.context, site);
                let env = self.restrict(&env, self.program.free(code));
                let control = Control::Eval(code, env);
                state.threads.push(Rc::new(Thread {
                    path,
                    spawn_site: Some(site),
                    control,
                    stack: Vec::new(),
                    context,
                    children: 0,
                }));
                *event = Event::Spawned(child);
                Control::Return(Value::Thread(child))
            }
            Plan::Join(Value::Thread(target)) => match &state.thread(target).control {
                Control::Done(value) => {
                    *event = Event::Joined(target);
                    Control::Return(value.clone())
                }
                Control::Failed(failure) => {
                    let message = format!(
                        "joined thread {}, which failed: {}",
                        state.thread(target).name(),
                        failure.message
                    );
                    return Err((FailureKind::Inherited, message));
                }
                _ => unreachable!("a join waits until its thread has ended"),
            },
            Plan::Join(other) => return Err(wrong(format!("join needs a thread, not {}", kind(&other)))),
            Plan::Set { var, value } => {
                let object = self.var_object(var, &env);
                state.write(Loc { object, cell: 0 }, value);
                Control::Return(Value::Unspecified)
            }
            Plan::CasVar { var, old, new } => {
                let loc = Loc { object: self.var_object(var, &env), cell: 0 };
                Control::Return(compare_and_swap(state, loc, &old, new))
            }
            Plan::LockVar { var, acquire } => {
                let loc = Loc { object: self.var_object(var, &env), cell: 0 };
                let loc = match state.read(loc) {
                    Value::LockState(_) => loc,
                    Value::Lock(object) => Loc { object: *object, cell: 0 },
                    other => {
                        return Err(wrong(format!(
                            "{} is no lock but {}",
                            self.program.var_name(var),
                            kind(other)
                        )));
                    }
                };
                state.write(loc, Value::LockState(acquire));
                Control::Return(Value::Bool(true))
            }
            Plan::LockValue { lock: Value::Lock(object), acquire } => {
                state.write(Loc { object, cell: 0 }, Value::LockState(acquire));
                Control::Return(Value::Bool(true))
            }
            Plan::LockValue { lock, .. } => {
                return Err(wrong(format!("a lock made by new-lock is needed here, not {}", kind(&lock))));
            }
        };
        state.thread_mut(id).control = control;
        Ok(())
    }

    /// Carries out a plan that only moves on within the same expression.
    fn follow(
        &self,
        state: &mut State,
        id: ThreadId,
        site: ExprId,
        plan: Plan<Value>,
        env: Env,
    ) -> Result<Control, (FailureKind, String)> {
        match plan {
            Plan::Push { child, index, values } => self.push(state, id, site, child, index, values, env),
            Plan::Tail(expr) => Ok(Control::Eval(expr, env)),
            other => unreachable!("{other:?} does not follow a part"),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn push(
        &self,
        state: &mut State,
        id: ThreadId,
        expr: ExprId,
        child: ExprId,
        index: u32,
        values: Values<Value>,
        env: Env,
    ) -> Result<Control, (FailureKind, String)> {
        let thread = state.thread_mut(id);
        if thread.stack.len() >= self.stack_max {
            let message = format!("recursion deeper than {} frames", self.stack_max);
            return Err((FailureKind::Limit, message));
        }
        let context = thread.context.clone();
        thread.stack.push(Frame { expr, index, values, env: env.clone(), context });
        Ok(Control::Eval(child, env))
    }

    fn apply(
        &self,
        state: &mut State,
        id: ThreadId,
        site: ExprId,
        f: Value,
        args: Values<Value>,
    ) -> Result<Control, (FailureKind, String)> {
        if let Value::Escape(object) = f {
            return self.escape(state, id, object, args);
        }
        let Value::Closure(lambda, env) = f else {
            return Err((FailureKind::Wrong, format!("{} cannot be called", kind(&f))));
        };
        let lambda_id = lambda;
        let lambda = self.program.lambda(lambda);
        let fixed = lambda.params.len();
        if args.len() < fixed || (args.len() > fixed && lambda.rest.is_none()) {
            let name = self.program.lambda_name(lambda_id);
            return Err((FailureKind::Wrong, format!("{name} takes {fixed} arguments, not {}", args.len())));
        }
        self.enter_context(state, id, site);
        let mut values = args.into_iter();
        let mut bound: SmallVec<[(crate::syntax::core::VarId, Value); 8]> =
            lambda.params.iter().copied().zip(values.by_ref().take(fixed)).collect();
        if let Some(rest) = lambda.rest {
            let context = state.thread(id).context.clone();
            let mut list = Value::Nil;
            let items: Vec<Value> = values.collect();
            for (at, item) in items.into_iter().enumerate().rev() {
                let cells = [item, list].into_iter().collect();
                list = Value::Pair(state.alloc(Origin::Pair(site, at as u32), context.clone(), cells));
            }
            bound.push((rest, list));
        }
        let env = self.extend(state, id, &env, bound.into_iter())?;
        Ok(Control::Eval(lambda.body, env))
    }

    /// Calls a procedure with a continuation that leads back to here. The frame that marks the place holds an object of its own,
    /// which is what tells one such place from another.
    fn call_with_escape(
        &self,
        state: &mut State,
        id: ThreadId,
        site: ExprId,
        f: Value,
        env: Env,
    ) -> Result<Control, (FailureKind, String)> {
        if !matches!(f, Value::Closure(..)) {
            return Err((
                FailureKind::Wrong,
                format!("call/cc needs a procedure of the program, not {}", kind(&f)),
            ));
        }
        self.check_heap(state)?;
        let context = state.thread(id).context.clone();
        let object = state.alloc(Origin::Ref(site), context, [Value::Unspecified].into_iter().collect());
        let values = [Value::Ref(object)].into_iter().collect();
        self.push(state, id, site, site, plan::MARK, values, env)?;
        self.apply(state, id, site, f, [Value::Escape(object)].into_iter().collect())
    }

    /// Returns a value to the place that a continuation stands for. It must still be waiting, in this thread: what would
    /// enter a continuation again is beyond this machine.
    fn escape(
        &self,
        state: &mut State,
        id: ThreadId,
        object: ObjId,
        args: Values<Value>,
    ) -> Result<Control, (FailureKind, String)> {
        let [value] = &args[..] else {
            return Err((FailureKind::Wrong, format!("a continuation takes one value, not {}", args.len())));
        };
        let thread = state.thread_mut(id);
        let mark =
            |frame: &Frame| frame.index == plan::MARK && frame.values.first() == Some(&Value::Ref(object));
        match thread.stack.iter().rposition(mark) {
            Some(at) => {
                thread.stack.truncate(at + 1);
                Ok(Control::Return(value.clone()))
            }
            None => Err((
                FailureKind::Limit,
                "a continuation was used after its end, or by another thread".to_owned(),
            )),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn prim(
        &self,
        state: &mut State,
        id: ThreadId,
        site: ExprId,
        prim: Prim,
        args: &[Value],
        choose: Chooser,
        event: &mut Event,
    ) -> Result<Value, (FailureKind, String)> {
        let wrong = |message: String| (FailureKind::Wrong, message);
        if !prim.accepts(args.len()) {
            return Err(wrong(format!("{} does not take {} arguments", prim.name(), args.len())));
        }
        if prim.touch() != Touch::Nothing {
            let loc = self.cell(state, prim, args).map_err(wrong)?;
            return Ok(match prim.touch() {
                Touch::ReadPair | Touch::ReadVector | Touch::ReadRef => state.read(loc).clone(),
                Touch::CasRef | Touch::CasVector => {
                    compare_and_swap(state, loc, &args[args.len() - 2], args[args.len() - 1].clone())
                }
                _ => {
                    state.write(loc, args[args.len() - 1].clone());
                    Value::Unspecified
                }
            });
        }
        let context = state.thread(id).context.clone();
        let cells = |values: &[Value]| values.iter().cloned().collect::<SmallVec<[Value; 2]>>();
        self.check_heap(state)?;
        Ok(match prim {
            Prim::Cons => Value::Pair(state.alloc(Origin::Pair(site, 0), context, cells(args))),
            Prim::Vector => Value::Vector(state.alloc(Origin::Vector(site), context, cells(args))),
            Prim::MakeVector => match args {
                [Value::Int(n), fill @ ..] if (0..=VECTOR_MAX).contains(n) => {
                    let fill = fill.first().cloned().unwrap_or(Value::Int(0));
                    let cells = (0..*n).map(|_| fill.clone()).collect();
                    Value::Vector(state.alloc(Origin::Vector(site), context, cells))
                }
                [Value::Int(0..) | Value::Big(_), ..] if is_positive(&args[0]) => {
                    return Err((FailureKind::Limit, format!("a vector longer than {VECTOR_MAX}")));
                }
                [other, ..] => {
                    let what = self.show(state, other, true);
                    return Err(wrong(format!("make-vector needs a length, not {what}")));
                }
                [] => unreachable!("the number of arguments was checked"),
            },
            Prim::VectorLength => match &args[0] {
                Value::Vector(object) => Value::Int(state.heap[object.index()].cells.len() as i64),
                other => return Err(wrong(format!("vector-length needs a vector, not {}", kind(other)))),
            },
            Prim::NewRef => Value::Ref(state.alloc(Origin::Ref(site), context, cells(args))),
            Prim::NewLock => {
                Value::Lock(state.alloc(Origin::Lock(site), context, cells(&[Value::LockState(false)])))
            }
            Prim::Display | Prim::Write => {
                *event = Event::Output(self.show(state, &args[0], prim == Prim::Write));
                Value::Unspecified
            }
            Prim::Newline => {
                *event = Event::Output("\n".to_owned());
                Value::Unspecified
            }
            Prim::Error => {
                let words: Vec<String> = args.iter().map(|arg| self.show(state, arg, false)).collect();
                return Err((FailureKind::Raised, words.join(" ")));
            }
            Prim::Limit => return Err((FailureKind::Limit, self.show(state, &args[0], false))),
            Prim::Random => match &args[0] {
                Value::Int(n) if *n > 0 => Value::Int(choose(*n)),
                big @ Value::Big(_) if is_positive(big) => {
                    return Err((FailureKind::Limit, "random of more than 64 bits".to_owned()));
                }
                other => return Err(wrong(format!("random needs a positive integer, not {}", kind(other)))),
            },
            pure => prims::apply(pure, args, &self.program.symbols)?,
        })
    }

    pub(super) fn check_heap(&self, state: &State) -> Result<(), (FailureKind, String)> {
        if state.cells >= self.heap_max {
            return Err((FailureKind::Limit, format!("more than {} cells on the heap", self.heap_max)));
        }
        Ok(())
    }

    /// Performs local steps of all threads until each is finished, blocked or about to do something visible.
    pub fn settle(
        &self,
        state: &mut State,
        choose: Chooser,
        clock: &Clock,
        mut out: impl FnMut(ThreadId, Event),
    ) -> Settled {
        let mut steps = 0;
        loop {
            let mut moved = false;
            let mut at = 0;
            while at < state.threads.len() {
                let id = ThreadId(at as u32);
                while let Pending::Local = self.pending(state, id) {
                    let event = self.step(state, id, choose);
                    moved = true;
                    steps += 1;
                    if event != Event::None {
                        out(id, event);
                    }
                    if steps % CLOCK_STEPS == 0 && clock.is_over() {
                        return Settled::OutOfTime;
                    }
                    if steps > LOCAL_STEPS_MAX.max(8 * self.program.exprs.len()) {
                        return Settled::OutOfSteps;
                    }
                }
                at += 1;
            }
            if !moved {
                return Settled::Yes;
            }
        }
    }
}

fn is_positive(value: &Value) -> bool {
    Number::of(value).is_some_and(|number| number.sign() == Some(std::cmp::Ordering::Greater))
}

fn compare_and_swap(state: &mut State, loc: Loc, old: &Value, new: Value) -> Value {
    let equal = state.read(loc).same(old);
    if equal {
        state.write(loc, new);
    }
    Value::Bool(equal)
}
