//! Running a program with its threads steered: under a strategy, or along a schedule.

#![warn(clippy::wildcard_enum_match_arm)]

use super::patience::Patience;
use super::{Launch, Streams};
use crate::compiler::Refusal;
use crate::interrupt;
use crate::runtime_files::RuntimeFiles;
use raddle_explore::Strategy;
use raddle_trace::collector::Collector;
use raddle_trace::crash::End;
use raddle_trace::file::meta::ProgramInfo;
use raddle_trace::journal::{Journal, place as place_of};
use raddle_trace::region::{Region, RegionConfig};
use raddle_trace::schedule::{RunOptions, Schedule, StepKind, StopPlace, Visible};
use raddle_trace::tables::Module;
use raddle_wire::region::{ENV_REGION, OUTCOME_STATUS, PHASES, PartyEntry, observe, option, outcome, steer};
use raddle_wire::step::{self, StepWord};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A thread's part in how a steered run ended.
#[derive(Clone, Debug)]
pub struct SteeredParty {
    /// Hash of its spawn path.
    pub path: u64,
    /// Operation that it waits for or was about to do; none for a plain access.
    pub operation: Option<StepKind>,
    /// Where in the code: the program counter as `module+0x1234`.
    pub site: String,
    pub object: u64,
    /// Which of its visible operations this is.
    pub ordinal: u32,
    /// Bytes accessed and whether they are written, for a parked thread.
    pub bytes: u64,
    pub writes: bool,
    /// What the schedule expected instead, in a divergence.
    pub expected: Option<StepWord>,
    /// What it is doing, as the end of a sentence.
    pub phase: &'static str,
}

impl SteeredParty {
    /// What the thread is doing and where.
    pub fn state(&self) -> String {
        match self.operation {
            Some(operation) => format!("{} ({} at {})", self.phase, operation.word(), self.site),
            None => self.phase.to_owned(),
        }
    }
}

/// How a steered run ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// By itself.
    Ended(ExitStatus),
    Deadlock(Vec<SteeredParty>),
    /// All stop points were reached.
    Parked(Vec<SteeredParty>),
    /// The program did not follow the schedule.
    Diverged(Vec<SteeredParty>),
    /// Nothing moved any more.
    Stuck(Vec<SteeredParty>),
    /// The program made more threads than can be followed.
    TooManyThreads,
    /// It took longer than allowed and was ended. The threads and what they were doing, if the runtime could still say.
    TimedOut(Vec<SteeredParty>),
}

/// A finished steered run.
#[derive(Clone, Debug)]
pub struct Steered {
    pub outcome: Outcome,
    /// Steps of the schedule that were taken, or decisions that were made.
    pub steps: u64,
    /// Hash of all turns: the same for the same schedule, whatever the addresses.
    pub turns_hash: u64,
    /// What the runtime left about a crash, or about where the threads stood.
    pub end: Option<End>,
    /// Where it crashed, in a form in which runs can be compared; empty if it did not.
    pub crash_place: String,
    /// What the addresses of `end` belong to, if it crashed.
    pub modules: Vec<Module>,
}

/// Calls of a crash that tell it from others.
const CRASH_FRAMES: usize = 4;

/// Where a run crashed: the assertion, or the innermost calls.
pub fn crash_place(region: &Region, end: Option<&End>) -> String {
    let Some(End::Crash(report)) = end else { return String::new() };
    match &report.assertion {
        Some(assertion) => format!("{}:{}", assertion.file, assertion.line),
        None => {
            let modules = modules(region);
            let frames = report.threads.first().map_or(&[][..], |thread| &thread.frames);
            let place = |&pc: &u64| place_of(&modules, pc).unwrap_or_else(|| format!("{pc:#x}"));
            frames.iter().take(CRASH_FRAMES).map(place).collect::<Vec<_>>().join(" ")
        }
    }
}

/// The modules of a run that crashed; nothing of others.
pub fn modules_of_crash(region: &Region, end: Option<&End>) -> Vec<Module> {
    match end {
        Some(End::Crash(_)) => modules(region),
        _ => Vec::new(),
    }
}

