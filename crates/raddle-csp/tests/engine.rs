//! The engine on models with known answers: counts, counterexamples, parallel against sequential, disk against memory,
//! errors.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use raddle_csp::assertion::{Assertion, PartialOrder, Property, SemanticModel};
use raddle_csp::bench_models::{BenchModel, mutual_exclusion, philosophers, scheduler};
use raddle_csp::engine::firing::Firing;
use raddle_csp::engine::machine::Machine;
use raddle_csp::engine::walk::Walk;
use raddle_csp::engine::{Behaviour, CheckError, CheckOptions, Checker, Outcome, Progress, check, render};
use raddle_csp::process::{Compression, Equations, EventId, ProcId, Processes};

fn run(model: &mut BenchModel, options: &CheckOptions) -> Outcome {
    check(&mut model.arena, &mut model.equations, &model.assertion, options)
        .expect("the model is well formed")
}

fn process_of(model: &BenchModel) -> ProcId {
    match model.assertion.property {
        Property::DeadlockFree { process, .. } => process,
        Property::Refines { implementation, .. } => implementation,
        _ => unreachable!("bench models make no other claims"),
    }
}

#[test]
fn counts_are_those_of_brute_force() {
    for mut model in [philosophers(2, true), philosophers(3, true), philosophers(4, true)] {
        let process = process_of(&model);
        let states =
            Machine::of_term(&mut Firing::new(&mut model.arena, &mut model.equations), process, 100_000)
                .unwrap();
        let outcome = run(&mut model, &CheckOptions::default());
        assert!(outcome.holds, "{}", model.name);
        assert_eq!(outcome.statistics.pairs as usize, states.len(), "{}", model.name);
        assert_eq!(outcome.statistics.transitions as usize, states.transition_count(), "{}", model.name);
    }
    // n cells, each with its task running or not, the token at one of n places in one of two phases, less the
    // combinations where the cell about to start still runs: (3n) * 2^(n-1).
    for n in 2..8 {
        let outcome = run(&mut scheduler(n), &CheckOptions::default());
        assert!(outcome.holds);
        assert_eq!(outcome.statistics.pairs, 3 * n as u64 * (1 << (n - 1)), "scheduler({n})");
    }
}

#[test]
fn petersons_processes_exclude_each_other() {
    // SPIN counts the same states for benches/csp/mutual_exclusion.pml, and one for its `init`.
    for (n, pairs) in [(2, 26), (3, 465), (4, 9_820)] {
        let outcome = run(&mut mutual_exclusion(n), &CheckOptions::default());
        assert!(outcome.holds, "{n} processes");
        assert_eq!(outcome.statistics.pairs, pairs, "{n} processes");
    }
}

#[test]
fn philosophers_deadlock_with_all_left_forks_taken() {
    for n in 2..6 {
        let mut model = philosophers(n, false);
        let outcome = run(&mut model, &CheckOptions::default());
        assert!(!outcome.holds);
        let counterexample = &outcome.counterexamples[0];
        assert_eq!(counterexample.behaviour, Behaviour::Deadlock);
        assert_eq!(counterexample.trace.len(), 2 * n, "everyone sits and takes one fork");
        for (i, component) in counterexample.components.iter().enumerate().take(n) {
            assert_eq!(component.name, format!("PHIL({i})"));
            let own = render::own_events(&counterexample.path, i);
            let names: Vec<String> = own.iter().map(|&e| model.arena.events.name(e).to_string()).collect();
            assert_eq!(names, [format!("sit.{i}"), format!("pick.{i}.{i}")]);
        }
    }
}

/// Everything but times and memory.
fn essence(outcome: &Outcome) -> (bool, Vec<String>, u64, u64, u64) {
    let s = &outcome.statistics;
    let shown = outcome.counterexamples.iter().map(|c| format!("{c:?}")).collect();
    (outcome.holds, shown, s.pairs, s.transitions, s.plies)
}

#[test]
fn workers_and_disk_change_nothing() {
    let models: [fn() -> BenchModel; 5] = [
        || philosophers(5, false),
        || philosophers(5, true),
        || scheduler(9),
        hidden_philosophers,
        || faulty_scheduler(8),
    ];
    for build in models {
        let expected = essence(&run(&mut build(), &CheckOptions::default()));
        for workers in [1, 2, 5] {
            for memory_limit_bytes in [None, Some(1_500)] {
                let options = CheckOptions { workers, memory_limit_bytes, ..CheckOptions::default() };
                let mut model = build();
                let outcome = run(&mut model, &options);
                let how = format!("{} with {workers} workers, limit {memory_limit_bytes:?}", model.name);
                assert_eq!(essence(&outcome), expected, "{how}");
                // Several workers divide the states among shards too small to fill on some of these models.
                if workers == 1 {
                    assert_eq!(outcome.statistics.spilled_bytes > 0, memory_limit_bytes.is_some(), "{how}");
                }
            }
        }
    }
}

