//! Innocence: about a correct program that synchronises where Raddle cannot see it, no command may say *confirmed* or *unordered*.
//!
//! The programs are those of `corpus/invisible/`: inline assembly, objects and libraries that were not rebuilt, OpenMP, interfaces of
//! the kernel. Each is asked about by every command that looks for errors, with the options that make it look hardest. What is
//! *suspected* or *predicted* is no accusation, and may be there.

use super::hunt::describe;
use super::manifest::Case;
use super::run::{Runner, Variant};
use anyhow::{Context, bail};
use raddle_findings::FindingsFile;
use std::path::Path;
use std::process::Command;

/// The folder of the corpus in which these programs live.
pub const FOLDER: &str = "invisible/";

/// How each command is asked. `TRACE` stands for a recorded run, and the program follows where there is no trace.
const QUESTIONS: [&[&str]; 7] = [
    &["run"],
    &["run", "--strategy", "random", "--seed", "3"],
    &["hunt", "--workers", "1", "--provoke", "20,2s"],
    &["explore", "--workers", "1", "--races", "--runs", "40"],
    &["explore", "--workers", "1", "--races", "--strategy", "random", "--visible", "shared", "--runs", "20"],
    &["predict", TRACE],
    &["detect", TRACE, "--with", "all"],
];

const TRACE: &str = "run.trace";

/// Runs of the program in one of these, for the limit.
const RUNS: u32 = 60;

impl Runner {
    /// Does [`Runner::innocent`] have something to say about the case?
    pub fn is_innocent(case: &Case) -> bool {
        case.name.starts_with(FOLDER)
    }

    /// Asks every command about the case.
    pub fn innocent(&self, case: &Case, variant: Variant) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new().prefix("raddle-innocent-").tempdir()?;
        let folder = scratch.path().join("program");
        self.build(case, variant, &folder, true)?;
        self.ask(case, &folder, &["record", "-o", TRACE], true).context("record")?;
        for question in QUESTIONS {
            let words = [question, &["--output", "found.json"]].concat();
            let answer = self.ask(case, &folder, &words, !question.contains(&TRACE));
            answer.with_context(|| question.join(" "))?;
            let found = FindingsFile::read(&folder.join("found.json"))?;
            if let Some(finding) = found.findings.iter().find(|finding| finding.grade().is_failing()) {
                bail!("`raddle {}` says about a correct program: {}", question.join(" "), describe(finding));
            }
        }
        Ok(())
    }

    fn ask(&self, case: &Case, folder: &Path, words: &[&str], about_program: bool) -> anyhow::Result<()> {
        let mut command = Command::new(&self.raddle);
        command.arg("--quiet").args(words);
        if about_program {
            command.args(["--", "./program"]).args(&case.args);
        }
        command.current_dir(folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "20");
        self.limited_output(command, case, RUNS).map(drop)
    }
}
