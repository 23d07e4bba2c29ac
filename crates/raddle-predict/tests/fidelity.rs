//! What a prediction claims about the reads of its schedule is so.

use raddle_findings::naming::Namer;
use raddle_findings::{Basis, Fidelity};
use raddle_predict::findings::fidelity;
use raddle_predict::{Options, predict};
use raddle_trace::std_format::StdReader;
use raddle_trace::{EventSource, MemoryTrace};

fn trace(text: &str) -> MemoryTrace {
    let mut reader = StdReader::new(text.as_bytes(), "test.std", None);
    MemoryTrace::read(&mut reader as &mut dyn EventSource).unwrap()
}

/// The second read of T2 races with the write of T1; a schedule that brings both together leaves out the write that the first
/// read saw.
#[test]
fn a_read_before_the_access_that_loses_its_write_is_not_kept() {
    let trace = trace("T1|w(x)|1\nT2|r(x)|2\nT2|r(x)|3\n");
    let prediction = predict(&trace, &Options::default());
    let mut seen = 0;
    for candidate in &prediction.candidates {
        let mut events: Vec<u32> = candidate.parties.iter().map(|party| party.event.0).collect();
        events.sort_unstable();
        let claimed = fidelity(&trace, &prediction.program, &candidate.parties, &candidate.witness);
        match events.as_slice() {
            [0, 1] => assert_eq!(claimed, Fidelity::KeepsReads),
            [0, 2] => assert_ne!(claimed, Fidelity::KeepsReads),
            other => panic!("{other:?}"),
        }
        seen += 1;
    }
    assert!(seen >= 1);
}

/// Without a look at memory nothing is claimed.
#[test]
fn nothing_is_claimed_where_memory_was_not_looked_at() {
    let text = "T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\nT2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n";
    let trace = trace(text);
    let mut options = Options::default();
    options.checks.races = false;
    let prediction = predict(&trace, &options);
    assert!(!prediction.candidates.is_empty());
    let mut namer = Namer::of(&trace);
    for candidate in &prediction.candidates {
        let finding = prediction.finding(&trace, &mut namer, candidate);
        assert!(
            matches!(finding.basis, Basis::Model { sound: false, fidelity: Fidelity::Unknown, .. }),
            "{:?}",
            finding.basis
        );
    }
}
