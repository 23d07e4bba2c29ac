//! Many runs of one program under a strategy, several at a time.
//!
//! Each worker has a processor of its own and, if the program allows it, a fork server there; otherwise it starts the
//! program anew for each run. Run n has seed S + n whichever worker does it, so the result depends on the seed alone.

use super::Launch;
use super::server::ForkServer;
use super::steering::{self, Outcome, Steered, SteeredParty};
use anyhow::Context;
use raddle_explore::{Blocked, Campaign, Ending, Estimate, Observation, Strategy};
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::Head;
use raddle_wire::region::{noise, option};
use raddle_wire::step::SITE_WORDS;
use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What shall be run, and how often.
pub struct Plan<'a> {
    pub launch: &'a Launch,
    pub strategy: Strategy,
    /// What is known about a run before it starts.
    pub estimate: Estimate,
    /// Options of the region that every run has.
    pub options: u64,
    /// With `VISIBLE_SITES`: the places in the code whose accesses are visible, as `module+0x1234`.
    pub site_names: Vec<String>,
    /// Under noise: stretches of the program's code that it is confined to (none: it strikes everywhere).
    pub noise_at: Vec<[u64; noise::RANGE_WORDS]>,
    pub seed: u64,
    /// Every run has the same seed.
    pub same_seed: bool,
    pub runs: u64,
    /// Stop at the first error.
    pub first: bool,
    pub timeout: Duration,
    pub workers: usize,
    /// Start the program anew for each run, even if it could be forked.
    pub exec: bool,
    /// What a schedule of one of its runs begins with.
    pub head: Head,
}

/// Most bytes of a journal. Only what is written costs memory.
pub const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// Runs that a worker takes at a time.
const CHUNK: u64 = 64;
/// The same when the first error ends it all.
const CHUNK_FIRST: u64 = 8;

/// Processors that this process may use.
pub fn processors() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return vec![0] };
    let allowed: Vec<u32> =
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect();
    if allowed.is_empty() { vec![0] } else { allowed }
}

impl Plan<'_> {
    /// The region of the run with this seed.
    pub fn config(&self, seed: u64, processor: Option<u32>) -> RegionConfig {
        let (strategy, parameters) = self.strategy.encode(self.estimate.steps);
        let mut words = self.strategy.words(&self.estimate);
        if matches!(self.strategy, Strategy::Noise(_)) {
            words.push(self.noise_at.len() as u64);
            words.extend(self.noise_at.iter().flatten());
        }
        words.extend(self.site_words());
        RegionConfig {
            observe: 0,
            steer: self.strategy.steer(),
            options: self.options | self.strategy.options(),
            seed,
            strategy,
            parameters,
            processor: processor.filter(|_| self.strategy.stays_on_one_processor()),
            blob: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            ..RegionConfig::default()
        }
    }

    fn stride(&self) -> u64 {
        u64::from(!self.same_seed)
    }

    fn seed_of(&self, run: u64) -> u64 {
        self.seed.wrapping_add(self.stride().wrapping_mul(run))
    }

    /// The end of the region's blob, where the runtime looks for visible sites.
    pub fn site_words(&self) -> Vec<u64> {
        if self.options & option::VISIBLE_SITES == 0 {
            return Vec::new();
        }
        let places = self.site_names.iter().filter_map(|name| steering::place(name).ok());
        let mut words: Vec<u64> = places.flat_map(|(module, offset)| [offset, module]).collect();
        words.push(words.len() as u64 / SITE_WORDS as u64);
        words
    }

    /// The same with a journal of its turns.
    pub fn journaled(&self, seed: u64) -> RegionConfig {
        let config = self.config(seed, processors().first().copied());
        RegionConfig { journal_max: JOURNAL_BYTES_MAX, ..config }
    }
}

