//! Contracts against their definition: both checks over the whole extent of calls, announced ones and functions, and the inference.

mod common;

use common::{Edges, HB, Naive, cases, run};
use raddle_detect::calls::CallPlaces;
use raddle_detect::contract::{Contract, call_names, parse};
use raddle_detect::contract_inference::{Learnt, announced};
use raddle_detect::detectors::contracts::Contracts;
use raddle_detect::detectors::contracts_lockset::ContractsLockset;
use raddle_trace::generate::{Rng, Shape, generate};
use raddle_trace::std_format::StdReader;
use raddle_trace::{ContextIx, Event, Location, LocationIx, MemoryTrace, Op, ThreadIx};
use std::collections::BTreeSet;
use std::sync::Arc;

fn read(text: &str) -> MemoryTrace {
    MemoryTrace::read(&mut StdReader::new(text.as_bytes(), "t.std", None)).unwrap()
}

/// Functions of generated programs: function `n` has the locations from `1000 n` on.
const FUNCTIONS: [&str; 4] = ["none", "a", "b", "c"];

fn places(trace: &MemoryTrace, contracts: &[Contract]) -> Arc<CallPlaces> {
    let names = call_names(contracts);
    let found = CallPlaces::find(&mut trace.source(), &names, &mut |tables, location| {
        let Location::Foreign(number) = *tables.location(location) else { return None };
        let function = FUNCTIONS.get(number as usize / 1000)?;
        names.iter().position(|name| name == function)
    });
    Arc::new(found.unwrap())
}

/// A call, by looking at the whole trace: it begins before event `entry` of its thread and ends after event `exit`. `announced` calls
/// begin and end with these events themselves.
#[derive(Clone, Debug)]
struct NaiveCall {
    thread: ThreadIx,
    name: &'static str,
    value: Option<u64>,
    entry: usize,
    exit: Option<usize>,
}

struct Row {
    thread: ThreadIx,
    value: Option<u64>,
    entry: usize,
    exit: usize,
}

/// The rows of a thread's outermost calls, among those with these names, that are the sequence.
fn rows(calls: &[NaiveCall], names: &[&str], same: bool) -> Vec<Row> {
    let mine: Vec<&NaiveCall> = calls.iter().filter(|call| names.contains(&call.name)).collect();
    let inside = |call: &NaiveCall| {
        mine.iter().any(|outer| {
            outer.thread == call.thread
                && outer.entry <= call.entry
                && !std::ptr::eq(*outer, call)
                && (outer.entry, outer.exit) != (call.entry, call.exit)
                && outer.exit.is_none_or(|exit| call.exit.is_some_and(|end| end <= exit))
        })
    };
    let mut outermost: Vec<&NaiveCall> =
        mine.iter().copied().filter(|call| !inside(call) && call.exit.is_some()).collect();
    outermost.sort_by_key(|call| call.entry);
    // A call without events of its own beside those of a call inside it is the outer one, which stands first.
    outermost.dedup_by_key(|call| (call.thread, call.entry, call.exit));
    let mut found = Vec::new();
    for (place, last) in outermost.iter().enumerate() {
        let concerns = |call: &&&NaiveCall| {
            call.thread == last.thread && (!same || call.value.is_none() || call.value == last.value)
        };
        let row: Vec<&&NaiveCall> = outermost[..=place].iter().filter(concerns).collect();
        if row.len() < names.len() {
            continue;
        }
        let tail = &row[row.len() - names.len()..];
        if tail.iter().zip(names).all(|(call, name)| call.name == *name) {
            let (first, exit) = (tail[0], last.exit.expect("it has one"));
            found.push(Row { thread: last.thread, value: last.value, entry: first.entry, exit });
        }
    }
    found
}

type Rules = [(&'static str, bool, &'static [&'static [&'static str]]); 5];

