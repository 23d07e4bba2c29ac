//! `raddle explore`: many runs of one program under a strategy, and the distinct ways in which they ended.

use super::exhaustive::{self, SearchArgs};
use super::{Ctx, Exit, StatusArgs};
use crate::compiler::Refusal;
use crate::evidence::shown_trace::KeepTraces;
use crate::hunt::properties::{self, PropertyArgs};
use crate::interrupt;
use crate::launch::exploring::{self, Limits, Plan, Wants};
use crate::launch::inspect::Carries;
use crate::launch::outcomes::{Explored, Group, explored, groups};
use crate::launch::portfolio;
use crate::launch::process::describe as describe_status;
use crate::launch::racing::Races;
use crate::launch::server::{Mode, Serving};
use crate::launch::shards::{self, Part};
use crate::launch::shared_sites::VisibleAccesses;
use crate::launch::target::Target;
use crate::launch::{Launch, identity, steering};
use crate::online::known::Known;
use crate::output::{OutputArgs, Reporter, Stream};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::systematic::search::Shard;
use raddle_explore::{Campaign, Ending, Estimate, Observation, Seen, Strategy};
use raddle_findings::store::Added;
use raddle_findings::{Evidence, Store, file};
use raddle_property::script::Property;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::Schedule;
use raddle_trace::symbols::lines::code_of_line;
use raddle_wire::region::{noise, option};
use raddle_wire::step;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs a program many times, each time with its threads in another order, and counts the distinct outcomes.
///
/// Without --strategy a portfolio is at work: first a search of all schedules, if they seem to be few, then several strategies that share
/// the runs by what each of them finds, with the accesses visible that were seen to race.
/// Under a strategy, run n uses seed S + n: the same seed gives the same run. Runs that end in the same error (deadlocked at the same places,
/// crashed at the same place, failed with the same status) are one finding; its first schedule is made as small as can be and
/// kept in .raddle, and `raddle replay ID` makes it happen again.
/// Exit status: 0 no error was seen, 1 some run crashed, deadlocked or failed, 2 usage or environment error.
///
/// Examples:
///   raddle explore examples/bank.c
///   raddle explore --for 10m -- ./queue_test 4
///   raddle explore --strategy pct:3 --runs 500 --seed 7 -- ./queue_test 4
///   raddle explore --exhaustive examples/bank.c
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// random, round-robin, queue, pct[:DEPTH], pos, surw, delay[:DELAYS], rff, period[:PERIODS], another one of
    /// docs/explore.md, or noise[:probability=PER-MILLE,strength=MICROSECONDS,where=before|after|both,how=sleep|busy|halt|meet,
    /// at=all|variable,only=OPERATION+OPERATION].
    #[arg(long)]
    strategy: Option<Strategy>,
    /// With noise: only at operations on this line of the program. May be given several times.
    #[arg(long, value_name = "FILE:LINE")]
    noise_at: Vec<String>,
    /// Which memory accesses are scheduling points besides synchronisation: none (sync), those that were seen to race in an
    /// earlier run (auto), those to memory that several threads use and one of them writes (shared; found out in a run before), or all
    /// (default: auto, under a strategy sync).
    #[arg(long, value_enum)]
    visible: Option<VisibleAccesses>,
    /// How many runs (default: 1000; with --for or --exhaustive as many as there are).
    #[arg(long, value_name = "N", value_parser = number_of_runs)]
    runs: Option<u64>,
    /// For how long to make runs, as in 30s, 10m, 2h.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Report data races of the runs as well.
    #[arg(long)]
    races: bool,
    #[command(flatten)]
    status: StatusArgs,
    /// What the program has to print: a run that prints something else has failed.
    #[arg(long, value_name = "FILE")]
    expect_output: Option<PathBuf>,
    /// Do part K of N of the runs, or of the search; `raddle merge` puts the parts together. What is left out is taken from
    /// the environment (JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID, CI_NODE_INDEX and CI_NODE_TOTAL).
    #[arg(long, value_name = "K/N", num_args = 0..=1, default_missing_value = "", value_parser = shard)]
    shard: Option<Shard>,
    /// Try every schedule, up to equivalence, and say so when there is none left.
    #[arg(long, conflicts_with_all = ["strategy", "same_seed", "noise_at", "steps", "workers"])]
    exhaustive: bool,
    #[command(flatten)]
    search: SearchArgs,
    /// Seed of the first run.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Give the program its memory at addresses that depend on nothing but its own order of allocations: for programs whose
    /// behaviour depends on addresses, or on what freed memory holds.
    #[arg(long)]
    stable_memory: bool,
    /// Give every run the same seed, and say how many different schedules and outcomes there were: more than one, and
    /// something that the seed does not control has a say (time, the network, uninitialised memory).
    #[arg(long)]
    same_seed: bool,
    /// Decisions of a typical run, which pct and delay need (default: measured in a run before).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Stop at the first error.
    #[arg(long)]
    first: bool,
    /// Seconds that one run may take.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Runs at the same time (default: one for each processor).
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    workers: Option<usize>,
    /// Start the program for each run. Otherwise it is started once for each worker and forked before its first own code,
    /// which is several times faster. The same as --mode exec.
    #[arg(long, conflicts_with = "mode")]
    exec: bool,
    /// How runs are made. Every mode shows the same; the first runs of a program are made in two ways and compared.
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    mode: Mode,
    /// Only count: make no schedules of the errors.
    #[arg(long)]
    no_schedules: bool,
    /// The store: the folder in which findings and their schedules are kept.
    #[arg(long, value_name = "DIR", default_value = raddle_findings::store::FOLDER)]
    keep: PathBuf,
    #[command(flatten)]
    properties: PropertyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs under a strategy, unless the user says otherwise.
