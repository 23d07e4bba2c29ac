//! Following a program into the processes that it starts.
//!
//! `make check`, a shell script or a test driver starts the programs that matter, one after the other or side by side, and
//! is of no interest itself. Each instrumented process of the tree applies for a region of its own
//! ([`raddle_wire::follow`]). While it waits, what a repetition needs is read from `/proc`: program, arguments, folder and
//! environment.
//!
//! A process that goes on after the program itself has ended, a daemon for example, is looked at until [`GRACE`] is over.

use super::inspect::{self, Carries};
use super::{Launch, StandardInput, create_region};
use raddle_trace::region::{Region, RegionConfig};
use raddle_wire::follow::{CLAIMED_BY_NOBODY, state};
use raddle_wire::region::ENV_REGION;
use rustix::thread::futex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Which processes of the tree are observed beside the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Follow {
    /// None.
    No,
    /// Those that were built by `raddle cc`.
    #[default]
    Instrumented,
    /// Every process that the runtime can be loaded into.
    All,
}

/// How long processes are waited for that go on when the first has ended.
pub const GRACE: Duration = Duration::from_secs(2);

/// A process that has applied.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    /// Names of the programs above it, up to the one that Raddle started: the nearest first.
    pub started_by: Vec<String>,
    /// How to start it again.
    pub launch: Launch,
}

impl Process {
    /// What the kernel knows of a process that stands still.
    fn read(pid: u32, above: &Launch) -> Option<Process> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let program = std::fs::read_link(folder.join("exe")).ok()?;
        let arguments = strings(&folder.join("cmdline")).skip(1).collect();
        let launch = Launch {
            program,
            arguments,
            fixed_addresses: above.fixed_addresses,
            folder: std::fs::read_link(folder.join("cwd")).ok(),
            environment: environment(&folder.join("environ")),
            input: StandardInput::of_process(&folder.join("fd/0")),
            output_to_error: above.output_to_error,
            run_timeout: above.run_timeout,
            ..Launch::default()
        };
        Some(Process { pid, started_by: ancestors(pid), launch })
    }

    /// Has it ended? A process that nobody has waited for yet has.
    pub fn is_gone(&self) -> bool {
        stat(self.pid).is_none_or(|(state, _)| matches!(state, 'Z' | 'X'))
    }

    /// Process and command line, for a message.
    pub fn describe(&self) -> String {
        let words = self.launch.words().join(" ");
        match self.started_by.first() {
            Some(name) => format!("process {} ({words}, started by {name})", self.pid),
            None => format!("process {} ({words})", self.pid),
        }
    }
}

/// State and parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Names of the programs between a process and this one.
fn ancestors(pid: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = pid;
    while let Some((_, parent)) = stat(at) {
        if parent <= 1 || parent == std::process::id() {
            break;
        }
        let exe = std::fs::read_link(format!("/proc/{parent}/exe")).unwrap_or_default();
        names.push(exe.file_name().unwrap_or_default().to_string_lossy().into_owned());
        at = parent;
    }
    names
}

/// The strings of a file in which each ends with a zero byte.
fn strings(path: &Path) -> impl Iterator<Item = OsString> {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    let list: Vec<OsString> = match bytes.is_empty() {
        true => Vec::new(),
        false => bytes.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect(),
    };
    list.into_iter()
}

/// Variables of a process that this one does not have, or has with another value. What Raddle itself has set is left out.
fn environment(path: &Path) -> Vec<(OsString, OsString)> {
    let ours: HashMap<OsString, OsString> = std::env::vars_os().collect();
    let pair = |text: OsString| {
        let bytes = text.into_vec();
        let at = bytes.iter().position(|&byte| byte == b'=')?;
        Some((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec())))
    };
    let theirs: BTreeMap<OsString, OsString> = strings(path).filter_map(pair).collect();
    let differs = |(name, value): &(OsString, OsString)| {
        name != ENV_REGION && name != "LD_PRELOAD" && ours.get(name) != Some(value)
    };
    theirs.into_iter().filter(differs).collect()
}

/// Answers the applications that come through one region.
pub struct Follower {
    region: Arc<Region>,
    config: RegionConfig,
    launch: Launch,
    observed: BTreeSet<PathBuf>,
    count: usize,
    /// Programs above observed processes, or refused, that were not built by `raddle cc`.
    passed_by: BTreeSet<String>,
}

