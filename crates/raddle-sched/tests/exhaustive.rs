//! Complete searches by `follow`, on programs small enough to enumerate: every order of turns is reached and no other, sleeping threads sleep as
//! long as Godefroid's sleep sets say, one run a Mazurkiewicz trace is enough for all outcomes, and loops that wait neither hide one
//! nor go on for ever.

mod machine;

use machine::model::{self, End};
use machine::{Outcome, Plan, path_of, run};
use raddle_sched::dependence::{Operation, SPINS, dependent};
use raddle_sched::{AnyStrategy, Conclusion, Random};
use raddle_wire::region::strategy;
use std::collections::BTreeSet;

type Sleeper = (usize, Operation);

/// The run in which these threads take the first turns, and sleepers are left alone after them.
fn along(words: &[&str], prefix: &[usize], asleep: &[Sleeper]) -> Outcome {
    let mut blob = vec![prefix.len() as u64, prefix.len() as u64, asleep.len() as u64];
    blob.extend(prefix.iter().map(|&thread| path_of(thread)));
    for (thread, operation) in asleep {
        blob.push(path_of(*thread));
        blob.extend(operation.pack());
    }
    let follow = AnyStrategy::new(strategy::FOLLOW, &[0; 8], &blob, false);
    // No seed and no order of arrival has a say.
    run(words, Plan { arrivals: prefix.len() as u64, ..Plan::new(prefix.len() as u64 + 1, follow) })
}

/// The run along a prefix, if it can be followed.
fn feasible(words: &[&str], prefix: &[usize]) -> Option<Outcome> {
    let outcome = along(words, prefix, &[]);
    outcome.order().starts_with(prefix).then_some(outcome)
}

/// Who can take the next turn after a prefix, and what it is.
fn enabled(words: &[&str], prefix: &[usize]) -> Vec<Sleeper> {
    let next = |thread: usize| {
        let outcome = feasible(words, &[prefix, &[thread]].concat())?;
        Some((thread, outcome.operations[prefix.len()]))
    };
    (0..=words.len()).filter_map(next).collect()
}

/// Every run, by trying every thread at every turn.
fn all_runs(words: &[&str]) -> Vec<Outcome> {
    let mut todo = vec![(0, feasible(words, &[]).expect("nothing is easy to follow"))];
    let mut all = Vec::new();
    while let Some((from, outcome)) = todo.pop() {
        let order = outcome.order();
        for at in from..order.len() {
            for other in (0..=words.len()).filter(|&other| other != order[at]) {
                let branch = feasible(words, &[&order[..at], &[other]].concat());
                todo.extend(branch.map(|branch| (at + 1, branch)));
            }
        }
        all.push(outcome);
    }
    all
}

/// Which of two dependent operations comes first, for all of them: what runs of one trace have in common. Operations are named by
/// their thread and their number in it.
fn trace_of(outcome: &Outcome) -> BTreeSet<[(u16, u32); 2]> {
    let mut pairs = BTreeSet::new();
    let name = |at: usize| (outcome.turns[at].thread, outcome.turns[at].ordinal);
    for later in 0..outcome.turns.len() {
        for earlier in 0..later {
            let same_thread = name(earlier).0 == name(later).0;
            if same_thread || dependent(&outcome.operations[earlier], &outcome.operations[later]) {
                pairs.insert([name(earlier), name(later)]);
            }
        }
    }
    pairs
}

/// Godefroid's search with sleep sets, word by word: after a thread's turn was tried, it sleeps in what is tried next, until
/// something dependent happens.
fn with_sleep_sets(words: &[&str], prefix: &[usize], mut asleep: Vec<Sleeper>, into: &mut Vec<Outcome>) {
    let enabled = enabled(words, prefix);
    // Where all who can go turn in loops that nobody ends, one round is like another.
    if enabled.iter().all(|(_, operation)| operation.has(SPINS)) {
        let outcome = feasible(words, prefix).expect("it was followed before");
        if enabled.is_empty() || outcome.conclusion == Some(Conclusion::Stuck) {
            return into.push(outcome);
        }
    }
    for &(thread, operation) in &enabled {
        if asleep.iter().any(|sleeper| sleeper.0 == thread) {
            continue;
        }
        let still = asleep.iter().filter(|sleeper| !dependent(&sleeper.1, &operation)).copied().collect();
        with_sleep_sets(words, &[prefix, &[thread]].concat(), still, into);
        asleep.push((thread, operation));
    }
}

fn ends(outcomes: &[Outcome]) -> BTreeSet<End> {
    outcomes.iter().map(|outcome| outcome.end.clone().expect("a search has ends")).collect()
}

/// Programs with at most some thousand orders.
const SMALL: &[&[&str]] = &[
    &["o", "o"],
    &["aA", "a"],
    &["lu", "lu"],
    &["pq", "s"],
    &["py", "s"],
    &["ef", "ef"],
    &["lmvu", "ml"],
    &["pq"],
    &["", "", ""],
];

/// Prefixes lead to every order of turns that enumeration finds, and to no other.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn prefixes_reach_all_orders() {
    for words in SMALL {
        let runs = all_runs(words);
        let orders: BTreeSet<Vec<usize>> = runs.iter().map(Outcome::order).collect();
        assert_eq!(orders.len(), runs.len(), "{words:?}: an order twice");
        assert_eq!(orders, model::orders(words), "{words:?}");
        assert_eq!(ends(&runs), model::outcomes(words), "{words:?}");
    }
}