const RUNS: u64 = 1000;

fn shard(text: &str) -> Result<Shard, String> {
    shards::parse(text, |name| std::env::var(name).ok())
}

/// A time such as `90`, `30s`, `10m`, `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    match number {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("it must be a time such as 30s, 10m or 2h".to_owned()),
    }
}

/// What was done, whichever way.
enum Done {
    Searched(Box<crate::launch::searching::Searching>),
    Explored(Box<portfolio::Explored>),
}

impl Done {
    fn campaign(&self) -> &Campaign {
        match self {
            Done::Searched(searching) => &searching.state.campaign,
            Done::Explored(explored) => &explored.campaign,
        }
    }

    fn races(&self) -> &Races {
        match self {
            Done::Searched(searching) => &searching.races,
            Done::Explored(explored) => &explored.races,
        }
    }

    /// How the first run of an outcome is made once more.
    fn again<'a>(&self, plan: &Plan<'a>, run: u64) -> (Plan<'a>, RegionConfig) {
        match self {
            Done::Searched(searching) => (searching.plan(plan), searching.again(plan, run)),
            Done::Explored(explored) => explored.again(plan, run),
        }
    }
}

/// A number that may be larger than those whose ranges the argument parser can check.
fn number_of_runs(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|&runs| runs > 0).ok_or_else(|| format!("{text} is not in 1.."))
}

