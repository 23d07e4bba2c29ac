//! What the user wants to run: source files, or a program behind `--`.

use super::following::Follow;
use super::inspect::{self, Carries};
use super::probes::Probes;
use super::ready_models;
use super::{Compiled, Launch};
use crate::compiler::{Refusal, single};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of every command that runs a program.
#[derive(clap::Args, Clone, Debug)]
pub struct Target {
    /// C or C++ files: compiled and linked to one program, which is then run.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Program and its arguments; with FILE, the arguments of the compiled program.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    pub program: Vec<OsString>,
    /// Flags for compiling FILE, such as "-O2 -DN=4" (default: -O0 -g -pthread).
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub cflags: Option<String>,
    /// Run with the same addresses each time (as `setarch -R` does).
    #[arg(long)]
    pub fixed_addresses: bool,
    /// Load the runtime also into scripts' interpreters and into programs that make no threads themselves. It is loaded into
    /// every other program that was not built by `raddle cc`, where it sees synchronisation but no memory accesses.
    #[arg(long)]
    pub preload: bool,
    /// Events of the program, named in this file (docs/aspects.md).
    #[arg(long, value_name = "FILE")]
    pub aspects: Option<PathBuf>,
    /// What functions of the program are (locks, edges between threads), in this file (docs/models.md).
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Do not use the models of libraries that come with Raddle (GLib, OpenMP, liburcu).
    #[arg(long)]
    pub no_ready_models: bool,
}

/// Arguments of the commands that look at a whole tree of processes.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct TreeArgs {
    /// Which of the processes that the program starts are observed as well.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub follow: Follow,
    /// End a process after so many seconds, and say where its threads stood (default: 600 where CI is set in the environment,
    /// otherwise none). A process whose threads can never go on is ended at once.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    run_timeout: Option<u64>,
}

/// Seconds that a run may take where nobody watches it.
const RUN_TIMEOUT_IN_CI: u64 = 600;

impl TreeArgs {
    pub fn run_timeout(&self) -> Option<Duration> {
        let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        self.run_timeout.or(in_ci.then_some(RUN_TIMEOUT_IN_CI)).map(Duration::from_secs)
    }
}

impl Target {
    /// Compiles what has to be compiled, finds the program, and refuses what cannot be observed.
    pub fn launch(&self) -> anyhow::Result<Launch> {
        let mut compiled = None;
        let (program, arguments) = if self.files.is_empty() {
            let Some((program, arguments)) = self.program.split_first() else {
                return Err(
                    Refusal("nothing to run; give source files, or a program behind `--`".into()).into()
                );
            };
            (inspect::find(Path::new(program))?, arguments.to_vec())
        } else {
            if let Some(other) = self.files.iter().find(|file| !single::is_source(file)) {
                return Err(Refusal(format!(
                    "{0} is not a C or C++ source file; to run a program, write `-- {0}`",
                    other.display()
                ))
                .into());
            }
            compiled = Some(Compiled {
                sources: self.files.clone(),
                flags: self.flags(),
                compiler: single::compiler_name(&self.files),
            });
            (single::build(&self.files, &self.flags(), None)?, self.program.clone())
        };
        let carries = inspect::inspect(&program)?;
        let preload = match carries {
            Carries::Runtime => false,
            Carries::Nothing | Carries::Launcher => true,
            Carries::Script => self.preload,
        };
        let probes = self.probes(&program)?;
        Ok(Launch {
            probes,
            program,
            carries,
            arguments,
            fixed_addresses: self.fixed_addresses,
            preload,
            compiled,
            ..Launch::default()
        })
    }

    fn probes(&self, program: &Path) -> anyhow::Result<Option<Probes>> {
        let ready = match self.no_ready_models {
            true => String::new(),
            false => ready_models::of_program(program),
        };
        Probes::of_files(self.aspects.as_deref(), self.models.as_deref(), &ready, program)
    }

    /// Did the user name nothing to run?
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.program.is_empty()
    }

    /// Short name for files that belong to the run.
    pub fn name(&self) -> String {
        let path = self.files.first().cloned().or_else(|| self.program.first().map(PathBuf::from));
        path.as_deref()
            .and_then(Path::file_stem)
            .map_or_else(|| "program".to_owned(), |stem| stem.to_string_lossy().into_owned())
    }

    fn flags(&self) -> Vec<String> {
        self.cflags.iter().flat_map(|flags| flags.split_whitespace()).map(str::to_owned).collect()
    }
}
