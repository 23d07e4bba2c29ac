//! The engine against the semantics by definition, on random small processes.
//!
//! For every operator in turn: the clauses of the denotational semantics, the firing rules followed path by path, and
//! the compiled machine must give the same traces, stable failures and divergences up to the bound; and each verdict of
//! the engine, with the length of its counterexample, must be what those say. `RADDLE_TEST_CASES=N` sets the number of
//! processes for each operator; a failure prints the seed, and `RADDLE_TEST_SEED=S RADDLE_TEST_CASES=1` repeats it.

use raddle_csp::assertion::{Assertion, PartialOrder, Property, SemanticModel};
use raddle_csp::engine::firing::Firing;
use raddle_csp::engine::{Behaviour, CheckError, CheckOptions, Checker, Outcome, describe};
use raddle_csp::process::{EventId, ProcId};
use raddle_csp::semantics::clauses::denote;
use raddle_csp::semantics::denotation::Denotation;
use raddle_csp::semantics::generate::{Generator, Shape};
use raddle_csp::semantics::observe::observe;
use raddle_csp::semantics::refusal_tests::{RefusalTests, refusal_tests};

const LENGTH: usize = 4;
const DEPTH: usize = 3;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Runs `case` with many seeds for each shape.
fn for_each_shape(default: u64, case: impl Fn(&mut Generator, Shape, &str)) {
    let (cases, seed) = (number("RADDLE_TEST_CASES", default), number("RADDLE_TEST_SEED", 0));
    for shape in Shape::ALL {
        for i in 0..cases {
            let seed = seed + i;
            let events = if seed % 8 == 7 { 3 } else { 2 };
            let mut generator = Generator::new(seed.wrapping_mul(1000) + shape as u64, events);
            case(&mut generator, shape, &format!("{shape:?}, RADDLE_TEST_SEED={seed}"));
        }
    }
}

/// Some terms have infinitely many states or explode; those are no cases.
fn too_large(error: &CheckError) -> bool {
    matches!(error, CheckError::TooManyStates { .. })
}

fn options() -> CheckOptions {
    CheckOptions { leaf_states_max: 3000, ..CheckOptions::default() }
}

/// What the firing rules say.
fn by_firing(g: &mut Generator, p: ProcId) -> Option<Denotation> {
    let events = g.alphabet.events.clone();
    let mut firing = Firing::new(&mut g.arena, &mut g.equations);
    raddle_csp::engine::machine::Machine::of_term(&mut firing, p, 3000).ok()?;
    Some(observe(&mut firing, p, &events, LENGTH).expect("random terms are guarded"))
}

fn same(a: &Denotation, b: &Denotation) -> bool {
    a.traces == b.traces && a.ticks == b.ticks && a.failures == b.failures && a.divergences == b.divergences
}

#[test]
fn clauses_firing_rules_and_machines_agree() {
    for_each_shape(250, |g, shape, case| {
        let p = g.shaped(shape, DEPTH);
        let Some(fired) = by_firing(g, p) else { return };
        let name = describe::term(&g.arena, p);
        if let Some(meant) = denote(&mut g.arena, &mut g.equations, p, &g.alphabet, LENGTH) {
            assert!(same(&meant, &fired), "{case}: {name}\nclauses {meant:?}\nfiring {fired:?}");
        }
        let events = g.alphabet.events.clone();
        let mut checker = Checker::new(&mut g.arena, &mut g.equations, options());
        for reduce in [false, true] {
            let mut machine = match checker.machine(p, reduce) {
                Ok(machine) => machine,
                Err(error) if too_large(&error) => return,
                Err(error) => panic!("{case}: {name}: {error}"),
            };
            let compiled = observe(&mut machine, 0, &events, LENGTH).expect("machines have all transitions");
            assert!(same(&compiled, &fired), "{case}: {name}\ncompiled {compiled:?}\nfiring {fired:?}");
        }
    });
}

