//! Concurrent Scheme: the abstract machine against the seconds and states of the paper's tables 1 and 2.
//!
//! The paper's numbers are from its own machine (OCaml, some year before 2016) and stand in the manifests of the corpus.
//! Ours are measured here: building the whole state graph with the paper's analyses, and the default analysis of eight
//! philosophers and of programs with twelve and fourteen threads. Both machines have one thread, so CPU time stands for seconds. The programs are our own versions of the paper's.

use super::{Bench, Limit, Outcome, Subject};
use crate::project;
use anyhow::Context;
use raddle_scheme::abs::space::Config;
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::finding::Verdict;
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, parse, tool};

/// The programs that the bar names.
const PROGRAMS: &[&str] =
    &["lock/pcounter3", "lock/deadlock3", "lock/incdec", "cas/pcounter", "cas/deadlock"];
/// Programs of many threads.
const LARGE: &[&str] = &["beyond/pcounter-12", "beyond/mutex-12", "beyond/indexer-14", "beyond/fs-14"];
const STATES_MAX: usize = 1_000_000;

fn load(name: &str) -> anyhow::Result<(Program, toml::Table)> {
    let path = project::root().join("corpus/scheme").join(name);
    let read = |extension: &str| {
        let path = path.with_extension(extension);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let program =
        parse(Source::new(name, read("scm")?)).map_err(|errors| anyhow::anyhow!("{name}: {errors:?}"))?;
    Ok((program, read("toml")?.parse()?))
}

/// What a manifest says of tables 1 and 2: without and with garbage collection.
fn table(manifest: &toml::Table, key: &str, gc: bool) -> anyhow::Result<f64> {
    let value = manifest
        .get("table")
        .and_then(|t| t.get(key))
        .and_then(|v| v.as_array())
        .and_then(|v| v.get(gc as usize));
    value.and_then(|v| v.as_integer()).map(|n| n as f64).with_context(|| format!("the manifest lacks {key}"))
}

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("scheme");
    for name in PROGRAMS {
        let (program, manifest) = load(name)?;
        for gc in [false, true] {
            let case = format!("{name}, {}", if gc { "with GC" } else { "without GC" });
            let config = Config::paper(0, gc);
            let mut states = 0;
            let analyse = || {
                let (report, _) = tool::paper_report(&program, config, STATES_MAX, &Clock::unlimited());
                states = report.phases[0].states;
            };
            let rows = bench.measure(&case, vec![Subject::function("--paper", analyse)])?;
            let ours = rows[0].cpu_s;
            outcome.rows.extend(rows);
            let (paper_seconds, paper_states) =
                (table(&manifest, "seconds", gc)?, table(&manifest, "states", gc)?);
            outcome.fact(&format!("{case}: seconds in the paper"), paper_seconds);
            outcome.fact(&format!("{case}: states"), states as f64);
            outcome.fact(&format!("{case}: states in the paper"), paper_states);
            outcome.bar(
                &format!("{case}: times faster than the paper"),
                paper_seconds / ours,
                Limit::AtLeast(100.0),
            );
            outcome.bar(
                &format!("{case}: states against the paper"),
                states as f64 / paper_states,
                Limit::AtMost(1.0),
            );
        }
    }
    let (program, _) = load("beyond/philosophers-8")?;
    let mut proven = false;
    let prove = || {
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        proven = matches!(report.verdict, Verdict::Clean(_));
    };
    let rows = bench.measure("8 philosophers", vec![Subject::function("default", prove)])?;
    anyhow::ensure!(proven, "eight philosophers are not proven clean");
    outcome.bar("8 philosophers proven, seconds", rows[0].wall_s, Limit::AtMost(10.0));
    outcome.rows.extend(rows);
    for name in LARGE {
        let (program, _) = load(name)?;
        let mut decided = false;
        let decide = || {
            let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
            decided = !matches!(report.verdict, Verdict::Unknown(_));
        };
        let rows = bench.measure(name, vec![Subject::function("default", decide)])?;
        anyhow::ensure!(decided, "{name} is not decided");
        outcome.bar(&format!("{name} decided, CPU seconds"), rows[0].cpu_s, Limit::AtMost(5.0));
        outcome.rows.extend(rows);
    }
    outcome.note("The paper's seconds were measured by its authors on their machine; only the order of magnitude compares.");
    Ok(outcome)
}
