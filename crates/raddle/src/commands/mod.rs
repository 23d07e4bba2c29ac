//! One file a command. A command parses its own arguments and calls the crate that does the work.

pub mod aspects;
pub mod cargo;
pub mod cc;
pub mod ci;
pub mod clean;
pub mod completions;
pub mod coverage;
pub mod csp;
pub mod detect;
pub mod exhaustive;
mod explain;
pub mod explore;
pub mod hunt;
pub mod man;
pub mod merge;
pub mod predict;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod scheme;
pub mod trace;

use crate::compiler::Refusal;
use crate::compiler::choice::Language;
use crate::launch::halting::Halt;
use raddle_findings::naming::Namer;
use raddle_trace::collector::CollectError;
use raddle_trace::crash::End;
use raddle_trace::tables::Module;
use std::io::IsTerminal;
use std::process::ExitStatus;

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

impl Exit {
    /// What [`Exit::Trouble`] is for the shell.
    pub const TROUBLE_STATUS: i32 = 2;

    /// The program itself failed: that is never nothing.
    pub fn or_failed(self, failed: bool) -> Exit {
        if failed && self == Exit::Clean { Exit::Found } else { self }
    }
}

/// A number of things of which there must be one at least.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("it must be a whole number, at least 1".to_owned()),
    }
}

/// What the program's own exit status means.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct StatusArgs {
    /// Statuses with which the program may end (default: 0); with any other, or a signal, it has failed.
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub expect_status: Vec<i32>,
}

impl StatusArgs {
    /// Did one of the runs fail? Says so.
    pub fn failed(&self, statuses: &[ExitStatus], ctx: &Ctx) -> bool {
        let allowed = if self.expect_status.is_empty() { &[0][..] } else { &self.expect_status };
        let failed =
            statuses.iter().find(|status| !status.code().is_some_and(|code| allowed.contains(&code)));
        if let Some(status) = failed
            && !ctx.quiet
        {
            let hint = if status.code().is_some() { "; --expect-status allows it" } else { "" };
            eprintln!("raddle: the program {}{hint}", crate::launch::process::describe(*status));
        }
        failed.is_some()
    }
}

/// Where the threads of a run stood whose time was up.
pub fn show_standing(halt: Option<Halt>, end: Option<&End>, modules: &[Module]) {
    let (Some(Halt::TimedOut), Some(end)) = (halt, end) else { return };
    let mut namer = Namer::new(modules);
    for thread in end.threads() {
        let stack = namer.call_stack(&thread.frames);
        let frame = stack.iter().find(|frame| !frame.library).or(stack.first());
        let place = frame.map_or_else(|| "an unknown place".to_owned(), raddle_report::call);
        eprintln!("raddle: note: thread {} stood at {place}", thread.name);
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Clean => 0.into(),
            Exit::Found => 1.into(),
            Exit::Trouble => (Exit::TROUBLE_STATUS as u8).into(),
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

/// Columns of text where there is no terminal; more is hard to read.
const WIDTH: usize = 110;

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

    /// Columns for text: those of the terminal, within reason.
    pub fn width(&self) -> usize {
        let columns = [
            rustix::termios::tcgetwinsize(std::io::stdout()),
            rustix::termios::tcgetwinsize(std::io::stderr()),
        ]
        .into_iter()
        .flatten()
        .map(|size| usize::from(size.ws_col))
        .find(|&columns| columns > 0);
        columns.unwrap_or(WIDTH).clamp(40, WIDTH)
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
    Aspects(aspects::Args),
    Cargo(cargo::Args),
    Cc(cc::Args),
    Ci(ci::Args),
    #[command(name = "c++")]
    Cxx(cc::Args),
    Clean(clean::Args),
    Completions(completions::Args),
    Csp(csp::Args),
    Coverage(coverage::Args),
    Detect(detect::Args),
    Explain(explain::Args),
    Explore(explore::Args),
    Hunt(hunt::Args),
    Man(man::Args),
    Merge(merge::Args),
    Predict(predict::Args),
    Record(record::Args),
    Replay(replay::Args),
    Run(run::Args),
    Scheme(scheme::Args),
    Report(report::Args),
    Trace(trace::Args),
}

pub fn dispatch(command: Command, ctx: &Ctx) -> anyhow::Result<Exit> {
    let place = match &command {
        Command::Hunt(_) | Command::Ci(_) => Some("--keep"),
        Command::Record(_) => Some("-o"),
        Command::Run(_) => Some("--trace"),
        _ => None,
    };
    perform(command, ctx).map_err(|error| match (place, error.downcast_ref::<CollectError>()) {
        (Some(option), Some(cannot)) => {
            Refusal(format!("{cannot}; choose another place with {option}")).into()
        }
        _ => error,
    })
}

fn perform(command: Command, ctx: &Ctx) -> anyhow::Result<Exit> {
    match command {
        Command::Aspects(args) => aspects::run(args, ctx),
        Command::Cargo(args) => cargo::run(args, ctx),
        Command::Cc(args) => cc::run(Language::C, args),
        Command::Cxx(args) => cc::run(Language::Cxx, args),
        Command::Ci(args) => ci::run(args, ctx),
        Command::Clean(args) => clean::run(args, ctx),
        Command::Completions(args) => completions::run(&args),
        Command::Csp(args) => csp::run(args, ctx),
        Command::Coverage(args) => coverage::run(args, ctx),
        Command::Detect(args) => detect::run(args, ctx),
        Command::Explain(args) => explain::run(args, ctx),
        Command::Explore(args) => explore::run(args, ctx),
        Command::Hunt(args) => hunt::run(args, ctx),
        Command::Man(args) => man::run(&args),
        Command::Merge(args) => merge::run(args, ctx),
        Command::Predict(args) => predict::run(args, ctx),
        Command::Record(args) => record::run(args, ctx),
        Command::Replay(args) => replay::run(args, ctx),
        Command::Run(args) => run::run(args, ctx),
        Command::Scheme(args) => scheme::run(args, ctx),
        Command::Report(args) => report::run(args, ctx),
        Command::Trace(args) => trace::run(args, ctx),
    }
}
