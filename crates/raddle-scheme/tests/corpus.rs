//! Every program of the corpus against its manifest.
//!
//! With the paper's analyses: the verdicts of tables 3 to 6. By default: what the manifest says, which for programs
//! small enough to explore must also be the verdict of the exhaustive concrete exploration, with every confirmed finding
//! replayed from its schedule as text.

#[path = "common/truth.rs"]
mod truth;

use raddle_scheme::abs::space::Config;
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::explore::explore;
use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{Finding, Grade, Kind, Report, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, parse, render, tool};
use std::path::{Path, PathBuf};
use truth::{told, truth};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/scheme")
}

fn programs(folder: &str) -> Vec<(String, Program, toml::Table)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(corpus().join(folder)).expect("the corpus is there") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "scm") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let manifest = std::fs::read_to_string(path.with_extension("toml"))
            .unwrap_or_else(|_| panic!("{} has no manifest", path.display()));
        let name = format!("{folder}/{}", path.file_stem().expect("a name").to_string_lossy());
        let program =
            parse(Source::new(name.clone(), text)).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        out.push((name, program, manifest.parse().expect("the manifest is TOML")));
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!out.is_empty());
    out
}

fn number(table: &toml::Table, section: &str, key: &str) -> Option<usize> {
    table.get(section)?.get(key)?.as_integer().map(|n| n as usize)
}

