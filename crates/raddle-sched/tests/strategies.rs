//! Strategies, each against what its paper says about it, on programs small enough to work the probabilities out. Everything
//! happens in this process, so there are as many runs as the probabilities want; all seeds are fixed.

mod machine;

use machine::model::{self, End};
use machine::{NOTES, Plan, path_of, run};
use raddle_sched::AnyStrategy;
use raddle_sched::strategy::LISTED;
use raddle_wire::region::strategy;
use std::collections::{BTreeMap, BTreeSet};

fn strategy(which: u32, parameters: [u64; 2]) -> AnyStrategy<'static> {
    let mut all = [0; 8];
    all[..2].copy_from_slice(&parameters);
    AnyStrategy::new(which, &all, &[], false)
}

fn runs(usual: u64) -> u64 {
    if cfg!(miri) { 3 } else { usual }
}

/// How often each end was seen.
fn explore(which: u32, parameters: [u64; 2], runs: u64, words: &[&str]) -> BTreeMap<End, u64> {
    let mut ends = BTreeMap::new();
    for seed in 1..=runs {
        let outcome = run(words, Plan::new(seed, strategy(which, parameters)));
        *ends.entry(outcome.end.expect("the program ends")).or_default() += 1;
    }
    ends
}

fn notes(which: u32, parameters: [u64; 2], runs: u64, words: &[&str]) -> BTreeMap<String, u64> {
    let mut notes = BTreeMap::new();
    for seed in 1..=runs {
        *notes.entry(run(words, Plan::new(seed, strategy(which, parameters))).note()).or_default() += 1;
    }
    notes
}

/// Is a count as likely as claimed? Five standard deviations are one in a million.
fn check_probability(what: &str, count: u64, runs: u64, probability: f64) {
    let (expected, n) = (probability * runs as f64, runs as f64);
    let deviation = (n * probability * (1.0 - probability)).sqrt();
    assert!(
        (count as f64 - expected).abs() <= 5.0 * deviation + 1.0,
        "{what}: {count} of {runs}, expected {expected:.1} +- {deviation:.1}"
    );
}

/// tsan11rec §4.3: every thread that can go is equally likely. The walk is worked out step by step, with creation, begin, end
/// and join of the threads as operations of their own.
#[test]
fn random_is_the_uniform_walk() {
    let runs = runs(20_000);
    let programs = [&["o", "o"][..], &["xxo", "o"], &["oo", "oo"], &["aA", "aA"], &["o", "o", "o"]];
    for words in programs.into_iter().take(if cfg!(miri) { 1 } else { 5 }) {
        let found = explore(strategy::RANDOM, [0; 2], runs, words);
        let expected = model::random_walk(words);
        for (end, probability) in &expected {
            let count = found.get(end).copied().unwrap_or(0);
            check_probability(&format!("{words:?} {end:?}"), count, runs, *probability);
        }
        assert!(found.keys().all(|end| expected.contains_key(end)), "{words:?}: {found:?}");
    }
}

/// One operation each, in order of creation: once all threads run, nobody takes two in a row.
#[test]
fn round_robin_takes_turns() {
    let notes = notes(strategy::ROUND_ROBIN, [0; 2], 3, &["oooooo", "oooooo", "oooooo"]);
    let all: Vec<&String> = notes.keys().collect();
    let [only] = all.as_slice() else { panic!("round robin has one schedule, not {all:?}") };
    let middle = &only[3..15];
    for at in 0..middle.len() - 1 {
        assert_ne!(middle.as_bytes()[at], middle.as_bytes()[at + 1], "{only}");
    }
    assert!(middle.contains("123") || middle.contains("132"), "{only}");
}

/// First come, first served: everybody gets to its end, slices are powers of two up to 512, and who waits is not overtaken for
/// longer than a slice.
#[test]
fn queue_serves_everybody() {
    let long = "o".repeat(if cfg!(miri) { 20 } else { 2000 });
    for seed in 1..=3 {
        let order = run(&[&long, &long, &long], Plan::new(seed, strategy(strategy::QUEUE, [0; 2]))).note();
        for thread in ["1", "2", "3"] {
            assert_eq!(order.matches(thread).count(), long.len(), "thread {thread}: {order}");
        }
    }
    let alone = AnyStrategy::new(strategy::QUEUE, &[0; 8], &[], true);
    let plan = Plan { one_at_a_time: true, ..Plan::new(1, alone) };
    assert_eq!(run(&["oo", "oo"], plan).note().len(), 4);
}