/// All but eating hidden, in failures-divergences: many τ, and a divergence, since sitting and rising can go on for ever
/// for one while another has eaten.
fn hidden_philosophers() -> BenchModel {
    let mut model = philosophers(5, true);
    let process = process_of(&model);
    let eat = model.arena.events.find_text("eat.0").expect("philosopher 0 eats");
    let keep = model.arena.set_of([eat]);
    let implementation = model.arena.project(process, keep);
    let spec = model.arena.run(keep);
    let semantic = SemanticModel::FailuresDivergences;
    model.assertion = Assertion::new(Property::Refines { model: semantic, spec, implementation });
    model
}

/// The scheduler against a specification that forbids the last task to start.
fn faulty_scheduler(n: usize) -> BenchModel {
    let mut model = scheduler(n);
    let implementation = process_of(&model);
    let last = model.arena.events.find_text(&format!("start.{}", n - 1)).expect("the last task starts");
    let others: Vec<EventId> = model.arena.events.ids().filter(|&e| e != last).collect();
    let set = model.arena.set_of(others);
    let spec = model.arena.run(set);
    let property = Property::Refines { model: SemanticModel::Traces, spec, implementation };
    model.assertion = Assertion::new(property);
    model
}

#[test]
fn shortest_counterexamples_count_visible_events() {
    let mut model = faulty_scheduler(6);
    let outcome = run(&mut model, &CheckOptions::default());
    let counterexample = &outcome.counterexamples[0];
    // Five starts before the forbidden one; hidden tokens in between do not count.
    assert_eq!(counterexample.trace.len(), 5);
    assert_eq!(counterexample.path.iter().filter(|s| s.event == EventId::TAU).count(), 5);
    let hidden = run(&mut hidden_philosophers(), &CheckOptions::default());
    assert_eq!(hidden.counterexamples[0].trace, []);
    assert!(
        matches!(&hidden.counterexamples[0].behaviour, Behaviour::Divergence { cycle } if !cycle.is_empty())
    );
}

#[test]
fn partial_order_reduction_leaves_states_out() {
    for effort in [PartialOrder::Fast, PartialOrder::Precise, PartialOrder::Hybrid] {
        for (mut model, holds) in [(philosophers(5, true), true), (philosophers(5, false), false)] {
            let full = run(&mut model, &CheckOptions::default());
            model.assertion.partial_order = effort;
            let reduced = run(&mut model, &CheckOptions::default());
            assert_eq!((full.holds, reduced.holds), (holds, holds), "{effort:?} {}", model.name);
            if effort != PartialOrder::Fast {
                assert!(reduced.statistics.pairs < full.statistics.pairs / 2, "{effort:?} {}", model.name);
            }
        }
    }
}

#[test]
fn several_counterexamples_are_different() {
    let mut model = scheduler(4);
    let implementation = process_of(&model);
    let spec = model.arena.stop();
    let property = Property::Refines { model: SemanticModel::Traces, spec, implementation };
    model.assertion = Assertion::new(property);
    let mut open = philosophers(3, true);
    let implementation = process_of(&open);
    let property =
        Property::Refines { model: SemanticModel::Failures, spec: open.arena.stop(), implementation };
    open.assertion = Assertion::new(property);
    let options = CheckOptions { counterexamples: 5, ..CheckOptions::default() };
    let outcome = run(&mut open, &options);
    assert_eq!(outcome.counterexamples.len(), 3, "any of the three can sit down, and STOP may refuse all");
    let mut kinds: Vec<String> =
        outcome.counterexamples.iter().map(|c| format!("{:?}", c.behaviour)).collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 3);
    assert_eq!(run(&mut model, &options).counterexamples.len(), 1, "only the first task can start");
}

