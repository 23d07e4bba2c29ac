//! Shards: a campaign that is done in parts, by several machines, and put together again.
//!
//! A shard does the runs whose number leaves its rest, or the subtrees of a search that fall to it. What it has seen is
//! written into its store ([`Part`]); parts that belong together add up to what one machine would have seen.

use crate::compiler::Refusal;
use anyhow::Context;
use raddle_explore::systematic::search::Shard;
use raddle_explore::{Campaign, Ending};
use raddle_findings::file;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The file in a store.
const FILE: &str = "part.json";
const VERSION: u32 = 1;

/// What one shard has seen.
#[derive(Serialize, Deserialize)]
pub struct Part {
    version: u32,
    pub shard: Shard,
    pub program: Vec<String>,
    pub code_id: String,
    /// What was asked for, in words: parts that were asked for something else do not belong together.
    pub asked: String,
    pub campaign: Campaign,
    pub search: Option<file::Search>,
    /// Ids of the findings by how their runs ended and where.
    pub ids: Vec<(Ending, String, String)>,
}

impl Part {
    pub fn new(
        shard: Shard,
        program: Vec<String>,
        code_id: String,
        asked: String,
        campaign: Campaign,
    ) -> Part {
        Part { version: VERSION, shard, program, code_id, asked, campaign, search: None, ids: Vec::new() }
    }

    pub fn write(&self, store: &Path) -> anyhow::Result<()> {
        put(&store.join(FILE), self)
    }

    pub fn read(store: &Path) -> anyhow::Result<Part> {
        let path = store.join(FILE);
        let part: Part = get(&path)?;
        if part.version != VERSION {
            return Err(
                Refusal(format!("{} was written by another version of raddle", path.display())).into()
            );
        }
        Ok(part)
    }
}

/// Writes a file that is whole or not there.
pub fn put(path: &Path, what: &impl Serialize) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let cannot = || format!("cannot write {}", path.display());
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    serde_json::to_writer(&mut file, what).with_context(cannot)?;
    file.flush().with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(())
}

pub fn get<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<T> {
    let bytes =
        std::fs::read(path).map_err(|error| Refusal(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal(format!("{} cannot be understood: {error}", path.display())).into())
}

/// Variables in which systems say which of several jobs this is, and whether they count from 0.
const INDICES: [(&str, &str, u32); 3] = [
    ("JOB_COMPLETION_INDEX", "", 0),
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", 0),
    ("CI_NODE_INDEX", "", 1),
];
const TOTALS: [&str; 2] = ["SLURM_ARRAY_TASK_COUNT", "CI_NODE_TOTAL"];

/// `K/N`, from 1; `/N` takes K from the environment, and nothing at all both.
pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
    let number = |text: &str| text.parse::<u32>().ok();
    let from_environment = || {
        INDICES.iter().find_map(|&(name, least, first)| {
            let least = number(&variable(least).unwrap_or_default()).unwrap_or(first);
            Some(number(&variable(name)?)?.checked_sub(least)? + 1)
        })
    };
    let (own, count) = text.split_once('/').unwrap_or((text, ""));
    let count = match count {
        "" => TOTALS.iter().find_map(|name| number(&variable(name)?)),
        count => number(count),
    };
    let own = if own.is_empty() { from_environment() } else { number(own) };
    match (own, count) {
        (Some(own), Some(count)) if own >= 1 && own <= count => Ok(Shard { index: own - 1, count }),
        (Some(own), Some(count)) => Err(format!("there is no shard {own} of {count}; they count from 1")),
        _ => Err(
            "say which of how many, as in `--shard 2/8`; only JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID and \
             CI_NODE_INDEX (with SLURM_ARRAY_TASK_COUNT or CI_NODE_TOTAL) could say it otherwise"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(text: &str, variables: &[(&str, &str)]) -> Option<(u32, u32)> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        parse(text, variable).ok().map(|shard| (shard.index, shard.count))
    }

    #[test]
    fn the_user_or_the_system_says_which_shard() {
        assert_eq!(shard("2/8", &[]), Some((1, 8)));
        assert_eq!(shard("", &[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "4")]), Some((2, 4)));
        assert_eq!(shard("/5", &[("JOB_COMPLETION_INDEX", "0")]), Some((0, 5)));
        let slurm =
            [("SLURM_ARRAY_TASK_ID", "12"), ("SLURM_ARRAY_TASK_MIN", "10"), ("SLURM_ARRAY_TASK_COUNT", "6")];
        assert_eq!(shard("", &slurm), Some((2, 6)));
        for (text, variables) in [("0/3", &[][..]), ("4/3", &[]), ("", &[]), ("x/2", &[]), ("1/0", &[])] {
            assert_eq!(shard(text, variables), None, "{text}");
        }
    }
}
