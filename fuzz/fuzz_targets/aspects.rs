//! Feeds text to the parser of aspects: no panic, every diagnostic can be shown, and printing loses nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_probe::aspect::parse;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let parsed = parse(&text);
    for diagnostic in &parsed.diagnostics {
        diagnostic.render("fuzz.aspects", &text, false);
    }
    let again = parse(&parsed.file.to_string());
    assert!(again.diagnostics.is_empty(), "{:?}", again.diagnostics);
    assert_eq!(again.file, parsed.file);
});
