//! The parts that abstract states are made of, each interned: equal parts are one number.
//!
//! Following *Abstracting Abstract Machines* (Van Horn and Might 2010) continuations live in the store, so that every
//! component of a state is drawn from a finite set and the graph of states is finite. What is finite:
//! * call strings, cut to the last `k` call sites (k-CFA), restored on return;
//! * thread ids: the spawn site with its call string, preceded by those of the parents up to [`Config::spawn_depth`];
//! * addresses: a variable or allocation site with a call string, and, where [`Config::thread_sensitive`] is set, the
//!   thread id, which keeps the locals of different threads apart.

use super::trie::{Root, Tries};
use super::twins::twins;
use super::value::{AbsVal, Arithmetic, ValId};
use crate::concrete::state::Origin;
use crate::syntax::core::{ExprId, Program, VarId, index};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;
use std::rc::Rc;

index!(AddrId);
index!(EnvId);
index!(
    /// A call string, and a thread where allocation is thread-sensitive.
    TimeId
);
index!(
    /// An abstract thread.
    TidId
);
index!(FrameId);
index!(
    /// A thread's control, continuation and time.
    CtxId
);
index!(
    /// What all threads do.
    ThreadsId
);
index!(
    /// A set of frames, each with the address of the next.
    KontId
);

/// The main thread.
pub const MAIN: TidId = TidId(0);
/// The continuation of a thread that has nothing left to do.
pub const HALT: AddrId = AddrId(0);

/// The time at which the main thread starts.
pub const START: TimeId = TimeId(0);
pub const EMPTY_ENV: EnvId = EnvId(0);

/// Which known state is expanded next. The order decides which states are subsumed by others, and how long paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    BreadthFirst,
    DepthFirst,
}

/// How the machine abstracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Length of call strings.
    pub k: usize,
    /// How many spawn sites a thread id remembers; at least one.
    pub spawn_depth: usize,
    pub thread_sensitive: bool,
    pub gc: bool,
    /// Threads take local steps at once; only visible operations interleave.
    pub por: bool,
    /// A state below a known one is not explored.
    pub subsume: bool,
    pub arithmetic: Arithmetic,
    /// Every update is weak: one store describes all moments.
    pub weak: bool,
    /// Continuation addresses are counted like all others. Nothing is ever decided by the count of a continuation, so it
    /// only tells states apart.
    pub count_konts: bool,
    pub order: Order,
    /// The program has ended when its main thread has: what the other threads would still do is not followed.
    pub main_ends: bool,
    /// Many spawns of the same code share the name of their threads ([`super::twins`]).
    pub twins: bool,
}

impl Config {
    /// What the paper describes. Where it is silent, the choices below were suggested by the implementation that its authors
    /// published and settled by trying which of them give its tables; the paper's text names neither `k` nor an order of
    /// exploration, and its `geval` compares states by equality:
    ///
    /// * values: figure 3 keeps booleans as they are and abstracts numbers, so no number is known, not even a literal;
    /// * counts: strong updates need to know which addresses stand for one cell (Might and Shivers, ΓCFA), and the count is
    ///   part of the store for continuations as well. This is where garbage collection *adds* states (tables 1 and 2): two
    ///   threads that run the same procedure use the same continuation addresses. Without collection the count of such an
    ///   address only says that both were there; with it, whether they were there at the same time;
    /// * comparison: depth first, a state below a known one is not a new state. With plain equality the effect of garbage
    ///   collection on pcounter and pcounter-buggy (more states in table 1) is the opposite, because the same loop is then
    ///   counted once for each way in which its addresses fill up;
    /// * the end: when the main thread has ended, the program has (deadlock1-release in table 5);
    /// * `k = 0` gives the numbers of defects of tables 3 to 6, the two false positives of `deadlock` included.
    pub fn paper(k: usize, gc: bool) -> Config {
        Config {
            k,
            spawn_depth: 1,
            thread_sensitive: false,
            gc,
            por: false,
            subsume: true,
            arithmetic: Arithmetic::None,
            weak: false,
            count_konts: true,
            order: Order::DepthFirst,
            main_ends: true,
            twins: false,
        }
    }

