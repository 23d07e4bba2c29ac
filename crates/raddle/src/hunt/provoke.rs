//! Provoking: after prediction, a budget is spent on what the program *does* in other orders than the recorded one.
//!
//! A race that is confirmed says that two accesses can meet, and not what comes of it; and where everything is done under locks there is
//! no race at all, only the wrong order, or another thread between two things that belong together. So schedules are run to the
//! end: first those that turn critical sections of the recorded run around or put others between them
//! ([`raddle_predict::provocations`]), then, with the accesses of confirmed races as scheduling points, what the engine of
//! `raddle explore` tries: all schedules, if the program is small, and otherwise a portfolio. A crash, a failed assertion, a deadlock,
//! a livelock or a failed status is the finding. It is confirmed as everything else is: replayed twice from the stored schedule.
//!
//! Another order that the program survives is no finding: programs may do that.

// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::interrupt;
use crate::launch::exploring::{JOURNAL_BYTES_MAX, Limits, Plan, Wants, observation};
use crate::launch::outcomes::{Group, explored, groups};
use crate::launch::server::{Mode, Serving};
use crate::launch::steering::{self, Outcome, Then};
use crate::launch::{Launch, identity, portfolio};
use raddle_explore::{Ending, Estimate, Observation, Seen, Strategy};
use raddle_findings::basis::Shown;
use raddle_findings::naming::Namer;
use raddle_findings::{Basis, Finding, Frame, Kind, Remark};
use raddle_predict::Options;
use raddle_predict::provocations::{Pattern, Provocation, provocations};
use raddle_trace::MemoryTrace;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::{Schedule, StepKind, StopPlace};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What finds them.
const BY: &str = "provoke";

/// How much may be spent: runs, and time; whichever is used up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub runs: u64,
    pub time: Duration,
}

/// A run of a hundredth of a second and its like are done within this.
const DEFAULT: Budget = Budget { runs: 100, time: Duration::from_secs(8) };

/// Schedules from the recorded run get at most this part of the runs, so that the search has some as well.
const PLANNED: (u64, u64) = (1, 2);

/// Findings that are made of what was seen; each costs a few dozen replays.
const FINDINGS_MAX: usize = 8;

/// Runs that do not end, after which nothing more is provoked.
const ENDLESS_MAX: u32 = 2;
/// A run may take so many times as long as the recorded one, and always this long.
const SLOWER: u32 = 20;
const TIMEOUT_MIN: Duration = Duration::from_secs(2);

/// How often the clock is looked at.
const WATCH: Duration = Duration::from_millis(20);

impl Default for Budget {
    fn default() -> Budget {
        DEFAULT
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}s", self.runs, self.time.as_secs())
    }
}

/// `100`, `30s`, `100,30s` or `off`.
impl std::str::FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        if text == "off" {
            return Ok(Budget { runs: 0, time: Duration::ZERO });
        }
        let wrong =
            || "it must be a number of runs, a time, or both, such as 100, 30s or 100,30s; or off".to_owned();
        let (mut runs, mut time) = (None, None);
        for part in text.split(',') {
            let seconds = part.strip_suffix('s').map(|digits| (digits, 1));
            let minutes = part.strip_suffix("min").map(|digits| (digits, 60));
            match minutes.or(seconds) {
                Some((digits, unit)) => {
                    let number: u64 = digits.parse().map_err(|_| wrong())?;
                    time = Some(Duration::from_secs(number.saturating_mul(unit)));
                }
                None => runs = Some(part.parse().map_err(|_| wrong())?),
            }
        }
        let unlimited = Duration::from_secs(u64::from(u32::MAX));
        let budget = match (runs, time) {
            (Some(runs), Some(time)) => Budget { runs, time },
            (Some(runs), None) => Budget { runs, time: unlimited },
            (None, Some(time)) => Budget { runs: u64::MAX, time },
            (None, None) => return Err(wrong()),
        };
        match budget.runs > 0 && !budget.time.is_zero() {
            true => Ok(budget),
            false => Err("a budget of nothing; --provoke off leaves it out".to_owned()),
        }
    }
}

/// What came of it.
#[derive(Default)]
pub struct Provoked {
    pub found: Vec<Witnessed>,
    /// Schedules of the recorded run that were followed, and those that the program left.
    pub followed: u64,
    pub left: u64,
    /// Runs of the search.
    pub searched: u64,
    /// All schedules were tried.
    pub complete: bool,
}