/// Burckhardt et al. (ASPLOS 2010), figures 1 to 3: an ordering error has depth 1, an atomicity violation and a deadlock of two
/// locks have depth 2. With n threads and k steps, an error of depth d is found with probability at least
/// 1 / (n k^(d - 1)), and one of depth 2 never without a change of priority.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn pct_keeps_its_guarantee() {
    let runs = 5000;
    let (n, k) = (3.0, 14.0);
    let at_least = |count: u64, probability: f64, what: &str| {
        let expected = runs as f64 * probability;
        assert!(count as f64 >= expected - 5.0 * expected.sqrt(), "{what}: {count} of {runs}");
    };
    let count = |notes: &BTreeMap<String, u64>, what: &str| notes.get(what).copied().unwrap_or(0);
    let found = notes(strategy::PCT, [1, 14], runs, &["o", "o"]);
    at_least(count(&found, "21"), 1.0 / n, "order, depth 1");
    let found = notes(strategy::PCT, [1, 14], runs, &["oo", "o"]);
    assert_eq!(count(&found, "121"), 0, "depth 2 needs a change of priority");
    let found = notes(strategy::PCT, [2, 14], runs, &["oo", "o"]);
    at_least(count(&found, "121"), 1.0 / (n * k), "atomicity, depth 2");
    let locks = ["lmvu", "mluv"];
    assert_eq!(count(&notes(strategy::PCT, [1, 20], runs, &locks), "deadlock"), 0);
    let found = notes(strategy::PCT, [2, 20], runs, &locks);
    at_least(count(&found, "deadlock"), 1.0 / (n * (k + 6.0)), "deadlock, depth 2");
    // Nothing known about the length, and more depth than there is room for.
    assert!(!notes(strategy::PCT, [1000, 0], 10, &locks).is_empty());
}

/// Yuan, Yang and Gu (CAV 2018), their motivating example: one thread has k unrelated operations before the one that races with
/// the other thread's first. A random walk lets it come first with a probability that halves with every further
/// operation; partial order sampling does it with about 1/(k + c) for a few operations c of beginning and creation.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn pos_does_not_mind_unrelated_operations() {
    let runs = 20_000;
    let words = ["o", "xxxxxxxxxxxxxxxo"];
    let of = |end: &End| matches!(end, End::Prints(text) if text.trim_end().ends_with(" 21"));
    let walk: f64 = model::random_walk(&words).iter().filter(|(end, _)| of(end)).map(|(_, p)| p).sum();
    let first = |which: u32| notes(which, [0; 2], runs, &words).get("21").copied().unwrap_or(0);
    check_probability("random walk", first(strategy::RANDOM), runs, walk);
    let pos = first(strategy::POS) as f64 / runs as f64;
    assert!(pos >= 1.0 / 24.0, "{pos}");
    assert!(pos >= 20.0 * walk, "{pos} against {walk}");
}

/// Zhao et al. (ASPLOS 2025), figure 1: with the numbers of operations known, all interleavings of them are equally likely.
/// The walk that chooses evenly among threads is far from that.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn surw_makes_interleavings_equally_likely() {
    let runs = 10_000;
    for words in [["ooo", "ooo"], ["o", "ooooo"], ["xxxxxxoo", "oo"]] {
        let of = |word: &str| word.matches('o').count() as u64;
        let counts = [of(words[0]), of(words[1])];
        // One object with three rows: main and its descendants, and each of the threads.
        let main = counts[0] + counts[1];
        let blob = [1, 3, NOTES as u64, 0, 3, path_of(0), main, path_of(1), counts[0], path_of(2), counts[1]];
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for seed in 1..=runs {
            let strategy = AnyStrategy::new(strategy::SURW, &[0; 8], &blob, false);
            *found.entry(run(&words, Plan::new(seed, strategy)).note()).or_default() += 1;
        }
        let plain: Vec<String> = words.iter().map(|word| word.replace('x', "")).collect();
        let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
        let orders = model::interleavings(&plain);
        assert_eq!(found.len(), orders.len(), "{words:?}: {found:?}");
        for (order, &count) in &found {
            check_probability(&format!("{words:?} {order}"), count, runs, 1.0 / orders.len() as f64);
        }
    }
    // Without counts, or with counts that cannot be, it is a walk like any other.
    for blob in [&[][..], &[1, u64::MAX, 5, 0, 3], &[1, 1, NOTES as u64, 7, 7, 1, 1]] {
        let strategy = AnyStrategy::new(strategy::SURW, &[0; 8], blob, false);
        assert_eq!(run(&["oo", "oo"], Plan::new(1, strategy)).note().len(), 4);
    }
}

