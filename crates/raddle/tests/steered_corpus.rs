//! Steered runs of the corpus in the default test run: the same seed gives the same run, and demos are given again. Every sixth
//! case of some folders, the programs for replays and those that once failed, a few times; with `RADDLE_TEST_CASES=N` all cases, N times. The whole thing at any size is
//! `cargo xtask corpus --determinism N` and `--replay N`.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::run::Runner;
use xtask::corpus::steered::{self, Check};
use xtask::corpus::{known_failures, manifest};

const RUNS: u32 = 4;
/// Enough for a kept process to be compared, trusted, and left to itself for a while.
const MODE_RUNS: u32 = 60;
const EVERY: usize = 6;
/// Cases that once fell short: handles that hash differently, cancellation, clocks, a first thread that ends first, freed
/// memory, waiting for children, random bytes, signals.
const ONCE_FAILED: [(&str, &str); 14] = [
    ("replay", "primitives/cpp20_latch_barrier"),
    ("replay", "primitives/pthread_cancel"),
    ("replay", "primitives/pthread_cancel_async"),
    ("replay", "transparency/cancel_cpp"),
    ("replay", "transparency/cancel_many"),
    ("determinism", "primitives/cpp20_semaphore"),
    ("determinism", "primitives/pthread_exit_main"),
    ("determinism", "primitives/use_after_free"),
    ("determinism", "primitives/signals"),
    ("determinism", "transparency/fork_locked"),
    ("determinism", "transparency/signal_storm"),
    ("determinism", "transparency/wait_family"),
    ("determinism", "explore/random_keys"),
    ("replay", "transparency/wait_family"),
];
const SAMPLED: [&str; 5] = ["classes/", "deadlock/", "explore/", "figures/", "litmus/"];

fn trials() -> anyhow::Result<Vec<Trial>> {
    let runner = Runner {
        raddle: PathBuf::from(env!("CARGO_BIN_EXE_raddle")),
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"),
        clang: xtask::project::newest("clang"),
    };
    let asked = std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok());
    let runs = asked.unwrap_or(RUNS);
    let mut trials = Vec::new();
    for check in [Check::Determinism(runs), Check::Replay(runs), Check::Modes(runs.max(MODE_RUNS))] {
        let known = known_failures(&runner.corpus, check.tool())?;
        let cases = manifest::all(&runner.corpus)?;
        let cases = cases.into_iter().filter(|case| !case.slow && check.applies(case));
        for (number, case) in cases.enumerate() {
            let sampled = SAMPLED.iter().any(|folder| case.name.starts_with(folder)) && number % EVERY == 0;
            let due = match check {
                _ if asked.is_some() => true,
                _ if ONCE_FAILED.contains(&(check.tool(), &case.name)) => true,
                Check::Determinism(_) | Check::Modes(_) => sampled,
                // What is there for replays is always replayed.
                Check::Replay(_) => case.name.starts_with("replay/"),
            };
            if !due {
                continue;
            }
            let is_known = known.contains_key(&case.name);
            let runner = runner.clone();
            let trial = Trial::test(format!("{}::{}", check.tool(), case.name), move || {
                steered::check(&runner, &case, check).map_err(|error| Failed::from(format!("{error:#}")))
            });
            trials.push(trial.with_ignored_flag(is_known));
        }
    }
    Ok(trials)
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("the corpus cannot be read: {error:#}");
            1.into()
        }
    }
}
