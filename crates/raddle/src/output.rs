//! What every command that has findings does with them: suppress, compare, show, convert, and decide the exit status.
//!
//! The options are the same everywhere (DESIGN §8). A finding is shown if its grade fails a build, if `--all` or `--fail-on`
//! say so, or if the rule behind it was asked for. `--json` writes one object to standard output and nothing else goes
//! there: the program's own output moves to standard error.

use crate::commands::{Ctx, Exit};
use crate::pictures::{self, About};
use anyhow::Context;
use raddle_findings::file::{Analysis, Exploration};
use raddle_findings::formats::{Listing, gcc, github, gitlab, junit, sarif};
use raddle_findings::{Finding, FindingsFile, Grade, Suppressions};
use raddle_report::{English, Sources, Style, Summary, render};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of every command that has findings.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Findings")]
pub struct OutputArgs {
    /// Show findings of every grade, also those that were only predicted or suspected.
    #[arg(long)]
    pub all: bool,
    /// Print the findings as one JSON object (docs/finding-schema.json); the program's output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Write the findings to a file as JSON, for `raddle report` and --baseline.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the findings to a file as SARIF 2.1.0.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the findings to a file as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the findings to a file as one HTML page with pictures, which needs no network and no Raddle.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one line per finding, as gcc or GitHub's runners read it, or a GitLab code quality report.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    pub format: Option<Format>,
    /// Leave out what these files suppress (ThreadSanitizer's syntax: `race:function`).
    #[arg(long, value_name = "FILE")]
    pub suppressions: Vec<PathBuf>,
    /// Leave out findings that are in this findings file already.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// The weakest grade that makes the exit status 1.
    #[arg(long, value_enum, value_name = "GRADE", default_value = "unordered")]
    pub fail_on: FailOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Gcc,
    Github,
    Gitlab,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    Confirmed,
    Observed,
    #[default]
    Unordered,
    Predicted,
    Suspected,
    /// No finding does.
    Never,
}

impl FailOn {
    /// The weakest grade that fails; the strongest if none does.
    fn grade(self) -> Grade {
        let failing = Grade::ALL.into_iter().filter(|&grade| self.fails(grade));
        failing.min().unwrap_or(Grade::Confirmed)
    }

    fn fails(self, grade: Grade) -> bool {
        match self {
            FailOn::Confirmed => grade >= Grade::Confirmed,
            FailOn::Observed => grade >= Grade::Observed,
            FailOn::Unordered => grade >= Grade::Unordered,
            FailOn::Predicted => grade >= Grade::Predicted,
            FailOn::Suspected => true,
            FailOn::Never => false,
        }
    }
}

impl OutputArgs {
    /// Is standard output ours alone?
    pub fn owns_stdout(&self) -> bool {
        self.json || self.format.is_some()
    }
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    Shown,
    /// It was shown before.
    Again,
    HeldBack,
    Suppressed,
    /// In the baseline.
    Known,
}

/// Where findings are shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    /// Standard output is the program's.
    Stderr,
}

/// Takes findings as they come.
pub struct Reporter<'a> {
    args: &'a OutputArgs,
    command: &'static str,
    ctx: &'a Ctx,
    stream: Stream,
    pub suppressions: Suppressions,
    baseline: BTreeSet<String>,
    ids: BTreeSet<String>,
    pub shown: Vec<Finding>,
    held_back: Vec<Finding>,
    suppressed: Vec<Finding>,
    known: Vec<Finding>,
    sources: Sources,
    /// Nothing is printed for people as findings come in.
    pub silent: bool,
    /// A picture is drawn below each finding.
    pub picture: bool,
    /// What an exploration counted, for machine output.
    pub exploration: Option<Exploration>,
    /// What an analysis of the source says beyond its findings, for machine output.
    pub analysis: Option<Analysis>,
}

