//! Recording one run of a program.

use super::{Launch, Streams, process};
use crate::commands::Ctx;
use crate::compiler::Refusal;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_trace::collector::{Collector, Progress, Summary};
use raddle_trace::crash::End;
use raddle_trace::file::meta::{ProgramInfo, ProgramState};
use raddle_trace::region::{MessageLevel, RegionConfig};
use raddle_trace::tables::Module;
use raddle_wire::region::option;
use rustix::process::{Resource, getrlimit};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What the runtime reserves to watch memory accesses. Only address space: hardly any of it is ever used.
const ADDRESS_SPACE_WITH_MEMORY: u64 = 64 << 40;
/// What it needs to watch synchronisation only: the region, and room to spare.
const ADDRESS_SPACE_SYNC_ONLY: u64 = 2 << 30;

/// A progress display appears only when a run takes longer than this: the program's own output comes first.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// A finished recording.
pub struct Recording {
    pub summary: Summary,
    pub status: ExitStatus,
    /// What the runtime left about a crash, and the modules that its addresses belong to.
    pub end: Option<End>,
    pub modules: Vec<Module>,
    /// How long the program ran.
    pub took: Duration,
}

/// Runs the program once and keeps the trace at `path`.
pub fn record(launch: &Launch, config: &RegionConfig, path: &Path, ctx: &Ctx) -> anyhow::Result<Recording> {
    record_with(launch, config, path, ctx, None)
}

/// As [`record`], with the program's streams closed: one of many runs, ended when it takes too long.
pub fn record_silently(
    launch: &Launch,
    config: &RegionConfig,
    path: &Path,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<Recording> {
    record_with(launch, config, path, ctx, Some(timeout))
}

fn record_with(
    launch: &Launch,
    config: &RegionConfig,
    path: &Path,
    ctx: &Ctx,
    silent_for: Option<Duration>,
) -> anyhow::Result<Recording> {
    check_address_space(config)?;
    let region = super::create_region(config)?;
    let region = Arc::new(region);
    let program = ProgramInfo {
        command: launch.words(),
        directory: std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default(),
    };
    let collector = Collector::start(Arc::clone(&region), path, program)?;
    let streams = if silent_for.is_some() { Streams::Silent } else { Streams::Inherited };
    let started = Instant::now();
    let running = match process::start(launch, &region, streams) {
        Ok(running) => running,
        Err(error) => {
            // Nothing was recorded: an empty trace would only confuse.
            drop(collector);
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
    };
    let status = with_progress(ctx, collector.progress(), || running.wait(silent_for))?;
    let took = started.elapsed();
    let summary = collector.finish(status)?;
    check_attached(launch, &summary)?;
    let end = region.end().ok().flatten();
    let modules = super::steering::modules(&region);
    Ok(Recording { summary, status, end, modules, took })
}

fn check_address_space(config: &RegionConfig) -> Result<(), Refusal> {
    let (needed, hint) = if config.options & option::MEMORY != 0 {
        (ADDRESS_SPACE_WITH_MEMORY, " or record synchronisation only (--sync-only)")
    } else {
        (ADDRESS_SPACE_SYNC_ONLY, "")
    };
    match getrlimit(Resource::As).current {
        Some(limit) if limit < needed => Err(Refusal(format!(
            "the address space is limited to {} MiB, too little for the runtime; raise or remove the limit (`ulimit -v unlimited`){hint}",
            limit >> 20
        ))),
        _ => Ok(()),
    }
}

/// The runtime may have refused, or may never have been there.
fn check_attached(launch: &Launch, summary: &Summary) -> Result<(), Refusal> {
    match summary.ending.state {
        ProgramState::Refused => {
            let reason = summary
                .messages
                .iter()
                .rev()
                .find(|message| message.level == MessageLevel::Error)
                .map_or("it does not say why", |message| message.text.as_str());
            Err(Refusal(format!("the runtime in {} gave up: {reason}", launch.program.display())))
        }
        ProgramState::Unattached => Err(Refusal(format!(
            "no instrumented program was run by {}, so nothing was recorded; build it with `raddle cc`, or try --preload",
            launch.program.display()
        ))),
        _ => Ok(()),
    }
}

/// Runs `work` while a line on the terminal tells how far the recording is.
fn with_progress<T>(ctx: &Ctx, progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !ctx.progress() {
        return work();
    }
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PROGRESS_AFTER) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            let style = ProgressStyle::with_template("{spinner} recording: {msg} [{elapsed}]")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            loop {
                let (events, bytes) =
                    (progress.events.load(Ordering::Relaxed), progress.bytes.load(Ordering::Relaxed));
                bar.set_message(format!("{events} events, {} KiB", bytes >> 10));
                bar.tick();
                if is_done.recv_timeout(Duration::from_millis(200)) != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}