/// Emmi, Qadeer and Rakamarić (POPL 2011): without delays there is one schedule, in which every thread runs to its end; every
/// delay adds at most one preemption, so d of them give at most the orders with d of them.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn delays_bound_preemptions() {
    let words = ["ooo", "ooo"];
    let none = notes(strategy::DELAY, [0, 20], 50, &words);
    assert_eq!(none.keys().collect::<Vec<_>>(), ["111222"]);
    for delays in [1, 2] {
        let found = notes(strategy::DELAY, [delays, 20], 2000, &words);
        assert!(found.len() > 1, "delays change something: {found:?}");
        for order in found.keys() {
            let changes = order.as_bytes().windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
            // The thread that was put off comes again: two changes a delay, and the one at the end of the first thread.
            assert!(changes <= 2 * delays + 1, "{order} with {delays} delays");
        }
    }
    let found = notes(strategy::DELAY, [1, 20], 2000, &["lmvu", "mluv"]);
    assert!(found.contains_key("deadlock"), "one delay closes the cycle: {found:?}");
    let without = notes(strategy::DELAY, [0, 20], 5, &["lmvu", "mluv"]);
    assert!(!without.contains_key("deadlock"), "{without:?}");
}

/// No preemption but where the list says so; a change that cannot be made is ignored.
#[test]
fn guided_changes_where_it_is_told() {
    let guided = |blob: &[u64]| {
        run(&["ooo", "ooo"], Plan::new(1, AnyStrategy::new(strategy::GUIDED, &[0; 8], blob, false))).note()
    };
    assert_eq!(guided(&[]), "111222");
    assert_eq!(guided(&[0]), "111222");
    // After the second operation of the first thread (its beginning and one letter) the second goes.
    assert_eq!(guided(&[1, path_of(1), 2, path_of(2)]), "122211");
    assert_eq!(guided(&[2, path_of(1), 2, path_of(2), path_of(2), 3, path_of(1)]), "122112");
    assert_eq!(guided(&[1, path_of(1), 2, 12345]), "111222", "nobody has this path");
    assert_eq!(guided(&[9, path_of(1), 2]), "111222", "half a change is none");
}

/// Wen et al. (ICSE 2022), with the deviations that `period.rs` names, against a twin that enumerates what is drawn: with one
/// period there is no preemption and the threads go by rank; with more, a thread's stretches end where its own cuts are.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn periods_have_the_probabilities_of_their_cuts() {
    let runs = 20_000;
    for words in [["o", "o"], ["oo", "o"], ["oxo", "oo"]] {
        for periods in [1, 2] {
            let steps = 14;
            let found = notes(strategy::PERIOD, [periods, steps], runs, &words);
            let expected = model::periodical(&words, periods as usize, steps);
            assert!((expected.values().sum::<f64>() - 1.0).abs() < 1e-9);
            for (order, &probability) in &expected {
                let count = found.get(order).copied().unwrap_or(0);
                check_probability(&format!("{words:?}, {periods}: {order}"), count, runs, probability);
            }
            assert!(found.keys().all(|order| expected.contains_key(order)), "{words:?}: {found:?}");
        }
    }
    // Worked out by hand: the second thread comes first where main's rank is not the last and the second's is before the first's and
    // the first's is not before main's: 2 of 6 orders of ranks.
    let second_first = model::periodical(&["o", "o"], 1, 14)["21"];
    assert!((second_first - 1.0 / 3.0).abs() < 1e-9, "{second_first}");
    assert!(!model::periodical(&["oo", "o"], 1, 14).contains_key("121"), "one period has no preemption");
}

/// Musuvathi and Qadeer (PLDI 2007): without preemptions a thread goes on until it ends or waits, and then any other goes; with at most c
/// of them no run has more, and each is as likely as a twin says that enumerates where the preemptions are and who goes.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn preemptions_are_bounded_and_anywhere() {
    let (runs, steps) = (20_000, 12);
    let number = LISTED.iter().find(|listed| listed.name == "preempt").expect("it is in the table").number;
    for words in [&["o", "o"][..], &["oo", "o"], &["oo", "oo"]] {
        for bound in 0..=2 {
            let found = notes(number, [bound, steps], runs, words);
            let expected = model::preempted(words, bound as usize, steps);
            assert!((expected.values().sum::<f64>() - 1.0).abs() < 1e-9);
            for (order, &probability) in &expected {
                let count = found.get(order).copied().unwrap_or(0);
                check_probability(&format!("{words:?}, {bound}: {order}"), count, runs, probability);
            }
            assert!(found.keys().all(|order| expected.contains_key(order)), "{words:?}: {found:?}");
        }
    }
    // Without a preemption main creates both and waits for the first; then either goes, to its end.
    let none = model::preempted(&["oo", "oo"], 0, steps);
    assert_eq!(none, BTreeMap::from([("1122".to_owned(), 0.5), ("2211".to_owned(), 0.5)]));
    let runs = 2000;
    let locks = ["lmvu", "mluv"];
    assert!(!notes(number, [0, 20], runs, &locks).contains_key("deadlock"), "that takes a preemption");
    assert!(notes(number, [1, 20], runs, &locks).contains_key("deadlock"), "and one is enough");
}

