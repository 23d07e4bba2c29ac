//! Everything the concrete machine does in any schedule is covered by the abstract one.
//!
//! For random programs all concrete states are enumerated, each is abstracted (addresses by allocation site, call string
//! and spawn chain), and an abstract state that describes it is looked for: the same threads at the same places, and a
//! store that holds the values of all top-level variables and of everything they reach. This is tried for several k and
//! all combinations of garbage collection, partial order reduction and subsumption. Beside states, verdicts are
//! compared: races, deadlocks, errors and results of the concrete machine must be among the suspects, and among what
//! the thread-modular analysis leaves open.

mod common;

use common::{Author, cases};
use raddle_scheme::abs::explore::{Graph, StateId, explore as abstract_explore};
use raddle_scheme::abs::space::*;
use raddle_scheme::abs::value::{AbsVal, Flat, Reference, bit};
use raddle_scheme::concrete::canon::fingerprint;
use raddle_scheme::concrete::explore::{Observed, explore as concrete_explore};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::{Context, Env, Loc, Machine, ObjId, Origin, State, Value};
use raddle_scheme::concrete::step::{Pending, Settled};
use raddle_scheme::limits::Clock;
use raddle_scheme::syntax::core::{ExprId, Program, VarId};
use raddle_scheme::{Source, modular, parse, suspect};
use std::collections::{BTreeMap, BTreeSet, HashSet};

const CONCRETE_STATES_MAX: usize = 1_500;
/// Abstract states beyond this many are not compared: without reduction there can be hundreds for a concrete one.
const ABSTRACT_STATES_MAX: usize = 60_000;

/// All settled concrete states, with contexts tracked; none if there are too many.
fn concrete_states(machine: &Machine) -> Option<(Vec<State>, Observed)> {
    let mut seen = HashSet::new();
    let mut states: Vec<State> = Vec::new();
    let mut observed = Observed::default();
    let mut work: Vec<State> = machine
        .outcomes(&machine.initial(), None, &Clock::unlimited())
        .into_iter()
        .map(|o| o.state)
        .collect();
    while let Some(mut state) = work.pop() {
        machine.collect(&mut state);
        if !seen.insert(fingerprint(&machine.canon(&state))) {
            continue;
        }
        if states.len() >= CONCRETE_STATES_MAX {
            return None;
        }
        let pending: Vec<Pending> = state.thread_ids().map(|id| machine.pending(&state, id)).collect();
        observed.look(machine, &state, &pending, &Schedule::default);
        for (id, pending) in state.thread_ids().zip(&pending) {
            if let Pending::Visible(_) = pending {
                for outcome in machine.outcomes(&state, Some(id), &Clock::unlimited()) {
                    if outcome.settled == Settled::OutOfSteps {
                        return None;
                    }
                    work.push(outcome.state);
                }
            }
        }
        states.push(state);
    }
    Some((states, observed))
}

/// The abstraction function for one configuration.
struct Alpha<'s, 'p> {
    space: &'s mut Space<'p>,
}

impl Alpha<'_, '_> {
    fn last<T: Clone>(items: &[T], n: usize) -> Vec<T> {
        items[items.len().saturating_sub(n)..].to_vec()
    }

    fn tid(&mut self, context: &Context) -> TidId {
        let (k, depth) = (self.space.config.k, self.space.config.spawn_depth);
        let chain = Self::last(&context.spawns, depth);
        let chain = chain
            .into_iter()
            .map(|(site, calls)| (self.space.spawn_name(site), Self::last(&calls, k).into_iter().collect()))
            .collect();
        self.space.tid(chain)
    }

    fn time(&mut self, context: &Context) -> TimeId {
        let thread = if self.space.config.thread_sensitive { self.tid(context) } else { MAIN };
        let calls = Self::last(&context.calls, self.space.config.k).into_iter().collect();
        self.space.time(Time { calls, thread })
    }

    fn addr(&mut self, state: &State, object: ObjId, cell: u32) -> AddrId {
        let object = &state.heap[object.index()];
        if let Origin::Var(var) = object.origin
            && self.space.program.var(var).global
        {
            return self.space.global_addr(var);
        }
        let time = self.time(&object.context);
        self.space.addr(Addr::Cell(object.origin, cell, time))
    }

