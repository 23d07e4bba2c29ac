//! Algebraic laws of CSP on random processes, in all three models.
//!
//! Each law gives two terms that must refine each other. The laws are Hoare's and Roscoe's; where termination matters
//! they are the ones that hold with `✓` as a signal. `RADDLE_TEST_CASES=N` sets the number of instances of each law.

use raddle_csp::assertion::{Assertion, Property, SemanticModel};
use raddle_csp::engine::{CheckError, CheckOptions, Checker, describe};
use raddle_csp::process::{EventSetId, ProcId};
use raddle_csp::semantics::generate::Generator;

type Law = fn(&mut Generator, [ProcId; 3], [EventSetId; 2]) -> (ProcId, ProcId);

const LAWS: &[(&str, Law)] = &[
    ("P [] P = P", |g, [p, ..], _| (choice(g, p, p), p)),
    ("P |~| P = P", |g, [p, ..], _| {
        let twice = g.arena.intern(raddle_csp::process::Process::InternalChoice([p, p].into()));
        (twice, p)
    }),
    ("P [] STOP = P", |g, [p, ..], _| {
        let stop = g.arena.stop();
        (g.arena.intern(raddle_csp::process::Process::ExternalChoice([p, stop].into())), p)
    }),
    ("P [] Q = Q [] P", |g, [p, q, _], _| (choice(g, p, q), choice(g, q, p))),
    ("(P [] Q) [] R = P [] (Q [] R)", |g, [p, q, r], _| {
        let (pq, qr) = (choice(g, p, q), choice(g, q, r));
        (choice(g, pq, r), choice(g, p, qr))
    }),
    ("P [] (Q |~| R) = (P [] Q) |~| (P [] R)", |g, [p, q, r], _| {
        let qr = either(g, q, r);
        let (pq, pr) = (choice(g, p, q), choice(g, p, r));
        (choice(g, p, qr), either(g, pq, pr))
    }),
    ("P |~| (Q [] R) = (P |~| Q) [] (P |~| R)", |g, [p, q, r], _| {
        let qr = choice(g, q, r);
        let (pq, pr) = (either(g, p, q), either(g, p, r));
        (either(g, p, qr), choice(g, pq, pr))
    }),
    ("P [> Q = (P |~| STOP) [] Q", |g, [p, q, _], _| {
        let stop = g.arena.stop();
        let maybe = either(g, p, stop);
        (g.arena.sliding(p, q), choice(g, maybe, q))
    }),
    ("SKIP ; P = P", |g, [p, ..], _| {
        let skip = g.arena.skip();
        (g.arena.sequence(skip, p), p)
    }),
    ("P ; SKIP = P", |g, [p, ..], _| {
        let skip = g.arena.skip();
        (g.arena.sequence(p, skip), p)
    }),
    ("STOP ; P = STOP", |g, [p, ..], _| {
        let stop = g.arena.stop();
        (g.arena.sequence(stop, p), stop)
    }),
    ("(P ; Q) ; R = P ; (Q ; R)", |g, [p, q, r], _| {
        let (pq, qr) = (g.arena.sequence(p, q), g.arena.sequence(q, r));
        (g.arena.sequence(pq, r), g.arena.sequence(p, qr))
    }),
    ("(P |~| Q) ; R = (P ; R) |~| (Q ; R)", |g, [p, q, r], _| {
        let pq = either(g, p, q);
        let (pr, qr) = (g.arena.sequence(p, r), g.arena.sequence(q, r));
        (g.arena.sequence(pq, r), either(g, pr, qr))
    }),
    ("P [|A|] Q = Q [|A|] P", |g, [p, q, _], [a, _]| {
        (g.arena.parallel(vec![p, q], a), g.arena.parallel(vec![q, p], a))
    }),
    ("(P [|A|] Q) [|A|] R = P [|A|] (Q [|A|] R)", |g, [p, q, r], [a, _]| {
        let (pq, qr) = (g.arena.parallel(vec![p, q], a), g.arena.parallel(vec![q, r], a));
        (g.arena.parallel(vec![pq, r], a), g.arena.parallel(vec![p, qr], a))
    }),
    ("P [|A|] Q [|A|] R = P [|A|] (Q [|A|] R)", |g, [p, q, r], [a, _]| {
        let qr = g.arena.parallel(vec![q, r], a);
        (g.arena.parallel(vec![p, q, r], a), g.arena.parallel(vec![p, qr], a))
    }),
    ("P ||| SKIP = P", |g, [p, ..], _| {
        let skip = g.arena.skip();
        (g.arena.interleave(vec![p, skip]), p)
    }),
    ("P ||| (Q |~| R) = (P ||| Q) |~| (P ||| R)", |g, [p, q, r], _| {
        let qr = either(g, q, r);
        let (pq, pr) = (g.arena.interleave(vec![p, q]), g.arena.interleave(vec![p, r]));
        (g.arena.interleave(vec![p, qr]), either(g, pq, pr))
    }),
    ("P [Σ || Σ] Q = P [|Σ|] Q", |g, [p, q, _], _| {
        let all = g.arena.set_of(g.alphabet.events.clone());
        (g.arena.alphabetised(vec![(p, all), (q, all)]), g.arena.parallel(vec![p, q], all))
    }),
    ("(P \\ A) \\ B = P \\ (A ∪ B)", |g, [p, ..], [a, b]| {
        let both = g.arena.events_of(a).union(g.arena.events_of(b));
        let both = g.arena.set(both);
        let inner = g.arena.hide(p, a);
        (g.arena.hide(inner, b), g.arena.hide(p, both))
    }),
    ("(P |~| Q) \\ A = (P \\ A) |~| (Q \\ A)", |g, [p, q, _], [a, _]| {
        let pq = either(g, p, q);
        let (pa, qa) = (g.arena.hide(p, a), g.arena.hide(q, a));
        (g.arena.hide(pq, a), either(g, pa, qa))
    }),
    ("P |\\ A = P \\ (Σ - A)", |g, [p, ..], [a, _]| {
        let rest: Vec<_> =
            g.alphabet.events.iter().copied().filter(|&e| !g.arena.events_of(a).contains(e)).collect();
        let rest = g.arena.set_of(rest);
        (g.arena.project(p, a), g.arena.hide(p, rest))
    }),
    ("(a -> P) \\ {a} = P \\ {a}", |g, [p, ..], _| {
        let a = g.alphabet.events[0];
        let set = g.arena.set_of([a]);
        let prefixed = g.arena.prefix(a, p);
        (g.arena.hide(prefixed, set), g.arena.hide(p, set))
    }),
    ("P[[a <- b, b <- a]][[a <- b, b <- a]] = P", |g, [p, ..], _| {
        let (a, b) = (g.alphabet.events[0], g.alphabet.events[1]);
        let swap = g.arena.renaming([(a, b), (b, a)]);
        let once = g.arena.rename(p, swap);
        (g.arena.rename(once, swap), p)
    }),
    ("(P |~| Q)[[a <- b]] = P[[a <- b]] |~| Q[[a <- b]]", |g, [p, q, _], _| {
        let merge = g.arena.renaming([(g.alphabet.events[0], g.alphabet.events[1])]);
        let pq = either(g, p, q);
        let (pr, qr) = (g.arena.rename(p, merge), g.arena.rename(q, merge));
        (g.arena.rename(pq, merge), either(g, pr, qr))
    }),
    ("P /\\ STOP = P", |g, [p, ..], _| {
        let stop = g.arena.stop();
        (g.arena.interrupt(p, stop), p)
    }),
    ("STOP /\\ P = P", |g, [p, ..], _| {
        let stop = g.arena.stop();
        (g.arena.interrupt(stop, p), p)
    }),
    ("(P /\\ Q) /\\ R = P /\\ (Q /\\ R)", |g, [p, q, r], _| {
        let (pq, qr) = (g.arena.interrupt(p, q), g.arena.interrupt(q, r));
        (g.arena.interrupt(pq, r), g.arena.interrupt(p, qr))
    }),
    ("P [|{}|> Q = P", |g, [p, q, _], _| {
        let none = g.arena.set_of([]);
        (g.arena.exception(p, none, q), p)
    }),
    ("P [|A|> STOP = P [|A|> STOP [] STOP", |g, [p, ..], [a, _]| {
        let stop = g.arena.stop();
        let thrown = g.arena.exception(p, a, stop);
        (thrown, g.arena.intern(raddle_csp::process::Process::ExternalChoice([thrown, stop].into())))
    }),
    ("P [+{}+] Q = P [] Q", |g, [p, q, _], _| {
        let none = g.arena.set_of([]);
        (g.arena.sync_choice(p, none, q), choice(g, p, q))
    }),
    ("P /+{}+\\ Q = P /\\ Q", |g, [p, q, _], _| {
        let none = g.arena.set_of([]);
        (g.arena.sync_interrupt(p, none, q), g.arena.interrupt(p, q))
    }),
    ("P [{} links] Q = P ||| Q", |g, [p, q, _], _| {
        (g.arena.linked(p, [], q), g.arena.interleave(vec![p, q]))
    }),
    ("P [a <-> b] Q by renaming, sharing and hiding", |g, [p, q, _], _| {
        // Link through an event of its own: P[[a <- x]] [|{x}|] Q[[b <- x]] \ {x}.
        let (a, b) = (g.alphabet.events[0], g.alphabet.events[1]);
        let x = g.arena.events.plain("x");
        let (left, right) = (g.arena.renaming([(a, x)]), g.arena.renaming([(b, x)]));
        let set = g.arena.set_of([x]);
        let (l, r) = (g.arena.rename(p, left), g.arena.rename(q, right));
        let joined = g.arena.parallel(vec![l, r], set);
        (g.arena.linked(p, [(a, b)], q), g.arena.hide(joined, set))
    }),
    ("P [|Σ|] STOP allows only what P does by itself", |g, [p, ..], _| {
        // Nothing visible can happen, and STOP never terminates: what is left is STOP, or divergence at once.
        let (stop, all) = (g.arena.stop(), g.arena.set_of(g.alphabet.events.clone()));
        let blocked = g.arena.parallel(vec![p, stop], all);
        let twice = g.arena.parallel(vec![blocked, stop], all);
        (blocked, twice)
    }),
];

