//! Models of any size, built in Rust: for measurements, tests, and as an example of the library without text.
//!
//! * **Dining philosophers** (Hoare 1985): `n` philosophers with `n` forks; each sits, takes both forks, eats, puts them
//!   down, rises. They deadlock when all hold their left fork; with a left-handed one they do not.
//! * **Mutual exclusion** by Peterson's algorithm for `n` processes (1981, the filter lock), with the shared variables as
//!   processes; waiting reads its condition in one step.
//! * **Cyclic scheduler** (Milner 1989): `n` cells start their tasks in turn; a task may end at any time before its next
//!   start.

use crate::assertion::{Assertion, Property, SemanticModel};
use crate::process::{Equations, EventId, ProcId, Processes};

/// A model with what it claims.
pub struct BenchModel {
    pub name: String,
    pub arena: Processes,
    pub equations: Equations,
    pub assertion: Assertion,
}

/// `n` philosophers; the last one takes his right fork first if `left_handed`. Asserts `deadlock free [F]`.
pub fn philosophers(n: usize, left_handed: bool) -> BenchModel {
    assert!(n >= 2, "one philosopher has only one fork");
    let mut arena = Processes::default();
    let mut equations = Equations::default();
    let event = |arena: &mut Processes, channel: &str, fields: &[usize]| {
        let fields: Vec<String> = fields.iter().map(usize::to_string).collect();
        arena.events.intern(channel, &fields)
    };
    let mut operands: Vec<(ProcId, Vec<EventId>)> = Vec::new();
    for i in 0..n {
        let right = (i + 1) % n;
        let name = arena.call(format!("PHIL({i})"));
        let (first, second) = if left_handed && i == n - 1 { (right, i) } else { (i, right) };
        let events = [
            event(&mut arena, "sit", &[i]),
            event(&mut arena, "pick", &[i, first]),
            event(&mut arena, "pick", &[i, second]),
            event(&mut arena, "eat", &[i]),
            event(&mut arena, "put", &[i, second]),
            event(&mut arena, "put", &[i, first]),
            event(&mut arena, "rise", &[i]),
        ];
        let body = arena.chain(&events, name);
        equations.define(&arena, name, body);
        operands.push((name, events.to_vec()));
    }
    for i in 0..n {
        let left = (i + n - 1) % n;
        let name = arena.call(format!("FORK({i})"));
        let mut branches = Vec::new();
        let mut alphabet = Vec::new();
        for user in [i, left] {
            let (pick, put) = (event(&mut arena, "pick", &[user, i]), event(&mut arena, "put", &[user, i]));
            let rest = arena.prefix(put, name);
            branches.push((pick, rest));
            alphabet.extend([pick, put]);
        }
        let body = arena.prefixes(branches);
        equations.define(&arena, name, body);
        operands.push((name, alphabet));
    }
    let process = alphabetised(&mut arena, operands);
    let property = Property::DeadlockFree { model: SemanticModel::Failures, process };
    let name = format!("philosophers{}({n})", if left_handed { "_left_handed" } else { "" });
    BenchModel { name, arena, equations, assertion: Assertion::new(property) }
}

/// Milner's scheduler with `n` cells. Asserts in the traces model that tasks start in turn.
pub fn scheduler(n: usize) -> BenchModel {
    assert!(n >= 2, "a ring has at least two cells");
    let mut arena = Processes::default();
    let mut equations = Equations::default();
    let start: Vec<EventId> = (0..n).map(|i| arena.events.intern("start", &[i.to_string()])).collect();
    let end: Vec<EventId> = (0..n).map(|i| arena.events.intern("end", &[i.to_string()])).collect();
    let token: Vec<EventId> = (0..n).map(|i| arena.events.intern("token", &[i.to_string()])).collect();
    let mut operands: Vec<(ProcId, Vec<EventId>)> = Vec::new();
    for i in 0..n {
        let next = token[(i + 1) % n];
        // CELL = token.i -> READY;  READY = start.i -> (end.i -> next -> CELL [] next -> (end.i -> CELL [] …))
        let cell = arena.call(format!("CELL({i})"));
        let passed = arena.prefix(end[i], cell);
        let ended = arena.prefix(next, cell);
        let running = arena.prefixes(vec![(end[i], ended), (next, passed)]);
        let ready = arena.prefix(start[i], running);
        let waiting = arena.prefix(token[i], ready);
        equations.define(&arena, cell, waiting);
        let first = if i == 0 { ready } else { cell };
        operands.push((first, vec![start[i], end[i], token[i], next]));
    }
    let system = alphabetised(&mut arena, operands);
    let hidden = arena.set_of(token.iter().copied());
    let implementation = arena.hide(system, hidden);
    // SPEC: starts in turn, ends whenever.
    let turns: Vec<ProcId> = (0..n).map(|i| arena.call(format!("TURN({i})"))).collect();
    for i in 0..n {
        let mut branches = vec![(start[i], turns[(i + 1) % n])];
        branches.extend(end.iter().map(|&e| (e, turns[i])));
        let body = arena.prefixes(branches);
        equations.define(&arena, turns[i], body);
    }
    let property = Property::Refines { model: SemanticModel::Traces, spec: turns[0], implementation };
    BenchModel { name: format!("scheduler({n})"), arena, equations, assertion: Assertion::new(property) }
}