impl<'a> Reporter<'a> {
    /// Reads what the options name, and refuses before anything runs what could not be written afterwards.
    pub fn new(
        command: &'static str,
        args: &'a OutputArgs,
        stream: Stream,
        ctx: &'a Ctx,
    ) -> anyhow::Result<Reporter<'a>> {
        let mut suppressions = Suppressions::default();
        for path in &args.suppressions {
            suppressions.extend(Suppressions::read(path).map_err(anyhow::Error::from_boxed)?);
        }
        let baseline = match &args.baseline {
            Some(path) => FindingsFile::read(path)?.findings.into_iter().map(|finding| finding.id).collect(),
            None => BTreeSet::new(),
        };
        for path in [&args.output, &args.sarif, &args.junit, &args.html].into_iter().flatten() {
            can_be_written(path)?;
        }
        Ok(Reporter {
            args,
            command,
            ctx,
            stream,
            suppressions,
            baseline,
            ids: BTreeSet::new(),
            shown: Vec::new(),
            held_back: Vec::new(),
            suppressed: Vec::new(),
            known: Vec::new(),
            sources: Sources::new(vec![std::env::current_dir().unwrap_or_default()]),
            silent: args.owns_stdout(),
            picture: false,
            exploration: None,
            analysis: None,
        })
    }

    /// Takes a finding and shows it if it is to be shown. `asked`: the rule behind it was asked for.
    pub fn hear(&mut self, finding: Finding, asked: bool) -> Heard {
        if !self.ids.insert(finding.id.clone()) {
            let shown = self.shown.iter().any(|shown| shown.id == finding.id);
            return if shown { Heard::Again } else { Heard::HeldBack };
        }
        if self.suppressions.suppresses(&finding).is_some() {
            self.suppressed.push(finding);
            return Heard::Suppressed;
        }
        if self.baseline.contains(&finding.id) {
            self.known.push(finding);
            return Heard::Known;
        }
        let grade = finding.grade();
        if !(asked || self.args.all || grade.is_failing() || self.args.fail_on.fails(grade)) {
            self.held_back.push(finding);
            return Heard::HeldBack;
        }
        if !self.silent {
            self.show(&finding);
        }
        self.shown.push(finding);
        Heard::Shown
    }

    fn show(&mut self, finding: &Finding) {
        let color = match self.stream {
            Stream::Stdout => self.ctx.color_stdout(),
            Stream::Stderr => self.ctx.color_stderr(),
        };
        let style = Style { color, width: self.ctx.width(), verbose: self.ctx.verbose > 0 };
        let mut text = render(finding, &mut self.sources, style);
        if self.picture {
            let picture = pictures::in_text(finding, style.width);
            if !picture.is_empty() {
                text.push('\n');
                text.push_str(&picture);
            }
        }
        // Whoever closed the stream has seen enough; the exit status still tells.
        let _ = match self.stream {
            Stream::Stdout => writeln!(std::io::stdout(), "{text}"),
            Stream::Stderr => writeln!(std::io::stderr(), "{text}"),
        };
    }

    fn wording(&self) -> English {
        English { verbose: self.ctx.verbose > 0 }
    }

    /// The last line: `2 confirmed, 1 predicted (not shown, see --all)`.
    pub fn summary(&self) -> String {
        let summary = Summary {
            shown: &self.shown,
            held_back: &self.held_back,
            suppressed: self.suppressed.len(),
            known: self.known.len(),
        };
        summary.line()
    }

    /// Writes what the options ask for, and says how the command ends.
    pub fn finish(mut self, program: Vec<String>) -> anyhow::Result<Exit> {
        let wording = self.wording();
        let root = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
        let args = self.args;
        let mut file = FindingsFile::new(self.command, program, self.shown.clone());
        file.exploration.clone_from(&self.exploration);
        file.analysis.clone_from(&self.analysis);
        if args.json {
            print(&file.to_json(&wording))?;
        }
        let listing = Listing {
            findings: &self.shown,
            held_back: &self.held_back,
            suppressed: &self.suppressed,
            known: args.baseline.as_ref().map(|_| self.known.as_slice()),
            fail_on: args.fail_on.grade(),
            root: &root,
        };
        match args.format {
            None => {}
            Some(Format::Gcc) => print(&gcc(&listing, &wording))?,
            Some(Format::Github) => print(&github(&listing, &wording))?,
            Some(Format::Gitlab) => print(&gitlab(&listing, &wording))?,
        }
        if let Some(path) = &args.output {
            write(path, &file.to_json(&wording))?;
        }
        if let Some(path) = &args.sarif {
            write(path, &sarif(&listing, &wording))?;
        }
        if let Some(path) = &args.junit {
            write(path, &junit(&listing, &wording))?;
        }
        if let Some(path) = &args.html {
            let about = About {
                command: self.command,
                program: &file.program,
                exploration: self.exploration.as_ref(),
                held_back: &self.held_back,
                suppressed: self.suppressed.len(),
                known: self.known.len(),
            };
            write(path, &pictures::page(&self.shown, &about, args, &mut self.sources))?;
        }
        let failing = self.shown.iter().any(|finding| args.fail_on.fails(finding.grade()));
        Ok(if failing { Exit::Found } else { Exit::Clean })
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

fn can_be_written(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(
        folder.is_dir(),
        "cannot write {}: there is no folder {}; create it first",
        path.display(),
        folder.display()
    );
    anyhow::ensure!(!path.is_dir(), "cannot write {}: it is a folder", path.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
