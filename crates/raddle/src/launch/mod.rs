//! Starting programs under observation. This is the only crate that starts processes, and these are the files that do it.
//!
//! [`target`] turns what the user wrote into a [`Launch`] (compiling source files on the way), [`inspect`] looks into the
//! program before it is started and refuses what cannot work, [`process`] starts it and stays out of its way,
//! [`recording`] does all of it and keeps the trace.

pub mod demo;
pub mod detecting;
pub mod exploring;
pub mod following;
pub mod halting;
pub mod identity;
pub mod input;
pub mod inspect;
pub mod livelock;
pub mod outcomes;
pub mod patience;
pub mod portfolio;
pub mod probes;
pub mod process;
pub mod racing;
pub mod ready_models;
pub mod recording;
pub mod searching;
pub mod server;
pub mod shards;
pub mod shared_sites;
pub mod shrinking;
pub mod steering;
pub mod target;

use crate::compiler::Refusal;
use crate::runtime_files::RuntimeFiles;
use following::Follow;
use input::StandardInput;
use inspect::Carries;
use raddle_trace::region::{Region, RegionConfig};
use raddle_wire::region::ENV_REGION;
use server::Serving;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use target::{Target, TreeArgs};

/// The memory shared with the program, or what to do to get it.
pub fn create_region(config: &RegionConfig) -> Result<Region, Refusal> {
    Region::create(config).map_err(|error| {
        let remedy = match error.raw_os_error() {
            Some(libc::EFBIG) => "`ulimit -f` (the size of files)",
            _ => "`ulimit -v`",
        };
        Refusal(format!(
            "cannot create the memory shared with the program ({error}); raise or remove {remedy}"
        ))
    })
}

/// What becomes of the program's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// They are the user's.
    Inherited,
    /// Nothing comes in but what is stored, nothing goes out: the run is one of many.
    Silent,
}

/// A program and how it is to be started.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Path of the program, found in `PATH` already.
    pub program: PathBuf,
    pub carries: Carries,
    pub arguments: Vec<OsString>,
    /// Start it with addresses that are the same each time.
    pub fixed_addresses: bool,
    /// Load the runtime into it, because it carries none.
    pub preload: bool,
    /// The folder to start it in; `None`: this one.
    pub folder: Option<PathBuf>,
    /// Variables that are set for it beside what this process has.
    pub environment: Vec<(OsString, OsString)>,
    pub input: StandardInput,
    /// What the program prints goes to standard error: standard output belongs to machine output.
    pub output_to_error: bool,
    /// Files that it was compiled of, and what with, if Raddle did it.
    pub compiled: Option<Compiled>,
    /// Which of the processes that it starts are observed as well.
    pub follow: Follow,
    /// It is not observed itself: only what it starts matters.
    pub passed_through: bool,
    /// Events that the user named.
    pub probes: Option<probes::Probes>,
    /// How long a process may run; none: for ever.
    pub run_timeout: Option<Duration>,
    /// How many runs of it are made, and how that went.
    pub serving: Serving,
}

/// How Raddle compiled a program.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub sources: Vec<PathBuf>,
    pub flags: Vec<String>,
    pub compiler: String,
}

impl Launch {
    /// The same as one of a tree of processes. A launcher or script, into which nobody wants the runtime loaded, is passed
    /// through.
    pub fn with_tree(mut self, tree: &TreeArgs, target: &Target) -> Launch {
        let starts_others = matches!(self.carries, Carries::Launcher | Carries::Script);
        self.follow = tree.follow;
        self.run_timeout = tree.run_timeout();
        if tree.follow != Follow::No && starts_others && !target.preload {
            (self.preload, self.passed_through) = (tree.follow == Follow::All, tree.follow != Follow::All);
        }
        self
    }

    /// Program and arguments, for the trace and for messages.
    pub fn words(&self) -> Vec<String> {
        std::iter::once(self.program.as_os_str())
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// As the user called it, for lists of findings: source files that Raddle compiled stand for the program in its cache.
    pub fn title(&self) -> Vec<String> {
        let Some(compiled) = &self.compiled else { return self.words() };
        let sources = compiled.sources.iter().map(|source| source.display().to_string());
        sources.chain(self.words().into_iter().skip(1)).collect()
    }

    /// The command that starts it, with the region in its environment. The only place that makes one.
    pub fn command(&self, region: &Region, streams: Streams) -> anyhow::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(ENV_REGION, process::region_path(region));
        if let Some(probes) = &self.probes {
            command.env(raddle_wire::probe::ENV_PLAN, &probes.plan);
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if self.preload {
            command.env("LD_PRELOAD", process::with_preload(&RuntimeFiles::unpack()?));
        }
        match streams {
            Streams::Inherited => {
                if let Some(input) = self.input.for_first_run()? {
                    command.stdin(input);
                }
                if self.output_to_error {
                    command.stdout(std::io::stderr());
                }
            }
            Streams::Silent => {
                command.stdin(self.input.stored()?).stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        if self.fixed_addresses {
            process::fix_addresses_of(&mut command);
        }
        Ok(command)
    }

    /// Starts a command that [`Launch::command`] made.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Refusal> {
        command.spawn().map_err(|error| Refusal(format!("cannot start {}: {error}", self.program.display())))
    }
}
