//! One file a command. A command parses its own arguments and calls the crate that does the work.

pub mod cc;
pub mod coverage;
pub mod csp;
pub mod detect;
pub mod explore;
pub mod hunt;
pub mod predict;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod scheme;
pub mod trace;

use crate::compiler::choice::Language;
use std::io::IsTerminal;

/// Exit status shared by every command that looks for errors (DESIGN §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing to show.
    Clean,
    /// At least one finding was shown (or an assertion failed).
    Found,
    /// Usage or environment error.
    Trouble,
    /// A status that is passed on unchanged, for example a compiler's.
    Status(u8),
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Clean => 0.into(),
            Exit::Found => 1.into(),
            Exit::Trouble => 2.into(),
            Exit::Status(code) => code.into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// What every command may want to know about how it was called.
pub struct Ctx {
    pub quiet: bool,
    pub verbose: u8,
    pub color: ColorChoice,
}

impl Ctx {
    /// Whether standard output takes colours.
    pub fn color_stdout(&self) -> bool {
        self.colors(std::io::stdout().is_terminal())
    }

    /// Whether standard error takes colours.
    pub fn color_stderr(&self) -> bool {
        self.colors(std::io::stderr().is_terminal())
    }

    /// Whether a progress display makes sense.
    pub fn progress(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    fn colors(&self, terminal: bool) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}

#[derive(clap::Subcommand)]
pub enum Command {
    Cc(cc::Args),
    #[command(name = "c++")]
    Cxx(cc::Args),
    Csp(csp::Args),
    Coverage(coverage::Args),
    Detect(detect::Args),
    Explore(explore::Args),
    Hunt(hunt::Args),
    Predict(predict::Args),
    Record(record::Args),
    Replay(replay::Args),
    Run(run::Args),
    Scheme(scheme::Args),
    Report(report::Args),
    Trace(trace::Args),
}

pub fn dispatch(command: Command, ctx: &Ctx) -> anyhow::Result<Exit> {
    match command {
        Command::Cc(args) => cc::run(Language::C, args),
        Command::Cxx(args) => cc::run(Language::Cxx, args),
        Command::Csp(args) => csp::run(args, ctx),
        Command::Coverage(args) => coverage::run(args, ctx),
        Command::Detect(args) => detect::run(args, ctx),
        Command::Explore(args) => explore::run(args, ctx),
        Command::Hunt(args) => hunt::run(args, ctx),
        Command::Predict(args) => predict::run(args, ctx),
        Command::Record(args) => record::run(args, ctx),
        Command::Replay(args) => replay::run(args, ctx),
        Command::Run(args) => run::run(args, ctx),
        Command::Scheme(args) => scheme::run(args, ctx),
        Command::Report(args) => report::run(args, ctx),
        Command::Trace(args) => trace::run(args, ctx),
    }
}
