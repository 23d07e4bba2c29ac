//! States of the concrete machine: threads over one heap of objects.
//!
//! Every piece of mutable memory is a cell of an object: a variable and a ref have one, a pair two, a vector as many as
//! its length, a lock one. A [`Loc`] names a cell. Objects remember where they were allocated, which gives races their
//! names and gives the soundness tests the abstraction of every address.

use crate::syntax::core::index;
use crate::syntax::core::{Const, Expr, ExprId, LambdaId, Program, VarId};
use crate::syntax::prim::Prim;
use crate::syntax::reader::Symbol;
use num_bigint::BigInt;
use num_rational::BigRational;
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::Arc;

index!(
    /// An object on the heap.
    ObjId
);
index!(
    /// A thread, by order of creation in this run; for a name that is stable across schedules use its path.
    ThreadId
);

/// Local variables in scope, ascending.
pub type Env = Rc<[(VarId, ObjId)]>;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Unspecified,
    /// What a `letrec` variable holds before its initialiser has run.
    Unassigned,
    Nil,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit into 64 bits.
    Big(Arc<BigInt>),
    /// An exact number that is no integer.
    Ratio(Arc<BigRational>),
    Real(f64),
    Char(char),
    Str(Arc<str>),
    Symbol(Symbol),
    /// A symbol that the program does not mention, made by `string->symbol`; one that it does mention is a [`Value::Symbol`].
    Made(Arc<str>),
    /// `#locked` (true) or `#unlocked`.
    LockState(bool),
    Prim(Prim),
    Closure(LambdaId, Env),
    Pair(ObjId),
    Vector(ObjId),
    Ref(ObjId),
    Lock(ObjId),
    Thread(ThreadId),
    /// A continuation that can be escaped to, by the object that its frame holds.
    Escape(ObjId),
    /// What a thread that has not ended will leave. Only states that look ahead ([`super::symmetry`]) hold it.
    Result(ThreadId),
}

impl Value {
    pub fn truthy(&self) -> bool {
        *self != Value::Bool(false)
    }

    /// `eqv?`, which is also the comparison of `cas`. Strings compare by content: they are immutable here.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Closure(a, x), Value::Closure(b, y)) => a == b && (Rc::ptr_eq(x, y) || x == y),
            (a, b) => a == b,
        }
    }
}

/// What an object is, and which program point made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    Var(VarId),
    /// A pair: the `cons`, or the call whose rest argument needed it and the position therein.
    Pair(ExprId, u32),
    Vector(ExprId),
    Ref(ExprId),
    Lock(ExprId),
}

/// Call string and spawn chain, newest last; kept only as far as [`Machine::track`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    pub calls: SmallVec<[ExprId; 3]>,
    pub spawns: SmallVec<[(ExprId, SmallVec<[ExprId; 3]>); 2]>,
}

#[derive(Clone, Debug)]
pub struct Object {
    pub origin: Origin,
    pub context: Rc<Context>,
    pub cells: SmallVec<[Value; 2]>,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc {
    pub object: ObjId,
    pub cell: u32,
}

/// A waiting expression.
#[derive(Clone, Debug)]
pub struct Frame {
    pub expr: ExprId,
    pub index: u32,
    pub values: SmallVec<[Value; 4]>,
    pub env: Env,
    pub context: Rc<Context>,
}

/// Why a thread stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    pub site: ExprId,
    pub message: String,
    /// Raised by `error`; otherwise the machine could not go on (a type error, a limit, a failed partner).
    pub kind: FailureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// `(error ...)` or a failed `assert`.
    Raised,
    /// An operation that has no meaning, such as `(car 1)`.
    Wrong,
    /// The thread joined one that failed.
    Inherited,
    /// A limit of the machine.
    Limit,
}

#[derive(Clone, Debug)]
pub enum Control {
    Eval(ExprId, Env),
    Return(Value),
    Done(Value),
    Failed(Rc<Failure>),
}

#[derive(Clone, Debug)]
pub struct Thread {
    /// `1` is the main thread, `1.2` its second child.
    pub path: Rc<[u32]>,
    pub spawn_site: Option<ExprId>,
    pub control: Control,
    pub stack: Vec<Frame>,
    pub context: Rc<Context>,
    pub children: u32,
}

impl Thread {
    pub fn name(&self) -> String {
        path_name(&self.path)
    }

    pub fn finished(&self) -> bool {
        matches!(self.control, Control::Done(_) | Control::Failed(_))
    }
}

/// `1.2.1`
pub fn path_name(path: &[u32]) -> String {
    path.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// A state shares what it has in common with the states it came from: an exploration holds hundreds of thousands of them, and
/// a step changes one thread and a cell or two.
#[derive(Clone, Debug)]
pub struct State {
    pub threads: Vec<Rc<Thread>>,
    pub heap: Vec<Rc<Object>>,
    /// Cells of all objects, garbage included.
    pub cells: usize,
}

/// The program, prepared for running, and the limits of a run.
pub struct Machine<'p> {
    pub program: &'p Program,
    /// Heap slot of each top-level variable.
    globals: Vec<Option<ObjId>>,
    /// How much call and spawn context objects remember. Zero except in soundness tests.
    pub track: usize,
    pub stack_max: usize,
    pub heap_max: usize,
    pub(super) live: super::live::Live,
    /// Integers of the text, ascending: outcomes of `random` that the program may compare with.
    pub(super) literals: Vec<i64>,
}

