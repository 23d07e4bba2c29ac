//! The figures of the paper, each with what it says about them.

mod support;

use raddle_predict::{CandidateKind, Fidelity, Options, Prediction, predict};
use raddle_trace::schedule::Schedule;
use raddle_trace::{LocationIx, MemoryTrace, Op, ThreadIx};
use support::figures::*;

fn kinds(prediction: &Prediction) -> Vec<CandidateKind> {
    prediction.candidates.iter().map(|candidate| candidate.kind).collect()
}

fn run(trace: &MemoryTrace) -> Prediction {
    predict(trace, &Options::default())
}

fn schedule(trace: &MemoryTrace, prediction: &Prediction) -> Schedule {
    let candidate = &prediction.candidates[0];
    prediction.schedule(trace, candidate.kind.word(), &candidate.parties, &candidate.witness)
}

/// Figures 4.2 to 4.4: the counterexample of §4.5.2, `fork, start, lock m, lock p`, is the schedule.
#[test]
fn two_mutexes_in_two_orders_deadlock() {
    let trace = figure_4_2();
    let prediction = run(&trace);
    assert_eq!(kinds(&prediction), [CandidateKind::Deadlock]);
    assert!(prediction.verdict.stuck);
    let expected = "\
raddle-schedule 2
about deadlock
step 1 1 fork 1.1  # L1
step 1.1 1 start  # L2
step 1.1 2 lock mutex-1  # L3
step 1 2 lock mutex-2  # L7
block 1 3 lock mutex-1  # L8
block 1.1 3 lock mutex-2  # L4
";
    assert_eq!(schedule(&trace, &prediction).to_text(), expected);
}

/// Figure 4.16: infeasible, because the worker would not have taken its locks. The flag's value says so; without it, the
/// paper's candidate appears (and has to be refuted by replay).
#[test]
fn a_flag_keeps_the_locks_apart() {
    let trace = figure_4_16(true);
    assert_eq!(kinds(&run(&trace)), []);
    let prediction = predict(&trace, &Options { atomics: false, ..Options::default() });
    assert_eq!(kinds(&prediction), [CandidateKind::Deadlock]);
    assert_eq!(kinds(&run(&figure_4_16(false))), []);
}

/// Figures 4.18 to 4.20.
#[test]
fn a_barrier_keeps_the_lock_orders_apart() {
    let prediction = run(&figure_4_18());
    assert_eq!((kinds(&prediction), prediction.verdict.stuck), (vec![], false));
}

/// Figures 4.21 to 4.23.
#[test]
fn main_may_take_the_token_meant_for_the_worker() {
    let trace = figure_4_21();
    let prediction = run(&trace);
    assert_eq!(kinds(&prediction), [CandidateKind::Deadlock]);
    let parties: Vec<ThreadIx> = prediction.candidates[0].parties.iter().map(|party| party.thread).collect();
    assert_eq!(parties, [ThreadIx(0), ThreadIx(1)]);
    let text = schedule(&trace, &prediction).to_text();
    assert!(text.contains("step 1 3 sem-wait semaphore-1"), "{text}");
    assert!(text.contains("block 1.1 2 sem-wait semaphore-1"), "{text}");
}

/// Figures 1.5, 1.6 and 5.2: found from either interleaving.
#[test]
fn the_order_of_critical_sections_hides_no_race() {
    for main_first in [true, false] {
        let (trace, x_main, x_worker) = figure_1_5(main_first);
        let prediction = run(&trace);
        assert_eq!(kinds(&prediction), [CandidateKind::DataRace], "main first: {main_first}");
        let candidate = &prediction.candidates[0];
        let places: Vec<LocationIx> =
            candidate.parties.iter().map(|party| trace.events[party.event.index()].location).collect();
        assert_eq!(places, [x_main, x_worker]);
        let schedule = schedule(&trace, &prediction);
        assert_eq!(schedule.stops.len(), 2, "both threads are parked before their accesses");
        assert_eq!(Schedule::parse(&schedule.to_text()), Ok(schedule));
    }
}

/// Figure 5.9: the race on `x` exists in the model only; its witness cannot keep what the worker read, and says so.
#[test]
fn a_race_behind_a_read_is_marked_as_such() {
    let prediction = run(&figure_5_9());
    assert_eq!(kinds(&prediction), [CandidateKind::DataRace]);
    assert_eq!(prediction.candidates[0].witness.fidelity, Fidelity::KeepsOrder);
}

/// What the racing accesses read of each other is given up, and nothing else: the flag is still seen.
#[test]
fn a_race_keeps_the_reads_that_lead_to_it() {
    let prediction = run(&handed_over());
    let fidelities: Vec<([u32; 2], Fidelity)> = prediction
        .candidates
        .iter()
        .map(|candidate| {
            let threads = [candidate.parties[0].thread.0, candidate.parties[1].thread.0];
            (threads, candidate.witness.fidelity)
        })
        .collect();
    // Worker 3 cannot come to `x` before worker 2 is done; the model does not know that, but the witness says so.
    assert_eq!(fidelities, [([2, 3], Fidelity::KeepsOrder), ([1, 3], Fidelity::KeepsEarlierReads)]);
}

