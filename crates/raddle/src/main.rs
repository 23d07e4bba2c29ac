//! The `raddle` command line: parses arguments, starts processes, prints. No algorithm lives here.

// First, because its macros stand in the place of the standard library's in all that follows.
#[macro_use]
mod standard_output;

mod commands;
mod compiler;
mod detector_options;
mod evidence;
mod hunt;
mod interrupt;
mod launch;
mod online;
mod output;
mod pictures;
mod runtime_files;
mod settings;

use clap::{CommandFactory, FromArgMatches, Parser};
use commands::{Command, Ctx, Exit};

/// Finds concurrency errors in real programs and hands over, for each one, a schedule that makes it happen again.
#[derive(Parser)]
#[command(name = "raddle", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say less: only findings and errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more; may be repeated.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// When to colour the output (NO_COLOR is respected by `auto`).
    #[arg(long, global = true, value_enum, default_value = "auto")]
    color: commands::ColorChoice,
}

/// All that the command line takes, for those who describe it.
fn command_line() -> clap::Command {
    flowing(Cli::command())
}

/// The same with the paragraphs of its descriptions as one line each, so that they are broken where the terminal ends and not where the
/// source does. Lines that are indented, such as examples, stay as they are.
fn flowing(command: clap::Command) -> clap::Command {
    let about = command.get_long_about().map(|about| paragraphs(&about.to_string()));
    let command = match about {
        Some(about) => command.long_about(about),
        None => command,
    };
    command.mut_subcommands(flowing)
}

fn paragraphs(text: &str) -> String {
    let mut flowed = String::with_capacity(text.len());
    let mut open = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(char::is_whitespace);
        match (open && is_prose, flowed.is_empty()) {
            (true, _) => flowed.push(' '),
            (false, false) => flowed.push('\n'),
            (false, true) => {}
        }
        flowed.push_str(line);
        open = is_prose && !line.ends_with(':');
    }
    flowed
}

/// What the user says, completed by the project's settings.
fn parse() -> anyhow::Result<Cli> {
    let words: Vec<_> = std::env::args_os().collect();
    let line = command_line();
    let matches = line.clone().get_matches_from(&words);
    let complete = settings::complete(&line, words, &matches)?;
    Ok(Cli::from_arg_matches(&line.get_matches_from(complete)).unwrap_or_else(|error| error.exit()))
}

fn main() -> std::process::ExitCode {
    // `raddle ... | head` ends quietly, like other programs. Programs that are started get the default as well.
    // SAFETY: no thread has been started yet, and the default needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // A limit on the size of files is an error of the write, with a sentence, and not the end of this process. A handler
    // and not `SIG_IGN`, which the programs started from here would inherit.
    let limited = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, limited);
    // Every word behind `cc` belongs to the compiler; clap must not see it.
    if let Some((language, arguments)) = commands::cc::as_compiler(std::env::args_os()) {
        eprintln!("raddle: error: {:#}", compiler::become_compiler(language, arguments));
        return Exit::Trouble.into();
    }
    if let Some(mut rustc) = commands::cargo::as_rustc(std::env::args_os()) {
        let error = std::os::unix::process::CommandExt::exec(&mut rustc);
        eprintln!("raddle: error: cannot start {}: {error}", rustc.get_program().to_string_lossy());
        return Exit::Trouble.into();
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            eprintln!("raddle: error: {error:#}");
            return Exit::Trouble.into();
        }
    };
    let ctx = Ctx { quiet: cli.quiet, verbose: cli.verbose, color: cli.color };
    let result = commands::dispatch(cli.command, &ctx);
    standard_output::flush();
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("raddle: error: {error:#}");
            Exit::Trouble.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_flows_and_examples_stay() {
        let text = "Runs a program and\nreports.\n\nMore of\nit.\n\nExamples:\n  raddle run a.c\n  raddle run b.c\nLast\nword.";
        let expected = "Runs a program and reports.\n\nMore of it.\n\nExamples:\n  raddle run a.c\n  raddle run b.c\nLast word.";
        assert_eq!(paragraphs(text), expected);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command_line().debug_assert();
    }
}