/// Frames of one thread; beyond this the recursion counts as unbounded.
pub const STACK_MAX: usize = 100_000;
/// Cells on the heap between two collections.
pub const HEAP_MAX: usize = 4_000_000;
/// Threads alive or ended in one run.
pub const THREADS_MAX: usize = 4_096;
/// Longest vector.
pub const VECTOR_MAX: i64 = 1_000_000;

/// Different integers of the text that are remembered.
const LITERALS_MAX: usize = 64;

impl<'p> Machine<'p> {
    pub fn new(program: &'p Program) -> Machine<'p> {
        let mut globals = vec![None; program.vars.len()];
        let mut next = 0;
        for (at, var) in program.vars.iter().enumerate() {
            if var.global {
                globals[at] = Some(ObjId(next));
                next += 1;
            }
        }
        let mut literals: Vec<i64> = Vec::new();
        for expr in &program.exprs {
            if let Expr::Const(Const::Int(n)) = expr
                && literals.len() < LITERALS_MAX
                && !literals.contains(n)
            {
                literals.push(*n);
            }
        }
        literals.sort_unstable();
        let live = super::live::Live::default();
        Machine { program, globals, track: 0, stack_max: STACK_MAX, heap_max: HEAP_MAX, live, literals }
    }

    pub fn initial(&self) -> State {
        let context: Rc<Context> = Rc::default();
        let heap = (0..self.program.vars.len())
            .filter(|&at| self.globals[at].is_some())
            .map(|at| {
                Rc::new(Object {
                    origin: Origin::Var(VarId(at as u32)),
                    context: context.clone(),
                    cells: [Value::Unassigned].into_iter().collect(),
                })
            })
            .collect();
        let main = Thread {
            path: [1].into(),
            spawn_site: None,
            control: Control::Eval(self.program.root, [].into()),
            stack: Vec::new(),
            context,
            children: 0,
        };
        State { threads: vec![Rc::new(main)], cells: self.globals_count(), heap }
    }

    /// How many objects at the bottom of the heap are the top-level variables.
    pub fn globals_count(&self) -> usize {
        self.globals.iter().flatten().count()
    }

    pub fn var_object(&self, var: VarId, env: &Env) -> ObjId {
        if let Some(object) = self.globals[var.index()] {
            return object;
        }
        match env.binary_search_by_key(&var, |entry| entry.0) {
            Ok(at) => env[at].1,
            Err(_) => unreachable!("the expander resolves every name"),
        }
    }

    /// Where a top-level variable is.
    pub(super) fn global_object(&self, var: VarId) -> Option<ObjId> {
        self.globals[var.index()]
    }

    /// A name for a cell, in the words of the program.
    pub fn loc_name(&self, state: &State, loc: Loc) -> String {
        origin_name(self.program, state.heap[loc.object.index()].origin, loc.cell)
    }
}

/// `counter`, or `(vector …) at 3:4, element 2`.
pub fn origin_name(program: &Program, origin: Origin, cell: u32) -> String {
    let place = |site: ExprId| program.source.place(program.span(site));
    match origin {
        Origin::Var(var) => program.var_name(var).to_owned(),
        Origin::Pair(site, _) => {
            format!("{} of the pair made at {}", if cell == 0 { "car" } else { "cdr" }, place(site))
        }
        Origin::Vector(site) => format!("element {cell} of the vector made at {}", place(site)),
        Origin::Ref(site) => format!("the ref made at {}", place(site)),
        Origin::Lock(site) => format!("the lock made at {}", place(site)),
    }
}

impl State {
    pub fn read(&self, loc: Loc) -> &Value {
        &self.heap[loc.object.index()].cells[loc.cell as usize]
    }

    pub fn write(&mut self, loc: Loc, value: Value) {
        Rc::make_mut(&mut self.heap[loc.object.index()]).cells[loc.cell as usize] = value;
    }

    pub fn alloc(&mut self, origin: Origin, context: Rc<Context>, cells: SmallVec<[Value; 2]>) -> ObjId {
        self.cells += cells.len();
        self.heap.push(Rc::new(Object { origin, context, cells }));
        ObjId(self.heap.len() as u32 - 1)
    }

    /// The limit of the machine that stopped a thread, if one did.
    pub fn limit(&self) -> Option<&str> {
        self.threads.iter().find_map(|thread| match &thread.control {
            Control::Failed(failure) if failure.kind == FailureKind::Limit => Some(&*failure.message),
            _ => None,
        })
    }

    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    pub fn thread_mut(&mut self, id: ThreadId) -> &mut Thread {
        Rc::make_mut(&mut self.threads[id.index()])
    }

    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads.len() as u32).map(ThreadId)
    }
}