/// Figure 4.5: with a predicate there is nothing to miss; without one, the signal can come too early.
#[test]
fn a_wait_without_predicate_can_miss_its_signal() {
    assert_eq!(kinds(&run(&figure_4_5(true))), []);
    let trace = figure_4_5(false);
    let prediction = run(&trace);
    assert_eq!(kinds(&prediction), [CandidateKind::MissedSignal]);
    let text = schedule(&trace, &prediction).to_text();
    let signal = text.find("signal condition-1").expect("the signal is sent");
    let wait = text.find("wait condition-1").expect("the wait begins");
    assert!(signal < wait, "{text}");
}

/// Figure 5.17, and that a hundred thousand iterations are no harder.
#[test]
fn iterations_do_not_matter() {
    for n in [1, 10, 2_000] {
        let prediction = run(&figure_5_17(n));
        assert_eq!(kinds(&prediction), [CandidateKind::DataRace], "N = {n}");
        assert_eq!(prediction.stats.states, 0, "decided without a search");
        assert_eq!(prediction.stats.final_checks, 1, "the hybrid filter takes y out");
    }
}

/// A deadlock that the recorded run ended in is predicted from that run.
#[test]
fn an_observed_deadlock_is_found() {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    script.lock(MAIN, M);
    script.lock(worker, P);
    let request =
        |lock| Op::Request { lock: raddle_trace::ObjectId(lock), read: false, flags: Default::default() };
    script.add(MAIN, request(P));
    script.add(worker, request(M));
    let prediction = run(&script.trace);
    assert_eq!(kinds(&prediction), [CandidateKind::Deadlock]);
}

/// A successful try-lock would have failed instead of blocking.
#[test]
fn a_try_lock_breaks_the_circle() {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    script.lock(worker, M);
    script.try_lock(worker, P);
    script.unlock(worker, P);
    script.unlock(worker, M);
    script.lock(MAIN, P);
    script.lock(MAIN, M);
    script.unlock(MAIN, M);
    script.unlock(MAIN, P);
    script.join(MAIN, worker);
    assert_eq!(kinds(&run(&script.trace)), []);
}

/// Joining a thread while holding the lock that it needs.
#[test]
fn a_join_under_a_lock_deadlocks() {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    script.lock(worker, M);
    script.unlock(worker, M);
    script.lock(MAIN, M);
    script.join(MAIN, worker);
    script.unlock(MAIN, M);
    let prediction = run(&script.trace);
    assert_eq!(kinds(&prediction), [CandidateKind::Deadlock]);
}

/// The same bytes, allocated twice, are not the same memory.
#[test]
fn reused_memory_does_not_race() {
    let mut script = Script::default();
    let worker = script.fork(MAIN);
    let addr = raddle_trace::Addr(0x9000);
    for thread in [worker, MAIN] {
        script.add(thread, Op::Alloc { addr, size: 32 });
        script.write(thread, addr.0);
        script.add(thread, Op::Free { addr });
    }
    script.join(MAIN, worker);
    assert_eq!(kinds(&run(&script.trace)), []);
}

/// Releasing memory that another thread may still use.
#[test]
fn a_release_races_with_an_access() {
    let mut script = Script::default();
    let addr = raddle_trace::Addr(0x9000);
    script.add(MAIN, Op::Alloc { addr, size: 32 });
    let worker = script.fork(MAIN);
    script.read(worker, addr.0 + 8);
    script.add(MAIN, Op::Free { addr });
    script.join(MAIN, worker);
    assert_eq!(kinds(&run(&script.trace)), [CandidateKind::UseAfterFree]);
}

/// A trace that was cut, or that lost an unlock, is used as far as it goes, and the report says so.
#[test]
fn odd_traces_are_used_as_far_as_they_go() {
    let (whole, ..) = figure_1_5(true);
    for length in 0..whole.events.len() {
        let mut cut = whole.clone();
        cut.events.truncate(length);
        let prediction = run(&cut);
        assert!(!prediction.verdict.stuck, "nobody is stuck in {length} events");
    }
    for missing in 0..whole.events.len() {
        let mut odd = whole.clone();
        odd.events.remove(missing);
        let prediction = run(&odd);
        // Without a lock its unlock is odd; without the first unlock, the next lock is.
        let first_unlock = whole.events.iter().position(|event| matches!(event.op, Op::Unlock { .. }));
        let odd = matches!(whole.events[missing].op, Op::Lock { .. }) || first_unlock == Some(missing);
        assert_eq!(!prediction.unexplored.is_empty(), odd, "event {missing} is missing");
    }
}
