//! The lexer and the formatter take any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_csp::lang::format::format;
use raddle_csp::lang::source::FileId;
use raddle_csp::lang::token::lex;

fuzz_target!(|text: &str| {
    let lexed = lex(FileId(0), text);
    assert!(lexed.tokens.windows(2).all(|w| w[0].span.end <= w[1].span.start));
    let once = format(text);
    assert_eq!(format(&once), once);
});
