//! Recording one run of a program, and of the processes that it starts.

use super::following::{Follower, GRACE, Process};
use super::halting::{Halt, Warden};
use super::{Launch, Streams, process};
use crate::commands::Ctx;
use crate::compiler::Refusal;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_trace::collector::{Collector, Progress, Summary};
use raddle_trace::crash::End;
use raddle_trace::file::meta::{ProgramInfo, ProgramState};
use raddle_trace::region::{MessageLevel, Region, RegionConfig};
use raddle_trace::tables::Module;
use raddle_wire::region::{option, state};
use rustix::process::{Resource, getrlimit};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What the runtime reserves to watch memory accesses. Only address space: hardly any of it is ever used.
const ADDRESS_SPACE_WITH_MEMORY: u64 = 64 << 40;
/// What it needs to watch synchronisation only: the region, and room to spare.
const ADDRESS_SPACE_SYNC_ONLY: u64 = 2 << 30;

/// A progress display appears only when a run takes longer than this: the program's own output comes first.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// The finished recording of one process.
pub struct Recording {
    pub summary: Summary,
    pub status: ExitStatus,
    /// What the runtime left about a crash, and the modules that its addresses belong to.
    pub end: Option<End>,
    pub modules: Vec<Module>,
    /// How long the process ran.
    pub took: Duration,
    /// The process, if it is not the one that Raddle started.
    pub process: Option<Process>,
    /// Why Raddle ended it, if it did.
    pub halt: Option<Halt>,
}

impl Recording {
    /// What became of the process, as the end of a sentence.
    pub fn ending(&self) -> String {
        self.halt.map_or_else(|| process::describe(self.status), |halt| halt.describe().to_owned())
    }
}

/// What came of running a program.
pub struct Recorded {
    /// How the program itself ended.
    pub status: ExitStatus,
    /// One recording for each process that was observed, in the order in which they began. There is at least one.
    pub recordings: Vec<Recording>,
    /// Which processes were seen and which were not, if there is something to say.
    pub followed: Option<String>,
}

/// Runs the program once and keeps the trace at `path`, and the traces of further processes beside it.
pub fn record(launch: &Launch, config: &RegionConfig, path: &Path, ctx: &Ctx) -> anyhow::Result<Recorded> {
    check_address_space(config)?;
    let region = Arc::new(super::create_region(config)?);
    let mut follower = Follower::new(&region, config, launch);
    let mut own = match launch.passed_through {
        true => None,
        false => Some(Observed::start(&region, path, launch, None)?),
    };
    let running = match process::start(launch, &region, Streams::Inherited) {
        Ok(running) => running,
        Err(error) => {
            if let Some(own) = own {
                own.discard();
            }
            return Err(error);
        }
    };
    let observed_itself = own.is_some();
    let nothing = Progress::default();
    let done = AtomicBool::new(false);
    let (status, others) = std::thread::scope(|scope| {
        let attending = scope.spawn(|| attend(&mut follower, path, usize::from(observed_itself), &done));
        let (progress, mut watched) = match &mut own {
            Some(own) => (own.collector.progress(), Some((&own.region, &mut own.warden))),
            None => (&nothing, None),
        };
        let look = || {
            if let Some((region, warden)) = &mut watched {
                warden.look(region);
            }
        };
        let status = with_progress(ctx, progress, || running.wait(look));
        done.store(true, Ordering::Release);
        (status, attending.join())
    });
    let status = status?;
    let mut recordings = Vec::new();
    if let Some(own) = own {
        let recording = own.finish(status)?;
        check_attached(launch, &recording.summary)?;
        recordings.push(recording);
    }
    recordings.extend(others.map_err(|_| anyhow::anyhow!("following the program failed"))??);
    if recordings.is_empty() {
        return Err(unattached(launch).into());
    }
    Ok(Recorded { status, recordings, followed: follower.summary() })
}

/// Records one of many runs, with the program's streams closed, and ends it when it takes too long.
pub fn record_silently(
    launch: &Launch,
    config: &RegionConfig,
    path: &Path,
    timeout: Duration,
) -> anyhow::Result<Recording> {
    check_address_space(config)?;
    let region = Arc::new(super::create_region(config)?);
    let own = Observed::start(&region, path, launch, None)?;
    let running = match process::start(launch, &region, Streams::Silent) {
        Ok(running) => running,
        Err(error) => {
            own.discard();
            return Err(error);
        }
    };
    let status = running.wait_within(timeout)?;
    let recording = own.finish(status)?;
    check_attached(launch, &recording.summary)?;
    Ok(recording)
}

