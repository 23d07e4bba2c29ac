//! Witnesses hold what they promise, judged by `raddle_trace::model`, which knows nothing of this crate.

mod support;

use raddle_predict::{Candidate, CandidateKind, Fidelity, Options, Party, Prediction, Witness, predict};
use raddle_trace::MemoryTrace;
use raddle_trace::generate::{Shape, generate};
use raddle_trace::model::{EventIx, Model, ReadsFrom, Rules};
use raddle_trace::schedule::{Schedule, step_of};
use support::cases;

fn shapes() -> Vec<Shape> {
    vec![
        Shape { nesting_max: 3, ..Shape::locks_only(4, 3, 4, 120) },
        Shape { requests: true, lock_percent: 60, ..Shape::locks_only(3, 3, 2, 80) },
        Shape { guarded_percent: 50, ..Shape::locks_only(3, 2, 6, 150) },
        Shape::everything(3, 90),
        Shape { semaphores: 2, barriers: 1, other_percent: 40, ..Shape::locks_only(3, 2, 3, 80) },
        Shape { conditions: 2, other_percent: 40, ..Shape::locks_only(3, 2, 2, 80) },
    ]
}

/// The events of a witness in an order that it allows: each thread's accesses come as late as possible, or, where the
/// witness keeps the observed order, where they were observed.
fn events(
    trace: &MemoryTrace,
    prediction: &Prediction,
    witness: &Witness,
    parties: &[Party],
) -> Vec<EventIx> {
    let threads = prediction.program.thread_count();
    let mut of_thread: Vec<Vec<usize>> = vec![Vec::new(); threads];
    for (ix, event) in trace.events.iter().enumerate() {
        of_thread[event.thread.index()].push(ix);
    }
    let mut cursor = vec![0; threads];
    let mut taken = vec![0; threads];
    let mut order = Vec::new();
    for thread in witness.moves(&prediction.program) {
        let index = thread.index();
        let step = &prediction.program.steps(thread)[taken[index]];
        taken[index] += 1;
        if trace.events[step.event.index()].thread != thread {
            continue;
        }
        while of_thread[index].get(cursor[index]).is_some_and(|&ix| ix <= step.event.index()) {
            order.push(EventIx(of_thread[index][cursor[index]] as u32));
            cursor[index] += 1;
        }
    }
    // What invisible code does before the next step, for a party up to its event.
    for index in 0..threads {
        let party = parties.iter().find(|party| party.thread.index() == index);
        while let Some(&ix) = of_thread[index].get(cursor[index]) {
            let reached = party.is_some_and(|party| ix >= party.event.index());
            let visible = step_of(&trace.events[ix].op).is_some() || !trace.events[ix].op.is_plain_access();
            if reached || (visible && party.is_none()) {
                break;
            }
            order.push(EventIx(ix as u32));
            cursor[index] += 1;
        }
    }
    if witness.fidelity != Fidelity::Reordered {
        order.sort_unstable();
    }
    order
}

/// A trace, what was predicted from it, and who judges.
struct Case<'t> {
    trace: &'t MemoryTrace,
    prediction: &'t Prediction,
    /// Reads see what they saw.
    strict: &'t Model<'t>,
    /// Reads see anything.
    lenient: &'t Model<'t>,
}

/// Without the plain accesses that each thread ends with.
fn without_last_stretches(trace: &MemoryTrace, order: &[EventIx]) -> Vec<EventIx> {
    let mut in_last = vec![true; trace.tables.threads.len()];
    let mut kept = Vec::new();
    for &ix in order.iter().rev() {
        let event = &trace.events[ix.index()];
        let in_last = &mut in_last[event.thread.index()];
        *in_last &= event.op.is_plain_access();
        if !*in_last {
            kept.push(ix);
        }
    }
    kept.reverse();
    kept
}

