//! Golden output: beside every corpus program with findings lies what Raddle says about it, as text (`NAME.golden.txt`), JSON
//! (`NAME.golden.json`) and SARIF (`NAME.golden.sarif`). `cargo xtask corpus --bless` writes the files anew, and the difference is read
//! like any other change.
//!
//! Which of two racing threads comes first, and so which of several pairs of accesses is seen, is chance in a free run. Golden output
//! is that of a hunt whose recorded run a seed decides: one program, one seed, one text. For programs whose error only a
//! search finds it is that of an exploration, for those that break a property that of a hunt with the property. Where the first seed
//! does not show the error, the first one that does is taken ([`Attempt`]).
//!
//! What differs between machines and runs without meaning anything is taken out before: folders, addresses, offsets in modules,
//! numbers of events, everything about frames of libraries, and why attempts to stop both threads at once have failed. Ids
//! stay: that they are the same everywhere is their purpose.

use super::explored::{GOLDEN_STRATEGY, RUNS, STRATEGIES, shows_in_an_ending};
use super::manifest::{Case, Verdict};
use super::run::Runner;
use anyhow::{Context, bail};
use raddle_findings::Kind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What to do with golden files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Golden {
    /// Places and columns are those of the compiler that the files were made with; with another one they say nothing.
    Ignore,
    Compare,
    Bless,
}

/// What a golden text is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Hunt,
    Explore,
    Run,
    /// A hunt with the property beside the program.
    Property,
    /// What a hunt has to bring about itself.
    Provoke,
}

impl Source {
    /// The first one that owes findings about the case, if any does.
    pub fn of(case: &Case) -> Option<Source> {
        let owes = |verdicts: &[Verdict]| verdicts.iter().any(|&verdict| verdict != Verdict::Clean);
        let has = |kind| case.findings.iter().any(|entry| entry.kind == kind);
        if case.crashes() || owes(&case.predict) {
            return Some(Source::Hunt);
        }
        if Runner::can_explore(case) && case.explore.iter().any(|&verdict| shows_in_an_ending(verdict)) {
            return Some(Source::Explore);
        }
        let is_misused = has(Kind::LockMisuse) && !case.online.is_empty();
        if owes(&case.online) || is_misused || case.explore.contains(&Verdict::Race) {
            return Some(Source::Run);
        }
        if case.property.is_some() && has(Kind::PropertyViolation) {
            return Some(Source::Property);
        }
        owes(&case.provoke).then_some(Source::Provoke)
    }

    /// Is it compared where the corpus is hunted in?
    pub fn is_hunted(self) -> bool {
        matches!(self, Source::Hunt | Source::Property | Source::Provoke)
    }
}

/// One way to show a case's findings, the same each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// A hunt from a run that this seed decides.
    Hunt(u32),
    /// The same with the property beside the program.
    Property(u32),
    /// A hunt that goes on until so many runs have been made to show consequences: a livelock is no ending that exploring tells.
    Provoke(u32),
    Explore(&'static str),
    Run(u32),
    /// Also with the values that C11 lets atomics read.
    Weak(u32),
    /// Without any strategy: steered, fibers of one thread are never without an order.
    Free,
}

/// Seeds that are tried.
const SEEDS: std::ops::RangeInclusive<u32> = 1..=10;

/// Runs that a livelock is looked for in, few first: those that never end take their time.
const PROVOKED: [u32; 4] = [5, 10, 20, 50];

impl Attempt {
    /// One after the other, until one has findings.
    fn all(case: &Case, source: Source) -> Vec<Attempt> {
        match source {
            // Of a run that deadlocks itself nothing is predicted.
            Source::Hunt if case.crashes() => vec![Attempt::Hunt(1)],
            Source::Hunt => SEEDS.map(Attempt::Hunt).chain(STRATEGIES.map(Attempt::Explore)).collect(),
            Source::Property => SEEDS.map(Attempt::Property).collect(),
            Source::Explore => STRATEGIES.map(Attempt::Explore).to_vec(),
            Source::Provoke if case.provoke.contains(&Verdict::Livelock) => {
                PROVOKED.map(Attempt::Provoke).to_vec()
            }
            Source::Provoke => STRATEGIES.map(Attempt::Explore).to_vec(),
            Source::Run => {
                let steered = SEEDS.map(Attempt::Run).chain(SEEDS.map(Attempt::Weak));
                steered.chain([Attempt::Free]).collect()
            }
        }
    }