impl Provoked {
    /// What was done, as a sentence; nothing, if nothing was.
    pub fn told(&self) -> Option<String> {
        let all = if self.complete { ", which were all schedules" } else { "" };
        let runs = self.followed + self.left + self.searched;
        (runs > 0).then(|| {
            format!(
                "provoked: {} runs in other orders to their end ({} along schedules from the recorded run, {} of which the \
                 program left; {} by search{all}): {} errors",
                runs,
                self.followed + self.left,
                self.left,
                self.searched,
                self.found.len()
            )
        })
    }
}

/// What is provoked, and on what terms.
pub struct Provoking<'a> {
    pub hunt: &'a Hunt<'a>,
    pub trace: &'a MemoryTrace,
    pub options: &'a Options,
    pub budget: Budget,
    /// Statuses with which the program may end.
    pub statuses: Vec<i32>,
}

/// An ending that was seen, and how to come to it again.
struct Case {
    observation: Observation,
    again: RegionConfig,
    remark: Option<Remark>,
}

impl Provoking<'_> {
    /// Spends the budget. `known` are the findings so far: races among them are told what they lead to.
    pub fn provoke(&self, known: &mut [Witnessed], namer: &mut Namer, ctx: &Ctx) -> anyhow::Result<Provoked> {
        let mut provoked = Provoked::default();
        if self.budget.runs == 0 || interrupt::signal().is_some() {
            return Ok(provoked);
        }
        let until = Instant::now() + self.budget.time;
        // Addresses of different runs are compared.
        let launch =
            Launch { fixed_addresses: true, serving: Serving::new(Mode::Auto), ..self.hunt.launch.clone() };
        let sites = race_sites(known);
        let plan = self.plan(&launch, &sites);
        let stop = AtomicBool::new(false);
        let limits = Limits { stop: &stop, until: Some(until) };
        let most = (self.budget.runs.saturating_mul(PLANNED.0) / PLANNED.1).max(1);
        let planned = provocations(self.trace, self.options, usize::try_from(most).unwrap_or(usize::MAX));
        let mut cases: Vec<Case> = Vec::new();
        let mut endless = 0;
        for provocation in &planned.all {
            if limits.reached() || interrupt::signal().is_some() {
                break;
            }
            let schedule = planned.schedule(self.trace, provocation);
            let Some((outcome, seen, again)) = follow(&plan, schedule)? else { continue };
            match outcome {
                Outcome::Diverged(_) => provoked.left += 1,
                Outcome::Ended(_)
                | Outcome::Deadlock(_)
                | Outcome::Parked(_)
                | Outcome::Stuck(_)
                | Outcome::TooManyThreads
                | Outcome::TimedOut(_) => provoked.followed += 1,
            }
            // What waits for somebody outside does so in any order.
            endless += u32::from(matches!(outcome, Outcome::TimedOut(_)));
            if endless >= ENDLESS_MAX {
                break;
            }
            let known = |case: &Case| {
                (&case.observation.ending, &case.observation.place) == (&seen.ending, &seen.place)
            };
            if seen.ending.is_error() && !cases.iter().any(known) {
                let remark = Some(self.remark(provocation, namer));
                cases.push(Case { observation: seen, again, remark });
            }
        }
        let mut found: Vec<(Finding, Option<Schedule>)> = Vec::new();
        let spent = provoked.followed + provoked.left;
        for case in cases.iter().take(FINDINGS_MAX) {
            let seen = Seen { count: 1, first_run: 0, first_seed: plan.seed, steps: 0 };
            let group = Group { ending: &case.observation.ending, observation: &case.observation, seen };
            let one = explored(&plan, &group, &case.again, Some(self.hunt.store), spent, &stop, ctx)?;
            if let Some(mut one) = one {
                one.finding.seen = None;
                one.finding.remarks.extend(case.remark.clone());
                found.push((one.finding, one.schedule));
            }
        }
        if endless < ENDLESS_MAX && !limits.reached() && interrupt::signal().is_none() {
            let searched = Plan { runs: self.budget.runs - spent.min(self.budget.runs), ..plan.clone() };
            self.search(&searched, limits, &stop, &mut provoked, &mut found, ctx)?;
        }
        for (finding, schedule) in found {
            self.add(finding, schedule, known, &mut provoked);
        }
        Ok(provoked)
    }

    fn timeout(&self) -> Duration {
        let recorded = Duration::from_millis(self.hunt.head.took_ms);
        (recorded * SLOWER).max(TIMEOUT_MIN).min(self.hunt.timeout).min(self.budget.time)
    }

    fn plan<'p>(&self, launch: &'p Launch, sites: &[String]) -> Plan<'p> {
        let seed = self.hunt.head.seed;
        let mut head = identity::head(launch, steering::run_options(0), seed, &self.hunt.store.root());
        head.options.one_at_a_time = true;
        head.took_ms = self.hunt.head.took_ms;
        let plan = Plan {
            launch,
            strategy: Strategy::Random,
            estimate: Estimate::default(),
            options: 0,
            site_names: Vec::new(),
            noise_at: Vec::new(),
            seed,
            same_seed: false,
            // Without hooks there are no accesses to look at.
            checked: !launch.preload,
            wants: Wants { statuses: self.statuses.clone(), output: None },
            shard: None,
            runs: self.budget.runs,
            first: false,
            timeout: self.timeout(),
            workers: self.hunt.workers,
            exec: false,
            head,
        };
        if sites.is_empty() { plan } else { plan.with_sites(sites) }
    }

    fn search(
        &self,
        plan: &Plan<'_>,
        limits: Limits<'_>,
        stop: &AtomicBool,
        provoked: &mut Provoked,
        found: &mut Vec<(Finding, Option<Schedule>)>,
        ctx: &Ctx,
    ) -> anyhow::Result<()> {
        // A program that waits by means that nobody sees takes long for each of its runs: time is looked at within a batch of
        // runs too, and not only between them.
        let (cut, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let searched = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) && !cut.load(Ordering::Relaxed) {
                    if limits.reached() || interrupt::signal().is_some() {
                        cut.store(true, Ordering::Relaxed);
                    }
                    std::thread::sleep(WATCH);
                }
            });
            let searched = portfolio::portfolio(plan, Limits { stop: &cut, until: limits.until }, &|_, _| ());
            done.store(true, Ordering::Relaxed);
            searched
        })?;
        provoked.searched = searched.campaign.runs();
        provoked.complete = searched.complete.is_some();
        let groups = groups(&searched.campaign);
        for group in groups.iter().filter(|group| group.ending.is_error()).take(FINDINGS_MAX) {
            let (own, again) = searched.again(plan, group.seen.first_run);
            let one =
                explored(&own, group, &again, Some(self.hunt.store), searched.campaign.runs(), stop, ctx)?;
            found.extend(one.map(|one| (one.finding, one.schedule)));
        }
        Ok(())
    }

    /// What was done to the recorded run.
    fn remark(&self, provocation: &Provocation, namer: &mut Namer) -> Remark {
        let frames = provocation.events.iter().filter_map(|event| {
            let event = &self.trace.events[event.index()];
            let stack = namer.stack_of(&self.trace.tables, event.location, event.context);
            stack.into_iter().find(|frame| !frame.library && frame.file.is_some())
        });
        let frames: Vec<Frame> = frames.collect();
        match provocation.pattern {
            Pattern::Reversed => Remark::Reversed { frames },
            Pattern::Interleaved => Remark::Interleaved { frames },
        }
    }

    /// Takes in what is new, and tells races what they lead to.
    fn add(
        &self,
        mut finding: Finding,
        schedule: Option<Schedule>,
        known: &mut [Witnessed],
        provoked: &mut Provoked,
    ) {
        finding.by = BY.to_owned();
        let same = |other: &Witnessed| other.finding.id == finding.id || explains(&other.finding, &finding);
        if known.iter().any(same) || provoked.found.iter().any(same) {
            return;
        }
        if let Some(schedule) = &schedule {
            let steps =
                schedule.steps.iter().filter(|step| matches!(step.kind, StepKind::Read | StepKind::Write));
            let places: BTreeSet<&str> = steps.map(|step| schedule.name(step.comment)).collect();
            for race in known.iter_mut().filter(|race| race.finding.kind.is_race()) {
                let taken =
                    race.schedule.iter().flat_map(|own| own.stops.iter().map(|stop| own.name(stop.comment)));
                let leads = Remark::Leads { to: finding.id.clone() };
                let is_cause = is_confirmed(&race.finding)
                    && (taken.clone().any(|place| places.contains(place)) || touches(&race.finding, &places));
                if is_cause && !race.finding.remarks.contains(&leads) {
                    race.finding.remarks.push(leads);
                }
            }
        }
        provoked.found.push(Witnessed::new(finding, schedule));
    }
}

