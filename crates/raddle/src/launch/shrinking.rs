//! From a run that showed an error to the schedule that is kept: repeated, shrunk, and checked by a replay.

use super::Streams;
use super::exploring::{Plan, observation};
use super::server::ForkServer;
use super::steering::{self, Journaled, Outcome, Steered, SteeredParty};
use crate::evidence::ending;
use raddle_explore::shrink::{self, Attempt, Change};
use raddle_explore::{Ending, Observation};
use raddle_findings::naming::Namer;
use raddle_trace::crash::End;
use raddle_trace::journal::Journal;
use raddle_trace::region::RegionConfig;
use raddle_trace::schedule::{Block, Expected, NameIx, Schedule, Visible};
use raddle_trace::symbols::Symbolizer;
use raddle_trace::tables::Module;
use raddle_wire::region::{option, strategy};
use std::sync::atomic::AtomicBool;

/// What became of a run.
pub struct Kept {
    pub schedule: Schedule,
    /// Context switches of the run as it was found, and of the schedule.
    pub found_switches: usize,
    pub switches: usize,
    /// A replay of the schedule ended as the run did.
    pub replayed: bool,
    /// What the runtime left about the end of the run, with the modules that its addresses belong to.
    pub end: Option<End>,
    /// Parties of a deadlock among the threads of `end`.
    pub parties: usize,
    pub modules: Vec<Module>,
}

/// Repeats a run, with a journal. `None`: it did not show the same again.
pub fn repeat(
    plan: &Plan<'_>,
    again: &RegionConfig,
    wanted: &Observation,
) -> anyhow::Result<Option<Journaled>> {
    let found = steering::run_journaled(plan.launch, again, plan.timeout)?;
    let shows = found.steered.crash_place == wanted.place
        && plan.judged(observation(&found.steered, found.stdout.clone())).ending == wanted.ending
        && (!plan.strategy.is_deterministic() || found.stdout == wanted.stdout);
    Ok(shows.then_some(found))
}

/// Repeats a run, with a journal, and makes a schedule of it. `None`: it did not show the same again.
pub fn keep(
    plan: &Plan<'_>,
    again: &RegionConfig,
    wanted: &Observation,
    about: &str,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Kept>> {
    let Some(found) = repeat(plan, again, wanted)? else { return Ok(None) };
    let found_switches = found.journal.context_switches();
    let smaller = shrink(plan, &found.journal, wanted, stop)?;
    let journal = smaller.filter(|journal| journal.context_switches() < found_switches);
    let mut kept = make(plan, journal.as_ref().unwrap_or(&found.journal), &found, wanted, about)?;
    if !kept.replayed && journal.is_some() {
        kept = make(plan, &found.journal, &found, wanted, about)?;
    }
    kept.found_switches = found_switches;
    Ok(Some(kept))
}

fn make(
    plan: &Plan<'_>,
    journal: &Journal,
    found: &Journaled,
    wanted: &Observation,
    about: &str,
) -> anyhow::Result<Kept> {
    let mut symbols = Symbolizer::new(&found.modules);
    let mut schedule = journal.schedule(about, &found.modules, |pc| source_line(&mut symbols, pc));
    schedule.expected = match &wanted.ending {
        Ending::Exit(status) | Ending::Allowed(status) | Ending::WrongOutput(status) => {
            u32::try_from(*status).ok().map(Expected::Exit)
        }
        Ending::Unwanted => Some(Expected::Exit(0)),
        Ending::Signal(signal) => u32::try_from(*signal).ok().map(Expected::Signal),
        Ending::Deadlock(_) => Some(Expected::Deadlock),
        Ending::Stuck(_) | Ending::TimedOut(_) | Ending::TooManyThreads => None,
    };
    if let Some(End::Crash(report)) = &found.steered.end {
        schedule.crash_place = ending::place(report, &mut Namer::new(&found.modules));
    }
    schedule.visible = visible(plan, &mut schedule);
    schedule.head = plan.head.clone();
    let steered = steering::replay(plan.launch, &schedule, Streams::Silent, plan.timeout)?;
    let replayed =
        shows(&schedule, &steered) == Some(true) && observation(&steered, Vec::new()).ending == wanted.ending;
    if let Outcome::Deadlock(parties) = &steered.outcome {
        expect_blocks(&mut schedule, parties);
    }
    Ok(Kept {
        schedule,
        found_switches: 0,
        switches: journal.context_switches(),
        replayed,
        end: found.steered.end.clone(),
        parties: parties_of(&found.steered),
        modules: found.modules.clone(),
    })
}

/// How many of the threads of its end take part in the deadlock that a run came to.
pub fn parties_of(steered: &Steered) -> usize {
    match &steered.outcome {
        Outcome::Deadlock(parties) => parties.len(),
        _ => 0,
    }
}

/// `bank.c:20`, if that is known. A program counter is that of the next instruction, like a return address.
fn source_line(symbols: &mut Symbolizer, pc: u64) -> Option<String> {
    let frames = symbols.frames(pc);
    let frame = frames.first()?;
    let file = frame.file.as_deref()?;
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line?))
}

/// Which accesses were visible in the runs of the plan.
fn visible(plan: &Plan<'_>, schedule: &mut Schedule) -> Visible {
    if plan.options & option::VISIBLE_ALL != 0 {
        return Visible::All;
    }
    if plan.options & option::VISIBLE_SITES == 0 {
        return Visible::Sync;
    }
    Visible::Sites(plan.site_names.iter().map(|name| schedule.intern(name)).collect())
}