    /// The command that leaves what it finds in [`GOLDEN_FILE`].
    fn command(self, runner: &Runner, case: &Case, folder: &Path) -> anyhow::Result<Command> {
        let kept = ["--keep", "golden", "--output", GOLDEN_FILE];
        let hunt = |seed: u32, more: &[&str]| {
            let seed = seed.to_string();
            let steered = ["--strategy", GOLDEN_STRATEGY, "--seed", seed.as_str()];
            runner.hunt_command(case, folder, &[&kept[..], &steered, more].concat())
        };
        // What can be provoked within a time depends on the machine.
        let quiet = ["--provoke", "off"];
        let run = |options: &[&str]| {
            let mut command = Command::new(&runner.raddle);
            command.args(["run", "--quiet", "--output", GOLDEN_FILE]).args(options);
            command.args(["--", "./program"]).args(&case.args).current_dir(folder);
            command.env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "100");
            command
        };
        Ok(match self {
            Attempt::Hunt(seed) => hunt(seed, &quiet),
            Attempt::Provoke(runs) => hunt(1, &["--provoke", &runs.to_string()]),
            Attempt::Property(seed) => {
                let mut options: Vec<String> = quiet.map(str::to_owned).to_vec();
                for (option, file) in [("--aspects", &case.aspects), ("--property", &case.property)] {
                    if let Some(file) = file {
                        options.extend([option.to_owned(), case.folder.join(file).display().to_string()]);
                    }
                }
                hunt(seed, &options.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Attempt::Explore(strategy) => runner.golden_exploration(case, folder, strategy)?,
            Attempt::Run(seed) => run(&["--strategy", GOLDEN_STRATEGY, "--seed", &seed.to_string()]),
            Attempt::Weak(seed) => {
                run(&["--weak", "--strategy", GOLDEN_STRATEGY, "--seed", &seed.to_string()])
            }
            Attempt::Free => run(&[]),
        })
    }
}

/// Where the findings go that are rendered.
pub(super) const GOLDEN_FILE: &str = "golden.json";

const ENDINGS: [&str; 3] = ["golden.txt", "golden.json", "golden.sarif"];

impl Runner {
    /// Asks about a program that was built into this folder, compares what `raddle report` makes of the findings with the golden
    /// files of the case, or writes those.
    pub(super) fn golden(
        &self,
        case: &Case,
        source: Source,
        folder: &Path,
        golden: Golden,
    ) -> anyhow::Result<()> {
        if golden == Golden::Ignore {
            return Ok(());
        }
        let mut now = [None, None, None];
        // Where something else than the seed has a say, there is no one text to compare with.
        if !super::known_failures(&self.corpus, "golden")?.contains_key(&case.name) {
            for attempt in Attempt::all(case, source) {
                let command = attempt.command(self, case, folder)?;
                self.limited_output(command, case, RUNS.div_ceil(2))
                    .with_context(|| format!("{attempt:?}"))?;
                now = self.rendered(&folder.join(GOLDEN_FILE))?;
                if now[0].is_some() {
                    break;
                }
            }
            if now[0].is_none() {
                bail!("no golden output: nothing that is tried shows a finding");
            }
        }
        for (ending, text) in ENDINGS.into_iter().zip(now) {
            let path = case.beside(ending);
            let before = std::fs::read_to_string(&path).ok();
            match (golden, &text) {
                _ if before == text => {}
                (Golden::Bless, Some(text)) => std::fs::write(&path, text)?,
                (Golden::Bless, None) => std::fs::remove_file(&path)?,
                _ => bail!(
                    "{} differs; `cargo xtask corpus --bless` writes it anew\n{}",
                    path.display(),
                    difference(before.as_deref().unwrap_or(""), text.as_deref().unwrap_or(""))
                ),
            }
        }
        Ok(())
    }

