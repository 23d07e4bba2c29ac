//! Feeds text to the reader of contracts; what it accepts must be the same after writing and reading again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_detect::contract::parse;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(contracts) = parse(text) else { return };
    let written: String = contracts.iter().map(|contract| format!("{contract}\n")).collect();
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.len(), contracts.len());
    for (one, other) in contracts.iter().zip(&again) {
        assert_eq!((&one.target, &one.spoilers), (&other.target, &other.spoilers), "{written}");
    }
});