/// Does all runs of the plan. `progress` is told about the campaign after each group of runs.
pub fn explore(
    plan: &Plan<'_>,
    stop: &AtomicBool,
    progress: &(dyn Fn(&Campaign) + Sync),
) -> anyhow::Result<Campaign> {
    let shared = Shared {
        campaign: Mutex::new(Campaign::default()),
        next: AtomicU64::new(0),
        done: AtomicBool::new(false),
        progress,
    };
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let processors = processors();
    std::thread::scope(|scope| {
        for worker in 0..plan.workers.max(1) {
            let processor = processors[worker % processors.len()];
            let (shared, failure) = (&shared, &failure);
            scope.spawn(move || {
                if let Err(error) = work(plan, processor, stop, shared) {
                    *failure.lock().expect("no holder panics") = Some(error);
                    shared.done.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    match failure.into_inner().expect("no holder panics") {
        Some(error) => Err(error),
        None => Ok(shared.campaign.into_inner().expect("no holder panics")),
    }
}

struct Shared<'a> {
    campaign: Mutex<Campaign>,
    next: AtomicU64,
    done: AtomicBool,
    progress: &'a (dyn Fn(&Campaign) + Sync),
}

impl Shared<'_> {
    fn add(&self, plan: &Plan<'_>, run: u64, steered: &Steered, stdout: Vec<u8>) {
        let observation = observation(steered, stdout);
        let error = observation.ending.is_error();
        let mut campaign = self.campaign.lock().expect("no holder panics");
        campaign.add(run, plan.seed_of(run), steered.steps, steered.turns_hash, observation);
        if error && plan.first {
            self.done.store(true, Ordering::Relaxed);
        }
    }
}

fn work(plan: &Plan<'_>, processor: u32, stop: &AtomicBool, shared: &Shared<'_>) -> anyhow::Result<()> {
    let config = plan.config(0, Some(processor));
    let mut server = if plan.exec { None } else { ForkServer::start(plan.launch, &config)? };
    let chunk = match (plan.first, server.is_some()) {
        (_, false) => 1,
        (true, true) => CHUNK_FIRST,
        (false, true) => CHUNK,
    };
    while !stop.load(Ordering::Relaxed) && !shared.done.load(Ordering::Relaxed) {
        let from = shared.next.fetch_add(chunk, Ordering::Relaxed);
        if from >= plan.runs {
            break;
        }
        let count = chunk.min(plan.runs - from);
        let (seed, mut run) = (plan.seed_of(from), from);
        match &mut server {
            Some(server) => server
                .run((seed, plan.stride()), count as u32, plan.timeout, stop, |served| {
                    shared.add(plan, run, &served.steered, served.stdout);
                    run += 1;
                })
                .context("try again with --exec, which starts the program for each run")?,
            None => {
                let config = plan.config(seed, Some(processor));
                let (steered, stdout) = steering::run_captured(plan.launch, &config, plan.timeout)?;
                shared.add(plan, from, &steered, stdout);
            }
        }
        (shared.progress)(&shared.campaign.lock().expect("no holder panics"));
    }
    Ok(())
}

/// How a run ended, in the form in which runs are compared.
pub fn observation(steered: &Steered, stdout: Vec<u8>) -> Observation {
    let ending = match &steered.outcome {
        Outcome::Ended(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exit(code),
            (None, signal) => Ending::Signal(signal.unwrap_or(0)),
        },
        Outcome::Deadlock(parties) => {
            let mut waits: Vec<Blocked> = parties
                .iter()
                .map(|party| Blocked {
                    operation: party.operation.map_or("?", |kind| kind.word()).to_owned(),
                    site: party.site.clone(),
                })
                .collect();
            waits.sort();
            Ending::Deadlock(waits)
        }
        Outcome::TimedOut(parties) => Ending::TimedOut(states(parties)),
        Outcome::Stuck(parties) => Ending::Stuck(states(parties)),
        Outcome::TooManyThreads => Ending::TooManyThreads,
        Outcome::Parked(_) | Outcome::Diverged(_) => Ending::Stuck(Vec::new()),
    };
    Observation { ending, place: steered.crash_place.clone(), stdout }
}

/// What the threads were doing, sorted: the same standstill is then the same outcome.
fn states(parties: &[SteeredParty]) -> Vec<String> {
    let mut states: Vec<String> = parties.iter().map(SteeredParty::state).collect();
    states.sort();
    states
}

/// Decisions that a strategy plans for when not even a first run could be made.
const STEPS_UNKNOWN: u64 = 200;

/// Looks at one run under `random`, for strategies that have to know how long a run is.
pub fn estimate(
    launch: &Launch,
    options: u64,
    site_names: Vec<String>,
    seed: u64,
    timeout: Duration,
) -> anyhow::Result<Estimate> {
    let plan = Plan {
        launch,
        strategy: Strategy::Random,
        estimate: Estimate::default(),
        options: options | option::PROFILE,
        site_names,
        noise_at: Vec::new(),
        seed,
        same_seed: true,
        runs: 1,
        first: false,
        timeout,
        workers: 1,
        exec: true,
        head: Head::default(),
    };
    let config = plan.config(seed, processors().first().copied());
    let (steered, profile) = steering::run_profiled(launch, &config, timeout)?;
    let steps = if steered.steps == 0 { STEPS_UNKNOWN } else { steered.steps };
    Ok(Estimate { steps, profile })
}