#[test]
fn tables_3_to_6() {
    let mut wrong = Vec::new();
    for folder in ["cas", "lock"] {
        for (name, program, manifest) in programs(folder) {
            for gc in [false, true] {
                let (_, verdicts) =
                    tool::paper_report(&program, Config::paper(0, gc), 300_000, &Clock::unlimited());
                let found = (verdicts.races_found(), verdicts.deadlocks_found());
                for (what, found) in [("races", found.0), ("deadlocks", found.1)] {
                    if let Some(expected) = number(&manifest, "paper", what)
                        && found != expected
                    {
                        wrong.push(format!("{name} (gc {gc}): {found} {what}, the paper finds {expected}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tables 1 and 2: never more states than the paper's machine, without and with garbage collection.
#[test]
fn no_more_states_than_tables_1_and_2() {
    for folder in ["cas", "lock"] {
        for (name, program, manifest) in programs(folder) {
            let Some(states) = manifest.get("table").and_then(|t| t.get("states")).and_then(|s| s.as_array())
            else {
                continue;
            };
            for cost in tool::costs(
                &program,
                Config::paper(0, false),
                300_000,
                std::time::Duration::from_secs(3_000),
                &Clock::unlimited(),
            ) {
                let limit = states[cost.gc as usize].as_integer().expect("a number") as usize;
                assert!(
                    cost.states <= limit,
                    "{name} (gc {}): {} states, the paper has {limit}",
                    cost.gc,
                    cost.states
                );
            }
        }
    }
}

/// Tables 1 and 2: the direction in which garbage collection moves the number of states, in every row.
#[test]
fn garbage_collection_acts_as_in_tables_1_and_2() {
    let (mut different, mut rows) = (Vec::new(), 0);
    for folder in ["cas", "lock"] {
        for (name, program, manifest) in programs(folder) {
            let Some(states) = manifest.get("table").and_then(|t| t.get("states")).and_then(|s| s.as_array())
            else {
                continue;
            };
            let paper: Vec<i64> = states.iter().filter_map(|n| n.as_integer()).collect();
            let budget = std::time::Duration::from_secs(3_000);
            let costs = tool::costs(&program, Config::paper(0, false), 300_000, budget, &Clock::unlimited());
            rows += 1;
            if costs[1].states.cmp(&costs[0].states) != paper[1].cmp(&paper[0]) {
                different.push(format!(
                    "{name}: {} to {}, in the paper {paper:?}",
                    costs[0].states, costs[1].states
                ));
            }
        }
    }
    assert_eq!(rows, 25, "tables 1 and 2 have 14 and 11 rows");
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn counts(report: &Report) -> Vec<(&'static str, usize)> {
    vec![
        ("races", report.count(Kind::Race)),
        ("benign", report.findings.len() - report.serious()),
        ("deadlocks", report.count(Kind::Deadlock)),
        ("livelocks", report.count(Kind::Livelock)),
        ("unretried", report.count(Kind::UnretriedCas)),
        ("errors", report.count(Kind::Error)),
    ]
}

fn verdict(report: &Report) -> &'static str {
    match report.verdict {
        Verdict::Clean(_) => "clean",
        Verdict::Found => "found",
        Verdict::Unknown(_) => "unknown",
    }
}

/// A confirmed finding happens again when its schedule is read back and followed.
fn replay(program: &Program, finding: &Finding) {
    let schedule = finding.schedule.as_ref().expect("confirmed findings have a schedule");
    let schedule = Schedule::parse(&schedule.text(&finding.message)).expect("what we write we read");
    let run =
        run(&Machine::new(program), Scheduler::Replay(schedule), 0, 100_000, &Clock::unlimited(), |_| {});
    let ending = run.ending;
    let shows = match (finding.kind, &ending) {
        (Kind::Race, Ending::ScheduleEnds { race, .. }) => race.is_some(),
        (Kind::Deadlock, Ending::Deadlock(stuck)) => stuck.len() == finding.parts.len(),
        (Kind::Deadlock, Ending::Failed { .. }) => run.waiting.len() == finding.parts.len(),
        (Kind::Livelock, Ending::ScheduleEnds { .. }) => true,
        (Kind::UnretriedCas, Ending::ScheduleEnds { .. } | Ending::Finished(_) | Ending::Deadlock(_)) => true,
        (Kind::Error, Ending::Failed { message, .. }) => *message == finding.message,
        _ => false,
    };
    assert!(shows, "{}: {} replays to {ending:?}", program.source.name, finding.message);
}

fn check_default(name: &str, program: &Program, manifest: &toml::Table, wrong: &mut Vec<String>) {
    // Smaller limits than the user's: what can be decided is decided within them, and the test stays quick.
    let options = Options {
        abstract_states_max: 5_000,
        concrete_states_max: 30_000,
        runs_max: 1_000,
        timeout: std::time::Duration::from_secs(3_000),
        ..Options::default()
    };
    let clock = Clock::new(Some(options.timeout), Default::default());
    let report = analyze(program, &options, &clock, &mut |_| {});
    let mut expect = |what: &str, found: String, expected: String| {
        if found != expected {
            wrong.push(format!("{name}: {what} {found}, expected {expected} ({:?})", report.verdict));
        }
    };
    let section = manifest.get("default").expect("a manifest has a default section");
    let expected = section.get("verdict").and_then(|v| v.as_str()).expect("a verdict");
    expect("verdict", verdict(&report).to_owned(), expected.to_owned());
    for (key, found) in counts(&report) {
        if let Some(count) = number(manifest, "default", key) {
            expect(key, found.to_string(), count.to_string());
        }
    }
    let names = |key: &str| -> Vec<String> {
        let list = section.get(key).and_then(|v| v.as_array()).cloned().unwrap_or_default();
        list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    let racy = |var: &str| {
        report.findings.iter().any(|f| f.kind == Kind::Race && f.message.contains(&format!(" of {var} ")))
    };
    for var in names("racy") {
        expect(&format!("race on {var}"), racy(&var).to_string(), "true".to_owned());
    }
    for var in names("free_of_races") {
        expect(&format!("race on {var}"), racy(&var).to_string(), "false".to_owned());
    }
    for finding in &report.findings {
        assert!(!render::finding(&program.source, finding, false).is_empty());
        if finding.grade == Grade::Confirmed {
            replay(program, finding);
        }
    }
    if section.get("large").is_some() {
        // Only the searches that reduce come to an end here.
        return;
    }
    let exploration = explore(&Machine::new(program), 20_000, &Clock::unlimited());
    if exploration.incomplete.is_none() {
        let (ours, true_ones) = (told(&report), truth(program, &exploration));
        expect("race, deadlock, livelock, unretried, error", format!("{ours:?}"), format!("{true_ones:?}"));
        let suspected = report.findings.iter().filter(|f| f.grade == Grade::Suspected).count();
        expect("suspects of an explored program", suspected.to_string(), "0".to_owned());
    }
}

fn check_folder(folder: &str) {
    let mut wrong = Vec::new();
    for (name, program, manifest) in programs(folder) {
        check_default(&name, &program, &manifest, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn default_cas() {
    check_folder("cas");
}

#[test]
fn default_lock() {
    check_folder("lock");
}

#[test]
fn default_beyond() {
    check_folder("beyond");
}

/// The point of the modular phase: eight philosophers cost about twice as much as four, not their square.
#[test]
fn modular_work_grows_with_the_sum() {
    let contexts = |n: usize| {
        let path = corpus().join(format!("beyond/philosophers-{n}.scm"));
        let program =
            parse(Source::new("p", std::fs::read_to_string(path).expect("there"))).expect("well formed");
        let outcome = raddle_scheme::modular::analyze(&program, 1, &Clock::unlimited());
        assert!(
            outcome.races.is_empty() && outcome.deadlocks.is_empty() && !outcome.spins,
            "{n} philosophers"
        );
        outcome.contexts
    };
    assert!(contexts(8) < 3 * contexts(4));
}
