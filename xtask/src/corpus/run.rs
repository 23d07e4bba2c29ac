//! Building and running one case: native and recorded must not differ, and the trace must hold what the manifest promises.

use super::kinds;
use super::manifest::{Case, End, Output};
use anyhow::{Context, bail};
use raddle_trace::EventSource;
use raddle_trace::file::reader::TraceFile;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The unit of `turn` (corpus.h), and the longest that all programs still end with in time.
const TURN_MS: usize = 40;
const TURN_MS_MAX: usize = 100;

/// Recording is slower than running, and test machines are loaded: limits are for programs that hang.
const PATIENCE: f64 = 30.0;

/// One way to build and run a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// `gcc` or `clang`.
    pub compiler: &'static str,
    pub optimisation: &'static str,
    /// Under `setarch -R`.
    pub fixed_addresses: bool,
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fixed = if self.fixed_addresses { " setarch -R" } else { "" };
        write!(f, "{} {}{fixed}", self.compiler, self.optimisation)
    }
}

/// What a runner needs to know.
#[derive(Clone, Debug)]
pub struct Runner {
    pub raddle: PathBuf,
    pub corpus: PathBuf,
    /// The clang to use, if there is one.
    pub clang: Option<PathBuf>,
}

pub(super) struct Ran {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Runner {
    /// Does the case allow this variant on this machine?
    pub fn can(&self, case: &Case, variant: Variant) -> bool {
        case.compilers.iter().any(|compiler| compiler == variant.compiler)
            && (variant.compiler != "clang" || self.clang.is_some())
    }

    /// Builds and runs the case both ways; an error says what differs.
    pub fn check(&self, case: &Case, variant: Variant) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new().prefix("raddle-corpus-").tempdir()?;
        let native = scratch.path().join("native");
        let recorded = scratch.path().join("recorded");
        self.build(case, variant, &native, false)?;
        self.build(case, variant, &recorded, true)?;
        let trace = scratch.path().join("case.trace");

        let ran = self.run(case, variant, &native, None)?;
        compare(case, &ran, status_of(ran.status)).context("native run")?;
        let ran = self.run(case, variant, &recorded, Some(&trace))?;
        compare(case, &ran, recorded_status(&trace, &ran)?).context("recorded run")?;
        check_kinds(case, &trace)
    }

    pub(super) fn build(
        &self,
        case: &Case,
        variant: Variant,
        folder: &Path,
        with_raddle: bool,
    ) -> anyhow::Result<()> {
        std::fs::create_dir(folder)?;
        for (library, files) in &case.shared {
            // A library without any rebuilt source is one that was not rebuilt: Raddle has no part in its link either.
            let is_rebuilt = with_raddle && !files.iter().all(|file| case.plain.contains(file));
            let sources = self.sources(case, variant, folder, files)?;
            let mut command = self.compiler(case, variant, is_rebuilt);
            command.args(["-shared", "-fPIC"]).args(sources).arg("-o").arg(folder.join(library));
            compile(command)?;
        }
        let sources = self.sources(case, variant, folder, &case.files)?;
        let mut command = self.compiler(case, variant, with_raddle);
        command.args(sources).arg("-o").arg(folder.join("program"));
        if !case.shared.is_empty() {
            command.arg("-L").arg(folder);
        }
        command.args(&case.libs);
        compile(command)
    }

    /// What to give to the compiler for each source: the source itself, or an object if Raddle must not compile it.
    fn sources(
        &self,
        case: &Case,
        variant: Variant,
        folder: &Path,
        files: &[String],
    ) -> anyhow::Result<Vec<PathBuf>> {
        let mut sources = Vec::new();
        for file in files {
            let source = case.folder.join(file);
            if !case.plain.contains(file) {
                sources.push(source);
                continue;
            }
            let object = folder.join(format!("{file}.o"));
            let mut command = self.compiler(case, variant, false);
            command.args(["-c", "-fPIC"]).arg(source).arg("-o").arg(&object);
            compile(command)?;
            sources.push(object);
        }
        Ok(sources)
    }

    fn compiler(&self, case: &Case, variant: Variant, with_raddle: bool) -> Command {
        let (c, cxx) = match variant.compiler {
            "clang" => {
                let clang = self.clang.clone().expect("can() asked for clang");
                let cxx = PathBuf::from(clang.to_string_lossy().replace("clang", "clang++"));
                (clang, cxx)
            }
            _ => (PathBuf::from("gcc"), PathBuf::from("g++")),
        };
        let mut command = if with_raddle {
            let mut command = Command::new(&self.raddle);
            command.arg(if case.cxx { "c++" } else { "cc" }).env("RADDLE_CC", c).env("RADDLE_CXX", cxx);
            command
        } else {
            Command::new(if case.cxx { cxx } else { c })
        };
        command.args(["-g", "-pthread", variant.optimisation, "-I"]).arg(self.corpus.join("include"));
        if !with_raddle {
            command.arg("-I").arg(self.corpus.join("../crates/raddle-rt/include"));
        }
        command.args(&case.cflags);
        command
    }

    /// Runs a command of ours on a case, within the case's time limit.
    pub(super) fn limited(&self, command: Command, case: &Case) -> anyhow::Result<Ran> {
        run_limited(command, &case.stdin, Duration::from_secs_f64(case.seconds.max(1.0) * PATIENCE))
    }

    /// As [`Runner::limited`] for a command that runs the case many times.
    pub(super) fn limited_for(&self, command: Command, case: &Case, runs: u32) -> anyhow::Result<Ran> {
        let seconds = case.seconds.max(1.0) * PATIENCE.max(f64::from(runs) * 2.0);
        run_limited(command, &case.stdin, Duration::from_secs_f64(seconds))
    }