#[test]
fn paths_can_be_walked() {
    let mut model = philosophers(4, false);
    let process = process_of(&model);
    let mut checker = Checker::new(&mut model.arena, &mut model.equations, CheckOptions::default());
    let outcome = checker.check(&model.assertion).unwrap();
    let compiled = checker.compile(process).unwrap();
    let mut walk = Walk::new(&compiled);
    for step in &outcome.counterexamples[0].path {
        let number = walk.offers().iter().position(|s| s == step).expect("the next step is offered");
        assert!(walk.take(number));
    }
    assert_eq!(walk.trace(), outcome.counterexamples[0].trace);
    assert!(walk.offers().is_empty(), "a deadlock offers nothing");
    assert!(!walk.is_terminated());
    assert!(walk.undo());
    assert!(!walk.offers().is_empty());
}

fn tiny() -> (Processes, Equations, EventId, EventId) {
    let mut arena = Processes::default();
    let (a, b) = (arena.events.plain("a"), arena.events.plain("b"));
    (arena, Equations::default(), a, b)
}

fn deadlock_free(
    arena: &mut Processes,
    equations: &mut Equations,
    process: ProcId,
    options: &CheckOptions,
) -> Result<Outcome, CheckError> {
    let property = Property::DeadlockFree { model: SemanticModel::Failures, process };
    check(arena, equations, &Assertion::new(property), options)
}

#[test]
fn unguarded_recursion_is_an_error() {
    let (mut arena, mut equations, a, _) = tiny();
    let p = arena.call("P");
    let prefixed = arena.prefix(a, p);
    let bodies: [(&str, ProcId); 5] = [
        ("P = P", p),
        ("P = P [] a -> P", arena.external_choice(vec![p, prefixed])),
        ("P = P ; P", arena.sequence(p, p)),
        ("P = P ||| P", arena.interleave(vec![p, p])),
        ("P = normal(P)", arena.compress(Compression::Normal, p)),
    ];
    for (text, body) in bodies {
        equations.define(&arena, p, body);
        let result = deadlock_free(&mut arena, &mut equations, p, &CheckOptions::default());
        assert!(matches!(result, Err(CheckError::UnguardedRecursion { .. })), "{text}: {result:?}");
    }
    let divergent = arena.internal_choice(vec![p, prefixed]);
    equations.define(&arena, p, divergent);
    let property = Property::DivergenceFree { process: p };
    let outcome =
        check(&mut arena, &mut equations, &Assertion::new(property), &CheckOptions::default()).unwrap();
    assert!(!outcome.holds, "P = P |~| a -> P diverges");
}

#[test]
fn limits_and_missing_definitions_are_errors() {
    let (mut arena, mut equations, a, b) = tiny();
    let undefined = arena.call("NOWHERE");
    let p = arena.prefix(a, undefined);
    let error = deadlock_free(&mut arena, &mut equations, p, &CheckOptions::default()).unwrap_err();
    assert!(error.to_string().contains("NOWHERE"), "{error}");

    // P = a -> (P ||| b -> STOP): a new component at every step.
    let growing = arena.call("P");
    let stop = arena.stop();
    let extra = arena.prefix(b, stop);
    let both = arena.interleave(vec![growing, extra]);
    let body = arena.prefix(a, both);
    equations.define(&arena, growing, body);
    let options = CheckOptions { leaf_states_max: 500, ..CheckOptions::default() };
    let error = deadlock_free(&mut arena, &mut equations, growing, &options).unwrap_err();
    assert!(matches!(error, CheckError::TooManyStates { limit: 500, .. }), "{error}");

    let mut model = philosophers(6, true);
    let limited = CheckOptions { pairs_max: Some(1000), ..CheckOptions::default() };
    let result = check(&mut model.arena, &mut model.equations, &model.assertion, &limited);
    assert!(matches!(result, Err(CheckError::PairLimit { limit: 1000 })));
    let cancelled = CheckOptions { cancel: Some(Arc::new(AtomicBool::new(true))), ..CheckOptions::default() };
    let result = check(&mut model.arena, &mut model.equations, &model.assertion, &cancelled);
    assert!(matches!(result, Err(CheckError::Cancelled)));
    let nowhere = CheckOptions {
        memory_limit_bytes: Some(10_000),
        spill_folder: Some("/nonexistent/folder".into()),
        ..CheckOptions::default()
    };
    let result = check(&mut model.arena, &mut model.equations, &model.assertion, &nowhere);
    assert!(matches!(result, Err(CheckError::Spill { .. })));
}

#[test]
fn a_negated_assertion_keeps_the_counterexample() {
    let mut model = philosophers(3, false);
    model.assertion.negated = true;
    let outcome = run(&mut model, &CheckOptions::default());
    assert!(outcome.holds && !outcome.property_holds);
    assert_eq!(outcome.counterexamples.len(), 1);
}

