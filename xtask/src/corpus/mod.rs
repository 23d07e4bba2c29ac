//! The corpus runner: builds every program with gcc and clang, natively and with `raddle cc`, runs both, and compares.
//!
//! The full matrix (two compilers, `-O0` and `-O2`, with and without address randomisation) is `cargo xtask corpus`. The
//! default test run takes a half of it: each case once with each compiler, at alternating optimisation levels.

pub mod evidence;
pub mod explored;
pub mod golden;
pub mod hunt;
pub mod innocent;
mod kinds;
pub mod manifest;
pub mod online;
pub mod run;
pub mod steered;

use self::golden::{Golden, Source};
use crate::project;
use anyhow::{Context, bail};
use manifest::Case;
use run::{Runner, Variant};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run the programs of the corpus natively and recorded, and compare.
#[derive(clap::Args)]
pub struct Args {
    /// Only cases whose name contains one of these.
    filters: Vec<String>,
    /// Cases at the same time.
    #[arg(long, short, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Each case only twice, as the default test run does.
    #[arg(long)]
    half: bool,
    /// Instead: run each case so many times with one seed under every strategy that a seed controls, and see that all
    /// runs are the same.
    #[arg(long, value_name = "N", conflicts_with = "half")]
    determinism: Option<u32>,
    /// Instead: record a demo of each case under `queue` and `random`, and see that so many replays are the same.
    #[arg(long, value_name = "N", conflicts_with = "half")]
    replay: Option<u32>,
    /// Instead: explore each case with so many seeds in kept processes and in forked ones, and see that they agree in schedules,
    /// outcomes and output.
    #[arg(long, value_name = "N", conflicts_with_all = ["half", "determinism", "replay", "evidence"])]
    modes: Option<u32>,
    /// Instead: hunt in and explore each case in which something can be confirmed, with gcc and clang, and see that so many replays
    /// from the store show every confirmed finding, also from a folder that was moved.
    #[arg(long, value_name = "N", conflicts_with_all = ["half", "determinism", "replay"])]
    evidence: Option<u32>,
    /// With --evidence: hunt with every recording option in each case (default: with one, another one in the next case).
    #[arg(long, requires = "evidence")]
    every_option: bool,
    /// With --evidence: only what this compiler builds.
    #[arg(long, value_name = "COMPILER", requires = "evidence", value_parser = ["gcc", "clang"])]
    compiler: Option<String>,
    /// Instead: explore each case that has a verdict of exploration, and compare.
    #[arg(long, conflicts_with_all = ["half", "determinism", "replay", "evidence"])]
    explore: bool,
    /// Instead: ask every command about the correct programs whose synchronisation Raddle cannot see, built by both compilers at both
    /// levels, and see that nothing is called confirmed or unordered.
    #[arg(long, conflicts_with_all = ["half", "determinism", "replay", "evidence", "explore"])]
    innocent: bool,
    /// Instead: hunt in (or explore) each case that has findings, and write its golden files anew.
    #[arg(long, conflicts_with_all = ["half", "determinism", "replay", "evidence", "explore", "innocent"])]
    bless: bool,
    /// Use this raddle instead of building one.
    #[arg(long, value_name = "PATH")]
    raddle: Option<std::path::PathBuf>,
}

/// What golden files are made with.
pub const GOLDEN_VARIANT: Variant =
    Variant { compiler: "clang", optimisation: "-O0", fixed_addresses: false };

/// Every variant.
pub fn full_matrix() -> Vec<Variant> {
    let mut variants = Vec::new();
    for compiler in ["gcc", "clang"] {
        for optimisation in ["-O0", "-O2"] {
            for fixed_addresses in [false, true] {
                variants.push(Variant { compiler, optimisation, fixed_addresses });
            }
        }
    }
    variants
}

/// The two variants of the `number`-th case in the default test run.
pub fn half_matrix(number: usize) -> Vec<Variant> {
    let levels = if number.is_multiple_of(2) { ["-O0", "-O2"] } else { ["-O2", "-O0"] };
    ["gcc", "clang"]
        .into_iter()
        .zip(levels)
        .map(|(compiler, optimisation)| Variant { compiler, optimisation, fixed_addresses: false })
        .collect()
}