/// Wolff et al. (ASPLOS 2024): an abstract schedule is kept where a run can keep it. Every pair of a load and a store that some
/// order of the program shows is shown by every run that is asked for it, however rare it is otherwise; `pos` alone is what is left without
/// constraints.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn reads_see_what_abstract_schedules_say() {
    let pairs = |outcome: &machine::Outcome| outcome.reads.iter().copied().collect::<BTreeSet<_>>();
    for words in [&["aA", "aA"][..], &["xxxxa", "A"], &["ab", "xAxB", "xB"], &["a", "AAA"]] {
        let with = |seed: u64, blob: &[u64]| {
            let strategy = AnyStrategy::new(strategy::RFF, &[0; 8], blob, false);
            run(words, Plan::new(seed, strategy))
        };
        let mut feasible = BTreeSet::new();
        for seed in 0..runs(2000) {
            feasible.extend(pairs(&run(words, Plan::new(seed, AnyStrategy::RANDOM))));
            let pos = run(words, Plan::new(seed, strategy(strategy::POS, [0; 2])));
            assert_eq!(with(seed, &[]).turns, pos.turns, "no constraint changes nothing");
        }
        for &(load, store) in &feasible {
            let letter = words[(load >> 8) as usize - 1].as_bytes()[(load & 0xff) as usize - 2];
            let object = (machine::VARIABLES + usize::from(letter - b'a')) as u64;
            let (mut seen, mut unseen) = (0, 0);
            for seed in 0..runs(50) {
                let outcome = with(seed, &[1, load, object, store, 1]);
                seen += u64::from(pairs(&outcome).contains(&(load, store)));
                let outcome = with(seed, &[1, load, object, store, 0]);
                unseen += u64::from(!pairs(&outcome).contains(&(load, store)));
            }
            assert_eq!(seen, runs(50), "{words:?}: {load:x} sees {store:x}");
            // A read that has nothing else to see is let go once all others have ended.
            let others = feasible.iter().any(|pair| pair.0 == load && pair.1 != store);
            assert!(!others || unseen > 0, "{words:?}: {load:x} does not see {store:x}");
        }
    }
    // A lock is read by taking it: that a thread takes it first is a constraint. The second never does by itself so surely.
    let words = ["lou", "xxxxlou"];
    let lock = machine::pc_of(2, 6);
    let blob = [1, lock, machine::MUTEXES as u64, 0, 1];
    for seed in 0..runs(200) {
        let strategy = AnyStrategy::new(strategy::RFF, &[0; 8], &blob, false);
        assert_eq!(run(&words, Plan::new(seed, strategy)).note(), "21", "seed {seed}");
    }
    // Constraints that contradict each other hold everybody back, and then nobody.
    let load = machine::pc_of(1, 2);
    let object = machine::VARIABLES as u64;
    let blob = [2, load, object, 77, 1, load, object, 78, 1];
    let strategy = AnyStrategy::new(strategy::RFF, &[0; 8], &blob, false);
    assert!(run(&["aA", "aA"], Plan::new(1, strategy)).end.is_some());
}

/// The order in which threads arrive is a matter of time, and nothing depends on it: the same seed, the same run.
#[test]
fn arrival_does_not_matter() {
    let words = if cfg!(miri) { ["lau", "py", "s"] } else { ["laAmbBvupq", "mcvpyef", "oxosef"] };
    for which in [
        strategy::RANDOM,
        strategy::ROUND_ROBIN,
        strategy::PCT,
        strategy::DELAY,
        strategy::POS,
        strategy::SURW,
        strategy::GUIDED,
        strategy::FOLLOW,
        strategy::RFF,
        strategy::PERIOD,
    ] {
        for seed in 0..if cfg!(miri) { 1 } else { 200 } {
            for one_at_a_time in [false, true] {
                let with = |arrivals: u64| {
                    let strategy = AnyStrategy::new(which, &[2, 30, 0, 0, 0, 0, 0, 0], &[], one_at_a_time);
                    run(&words, Plan { arrivals, one_at_a_time, ..Plan::new(seed, strategy) })
                };
                let (one, other) = (with(1), with(2));
                assert_eq!((one.hash, &one.end), (other.hash, &other.end), "strategy {which}, seed {seed}");
            }
        }
    }
}