    /// Text, JSON and SARIF of a findings file, normalised. `None`: it has no findings.
    fn rendered(&self, findings: &Path) -> anyhow::Result<[Option<String>; 3]> {
        let sarif = findings.with_extension("sarif");
        let corpus = self.corpus.canonicalize()?;
        let folders = [self.corpus.display().to_string(), corpus.display().to_string()];
        let settled = findings.with_extension("settled.json");
        std::fs::write(&settled, without_bystanders(&std::fs::read_to_string(findings)?)?)?;
        let findings = settled.as_path();
        // Where a line of prose is broken depends on the length of the paths in it: they are the same everywhere before that.
        let moved = findings.with_extension("moved.json");
        let words = std::fs::read_to_string(findings)?;
        std::fs::write(&moved, folders.iter().fold(words, |words, folder| words.replace(folder, "corpus")))?;
        let report = |options: &[&str], findings: &Path, folder: &Path| -> anyhow::Result<String> {
            let mut command = Command::new(&self.raddle);
            command.args(["--quiet", "--color", "never", "report"]).args(options).arg("--sarif").arg(&sarif);
            let output = command.arg(findings).current_dir(folder).output()?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let above = corpus.parent().context("the corpus lies in a folder")?;
        let text = report(&[], &moved, above)?;
        let json = report(&["--json"], findings, &corpus)?;
        let mut json: Value = serde_json::from_str(&json).context("raddle report --json")?;
        if json["findings"].as_array().is_none_or(Vec::is_empty) {
            return Ok([None, None, None]);
        }
        let mut sarif: Value = serde_json::from_str(&std::fs::read_to_string(&sarif)?)?;
        normalise(&mut json, &folders);
        normalise(&mut sarif, &folders);
        let lines: Vec<String> = without_attempts(&text).map(|line| plain(line, &folders)).collect();
        let pretty = |value: &Value| serde_json::to_string_pretty(value).map(|text| text + "\n");
        Ok([Some(lines.join("\n") + "\n"), Some(pretty(&json)?), Some(pretty(&sarif)?)])
    }
}

/// A findings file without the threads that a crash only happened to: between two of their operations they run free, so where they stood is
/// chance.
fn without_bystanders(text: &str) -> anyhow::Result<String> {
    let mut file: Value = serde_json::from_str(text).context("a findings file")?;
    for finding in file["findings"].as_array_mut().into_iter().flatten() {
        if !matches!(finding["kind"].as_str(), Some("crash" | "assertion-failure")) {
            continue;
        }
        if let Some(parties) = finding["parties"].as_array_mut() {
            parties.retain(|party| party["action"]["does"] == "crashes");
        }
    }
    Ok(serde_json::to_string_pretty(&file)?)
}

/// Notes about attempts are told differently each time: how far a replay came is chance.
fn is_attempt(line: &str) -> bool {
    ["= note: the replay ", "= note: in the replay ", "= note: not replayed"]
        .iter()
        .any(|note| line.contains(note))
}

/// The lines of a report without notes about attempts, which may go on below their first line.
fn without_attempts(text: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    text.lines().filter(move |line| {
        let goes_on = line.starts_with("        ") && !line.trim_start().starts_with("= ");
        within = is_attempt(line) || within && goes_on;
        !within
    })
}

/// Takes out of a value what differs without meaning anything.
fn normalise(value: &mut Value, folders: &[String]) {
    match value {
        Value::String(text) => {
            let lines: Vec<&str> =
                text.split('\n').filter(|line| !is_attempt(&format!("= note: {line}"))).collect();
            *text = plain(&lines.join("\n"), folders);
        }
        Value::Array(items) => {
            items.retain(|item| !item.as_str().is_some_and(|note| is_attempt(&format!("= note: {note}"))));
            items.iter_mut().for_each(|item| normalise(item, folders));
            items.dedup_by(|a, b| is_library(a) && is_library(b));
        }
        Value::Object(members) => {
            if members.get("library") == Some(&Value::Bool(true)) {
                members.retain(|name, _| name == "library");
            }
            if members.get("in").and_then(Value::as_str) == Some("global") {
                members.remove("offset");
            }
            for chance in ["address", "events", "attempts", "semanticVersion", "raddle"] {
                members.remove(chance);
            }
            // A place of SARIF outside of the corpus is one of a library.
            let foreign = |member: &Value| {
                member["artifactLocation"]["uri"]
                    .as_str()
                    .is_some_and(|uri| !folders.iter().any(|folder| Path::new(folder).join(uri).exists()))
            };
            if members.values().any(foreign) {
                members.clear();
                members.insert("library".into(), true.into());
            }
            members.values_mut().for_each(|member| normalise(member, folders));
            // Whether maps keep the order they were filled in is a feature of serde_json that any other crate of the build may ask for.
            let by_name: BTreeMap<String, Value> = std::mem::take(members).into_iter().collect();
            members.extend(by_name);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Is this a frame of a library, or a step of a thread flow there?
fn is_library(value: &Value) -> bool {
    value["library"] == true || value["location"]["library"] == true
}

/// A line without folders, addresses, and numbers of frames.
fn plain(line: &str, folders: &[String]) -> String {
    let mut line = line.to_owned();
    for folder in folders {
        line = line.replace(folder.as_str(), "corpus");
    }
    let mut text = String::new();
    let mut rest = line.as_str();
    while let Some(at) = rest.find("0x") {
        text.push_str(&rest[..at]);
        text.push_str("0xN");
        rest = rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    text.push_str(rest);
    let body = text.trim_start();
    let margin = &text[..text.len() - body.len()];
    match body.strip_prefix('#').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit())) {
        Some(call) => format!("{margin}#{call}"),
        None if body.starts_with("... ") && body.contains("library frame") => {
            format!("{margin}... library frames")
        }
        None => text,
    }
}

/// The first lines that differ.
fn difference(before: &str, now: &str) -> String {
    let (mut old, mut new) = (before.lines(), now.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                return format!("line {number}:\n- {}\n+ {}", a.unwrap_or("(end)"), b.unwrap_or("(end)"));
            }
        }
    }
    "they differ in nothing but ends of lines".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_taken_out() {
        let folders = ["/home/me/corpus".to_owned()];
        assert_eq!(plain("  #12 f at /home/me/corpus/a.c:3", &folders), "  # f at corpus/a.c:3");
        assert_eq!(plain("  ... 4 library frames", &folders), "  ... library frames");
        assert_eq!(plain("at x+0x1f, 0xa", &folders), "at x+0xN, 0xN");
        let mut value = serde_json::json!([
            {"library": true, "line": 1}, {"library": true, "line": 2}, {"function": "f", "line": 3}
        ]);
        normalise(&mut value, &folders);
        assert_eq!(value, serde_json::json!([{"library": true}, {"function": "f", "line": 3}]));
    }

    #[test]
    fn attempts_are_left_out_of_texts_of_several_lines() {
        let mut value = serde_json::json!({"text": "a race\nthe replay left the schedule\nseen 6 times", "notes": ["not replayed: x", "y"]});
        normalise(&mut value, &[]);
        assert_eq!(value, serde_json::json!({"text": "a race\nseen 6 times", "notes": ["y"]}));
    }

    #[test]
    fn attempts_are_left_out_to_their_last_line() {
        let report = "error: e\n   = note: unordered, also\n           in 2 replays\n   = note: the replay left\n           \
                      the schedule\n           at a.c:3\n   = note: seen 6 times\n   = note: not replayed\n\nwarning: w";
        let left: Vec<&str> = without_attempts(report).collect();
        let expected = [
            "error: e",
            "   = note: unordered, also",
            "           in 2 replays",
            "   = note: seen 6 times",
            "",
            "warning: w",
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn members_stand_in_the_order_of_their_names() {
        let mut value: Value = serde_json::from_str(r#"{"b": {"d": 1, "c": 2}, "a": 3}"#).unwrap();
        normalise(&mut value, &[]);
        assert_eq!(value.to_string(), r#"{"a":3,"b":{"c":2,"d":1}}"#);
    }

    #[test]
    fn differences_have_a_line() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2:\n- b\n+ c");
        assert_eq!(difference("a\n", ""), "line 1:\n- a\n+ (end)");
    }
}