/// Cases in which Raddle is known to fall short, with the reason: one `TOOL NAME reason` a line, `record`, `hunt`, `golden`,
/// `explore`, `online`, `determinism` or `replay` being the tool.
pub fn known_failures(corpus: &std::path::Path, tool: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let path = corpus.join("known-failures.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut known = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (Some(of), Some(name), Some(reason)) = (words.next(), words.next(), words.next()) else {
            bail!("{}: `{line}` is not `TOOL NAME reason`", path.display());
        };
        if of == tool {
            known.insert(name.to_owned(), reason.to_owned());
        }
    }
    Ok(known)
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let runner = Runner {
        raddle: match &args.raddle {
            Some(path) => std::path::absolute(path)?,
            None => project::release_raddle()?,
        },
        corpus: project::root().join("corpus"),
        clang: project::newest("clang"),
    };
    let cases = manifest::all(&runner.corpus)?;
    let wanted =
        |case: &Case| args.filters.is_empty() || args.filters.iter().any(|part| case.name.contains(part));
    if args.bless {
        let clang = runner.clang.is_some();
        anyhow::ensure!(clang, "golden files are made with clang, which is not installed");
        let has_golden = |case: &Case| Source::of(case).is_some();
        let cases: Vec<&Case> = cases
            .iter()
            .filter(|case| wanted(case) && has_golden(case) && runner.can(case, GOLDEN_VARIANT))
            .collect();
        let failures = run_jobs(&cases, args.jobs.max(1), |case| {
            let blessed = match Source::of(case) {
                Some(source) if source.is_hunted() => runner.hunt(case, GOLDEN_VARIANT, Golden::Bless),
                Some(Source::Explore) => runner.explore(case, GOLDEN_VARIANT, Golden::Bless),
                Some(_) => runner.online(case, GOLDEN_VARIANT, Golden::Bless),
                None => Ok(()),
            };
            blessed.map_err(|error| (case.name.clone(), error))
        });
        return conclude(cases.len(), &failures);
    }
    if args.explore {
        return run_explored(&runner, args, cases.iter().filter(|case| wanted(case)));
    }
    if args.innocent {
        let jobs: Vec<(&Case, Variant)> = cases
            .iter()
            .filter(|case| wanted(case) && Runner::is_innocent(case))
            .flat_map(|case| full_matrix().into_iter().map(move |variant| (case, variant)))
            .filter(|(case, variant)| !variant.fixed_addresses && runner.can(case, *variant))
            .collect();
        let failures = run_jobs(&jobs, args.jobs.max(1), |(case, variant)| {
            let asked = runner.innocent(case, *variant);
            asked.map_err(|error| (format!("{} ({variant})", case.name), error))
        });
        return conclude(jobs.len(), &failures);
    }
    if let Some(replays) = args.evidence {
        return run_evidence(&runner, args, &cases, replays, wanted);
    }
    if let Some(check) = steered_check(args) {
        return run_steered(&runner, args, cases.iter().filter(|case| wanted(case)).collect(), check);
    }
    let jobs: Vec<(&Case, Variant)> = cases
        .iter()
        .enumerate()
        .filter(|(_, case)| wanted(case) && !(args.half && case.slow))
        .flat_map(|(number, case)| {
            let variants = if args.half { half_matrix(number) } else { full_matrix() };
            variants.into_iter().map(move |variant| (case, variant))
        })
        .filter(|(case, variant)| runner.can(case, *variant))
        .collect();
    let failures = run_jobs(&jobs, args.jobs.max(1), |(case, variant)| {
        runner.check(case, *variant).map_err(|error| (format!("{} ({variant})", case.name), error))
    });
    conclude(jobs.len(), &failures)
}

/// What is asked of steered runs, if anything is.
fn steered_check(args: &Args) -> Option<steered::Check> {
    let determinism = args.determinism.map(steered::Check::Determinism);
    let modes = args.modes.map(steered::Check::Modes);
    determinism.or(args.replay.map(steered::Check::Replay)).or(modes)
}