/// Text, whether calls must be on one object, and spoilers of the target `a b`.
const RULES: Rules = [
    ("a(X) b(X) <- c(X)", true, &[&["c"]]),
    ("a(X) b(X) <- c(X) | b(X) a(X)", true, &[&["c"], &["b", "a"]]),
    ("a b <- c a", false, &[&["c", "a"]]),
    ("a b <- c | b", false, &[&["c"], &["b"]]),
    ("a b\nc", false, &[&["a", "b"], &["c"]]),
];

/// Violations by both checks. `edge(before, a, b)` says whether moment a (an entry if `before`, else a return) is before b.
fn violations(
    calls: &[NaiveCall],
    (same, spoilers): (bool, &[&[&str]]),
    ordered: &dyn Fn(&Row, &Row) -> bool,
) -> BTreeSet<(u64, u64)> {
    let mut found = BTreeSet::new();
    for target in rows(calls, &["a", "b"], same) {
        for spoiler in spoilers.iter().flat_map(|names| rows(calls, names, same)) {
            let fits =
                !same || target.value.is_none() || spoiler.value.is_none() || target.value == spoiler.value;
            if fits && target.thread != spoiler.thread && !ordered(&target, &spoiler) {
                found.insert((target.exit as u64, spoiler.exit as u64));
            }
        }
    }
    found
}

/// Without mutexes, and without what read-write locks add to channels: generated traces here have none.
const HARD: Edges = Edges { mutexes: false, ..HB };

/// Does the target hold one lock all the time that the spoiler holds at some time?
fn guarded(naive: &Naive<'_>, target: &Row, spoiler: &Row, announced: bool) -> bool {
    // An event that is the entry itself is inside; a function is entered before its first event.
    let strictly = usize::from(announced);
    naive.sections.iter().any(|guard| {
        guard.thread == target.thread
            && guard.acquire < target.entry
            && guard.release.is_none_or(|release| release > target.exit)
            && naive.sections.iter().any(|need| {
                need.thread == spoiler.thread
                    && need.lock == guard.lock
                    && need.acquire < spoiler.exit + 1 - strictly
                    && need.release.is_none_or(|release| release >= spoiler.entry + strictly)
            })
    })
}

fn compare(
    trace: &MemoryTrace,
    calls: &[NaiveCall],
    announced: bool,
    ordered: &dyn Fn(&Naive<'_>, &Row, &Row) -> bool,
    case: &str,
    found: &mut [[usize; 2]; 5],
) {
    let (naive, hard) = (Naive::new(trace, HB), Naive::new(trace, HARD));
    for (number, (text, same, spoilers)) in RULES.into_iter().enumerate() {
        let contracts = parse(text).unwrap();
        let places = places(trace, &contracts);
        let rule = (same, spoilers);
        let expected = violations(calls, rule, &|t, s| ordered(&naive, t, s));
        let mut by_order = Contracts::new(&contracts, places.clone());
        run(trace, &mut by_order);
        let told: BTreeSet<_> = by_order.violations().iter().copied().collect();
        assert_eq!(told, expected, "{text:?}, {case}");
        let expected =
            violations(calls, rule, &|t, s| ordered(&hard, t, s) || guarded(&naive, t, s, announced));
        let mut by_locks = ContractsLockset::new(&contracts, places);
        run(trace, &mut by_locks);
        let told_by_locks: BTreeSet<_> = by_locks.violations().iter().copied().collect();
        assert_eq!(told_by_locks, expected, "{text:?} by locks, {case}");
        found[number][0] += told.len();
        found[number][1] += told_by_locks.len();
    }
}

/// Calls of generated traces, some of which are given a return: `returns` of a hundred.
fn with_returns(trace: &MemoryTrace, rng: &mut Rng) -> (MemoryTrace, Vec<NaiveCall>) {
    let mut changed = trace.clone();
    changed.events.clear();
    let mut calls: Vec<NaiveCall> = Vec::new();
    let mut open: Vec<Vec<usize>> = Vec::new();
    for event in &trace.events {
        let thread = event.thread.index();
        open.resize(open.len().max(thread + 1), Vec::new());
        while !open[thread].is_empty() && rng.below(3) == 0 {
            let call = open[thread].pop().unwrap();
            calls[call].exit = Some(changed.events.len());
            let name = changed.tables.intern_text(&format!("{}_return()", calls[call].name));
            let Op::Custom { object, .. } = changed.events[calls[call].entry].op else { unreachable!() };
            changed.events.push(Event { op: Op::Custom { name, object }, ..*event });
        }
        if let Op::Custom { name, object } = event.op {
            let text = trace.tables.text(name);
            if let Some(&name) = FUNCTIONS.iter().find(|known| **known == text) {
                open[thread].push(calls.len());
                let (entry, value) = (changed.events.len(), Some(object.0));
                calls.push(NaiveCall { thread: event.thread, name, value, entry, exit: None });
            }
        }
        changed.events.push(*event);
    }
    (changed, calls)
}

#[test]
fn announced_calls_last_until_their_return() {
    let shape = Shape { calls: 3, other_percent: 50, lock_percent: 40, ..Shape::locks_only(3, 2, 2, 80) };
    let mut found = [[0; 2]; 5];
    for seed in 0..cases(100) {
        let (trace, calls) = with_returns(&generate(&shape, seed), &mut Rng::new(seed));
        // Where no call returned the events are moments.
        let returned: BTreeSet<&str> =
            calls.iter().filter(|call| call.exit.is_some()).map(|call| call.name).collect();
        if returned.len() < 3 {
            continue;
        }
        let ordered = |naive: &Naive<'_>, t: &Row, s: &Row| {
            naive.before[t.entry].contains(s.entry) || naive.before[s.exit].contains(t.exit)
        };
        compare(&trace, &calls, true, &ordered, &format!("seed {seed}"), &mut found);
    }
    assert!(found.iter().flatten().all(|&count| count > 20), "{found:?}");
}