impl Follower {
    /// From now on applications are answered. A program that is not to be observed itself leaves the region to nobody.
    pub fn new(region: &Arc<Region>, config: &RegionConfig, launch: &Launch) -> Follower {
        let header = region.header();
        if launch.passed_through {
            header.claimed_pid.store(CLAIMED_BY_NOBODY, Ordering::Release);
        }
        header.follows.store(u32::from(launch.follow != Follow::No), Ordering::Release);
        let mut follower = Follower {
            region: Arc::clone(region),
            config: config.clone(),
            launch: launch.clone(),
            observed: BTreeSet::new(),
            count: 0,
            passed_by: BTreeSet::new(),
        };
        match launch.passed_through {
            true => {
                // As the kernel will name it: `sh` is a link to the real shell.
                let program = launch.program.canonicalize().unwrap_or_else(|_| launch.program.clone());
                follower
                    .passed_by
                    .extend(program.file_name().map(|name| name.to_string_lossy().into_owned()));
            }
            false => {
                follower.count = 1;
                follower.observed.insert(launch.program.clone());
            }
        }
        follower
    }

    /// Sleeps until somebody applies, or for so long.
    pub fn wait(&self, at_most: Duration) {
        let time =
            futex::Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
        let word = &self.region.header().applicants;
        let seen = word.load(Ordering::Acquire);
        if !self.region.header().applications.iter().any(|entry| entry.applicant().is_some()) {
            let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&time));
        }
    }

    /// Answers who has applied. `prepare` is called with each new process and its region before the process goes on.
    pub fn answer(
        &mut self,
        mut prepare: impl FnMut(Process, Arc<Region>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let region = Arc::clone(&self.region);
        for entry in &region.header().applications {
            if let Some(pid) = entry.applicant() {
                let made = self.make(pid);
                let descriptor = made.as_ref().map(|(_, region)| region.descriptor());
                if let Some((process, region)) = made {
                    prepare(process, region)?;
                }
                entry.answer(descriptor);
                let _ = futex::wake(&entry.state, futex::Flags::empty(), 1);
            } else if matches!(entry.state.load(Ordering::Acquire), state::ANSWERED | state::REFUSED)
                && stat(entry.pid.load(Ordering::Relaxed)).is_none()
            {
                entry.state.store(state::FREE, Ordering::Release);
            }
        }
        Ok(())
    }

    /// A region for a process, if it is to be observed.
    fn make(&mut self, pid: u32) -> Option<(Process, Arc<Region>)> {
        let mut process = Process::read(pid, &self.launch)?;
        match inspect::inspect(&process.launch.program) {
            Ok(Carries::Runtime) => {}
            Ok(_) if self.launch.follow == Follow::All => process.launch.preload = true,
            _ => {
                let name = process.launch.program.file_name().unwrap_or_default();
                self.passed_by.insert(name.to_string_lossy().into_owned());
                return None;
            }
        }
        let region = Arc::new(create_region(&self.config).ok()?);
        self.count += 1;
        self.observed.insert(process.launch.program.clone());
        self.passed_by.extend(process.started_by.iter().filter(|name| !name.is_empty()).cloned());
        Some((process, region))
    }

    /// Nobody is answered any more.
    pub fn stop(&self) {
        let header = self.region.header();
        header.follows.store(0, Ordering::Release);
        for entry in &header.applications {
            if entry.applicant().is_some() {
                entry.answer(None);
                let _ = futex::wake(&entry.state, futex::Flags::empty(), 1);
            }
        }
    }

    /// What was seen and what was not. Nothing is to be said of a program that is one process.
    pub fn summary(&self) -> Option<String> {
        let observed_names: BTreeSet<_> = self
            .observed
            .iter()
            .filter_map(|path| path.file_name())
            .map(|name| name.to_string_lossy())
            .collect();
        let passed_by: Vec<&str> = self
            .passed_by
            .iter()
            .map(String::as_str)
            .filter(|name| !observed_names.contains(*name))
            .collect();
        if self.count <= 1 && passed_by.is_empty() {
            return None;
        }
        let plural =
            |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        let mut text = format!(
            "observed {} of {}",
            plural(self.count, "process", "processes"),
            plural(self.observed.len(), "program", "programs")
        );
        if !passed_by.is_empty() {
            text.push_str(&format!("; not built by `raddle cc`: {}", passed_by.join(", ")));
        }
        Some(text)
    }
}

/// Nobody is left waiting, whatever went wrong.
impl Drop for Follower {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_from_proc() {
        let mut child =
            std::process::Command::new("sleep").arg("60").env("RADDLE_TEST_VARIABLE", "7").spawn().unwrap();
        // Until it has become `sleep`.
        let process = loop {
            let process = Process::read(child.id(), &Launch::default()).unwrap();
            if process.launch.arguments == ["60"] {
                break process;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(process.launch.environment, [("RADDLE_TEST_VARIABLE".into(), "7".into())]);
        assert_eq!(process.launch.folder, std::env::current_dir().ok());
        assert!(process.started_by.is_empty() && !process.is_gone());
        child.kill().unwrap();
        while !process.is_gone() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(process.is_gone() && Process::read(child.id(), &Launch::default()).is_none());
    }
}