fn check(g: &mut Generator, assertion: &Assertion, options: CheckOptions) -> Option<Outcome> {
    match Checker::new(&mut g.arena, &mut g.equations, options).check(assertion) {
        Ok(outcome) => Some(outcome),
        Err(error) if too_large(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Length of the behaviour that a failed check shows.
fn shown(outcome: &Outcome) -> Option<usize> {
    let counterexample = outcome.counterexamples.first()?;
    let forbidden = matches!(counterexample.behaviour, Behaviour::Event { .. } | Behaviour::Revival { .. });
    Some(counterexample.trace.len() + usize::from(forbidden))
}

/// The verdict must be the expected one as far as the bound can tell, and the counterexample as short as possible. A
/// forbidden `✓` may count as the event or as the refusal of everything else that it implies.
fn agrees(outcome: &Outcome, expected: Option<usize>, bound: usize) -> bool {
    let got = shown(outcome);
    assert_eq!(outcome.holds, got.is_none(), "a failure shows why");
    let signal = outcome
        .counterexamples
        .first()
        .filter(|c| matches!(c.behaviour, Behaviour::Event { event: EventId::TICK, .. }))
        .map(|c| c.trace.len());
    match (got, expected) {
        (got, Some(length)) => got == Some(length) || signal == Some(length),
        (Some(length), None) => length > bound,
        (None, None) => true,
    }
}

const MODELS: [SemanticModel; 3] =
    [SemanticModel::Traces, SemanticModel::Failures, SemanticModel::FailuresDivergences];

fn violation(model: SemanticModel, spec: &Denotation, implementation: &Denotation) -> Option<usize> {
    match model {
        SemanticModel::Traces => spec.trace_violation(implementation),
        SemanticModel::Failures => spec.failure_violation(implementation),
        SemanticModel::FailuresDivergences => spec.divergence_violation(implementation),
        other => unreachable!("{} has a twin of its own", other.name()),
    }
}

#[test]
fn refinement_is_what_the_definitions_say() {
    for_each_shape(120, |g, shape, case| {
        let implementation = g.shaped(shape, DEPTH);
        let other = g.process(DEPTH);
        // Random pairs seldom refine each other; with the implementation as one alternative they do.
        let spec = match g.random.below(3) {
            0 => other,
            1 => g.arena.internal_choice(vec![implementation, other]),
            _ => g.arena.external_choice(vec![implementation, other]),
        };
        let (Some(s), Some(i)) = (by_firing(g, spec), by_firing(g, implementation)) else { return };
        for model in MODELS {
            for (spec, implementation, s, i) in
                [(spec, implementation, &s, &i), (implementation, spec, &i, &s)]
            {
                let property = Property::Refines { model, spec, implementation };
                let expected = violation(model, s, i);
                let plain = Assertion::new(property);
                let Some(outcome) = check(g, &plain, options()) else { return };
                let names = (describe::term(&g.arena, spec), describe::term(&g.arena, implementation));
                assert!(
                    agrees(&outcome, expected, LENGTH),
                    "{case}: {} [{}= {}: expected {expected:?}, got {outcome:?}",
                    names.0,
                    model.name(),
                    names.1
                );
                for partial_order in [PartialOrder::Fast, PartialOrder::Precise, PartialOrder::Hybrid] {
                    let reduced = Assertion { partial_order, ..plain.clone() };
                    let Some(with) = check(g, &reduced, options()) else { return };
                    assert_eq!(
                        with.holds,
                        outcome.holds,
                        "{case}: {partial_order:?} {names:?} {}",
                        model.name()
                    );
                }
            }
        }
    });
}

#[test]
fn deadlock_divergence_and_determinism_are_what_the_definitions_say() {
    for_each_shape(150, |g, shape, case| {
        let process = g.shaped(shape, DEPTH);
        let Some(d) = by_firing(g, process) else { return };
        let name = describe::term(&g.arena, process);
        let (f, fd) = (SemanticModel::Failures, SemanticModel::FailuresDivergences);
        let either = [d.deadlock(), d.divergence()].into_iter().flatten().min();
        let claims = [
            (Property::DeadlockFree { model: f, process }, d.deadlock(), LENGTH),
            (Property::DeadlockFree { model: fd, process }, either, LENGTH),
            (Property::DivergenceFree { process }, d.divergence(), LENGTH),
            (Property::Deterministic { model: f, process }, d.nondeterminism(false), LENGTH - 1),
            (Property::Deterministic { model: fd, process }, d.nondeterminism(true), LENGTH - 1),
        ];
        for (property, expected, bound) in claims {
            let plain = Assertion::new(property.clone());
            let Some(outcome) = check(g, &plain, options()) else { return };
            assert!(
                agrees(&outcome, expected, bound),
                "{case}: {name}: {property:?}: expected {expected:?}, got {outcome:?}"
            );
            let reduced = Assertion { partial_order: PartialOrder::Precise, ..plain.clone() };
            let Some(with) = check(g, &reduced, options()) else { return };
            assert_eq!(with.holds, outcome.holds, "{case}: {name}: {property:?} reduced");
            let negated = Assertion { negated: true, ..plain };
            let Some(not) = check(g, &negated, options()) else { return };
            assert_ne!(not.holds, outcome.holds, "{case}: {name}: not {property:?}");
        }
    });
}

#[test]
fn traces_are_had_when_the_definitions_say() {
    for_each_shape(60, |g, shape, case| {
        let process = g.shaped(shape, DEPTH);
        let Some(d) = by_firing(g, process) else { return };
        for (n, trace) in d.space.all().filter(|(_, t)| t.len() <= 2) {
            let trace: Vec<_> = trace.iter().map(|&e| g.alphabet.events[e as usize]).collect();
            let assertion = Assertion::new(Property::HasTrace {
                model: SemanticModel::Traces,
                process,
                trace: trace.clone(),
            });
            let Some(outcome) = check(g, &assertion, options()) else { return };
            assert_eq!(outcome.holds, d.traces[n], "{case}: {trace:?}");
            let ended = [&trace[..], &[EventId::TICK]].concat();
            let assertion =
                Assertion::new(Property::HasTrace { model: SemanticModel::Traces, process, trace: ended });
            let Some(outcome) = check(g, &assertion, options()) else { return };
            assert_eq!(outcome.holds, d.ticks[n], "{case}: {trace:?} and ✓");
        }
    });
}

/// Revivals and refusal testing, without and with divergences, against all behaviours followed path by path.
#[test]
fn refusals_on_the_way_are_what_the_definitions_say() {
    const LENGTH: usize = 3;
    let tests = |g: &mut Generator, p: ProcId| -> Option<RefusalTests> {
        let events = g.alphabet.events.clone();
        let mut firing = Firing::new(&mut g.arena, &mut g.equations);
        raddle_csp::engine::machine::Machine::of_term(&mut firing, p, 300).ok()?;
        Some(refusal_tests(&mut firing, p, &events, LENGTH).expect("random terms are guarded"))
    };
    for_each_shape(60, |g, shape, case| {
        let implementation = g.shaped(shape, DEPTH);
        let other = g.process(DEPTH);
        let spec = match g.random.below(3) {
            0 => other,
            1 => g.arena.internal_choice(vec![implementation, other]),
            _ => g.arena.external_choice(vec![implementation, other]),
        };
        let (Some(s), Some(i)) = (tests(g, spec), tests(g, implementation)) else { return };
        for (spec, implementation, s, i) in [(spec, implementation, &s, &i), (implementation, spec, &i, &s)] {
            for (model, revivals, strict) in [
                (SemanticModel::Revivals, true, false),
                (SemanticModel::RevivalsDivergences, true, true),
                (SemanticModel::Refusals, false, false),
                (SemanticModel::RefusalsDivergences, false, true),
            ] {
                let expected = s.violation(i, revivals, strict);
                let plain = Assertion::new(Property::Refines { model, spec, implementation });
                for partial_order in [PartialOrder::Off, PartialOrder::Precise] {
                    let assertion = Assertion { partial_order, ..plain.clone() };
                    let mut checker = Checker::new(&mut g.arena, &mut g.equations, options());
                    let outcome = match checker.check(&assertion) {
                        Ok(outcome) => outcome,
                        // Some compressions do not keep these models.
                        Err(CheckError::Unsupported(_)) => return,
                        Err(error) if too_large(&error) => return,
                        Err(error) => panic!("{error}"),
                    };
                    let (spec, implementation) =
                        (describe::term(&g.arena, spec), describe::term(&g.arena, implementation));
                    assert!(
                        agrees(&outcome, expected, LENGTH),
                        "{case}: {spec} [{}= {implementation}: expected {expected:?}, got {outcome:?}",
                        model.name(),
                    );
                }
            }
        }
    });
}

/// `prioritise` at the top (a wrapper) and below another operator (an explicit leaf) against the firing rules.
#[test]
fn prioritise_compiles_to_what_it_fires() {
    for_each_shape(80, |g, shape, case| {
        g.compressions = false;
        let p = g.shaped(shape, DEPTH);
        let order = vec![g.set(), g.set()];
        let prioritised = g.arena.prioritise(p, order);
        let set = g.set();
        let hidden = g.arena.hide(prioritised, set);
        let other = g.process(1);
        let below = g.arena.parallel(vec![prioritised, other], set);
        for process in [prioritised, hidden, below] {
            let Some(fired) = by_firing(g, process) else { continue };
            let name = describe::term(&g.arena, process);
            let events = g.alphabet.events.clone();
            let mut checker = Checker::new(&mut g.arena, &mut g.equations, options());
            let Ok(mut machine) = checker.machine(process, false) else { continue };
            let compiled = observe(&mut machine, 0, &events, LENGTH).expect("machines have all transitions");
            assert!(same(&compiled, &fired), "{case}: {name}\ncompiled {compiled:?}\nfiring {fired:?}");
        }
    });
}

/// `chase` only removes behaviour, and nothing from a deterministic process.
#[test]
fn chase_keeps_deterministic_processes() {
    for_each_shape(80, |g, shape, case| {
        let p = g.shaped(shape, DEPTH);
        let chased = g.arena.chase(p);
        let fd = SemanticModel::FailuresDivergences;
        let Some(deterministic) =
            check(g, &Assertion::new(Property::Deterministic { model: fd, process: p }), options())
        else {
            return;
        };
        let traces = Property::Refines { model: SemanticModel::Traces, spec: p, implementation: chased };
        let Some(outcome) = check(g, &Assertion::new(traces), options()) else { return };
        assert!(outcome.holds, "{case}: chase adds a trace to {}", describe::term(&g.arena, p));
        if deterministic.holds {
            let same = Property::Refines { model: fd, spec: chased, implementation: p };
            let Some(outcome) = check(g, &Assertion::new(same), options()) else { return };
            assert!(outcome.holds, "{case}: chase changes the deterministic {}", describe::term(&g.arena, p));
        }
    });
}

/// `prioritisepo` with a random order, compiled as a wrapper and as a leaf, against the firing rules; and with the order
/// that a list of sets stands for, against `prioritise`.
#[test]
fn priority_by_a_partial_order_is_what_it_fires_and_generalises_sets() {
    for_each_shape(60, |g, shape, case| {
        g.compressions = false;
        let p = g.shaped(shape, DEPTH);
        let events = g.alphabet.events.clone();
        // Pairs point from earlier to later events, `τ` and `✓` are above the later ones: closed, and without a loop.
        let cut = events.len() / 2;
        let mut above: Vec<(EventId, EventId)> = Vec::new();
        for (i, &low) in events.iter().enumerate().skip(cut) {
            above.extend([(EventId::TAU, low), (EventId::TICK, low)]);
            let highs = events[..cut].iter().enumerate().filter(|(j, _)| (i + j + case.len()) % 2 == 0);
            above.extend(highs.map(|(_, &high)| (high, low)));
        }
        let ordered = g.arena.prioritise_order(p, above);
        let set = g.set();
        let hidden = g.arena.hide(ordered, set);
        let other = g.process(1);
        let below = g.arena.parallel(vec![ordered, other], set);

        let (first, second) = (g.set(), g.set());
        let of = |g: &Generator, set| -> Vec<EventId> {
            events.iter().copied().filter(|&e| g.arena.events_of(set).contains(e)).collect()
        };
        let (high, low) = (of(g, first), of(g, second));
        let low: Vec<EventId> = low.into_iter().filter(|e| !high.contains(e)).collect();
        let pairs = low.iter().flat_map(|&l| {
            let first = [EventId::TAU, EventId::TICK].into_iter().chain(high.iter().copied());
            first.map(move |h| (h, l))
        });
        let pairs: Vec<_> = pairs.collect();
        let by_order = g.arena.prioritise_order(p, pairs);
        let by_sets = g.arena.prioritise(p, vec![first, second]);

        for (process, twin) in [(ordered, ordered), (hidden, hidden), (below, below), (by_order, by_sets)] {
            let Some(fired) = by_firing(g, twin) else { continue };
            let name = describe::term(&g.arena, process);
            let mut checker = Checker::new(&mut g.arena, &mut g.equations, options());
            let Ok(mut machine) = checker.machine(process, false) else { continue };
            let compiled = observe(&mut machine, 0, &events, LENGTH).expect("machines have all transitions");
            assert!(same(&compiled, &fired), "{case}: {name}\ncompiled {compiled:?}\nfiring {fired:?}");
        }
    });
}

/// `deter(P)` is deterministic and refines `P` unless `P` diverges; a deterministic `P` is not changed.
#[test]
fn deter_gives_a_deterministic_refinement() {
    for_each_shape(60, |g, shape, case| {
        let p = g.shaped(shape, DEPTH);
        let fd = SemanticModel::FailuresDivergences;
        let free = Assertion::new(Property::DivergenceFree { process: p });
        if !check(g, &free, options()).is_some_and(|o| o.holds) {
            return;
        }
        let determined = g.arena.determinise(p);
        let name = describe::term(&g.arena, p);
        let mut holds = |property| check(g, &Assertion::new(property), options()).is_none_or(|o| o.holds);
        let refines = Property::Refines { model: fd, spec: p, implementation: determined };
        assert!(holds(refines), "{case}: deter adds behaviour to {name}");
        let deterministic = |process| Property::Deterministic { model: fd, process };
        assert!(holds(deterministic(determined)), "{case}: deter leaves a choice in {name}");
        if holds(deterministic(p)) {
            let same = Property::Refines { model: fd, spec: determined, implementation: p };
            assert!(holds(same), "{case}: deter changes the deterministic {name}");
        }
    });
}

/// Parallel operators whose operands terminate together, as in timed sections, alone and below other operators, against
/// the firing rules. There are no clauses for them: `SKIP [] a -> P` and `(a -> P) [> SKIP` have the same failures, and
/// only the second may withdraw `a` before its partner is ready.
#[test]
fn joint_termination_compiles_to_what_it_fires() {
    for_each_shape(80, |g, shape, case| {
        g.compressions = false;
        let (p, q, r) = (g.shaped(shape, DEPTH - 1), g.process(DEPTH - 1), g.process(1));
        let skip = g.arena.skip();
        let ending = g.arena.external_choice(vec![p, skip]);
        let (set, other) = (g.set(), g.set());
        let joint = g.arena.with_tick(set);
        let all = g.arena.with_tick(other);
        let parallel = g.arena.parallel(vec![ending, q], joint);
        let alphabetised = g.arena.alphabetised(vec![(ending, joint), (q, all)]);
        let nested = g.arena.parallel(vec![parallel, r], all);
        let outer = g.arena.parallel(vec![parallel, r], other);
        let inner = g.arena.interleave(vec![ending, q]);
        let inner = g.arena.parallel(vec![inner, r], joint);
        let then = g.arena.sequence(parallel, r);
        let hidden = g.arena.hide(parallel, other);
        for process in [parallel, alphabetised, nested, outer, inner, then, hidden] {
            let Some(fired) = by_firing(g, process) else { continue };
            let name = describe::term(&g.arena, process);
            let events = g.alphabet.events.clone();
            let mut checker = Checker::new(&mut g.arena, &mut g.equations, options());
            let Ok(mut machine) = checker.machine(process, false) else { continue };
            let compiled = observe(&mut machine, 0, &events, LENGTH).expect("machines have all transitions");
            assert!(same(&compiled, &fired), "{case}: {name}\ncompiled {compiled:?}\nfiring {fired:?}");
            let property = Property::DeadlockFree { model: SemanticModel::Failures, process };
            for partial_order in [PartialOrder::Off, PartialOrder::Precise] {
                let assertion = Assertion { partial_order, ..Assertion::new(property.clone()) };
                let Some(outcome) = check(g, &assertion, options()) else { continue };
                if fired.deadlock().is_some() {
                    assert!(!outcome.holds, "{case}: {name}: {partial_order:?}");
                }
            }
        }
    });
}

/// Internal choices over compositions of the same shape, whose branches share leaves, against the firing rules.
#[test]
fn choices_over_parallel_systems_compile_to_what_they_fire() {
    for_each_shape(40, |g, shape, case| {
        let set = g.set();
        let hidden = g.set();
        let mut branches = Vec::new();
        for i in 0..3 {
            let p = if i == 0 { g.shaped(shape, DEPTH - 1) } else { g.process(DEPTH - 1) };
            let q = g.process(DEPTH - 1);
            let both = g.arena.parallel(vec![p, q], set);
            branches.push(g.arena.hide(both, hidden));
        }
        let choice = g.arena.internal_choice(branches.clone());
        let other = g.process(1);
        let more = g.arena.interleave(vec![other, branches[0]]);
        let mixed = g.arena.internal_choice(vec![branches[0], branches[1], more, other]);
        let then = g.arena.sequence(choice, other);
        let beside = g.arena.parallel(vec![choice, other], set);
        // A choice below the branches of another one.
        let inner: Vec<ProcId> =
            branches[1..].iter().map(|&b| g.arena.parallel(vec![choice, b], hidden)).collect();
        let nested = g.arena.internal_choice(inner);
        for process in [choice, mixed, then, beside, nested] {
            let Some(fired) = by_firing(g, process) else { continue };
            let name = describe::term(&g.arena, process);
            let events = g.alphabet.events.clone();
            let mut checker = Checker::new(&mut g.arena, &mut g.equations, options());
            let Ok(mut machine) = checker.machine(process, false) else { continue };
            let compiled = observe(&mut machine, 0, &events, LENGTH).expect("machines have all transitions");
            assert!(same(&compiled, &fired), "{case}: {name}\ncompiled {compiled:?}\nfiring {fired:?}");
            let fd = SemanticModel::FailuresDivergences;
            for partial_order in [PartialOrder::Off, PartialOrder::Precise] {
                let property = Property::DeadlockFree { model: fd, process };
                let assertion = Assertion { partial_order, ..Assertion::new(property) };
                let Some(outcome) = check(g, &assertion, options()) else { continue };
                if fired.deadlock().is_some() || fired.divergence().is_some() {
                    assert!(!outcome.holds, "{case}: {name}: {partial_order:?}");
                }
            }
        }
    });
}
