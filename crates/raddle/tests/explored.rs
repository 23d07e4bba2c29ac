//! Verdicts of exploration: every sixth case of the corpus that has one (every case with `RADDLE_TEST_CASES=all`, and by name), and all
//! that have golden output. The whole thing is `cargo xtask corpus --explore`.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::golden::{Golden, Source};
use xtask::corpus::run::Runner;
use xtask::corpus::{GOLDEN_VARIANT, known_failures, manifest};

const EVERY: usize = 6;

fn trials(everything: bool) -> anyhow::Result<Vec<Trial>> {
    let runner = Runner {
        raddle: PathBuf::from(env!("CARGO_BIN_EXE_raddle")),
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"),
        clang: xtask::project::newest("clang"),
    };
    let known = known_failures(&runner.corpus, "explore")?;
    let cases = manifest::all(&runner.corpus)?;
    let cases = cases.into_iter().filter(Runner::can_explore).filter(|case| !case.slow);
    let mut trials = Vec::new();
    for (number, case) in cases.enumerate() {
        let has_golden = Source::of(&case) == Some(Source::Explore) && case.beside("golden.json").exists();
        let due = everything || has_golden || number.is_multiple_of(EVERY);
        if !due || !runner.can(&case, GOLDEN_VARIANT) {
            continue;
        }
        let is_known = known.contains_key(&case.name);
        let runner = runner.clone();
        let trial = Trial::test(case.name.clone(), move || {
            let explored = runner.explore(&case, GOLDEN_VARIANT, Golden::Compare);
            explored.map_err(|error| Failed::from(format!("{error:#}")))
        });
        trials.push(trial.with_ignored_flag(is_known));
    }
    Ok(trials)
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    match trials(std::env::var("RADDLE_TEST_CASES").is_ok_and(|wanted| wanted == "all")) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("the corpus cannot be read: {error:#}");
            1.into()
        }
    }
}
