//! `cargo raddle test`: each test in a process of its own, and each hunted.
//!
//! The tests are built by cargo and listed as nextest lists them. A test is then the program `BINARY --exact NAME --test-threads=1`:
//! libtest then has one thread of its own, the main thread, which starts the test and waits for it. For each one this program
//! starts itself as `raddle hunt` (or `run`, `explore`), takes the findings from a file, and shows them under the test's name.

use super::super::{Ctx, Exit};
use super::building::Building;
use super::words;
use crate::compiler::Refusal;
use crate::interrupt;
use crate::output::{Heard, OutputArgs, Reporter, Stream};
use anyhow::Context;
use clap::{CommandFactory, Parser};
use raddle_cargo::artifacts::{self, Executable};
use raddle_findings::{Finding, FindingsFile};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Options of `cargo raddle test` itself.
#[derive(Parser)]
#[command(name = "cargo raddle test", no_binary_name = true)]
struct Options {
    /// What is done with each test.
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Tests at the same time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    test_threads: usize,
    /// Build the tests, but run none.
    #[arg(long)]
    no_run: bool,
    /// The store: the folder in which findings and their schedules are kept.
    #[arg(long, value_name = "DIR", default_value = raddle_findings::store::FOLDER)]
    keep: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    #[default]
    Hunt,
    Run,
    Explore,
}

impl Mode {
    fn command(self) -> &'static str {
        match self {
            Mode::Hunt => "hunt",
            Mode::Run => "run",
            Mode::Explore => "explore",
        }
    }
}

/// One test.
struct Test<'a> {
    executable: &'a Executable,
    name: String,
}

impl Test<'_> {
    fn full_name(&self) -> String {
        format!("{} {}", self.executable.name, self.name)
    }
}

/// How a test ended.
struct Ended {
    /// Its place in the list.
    number: usize,
    findings: Vec<Finding>,
    /// The test itself failed.
    failed: bool,
    /// Raddle could not do its work.
    trouble: bool,
    /// What was printed, by the test and by Raddle.
    printed: String,
}

pub fn run(line: Vec<OsString>, ctx: &Ctx) -> anyhow::Result<Exit> {
    let (own, line) = words::split(&words::of(&Options::command()), line);
    let options =
        Options::try_parse_from(own).map_err(|error| Refusal(error.to_string().trim().to_owned()))?;
    let (for_each, line) = words::split(&words::of_command(options.mode.command()), line);
    let (building, line) = Building::prepare(line, ctx)?;
    let (cargo_words, filter, test_words) = words::test_line(line);
    if cargo_words.iter().any(|word| word == "--doc") {
        return Err(Refusal(
            "documentation tests cannot be watched; run them with `cargo test --doc`".into(),
        )
        .into());
    }
    let executables = build(&building, &cargo_words)?;
    let mut tests = Vec::new();
    for executable in &executables {
        for name in list(executable, filter.as_ref(), &test_words)? {
            tests.push(Test { executable, name });
        }
    }
    if options.no_run {
        return Ok(Exit::Clean);
    }
    let mut reporter = Reporter::new("test", &options.output, Stream::Stdout, ctx)?;
    interrupt::watch()?;
    let work = Work {
        options: &options,
        for_each: &for_each,
        ignored: test_words.iter().any(|word| word == "--ignored" || word == "--include-ignored"),
        keep: std::path::absolute(&options.keep)?,
        scratch: tempfile::tempdir()?,
    };
    let (mut failed, mut trouble) = (0_usize, 0_usize);
    work.run_all(&tests, |ended| {
        let name = tests[ended.number].full_name();
        let word = match (&ended.findings[..], ended.failed, ended.trouble) {
            (_, _, true) => "not watched",
            ([], false, _) => "ok",
            (_, true, _) => "FAILED",
            (_, false, _) => "findings",
        };
        if !(options.output.owns_stdout() || ctx.quiet && word == "ok") {
            println!("test {name} ... {word}");
        }
        failed += usize::from(ended.failed);
        trouble += usize::from(ended.trouble);
        if ended.failed || ended.trouble || ctx.verbose > 0 {
            eprint!("{}", ended.printed);
        }
        for finding in ended.findings {
            let id = finding.id.clone();
            if reporter.hear(finding, false) == Heard::Again && !options.output.owns_stdout() {
                println!("  {id} again");
            }
        }
    })?;
    if !ctx.quiet {
        eprintln!("raddle: {} tests, {failed} failed; {}", tests.len(), reporter.summary());
        eprintln!("raddle: note: documentation tests are left out; `cargo test --doc` runs them");
    }
    let program = vec!["cargo".into(), "raddle".into(), "test".into()];
    let exit = reporter.finish(program)?.or_failed(failed > 0);
    Ok(match (interrupt::signal(), trouble) {
        (Some(signal), _) if exit == Exit::Clean => Exit::Status(interrupt::status(signal)),
        (_, 1..) => Exit::Trouble,
        _ => exit,
    })
}

