//! STD text as it is read: the strict form, what other tools write, and lines that cannot be so.

use super::*;
use crate::source::MemoryTrace;

fn read(text: &str) -> Result<MemoryTrace, TraceError> {
    MemoryTrace::read(&mut StdReader::new(text.as_bytes(), "t.std", None))
}

fn problem(text: &str) -> String {
    read(text).expect_err("the text is broken").to_string()
}

#[test]
fn reads_the_strict_form() {
    let trace =
        read("T0|fork(T1)|1\nT1|acq(L1)|2\nT1|w(V1)|3\nT1|rel(L1)|4\nT0|join(T1)|5\nT0|r(V1)|6").unwrap();
    assert_eq!(trace.events.len(), 6);
    assert_eq!(trace.events[0].op, Op::Fork { child: ThreadIx(1) });
    assert_eq!(trace.events[1].thread, ThreadIx(1));
    assert_eq!(trace.tables.location(trace.events[2].location), &Location::Foreign(3));
    assert_eq!(trace.tables.threads[1].name, "1.1");
    assert_eq!(trace.tables.threads[1].given_name.as_deref(), Some("T1"));
    assert!(matches!(trace.events[5].op, Op::Read { addr: Addr(8), size: 8, .. }));
}

#[test]
fn reads_dialects_comments_and_long_names() {
    let text = "# comment\n\n// another\r\n  main|begin|0\nmain|call(push,queue_number_one)|7\r\nmain|req(L)|1\n\
                main|wait(C,L)|2\nmain|notifyall(C)|3\nmain|acqr(RW)|4\nmain|relr(RW)|5\nmain|end|9999999\n";
    let trace = read(text).unwrap();
    assert_eq!(trace.events.len(), 8);
    assert!(matches!(trace.events[5].op, Op::ReadLock { flags: LockFlags { rwlock: true, .. }, .. }));
    assert_eq!(trace.tables.location(trace.events[7].location), &Location::Foreign(9_999_999));
}

#[test]
fn broken_lines_are_rejected_with_line_and_column() {
    assert!(problem("T0|r(V1)|1\nT0|r(V1)x\n").starts_with("t.std: line 2, column 9: expected `|`"));
    assert!(problem("T0|r(V1)|-\n").starts_with("t.std: line 1, column 11: expected a digit"));
    assert!(problem("T0|r(V1)|1x\n").starts_with("t.std: line 1, column 11: expected a digit"));
    assert!(problem("T0|read(V1)|1\n").starts_with("t.std: line 1, column 4: unknown operation `read`"));
    assert!(problem("T0|r(V1|1\n").contains("column 10: expected `)`"));
    assert!(problem("T0|r()|1\n").contains("column 6: the operation needs an object"));
    assert!(problem("T0|acq(L,M)|1\n").contains("column 10: the operation takes one object only"));
    assert!(problem("|r(V1)|1\n").contains("column 1: expected a thread's name"));
    assert!(problem("T 0|r(V1)|1\n").contains("column 2"));
    assert!(problem("hello\n").contains("line 1, column 6: expected `|`"));
    assert!(problem("T0|r(V1)|99999999999999999999\n").contains("64 bits"));
    assert!(problem("T0|fork(T0)|1\n").contains("cannot fork or join itself"));
    let long = format!("T0|r({})|1", "x".repeat(LINE_BYTES_MAX * 40));
    assert!(problem(&long).contains("longer than"));
}

#[test]
fn chunk_bounds_do_not_matter() {
    struct Dribble<'a>(&'a [u8]);
    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(3).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }
    let text = "T0|w(V1)|12\nT0|fork(T1)|3\nT1|r(V1)|4\n";
    let whole = read(text).unwrap();
    let parts = MemoryTrace::read(&mut StdReader::new(Dribble(text.as_bytes()), "t", None)).unwrap();
    assert_eq!(whole.events, parts.events);
}

#[test]
fn sniffs_by_content() {
    assert!(looks_like_std(b"# x\nT0|w(V1)|12\nT0|..."));
    assert!(!looks_like_std(b"\x7fELF\x02"));
    assert!(!looks_like_std(b"{\"a\": 1}"));
}

/// The reader takes whatever comes: mutated traces end in events or in an error with a place, never in a panic.
#[test]
fn mutated_input_never_panics() {
    use crate::generate::{Rng, Shape, generate};
    let trace = generate(&Shape { regions: true, calls: 2, ..Shape::everything(4, 200) }, 5);
    let mut text = Vec::new();
    write_std(&mut trace.source(), &mut text, Dialect::Extended).unwrap();
    let mut rng = Rng::new(11);
    let (mut errors, mut fine) = (0, 0);
    for _ in 0..3_000 {
        let mut bytes = text.clone();
        for _ in 0..=rng.below(3) {
            let place = rng.below(bytes.len() as u32) as usize;
            match rng.below(3) {
                0 => bytes[place] = rng.below(256) as u8,
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, b"|()\n,# T"[rng.below(8) as usize]),
            }
        }
        let dialect = InputDialect::ALL[rng.below(5) as usize].1;
        let mut reader = StdReader::new(bytes.as_slice(), "d", None).with_dialect(dialect);
        let _ = MemoryTrace::read(&mut reader);
        assert!(!reader.remarks().is_empty());
        match MemoryTrace::read(&mut StdReader::new(bytes.as_slice(), "m", None)) {
            Ok(trace) => {
                fine += 1;
                // What was accepted can be written and read again, as the fuzz target asks too.
                let mut written = Vec::new();
                write_std(&mut trace.source(), &mut written, Dialect::Extended).unwrap();
                let again = MemoryTrace::read(&mut StdReader::new(written.as_slice(), "w", None)).unwrap();
                assert!(again.events.len() <= trace.events.len());
            }
            Err(error) => {
                assert!(error.place.starts_with("line "), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 500 && fine > 100, "{errors} errors, {fine} fine");
}