/// Peterson's algorithm for `n` processes. Asserts in the traces model that they enter one at a time.
pub fn mutual_exclusion(n: usize) -> BenchModel {
    assert!(n >= 2, "exclusion needs two");
    let mut arena = Processes::default();
    let mut equations = Equations::default();
    let event = |arena: &mut Processes, channel: &str, fields: &[usize]| {
        let fields: Vec<String> = fields.iter().map(usize::to_string).collect();
        arena.events.intern(channel, &fields)
    };
    let mut operands: Vec<(ProcId, Vec<EventId>)> = Vec::new();
    let mut spec = Vec::new();
    let exclusive = arena.call("EXCLUSIVE");
    // PROCESS(i): climb the levels, enter, leave.
    for i in 0..n {
        let name = arena.call(format!("PROCESS({i})"));
        let (enter, leave) = (event(&mut arena, "enter", &[i]), event(&mut arena, "leave", &[i]));
        let mut alphabet = vec![enter, leave];
        // Leaving and stepping down are one step, as entering a level is.
        let mut rest = arena.chain(&[enter, leave], name);
        for level in (1..n).rev() {
            let overtaken = event(&mut arena, "overtaken", &[i, level]);
            let highest = event(&mut arena, "highest", &[i, level]);
            let wait = arena.prefixes(vec![(overtaken, rest), (highest, rest)]);
            let climb = [event(&mut arena, "level", &[i, level]), event(&mut arena, "last", &[level, i])];
            rest = arena.chain(&climb, wait);
            alphabet.extend([overtaken, highest]);
            alphabet.extend(climb);
        }
        equations.define(&arena, name, rest);
        operands.push((name, alphabet));
        let inside = arena.prefix(leave, exclusive);
        spec.push((enter, inside));
    }
    // LEVEL(i, v): written by its process; lets another be the highest at any level above v.
    for i in 0..n {
        let names: Vec<ProcId> = (0..n).map(|v| arena.call(format!("LEVEL({i},{v})"))).collect();
        let mut alphabet = Vec::new();
        for v in 0..n {
            let mut branches = vec![(event(&mut arena, "leave", &[i]), names[0])];
            for level in 1..n {
                branches.push((event(&mut arena, "level", &[i, level]), names[level]));
                for other in (0..n).filter(|&other| other != i) {
                    let highest = event(&mut arena, "highest", &[other, level]);
                    alphabet.push(highest);
                    if v < level {
                        branches.push((highest, names[v]));
                    }
                }
            }
            alphabet.extend(branches.iter().map(|&(e, _)| e));
            let body = arena.prefixes(branches);
            equations.define(&arena, names[v], body);
        }
        operands.push((names[0], alphabet));
    }
    // LAST(l, v): the last to arrive at level l; anyone else there is overtaken.
    for level in 1..n {
        let names: Vec<ProcId> = (0..n).map(|v| arena.call(format!("LAST({level},{v})"))).collect();
        let mut alphabet = Vec::new();
        for v in 0..n {
            let mut branches = Vec::new();
            for i in 0..n {
                branches.push((event(&mut arena, "last", &[level, i]), names[i]));
                let overtaken = event(&mut arena, "overtaken", &[i, level]);
                alphabet.push(overtaken);
                if i != v {
                    branches.push((overtaken, names[v]));
                }
            }
            alphabet.extend(branches.iter().map(|&(e, _)| e));
            let body = arena.prefixes(branches);
            equations.define(&arena, names[v], body);
        }
        operands.push((names[0], alphabet));
    }
    let system = alphabetised(&mut arena, operands);
    let shown: Vec<EventId> =
        (0..n).flat_map(|i| [event(&mut arena, "enter", &[i]), event(&mut arena, "leave", &[i])]).collect();
    let shown = arena.set_of(shown);
    let implementation = arena.project(system, shown);
    let body = arena.prefixes(spec);
    equations.define(&arena, exclusive, body);
    let property = Property::Refines { model: SemanticModel::Traces, spec: exclusive, implementation };
    BenchModel {
        name: format!("mutual_exclusion({n})"),
        arena,
        equations,
        assertion: Assertion::new(property),
    }
}

fn alphabetised(arena: &mut Processes, operands: Vec<(ProcId, Vec<EventId>)>) -> ProcId {
    let operands = operands.into_iter().map(|(p, events)| (p, arena.set_of(events))).collect();
    arena.alphabetised(operands)
}
