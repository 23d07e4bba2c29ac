//! The parser takes any text; what it reports can be rendered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_csp::lang::ast::Ast;
use raddle_csp::lang::diagnostic::render;
use raddle_csp::lang::parser::parse_file;
use raddle_csp::lang::source::SourceMap;

fuzz_target!(|text: &str| {
    let mut sources = SourceMap::default();
    let file = sources.add("fuzz.csp", text);
    let mut ast = Ast::default();
    let (_, diagnostics) = parse_file(&mut ast, file, text);
    render(&sources, &diagnostics, false);
});
