//! Feeds text to the reader of STD; what it accepts must survive writing in the extended dialect and reading again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::MemoryTrace;
use raddle_trace::std_format::{Dialect, StdReader, write_std};

fuzz_target!(|data: &[u8]| {
    let Ok(trace) = MemoryTrace::read(&mut StdReader::new(data, "fuzz", None)) else { return };
    let mut text = Vec::new();
    write_std(&mut trace.source(), &mut text, Dialect::Extended).expect("memory takes everything");
    let again = MemoryTrace::read(&mut StdReader::new(text.as_slice(), "written", None));
    let again = again.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&text)));
    assert!(again.events.len() <= trace.events.len());
});