fn check(case: &Case<'_>, candidate: &Candidate, parties: &[Party], witness: &Witness, what: &str) {
    let Case { trace, prediction, .. } = *case;
    let model = if witness.fidelity == Fidelity::KeepsReads { case.strict } else { case.lenient };
    let order = events(trace, prediction, witness, parties);
    if witness.fidelity == Fidelity::KeepsEarlierReads {
        let earlier = without_last_stretches(trace, &order);
        let outcome = case.strict.run(&earlier);
        assert!(outcome.is_ok(), "{what}: {witness:?}: {:?}", outcome.err());
    }
    if candidate.kind.is_race() {
        let outcome = model.check_race(&order, parties[0].event, parties[1].event);
        assert!(outcome.is_ok(), "{what}: {witness:?}: {:?}", outcome.err());
    } else {
        let state = model.run(&order).unwrap_or_else(|invalid| panic!("{what}: {witness:?}: {invalid}"));
        for party in parties {
            // That model lets any signal wake any waiter; a missed signal may be another's there.
            if candidate.kind == CandidateKind::Deadlock && model.oddities().is_empty() {
                let blocked = state.next(party.thread).is_none() || state.obstacle(party.thread).is_some();
                use raddle_trace::Op;
                // A request is no step of that model; the lock that never came is not in the trace.
                let wakes = matches!(
                    trace.events[party.event.index()].op,
                    Op::Wait { .. } | Op::Request { .. } | Op::SemRequest { .. }
                );
                assert!(blocked || wakes, "{what}: {party:?} is not blocked, {witness:?}");
            }
        }
    }
    let schedule = prediction.schedule(trace, "test", parties, witness);
    assert_eq!(Schedule::parse(&schedule.to_text()).as_ref(), Ok(&schedule), "{what}");
    let marks = schedule.stops.len() + schedule.blocks.len();
    assert_eq!(marks, parties.len(), "{what}: every party has its stop point or its block");
}

#[test]
fn witnesses_are_possible_runs_that_end_at_the_error() {
    let mut checked = [0_u64; 4];
    for (number, shape) in shapes().into_iter().enumerate() {
        for seed in 0..cases(40) {
            let trace = generate(&shape, seed);
            let strict = Model::new(&trace, Rules::default());
            let lenient = Model::new(&trace, Rules { reads_from: ReadsFrom::Any, ..Rules::default() });
            for closure in [true, false] {
                let prediction = predict(&trace, &Options { closure, ..Options::default() });
                let case =
                    Case { trace: &trace, prediction: &prediction, strict: &strict, lenient: &lenient };
                for candidate in &prediction.candidates {
                    let what = format!("shape {number}, seed {seed}, {:?}", candidate.kind);
                    let first = (&candidate.parties, &candidate.witness);
                    let others = candidate.alternatives.iter().map(|(parties, witness)| (parties, witness));
                    for (parties, witness) in std::iter::once(first).chain(others) {
                        check(&case, candidate, parties, witness, &what);
                        checked[witness.fidelity as usize] += 1;
                    }
                }
            }
        }
    }
    assert!(checked.iter().all(|&count| count > 50), "all ways of finding witnesses were tried: {checked:?}");
}

/// Where a linear-time witness exists, the candidate's first witness keeps all reads or at least the order.
#[test]
fn the_first_witness_is_the_closest() {
    for seed in 0..cases(40) {
        let trace = generate(&Shape::locks_only(3, 2, 3, 100), seed);
        let prediction = predict(&trace, &Options::default());
        for candidate in &prediction.candidates {
            let closest = candidate.alternatives.iter().map(|(_, witness)| witness.fidelity).min();
            if candidate.kind.is_race() {
                assert!(closest.is_none_or(|closest| candidate.witness.fidelity <= closest), "seed {seed}");
            }
        }
    }
}

/// What passes through an object of the kernel orders threads, and is no step of a schedule: the runtime does not count it.
#[test]
fn steps_are_counted_without_what_schedules_leave_out() {
    use raddle_trace::{ObjectId, Op};
    use support::figures::{MAIN, Script};
    let mut script = Script::default();
    script.add(MAIN, Op::Send { channel: ObjectId(1) });
    script.add(MAIN, Op::Send { channel: ObjectId(1) });
    let child = script.fork(MAIN);
    script.add(child, Op::Receive { channel: ObjectId(1) });
    script.lock(child, 2);
    script.unlock(child, 2);
    script.write(child, 0x40);
    script.write(MAIN, 0x40);
    script.join(MAIN, child);
    let prediction = predict(&script.trace, &Options::default());
    let candidate = prediction.candidates.iter().find(|candidate| candidate.kind.is_race()).expect("a race");
    let (parties, witness) = (&candidate.parties, &candidate.witness);
    let schedule = prediction.schedule(&script.trace, "test", parties, witness);
    for thread in ["1", "1.1"] {
        let steps = schedule.steps.iter().filter(|step| schedule.name(step.thread) == thread);
        let ordinals: Vec<u32> = steps.map(|step| step.ordinal).collect();
        let expected: Vec<u32> = (1..=ordinals.len() as u32).collect();
        assert!(!ordinals.is_empty() && ordinals == expected, "{thread}: {ordinals:?}");
    }
}
