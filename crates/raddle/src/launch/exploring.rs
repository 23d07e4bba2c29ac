//! Many runs of one program under a strategy, several at a time.
//!
//! Each worker has a processor of its own and, if the program allows it, a fork server there; otherwise it starts the
//! program anew for each run. Run n has seed S + n whichever worker does it, so the result depends on the seed alone.

use super::Launch;
use super::racing::{self, Race};
use super::server::ForkServer;
use super::steering::{self, Outcome, Steered, SteeredParty};
use anyhow::Context;
use raddle_explore::feedback::{self, Feedback, Seen};
use raddle_explore::systematic::search::Shard;
use raddle_explore::{Blocked, Ending, Estimate, Observation, Strategy};
use raddle_sched::strategy::rff::{CONSTRAINT_WORDS, CONSTRAINTS_MAX};
use raddle_trace::journal::Journal;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::{Head, Visible};
use raddle_wire::region::{noise, observe, option};
use raddle_wire::step::SITE_WORDS;
use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What shall be run, and how often.
#[derive(Clone)]
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
    /// Every run is looked at by the race detector.
    pub checked: bool,
    pub wants: Wants,
    /// Which runs are done here: those whose number leaves this rest.
    pub shard: Option<Shard>,
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

/// How a run has to end.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// Statuses that are no error; none: 0.
    pub statuses: Vec<i32>,
    /// What has to be printed.
    pub output: Option<Vec<u8>>,
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

impl<'a> Plan<'a> {
    /// The region of the run with this seed.
    pub fn config(&self, seed: u64, processor: Option<u32>) -> RegionConfig {
        let (strategy, parameters) = self.strategy.encode(self.estimate.steps);
        let mut words = self.strategy.words(&self.estimate);
        if matches!(self.strategy, Strategy::Noise(_)) {
            words.push(self.noise_at.len() as u64);
            words.extend(self.noise_at.iter().flatten());
        }
        if self.strategy == Strategy::Rff {
            // Runs with other constraints find room in the same region.
            words.resize(1 + CONSTRAINT_WORDS * CONSTRAINTS_MAX, 0);
        }
        words.extend(self.site_words());
        RegionConfig {
            observe: if self.checked { observe::DETECT } else { 0 },
            steer: self.strategy.steer(),
            options: self.options | self.strategy.options() | if self.checked { option::MEMORY } else { 0 },
            seed,
            strategy,
            parameters,
            processor: processor.filter(|_| self.strategy.stays_on_one_processor()),
            blob: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            journal_max: if self.strategy.learns() { JOURNAL_BYTES_MAX } else { 0 },
            ..RegionConfig::default()
        }
    }

    fn stride(&self) -> u64 {
        if self.same_seed { 0 } else { self.shard.map_or(1, |shard| u64::from(shard.count)) }
    }

    /// The number of a run among all shards' runs.
    pub fn number_of(&self, run: u64) -> u64 {
        self.shard.map_or(run, |shard| run * u64::from(shard.count) + u64::from(shard.index))
    }

    /// How many of so many runs are done here.
    pub fn own_runs(&self, runs: u64) -> u64 {
        self.shard.map_or(runs, |shard| {
            runs.saturating_sub(u64::from(shard.index)).div_ceil(u64::from(shard.count))
        })
    }

    pub fn seed_of(&self, run: u64) -> u64 {
        if self.same_seed { self.seed } else { self.seed.wrapping_add(self.number_of(run)) }
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
        let plan = Plan { checked: false, ..self.clone() };
        let config = plan.config(seed, processors().first().copied());
        RegionConfig { journal_max: JOURNAL_BYTES_MAX, ..config }
    }

    /// Is every access visible already?
    pub fn sees_all(&self) -> bool {
        self.options & option::VISIBLE_ALL != 0
    }

    /// What the run is to whoever wants it to end in a certain way.
    pub fn judged(&self, mut observation: Observation) -> Observation {
        if let Ending::Exit(status) = observation.ending {
            let allowed =
                self.wants.statuses.is_empty() && status == 0 || self.wants.statuses.contains(&status);
            let printed = self.wants.output.as_ref().is_none_or(|wanted| *wanted == observation.stdout);
            observation.ending = match (allowed, printed) {
                (true, true) if status != 0 => Ending::Allowed(status),
                (true, false) => Ending::WrongOutput(status),
                (false, _) if status == 0 => Ending::Unwanted,
                _ => observation.ending,
            };
        }
        observation
    }

    /// The same program with these accesses visible.
    pub fn with_sites(&self, sites: &[String]) -> Plan<'a> {
        let options = match sites {
            [] => self.options,
            _ => self.options | steering::visible_options(&Visible::Sites(Vec::new())),
        };
        Plan { options, site_names: sites.to_vec(), ..self.clone() }
    }
}

/// What one run showed.
pub struct Ran {
    pub run: u64,
    pub seed: u64,
    pub steered: Steered,
    pub stdout: Vec<u8>,
    /// Under a strategy that learns: what the run was asked for.
    pub constraints: Vec<u64>,
}