/// Writes down which operations wait at the end, so that another deadlock does not pass for this one.
fn expect_blocks(schedule: &mut Schedule, parties: &[SteeredParty]) {
    let names: Vec<String> = schedule.threads().into_iter().map(str::to_owned).collect();
    for party in parties {
        let name = names.iter().find(|name| steering::thread_hash(name) == party.path);
        let (Some(name), Some(kind)) = (name, party.operation) else { continue };
        let (thread, comment) = (schedule.intern(name), schedule.intern(&party.site));
        let block = Block { thread, ordinal: party.ordinal, kind, object: NameIx::default(), comment };
        schedule.blocks.push(block);
    }
}

/// Threads of a schedule that are expected to block, and that do not wait in that very operation.
pub fn missing(schedule: &Schedule, parties: &[SteeredParty]) -> Vec<String> {
    let waits = |block: &Block| {
        let path = steering::thread_hash(schedule.name(block.thread));
        parties.iter().any(|party| {
            (party.path, party.operation, party.ordinal) == (path, Some(block.kind), block.ordinal)
        })
    };
    let missing = schedule.blocks.iter().filter(|block| !waits(block));
    missing.map(|block| schedule.name(block.thread).to_owned()).collect()
}

/// Did a run along the schedule end as expected? `None`: the schedule does not say how it should end.
pub fn shows(schedule: &Schedule, steered: &Steered) -> Option<bool> {
    use std::os::unix::process::ExitStatusExt;
    let expected = schedule.expected?;
    Some(match (expected, &steered.outcome) {
        (Expected::Deadlock, Outcome::Deadlock(parties)) => missing(schedule, parties).is_empty(),
        (Expected::Exit(wanted), Outcome::Ended(status)) => status.code() == i32::try_from(wanted).ok(),
        (Expected::Signal(wanted), Outcome::Ended(status)) => {
            status.signal() == i32::try_from(wanted).ok()
                && (schedule.crash_place.is_empty() || schedule.crash_place == place(steered))
        }
        _ => false,
    })
}

/// Where a run crashed, as schedules write it.
fn place(steered: &Steered) -> String {
    match &steered.end {
        Some(End::Crash(report)) => ending::place(report, &mut Namer::new(&steered.modules)),
        _ => String::new(),
    }
}

/// All changes of thread in a run.
fn changes(journal: &Journal) -> Vec<Change> {
    journal
        .turns
        .windows(2)
        .filter(|pair| pair[0].thread != pair[1].thread)
        .map(|pair| Change {
            thread: journal.hash(pair[0].thread),
            ordinal: pair[0].ordinal,
            next: journal.hash(pair[1].thread),
        })
        .collect()
}

fn words(changes: &[Change]) -> Vec<u64> {
    let mut words = vec![changes.len() as u64];
    words.extend(changes.iter().flat_map(|change| [change.thread, u64::from(change.ordinal), change.next]));
    words
}

/// Runs with more changes than this are kept as they are: shrinking them would take too long.
const CHANGES_MAX: usize = 20_000;

/// The journal of a run with fewer context switches that ends in the same way, if one is found.
fn shrink(
    plan: &Plan<'_>,
    found: &Journal,
    wanted: &Observation,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Journal>> {
    let all = changes(found);
    if all.is_empty() || all.len() > CHANGES_MAX {
        return Ok(None);
    }
    let sites = plan.site_words();
    // The sites stand at the end of the blob; the changes before them leave room, which the runtime does not look at.
    let blob = |changes: &[Change]| -> Vec<u8> {
        let mut words = words(changes);
        words.resize(1 + 3 * all.len(), 0);
        words.extend(&sites);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    };
    let config = RegionConfig { strategy: strategy::GUIDED, blob: blob(&all), ..plan.journaled(0) };
    let mut server = match plan.exec {
        true => None,
        false => ForkServer::start(plan.launch, &config)?,
    };
    let is_wanted = |steered: &Steered, stdout: Vec<u8>| {
        let seen = plan.judged(observation(steered, stdout));
        (&seen.ending, &seen.place) == (&wanted.ending, &wanted.place)
    };
    let mut run = |changes: &[Change]| -> anyhow::Result<(bool, Journal)> {
        match &mut server {
            Some(server) => {
                server.rewrite_blob(&blob(changes));
                let mut shows = false;
                server.run((0, 1), 1, plan.timeout, stop, |run| {
                    shows = is_wanted(&run.steered, run.stdout);
                })?;
                Ok((shows, server.journal()))
            }
            None => {
                let config = RegionConfig { blob: blob(changes), ..config.clone() };
                let run = steering::run_journaled(plan.launch, &config, plan.timeout)?;
                Ok((is_wanted(&run.steered, run.stdout), run.journal))
            }
        }
    };
    let (shows, mut best) = run(&all)?;
    if !shows {
        return Ok(None);
    }
    // Each round starts from the changes that the best run really made, as long as they get fewer.
    loop {
        let before = changes(&best);
        let kept = shrink::shrink(before.clone(), |changes| {
            let (shows, journal) = run(changes)?;
            let fewer = shows && journal.context_switches() <= best.context_switches();
            if fewer {
                best = journal;
            }
            Ok::<_, anyhow::Error>(Attempt { shows: fewer })
        })?;
        if changes(&best).len() >= before.len() || kept.is_empty() {
            return Ok(Some(best));
        }
    }
}