#[test]
fn calls_without_returns_are_moments() {
    let shape = Shape { calls: 2, other_percent: 50, lock_percent: 40, ..Shape::locks_only(3, 1, 2, 80) };
    let mut found = [[0; 2]; 5];
    for seed in 0..cases(100) {
        let trace = generate(&shape, seed);
        let calls = trace.events.iter().enumerate().filter_map(|(index, event)| {
            let Op::Custom { name, object } = event.op else { return None };
            let name = *FUNCTIONS.iter().find(|known| **known == trace.tables.text(name))?;
            let value = Some(object.0);
            Some(NaiveCall { thread: event.thread, name, value, entry: index, exit: Some(index) })
        });
        let ordered = |naive: &Naive<'_>, t: &Row, s: &Row| {
            naive.before[t.entry].contains(s.entry) || naive.before[s.exit].contains(t.exit)
        };
        compare(&trace, &calls.collect::<Vec<_>>(), true, &ordered, &format!("seed {seed}"), &mut found);
    }
    assert!(found.iter().all(|counts| counts[0] > 20), "{found:?}");
}

/// A call of a function: the thread, the function, and the first and the last event within it, if there are any.
type Activation = (ThreadIx, usize, Option<(usize, usize)>);

/// Puts the events of a trace into functions that call each other; the activations come back as calls.
fn in_functions(trace: &MemoryTrace, rng: &mut Rng) -> (MemoryTrace, Vec<NaiveCall>) {
    #[derive(Clone, Default)]
    struct Thread {
        /// Where each call was made, the function, and its number among the calls.
        stack: Vec<(LocationIx, usize, usize)>,
        kept: usize,
    }
    let mut changed = trace.clone();
    let mut threads: Vec<Thread> = Vec::new();
    let mut activations: Vec<Activation> = Vec::new();
    for (index, event) in changed.events.iter_mut().enumerate() {
        let number = event.thread.index();
        threads.resize(threads.len().max(number + 1), Thread::default());
        let thread = &mut threads[number];
        for _ in 0..rng.below(4) {
            let top = thread.stack.last().map_or(0, |call| call.1);
            if rng.below(2) == 0 && !thread.stack.is_empty() {
                thread.stack.pop();
                thread.kept = thread.kept.min(thread.stack.len());
            } else if thread.stack.len() < 3 {
                let place = Location::Foreign(1000 * top as u32 + rng.below(2));
                let place = changed.tables.intern_location(place);
                let function = rng.below(4) as usize;
                thread.stack.push((place, function, activations.len()));
                activations.push((event.thread, function, None));
            }
        }
        let top = thread.stack.last().map_or(0, |call| call.1);
        let place = Location::Foreign(1000 * top as u32 + 10 + rng.below(3));
        event.location = changed.tables.intern_location(place);
        event.context = thread
            .stack
            .iter()
            .fold(ContextIx::ROOT, |context, call| changed.tables.intern_context(context, call.0));
        event.kept_calls = thread.kept as u32;
        thread.kept = thread.stack.len();
        for &(_, _, activation) in &thread.stack {
            let seen = &mut activations[activation].2;
            *seen = Some((seen.map_or(index, |seen| seen.0), index));
        }
    }
    let calls = activations.into_iter().filter_map(|(thread, function, seen)| {
        let (entry, exit) = seen?;
        Some(NaiveCall { thread, name: FUNCTIONS[function], value: None, entry, exit: Some(exit) })
    });
    (changed, calls.collect())
}

