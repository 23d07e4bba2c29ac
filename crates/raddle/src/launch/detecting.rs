//! Running a program under online detection and listening to what its runtime reports.

use super::following::{Follower, GRACE, Process};
use super::halting::{Halt, Warden};
use super::recording::{ended_as, numbered};
use super::steering::modules;
use super::{Launch, Streams, create_region, demo, process};
use crate::compiler::Refusal;
use raddle_trace::collector::Collector;
use raddle_trace::crash::End;
use raddle_trace::demo::{Demo, Detecting};
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

/// How a process ended, and what its runtime left.
pub struct Ended {
    pub status: ExitStatus,
    /// The process, if it is not the one that Raddle started.
    pub process: Option<Process>,
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
    /// Why Raddle ended it, if it did.
    pub halt: Option<Halt>,
}

/// What came of running a program.
pub struct Detected {
    /// How the program itself ended.
    pub status: ExitStatus,
    /// Each process that was observed. There is at least one.
    pub processes: Vec<Ended>,
    /// Which processes were seen and which were not, if there is something to say.
    pub followed: Option<String>,
}

/// How often the region is looked into while the program runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Who listens to what the program's runtime says.
pub trait Audience {
    /// A report of the process with this number, with its modules known by then. Is it shown?
    fn report(&mut self, process: usize, report: RawReport, modules: &[Module]) -> bool;
    /// What the program itself wants, before it begins. Returns the options and settings that this leads to.
    fn defaults(&mut self, wishes: Defaults) -> (u64, [u64; setting::COUNT]);
}

/// Runs the program, makes a demo of the run, and listens to what is found meanwhile.
pub fn detect_demo(
    launch: &Launch,
    config: &RegionConfig,
    settings: &demo::Settings,
    audience: &mut impl Audience,
) -> anyhow::Result<(Detected, Demo)> {
    let detecting = Detecting { options: config.options, settings: config.detect.to_vec() };
    let mut own = None;
    let mut look = |region: &Arc<Region>| {
        if own.is_none() {
            own = Listening::start(1, Arc::clone(region), None, launch, None).ok();
        }
        if let Some(listening) = &mut own {
            listening.hear(false, audience);
        }
    };
    let (demo, status, _) = demo::record_watched(launch, settings, Some(&detecting), &mut look)?;
    let mut processes = Vec::new();
    if let Some(mut listening) = own {
        listening.hear(true, audience);
        processes.push(listening.finish(status)?);
    }
    Ok((Detected { status, processes, followed: None }, demo))
}

/// Gives a demo again and listens to what is found meanwhile, if something was looked for when it was recorded.
pub fn replay_demo(
    launch: &Launch,
    demo: &Demo,
    silent: bool,
    timeout: Duration,
    audience: &mut impl Audience,
) -> anyhow::Result<(demo::Replayed, ExitStatus, Vec<Ended>)> {
    let detects = demo.about.detecting.is_some();
    let mut own = None;
    let mut look = |region: &Arc<Region>| {
        if detects && own.is_none() {
            own = Listening::start(1, Arc::clone(region), None, launch, None).ok();
        }
        if let Some(listening) = &mut own {
            listening.hear(false, audience);
        }
    };
    let (replayed, status) = demo::replay(launch, demo, silent, timeout, &mut look)?;
    let mut processes = Vec::new();
    if let Some(mut listening) = own {
        listening.hear(true, audience);
        processes.push(listening.finish(status)?);
    }
    Ok((replayed, status, processes))
}