    /// As [`Runner::limited_for`], and hands over what the program printed.
    pub(super) fn limited_output(&self, command: Command, case: &Case, runs: u32) -> anyhow::Result<Vec<u8>> {
        let ran = self.limited_for(command, case, runs)?;
        // 0: nothing found, 1: something found. Anything else means that nothing was looked at.
        match ran.status.code() {
            Some(0 | 1) => Ok(ran.stdout),
            _ => {
                bail!("ended with {}; standard error:\n{}", ran.status, String::from_utf8_lossy(&ran.stderr))
            }
        }
    }

    fn run(&self, case: &Case, variant: Variant, folder: &Path, trace: Option<&Path>) -> anyhow::Result<Ran> {
        let mut words: Vec<PathBuf> = Vec::new();
        if variant.fixed_addresses {
            words.extend(["setarch".into(), "-R".into()]);
        }
        if let Some(trace) = trace {
            words.extend([
                self.raddle.clone(),
                "record".into(),
                "--quiet".into(),
                "-o".into(),
                trace.to_owned(),
            ]);
            words.push("--".into());
        }
        words.push("./program".into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&case.args).current_dir(folder).env("LD_LIBRARY_PATH", ".");
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        command.env("CORPUS_TURN_MS", turn_ms(runnable(), processors).to_string());
        run_limited(command, &case.stdin, Duration::from_secs_f64(case.seconds.max(1.0) * PATIENCE))
    }
}

/// How long a unit of `turn` has to be for a thread that is woken to run before the next unit is over: longer where more wants to run than
/// there are processors.
fn turn_ms(runnable: usize, processors: usize) -> usize {
    (TURN_MS * runnable.div_ceil(processors.max(1))).clamp(TURN_MS, TURN_MS_MAX)
}

/// Threads that run or could, on the whole machine; 0: not known.
fn runnable() -> usize {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let field = text.split_whitespace().nth(3).and_then(|field| field.split_once('/'));
    field.and_then(|(runnable, _)| runnable.parse().ok()).unwrap_or(0)
}

fn compile(mut command: Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{command:?} failed\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Runs a command, with its output in files so that a child that outlives it holds no pipe open.
fn run_limited(mut command: Command, stdin: &str, limit: Duration) -> anyhow::Result<Ran> {
    let mut input = tempfile::tempfile()?;
    input.write_all(stdin.as_bytes())?;
    std::io::Seek::rewind(&mut input)?;
    let (stdout, stderr) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
    command.stdin(input).stdout(stdout.reopen()?).stderr(Stdio::from(stderr.reopen()?));
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("{command:?} did not end within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    Ok(Ran { status, stdout: std::fs::read(stdout.path())?, stderr: std::fs::read(stderr.path())? })
}

fn status_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Status(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}

/// How the *program* ended, as the trace tells it; `raddle record` itself must have passed the same on.
fn recorded_status(trace: &Path, ran: &Ran) -> anyhow::Result<End> {
    if !trace.exists() {
        bail!("no trace; raddle said: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let file = TraceFile::open(trace)?;
    let ending = file.index().ending.clone().context("the trace has no end")?;
    let (end, shell) = match (ending.exit_status, ending.signal) {
        (_, Some(signal)) => (End::Signal(signal), 128 + signal),
        (Some(status), None) => (End::Status(status), status),
        (None, None) => bail!("the trace does not say how the program ended"),
    };
    if ran.status.code() != Some(shell) {
        bail!("the program ended with {end:?}, raddle record with {}", ran.status);
    }
    Ok(end)
}

fn compare(case: &Case, ran: &Ran, end: End) -> anyhow::Result<()> {
    let stderr = String::from_utf8_lossy(&ran.stderr);
    if end != case.end {
        bail!("ended with {end:?}, expected {:?}; standard error:\n{stderr}", case.end);
    }
    compare_output(case, &ran.stdout).with_context(|| format!("standard error:\n{stderr}"))
}

/// Is this what the program may print?
pub(super) fn compare_output(case: &Case, stdout: &[u8]) -> anyhow::Result<()> {
    let stdout = String::from_utf8_lossy(stdout);
    match &case.output {
        Output::Exactly(text) if *text != stdout => bail!("printed {stdout:?}, expected {text:?}"),
        Output::Lines(lines) => match stdout.lines().find(|line| !lines.iter().any(|known| known == line)) {
            Some(line) => bail!("printed the line {line:?}, which is none of {lines:?}"),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_kinds(case: &Case, trace: &Path) -> anyhow::Result<()> {
    let mut file = TraceFile::open(trace)?;
    let mut found = BTreeSet::new();
    let mut batch = Vec::new();
    loop {
        file.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            kinds::add(&event.op, &mut found);
        }
    }
    let missing: Vec<&str> =
        case.trace.iter().map(String::as_str).filter(|&kind| !found.contains(kind)).collect();
    if !missing.is_empty() {
        let there: Vec<&str> = found.iter().map(String::as_str).collect();
        bail!("the trace has no {}; it has {}", missing.join(", "), there.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_longer_where_more_is_to_be_run() {
        assert_eq!([0, 1, 2].map(|runnable| turn_ms(runnable, 2)), [40; 3]);
        assert_eq!((turn_ms(3, 2), turn_ms(1000, 2), turn_ms(5, 0)), (80, 100, 100));
        assert!(runnable() > 0, "this test runs");
    }
}