/// What some runs showed, in the order of their numbers.
#[derive(Default)]
pub struct Batch {
    pub ran: Vec<Ran>,
    pub races: Vec<Race>,
}

/// When to stop before all runs are done.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    pub stop: &'a AtomicBool,
    pub until: Option<Instant>,
}

impl Limits<'_> {
    pub fn reached(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

struct Worker {
    processor: u32,
    server: Option<ForkServer>,
    /// Somebody has tried to start a server.
    tried: bool,
}

/// Those who run the program, each with a server of its own if the program allows it. They stay from one batch of runs to the next, as
/// long as what the runs have in common does not change.
pub struct Workers {
    workers: Vec<Worker>,
}

impl Workers {
    pub fn new(count: usize) -> Workers {
        let processors = processors();
        let worker =
            |at: usize| Worker { processor: processors[at % processors.len()], server: None, tried: false };
        Workers { workers: (0..count.max(1)).map(worker).collect() }
    }

    /// What the runs have in common has changed.
    pub fn renew(&mut self) {
        for worker in &mut self.workers {
            (worker.server, worker.tried) = (None, false);
        }
    }

    /// So many runs from this number on.
    pub fn run(
        &mut self,
        plan: &Plan<'_>,
        (from, count): (u64, u64),
        limits: Limits<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> anyhow::Result<Batch> {
        let shared = Shared {
            batch: Mutex::new(Batch::default()),
            next: AtomicU64::new(from),
            end: from + count,
            done: AtomicBool::new(false),
            limits,
            progress,
        };
        let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        // A server dies with the thread that has started it, so that is this one, and not one of those below.
        for worker in &mut self.workers {
            worker.start(plan)?;
        }
        std::thread::scope(|scope| {
            for worker in &mut self.workers {
                let (shared, failure) = (&shared, &failure);
                scope.spawn(move || {
                    if let Err(error) = worker.work(plan, shared) {
                        *failure.lock().expect("no holder panics") = Some(error);
                        shared.done.store(true, Ordering::Relaxed);
                    }
                });
            }
        });
        if let Some(error) = failure.into_inner().expect("no holder panics") {
            return Err(error);
        }
        let mut batch = shared.batch.into_inner().expect("no holder panics");
        batch.ran.sort_by_key(|ran| ran.run);
        batch.races.sort_by(|a, b| a.places.cmp(&b.places));
        Ok(batch)
    }

    /// The same under a strategy that learns: each run is along a schedule that what was seen before has led to. One after the
    /// other, so that it does not matter how many workers there are.
    pub fn learn(
        &mut self,
        plan: &Plan<'_>,
        feedback: &mut Feedback,
        (from, count): (u64, u64),
        limits: Limits<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> anyhow::Result<Batch> {
        let mut batch = Batch::default();
        let worker = &mut self.workers[0];
        for run in from..from + count {
            if limits.reached() {
                break;
            }
            let schedule = feedback.next_schedule();
            let constraints = feedback::words(&schedule);
            let estimate = Estimate { constraints: constraints.clone(), ..plan.estimate.clone() };
            let plan = Plan { estimate, ..plan.clone() };
            let mut learnt = worker.one(&plan, run, limits)?;
            let Some((ran, journal)) = learnt.0.take() else { break };
            let seen: Vec<Seen> = journal
                .turns
                .iter()
                .filter(|turn| !turn.failed)
                .map(|turn| Seen {
                    thread: turn.thread,
                    kind: turn.kind as u8,
                    pc: turn.pc,
                    object: turn.object,
                })
                .collect();
            feedback.learn(schedule, &seen);
            let error = plan.judged(observation(&ran.steered, ran.stdout.clone())).ending.is_error();
            batch.ran.push(Ran { constraints, ..ran });
            batch.races.append(&mut learnt.1);
            progress(run);
            if error && plan.first {
                break;
            }
        }
        Ok(batch)
    }
}

struct Shared<'a> {
    batch: Mutex<Batch>,
    next: AtomicU64,
    end: u64,
    done: AtomicBool,
    limits: Limits<'a>,
    progress: &'a (dyn Fn(u64) + Sync),
}

/// A run with its journal, if there was one, and the races that it showed.
type Checked = (Option<(Ran, Journal)>, Vec<Race>);

impl Shared<'_> {
    fn add(&self, plan: &Plan<'_>, run: u64, steered: Steered, stdout: Vec<u8>) {
        if plan.first && plan.judged(observation(&steered, stdout.clone())).ending.is_error() {
            self.done.store(true, Ordering::Relaxed);
        }
        let ran = Ran { run, seed: plan.seed_of(run), steered, stdout, constraints: Vec::new() };
        self.batch.lock().expect("no holder panics").ran.push(ran);
    }
}

impl Worker {
    fn start(&mut self, plan: &Plan<'_>) -> anyhow::Result<()> {
        if !self.tried && !plan.exec {
            self.server = ForkServer::start(plan.launch, &plan.config(0, Some(self.processor)))?;
        }
        self.tried = true;
        Ok(())
    }

    fn work(&mut self, plan: &Plan<'_>, shared: &Shared<'_>) -> anyhow::Result<()> {
        let chunk = match (plan.first, self.server.is_some()) {
            (_, false) => 1,
            (true, true) => CHUNK_FIRST,
            (false, true) => CHUNK,
        };
        while !shared.limits.reached() && !shared.done.load(Ordering::Relaxed) {
            let from = shared.next.fetch_add(chunk, Ordering::Relaxed);
            if from >= shared.end {
                break;
            }
            let count = chunk.min(shared.end - from);
            let (seed, mut run) = (plan.seed_of(from), from);
            match &mut self.server {
                Some(server) => {
                    server
                        .run(
                            (seed, plan.stride()),
                            count as u32,
                            plan.timeout,
                            shared.limits.stop,
                            |served| {
                                shared.add(plan, run, served.steered, served.stdout);
                                run += 1;
                            },
                        )
                        .context("try again with --exec, which starts the program for each run")?;
                    if plan.checked {
                        let races = racing::take(server.region());
                        shared.batch.lock().expect("no holder panics").races.extend(races);
                    }
                }
                None => {
                    let config = plan.config(seed, Some(self.processor));
                    let (steered, stdout, region) = steering::run_shared(plan.launch, &config, plan.timeout)?;
                    shared.add(plan, from, steered, stdout);
                    if plan.checked {
                        let races = racing::take(&region);
                        shared.batch.lock().expect("no holder panics").races.extend(races);
                    }
                }
            }
            (shared.progress)(from + count);
        }
        Ok(())
    }

    /// One run with its journal, and the races that it showed. No run: it was stopped.
    fn one(&mut self, plan: &Plan<'_>, run: u64, limits: Limits<'_>) -> anyhow::Result<Checked> {
        self.start(plan)?;
        let seed = plan.seed_of(run);
        let config = plan.config(seed, Some(self.processor));
        let ran = |steered, stdout| Ran { run, seed, steered, stdout, constraints: Vec::new() };
        let Some(server) = &mut self.server else {
            let (steered, stdout, region) = steering::run_shared(plan.launch, &config, plan.timeout)?;
            let journal = Journal::read(&region.journal());
            return Ok((Some((ran(steered, stdout), journal)), racing::take(&region)));
        };
        anyhow::ensure!(server.rewrite_blob(&config.blob), "the run's constraints do not fit the region");
        let mut served = None;
        server
            .run((seed, plan.stride()), 1, plan.timeout, limits.stop, |run| served = Some(run))
            .context("try again with --exec, which starts the program for each run")?;
        let races = if plan.checked { racing::take(server.region()) } else { Vec::new() };
        let journal = server.journal();
        Ok((served.map(|served| (ran(served.steered, served.stdout), journal)), races))
    }
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

/// Looks at one run under `random`, for strategies that have to know how long a run is. It starts as the runs do that it is to
/// tell about: from a fork server, if there is one.
pub fn estimate(plan: &Plan<'_>) -> anyhow::Result<Estimate> {
    let looked = Plan {
        strategy: Strategy::Random,
        estimate: Estimate::default(),
        options: plan.options | option::PROFILE,
        noise_at: Vec::new(),
        same_seed: true,
        checked: false,
        ..plan.clone()
    };
    let config = looked.config(plan.seed, processors().first().copied());
    let server = if plan.exec { None } else { ForkServer::start(plan.launch, &config)? };
    let (steps, profile) = match server {
        Some(mut server) => {
            let mut steps = 0;
            server
                .run((plan.seed, 0), 1, plan.timeout, &AtomicBool::new(false), |run| {
                    steps = run.steered.steps
                })
                .context("try again with --exec, which starts the program for each run")?;
            (steps, server.region().profile())
        }
        None => {
            let (steered, profile) = steering::run_profiled(plan.launch, &config, plan.timeout)?;
            (steered.steps, profile)
        }
    };
    let steps = if steps == 0 { STEPS_UNKNOWN } else { steps };
    Ok(Estimate { steps, profile, ..Estimate::default() })
}

/// The same of a program that is started anew for each run.
pub fn estimate_alone(
    launch: &Launch,
    options: u64,
    seed: u64,
    timeout: Duration,
) -> anyhow::Result<Estimate> {
    estimate(&Plan {
        launch,
        strategy: Strategy::Random,
        estimate: Estimate::default(),
        options,
        site_names: Vec::new(),
        noise_at: Vec::new(),
        seed,
        same_seed: true,
        checked: false,
        wants: Wants::default(),
        shard: None,
        runs: 1,
        first: false,
        timeout,
        workers: 1,
        exec: true,
        head: Head::default(),
    })
}
