//! Recording a demo and giving it again. The program's output passes through here, so that it can be compared.

use super::steering::{self, Outcome, Then};
use super::{Launch, Streams, process};
use crate::compiler::Refusal;
use anyhow::Context;
use raddle_explore::Strategy;
use raddle_trace::demo::{About, Demo, Detecting};
use raddle_trace::journal::Journal;
use raddle_trace::region::{Message, Region, RegionConfig};
use raddle_wire::region::{observe, option, outcome};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Most bytes of a demo's journal. Only what is written costs memory.
const JOURNAL_BYTES_MAX: u64 = 16 << 30;

/// How a demo is recorded.
pub struct Settings {
    pub strategy: Strategy,
    pub seed: u64,
    pub stable_memory: bool,
    /// Steps that the strategy plans for, if known.
    pub steps: Option<u64>,
    /// Nobody's turn begins while somebody runs.
    pub one_at_a_time: bool,
    /// Functions whose results are not recorded.
    pub left_out: Vec<String>,
}

/// A program's run with its output passed on.
struct Passed {
    status: ExitStatus,
    timed_out: bool,
    stdout: u64,
    stderr: u64,
}

/// Runs the program and makes a demo of it.
pub fn record(launch: &Launch, settings: &Settings) -> anyhow::Result<(Demo, ExitStatus, Vec<Message>)> {
    record_watched(launch, settings, None, &mut |_| ())
}

/// The same while errors are looked for; `look` is called again and again, for the last time when the program is gone.
pub fn record_watched(
    launch: &Launch,
    settings: &Settings,
    detecting: Option<&Detecting>,
    look: Look<'_>,
) -> anyhow::Result<(Demo, ExitStatus, Vec<Message>)> {
    let (strategy, parameters) = settings.strategy.encode(settings.steps.unwrap_or(STEPS_UNKNOWN));
    let mut config = RegionConfig {
        observe: 0,
        steer: settings.strategy.steer(),
        options: option::DEMO | stable(settings.stable_memory) | one_at_a_time(settings.one_at_a_time),
        seed: settings.seed,
        strategy,
        parameters,
        journal_max: JOURNAL_BYTES_MAX,
        calls_left_out: calls(&settings.left_out)?,
        ..RegionConfig::default()
    };
    detect(&mut config, detecting);
    let region = Arc::new(create(&config)?);
    let caught = process::Caught::now()?;
    let end = End { timeout: None, ..End::default() };
    let passed = pass(launch, &region, settings.stable_memory, false, (Some(caught), end), look)?;
    if region.header().outcome.load(Ordering::Acquire) == outcome::TOO_MANY_THREADS {
        return Err(Refusal(format!(
            "no demo of {}: {}",
            launch.program.display(),
            steering::TOO_MANY_THREADS
        ))
        .into());
    }
    let about = About {
        command: launch.words(),
        directory: std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default(),
        strategy: settings.strategy.to_string(),
        seed: settings.seed,
        stable_memory: settings.stable_memory,
        preload: launch.preload,
        left_out: settings.left_out.clone(),
        deadlock: region.header().outcome.load(Ordering::Acquire) == outcome::DEADLOCK,
        one_at_a_time: settings.one_at_a_time,
        detecting: detecting.cloned(),
        ended_by: passed.status.signal().unwrap_or(0),
        status: process::shell_status(passed.status),
        stdout: passed.stdout,
        stderr: passed.stderr,
        ..About::default()
    };
    let demo = Demo::new(about, Journal::read(&region.journal()), &steering::modules(&region));
    if demo.steps.is_empty() && region.header().images.load(Ordering::Relaxed) == 0 {
        return Err(Refusal(format!(
            "no runtime was found in {}; build it with `raddle cc`, or try --preload",
            launch.program.display()
        ))
        .into());
    }
    Ok((demo, passed.status, region.messages().0))
}

/// What looks into the region while the program runs.
pub type Look<'a> = &'a mut dyn FnMut(&Arc<Region>);