/// What decides after the last step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    RoundRobin,
    /// A strategy with this seed.
    Strategy(Strategy, u64),
}

/// The options of the runtime that a schedule asks for.
pub fn options_of(schedule: &Schedule) -> u64 {
    let RunOptions {
        memory,
        from_start,
        keep_redundant,
        allocations,
        one_at_a_time,
        stable_memory,
        fixed_addresses: _,
        preload: _,
    } = schedule.head.options;
    let mut options = visible_options(&schedule.visible);
    for (wanted, bit) in [
        // Without a stop point nobody looks at accesses.
        (memory && !schedule.unordered.is_empty() || !schedule.stops.is_empty(), option::MEMORY),
        (from_start, option::BEFORE_FIRST_FORK),
        (keep_redundant, option::KEEP_REDUNDANT),
        (allocations, option::ALLOCATIONS),
        // A schedule of version 1 does not say it: those of explored runs, in which threads ran one at a time, say how they end.
        (one_at_a_time || schedule.expected.is_some(), option::ONE_AT_A_TIME),
        (stable_memory, option::STABLE_MEMORY),
    ] {
        if wanted {
            options |= bit;
        }
    }
    options
}

/// The options of a recorded run as a schedule has them.
pub fn run_options(options: u64) -> RunOptions {
    let has = |bit: u64| options & bit != 0;
    RunOptions {
        memory: has(option::MEMORY),
        from_start: has(option::BEFORE_FIRST_FORK),
        keep_redundant: has(option::KEEP_REDUNDANT),
        allocations: has(option::ALLOCATIONS),
        one_at_a_time: has(option::ONE_AT_A_TIME),
        stable_memory: has(option::STABLE_MEMORY),
        fixed_addresses: false,
        preload: false,
    }
}

/// The region of a run along a schedule.
pub fn replay_config(schedule: &Schedule, then: Then) -> Result<RegionConfig, Refusal> {
    let mut config = RegionConfig {
        observe: 0,
        steer: steer::REPLAY,
        options: options_of(schedule),
        seed: schedule.head.seed,
        blob: blob(schedule, &[])?,
        repeated_run_ms: schedule.head.took_ms,
        ..RegionConfig::default()
    };
    match then {
        Then::RoundRobin => config.options |= option::THEN_ROUND_ROBIN,
        Then::Strategy(strategy, seed) => {
            config.seed = seed;
            (config.strategy, config.parameters) = strategy.encode(STEPS_AFTER);
        }
    }
    Ok(config)
}

/// Decisions that a strategy is told to expect after the end of a schedule.
const STEPS_AFTER: u64 = 200;

/// Runs the program along a schedule.
pub fn replay(
    launch: &Launch,
    schedule: &Schedule,
    streams: Streams,
    timeout: Duration,
) -> anyhow::Result<Steered> {
    run(launch, &replay_config(schedule, Then::RoundRobin)?, streams, timeout)
}

/// How long a run that takes too long has to say where its threads are before it is killed.
pub const REPORT_TIMEOUT: Duration = Duration::from_millis(300);

/// Runs the program in gdb, which belongs to the user.
pub fn debug(launch: &Launch, config: &RegionConfig, commands: &[String]) -> anyhow::Result<ExitStatus> {
    let config = RegionConfig { options: config.options | option::DEBUGGER, ..config.clone() };
    let region = create(&config)?;
    let mut command = Command::new("gdb");
    command.args(["-q", "-ex", "set startup-with-shell off", "-ex", "set pagination off"]);
    command.arg("-ex").arg(format!("set environment {ENV_REGION} {}", super::process::region_path(&region)));
    if launch.preload {
        let shared = RuntimeFiles::unpack()?.shared();
        command.arg("-ex").arg(format!("set environment LD_PRELOAD {}", shared.display()));
    }
    if !commands.is_empty() {
        command.arg("-batch");
    }
    command.args(["-ex", "run", "-ex", "info threads"]);
    for line in commands {
        command.arg("-ex").arg(line);
    }
    command.arg("--args").arg(&launch.program).args(&launch.arguments);
    let status = command
        .status()
        .map_err(|error| Refusal(format!("cannot start gdb: {error}; install it, or leave out --gdb")))?;
    Ok(status)
}