    fn env(&mut self, state: &State, env: &Env) -> EnvId {
        let entries: Vec<(VarId, AddrId)> =
            env.iter().map(|&(var, object)| (var, self.addr(state, object, 0))).collect();
        self.space.env(&entries)
    }

    fn value(&mut self, state: &State, value: &Value) -> AbsVal {
        match value {
            Value::Unspecified => AbsVal::bits(bit::UNSPECIFIED),
            Value::Unassigned => AbsVal::bits(bit::UNASSIGNED),
            Value::Nil => AbsVal::bits(bit::NIL),
            Value::Bool(b) => AbsVal::bits(if *b { bit::TRUE } else { bit::FALSE }),
            Value::Int(n) => AbsVal::int(*n),
            Value::Big(_) => AbsVal::any_int(),
            Value::Ratio(_) => AbsVal::bits(bit::RATIO),
            Value::Real(_) => AbsVal::bits(bit::REAL),
            Value::Char(_) => AbsVal::bits(bit::CHAR),
            Value::Str(s) => AbsVal { string: Flat::One(self.space.string(s)), ..AbsVal::default() },
            Value::Made(_) => AbsVal::bits(bit::SYMBOL),
            Value::Symbol(s) => AbsVal::reference(Reference::Symbol(*s)),
            Value::LockState(l) => AbsVal::bits(if *l { bit::LOCKED } else { bit::UNLOCKED }),
            Value::Prim(prim) => AbsVal::reference(Reference::Prim(*prim)),
            Value::Closure(lambda, env) => {
                let env = self.env(state, env);
                AbsVal::reference(Reference::Closure(*lambda, env))
            }
            Value::Pair(object) => AbsVal::reference(Reference::Pair(self.addr(state, *object, 0))),
            Value::Ref(object) => AbsVal::reference(Reference::Ref(self.addr(state, *object, 0))),
            Value::Lock(object) => AbsVal::reference(Reference::Lock(self.addr(state, *object, 0))),
            Value::Vector(object) => {
                let Origin::Vector(site) = state.heap[object.index()].origin else {
                    panic!("a vector's origin")
                };
                let time = self.time(&state.heap[object.index()].context.clone());
                AbsVal::reference(Reference::Vector(self.space.addr(Addr::Length(site, time))))
            }
            Value::Result(_) => unreachable!("no state of a run looks ahead"),
            Value::Escape(_) => unreachable!("the author knows no continuations"),
            Value::Thread(thread) => {
                let tid = self.tid(&state.thread(*thread).context.clone());
                AbsVal::reference(Reference::Thread(tid))
            }
        }
    }

    /// Cells of top-level variables and of pairs, refs, locks and short vectors that they refer to, abstracted.
    fn cells(&mut self, state: &State) -> BTreeMap<AddrId, AbsVal> {
        let mut out: BTreeMap<AddrId, AbsVal> = BTreeMap::new();
        let mut work: Vec<ObjId> = (0..state.heap.len() as u32)
            .map(ObjId)
            .filter(|o| matches!(state.heap[o.index()].origin, Origin::Var(v) if self.space.program.var(v).global))
            .collect();
        let mut seen: BTreeSet<ObjId> = work.iter().copied().collect();
        while let Some(object) = work.pop() {
            for cell in 0..state.heap[object.index()].cells.len() as u32 {
                let value = state.read(Loc { object, cell }).clone();
                let addr = self.addr(state, object, cell);
                let known = self.value(state, &value);
                let entry = out.entry(addr).or_default();
                *entry = entry.join(&known);
                if let Value::Pair(o) | Value::Vector(o) | Value::Ref(o) | Value::Lock(o) = value
                    && seen.insert(o)
                {
                    work.push(o);
                }
            }
        }
        out
    }

    /// The unfinished threads and where they stand.
    fn places(&mut self, machine: &Machine, state: &State) -> BTreeSet<(TidId, ExprId)> {
        let mut out = BTreeSet::new();
        for id in state.thread_ids() {
            if let Pending::Visible(op) | Pending::Blocked(op) = machine.pending(state, id) {
                let thread = state.thread(id);
                // The context of the thread itself, not of the procedure it is in, names it.
                let spawned = Context { calls: Default::default(), spawns: thread.context.spawns.clone() };
                out.insert((self.tid(&spawned), op.site));
            }
        }
        out
    }
}