/// A script that starts nothing with the runtime in it has no schedules, and must not be said to have one.
fn require_instrumented(launch: &Launch, timeout: Duration) -> anyhow::Result<()> {
    let config = RegionConfig { steer: Strategy::Random.steer(), ..RegionConfig::default() };
    let (_, _, region) = steering::run_shared(launch, &config, timeout)?;
    if region.header().images.load(Ordering::Relaxed) > 0 {
        return Ok(());
    }
    Err(Refusal(format!(
        "no instrumented program was run by {}, so there is nothing to explore; build it with `raddle cc`, or try --preload",
        launch.program.display()
    ))
    .into())
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut reporter = Reporter::new("explore", &args.output, Stream::Stdout, ctx)?;
    let mut launch = args.target.launch()?;
    launch.serving = Serving::new(if args.exec { Mode::Exec } else { args.mode });
    if launch.carries == Carries::Script {
        require_instrumented(&launch, Duration::from_secs(args.timeout))?;
    }
    if launch.carries == Carries::Launcher && !ctx.quiet {
        eprintln!(
            "raddle: note: {} makes no threads itself, and a search steers one process only, not the programs that it starts; name the program itself",
            launch.program.display()
        );
    }
    let is_portfolio = args.strategy.is_none() && !args.exhaustive && !args.same_seed;
    if is_portfolio && args.shard.is_some() {
        return Err(Refusal(
            "parts add up to the whole only where a run depends on its number alone; name a --strategy, or use --exhaustive"
                .into(),
        )
        .into());
    }
    let strategy = args.strategy.unwrap_or(Strategy::Random);
    let otherwise = match is_portfolio || args.exhaustive {
        true => VisibleAccesses::Auto,
        false => VisibleAccesses::Sync,
    };
    let visible = args.visible.unwrap_or(otherwise);
    let learns = visible == VisibleAccesses::Auto && args.shard.is_none();
    // A search compares addresses of different runs, and so does what learns from them.
    launch.fixed_addresses |=
        strategy.needs_fixed_addresses() || args.stable_memory || args.exhaustive || is_portfolio;
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    interrupt::stop_at_signals(&stop)?;
    let store = Store::at(&args.keep);
    let timeout = Duration::from_secs(args.timeout);
    let noise_at = noise_ranges(&args, strategy, &launch)?;
    let (mut options, site_names) = visible.settings(&launch, args.seed, timeout)?;
    if args.stable_memory {
        options |= option::STABLE_MEMORY;
    }
    let mut head = identity::head(&launch, steering::run_options(options), args.seed, &store.root());
    head.options.one_at_a_time = true;
    let output = match &args.expect_output {
        Some(path) => Some(
            std::fs::read(path)
                .map_err(|error| Refusal(format!("cannot read {}: {error}", path.display())))?,
        ),
        None => None,
    };
    let otherwise = if args.exhaustive || args.duration.is_some() { u64::MAX } else { RUNS };
    let looks = args.races || learns && (is_portfolio || args.exhaustive || strategy.is_deterministic());
    let mut plan = Plan {
        launch: &launch,
        strategy,
        estimate: Estimate::default(),
        options,
        site_names,
        noise_at,
        seed: args.seed,
        same_seed: args.same_seed,
        // Without hooks there are no accesses to look at.
        checked: looks && !launch.preload,
        wants: Wants { statuses: args.status.expect_status.clone(), output },
        shard: args.shard,
        runs: args.runs.unwrap_or(otherwise),
        first: args.first,
        timeout,
        workers: args.workers.unwrap_or_else(|| exploring::processors().len()),
        exec: args.exec || args.mode == Mode::Exec,
        head,
    };
    if strategy.needs_estimate() && !args.exhaustive {
        plan.estimate = exploring::estimate(&plan)?;
    }
    if let Some(steps) = args.steps {
        plan.estimate.steps = steps;
    }
    let properties = args.properties.read()?;
    if !properties.is_empty() {
        if args.exhaustive {
            return Err(Refusal(
                "properties are checked on runs under a strategy; leave out --exhaustive".into(),
            )
            .into());
        }
        return explore_properties(&args, &plan, &properties, &store, reporter, &stop, ctx);
    }
    let started = Instant::now();
    let limits = Limits { stop: &stop, until: args.duration.map(|duration| started + duration) };
    let done = if args.exhaustive {
        Done::Searched(Box::new(args.search.run(&plan, limits, &store, ctx)?))
    } else {
        let bar = progress(ctx, if args.duration.is_some() { 0 } else { plan.own_runs(plan.runs) });
        let tell = |explored: &portfolio::Explored, _| {
            bar.set_position(explored.campaign.runs());
            let races = match explored.races.count() {
                0 => String::new(),
                count => format!(", {count} races"),
            };
            bar.set_message(format!(
                "{} outcomes, {} schedules{races}",
                explored.campaign.distinct(),
                explored.campaign.schedules()
            ));
        };
        let explored = match is_portfolio {
            true => portfolio::portfolio(&plan, limits, &tell)?,
            false => portfolio::explore(&plan, learns && plan.checked, limits, &tell)?,
        };
        bar.finish_and_clear();
        Done::Explored(Box::new(explored))
    };
    let campaign = done.campaign();
    let elapsed = started.elapsed();
    let groups = groups(campaign);
    let again = |seen: &Seen| done.again(&plan, seen.first_run);
    let ids = report(&args, &plan, &store, (campaign, &groups, &again), &mut reporter, (&stop, ctx))?;
    if args.races {
        let mut known = Known::of(&[]);
        for race in done.races().iter() {
            known.update(&race.modules);
            reporter.hear(known.finding(&race.report), true);
        }
    }
    // The order that noise makes is the system's, and nobody writes it down.
    let schedules = strategy.stays_on_one_processor().then(|| campaign.schedules() as u64);
    let outcome = |(observation, seen): (&Observation, &Seen)| file::Outcome {
        ending: serde_json::to_value(&observation.ending).unwrap_or_default(),
        stdout: String::from_utf8_lossy(&observation.stdout).into_owned(),
        count: seen.count,
        first_run: seen.first_run,
        seed: seen.first_seed,
        finding: ids.get(&(observation.ending.clone(), observation.place.clone())).cloned(),
    };
    let outcomes = campaign.outcomes().into_iter().map(outcome).collect();
    let search = match &done {
        Done::Searched(searching) => Some(args.search.told(searching)),
        Done::Explored(_) => None,
    };
    let runs = search.as_ref().map_or(campaign.runs(), |search| search.executions + search.blocked);
    let reads_from = match &done {
        Done::Explored(explored) => explored.pairs,
        Done::Searched(_) => None,
    };
    let reads_from = reads_from
        .map(|(covered, predicted)| file::Pairs { covered: covered as u64, predicted: predicted as u64 });
    reporter.exploration = Some(file::Exploration {
        runs,
        schedules,
        outcomes,
        // A race that is seen makes its accesses visible, which changes what the runs after it draw from.
        sampled: (search.is_none()
            && !is_portfolio
            && strategy.samples()
            && !args.same_seed
            && done.races().count() == 0)
            .then(|| strategy.to_string()),
        search: search.clone(),
        races: plan.checked.then(|| done.races().count() as u64),
        reads_from,
    });
    if let Some(shard) = args.shard {
        let asked = match args.exhaustive {
            true => args.search.words(),
            false => format!("{strategy}, {} runs from seed {}, visible {visible:?}", plan.runs, args.seed),
        };
        let code_id = plan.head.code_id.clone();
        let mut part = Part::new(shard, launch.words(), code_id, asked, campaign.clone());
        part.search.clone_from(&search);
        part.ids =
            ids.iter().map(|((ending, place), id)| (ending.clone(), place.clone(), id.clone())).collect();
        store.create()?;
        part.write(store.folder())?;
    }
    if !ctx.quiet && !args.output.owns_stdout() {
        for group in &groups {
            println!("{}", line(group, campaign, id_of(&ids, group), args.exhaustive));
        }
    }
    let seconds = elapsed.as_secs_f64();
    let speed = runs as f64 / seconds.max(0.001);
    if !ctx.quiet {
        races_told(&args, &done, search.as_ref());
    }
    match (&done, &search) {
        _ if ctx.quiet => {}
        (Done::Searched(searching), Some(search)) => {
            eprintln!("raddle: {}", exhaustive::sentence(searching, search));
            eprintln!("raddle: {runs} runs in {seconds:.1} s ({speed:.0} runs/s): {}", reporter.summary());
        }
        (Done::Explored(explored), _) => {
            if let Some(executions) = explored.complete {
                eprintln!(
                    "raddle: complete: {executions} inequivalent executions, for this program and this input"
                );
            }
            if explored.repeated > 0 {
                eprintln!("raddle: {} further runs only repeated a schedule", explored.repeated);
            }
            let under = if is_portfolio { portfolio::WORDS.to_owned() } else { strategy.to_string() };
            eprintln!(
                "raddle: {} runs under {under} in {seconds:.1} s ({speed:.0} runs/s): {}{}{}",
                campaign.runs(),
                schedules.map_or(String::new(), |count| format!("{count} distinct schedules; ")),
                reporter.summary(),
                if stop.load(Ordering::Relaxed) { "; stopped early" } else { "" }
            );
        }
        (Done::Searched(_), None) => unreachable!("a search is told"),
    }
    if !ctx.quiet {
        eprintln!("raddle: {}", launch.serving.pace().sentence());
    }
    let exit = reporter.finish(launch.words())?;
    // A loop that never ends is a failure, and no finding. What is one has had its say, also where it is suppressed or known.
    let is_finding = |observation: &Observation| {
        ids.contains_key(&(observation.ending.clone(), observation.place.clone()))
    };
    let has_failed = |observation: &Observation| {
        !matches!(observation.ending, Ending::Exit(0) | Ending::Allowed(_)) && !is_finding(observation)
    };
    let failed = search.is_some_and(|search| search.failures > 0)
        && campaign.outcomes().into_iter().any(|(observation, _)| has_failed(observation));
    Ok(match (exit, interrupt::signal()) {
        (Exit::Clean, _) if failed => Exit::Found,
        (Exit::Clean, Some(signal)) => Exit::Status(interrupt::status(signal)),
        _ => exit,
    })
}