#[test]
fn functions_are_calls_from_entry_to_exit() {
    let shape = Shape { lock_percent: 50, ..Shape::locks_only(3, 2, 2, 70) };
    let mut found = [[0; 2]; 5];
    for seed in 0..cases(100) {
        let (trace, calls) = in_functions(&generate(&shape, seed), &mut Rng::new(seed));
        let mine = |index: usize| trace.events[index].thread;
        // An entry is before all that its first event is before; it knows what the event before it knew, and who forked it.
        // A return is after its last event, and what comes next of its thread, or joins it, is after the return.
        let ordered = |naive: &Naive<'_>, t: &Row, s: &Row| {
            let before = (0..t.entry).rev().find(|&e| mine(e) == t.thread).or_else(|| {
                let forks =
                    |e: &usize| matches!(trace.events[*e].op, Op::Fork { child } if child == t.thread);
                (0..t.entry).find(forks)
            });
            let after = (t.exit + 1..trace.events.len()).find(|&e| mine(e) == t.thread).or_else(|| {
                let joins =
                    |e: &usize| matches!(trace.events[*e].op, Op::Join { child } if child == t.thread);
                (t.exit + 1..trace.events.len()).find(joins)
            });
            let includes = |e: usize, x: usize| e == x || naive.before[e].contains(x);
            before.is_some_and(|e| includes(e, s.entry)) || after.is_some_and(|x| includes(s.exit, x))
        };
        compare(&trace, &calls, false, &ordered, &format!("seed {seed}"), &mut found);
    }
    assert!(found.iter().flatten().all(|&count| count > 20), "{found:?}");
}

/// A map with a lock of its own, whose clients look and then get; one removes. `client` locks around, `at` is where events stand.
fn map(client: bool, whole: bool, order: [usize; 2]) -> String {
    let call = |thread: &str, name: &str, locks: bool| {
        let lines = [
            if whole { format!("call({name},m)") } else { String::new() },
            if locks { "acq(m)".into() } else { String::new() },
            if whole { String::new() } else { format!("call({name},m)") },
            if locks { "rel(m)".into() } else { String::new() },
            if whole { format!("call({name}_return,m)") } else { String::new() },
        ];
        lines
            .iter()
            .filter(|l| !l.is_empty())
            .map(|l| format!("{thread}|{l}|{}\n", name.len()))
            .collect::<String>()
    };
    let guard = |thread: &str, inner: String| match client {
        true => format!("{thread}|acq(l)|1\n{inner}{thread}|rel(l)|1\n"),
        false => inner,
    };
    let parts = [
        guard("T1", call("T1", "contains", true) + &call("T1", "get", true)),
        guard("T2", call("T2", "remove", true)),
    ];
    order.map(|part| parts[part].clone()).concat()
}