fn run_evidence(
    runner: &Runner,
    args: &Args,
    cases: &[Case],
    replays: u32,
    wanted: impl Fn(&Case) -> bool,
) -> anyhow::Result<()> {
    let other = cases.iter().find(|case| case.name == evidence::OTHER).context(evidence::OTHER)?;
    let tally = evidence::Tally::default();
    let check = evidence::Check { replays, every_option: args.every_option, other, tally: &tally };
    let named = !args.filters.is_empty();
    let jobs: Vec<(usize, &Case, Variant)> = cases
        .iter()
        .filter(|case| wanted(case) && evidence::Check::applies(case) && (named || !case.slow))
        .enumerate()
        .flat_map(|(number, case)| ["gcc", "clang"].map(|compiler| (number, case, compiler)))
        .filter(|(_, _, compiler)| args.compiler.as_ref().is_none_or(|wanted| wanted == compiler))
        .map(|(number, case, compiler)| (number, case, evidence::variant(number, compiler)))
        .filter(|(_, case, variant)| runner.can(case, *variant))
        .collect();
    let failures = run_jobs(&jobs, args.jobs.max(1), |&(number, case, variant)| {
        let checked = check.run(runner, case, variant, number);
        if checked.is_ok() {
            // It takes hours, and whoever watches wants to know how far it is.
            eprintln!("{} ({variant}): all shown again", case.name);
        }
        checked.map_err(|error| (format!("{} ({variant})", case.name), error))
    });
    let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
    println!(
        "corpus: {} confirmed findings were asked for, {} replays in all",
        count(&tally.findings),
        count(&tally.replays)
    );
    conclude(jobs.len(), &failures)
}

fn run_explored<'a>(
    runner: &Runner,
    args: &Args,
    cases: impl Iterator<Item = &'a Case>,
) -> anyhow::Result<()> {
    let known = known_failures(&runner.corpus, "explore")?;
    let named = !args.filters.is_empty();
    let cases: Vec<&Case> = cases
        .filter(|case| Runner::can_explore(case) && runner.can(case, GOLDEN_VARIANT))
        .filter(|case| named || !case.slow && !known.contains_key(&case.name))
        .collect();
    let failures = run_jobs(&cases, args.jobs.max(1), |case| {
        runner.explore(case, GOLDEN_VARIANT, Golden::Compare).map_err(|error| (case.name.clone(), error))
    });
    conclude(cases.len(), &failures)
}

fn run_steered(runner: &Runner, args: &Args, cases: Vec<&Case>, check: steered::Check) -> anyhow::Result<()> {
    let known = known_failures(&runner.corpus, check.tool())?;
    let named = !args.filters.is_empty();
    let (skipped, cases): (Vec<&Case>, Vec<&Case>) = cases
        .into_iter()
        .filter(|case| check.applies(case) && (named || !case.slow))
        .partition(|case| known.contains_key(&case.name) && !named);
    for case in &skipped {
        println!("known to fall short: {}: {}", case.name, known[&case.name]);
    }
    let failures = run_jobs(&cases, args.jobs.max(1), |case| {
        steered::check(runner, case, check).map_err(|error| (case.name.clone(), error))
    });
    conclude(cases.len(), &failures)
}

fn conclude(count: usize, failures: &[(String, anyhow::Error)]) -> anyhow::Result<()> {
    for (name, error) in failures {
        println!("FAILED {name}: {error:#}\n");
    }
    println!("corpus: {count} runs, {} failed", failures.len());
    if !failures.is_empty() {
        bail!("the corpus does not hold");
    }
    Ok(())
}

fn run_jobs<J: Sync>(
    jobs: &[J],
    threads: usize,
    check: impl Fn(&J) -> Result<(), (String, anyhow::Error)> + Sync,
) -> Vec<(String, anyhow::Error)> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err((name, error)) = check(job) {
                        eprintln!("{name}: {error:#}");
                        failures.lock().expect("no thread panics while it holds this").push((name, error));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no thread panicked");
    failures.sort_by(|a, b| a.0.cmp(&b.0));
    failures
}