#[test]
fn tau_priority_lets_hidden_steps_go_first() {
    // (a -> tock -> STOP [] tock -> b -> STOP) \ {a}: with priority over tock the τ comes first.
    let (mut arena, mut equations, a, b) = tiny();
    let tock = arena.events.plain("tock");
    let stop = arena.stop();
    let after_a = arena.chain(&[tock], stop);
    let after_tock = arena.chain(&[b], stop);
    let body = arena.prefixes(vec![(a, after_a), (tock, after_tock)]);
    let hidden = arena.set_of([a]);
    let implementation = arena.hide(body, hidden);
    let spec = arena.chain(&[tock], stop);
    let property = Property::Refines { model: SemanticModel::Traces, spec, implementation };
    let plain = Assertion::new(property);
    let urgent = Assertion { tau_priority: Some(arena.set_of([tock])), ..plain.clone() };
    let options = CheckOptions::default();
    assert!(!check(&mut arena, &mut equations, &plain, &options).unwrap().holds);
    assert!(check(&mut arena, &mut equations, &urgent, &options).unwrap().holds);
}

#[test]
fn compressions_shrink() {
    // A chain of hidden steps beside a visible one.
    let (mut arena, mut equations, a, b) = tiny();
    let stop = arena.stop();
    let left = arena.chain(&[a; 20], stop);
    let right = arena.chain(&[b; 3], stop);
    let both = arena.interleave(vec![left, right]);
    let hidden = arena.set_of([a]);
    let process = arena.hide(both, hidden);
    let mut sizes = Vec::new();
    for how in [
        Compression::Explicate,
        Compression::StrongBisimulation,
        Compression::DelayBisimulation,
        Compression::WeakBisimulation,
        Compression::Diamond,
        Compression::Normal,
    ] {
        let compressed = arena.compress(how, process);
        let mut checker = Checker::new(&mut arena, &mut equations, CheckOptions::default());
        let model = checker.compile(compressed).unwrap();
        sizes.push((how.name(), model.combinator.leaves[0].machine.len()));
    }
    let expected =
        [("explicate", 84), ("sbisim", 84), ("dbisim", 4), ("wbisim", 4), ("diamond", 8), ("normal", 4)];
    assert_eq!(sizes, expected);
}

#[test]
fn pictures_and_json_tell_the_same() {
    let mut model = philosophers(2, false);
    let outcome = run(&mut model, &CheckOptions::default());
    let events = &model.arena.events;
    let counterexample = &outcome.counterexamples[0];
    let text = render::text(events, counterexample);
    expect_test::expect![[r#"
        after <sit.0, sit.1, pick.0.0, pick.1.1>
        then nothing can happen any more
        components:
          PHIL(0)  <sit.0, pick.0.0>
          PHIL(1)  <sit.1, pick.1.1>
          FORK(0)  <pick.0.0>
          FORK(1)  <pick.1.1>
    "#]]
    .assert_eq(&text);
    let json = render::outcome_json(events, &outcome);
    assert_eq!(json["counterexamples"][0]["violation"]["kind"], "deadlock");
    assert_eq!(json["counterexamples"][0]["components"][2]["trace"][0], "pick.0.0");
    assert_eq!(json["counterexamples"][0]["path"].as_array().unwrap().len(), 4);
    let svg = render::svg(events, counterexample);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<circle").count(), 4 + 2 + 2 * 2, "system, two alone, two with a fork");
    for name in ["PHIL(0)", "FORK(1)", "pick.0.0"] {
        assert!(svg.contains(name), "{name}");
    }
}

/// Long before the first pair there are components, of which somebody who watches is told.
#[test]
fn whoever_watches_is_told_what_is_compiled() {
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let heard = told.clone();
    let options = CheckOptions {
        progress: Some(Arc::new(move |p: &Progress| heard.lock().expect("nobody panicked").push(p.clone()))),
        ..CheckOptions::default()
    };
    assert!(run(&mut scheduler(4), &options).holds);
    let told = told.lock().expect("nobody panicked");
    let first = told.first().expect("something is told");
    assert!(first.compiling && first.pairs == 1, "{first:?}");
    assert!(first.component.contains("TURN(0)"), "{first:?}");
    let searched: Vec<_> = told.iter().filter(|p| !p.compiling).collect();
    assert!(!searched.is_empty() && searched.iter().all(|p| p.component.is_empty()));
}