fn choice(g: &mut Generator, p: ProcId, q: ProcId) -> ProcId {
    g.arena.external_choice(vec![p, q])
}

fn either(g: &mut Generator, p: ProcId, q: ProcId) -> ProcId {
    g.arena.internal_choice(vec![p, q])
}

#[test]
fn laws_hold() {
    let cases: u64 = std::env::var("RADDLE_TEST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(60);
    let options = CheckOptions { leaf_states_max: 3000, ..CheckOptions::default() };
    for (number, (law, build)) in LAWS.iter().enumerate() {
        let mut decided = 0;
        for seed in 0..cases {
            let mut g = Generator::new(seed * 100 + number as u64, 2);
            let processes = [g.process(2), g.process(2), g.process(2)];
            let sets = [g.set(), g.set()];
            let (left, right) = build(&mut g, processes, sets);
            let names = (describe::term(&g.arena, left), describe::term(&g.arena, right));
            let mut checker = Checker::new(&mut g.arena, &mut g.equations, options.clone());
            for model in [SemanticModel::Traces, SemanticModel::Failures, SemanticModel::FailuresDivergences]
            {
                for (spec, implementation) in [(left, right), (right, left)] {
                    let assertion = Assertion::new(Property::Refines { model, spec, implementation });
                    match checker.check(&assertion) {
                        Ok(outcome) => {
                            assert!(
                                outcome.holds,
                                "{law}, seed {seed}, {}: {names:?}: {outcome:?}",
                                model.name()
                            );
                            decided += 1;
                        }
                        Err(CheckError::TooManyStates { .. }) => {}
                        Err(error) => panic!("{law}, seed {seed}: {error}"),
                    }
                }
            }
        }
        assert!(decided >= cases, "{law}: too few instances were small enough");
    }
}