/// Runs the program, and keeps a trace of it if there is a path for one. When a process has more than `memory_max` bytes
/// of memory, its runtime is asked to forget what it can do without.
pub fn detect(
    launch: &Launch,
    config: &RegionConfig,
    trace: Option<&Path>,
    memory_max: Option<u64>,
    streams: Streams,
    audience: &mut impl Audience,
) -> anyhow::Result<Detected> {
    let region = Arc::new(create_region(config)?);
    let mut follower = Follower::new(&region, config, launch);
    let mut living = Vec::new();
    if !launch.passed_through {
        living.push(Listening::start(1, Arc::clone(&region), trace, launch, None)?);
    }
    let running = process::start(launch, &region, streams)?;
    let (done, is_done) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let status = running.wait(|| ());
        // Nobody listens any more only if hearing failed.
        let _ = done.send(());
        status
    });
    let mut ended = Vec::new();
    let mut number = living.len();
    let mut done_since = None;
    loop {
        if done_since.is_some() {
            std::thread::sleep(LOOK_EVERY);
        } else if is_done.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
            done_since = Some(Instant::now());
        }
        let over = done_since.is_some_and(|since| since.elapsed() > GRACE);
        if !over {
            follower.answer(|process, region| {
                number += 1;
                let launch = process.launch.clone();
                living.push(Listening::start(number, region, trace, &launch, Some(process))?);
                Ok(())
            })?;
        }
        let mut still = Vec::new();
        for mut listening in living {
            let gone = match &listening.process {
                Some(process) => over || process.is_gone(),
                None => done_since.is_some(),
            };
            listening.hear(gone, audience);
            match gone {
                true => ended.push(listening),
                false => {
                    listening.warden.look(&listening.region);
                    listening.limit(memory_max);
                    still.push(listening);
                }
            }
        }
        living = still;
        if done_since.is_some() && living.is_empty() {
            break;
        }
    }
    follower.stop();
    let status = waiting.join().map_err(|_| anyhow::anyhow!("waiting for the program failed"))??;
    ended.sort_by_key(|listening| listening.number);
    let mut processes = Vec::new();
    for listening in ended {
        let own = listening.process.is_none();
        if own {
            check_attached(launch, &listening.region)?;
        }
        let status = if own { status } else { ended_as(&listening.region) };
        processes.push(listening.finish(status)?);
    }
    if processes.is_empty() {
        return Err(unattached(launch).into());
    }
    Ok(Detected { status, processes, followed: follower.summary() })
}

/// A process whose reports are being heard.
struct Listening {
    number: usize,
    region: Arc<Region>,
    collector: Option<Collector>,
    process: Option<Process>,
    /// Reports that have been heard.
    heard: usize,
    limiter: MemoryLimiter,
    warden: Warden,
}

impl Listening {
    fn start(
        number: usize,
        region: Arc<Region>,
        trace: Option<&Path>,
        launch: &Launch,
        process: Option<Process>,
    ) -> anyhow::Result<Listening> {
        let folder = launch.folder.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let program = ProgramInfo { command: launch.words(), directory: folder.display().to_string() };
        let collector = trace
            .map(|path| Collector::start(Arc::clone(&region), &numbered(path, number), program))
            .transpose()?;
        let (limiter, warden) = (MemoryLimiter::default(), Warden::new(launch.run_timeout));
        Ok(Listening { number, region, collector, process, heard: 0, limiter, warden })
    }

    /// Hands over what was reported since the last time.
    fn hear(&mut self, gone: bool, audience: &mut impl Audience) {
        let region = &self.region;
        while self.heard < region.reports().min(REPORTS_MAX) {
            match region.report(self.heard) {
                Some(words) => {
                    let shown = match decode_defaults(&words) {
                        Some(wishes) => {
                            let (options, settings) = audience.defaults(wishes);
                            region.answer_settings(options, &settings);
                            true
                        }
                        None => audience.report(self.number, decode(&words), &modules(region)),
                    };
                    region.answer_report(self.heard, shown);
                }
                // Being written; if its writer is dead it never will be.
                None if !gone => break,
                None => {}
            }
            self.heard += 1;
        }
    }

    fn limit(&mut self, memory_max: Option<u64>) {
        if let Some(limit) = memory_max {
            self.limiter.look(&self.region, limit);
        }
    }

    fn finish(self, status: ExitStatus) -> anyhow::Result<Ended> {
        if let Some(collector) = self.collector {
            collector.finish(status)?;
        }
        let header = self.region.header();
        Ok(Ended {
            end: self.region.end().ok().flatten(),
            status,
            messages: self.region.messages().0,
            dropped: self.region.reports().saturating_sub(REPORTS_MAX),
            threads: header.threads.load(Ordering::Relaxed),
            dependencies: decode_dependencies(&self.region.dependency_words()),
            modules: modules(&self.region),
            forgotten: header.forget.load(Ordering::Relaxed),
            process: self.process,
            halt: self.warden.halted(),
        })
    }
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
        state::NONE => Err(unattached(launch)),
        _ => Ok(()),
    }
}

fn unattached(launch: &Launch) -> Refusal {
    Refusal(format!(
        "no instrumented program was run by {}, so nothing was looked at; build it with `raddle cc`",
        launch.program.display()
    ))
}