/// Runs the program, and looks whether what each run did violates a property.
fn explore_properties(
    args: &Args,
    plan: &Plan<'_>,
    wanted: &[Property],
    store: &Store,
    mut reporter: Reporter<'_>,
    stop: &AtomicBool,
    ctx: &Ctx,
) -> anyhow::Result<Exit> {
    store.create().with_context(|| {
        format!("cannot create the folder {}; choose another with --keep", args.keep.display())
    })?;
    let bar = progress(ctx, plan.runs);
    let mut seen: BTreeMap<(usize, u32), u64> = BTreeMap::new();
    let mut runs = 0;
    for run in 0..plan.runs {
        if stop.load(Ordering::Relaxed) || args.first && !seen.is_empty() {
            break;
        }
        let seed = if plan.same_seed { plan.seed } else { plan.seed.wrapping_add(run) };
        let broken = properties::broken_in_run(plan.launch, &plan.config(seed, None), wanted, plan.timeout)?;
        runs += 1;
        bar.set_position(runs);
        for violation in broken {
            let key = (violation.property, violation.assertion);
            *seen.entry(key).or_default() += 1;
            if seen[&key] > 1 {
                continue;
            }
            let (finding, schedule) =
                properties::explored(&violation, wanted, &plan.head, store, plan.timeout, ctx)?;
            let text = Some(schedule.to_text());
            let mut finding = finding;
            finding.schedule = Some(store.schedule_path(&finding.id).display().to_string());
            let evidence = Evidence {
                code_id: plan.head.code_id.clone(),
                ..Evidence::new("explore", plan.launch.words(), finding.clone(), text)
            };
            if let Err(error) = store.add(&evidence) {
                finding.schedule = None;
                eprintln!("raddle: warning: finding {} could not be stored: {error}", finding.id);
            }
            reporter.hear(finding, false);
        }
    }
    bar.finish_and_clear();
    if !ctx.quiet {
        for ((property, assertion), count) in &seen {
            eprintln!(
                "raddle: {}: assertion {assertion} was violated in {count} of {runs} runs",
                wanted[*property].name
            );
        }
        eprintln!("raddle: {runs} runs under {}: {}", plan.strategy, reporter.summary());
    }
    reporter.finish(plan.launch.words())
}