fn detect(config: &mut RegionConfig, detecting: Option<&Detecting>) {
    let Some(detecting) = detecting else { return };
    config.observe = observe::DETECT;
    config.options |= detecting.options;
    for (setting, &value) in config.detect.iter_mut().zip(&detecting.settings) {
        *setting = value;
    }
}

/// Functions by name as bits.
fn calls(names: &[String]) -> Result<u64, Refusal> {
    names.iter().try_fold(0, |bits, name| match raddle_wire::calls::index_of(name) {
        Some(index) => Ok(bits | 1 << index),
        None => Err(Refusal(format!(
            "a demo knows no function `{name}`; it knows {}",
            raddle_wire::calls::CALLS.join(", ")
        ))),
    })
}

/// Steps that a strategy plans for.
const STEPS_UNKNOWN: u64 = 1000;

fn stable(wanted: bool) -> u64 {
    if wanted { option::STABLE_MEMORY } else { 0 }
}

fn one_at_a_time(wanted: bool) -> u64 {
    if wanted { option::ONE_AT_A_TIME } else { 0 }
}

/// What became of a demo that was given again.
pub enum Replayed {
    /// The run was the same.
    Same,
    /// It could not be given to the end: what was expected and what was found.
    Hard(String),
    /// All steps were taken, but something that can be seen is different.
    Soft(String),
}

/// Gives a demo again.
pub fn replay(
    launch: &Launch,
    demo: &Demo,
    silent: bool,
    timeout: Duration,
    look: Look<'_>,
) -> anyhow::Result<(Replayed, ExitStatus)> {
    let schedule = demo.schedule();
    let mut config = steering::replay_config(&schedule, Then::RoundRobin)?;
    config.options |= option::DEMO | stable(demo.about.stable_memory);
    config.options |= one_at_a_time(demo.about.one_at_a_time);
    config.calls_left_out = calls(&demo.about.left_out)?;
    // Which store a load reads is decided by the seed, too.
    config.seed = demo.about.seed;
    detect(&mut config, demo.about.detecting.as_ref());
    config.blob = steering::blob(&schedule, &demo.payload())?;
    let region = Arc::new(create(&config)?);
    // A run that a signal from outside has ended would go on now; the demo ends where it did.
    let end = End { timeout: Some(timeout), ended_by: demo.about.ended_by, steps: demo.steps.len() as u64 };
    let passed = pass(launch, &region, demo.about.stable_memory, silent, (None, end), look)?;
    let header = region.header();
    let steps = header.steps.load(Ordering::Relaxed);
    let count = (header.party_count.load(Ordering::Acquire) as usize).min(header.parties.len());
    let found = header.outcome.load(Ordering::Acquire);
    let ended = steering::outcome_of(&region, Some(passed.status), found, &header.parties[..count]);
    let why = region.messages().0.first().map_or(String::new(), |message| format!(" ({})", message.text));
    let replayed = match ended {
        _ if passed.timed_out => Replayed::Hard(format!(
            "the replay took longer than {} s; {steps} of {} steps were taken",
            timeout.as_secs(),
            demo.steps.len()
        )),
        Outcome::Ended(status) => compare(demo, status, steps, &passed),
        Outcome::Deadlock(_) if demo.about.deadlock => compare(demo, passed.status, steps, &passed),
        outcome => {
            let expected = demo.steps.get(steps as usize).map_or(String::new(), |step| {
                format!(
                    "; expected was thread {} at {} ({})",
                    demo.about.threads[step.thread as usize],
                    step.kind.word(),
                    demo.about.sites[step.site as usize]
                )
            });
            Replayed::Hard(format!("{}{expected}{why}", describe(demo, &outcome, steps)))
        }
    };
    Ok((replayed, passed.status))
}

fn describe(demo: &Demo, outcome: &Outcome, steps: u64) -> String {
    let parties = match outcome {
        Outcome::Diverged(parties) | Outcome::Stuck(parties) | Outcome::Deadlock(parties) => {
            parties.as_slice()
        }
        _ => &[],
    };
    let name = |hash: u64| {
        let known = demo.about.threads.iter().find(|name| steering::thread_hash(name) == hash);
        known.map_or("another thread", String::as_str)
    };
    let found: Vec<String> = parties
        .iter()
        .map(|party| {
            let operation = party.operation.map_or("a memory access", |kind| kind.word());
            format!("thread {} at {operation} ({})", name(party.path), party.site)
        })
        .collect();
    format!("after {steps} of {} steps: found {}", demo.steps.len(), found.join(", "))
}