fn build(building: &Building, cargo_words: &[OsString]) -> anyhow::Result<Vec<Executable>> {
    let mut cargo = building.cargo("test");
    cargo
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .args(cargo_words)
        .stdout(Stdio::piped());
    let mut child = cargo.spawn().context("cannot start cargo")?;
    let messages = BufReader::new(child.stdout.take().expect("standard output is piped"));
    let executables = artifacts::executables(messages).context("cannot read what cargo says");
    let status = child.wait()?;
    // cargo has said why.
    anyhow::ensure!(status.success(), Refusal("the tests could not be built".into()));
    executables
}

/// The tests of an executable that are to be run.
fn list(
    executable: &Executable,
    filter: Option<&OsString>,
    words: &[OsString],
) -> anyhow::Result<Vec<String>> {
    let ask = |more: &[&str]| -> anyhow::Result<Vec<String>> {
        let output = Command::new(&executable.path)
            .args(filter)
            .args(words)
            .args(["--list", "--format", "terse"])
            .args(more)
            .current_dir(&executable.folder)
            .output()
            .with_context(|| format!("cannot start {}", executable.path.display()))?;
        let message = || {
            format!(
                "{} does not list its tests as libtest does; use `cargo raddle hunt` on it",
                executable.name
            )
        };
        anyhow::ensure!(output.status.success(), Refusal(message()));
        Ok(artifacts::tests(&String::from_utf8_lossy(&output.stdout)))
    };
    let all = ask(&[])?;
    if words.iter().any(|word| word == "--ignored" || word == "--include-ignored") {
        return Ok(all);
    }
    let ignored: HashSet<String> = ask(&["--ignored"])?.into_iter().collect();
    Ok(all.into_iter().filter(|name| !ignored.contains(name)).collect())
}

/// What is the same for every test.
struct Work<'a> {
    options: &'a Options,
    for_each: &'a [OsString],
    ignored: bool,
    keep: PathBuf,
    scratch: tempfile::TempDir,
}

impl Work<'_> {
    /// Runs the tests, several at a time, and hands over how they ended, in the order of the list.
    fn run_all(&self, tests: &[Test<'_>], mut ended: impl FnMut(Ended)) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.options.test_threads.max(1) {
                let (next, sender) = (&next, sender.clone());
                scope.spawn(move || {
                    while interrupt::signal().is_none() {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(test) = tests.get(number) else { break };
                        if sender.send(self.run_one(number, test)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let (mut waiting, mut expected) = (std::collections::BTreeMap::new(), 0);
            for result in receiver {
                let result = result?;
                waiting.insert(result.number, result);
                while let Some(result) = waiting.remove(&expected) {
                    ended(result);
                    expected += 1;
                }
            }
            Ok(())
        })
    }

    fn run_one(&self, number: usize, test: &Test<'_>) -> anyhow::Result<Ended> {
        let findings_file = self.scratch.path().join(format!("{number}.json"));
        let printed_file = self.scratch.path().join(format!("{number}.txt"));
        let printed = std::fs::File::create(&printed_file)?;
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.arg(self.options.mode.command()).arg("-q").args(self.for_each);
        if self.options.mode != Mode::Run {
            command.arg("--keep").arg(&self.keep);
        }
        if self.options.output.all {
            command.arg("--all");
        }
        command.arg("--output").arg(&findings_file).arg("--").arg(&test.executable.path);
        command.args(["--exact", &test.name, "--test-threads=1", "--nocapture"]);
        if self.ignored {
            command.arg("--include-ignored");
        }
        let folder = &test.executable.folder;
        let status = command
            .current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder)
            .env("CARGO_MANIFEST_PATH", folder.join("Cargo.toml"))
            .stdin(Stdio::null())
            .stdout(printed.try_clone()?)
            .stderr(printed)
            .status()
            .context("cannot start raddle")?;
        let findings = read_findings(&findings_file)?;
        let printed = String::from_utf8_lossy(&std::fs::read(&printed_file)?).into_owned();
        let _ = std::fs::remove_file(&printed_file);
        let trouble = !matches!(status.code(), Some(0 | 1 | 130 | 143));
        let failed = printed.lines().any(|line| line.starts_with("test result: FAILED"))
            || (findings.is_empty() && status.code() == Some(1));
        Ok(Ended { number, findings, failed, trouble, printed })
    }
}

fn read_findings(path: &Path) -> anyhow::Result<Vec<Finding>> {
    match path.exists() {
        true => Ok(FindingsFile::read(path)?.findings),
        false => Ok(Vec::new()),
    }
}
