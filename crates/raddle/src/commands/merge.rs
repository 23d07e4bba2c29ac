//! `raddle merge`: parts of an exploration, done by several machines, as one.

use super::explore::line;
use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::launch::outcomes::groups;
use crate::launch::shards::Part;
use crate::output::{OutputArgs, Reporter, Stream};
use raddle_explore::{Campaign, Ending};
use raddle_findings::store::read_schedule;
use raddle_findings::{Evidence, Store, file};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Puts together what the shards of an exploration have seen (`raddle explore --shard K/N --keep DIR`).
///
/// Outcomes are added up as if one machine had done all runs, and findings go into one store.
/// Exit status: 0 no error was seen, 1 some run crashed, deadlocked or failed, 2 usage or environment error.
///
/// Example:
///   raddle merge part-1 part-2 part-3
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The stores of the shards.
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// The store that everything goes into.
    #[arg(long, value_name = "DIR", default_value = raddle_findings::store::FOLDER)]
    keep: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut reporter = Reporter::new("merge", &args.output, Stream::Stdout, ctx)?;
    let parts: Vec<(PathBuf, Part)> = args
        .parts
        .iter()
        .map(|folder| Part::read(folder).map(|part| (folder.clone(), part)))
        .collect::<anyhow::Result<_>>()?;
    check(&parts)?;
    let count = parts[0].1.shard.count;
    let missing = (0..count).filter(|index| parts.iter().all(|(_, part)| part.shard.index != *index));
    let missing: Vec<String> = missing.map(|index| (index + 1).to_string()).collect();
    let program = parts[0].1.program.clone();
    let is_search = parts[0].1.search.is_some();
    let search = merged_search(&parts, missing.is_empty());
    let ids: BTreeMap<(Ending, String), String> = parts
        .iter()
        .flat_map(|(_, part)| part.ids.iter())
        .map(|(ending, place, id)| ((ending.clone(), place.clone()), id.clone()))
        .collect();
    let store = Store::at(&args.keep);
    for evidence in merged_findings(&parts)? {
        let finding = evidence.finding.clone();
        store.add(&evidence)?;
        reporter.hear(finding, false);
    }
    let mut campaign = Campaign::default();
    for (_, part) in parts {
        campaign.merge(part.campaign);
    }
    let outcomes = campaign.outcomes().into_iter().map(|(observation, seen)| file::Outcome {
        ending: serde_json::to_value(&observation.ending).unwrap_or_default(),
        stdout: String::from_utf8_lossy(&observation.stdout).into_owned(),
        count: seen.count,
        first_run: seen.first_run,
        seed: seen.first_seed,
        finding: ids.get(&(observation.ending.clone(), observation.place.clone())).cloned(),
    });
    let runs = search.as_ref().map_or(campaign.runs(), |search| search.executions + search.blocked);
    reporter.exploration = Some(file::Exploration {
        runs,
        schedules: Some(campaign.schedules() as u64),
        outcomes: outcomes.collect(),
        search: search.clone(),
        ..file::Exploration::default()
    });
    if !ctx.quiet && !args.output.owns_stdout() {
        for group in groups(&campaign) {
            let id = ids.get(&(group.ending.clone(), group.observation.place.clone()));
            println!("{}", line(&group, &campaign, id.map(String::as_str), is_search));
        }
    }
    if !ctx.quiet {
        if !missing.is_empty() {
            eprintln!("raddle: warning: shards {} of {count} are missing", missing.join(", "));
        }
        eprintln!("raddle: {runs} runs in {} parts: {}", count as usize - missing.len(), reporter.summary());
    }
    let exit = reporter.finish(program)?;
    Ok(exit.or_failed(search.is_some_and(|search| search.failures > 0)))
}

/// Parts of one exploration, each once.
fn check(parts: &[(PathBuf, Part)]) -> Result<(), Refusal> {
    let (first_folder, first) = &parts[0];
    let mut seen = BTreeSet::new();
    for (folder, part) in parts {
        let same = (&part.program, &part.code_id, &part.asked, part.shard.count)
            == (&first.program, &first.code_id, &first.asked, first.shard.count);
        if !same {
            return Err(Refusal(format!(
                "{} and {} are parts of different explorations: {} ({}) and {} ({})",
                first_folder.display(),
                folder.display(),
                first.program.join(" "),
                first.asked,
                part.program.join(" "),
                part.asked
            )));
        }
        if !seen.insert(part.shard.index) {
            return Err(Refusal(format!(
                "{} is shard {} of {}, which was given before",
                folder.display(),
                part.shard.index + 1,
                part.shard.count
            )));
        }
    }
    Ok(())
}

fn merged_search(parts: &[(PathBuf, Part)], all: bool) -> Option<file::Search> {
    let mut whole: Option<file::Search> = None;
    for search in parts.iter().filter_map(|(_, part)| part.search.as_ref()) {
        match &mut whole {
            None => whole = Some(file::Search { complete: search.complete && all, ..search.clone() }),
            Some(whole) => {
                whole.executions += search.executions;
                whole.blocked += search.blocked;
                whole.deadlocks += search.deadlocks;
                whole.failures += search.failures;
                whole.complete &= search.complete;
                whole.estimate.executions += search.estimate.executions;
                whole.estimate.error += search.estimate.error;
            }
        }
    }
    whole
}

/// Each finding once, with the evidence of its first run, and counted over all parts.
fn merged_findings(parts: &[(PathBuf, Part)]) -> anyhow::Result<Vec<Evidence>> {
    let mut merged: BTreeMap<String, Evidence> = BTreeMap::new();
    let runs: u64 = parts.iter().map(|(_, part)| part.campaign.runs()).sum();
    for (folder, part) in parts {
        let store = Store::at(folder);
        let own: BTreeSet<&String> = part.ids.iter().map(|(_, _, id)| id).collect();
        let (list, problems) = store.list()?;
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem.into());
        }
        for mut evidence in list.into_iter().filter(|evidence| own.contains(&evidence.finding.id)) {
            let path = store.schedule_path(&evidence.finding.id);
            evidence.schedule = path.exists().then(|| read_schedule(&path)).transpose()?;
            let id = evidence.finding.id.clone();
            let Some(before) = merged.remove(&id) else {
                merged.insert(id, evidence);
                continue;
            };
            let seen = |evidence: &Evidence| evidence.finding.seen;
            let earlier = match (seen(&before), seen(&evidence)) {
                (Some(a), Some(b)) => a.first_run <= b.first_run,
                _ => true,
            };
            let count: u64 = [&before, &evidence].iter().filter_map(|e| seen(e)).map(|seen| seen.count).sum();
            let mut kept = if earlier { before } else { evidence };
            if let Some(seen) = &mut kept.finding.seen {
                seen.count = count;
            }
            merged.insert(id, kept);
        }
    }
    let mut list: Vec<Evidence> = merged.into_values().collect();
    for evidence in &mut list {
        if let Some(seen) = &mut evidence.finding.seen {
            seen.runs = runs;
        }
    }
    list.sort_by_key(|evidence| evidence.finding.seen.map_or(0, |seen| seen.first_run));
    Ok(list)
}