/// What is said of races besides findings.
fn races_told(args: &Args, done: &Done, search: Option<&file::Search>) {
    let count = done.races().count();
    if count == 0 {
        return;
    }
    let seen = match search {
        Some(search) if search.restarts > 0 => {
            "the search began anew with their accesses as scheduling points"
        }
        Some(_) => "",
        None => "their accesses were scheduling points from then on",
    };
    let hint = if args.races { "" } else { "--races reports them" };
    let words: Vec<&str> = [seen, hint].into_iter().filter(|text| !text.is_empty()).collect();
    let rest = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
    eprintln!("raddle: note: the runs showed {count} data race{}{rest}", if count == 1 { "" } else { "s" });
}

/// The plan and the configuration under which a run that was seen happens again.
type Again<'a, 'p> = dyn Fn(&Seen) -> (Plan<'p>, RegionConfig) + 'a;

/// Makes findings of the runs that failed, keeps them and shows them. Returns the id of each ending that is one.
fn report<'p>(
    args: &Args,
    plan: &Plan<'p>,
    store: &Store,
    (campaign, groups, again): (&Campaign, &[Group<'_>], &Again<'_, 'p>),
    reporter: &mut Reporter<'_>,
    (stop, ctx): (&AtomicBool, &Ctx),
) -> anyhow::Result<BTreeMap<(Ending, String), String>> {
    let mut ids = BTreeMap::new();
    let keep = !args.no_schedules && groups.iter().any(|group| group.ending.is_error());
    if keep {
        store.create().with_context(|| {
            format!("cannot create the folder {}; choose another with --keep", args.keep.display())
        })?;
    }
    let mut keeping = KeepTraces::default();
    for group in groups {
        let (own, again) = again(&group.seen);
        let explored = explored(&own, group, &again, keep.then_some(store), campaign.runs(), stop, ctx)?;
        let Some(explored) = explored else { continue };
        let Explored { mut finding, schedule, switches } = explored;
        ids.insert((group.ending.clone(), group.observation.place.clone()), finding.id.clone());
        if keep {
            let text = schedule.as_ref().map(Schedule::to_text);
            let path = store.schedule_path(&finding.id).display().to_string();
            finding.schedule = text.is_some().then_some(path);
            let evidence = Evidence {
                code_id: plan.head.code_id.clone(),
                ..Evidence::new("explore", plan.launch.title(), finding.clone(), text)
            };
            match (store.add(&evidence), &schedule) {
                (Ok(Added::New | Added::Better), Some(schedule)) => {
                    keeping.keep(store, &finding, schedule, ctx)
                }
                (Ok(_), _) => {}
                (Err(error), _) => {
                    finding.schedule = None;
                    eprintln!("raddle: warning: finding {} could not be stored: {error}", finding.id);
                }
            }
        }
        if let Some((found, kept)) = switches.filter(|_| ctx.verbose > 0) {
            eprintln!(
                "raddle: note: {}: {kept} context switches, {found} in the run that was found",
                finding.id
            );
        }
        reporter.hear(finding, false);
    }
    Ok(ids)
}

/// The code of the lines that noise is confined to.
fn noise_ranges(
    args: &Args,
    strategy: Strategy,
    launch: &Launch,
) -> anyhow::Result<Vec<[u64; noise::RANGE_WORDS]>> {
    if !args.noise_at.is_empty() && !matches!(strategy, Strategy::Noise(_)) {
        return Err(Refusal("--noise-at is for --strategy noise".into()).into());
    }
    let name = launch.program.file_name().unwrap_or_default();
    let module = step::hash(step::HASH_START, name.as_encoded_bytes());
    let mut ranges = Vec::new();
    for place in &args.noise_at {
        let wrong = || Refusal(format!("`{place}` is not of the form FILE:LINE, such as bank.c:20"));
        let (file, line) = place.rsplit_once(':').ok_or_else(wrong)?;
        let line = line.parse().map_err(|_| wrong())?;
        let found = code_of_line(&launch.program, file, line).map_err(Refusal)?;
        if found.is_empty() {
            return Err(Refusal(format!(
                "{} has no code of {place}; was it built with -g, and is there a statement on that line?",
                launch.program.display()
            ))
            .into());
        }
        ranges.extend(found.into_iter().map(|(start, end)| [start, end, module]));
    }
    if ranges.len() > noise::RANGES_MAX {
        return Err(Refusal(format!(
            "the lines of --noise-at have {} pieces of code; {} are possible",
            ranges.len(),
            noise::RANGES_MAX
        ))
        .into());
    }
    Ok(ranges)
}

fn id_of<'a>(ids: &'a BTreeMap<(Ending, String), String>, group: &Group<'_>) -> Option<&'a str> {
    ids.get(&(group.ending.clone(), group.observation.place.clone())).map(String::as_str)
}

/// Outputs of one ending that are shown; the rest is counted.
const OUTPUTS_SHOWN: usize = 4;

/// One way in which runs ended: how often, what was printed, and the finding that it is.
pub fn line(group: &Group<'_>, campaign: &Campaign, id: Option<&str>, exhaustive: bool) -> String {
    let ending = match group.ending {
        Ending::Exit(code) => format!("ended with status {code}"),
        Ending::Allowed(code) => format!("ended with status {code}, which is allowed"),
        Ending::Unwanted => "ended with status 0, which is not what was expected".to_owned(),
        Ending::WrongOutput(code) => format!("printed something else than expected (status {code})"),
        Ending::Signal(signal) => describe_status(std::process::ExitStatus::from_raw(*signal)),
        Ending::Deadlock(waits) => format!("deadlocked ({} threads)", waits.len()),
        Ending::Stuck(threads) => format!("came to a standstill{}", list(threads)),
        Ending::TooManyThreads => format!("was given up: {}", steering::TOO_MANY_THREADS),
        Ending::TimedOut(threads) => format!("took too long{}", list(threads)),
    };
    let mut outputs: Vec<(&Observation, &Seen)> = campaign
        .outcomes()
        .into_iter()
        .filter(|(observation, _)| {
            observation.ending == *group.ending
                && observation.place == group.observation.place
                && !observation.stdout.is_empty()
        })
        .collect();
    outputs.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.count));
    let mut text = format!("{:>7} x  {ending}", group.seen.count);
    if let Some(id) = id {
        text.push_str(&format!(": finding {id}"));
    }
    match exhaustive {
        true => text.push_str(&format!(" (first: run {})", group.seen.first_run)),
        false => {
            text.push_str(&format!(" (first: run {}, seed {})", group.seen.first_run, group.seen.first_seed));
        }
    }
    for (observation, seen) in outputs.iter().take(OUTPUTS_SHOWN) {
        let printed = String::from_utf8_lossy(&observation.stdout);
        text.push_str(&format!("\n{:>9} x  printed {:?}", seen.count, shortened(printed.trim_end())));
    }
    if outputs.len() > OUTPUTS_SHOWN {
        text.push_str(&format!("\n             and {} other outputs", outputs.len() - OUTPUTS_SHOWN));
    }
    text
}

/// Characters of an output that are shown.
const OUTPUT_CHARS: usize = 60;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(OUTPUT_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// What each thread was doing.
fn list(threads: &[String]) -> String {
    if threads.is_empty() { String::new() } else { format!(": one thread {}", threads.join(", one ")) }
}

fn progress(ctx: &Ctx, runs: u64) -> ProgressBar {
    if !ctx.progress() {
        return ProgressBar::hidden();
    }
    let template = match runs {
        0 => "{spinner} {pos} runs, {per_sec}, {msg} [{elapsed}]",
        _ => "{spinner} {pos} of {len} runs, {per_sec}, {msg} [{elapsed}]",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new(runs).with_style(style)
}