/// Runs the program along a schedule and on to its end.
fn follow(
    plan: &Plan<'_>,
    mut schedule: Schedule,
) -> anyhow::Result<Option<(Outcome, Observation, RegionConfig)>> {
    schedule.head = plan.head.clone();
    let mut again = match steering::replay_config(&schedule, Then::RoundRobin) {
        Ok(config) => config,
        // More threads than can be replayed.
        Err(_) => return Ok(None),
    };
    let (steered, stdout, _) = steering::run_shared(plan.launch, &again, plan.timeout)?;
    // Whoever repeats it wants to know each turn.
    again.journal_max = JOURNAL_BYTES_MAX;
    let seen = match steered.outcome {
        // Nothing is known about what it would have done.
        Outcome::Diverged(_) => {
            Observation { ending: Ending::Exit(0), place: String::new(), stdout: Vec::new() }
        }
        Outcome::Ended(_)
        | Outcome::Deadlock(_)
        | Outcome::Parked(_)
        | Outcome::Stuck(_)
        | Outcome::TooManyThreads
        | Outcome::TimedOut(_) => plan.judged(observation(&steered, stdout)),
    };
    Ok(Some((steered.outcome, seen, again)))
}

/// Does a schedule's step stand at one of the places of a finding?
fn touches(finding: &Finding, places: &BTreeSet<&str>) -> bool {
    finding.parties.iter().filter_map(|party| party.stack.first()).any(|frame| {
        let file = frame.file.as_deref().and_then(|file| file.rsplit('/').next());
        let place = file.zip(frame.line).map(|(file, line)| format!("{file}:{line}"));
        place.is_some_and(|place| {
            places.iter().any(|other| *other == place || other.starts_with(&format!("{place} ")))
        })
    })
}

