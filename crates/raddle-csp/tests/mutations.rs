//! Hostile input: no text makes the language panic, overflow the stack or go on for ever.
//!
//! The stable twin of the fuzz targets `csp_lexer`, `csp_parser` and `csp_evaluator`: it breaks the scripts of the
//! corpus in many small ways. `RADDLE_TEST_CASES=N` sets how many; a failure prints the seed and the text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use raddle_csp::engine::CheckOptions;
use raddle_csp::lang::ast::Ast;
use raddle_csp::lang::diagnostic::render;
use raddle_csp::lang::eval::Limits;
use raddle_csp::lang::format::format;
use raddle_csp::lang::load::{Files, load_text};
use raddle_csp::lang::parser::parse_file;
use raddle_csp::lang::session::Script;
use raddle_csp::lang::source::FileId;
use raddle_csp::lang::token::lex;

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % below.max(1)
    }
}

/// No file can be included.
struct Nothing;

impl Files for Nothing {
    fn read(&self, _: &std::path::Path) -> Result<String, String> {
        Err("there are no files here".into())
    }
}

fn corpus() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/csp");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is part of the repository")
        .map(|e| e.expect("a readable entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "csp"))
        .collect();
    paths.sort();
    paths.iter().map(|p| std::fs::read_to_string(p).expect("a readable script")).collect()
}

/// Small pieces that are put anywhere.
const PIECES: [&str; 40] = [
    "(", ")", "{", "}", "<", ">", "[|", "|]", "|>", "[[", "]]", "{|", "|}", "->", "[]", "|~|", "|||", "||",
    ";", "&", "@", "?", "!", "$", ".", "..", ":", "::", "=", "==", "let", "within", "if", "then", "\\", "0",
    "x", "STOP", "{0..}", "\u{e9}",
];

fn broken(random: &mut Random, scripts: &[String]) -> String {
    let mut text: Vec<char> = scripts[random.next(scripts.len())].chars().collect();
    for _ in 0..1 + random.next(4) {
        let at = random.next(text.len() + 1);
        match random.next(5) {
            0 => {
                let end = (at + 1 + random.next(12)).min(text.len());
                text.drain(at.min(end)..end);
            }
            1 => {
                let piece = PIECES[random.next(PIECES.len())];
                text.splice(at..at, piece.chars());
            }
            2 => {
                let other: Vec<char> = scripts[random.next(scripts.len())].chars().collect();
                let from = random.next(other.len());
                let to = (from + random.next(60)).min(other.len());
                text.splice(at..at, other[from..to].iter().copied());
            }
            3 if !text.is_empty() => {
                let other = random.next(text.len());
                let at = at.min(text.len() - 1);
                text.swap(at, other);
            }
            _ => text.truncate(at),
        }
    }
    text.into_iter().collect()
}

fn digest(text: &str) {
    let lexed = lex(FileId(0), text);
    assert!(lexed.tokens.windows(2).all(|w| w[0].span.end <= w[1].span.start));
    let mut ast = Ast::default();
    parse_file(&mut ast, FileId(0), text);
    let once = format(text);
    assert_eq!(format(&once), once, "formatting twice changes something");
    let limits = Limits { depth_max: 2_000, steps_max: 50_000, elements_max: 5_000 };
    let mut script = match Script::new(load_text(&Nothing, "fuzz.csp", text), limits) {
        Ok(script) => script,
        Err(refused) => {
            assert!(!refused.diagnostics.is_empty(), "refused without a reason");
            assert!(!render(&refused.sources, &refused.diagnostics, false).is_empty());
            return;
        }
    };
    for (_, value) in script.prints() {
        if let Err(diagnostic) = value {
            render(script.sources(), &[diagnostic], false);
        }
    }
    let options = CheckOptions { leaf_states_max: 500, pairs_max: Some(500), ..CheckOptions::default() };
    let count = script.assertions().len().min(3);
    for i in 0..count {
        if let Err(diagnostic) = script.check(i, &options) {
            assert!(!render(script.sources(), &[diagnostic], false).is_empty());
        }
    }
}

#[test]
fn broken_scripts_are_refused_or_answered() {
    let cases: u64 = std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let scripts = corpus();
    for seed in 0..cases {
        let text = broken(&mut Random(seed), &scripts);
        let outcome = catch_unwind(AssertUnwindSafe(|| digest(&text)));
        assert!(outcome.is_ok(), "seed {seed} panics on:\n{text}");
    }
}

#[test]
fn random_characters_are_refused() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let text: String =
            (0..random.next(200)).map(|_| PIECES[random.next(PIECES.len())]).collect::<Vec<_>>().join("");
        let outcome = catch_unwind(AssertUnwindSafe(|| digest(&text)));
        assert!(outcome.is_ok(), "seed {seed} panics on:\n{text}");
    }
}

#[test]
fn deep_and_long_texts_do_not_overflow_the_stack() {
    let texts = [
        format!("P = {}STOP{}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("channel a\nP = {}STOP\nassert P :[deadlock free]", "a -> ".repeat(20_000)),
        format!("channel a\nP = STOP{}\nassert P [T= P", " [] STOP".repeat(20_000)),
        format!("x = 1{}\nprint x", " + 1".repeat(20_000)),
        format!("x = {}1{}", "{".repeat(1_900), "}".repeat(1_900)),
        format!("f(x) = {}x", "\\ y @ ".repeat(1_900)),
        "if ".repeat(50_000),
        "<".repeat(50_000),
        "let ".repeat(50_000),
        "module M\n".repeat(50_000),
        "{-".repeat(50_000),
        format!("x = {}", "-".repeat(50_000)),
        format!("f :: {}", "{".repeat(50_000)),
    ];
    for text in &texts {
        digest(text);
    }
}
