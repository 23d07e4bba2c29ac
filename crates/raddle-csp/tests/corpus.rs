//! The corpus of CSPM scripts: every assertion has to give the verdict and the counterexample that its manifest says.
//!
//! A manifest `NAME.toml` stands beside `NAME.csp` and lists the assertions in order, those without an answer with the
//! reason; of a script that is refused as a whole it has the messages. `RADDLE_BLESS=1` rewrites the
//! manifests from what the checker says now; review the difference before committing it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use raddle_csp::engine::{Behaviour, CheckOptions, Counterexample};
use raddle_csp::lang::diagnostic::Diagnostic;
use raddle_csp::lang::eval::Limits;
use raddle_csp::lang::session::Script;
use raddle_csp::lang::source::SourceMap;
use raddle_csp::process::EventId;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Why the script as a whole is refused: `line:column message`.
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    print: Vec<Print>,
    #[serde(default)]
    assert: Vec<Expected>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Print {
    text: String,
    value: Option<String>,
    /// Why there is none.
    error: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Expected {
    text: String,
    holds: Option<bool>,
    /// Why there is no answer.
    error: Option<String>,
    counterexample: Option<Witness>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Witness {
    /// What goes wrong after the trace.
    kind: String,
    /// The event it is about, if it is about one.
    event: Option<String>,
    trace: Vec<String>,
    /// All steps including hidden ones, as the events the components do.
    steps: Vec<String>,
    /// What was offered on the way where the violation depends on it: `event: offers`.
    #[serde(default)]
    on_the_way: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/csp")
}

fn scripts() -> Vec<PathBuf> {
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the corpus is part of the repository")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "csp"))
        .collect();
    scripts.sort();
    scripts
}

fn witness(script: &Script, found: &Counterexample) -> Witness {
    let names = |events: &[EventId]| events.iter().map(|&e| script.event_name(e)).collect::<Vec<_>>();
    let (kind, event) = match &found.behaviour {
        Behaviour::Event { event, .. } => ("event", Some(*event)),
        Behaviour::Refusal { .. } => ("refusal", None),
        Behaviour::Revival { event, .. } => ("revival", Some(*event)),
        Behaviour::Deadlock => ("deadlock", None),
        Behaviour::Divergence { .. } => ("divergence", None),
        Behaviour::Nondeterminism { event, .. } => ("nondeterminism", Some(*event)),
        Behaviour::MissingTrace { event, .. } => ("missing trace", *event),
    };
    let mut steps = Vec::new();
    for step in &found.path {
        if step.event.is_visible() {
            steps.push(script.event_name(step.event));
            continue;
        }
        let mut parts: Vec<EventId> = step.parts.iter().map(|&(_, e)| e).filter(|e| e.is_visible()).collect();
        parts.sort_unstable();
        parts.dedup();
        match &names(&parts)[..] {
            [] => {}
            parts => steps.push(parts.join(" + ")),
        }
    }
    Witness {
        kind: kind.into(),
        event: event.map(|e| script.event_name(e)),
        trace: names(&found.trace),
        steps,
        on_the_way: found
            .on_the_way
            .iter()
            .map(|o| {
                format!("{}: {}", script.event_name(found.trace[o.position]), names(&o.offers).join(" "))
            })
            .collect(),
    }
}

/// `line:column message`, with the file where it is not the script itself.
fn told(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    let (line, column) = sources.line_column(diagnostic.span);
    let file = match diagnostic.span.file.0 {
        0 => String::new(),
        _ => {
            let name = Path::new(&sources.file(diagnostic.span.file).name);
            format!("{}:", name.file_name().unwrap_or_default().to_string_lossy())
        }
    };
    format!("{file}{line}:{column} {}", diagnostic.message)
}

fn observe(path: &Path, options: &CheckOptions) -> Manifest {
    let mut script = match Script::from_path(path, Limits::default()) {
        Ok(script) => script,
        Err(refused) => {
            let refused = refused.diagnostics.iter().map(|d| told(&refused.sources, d)).collect();
            return Manifest { refused, ..Manifest::default() };
        }
    };
    let warnings = script.warnings().iter().map(|d| told(script.sources(), d)).collect();
    let mut print = Vec::new();
    for (text, value) in script.prints() {
        print.push(match value {
            Ok(value) => Print { text, value: Some(value), error: None },
            Err(diagnostic) => Print { text, value: None, error: Some(told(script.sources(), &diagnostic)) },
        });
    }
    let texts: Vec<String> = script.assertions().map(|a| a.text.clone()).collect();
    let mut assert = Vec::new();
    for (i, text) in texts.into_iter().enumerate() {
        assert.push(match script.check(i, options) {
            Ok(outcome) => {
                assert_eq!(outcome.property_holds, outcome.counterexamples.is_empty(), "{text}");
                let counterexample = outcome.counterexamples.first().map(|c| witness(&script, c));
                Expected { text, holds: Some(outcome.holds), error: None, counterexample }
            }
            Err(diagnostic) => {
                let error = Some(told(script.sources(), &diagnostic));
                Expected { text, holds: None, error, counterexample: None }
            }
        });
    }
    Manifest { refused: Vec::new(), warnings, print, assert }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.iter().map(|i| quoted(i)).collect::<Vec<_>>().join(", "))
}

fn written(manifest: &Manifest) -> String {
    let mut out =
        String::from("# What `raddle csp check` has to answer; see crates/raddle-csp/tests/corpus.rs.\n");
    for (name, lines) in [("refused", &manifest.refused), ("warnings", &manifest.warnings)] {
        if !lines.is_empty() {
            let lines: Vec<String> = lines.iter().map(|line| format!("    {},\n", quoted(line))).collect();
            write!(out, "\n{name} = [\n{}]\n", lines.concat()).unwrap();
        }
    }
    for print in &manifest.print {
        write!(out, "\n[[print]]\ntext = {}\n", quoted(&print.text)).unwrap();
        for (name, text) in [("value", &print.value), ("error", &print.error)] {
            if let Some(text) = text {
                writeln!(out, "{name} = {}", quoted(text)).unwrap();
            }
        }
    }
    for expected in &manifest.assert {
        write!(out, "\n[[assert]]\ntext = {}\n", quoted(&expected.text)).unwrap();
        if let Some(holds) = expected.holds {
            writeln!(out, "holds = {holds}").unwrap();
        }
        if let Some(error) = &expected.error {
            writeln!(out, "error = {}", quoted(error)).unwrap();
        }
        if let Some(witness) = &expected.counterexample {
            write!(out, "[assert.counterexample]\nkind = {}\n", quoted(&witness.kind)).unwrap();
            if let Some(event) = &witness.event {
                writeln!(out, "event = {}", quoted(event)).unwrap();
            }
            write!(out, "trace = {}\nsteps = {}\n", list(&witness.trace), list(&witness.steps)).unwrap();
            if !witness.on_the_way.is_empty() {
                writeln!(out, "on_the_way = {}", list(&witness.on_the_way)).unwrap();
            }
        }
    }
    out
}

#[test]
fn every_script_gives_the_verdicts_of_its_manifest() {
    let scripts = scripts();
    assert!(scripts.len() >= 24, "the corpus has lost scripts: {}", scripts.len());
    let bless = std::env::var_os("RADDLE_BLESS").is_some();
    let only = std::env::var("RADDLE_ONLY").unwrap_or_default();
    let mut wrong = String::new();
    for path in scripts.iter().filter(|p| p.to_string_lossy().contains(&only)) {
        let found = observe(path, &CheckOptions::default());
        let manifest = path.with_extension("toml");
        if bless {
            std::fs::write(&manifest, written(&found)).expect("the corpus is writable");
            continue;
        }
        let text = std::fs::read_to_string(&manifest)
            .unwrap_or_else(|e| panic!("{} has no manifest: {e}", path.display()));
        let expected: Manifest =
            toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", manifest.display()));
        if expected != found {
            write!(wrong, "{}:\n{}", path.display(), written(&found)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "these scripts answer differently now:\n{wrong}");
}

/// What a counterexample says must not depend on how many threads looked for it.
#[test]
fn two_workers_give_the_same_counterexamples() {
    for name in
        ["appendix-a-2-1-deadlock.csp", "dining-philosophers.csp", "peterson.csp", "peg-solitaire.csp"]
    {
        let path = folder().join(name);
        let one = observe(&path, &CheckOptions::default());
        let two = observe(&path, &CheckOptions { workers: 2, ..CheckOptions::default() });
        assert_eq!(one, two, "{name}");
    }
}
