//! Models of any size, built in Rust: for measurements, tests, and as an example of the library without text.
//!
//! * **Dining philosophers** (Hoare 1985): `n` philosophers with `n` forks; each sits, takes both forks, eats, puts them
//!   down, rises. They deadlock when all hold their left fork; with a left-handed one they do not.
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

fn alphabetised(arena: &mut Processes, operands: Vec<(ProcId, Vec<EventId>)>) -> ProcId {
    let operands = operands.into_iter().map(|(p, events)| (p, arena.set_of(events))).collect();
    arena.alphabetised(operands)
}