/// A process that is being recorded.
struct Observed {
    region: Arc<Region>,
    collector: Collector,
    path: PathBuf,
    process: Option<Process>,
    began: Instant,
    warden: Warden,
}

impl Observed {
    fn start(
        region: &Arc<Region>,
        path: &Path,
        launch: &Launch,
        process: Option<Process>,
    ) -> anyhow::Result<Observed> {
        let folder = launch.folder.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let program = ProgramInfo { command: launch.words(), directory: folder.display().to_string() };
        let collector = Collector::start(Arc::clone(region), path, program)?;
        Ok(Observed {
            region: Arc::clone(region),
            collector,
            path: path.to_owned(),
            process,
            began: Instant::now(),
            warden: Warden::new(launch.run_timeout),
        })
    }

    /// Nothing was recorded: an empty trace would only confuse.
    fn discard(self) {
        drop(self.collector);
        let _ = std::fs::remove_file(&self.path);
    }

    fn finish(self, status: ExitStatus) -> anyhow::Result<Recording> {
        let took = self.began.elapsed();
        let summary = self.collector.finish(status)?;
        let end = self.region.end().ok().flatten();
        let modules = super::steering::modules(&self.region);
        let halt = self.warden.halted();
        Ok(Recording { summary, status, end, modules, took, process: self.process, halt })
    }
}

/// How often processes that have ended are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Records the processes that the program starts, until it is done and they are, or [`GRACE`] is over. `before` is the number
/// of processes that are recorded already.
fn attend(
    follower: &mut Follower,
    path: &Path,
    before: usize,
    done: &AtomicBool,
) -> anyhow::Result<Vec<Recording>> {
    let mut living: Vec<(usize, Observed)> = Vec::new();
    let mut finished: Vec<(usize, Recording)> = Vec::new();
    let mut number = before;
    let mut done_since = None;
    loop {
        let program_is_done = done.load(Ordering::Acquire);
        follower.answer(|process, region| {
            number += 1;
            let launch = process.launch.clone();
            living.push((number, Observed::start(&region, &numbered(path, number), &launch, Some(process))?));
            Ok(())
        })?;
        let gone =
            |(_, observed): &mut (usize, Observed)| observed.process.as_ref().is_some_and(Process::is_gone);
        for (number, observed) in living.extract_if(.., gone) {
            let status = ended_as(&observed.region);
            finished.push((number, observed.finish(status)?));
        }
        for (_, observed) in &mut living {
            observed.warden.look(&observed.region);
        }
        if program_is_done {
            let since: &mut Instant = done_since.get_or_insert_with(Instant::now);
            if living.is_empty() || since.elapsed() > GRACE {
                break;
            }
        }
        follower.wait(LOOK_EVERY);
    }
    follower.stop();
    for (number, observed) in living {
        finished.push((number, observed.finish(ExitStatus::from_raw(0))?));
    }
    finished.sort_by_key(|(number, _)| *number);
    Ok(finished.into_iter().map(|(_, recording)| recording).collect())
}

/// The path of the trace of the n-th process.
pub fn numbered(path: &Path, number: usize) -> PathBuf {
    match number {
        0 | 1 => path.to_owned(),
        _ => path.with_extension(format!("p{number}.trace")),
    }
}

/// How a process ended that is nobody's child here, as far as its runtime knew. One that left without a word counts as
/// ended by itself; its trace says that it is cut.
pub fn ended_as(region: &Region) -> ExitStatus {
    let header = region.header();
    let raw = match (region.end().ok().flatten(), header.state.load(Ordering::Acquire)) {
        (Some(End::Crash(report)), _) => report.signal,
        (_, state::EXITED) => (header.exit_status.load(Ordering::Relaxed) & 0xff) << 8,
        _ => header.death_signal.load(Ordering::Relaxed).cast_signed() & 0x7f,
    };
    ExitStatus::from_raw(raw)
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
        ProgramState::Unattached => Err(unattached(launch)),
        _ => Ok(()),
    }
}

fn unattached(launch: &Launch) -> Refusal {
    Refusal(format!(
        "no instrumented program was run by {}, so nothing was recorded; build it with `raddle cc`, or try --preload",
        launch.program.display()
    ))
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