#[test]
fn it_does_not_matter_where_in_a_call_the_locks_are() {
    let contracts = parse("contains(M) get(M) <- remove(M)").unwrap();
    for order in [[0, 1], [1, 0]] {
        for (client, violated) in [(true, 0), (false, 1)] {
            let trace = read(&map(client, true, order));
            let places = places(&trace, &contracts);
            let told = run(&trace, &mut Contracts::new(&contracts, places.clone()));
            assert_eq!(told.len(), violated, "client locks: {client}, {order:?}");
            let told = run(&trace, &mut ContractsLockset::new(&contracts, places));
            assert_eq!(told.len(), violated, "by locks, client locks: {client}, {order:?}");
        }
    }
    // With moments inside the module's lock its order hides the violation from happens-before, and not from the locks.
    let trace = read(&map(false, false, [0, 1]));
    let places = places(&trace, &contracts);
    assert!(run(&trace, &mut Contracts::new(&contracts, places)).is_empty());
}

#[test]
fn a_lock_of_others_hides_nothing_from_the_lockset_check() {
    let contracts = parse("contains(M) get(M) <- remove(M)").unwrap();
    let unrelated = ["T1|acq(u)|7\nT1|rel(u)|7\n", "T2|acq(u)|7\nT2|rel(u)|7\n"];
    let whole = map(false, true, [0, 1]);
    let (first, second) = whole.split_at(whole.find("T2").unwrap());
    let trace = read(&[first, unrelated[0], unrelated[1], second].concat());
    let found = places(&trace, &contracts);
    assert!(run(&trace, &mut Contracts::new(&contracts, found.clone())).is_empty());
    assert_eq!(run(&trace, &mut ContractsLockset::new(&contracts, found)).len(), 1);
    // A join is an order that every run has.
    let joined = format!("T1|fork(T2)|3\n{second}T1|join(T2)|4\n{first}");
    let trace = read(&joined);
    let found = places(&trace, &contracts);
    assert!(run(&trace, &mut ContractsLockset::new(&contracts, found)).is_empty());
}

#[test]
fn several_parameters_are_one_call_s_values() {
    let contracts = parse("get(M,K) put(M,K) <- put(M,K)").unwrap();
    let check = |key: &str| {
        let text = format!(
            "T1|call(get,m,k)|1\nT1|call(get_return)|2\nT1|call(put,m,k)|3\nT1|call(put_return)|4\n\
             T2|call(put,m,{key})|5\nT2|call(put_return)|6\n"
        );
        let trace = read(&text);
        let found = places(&trace, &contracts);
        assert_eq!(found.values("put"), 2);
        run(&trace, &mut Contracts::new(&contracts, found)).len()
    };
    assert_eq!(check("k"), 1, "the same map and key");
    assert_eq!(check("other"), 0, "another key");
}

#[test]
fn contracts_are_learnt_from_clients_that_keep_them() {
    let learn = |texts: &[String]| {
        let mut learnt = Learnt::default();
        for text in texts {
            let trace = read(text);
            let names = announced(&trace);
            let found = CallPlaces::find(&mut trace.source(), &names, &mut |_, _| None).unwrap();
            learnt.add(&trace, &Arc::new(found));
        }
        learnt.contracts().iter().map(|contract| contract.to_string()).collect::<Vec<_>>()
    };
    let kept = map(true, true, [0, 1]).repeat(4);
    let expected = "contains(X) get(X) <- remove(X)".to_owned();
    let learnt = learn(std::slice::from_ref(&kept));
    assert!(learnt.contains(&expected), "{learnt:?}");
    // One run in which nothing keeps the pair whole says that it need not be.
    assert!(!learn(&[kept, map(false, true, [0, 1])]).contains(&expected));
    assert!(learn(&[map(true, true, [0, 1])]).is_empty(), "once is not enough");
}