fn is_confirmed(finding: &Finding) -> bool {
    matches!(finding.basis, Basis::Replayed { shown: Shown::Parked, .. })
}

/// A deadlock whose threads all wait where those of another one do is that one.
fn explains(known: &Finding, new: &Finding) -> bool {
    let hangs = |kind| matches!(kind, Kind::Deadlock | Kind::BlockedThread | Kind::MissedSignal);
    if !hangs(known.kind) || !hangs(new.kind) || !matches!(known.basis, Basis::Replayed { .. }) {
        return false;
    }
    let places = |finding: &Finding| -> BTreeSet<(String, u32)> {
        let frame = |party: &raddle_findings::Party| {
            let frame = party.stack.iter().find(|frame| !frame.library && frame.line.is_some())?;
            Some((frame.file.clone()?, frame.line?))
        };
        finding.parties.iter().filter_map(frame).collect()
    };
    let (known, new) = (places(known), places(new));
    !known.is_empty() && !known.is_disjoint(&new)
}

/// Where the accesses of confirmed races are, as `module+0x1234`.
fn race_sites(known: &[Witnessed]) -> Vec<String> {
    let mut sites = BTreeSet::new();
    for race in known.iter().filter(|race| is_confirmed(&race.finding)) {
        if let Some(schedule) = &race.schedule {
            for stop in &schedule.stops {
                if let StopPlace::Code(place) = stop.place {
                    sites.insert(schedule.name(place).to_owned());
                }
            }
        }
    }
    sites.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_runs_or_time_or_both() {
        let budget = |text: &str| text.parse::<Budget>();
        assert_eq!(budget("off").map(|budget| budget.runs), Ok(0));
        assert_eq!(budget("100").map(|budget| budget.runs), Ok(100));
        assert_eq!(budget("7,30s"), Ok(Budget { runs: 7, time: Duration::from_secs(30) }));
        assert_eq!(budget("2min").map(|budget| budget.time), Ok(Duration::from_secs(120)));
        assert_eq!(budget(&Budget::default().to_string()), Ok(Budget::default()));
        for text in ["", "0", "0s", "x", "10,", "-1", "3h"] {
            assert!(budget(text).is_err(), "{text}");
        }
    }
}