/// One run of each trace, no more and no fewer, and all outcomes among them.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn sleep_sets_leave_one_run_a_trace() {
    for words in SMALL {
        let all = all_runs(words);
        let traces: BTreeSet<_> = all.iter().map(trace_of).collect();
        let mut found = Vec::new();
        with_sleep_sets(words, &[], Vec::new(), &mut found);
        let of_found: BTreeSet<_> = found.iter().map(trace_of).collect();
        assert_eq!(of_found.len(), found.len(), "{words:?}: a trace twice");
        assert_eq!(of_found, traces, "{words:?}");
        assert_eq!(ends(&found), ends(&all), "{words:?}");
    }
}

/// The strategy leaves sleepers alone for exactly as long as it should: until something dependent on them happens, or nobody else
/// can go.
#[test]
fn sleepers_are_left_alone() {
    let mut random = Random::new(3);
    let words = ["aA", "lbu", "lAu"];
    for _ in 0..if cfg!(miri) { 1 } else { 300 } {
        let any = run(&words, Plan::new(random.draw(), AnyStrategy::RANDOM)).order();
        let prefix = &any[..random.below(any.len())];
        let mut asleep = enabled(&words, prefix);
        asleep.retain(|_| random.below(3) != 0);
        let outcome = along(&words, prefix, &asleep);
        let order = outcome.order();
        assert!(order.starts_with(prefix));
        for at in prefix.len()..order.len() {
            let (thread, operation) = (order[at], outcome.operations[at]);
            let sleeps = |thread: usize| asleep.iter().any(|sleeper| sleeper.0 == thread);
            if sleeps(thread) {
                let others = enabled(&words, &order[..at]);
                assert!(
                    others.iter().all(|other| sleeps(other.0)),
                    "{words:?} {order:?} at {at}: {asleep:?}"
                );
            }
            asleep.retain(|sleeper| sleeper.0 != thread && !dependent(&sleeper.1, &operation));
        }
    }
}

/// More sleepers than can be kept, or counts that lie: the run goes on without them.
#[test]
fn damaged_prefixes_are_followed_as_far_as_they_go() {
    let words = ["aA", "b"];
    let plain = along(&words, &[], &[]);
    for blob in [&[][..], &[u64::MAX], &[5, 0, u64::MAX, 1], &[0, 0, 9, path_of(1)], &[1, 0, 0, 12345]] {
        let follow = AnyStrategy::new(strategy::FOLLOW, &[0; 8], blob, false);
        assert_eq!(run(&words, Plan::new(1, follow)).order(), plain.order(), "{blob:?}");
    }
}

fn random_program(random: &mut Random) -> Vec<String> {
    let barrier = random.below(4) == 0;
    (0..2 + random.below(2))
        .map(|thread| {
            let mut word = String::new();
            for _ in 0..1 + random.below(2) {
                word += ["a", "A", "bB", "lau", "lAu", "pq", "py", "s", "t", "w", "mv"][random.below(11)];
            }
            if barrier && thread < 2 {
                word += "efo";
            }
            word
        })
        .collect()
}

/// Random programs that lock, signal, wait, give up, meet and spin end in all the ways that enumeration knows.
#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn searches_reach_what_enumeration_reaches() {
    let mut random = Random::new(19);
    let mut kinds = BTreeSet::new();
    for _ in 0..70 {
        let words = random_program(&mut random);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words.concat().len() > 8 {
            continue;
        }
        let mut found = Vec::new();
        with_sleep_sets(&words, &[], Vec::new(), &mut found);
        assert_eq!(ends(&found), model::outcomes(&words), "{words:?}");
        kinds.extend(words.concat().chars());
    }
    assert!("aAbBlumvpqystwef".chars().all(|letter| kinds.contains(&letter)), "{kinds:?}");
}

/// A loop that nobody ends is not followed for ever; one that somebody ends is followed no further than it must be.
#[test]
#[cfg_attr(miri, ignore = "thousands of rounds")]
fn loops_that_wait_have_few_rounds() {
    let stuck = along(&["w", "b"], &[], &[]);
    assert_eq!(stuck.conclusion, Some(Conclusion::Stuck));
    let runs = all_runs(&["w", "A"]);
    assert!(runs.iter().all(|outcome| matches!(outcome.end, Some(End::Prints(_)))), "{runs:?}");
    let rounds = |outcome: &Outcome| outcome.order().iter().filter(|&&thread| thread == 1).count();
    // It begins, looks, looks again, waits until it has been stored to, leaves, and ends.
    assert_eq!(runs.iter().map(rounds).max(), Some(5));
    assert_eq!(runs.iter().map(rounds).min(), Some(3));
}

/// Threads that wait in loops for each other's loops: each makes as many rounds as the others.
#[test]
#[cfg_attr(miri, ignore = "thousands of rounds")]
fn loops_take_turns_where_all_wait() {
    let stuck = along(&["w", "w"], &[], &[]);
    assert_eq!(stuck.conclusion, Some(Conclusion::Stuck));
    let order = stuck.order();
    let of = |thread: usize| order.iter().filter(|&&other| other == thread).count();
    assert!(of(1).abs_diff(of(2)) <= 2, "{} rounds against {}", of(1), of(2));
}
