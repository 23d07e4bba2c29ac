//! The corpus under `raddle run`: the races that happens-before can see in the timed order are reported with both stacks,
//! and correct programs are left in peace. Each case runs at `-O0`, where places can be compared; gcc and clang alternate, and where golden
//! output tells of such a run, it is compared.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::golden::{Golden, Source};
use xtask::corpus::run::Runner;
use xtask::corpus::{GOLDEN_VARIANT, half_matrix, known_failures, manifest};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let runner = Runner {
        raddle: PathBuf::from(env!("CARGO_BIN_EXE_raddle")),
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"),
        clang: xtask::project::newest("clang"),
    };
    match trials(&runner) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("the corpus cannot be read: {error:#}");
            1.into()
        }
    }
}

fn trials(runner: &Runner) -> anyhow::Result<Vec<Trial>> {
    let known = known_failures(&runner.corpus, "online")?;
    let mut trials = Vec::new();
    for (number, case) in manifest::all(&runner.corpus)?.into_iter().enumerate() {
        let mut variants = half_matrix(number);
        let has_golden = Source::of(&case) == Some(Source::Run);
        if has_golden && !variants.contains(&GOLDEN_VARIANT) {
            variants.push(GOLDEN_VARIANT);
        }
        for variant in variants {
            if case.online.is_empty()
                || case.slow
                || variant.optimisation != "-O0"
                || !runner.can(&case, variant)
            {
                continue;
            }
            let (runner, case) = (runner.clone(), case.clone());
            let name = format!("{}::{}", case.name, variant.compiler);
            // A known failure is shown as ignored, with its reason in the list; `--ignored` runs it.
            let is_known = known.contains_key(&case.name);
            let trial = Trial::test(name, move || {
                let golden = if variant == GOLDEN_VARIANT { Golden::Compare } else { Golden::Ignore };
                let checked = runner.online(&case, variant, golden);
                checked.map_err(|error| Failed::from(format!("{variant}: {error:#}")))
            });
            trials.push(trial.with_ignored_flag(is_known));
        }
    }
    Ok(trials)
}