type Places = BTreeSet<(TidId, ExprId)>;

/// Abstract states by the places of their threads; those in which some thread stands for many by themselves, since they
/// describe fewer threads as well.
struct Index {
    exact: BTreeMap<Places, Vec<StateId>>,
    many: BTreeMap<Places, Vec<StateId>>,
}

impl Index {
    fn new(space: &mut Space, graph: &Graph) -> Index {
        let mut index = Index { exact: BTreeMap::new(), many: BTreeMap::new() };
        for id in graph.ids() {
            let standing = graph.standing(space, id);
            let table = if standing.iter().any(|s| s.many) { &mut index.many } else { &mut index.exact };
            let places = standing.iter().map(|s| (s.tid, space.site(s.ctx))).collect();
            table.entry(places).or_default().push(id);
        }
        index
    }

    /// States whose threads may be the given ones.
    fn at<'i>(&'i self, here: &'i Places) -> impl Iterator<Item = StateId> + 'i {
        let many = self.many.iter().filter(|(there, _)| here.is_subset(there)).flat_map(|(_, ids)| ids);
        self.exact.get(here).into_iter().flatten().chain(many).copied()
    }
}

/// The abstract graph, unless it is too large to compare with.
fn abstract_graph<'p>(program: &'p Program, config: Config) -> Option<(Space<'p>, Graph)> {
    let mut space = Space::new(program, config);
    let graph = abstract_explore(&mut space, ABSTRACT_STATES_MAX, &Clock::unlimited());
    graph.incomplete.is_none().then_some((space, graph))
}

fn check_states(
    space: &mut Space,
    graph: &Graph,
    machine: &Machine,
    states: &[State],
    text: &str,
    note: &str,
) {
    let (program, config) = (space.program, space.config);
    let index = Index::new(space, graph);
    let mut alpha = Alpha { space };
    for state in states {
        let here = alpha.places(machine, state);
        let cells = alpha.cells(state);
        let covered = index.at(&here).any(|id| {
            let store = graph.states[id.index()].store;
            cells.iter().all(|(&addr, value)| {
                alpha.space.lookup_value(store, addr).is_some_and(|v| value.below(&alpha.space.value_of(v)))
            })
        });
        let threads = || -> Vec<String> {
            here.iter()
                .map(|(tid, site)| format!("{}@{}", tid.0, program.source.place(program.span(*site))))
                .collect()
        };
        assert!(
            covered,
            "{note}: {config:?}\nno abstract state covers {:?} with {cells:?}\n{text}",
            threads()
        );
    }
}

fn check_verdicts(space: &mut Space, graph: &Graph, text: &str, observed: &Observed, note: &str) {
    let config = space.config;
    let suspects = suspect::suspects(space, graph, &Clock::unlimited());
    for race in observed.races.keys() {
        let found = suspects
            .races
            .keys()
            .any(|s| s.sites == race.sites && s.origin == race.origin && s.cell == race.cell);
        assert!(found, "{note}: {config:?}\nmisses {race:?}\n{text}");
    }
    for stuck in observed.deadlocks.keys() {
        let sites: BTreeSet<ExprId> = stuck.iter().map(|s| s.site).collect();
        let found = suspects.deadlocks.keys().any(|s| {
            let places: BTreeSet<ExprId> = s.iter().map(|p| p.1).collect();
            places.is_subset(&sites)
        });
        assert!(found, "{note}: {config:?}\nmisses the deadlock {stuck:?}\n{text}");
    }
    for (key, error) in &observed.errors {
        let found = graph.failures.get(&key.0).is_some_and(|f| {
            f.raised || error.failure.kind != raddle_scheme::concrete::state::FailureKind::Raised
        });
        assert!(found, "{note}: {config:?}\nmisses the error {key:?}\n{text}");
    }
}

