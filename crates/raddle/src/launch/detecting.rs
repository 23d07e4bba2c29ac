//! Running a program under online detection and listening to what its runtime reports.

use super::{Launch, Streams, process};
use crate::compiler::Refusal;
use raddle_trace::collector::Collector;
use raddle_trace::crash::End;
use raddle_trace::file::meta::ProgramInfo;
use raddle_trace::region::{Message, MessageLevel, Region, RegionConfig};
use raddle_trace::report::{
    Defaults, RawDependency, RawReport, decode, decode_defaults, decode_dependencies,
};
use raddle_trace::tables::Module;
use raddle_wire::region::{detect as setting, state};
use raddle_wire::report::REPORTS_MAX;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How the run ended.
pub struct Ended {
    pub status: ExitStatus,
    /// What the runtime left about a crash.
    pub end: Option<End>,
    pub messages: Vec<Message>,
    /// Reports that found no room in the region.
    pub dropped: usize,
    pub threads: u32,
    /// Which locks were asked for while others were held.
    pub dependencies: Vec<RawDependency>,
    pub modules: Vec<Module>,
    /// How often accesses were forgotten because there was too much memory in use.
    pub forgotten: u32,
}

/// How often the region is looked into while the program runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Who listens to what the program's runtime says.
pub trait Audience {
    /// A report, with the modules known by then. Is it shown?
    fn report(&mut self, report: RawReport, modules: &[Module]) -> bool;
    /// What the program itself wants, before it begins. Returns the options and settings that this leads to.
    fn defaults(&mut self, wishes: Defaults) -> (u64, [u64; setting::COUNT]);
}

/// Runs the program, and keeps a trace of it if there is a path for one. When the program has more than `memory_max` bytes
/// of memory, its runtime is asked to forget what it can do without.
pub fn detect(
    launch: &Launch,
    config: &RegionConfig,
    trace: Option<&Path>,
    memory_max: Option<u64>,
    audience: &mut impl Audience,
) -> anyhow::Result<Ended> {
    let region = Region::create(config).map_err(|error| {
        Refusal(format!(
            "cannot create the memory shared with the program ({error}); raise or remove `ulimit -v`"
        ))
    })?;
    let region = Arc::new(region);
    let program = ProgramInfo {
        command: launch.words(),
        directory: std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default(),
    };
    let collector = trace.map(|path| Collector::start(Arc::clone(&region), path, program)).transpose()?;
    let running = process::start(launch, &region, Streams::Inherited)?;
    let (done, is_done) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let status = running.wait(None);
        // Nobody listens any more only if hearing failed.
        let _ = done.send(());
        status
    });
    let mut heard = 0;
    let mut limiter = MemoryLimiter::default();
    loop {
        let ended = is_done.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout);
        while heard < region.reports().min(REPORTS_MAX) {
            match region.report(heard) {
                Some(words) => {
                    let shown = match decode_defaults(&words) {
                        Some(wishes) => {
                            let (options, settings) = audience.defaults(wishes);
                            region.answer_settings(options, &settings);
                            true
                        }
                        None => audience.report(decode(&words), &modules(&region)),
                    };
                    region.answer_report(heard, shown);
                }
                // Being written; if its writer is dead it never will be.
                None if !ended => break,
                None => {}
            }
            heard += 1;
        }
        if ended {
            break;
        }
        if let Some(limit) = memory_max {
            limiter.look(&region, limit);
        }
    }
    let status = waiting.join().map_err(|_| anyhow::anyhow!("waiting for the program failed"))??;
    if let Some(collector) = collector {
        collector.finish(status)?;
    }
    check_attached(launch, &region)?;
    let header = region.header();
    Ok(Ended {
        end: region.end().ok().flatten(),
        status,
        messages: region.messages().0,
        dropped: region.reports().saturating_sub(REPORTS_MAX),
        threads: header.threads.load(Ordering::Relaxed),
        dependencies: decode_dependencies(&region.dependency_words()),
        modules: modules(&region),
        forgotten: header.forget.load(Ordering::Relaxed),
    })
}

/// Watches the memory of the program.
#[derive(Default)]
struct MemoryLimiter {
    asked: Option<Instant>,
}

/// Forgetting takes a while, and what the program itself needs does not become less by it.
const ASK_AGAIN: Duration = Duration::from_millis(500);

impl MemoryLimiter {
    fn look(&mut self, region: &Region, limit: u64) {
        if self.asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
            return;
        }
        let header = region.header();
        if resident(header.claimed_pid.load(Ordering::Relaxed)).is_some_and(|bytes| bytes > limit) {
            header.forget.fetch_add(1, Ordering::Relaxed);
            self.asked = Some(Instant::now());
        }
    }
}

/// Bytes of memory that a process has.
fn resident(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

fn modules(region: &Region) -> Vec<Module> {
    let entries = (0..region.modules()).map(|ix| region.module(ix));
    entries
        .map(|entry| Module {
            path: String::from_utf8_lossy(&entry.path[..usize::from(entry.path_bytes)]).into_owned(),
            start: entry.start,
            end: entry.end,
            bias: entry.bias,
            build_id: entry.build_id[..usize::from(entry.build_id_bytes)].to_vec(),
        })
        .collect()
}

/// The runtime may have refused, or may never have been there.
fn check_attached(launch: &Launch, region: &Region) -> Result<(), Refusal> {
    match region.header().state.load(Ordering::Acquire) {
        state::REFUSED => {
            let (messages, _) = region.messages();
            let reason = messages
                .iter()
                .rev()
                .find(|message| message.level == MessageLevel::Error)
                .map_or("it does not say why", |message| message.text.as_str());
            Err(Refusal(format!("the runtime in {} gave up: {reason}", launch.program.display())))
        }
        state::NONE => Err(Refusal(format!(
            "no instrumented program was run by {}, so nothing was looked at; build it with `raddle cc`",
            launch.program.display()
        ))),
        _ => Ok(()),
    }
}
