//! `raddle cargo`, called as `cargo raddle`: Rust programs and tests.
//!
//! `run`, `hunt`, `explore` and `record` are `cargo run` with the command of that name as cargo's runner; [`test`] builds the tests
//! and hunts each in a process of its own. [`building`] has what all of them share: the environment in which cargo builds.
//! Options that the command itself knows are taken from the line (`words.rs`), everything else is cargo's.

mod building;
mod test;
mod words;

pub use building::as_rustc;

use super::{Ctx, Exit};
use crate::compiler::Refusal;
use anyhow::Context;
use building::Building;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

/// Builds Rust programs so that Raddle can watch them, and runs a command on them. Called as `cargo raddle`.
///
///   cargo raddle test [NAME]      hunt each test in a process of its own
///   cargo raddle run              detect errors while the program runs
///   cargo raddle hunt             record, predict, confirm, report
///   cargo raddle explore          many runs in different orders
///   cargo raddle record           keep a trace
///   cargo raddle build            only build, as `cargo build` does
///   cargo raddle nextest run      cargo-nextest with `raddle run` as its runner
///   cargo raddle clean            remove the build folder
///
/// Other commands (`replay`, `report`, `explain`, ...) are those of `raddle`. Options of the command and of cargo may be mixed;
/// words behind `--` are the program's. Builds go to target/raddle; the user's own builds are not touched. The standard library
/// is built once for each toolchain, from the component rust-src.
///
///   --std locks|plain             standard library: instrumented and with locks that prediction sees (default), or instrumented
///                                 as it is
///   --mode hunt|run|explore       what `test` does with each test (default: hunt)
///   --test-threads N              tests at the same time (default: 1)
///
/// Examples:
///   cargo raddle test
///   cargo raddle test -p bank --features audit transfer -- --skip slow
///   cargo raddle test --mode explore --runs 200
///   cargo raddle run --release --bin server -- --selftest
#[derive(clap::Args)]
#[command(verbatim_doc_comment, disable_help_flag = true)]
pub struct Args {
    /// The command, its options and cargo's.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND [ARGS]")]
    words: Vec<OsString>,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut words = args.words;
    let command = if words.is_empty() { "--help".into() } else { words.remove(0) };
    let name = command.to_string_lossy().into_owned();
    match name.as_str() {
        "--help" | "-h" | "help" => become_raddle("help", &["cargo".into()]),
        "test" | "t" => test::run(words, ctx),
        "run" | "hunt" | "explore" | "record" => run_program(&name, words, ctx),
        "build" => {
            let (building, words) = Building::prepare(words, ctx)?;
            status(building.cargo("build").args(words))
        }
        "nextest" => {
            let (building, words) = Building::prepare(words, ctx)?;
            let mut cargo = building.cargo("nextest");
            // `--target` stands behind nextest's own subcommand.
            let (first, rest) =
                words.split_first().context("say what nextest is to do: `cargo raddle nextest run`")?;
            cargo.arg(first).args(["--target", building.target()]);
            cargo.arg("--config").arg(building.runner(&["run".into(), "-q".into(), "--".into()])?);
            status(cargo.args(rest))
        }
        "clean" => building::clean(&words, ctx),
        "bench" => Err(Refusal(
            "benchmarks measure time, which is not what Raddle keeps; run them with cargo".into(),
        )
        .into()),
        "replay" | "report" | "explain" | "predict" | "detect" | "coverage" | "trace" => {
            become_raddle(&name, &words)
        }
        _ => {
            Err(Refusal(format!("`cargo raddle` has no command `{name}`; `cargo raddle --help` lists them"))
                .into())
        }
    }
}

/// `cargo run` with one of Raddle's commands in front of the program.
fn run_program(command: &str, words: Vec<OsString>, ctx: &Ctx) -> anyhow::Result<Exit> {
    let known = words::of_command(command);
    let (own, words) = words::split(&known, words);
    let (building, words) = Building::prepare(words, ctx)?;
    let mut runner: Vec<OsString> = vec![command.into()];
    runner.extend(own);
    runner.push("--".into());
    let mut cargo = building.cargo("run");
    cargo.args(["--target", building.target()]).arg("--config").arg(building.runner(&runner)?);
    // What cargo says about the runner's status is of no use: findings are no failure of the build.
    status(cargo.arg("--quiet").args(words))
}

fn become_raddle(command: &str, words: &[OsString]) -> anyhow::Result<Exit> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let error = Command::new(own).arg(command).args(words).exec();
    Err(error).context("cannot start raddle")
}

fn status(command: &mut Command) -> anyhow::Result<Exit> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Exit::Status(u8::try_from(code).unwrap_or(u8::MAX)))
}