    /// What we do by default.
    pub fn better(k: usize) -> Config {
        Config {
            k,
            spawn_depth: 3,
            thread_sensitive: true,
            gc: true,
            por: true,
            subsume: true,
            arithmetic: Arithmetic::Bounded(16),
            weak: false,
            count_konts: false,
            order: Order::BreadthFirst,
            main_ends: false,
            twins: true,
        }
    }

    /// One store for the whole run, as the thread-modular analysis needs it.
    pub fn modular(k: usize) -> Config {
        Config { gc: false, por: false, subsume: false, weak: true, twins: false, ..Config::better(k) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Addr {
    Halt,
    /// A cell of an object: 0 for a variable, a ref, a lock or a car, 1 for a cdr, an index, or [`ANY_CELL`].
    Cell(Origin, u32, TimeId),
    /// The length of a vector, which also stands for the vector.
    Length(ExprId, TimeId),
    Kont(ExprId, u32, EnvId, TimeId),
    /// Where a thread leaves its result.
    Result(TidId),
}

/// The one cell that stands for all of a vector whose length is not in the text.
pub const ANY_CELL: u32 = u32::MAX;
/// Vectors up to this length, given in the text, have a cell for each element.
pub const CELLS_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Time {
    pub calls: SmallVec<[ExprId; 4]>,
    pub thread: TidId,
}

/// Spawn sites with their call strings, newest last.
pub type Tid = SmallVec<[(ExprId, SmallVec<[ExprId; 4]>); 2]>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AbsFrame {
    pub expr: ExprId,
    pub index: u32,
    pub values: SmallVec<[ValId; 4]>,
    pub env: EnvId,
    pub time: TimeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    Eval(ExprId, EnvId),
    /// A frame has got the value it waited for.
    Resume(FrameId, ValId),
    /// The last value of a thread.
    Done(ValId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ctx {
    pub control: Control,
    pub kont: AddrId,
    pub time: TimeId,
}

/// What one abstract thread may be doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AbsThread {
    pub tid: TidId,
    /// Stands for several concrete threads, perhaps.
    pub many: bool,
    /// Ascending. One element unless `many`.
    pub ctxs: SmallVec<[CtxId; 1]>,
}

/// What the store holds at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub content: Content,
    /// The address stands for several concrete cells, perhaps.
    pub many: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    Value(ValId),
    Konts(KontId),
}

#[derive(Debug)]
pub struct Interner<T> {
    items: Vec<Rc<T>>,
    numbers: FxHashMap<Rc<T>, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { items: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    pub fn intern(&mut self, item: T) -> u32 {
        if let Some(&number) = self.numbers.get(&item) {
            return number;
        }
        let number = self.items.len() as u32;
        let item = Rc::new(item);
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        number
    }

    pub fn get(&self, number: u32) -> &Rc<T> {
        &self.items[number as usize]
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// The tables of one analysis.
pub struct Space<'p> {
    pub program: &'p Program,
    pub config: Config,
    pub tries: Tries,
    addrs: Interner<Addr>,
    envs: Interner<Box<[(VarId, AddrId)]>>,
    times: Interner<Time>,
    tids: Interner<Tid>,
    frames: Interner<AbsFrame>,
    ctxs: Interner<Ctx>,
    threads: Interner<Vec<AbsThread>>,
    konts: Interner<Vec<(FrameId, AddrId)>>,
    values: Interner<AbsVal>,
    strings: Interner<Box<str>>,
    entries: Interner<Entry>,
    joins: FxHashMap<(ValId, ValId), ValId>,
    pub(super) live: FxHashMap<(ExprId, u32), Rc<[VarId]>>,
    /// Addresses of the top-level variables, by variable; `HALT` for all others.
    pub(super) globals: Vec<AddrId>,
    /// The thread that takes a step stands for several: each may allocate at the same address.
    pub(super) crowd: bool,
    twins: FxHashMap<ExprId, ExprId>,
}

impl<'p> Space<'p> {
    pub fn new(program: &'p Program, config: Config) -> Space<'p> {
        let mut space = Space {
            program,
            config,
            tries: Tries::default(),
            addrs: Interner::default(),
            envs: Interner::default(),
            times: Interner::default(),
            tids: Interner::default(),
            frames: Interner::default(),
            ctxs: Interner::default(),
            threads: Interner::default(),
            konts: Interner::default(),
            values: Interner::default(),
            strings: Interner::default(),
            entries: Interner::default(),
            joins: FxHashMap::default(),
            live: FxHashMap::default(),
            globals: Vec::new(),
            crowd: false,
            twins: if config.twins { twins(program) } else { FxHashMap::default() },
        };
        let halt = space.addr(Addr::Halt);
        let main = space.tid(Tid::new());
        let start = space.time(Time { calls: SmallVec::new(), thread: MAIN });
        let empty = space.env(&[]);
        debug_assert!(halt == HALT && main == MAIN && start == START && empty == EMPTY_ENV);
        for (at, var) in program.vars.iter().enumerate() {
            let origin = Origin::Var(VarId(at as u32));
            let addr = if var.global { space.addr(Addr::Cell(origin, 0, START)) } else { HALT };
            space.globals.push(addr);
        }
        space
    }

    pub fn addr(&mut self, addr: Addr) -> AddrId {
        AddrId(self.addrs.intern(addr))
    }

    pub fn addr_of(&self, id: AddrId) -> Addr {
        **self.addrs.get(id.0)
    }

    pub fn env(&mut self, env: &[(VarId, AddrId)]) -> EnvId {
        EnvId(self.envs.intern(env.into()))
    }

    pub fn env_of(&self, id: EnvId) -> Rc<Box<[(VarId, AddrId)]>> {
        self.envs.get(id.0).clone()
    }

    pub fn time(&mut self, time: Time) -> TimeId {
        TimeId(self.times.intern(time))
    }

    pub fn time_of(&self, id: TimeId) -> &Time {
        self.times.get(id.0)
    }

    pub fn tid(&mut self, tid: Tid) -> TidId {
        TidId(self.tids.intern(tid))
    }

    /// The place that names the threads spawned here.
    pub fn spawn_name(&self, site: ExprId) -> ExprId {
        self.twins.get(&site).copied().unwrap_or(site)
    }

    pub fn tid_of(&self, id: TidId) -> &Tid {
        self.tids.get(id.0)
    }

    pub fn frame(&mut self, frame: AbsFrame) -> FrameId {
        FrameId(self.frames.intern(frame))
    }

    pub fn frame_of(&self, id: FrameId) -> Rc<AbsFrame> {
        self.frames.get(id.0).clone()
    }

    pub fn ctx(&mut self, ctx: Ctx) -> CtxId {
        CtxId(self.ctxs.intern(ctx))
    }

    pub fn ctx_of(&self, id: CtxId) -> Ctx {
        **self.ctxs.get(id.0)
    }

    pub fn threads(&mut self, threads: Vec<AbsThread>) -> ThreadsId {
        ThreadsId(self.threads.intern(threads))
    }

    pub fn threads_of(&self, id: ThreadsId) -> Rc<Vec<AbsThread>> {
        self.threads.get(id.0).clone()
    }

    /// Whether the program has ended, whatever other threads could still do.
    pub fn is_final(&self, threads: &[AbsThread]) -> bool {
        self.config.main_ends && threads.first().is_none_or(|thread| thread.tid != MAIN)
    }

    pub fn value(&mut self, value: AbsVal) -> ValId {
        ValId(self.values.intern(value))
    }

    pub fn value_of(&self, id: ValId) -> Rc<AbsVal> {
        self.values.get(id.0).clone()
    }

    pub fn string(&mut self, text: &str) -> u32 {
        self.strings.intern(text.into())
    }

    pub fn konts_of(&self, id: KontId) -> Rc<Vec<(FrameId, AddrId)>> {
        self.konts.get(id.0).clone()
    }

    pub fn join_values(&mut self, a: ValId, b: ValId) -> ValId {
        if a == b {
            return a;
        }
        let key = if a <= b { (a, b) } else { (b, a) };
        if let Some(&joined) = self.joins.get(&key) {
            return joined;
        }
        let joined = self.value_of(a).join(&self.value_of(b));
        let joined = self.value(joined);
        self.joins.insert(key, joined);
        joined
    }

    // ---- the store -------------------------------------------------------------------------------------------

    pub fn entry_of(&self, number: u32) -> Entry {
        **self.entries.get(number)
    }

    pub fn lookup(&self, store: Root, addr: AddrId) -> Option<Entry> {
        self.tries.get(store, addr.0).map(|number| self.entry_of(number))
    }

    pub fn lookup_value(&self, store: Root, addr: AddrId) -> Option<ValId> {
        match self.lookup(store, addr)?.content {
            Content::Value(value) => Some(value),
            Content::Konts(_) => None,
        }
    }

    fn put(&mut self, store: Root, addr: AddrId, entry: Entry) -> Root {
        let number = self.entries.intern(entry);
        self.tries.insert(store, addr.0, number)
    }

    /// A fresh concrete cell at this address. If there is one already, the address stands for both from now on.
    pub fn alloc(&mut self, store: Root, addr: AddrId, value: ValId, many: bool) -> Root {
        let entry = match self.lookup(store, addr) {
            Some(Entry { content: Content::Value(old), .. }) => {
                Entry { content: Content::Value(self.join_values(old, value)), many: true }
            }
            _ => Entry { content: Content::Value(value), many: many || self.crowd },
        };
        self.put(store, addr, entry)
    }

    /// Strong where the address stands for one cell, else weak.
    pub fn write(&mut self, store: Root, addr: AddrId, value: ValId) -> Root {
        let entry = match self.lookup(store, addr) {
            Some(Entry { content: Content::Value(old), many }) if many || self.config.weak => {
                Entry { content: Content::Value(self.join_values(old, value)), many }
            }
            Some(Entry { many, .. }) => Entry { content: Content::Value(value), many },
            None => Entry { content: Content::Value(value), many: false },
        };
        self.put(store, addr, entry)
    }

    pub fn push_kont(&mut self, store: Root, addr: AddrId, frame: FrameId, next: AddrId) -> Root {
        let known = self.lookup(store, addr);
        let many = self.config.count_konts && known.is_some();
        let mut konts = match known {
            Some(Entry { content: Content::Konts(konts), .. }) => (*self.konts_of(konts)).clone(),
            _ => Vec::new(),
        };
        if let Err(at) = konts.binary_search(&(frame, next)) {
            konts.insert(at, (frame, next));
        }
        let konts = KontId(self.konts.intern(konts));
        self.put(store, addr, Entry { content: Content::Konts(konts), many })
    }

    pub fn join_stores(&mut self, a: Root, b: Root) -> Root {
        // The trie cannot borrow the tables it lives in, so it is taken out for the walk.
        let mut tries = std::mem::take(&mut self.tries);
        let joined = tries.join(a, b, &mut |x, y| self.join_entries(x, y));
        self.tries = tries;
        joined
    }

    fn join_entries(&mut self, x: u32, y: u32) -> u32 {
        if x == y {
            return x;
        }
        let (a, b) = (self.entry_of(x), self.entry_of(y));
        let content = match (a.content, b.content) {
            (Content::Value(v), Content::Value(w)) => Content::Value(self.join_values(v, w)),
            (Content::Konts(v), Content::Konts(w)) => {
                let mut konts = (*self.konts_of(v)).clone();
                konts.extend(self.konts_of(w).iter());
                konts.sort_unstable();
                konts.dedup();
                Content::Konts(KontId(self.konts.intern(konts)))
            }
            _ => unreachable!("an address holds values or frames, never both"),
        };
        self.entries.intern(Entry { content, many: a.many || b.many })
    }

    pub fn store_below(&self, a: Root, b: Root) -> bool {
        self.tries.below(a, b, &mut |x, y| self.entry_below(x, y))
    }

    fn entry_below(&self, x: u32, y: u32) -> bool {
        if x == y {
            return true;
        }
        let (a, b) = (self.entry_of(x), self.entry_of(y));
        (!a.many || b.many)
            && match (a.content, b.content) {
                (Content::Value(v), Content::Value(w)) => v == w || self.value_of(v).below(&self.value_of(w)),
                (Content::Konts(v), Content::Konts(w)) => {
                    let all = self.konts_of(w);
                    self.konts_of(v).iter().all(|kont| all.binary_search(kont).is_ok())
                }
                _ => false,
            }
    }

    /// Sizes of the tables, for `--stats`.
    pub fn sizes(&self) -> [(&'static str, usize); 6] {
        [
            ("store nodes", self.tries.nodes_count()),
            ("addresses", self.addrs.len()),
            ("environments", self.envs.len()),
            ("frames", self.frames.len()),
            ("contexts", self.ctxs.len()),
            ("values", self.values.len()),
        ]
    }
}
