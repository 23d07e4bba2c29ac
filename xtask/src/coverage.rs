//! `cargo xtask coverage`: how many lines of the crates that are tested on the host their own tests reach.
//!
//! The compiler's own instrumentation (`-Cinstrument-coverage`) counts, LLVM's tools add up. They have to know the compiler's format: those of
//! the `llvm-tools` component do, and packaged ones of the same or a newer LLVM.

use crate::project::{self, newest, which};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates whose tests start no process.
const CRATES: &[&str] = &["raddle-hb", "raddle-sched"];

/// What is asked of each of them, in per cent of lines.
const LINES_MIN: f64 = 90.0;

/// Count the lines that host tests reach.
#[derive(clap::Args)]
pub struct Args {
    /// Crates to count (default: raddle-hb and raddle-sched).
    crates: Vec<String>,
    /// Show each line that was not reached.
    #[arg(long)]
    missed: bool,
}

/// Lines of a file, and how many of them were not reached.
#[derive(Clone, Copy, Default)]
struct Lines {
    all: u64,
    missed: u64,
}

impl Lines {
    fn per_cent(self) -> f64 {
        100.0 * (self.all - self.missed) as f64 / self.all.max(1) as f64
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let chosen: Vec<&str> = match args.crates.as_slice() {
        [] => CRATES.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let mut low = Vec::new();
    for name in chosen {
        let folder = project::root().join("crates").join(name);
        let sources = folder.join("src");
        if !sources.is_dir() {
            bail!("there is no crate {name}");
        }
        let report = report(name)?;
        let files = lines_by_file(&report, &sources)?;
        let mut total = Lines::default();
        for (file, (lines, missed)) in &files {
            total.all += lines.all;
            total.missed += lines.missed;
            println!("{:6.1} %  {:4} lines  {}", lines.per_cent(), lines.all, shown(file));
            if args.missed {
                missed.iter().for_each(|line| println!("          {}:{line}", shown(file)));
            }
        }
        println!("{:6.1} %  {:4} lines  {name}\n", total.per_cent(), total.all);
        if total.per_cent() <= LINES_MIN {
            low.push(name);
        }
    }
    if !low.is_empty() {
        bail!("{LINES_MIN} % of lines or fewer are reached by the tests of {}", low.join(" and "));
    }
    Ok(())
}

fn shown(file: &Path) -> String {
    file.strip_prefix(project::root()).unwrap_or(file).display().to_string()
}

/// Runs a crate's tests with counters and reads them, in `lcov`'s format.
fn report(name: &str) -> anyhow::Result<String> {
    let target = project::target().join("coverage");
    let counters = target.join("counters");
    let _ = std::fs::remove_dir_all(&counters);
    std::fs::create_dir_all(&counters)?;
    let tests = || {
        let mut command = project::cargo();
        command
            .args(["test", "--quiet", "--package", name, "--tests"])
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTFLAGS", "-Cinstrument-coverage")
            .env("LLVM_PROFILE_FILE", counters.join("%p-%m.profraw"));
        command
    };
    let messages = project::output(tests().args(["--no-run", "--message-format=json-render-diagnostics"]))?;
    let binaries = test_binaries(&String::from_utf8_lossy(&messages));
    project::run(&mut tests())?;
    let raw: Vec<PathBuf> = std::fs::read_dir(&counters)?.flatten().map(|entry| entry.path()).collect();
    let merged = target.join(format!("{name}.profdata"));
    project::output(tool("llvm-profdata")?.args(["merge", "--sparse", "-o"]).arg(&merged).args(raw))?;
    let (first, others) = binaries.split_first().context("the crate has no tests")?;
    let mut export = tool("llvm-cov")?;
    export.args(["export", "--format=lcov", "--skip-branches", "--instr-profile"]).arg(&merged).arg(first);
    for binary in others {
        export.arg("--object").arg(binary);
    }
    Ok(String::from_utf8_lossy(&project::output(&mut export)?).into_owned())
}

/// The programs that cargo's messages say were built.
fn test_binaries(messages: &str) -> Vec<PathBuf> {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    values.filter_map(|value| Some(PathBuf::from(value["executable"].as_str()?))).collect()
}

/// One of LLVM's tools: the compiler's own, or the newest one that is installed.
fn tool(name: &str) -> anyhow::Result<Command> {
    let sysroot = project::output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let own =
        Path::new(String::from_utf8_lossy(&sysroot).trim()).parent().map(|lib| lib.join("bin").join(name));
    let found = own.filter(|path| path.is_file()).or_else(|| newest(name)).or_else(|| which(name));
    let found = found.with_context(|| {
        format!("there is no {name}; install it with\n    rustup component add llvm-tools")
    })?;
    Ok(Command::new(found))
}

/// The lines of each file below a folder, and which of them were not reached. A line that several functions or copies of one
/// share was reached if any of them came there.
fn lines_by_file(report: &str, below: &Path) -> anyhow::Result<BTreeMap<PathBuf, (Lines, Vec<u64>)>> {
    let mut hits: BTreeMap<PathBuf, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut file: Option<(PathBuf, u64)> = None;
    for line in report.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            let path = Some(PathBuf::from(path)).filter(|path| path.starts_with(below));
            file = path.map(|path| (path.clone(), first_line_of_tests(&path)));
        } else if let (Some(counts), Some((file, tests))) = (line.strip_prefix("DA:"), &file) {
            let (number, count) = counts.split_once(',').context("a line of lcov has two numbers")?;
            let number = number.parse()?;
            if number < *tests {
                let known = hits.entry(file.clone()).or_default().entry(number).or_default();
                *known = (*known).max(count.parse()?);
            }
        }
    }
    let sum = |lines: BTreeMap<u64, u64>| {
        let missed: Vec<u64> =
            lines.iter().filter(|(_, count)| **count == 0).map(|(line, _)| *line).collect();
        (Lines { all: lines.len() as u64, missed: missed.len() as u64 }, missed)
    };
    Ok(hits.into_iter().map(|(file, lines)| (file, sum(lines))).collect())
}

/// Tests at the end of a file reach themselves, which says nothing.
fn first_line_of_tests(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().position(|line| line == "#[cfg(test)]").map_or(u64::MAX, |at| at as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_once_a_file() {
        let report = "SF:/a/src/x.rs\nDA:1,0\nDA:2,5\nDA:1,3\nDA:4,0\nend_of_record\nSF:/b/y.rs\nDA:1,0\nend_of_record\n";
        let files = lines_by_file(report, Path::new("/a/src")).unwrap();
        assert_eq!(files.len(), 1);
        let (lines, missed) = &files[Path::new("/a/src/x.rs")];
        assert_eq!((lines.all, lines.missed, missed.as_slice()), (3, 1, &[4][..]));
        assert!((lines.per_cent() - 66.7).abs() < 0.1);
        assert!(lines_by_file("SF:/a/src/x.rs\nDA:nonsense\n", Path::new("/a")).is_err());
    }

    #[test]
    fn programs_are_found_in_messages() {
        let messages =
            "{\"executable\":\"/t/one\"}\n{\"executable\":null}\nnot a message\n{\"reason\":\"x\"}\n";
        assert_eq!(test_binaries(messages), [PathBuf::from("/t/one")]);
    }
}
