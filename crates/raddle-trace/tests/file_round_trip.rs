//! What is written to a trace file is what is read from it: random traces, and a naive twin of the merge.

use raddle_trace::convert::write_trace;
use raddle_trace::file::{ProgramInfo, TraceFile};
use raddle_trace::generate::{Rng, Shape, generate};
use raddle_trace::{ContextIx, EventSource, Location, MemoryTrace};

fn cases(default: u64) -> u64 {
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Tables give indices in order of first meeting, which differs between two readers; names do not.
fn readable(trace: &MemoryTrace) -> Vec<String> {
    let tables = &trace.tables;
    trace
        .events
        .iter()
        .map(|event| {
            let stack: Vec<_> =
                tables.stack(event.context).iter().map(|&call| tables.location(call)).collect();
            let location = tables.location(event.location);
            format!("{:?} {:?} {location:?} {stack:?} {}", event.thread, event.op, event.kept_calls)
        })
        .collect()
}

#[test]
fn random_traces_survive_in_exactly_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.raddle");
    for seed in 0..cases(60) {
        let shape = match seed % 3 {
            0 => Shape::everything(2 + (seed % 7) as u32, 300 + 97 * (seed % 11)),
            1 => Shape::locks_only(3, 2, 4, 5_000),
            _ => Shape::everything(12, 12_000),
        };
        let trace = generate(&shape, seed);
        write_trace(&mut trace.source(), &path, ProgramInfo::default()).unwrap();
        let mut file = TraceFile::open(&path).unwrap();
        let read = MemoryTrace::read(&mut file).unwrap();
        assert_eq!(file.damaged(), 0, "seed {seed}");
        assert_eq!(file.index().cut(), None, "seed {seed}");
        assert_eq!(read.tables.threads, trace.tables.threads, "seed {seed}");
        let (expected, found) = (readable(&trace), readable(&read));
        assert_eq!(expected.len(), found.len(), "seed {seed}");
        for (ix, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert_eq!(expected, found, "seed {seed}, event {ix}");
        }
    }
}

/// Calls from one place one after the other have the same context, and are told apart all the same.
#[test]
fn activations_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.raddle");
    let mut rng = Rng::new(4);
    let mut trace = generate(&Shape::everything(4, 3_000), 4);
    let places: Vec<_> = (1..4).map(|n| trace.tables.intern_location(Location::Foreign(n))).collect();
    let mut stacks = vec![(Vec::new(), 0); trace.tables.threads.len()];
    for event in &mut trace.events {
        let (stack, kept) = &mut stacks[event.thread.index()];
        for _ in 0..rng.below(4) {
            if rng.below(2) == 0 {
                stack.push(places[rng.below(3) as usize]);
            } else {
                stack.pop();
                *kept = stack.len().min(*kept);
            }
        }
        let parent = ContextIx::ROOT;
        event.context = stack.iter().fold(parent, |parent, &call| trace.tables.intern_context(parent, call));
        event.kept_calls = *kept as u32;
        *kept = stack.len();
    }
    write_trace(&mut trace.source(), &path, ProgramInfo::default()).unwrap();
    let read = MemoryTrace::read(&mut TraceFile::open(&path).unwrap()).unwrap();
    assert_eq!(readable(&read), readable(&trace));
}

#[test]
fn batches_are_never_empty_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.raddle");
    let trace = generate(&Shape::everything(5, 50_000), 1);
    write_trace(&mut trace.source(), &path, ProgramInfo::default()).unwrap();
    let mut file = TraceFile::open(&path).unwrap();
    let (mut batch, mut events) = (Vec::new(), 0);
    loop {
        file.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            break;
        }
        events += batch.len();
    }
    assert_eq!(events, trace.events.len());
    let (read, all) = file.progress().unwrap();
    assert_eq!(read, all);
}