/// Options of a run in which these accesses are visible.
pub fn visible_options(visible: &Visible) -> u64 {
    // No access may be taken for redundant: each has its turn.
    match visible {
        Visible::Sync => 0,
        Visible::Sites(_) => option::VISIBLE_SITES | option::MEMORY | option::KEEP_REDUNDANT,
        Visible::All => option::VISIBLE_ALL | option::MEMORY | option::KEEP_REDUNDANT,
    }
}

/// Most output of one run that is kept for comparison.
pub const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// As [`run`], silently, and hands over what the program printed and what it shared.
pub fn run_shared(
    launch: &Launch,
    config: &RegionConfig,
    timeout: Duration,
) -> anyhow::Result<(Steered, Vec<u8>, Region)> {
    let region = create(config)?;
    let mut output = tempfile::tempfile()?;
    let (steered, _) = run_in(launch, &region, Streams::Silent, Some(output.try_clone()?), timeout)?;
    Ok((steered, read_output(&mut output)?, region))
}

fn read_output(output: &mut std::fs::File) -> std::io::Result<Vec<u8>> {
    use std::io::{Read, Seek};
    output.rewind()?;
    let mut bytes = Vec::new();
    output.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A steered run with its turns.
pub struct Journaled {
    pub steered: Steered,
    pub stdout: Vec<u8>,
    pub journal: Journal,
    pub modules: Vec<Module>,
}

/// As [`run_shared`], and hands over the journal of turns (which the configuration asks for).
pub fn run_journaled(launch: &Launch, config: &RegionConfig, timeout: Duration) -> anyhow::Result<Journaled> {
    let region = create(config)?;
    let mut output = tempfile::tempfile()?;
    let (steered, _) = run_in(launch, &region, Streams::Silent, Some(output.try_clone()?), timeout)?;
    let stdout = read_output(&mut output)?;
    Ok(Journaled { steered, stdout, journal: Journal::read(&region.journal()), modules: modules(&region) })
}

/// The program's modules, as traces have them.
pub fn modules(region: &Region) -> Vec<Module> {
    let module = |index| {
        let entry = region.module(index);
        Module {
            path: String::from_utf8_lossy(&entry.path[..usize::from(entry.path_bytes)]).into_owned(),
            start: entry.start,
            end: entry.end,
            bias: entry.bias,
            build_id: entry.build_id[..usize::from(entry.build_id_bytes)].to_vec(),
        }
    };
    (0..region.modules()).map(module).collect()
}

/// As [`run`], silently, and hands over what the runtime counted.
pub fn run_profiled(
    launch: &Launch,
    config: &RegionConfig,
    timeout: Duration,
) -> anyhow::Result<(Steered, Vec<[u64; 4]>)> {
    let region = create(config)?;
    let (steered, _) = run_in(launch, &region, Streams::Silent, None, timeout)?;
    Ok((steered, region.profile()))
}

/// Runs the program with the region's configuration and says how it ended.
pub fn run(
    launch: &Launch,
    config: &RegionConfig,
    streams: Streams,
    timeout: Duration,
) -> anyhow::Result<Steered> {
    Ok(run_in(launch, &create(config)?, streams, None, timeout)?.0)
}

/// As [`run`], and keeps a trace of the run at `path`.
pub fn run_recorded(
    launch: &Launch,
    config: &RegionConfig,
    streams: Streams,
    timeout: Duration,
    path: &Path,
) -> anyhow::Result<Steered> {
    let config = RegionConfig { observe: config.observe | observe::RECORD, ..config.clone() };
    let region = Arc::new(create(&config)?);
    let folder = launch.folder.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let program = ProgramInfo { command: launch.words(), directory: folder.display().to_string() };
    let collector = Collector::start(Arc::clone(&region), path, program)?;
    let (steered, status) = run_in(launch, &region, streams, None, timeout)?;
    // A run that took too long was killed.
    collector.finish(status.unwrap_or_else(|| ExitStatus::from_raw(libc::SIGKILL)))?;
    Ok(steered)
}

fn create(config: &RegionConfig) -> Result<Region, Refusal> {
    Region::create(config)
        .map_err(|error| Refusal(format!("cannot create the memory shared with the program ({error})")))
}

fn run_in(
    launch: &Launch,
    region: &Region,
    streams: Streams,
    stdout: Option<std::fs::File>,
    timeout: Duration,
) -> anyhow::Result<(Steered, Option<ExitStatus>)> {
    let mut command = launch.command(region, streams)?;
    if streams == Streams::Silent {
        // A group of its own: whatever it starts can be ended with it.
        command.process_group(0);
    }
    if let Some(stdout) = stdout {
        command.stdout(stdout);
    }
    super::process::die_with_us(&mut command);
    let mut child = launch.spawn(&mut command)?;
    let mut patience = Patience::new(timeout);
    let mut pause = Duration::from_micros(200);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if patience.is_over(child.id(), REPORT_TIMEOUT) || interrupt::signal().is_some() {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        if patience.is_over(child.id(), Duration::ZERO) {
            region.header().report.store(1, Ordering::Release);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    let header = region.header();
    let steps = header.steps.load(Ordering::Relaxed);
    let count = (header.party_count.load(Ordering::Acquire) as usize).min(header.parties.len());
    let found = header.outcome.load(Ordering::Acquire);
    let outcome = outcome_of(region, status, found, &header.parties[..count]);
    let end = region.end().ok().flatten();
    let crash_place = crash_place(region, end.as_ref());
    let modules = modules_of_crash(region, end.as_ref());
    let turns_hash = header.turns_hash.load(Ordering::Relaxed);
    Ok((Steered { outcome, steps, turns_hash, end, crash_place, modules }, status))
}

/// How a run ended, from the process's status (none: it was killed) and from what the runtime left.
///
/// A run that was asked to report has taken too long, whatever it said then.
pub fn outcome_of(
    region: &Region,
    status: Option<ExitStatus>,
    found: u32,
    entries: &[PartyEntry],
) -> Outcome {
    let parties = || parties(region, entries, found == outcome::DIVERGED);
    let late = region.header().report.load(Ordering::Acquire) != 0;
    match status {
        Some(status) if late && status.code() == Some(OUTCOME_STATUS) && found == outcome::STUCK => {
            Outcome::TimedOut(parties())
        }
        Some(status) if status.code() == Some(OUTCOME_STATUS) && found != outcome::NONE => match found {
            outcome::DEADLOCK => Outcome::Deadlock(parties()),
            outcome::PARKED => Outcome::Parked(parties()),
            outcome::DIVERGED => Outcome::Diverged(parties()),
            outcome::TOO_MANY_THREADS => Outcome::TooManyThreads,
            _ => Outcome::Stuck(parties()),
        },
        Some(status) => Outcome::Ended(status),
        None => Outcome::TimedOut(Vec::new()),
    }
}

fn parties(region: &Region, entries: &[PartyEntry], diverged: bool) -> Vec<SteeredParty> {
    entries
        .iter()
        .map(|party| {
            let detail = party.detail.load(Ordering::Relaxed);
            let kind = party.kind.load(Ordering::Relaxed) as usize;
            SteeredParty {
                path: party.path.load(Ordering::Relaxed),
                operation: StepKind::WORDS.get(kind).map(|&(kind, _)| kind),
                site: site(region, party.pc.load(Ordering::Relaxed)),
                object: party.object.load(Ordering::Relaxed),
                // In a divergence the runtime counts the operation that it found, otherwise those that are completed.
                ordinal: party.ordinal.load(Ordering::Relaxed).wrapping_add(u32::from(!diverged)),
                bytes: detail & 0xffff_ffff,
                writes: (detail >> 32) as u8 & raddle_wire::record::access::WRITE != 0,
                phase: PHASES.get(party.phase.load(Ordering::Relaxed) as usize).unwrap_or(&PHASES[0]),
                expected: (diverged && detail != u64::MAX).then(|| StepWord::unpack(detail)),
            }
        })
        .collect()
}

/// A program counter in the numbering of its file.
fn site(region: &Region, pc: u64) -> String {
    place_of(&modules(region), pc).unwrap_or_else(|| format!("{pc:#x}"))
}

/// What is said about a program that makes too many threads.
pub const TOO_MANY_THREADS: &str =
    "it made more threads than a steered run can follow (65,536 in all); let it make fewer";

/// Hash by which the runtime knows a thread.
pub fn thread_hash(name: &str) -> u64 {
    step::hash(step::HASH_START, name.as_bytes())
}

/// The schedule in the form that the runtime reads (`raddle_wire::step`).
pub fn blob(schedule: &Schedule, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
    let threads = schedule.threads();
    let index_of = |name: &str| -> Result<u16, Refusal> {
        let at = threads.iter().position(|&thread| thread == name);
        at.and_then(|at| u16::try_from(at).ok()).ok_or_else(|| {
            Refusal("the schedule names more threads than can be replayed (65,536)".to_owned())
        })
    };
    let mut by_name = std::collections::HashMap::new();
    let sites: &[_] = match &schedule.visible {
        Visible::Sites(sites) => sites,
        Visible::Sync | Visible::All => &[],
    };
    let mut words: Vec<u64> = vec![
        threads.len() as u64,
        schedule.steps.len() as u64,
        schedule.stops.len() as u64,
        schedule.blocks.len() as u64,
        sites.len() as u64,
        payload.len() as u64,
    ];
    words.extend(threads.iter().map(|name| thread_hash(name)));
    for step in &schedule.steps {
        let thread = match by_name.get(&step.thread) {
            Some(&thread) => thread,
            None => {
                let thread = index_of(schedule.name(step.thread))?;
                by_name.insert(step.thread, thread);
                thread
            }
        };
        words.push(
            StepWord { thread, kind: step.kind as u8, failed: step.failed, ordinal: step.ordinal }.pack(),
        );
    }
    for stop in &schedule.stops {
        let (kind, text) = match stop.place {
            StopPlace::Code(name) => (step::PLACE_CODE, schedule.name(name)),
            StopPlace::Object(name) => (step::PLACE_OBJECT, schedule.name(name)),
        };
        let (module, offset) = place(text)?;
        words.extend([
            u64::from(index_of(schedule.name(stop.thread))?),
            u64::from(stop.after),
            u64::from(stop.occurrence),
            kind,
            offset,
            module,
        ]);
    }
    for block in &schedule.blocks {
        let thread = index_of(schedule.name(block.thread))?;
        words.push(StepWord { thread, kind: block.kind as u8, failed: false, ordinal: block.ordinal }.pack());
    }
    for &site in sites {
        let (module, offset) = place(schedule.name(site))?;
        words.extend([offset, module]);
    }
    // The sum by which the runtime finds its way through the words.
    let expected = step::HEAD_WORDS
        + threads.len()
        + schedule.steps.len()
        + schedule.stops.len() * step::STOP_WORDS
        + schedule.blocks.len()
        + sites.len() * step::SITE_WORDS;
    assert_eq!(words.len(), expected, "the head of a schedule's binary form counts its words");
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

/// `module+0x1234` as the hash of the module's file name and the offset; a bare number is an address.
pub fn place(text: &str) -> Result<(u64, u64), Refusal> {
    let refusal =
        || Refusal(format!("the schedule stops at `{text}`, which is not of the form module+0x1234"));
    let number = |digits: &str| u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok();
    match text.rsplit_once('+') {
        Some((module, offset)) => {
            Ok((step::hash(step::HASH_START, module.as_bytes()), number(offset).ok_or_else(refusal)?))
        }
        None => Ok((0, number(text).ok_or_else(refusal)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_as_the_runtime_numbers_them() {
        for (index, &(kind, word)) in StepKind::WORDS.iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(step::WORDS[index], word);
        }
        assert_eq!(step::WORDS.len(), StepKind::WORDS.len());
    }

    #[test]
    fn places_are_modules_and_offsets() {
        let (module, offset) = place("bank+0x11f4").unwrap();
        assert_eq!((module, offset), (step::hash(step::HASH_START, b"bank"), 0x11f4));
        assert_eq!(place("0x10").unwrap(), (0, 0x10));
        assert!(place("bank.c:31").is_err());
    }
}