fn compare(demo: &Demo, status: ExitStatus, steps: u64, passed: &Passed) -> Replayed {
    let about = &demo.about;
    let mut differences = Vec::new();
    if process::shell_status(status) != about.status {
        differences.push(format!("the status is {}, not {}", process::shell_status(status), about.status));
    }
    if passed.stdout != about.stdout {
        differences.push("the standard output differs".to_owned());
    }
    if passed.stderr != about.stderr {
        differences.push("the standard error differs".to_owned());
    }
    if steps < demo.steps.len() as u64 {
        differences.push(format!("only {steps} of {} steps were taken", demo.steps.len()));
    }
    if differences.is_empty() { Replayed::Same } else { Replayed::Soft(differences.join(", ")) }
}

fn create(config: &RegionConfig) -> Result<Region, Refusal> {
    Region::create(config)
        .map_err(|error| Refusal(format!("cannot create the memory shared with the program ({error})")))
}

/// What ends a run beside the program itself.
#[derive(Clone, Copy, Default)]
struct End {
    timeout: Option<Duration>,
    /// The signal that ended the recorded run, or 0, and the steps that were taken until then.
    ended_by: i32,
    steps: u64,
}

/// Runs the program; what it prints is passed on (unless `silent`) and hashed.
fn pass(
    launch: &Launch,
    region: &Arc<Region>,
    fixed_addresses: bool,
    silent: bool,
    (caught, end): (Option<process::Caught>, End),
    look: Look<'_>,
) -> anyhow::Result<Passed> {
    let mut command = launch.command(region, Streams::Inherited)?;
    if fixed_addresses && !launch.fixed_addresses {
        process::fix_addresses_of(&mut command);
    }
    process::die_with_us(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = launch.spawn(&mut command)?;
    let forwarding = caught.map(|caught| caught.pass_to(&child));
    let stdout = child.stdout.take().context("the program has no standard output")?;
    let stderr = child.stderr.take().context("the program has no standard error")?;
    // Where standard output is Raddle's own, the program's goes to standard error.
    let to_error = launch.output_to_error;
    let copy_out = std::thread::spawn(move || match (silent, to_error) {
        (true, _) => hash_and_copy(stdout, None::<std::io::Sink>),
        (false, true) => hash_and_copy(stdout, Some(std::io::stderr())),
        (false, false) => hash_and_copy(stdout, Some(std::io::stdout())),
    });
    let copy_err = std::thread::spawn(move || hash_and_copy(stderr, (!silent).then(std::io::stderr)));
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if end.timeout.is_some_and(|timeout| started.elapsed() > timeout) && !timed_out {
            timed_out = true;
            // It may have ended by itself in this moment.
            let _ = child.kill();
        }
        if let Some(signal) = rustix::process::Signal::from_named_raw(end.ended_by)
            && region.header().steps.load(Ordering::Relaxed) >= end.steps
        {
            // As above.
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal);
        }
        look(region);
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    if let Some(forwarding) = forwarding {
        forwarding.end();
    }
    let stdout = copy_out.join().map_err(|_| anyhow::anyhow!("cannot pass on the program's output"))?;
    let stderr = copy_err.join().map_err(|_| anyhow::anyhow!("cannot pass on the program's errors"))?;
    look(region);
    Ok(Passed { status, timed_out, stdout, stderr })
}

fn hash_and_copy(mut from: impl Read, mut to: Option<impl Write>) -> u64 {
    let mut hash = raddle_wire::step::HASH_START;
    let mut buffer = [0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return hash,
            Ok(count) => {
                hash = raddle_wire::step::hash(hash, &buffer[..count]);
                if let Some(to) = &mut to {
                    // A reader that has gone away does not end the recording.
                    let _ = to.write_all(&buffer[..count]).and_then(|()| to.flush());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return hash,
        }
    }
}