fn configs(k: usize) -> Vec<Config> {
    let mut out = Vec::new();
    for bits in 0..8 {
        let (gc, por, subsume) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        out.push(Config { gc, por, subsume, ..Config::better(k) });
    }
    // What other threads do after the main thread's end is of no interest to the paper; here it is.
    out.push(Config { main_ends: false, ..Config::paper(k, false) });
    out.push(Config { main_ends: false, ..Config::paper(k, true) });
    out.push(Config { main_ends: false, subsume: false, ..Config::paper(k, true) });
    out
}

#[test]
fn abstract_covers_concrete() {
    let (mut compared, mut graphs, mut skipped) = (0, 0, 0);
    for seed in 0..cases(30) {
        let text = Author::new(seed).program();
        let note = format!("seed {seed}");
        let program = parse(Source::new("random.scm", text.clone()))
            .unwrap_or_else(|e| panic!("{note}: {e:?}\n{text}"));
        let mut machine = Machine::new(&program);
        machine.track = 4;
        let Some((states, observed)) = concrete_states(&machine) else { continue };
        compared += 1;
        // All eleven configurations would be slow for every program, so they take turns; k varies with them.
        let k = (seed % 3) as usize;
        for (at, config) in configs(k).into_iter().enumerate() {
            if at as u64 % 3 == seed % 3 || at == 7 {
                graphs += 1;
                let Some((mut space, graph)) = abstract_graph(&program, config) else {
                    skipped += 1;
                    continue;
                };
                check_states(&mut space, &graph, &machine, &states, &text, &note);
                check_verdicts(&mut space, &graph, &text, &observed, &note);
            }
        }
        let outcome = modular::analyze(&program, k, &Clock::unlimited());
        for race in observed.races.keys() {
            let candidate = modular::Candidate { sites: race.sites, origin: race.origin, cell: race.cell };
            assert!(outcome.races.contains(&candidate), "{note}: modular misses {race:?}\n{text}");
        }
        assert!(
            observed.deadlocks.is_empty() || !outcome.deadlocks.is_empty(),
            "{note}: modular misses a deadlock\n{text}"
        );
        for (key, error) in &observed.errors {
            let raised = error.failure.kind == raddle_scheme::concrete::state::FailureKind::Raised;
            assert!(!raised || outcome.errors.contains(&key.0), "{note}: modular misses an error\n{text}");
        }
        // A livelock that the modular analysis would call clean is a wrong proof.
        let whole = concrete_explore(&Machine::new(&program), CONCRETE_STATES_MAX * 2, &Clock::unlimited());
        if whole.incomplete.is_none() {
            let spinning = !whole.observed.livelocks.is_empty();
            assert!(!spinning || outcome.spins, "{note}: modular misses a livelock\n{text}");
            assert_eq!(whole.observed.results, observed.results, "{note}: two explorations differ\n{text}");
        }
    }
    assert!(
        skipped * 20 < graphs,
        "nearly all graphs are small enough to compare: {skipped} of {graphs} are not"
    );
    assert!(compared * 2 > cases(30), "most programs are small enough to compare: {compared}");
}

/// Many equal threads share an abstract name, and are covered by it.
#[test]
fn equal_threads_are_covered() {
    let spawns: String = (0..5).map(|at| format!("(define t{at} (spawn (f 1)))\n")).collect();
    let joins: String = (0..5).map(|at| format!("(join t{at})\n")).collect();
    for body in [
        "(set! x n)",
        "(begin (acquire lock) (release lock))",
        "(cas x 0 1)",
        "(begin (acquire lock) n)",
        "(if (cas x 0 n) (error \"first\") 0)",
    ] {
        let text =
            format!("(define x 0)\n(define lock #unlocked)\n(define (f n) {body})\n{spawns}{joins}x\n");
        let program = parse(Source::new("equal.scm", text.clone())).expect("well formed");
        let mut machine = Machine::new(&program);
        machine.track = 4;
        let (states, observed) = concrete_states(&machine).expect("small");
        for (k, gc) in [(0, true), (1, false), (1, true)] {
            let config = Config { gc, ..Config::better(k) };
            let (mut space, graph) = abstract_graph(&program, config).expect("small");
            check_states(&mut space, &graph, &machine, &states, &text, body);
            check_verdicts(&mut space, &graph, &text, &observed, body);
        }
    }
}
