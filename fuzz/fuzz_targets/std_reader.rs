//! Feeds text to the reader of STD, as each of its dialects; what it accepts must survive writing in the extended dialect and reading again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::MemoryTrace;
use raddle_trace::std_format::{Dialect, InputDialect, StdReader, write_std};

fuzz_target!(|data: &[u8]| {
    // Whatever dialect it is taken for, it ends in events or in an error, and something can be said about it.
    for (_, dialect) in InputDialect::ALL {
        let mut reader = StdReader::new(data, "fuzz", None).with_dialect(dialect);
        let _ = MemoryTrace::read(&mut reader);
        assert!(!reader.remarks().is_empty());
    }
    let Ok(trace) = MemoryTrace::read(&mut StdReader::new(data, "fuzz", None)) else { return };
    let mut text = Vec::new();
    write_std(&mut trace.source(), &mut text, Dialect::Extended).expect("memory takes everything");
    let again = MemoryTrace::read(&mut StdReader::new(text.as_slice(), "written", None));
    let again = again.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&text)));
    assert!(again.events.len() <= trace.events.len());
});
