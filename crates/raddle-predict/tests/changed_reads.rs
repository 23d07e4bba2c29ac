//! Reads that a witness changes, and patterns that are provoked, on traces whose answer is known.

mod support;

use raddle_predict::provocations::{Pattern, provocations};
use raddle_predict::{Options, Reductions, predict};
use raddle_trace::generate::{Shape, generate};
use raddle_trace::std_format::StdReader;
use raddle_trace::{EventSource, MemoryTrace, Op};
use std::collections::BTreeMap;
use support::cases;

fn trace(text: &str) -> MemoryTrace {
    let mut reader = StdReader::new(text.as_bytes(), "test.std", None);
    MemoryTrace::read(&mut reader as &mut dyn EventSource).unwrap()
}

/// What a witness changes is what going through its accesses one by one shows.
#[test]
fn changed_reads_are_those_that_going_through_shows() {
    let (mut witnesses, mut changed_all) = (0, 0);
    for seed in 0..cases(200) {
        let trace = generate(&Shape { events: 40, ..Shape::locks_only(3, 2, 2, 40) }, seed);
        let options = Options { reductions: Reductions::NONE, ..Options::default() };
        let prediction = predict(&trace, &options);
        for candidate in prediction.candidates.iter().filter(|candidate| candidate.kind.is_race()) {
            let (parties, witness) = (&candidate.parties, &candidate.witness);
            let found = prediction.changed_reads(parties, witness);
            // The run of the witness, step by step: after each step the accesses up to the next one.
            let program = &prediction.program;
            let mut taken = vec![0_u32; program.thread_count()];
            let mut run: Vec<usize> = Vec::new();
            let segment = |thread: raddle_trace::ThreadIx, pos: u32, run: &mut Vec<usize>| {
                let from = pos
                    .checked_sub(1)
                    .map_or(0, |last| program.steps(thread)[last as usize].event.index() + 1);
                let to = program
                    .steps(thread)
                    .get(pos as usize)
                    .map_or(trace.events.len(), |step| step.event.index());
                let party = parties.iter().find(|party| party.thread == thread);
                for at in from..to.min(party.map_or(usize::MAX, |party| party.event.index())) {
                    let event = &trace.events[at];
                    if event.thread == thread && matches!(event.op, Op::Read { .. } | Op::Write { .. }) {
                        run.push(at);
                    }
                }
            };
            segment(raddle_trace::ThreadIx::MAIN, 0, &mut run);
            for thread in witness.moves(program) {
                taken[thread.index()] += 1;
                segment(thread, taken[thread.index()], &mut run);
            }
            let writers = |order: &[usize]| -> BTreeMap<usize, Option<usize>> {
                let (mut last, mut seen) = (BTreeMap::new(), BTreeMap::new());
                for &at in order {
                    match trace.events[at].op {
                        Op::Read { addr, .. } => drop(seen.insert(at, last.get(&addr.0).copied())),
                        Op::Write { addr, .. } => drop(last.insert(addr.0, at)),
                        _ => {}
                    }
                }
                seen
            };
            let all: Vec<usize> = (0..trace.events.len()).collect();
            let (observed, now) = (writers(&all), writers(&run));
            let expected: Vec<usize> =
                now.iter().filter(|(at, writer)| observed[at] != **writer).map(|(at, _)| *at).collect();
            let found: Vec<usize> = found.iter().map(|read| read.event.index()).collect();
            assert_eq!(found, expected, "seed {seed}");
            changed_all += found.len();
            witnesses += 1;
        }
    }
    assert!(witnesses > 100 && changed_all > 20, "{witnesses} {changed_all}");
}

#[test]
fn a_section_of_another_thread_is_put_between_two() {
    let text = "T0|fork(T1)|1\nT0|fork(T2)|2\n\
        T1|acq(m)|3\nT1|r(x)|4\nT1|rel(m)|5\nT1|acq(m)|6\nT1|w(x)|7\nT1|rel(m)|8\n\
        T2|acq(m)|9\nT2|w(x)|10\nT2|rel(m)|11\n";
    let trace = trace(text);
    let found = provocations(&trace, &Options::default(), 100);
    let patterns: Vec<Pattern> = found.all.iter().map(|one| one.pattern).collect();
    assert!(patterns.contains(&Pattern::Interleaved), "{patterns:?}");
    assert!(patterns.contains(&Pattern::Reversed), "{patterns:?}");
    let between = found.all.iter().find(|one| one.pattern == Pattern::Interleaved).unwrap();
    let lines: Vec<u32> = between.events.iter().map(|event| event.0 + 1).collect();
    assert_eq!(lines, [3, 6, 9]);
    // Up to the first section's end, and the whole of the other's.
    let end = between.witness.end();
    assert_eq!((end[1], end[2]), (3, 3), "{end:?}");
}

#[test]
fn what_does_not_conflict_with_both_is_not_put_between() {
    // The other thread only reads, and so does the first section: no cycle.
    let text = "T0|fork(T1)|1\nT0|fork(T2)|2\n\
        T1|acq(m)|3\nT1|r(x)|4\nT1|rel(m)|5\nT1|acq(m)|6\nT1|w(x)|7\nT1|rel(m)|8\n\
        T2|acq(m)|9\nT2|r(x)|10\nT2|rel(m)|11\n";
    let found = provocations(&trace(text), &Options::default(), 100);
    assert!(found.all.iter().all(|one| one.pattern == Pattern::Reversed), "{:?}", found.all);
}
