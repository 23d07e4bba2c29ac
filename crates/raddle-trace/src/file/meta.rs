//! What a trace file says about itself, in JSON chunks: what was run, which modules it had, how it ended.
//!
//! JSON because these chunks are few, and because a reader of an older or newer version can skip what it does not know.

use serde::{Deserialize, Serialize};

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramInfo {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder it was started in.
    pub directory: String,
}

/// What the locations of a trace are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocationKind {
    /// Program counters of the recorded process.
    #[default]
    Pc,
    /// Locations of a trace that was converted; a stored 0 is "unknown", n stands for location n - 1.
    Foreign,
}

/// Contents of the first chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceInfo {
    /// Version of `raddle` that wrote the file.
    pub written_by: String,
    pub wire_version: u32,
    pub program: ProgramInfo,
    pub locations: LocationKind,
    pub observe: u32,
    pub steer: u32,
    pub options: u64,
    pub seed: u64,
    /// Milliseconds since 1970 when the recording began.
    pub started_unix_ms: u64,
}

/// A module of the recorded process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleMeta {
    pub path: String,
    pub start: u64,
    pub end: u64,
    pub bias: u64,
    /// Hexadecimal.
    pub build_id: String,
    pub image: u32,
}

/// A thread of a converted trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadMeta {
    pub name: String,
    pub given_name: Option<String>,
    pub parent: Option<u32>,
    pub children: u32,
}

/// How the recorded program left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramState {
    /// No runtime attached: the program is not instrumented, or died before `main`.
    #[default]
    Unattached,
    /// The runtime did not see the end coming.
    Running,
    Exited,
    Execed,
    /// The runtime gave up; the messages say why.
    Refused,
}

/// Contents of the last chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    pub state: ProgramState,
    /// The program's exit status, if it exited.
    pub exit_status: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// Why the trace does not cover the whole run, if it does not.
    pub cut: Option<String>,
    pub threads: u32,
    pub images: u32,
    pub messages_dropped: u32,
    /// Records of events that the file should hold.
    pub events: u64,
    pub ended_unix_ms: u64,
}

impl Ending {
    /// The end of the program in a few words.
    pub fn describe(&self) -> String {
        match (self.exit_status, self.signal) {
            (_, Some(signal)) => format!("killed by signal {signal} ({})", signal_name(signal)),
            (Some(status), None) => format!("exited with status {status}"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

/// Name of a Linux signal.
pub fn signal_name(signal: i32) -> &'static str {
    const NAMES: [&str; 32] = [
        "none",
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    usize::try_from(signal).ok().and_then(|ix| NAMES.get(ix)).copied().unwrap_or("a real-time signal")
}
