//! Evidence: a finding together with the schedule that shows it, as it is kept in a [store](crate::store).

use crate::finding::Finding;
use serde::{Deserialize, Serialize};

/// Version of `finding.json` in a store.
pub const EVIDENCE_VERSION: u32 = 1;

/// What is kept of a finding. What a replay needs (program, options, input) is in the head of the schedule and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub version: u32,
    /// Version of `raddle` that wrote it.
    pub raddle: String,
    /// The command that found it: `hunt`, `explore`, ...
    pub command: String,
    /// The program and its arguments, for lists; a replay takes them from the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// Which build of the program: the code-id in the schedule's head.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code_id: String,
    /// Seconds since 1970.
    pub found_at: u64,
    pub finding: Finding,
    /// The schedule's text. In a store it is a file of its own.
    #[serde(skip)]
    pub schedule: Option<String>,
    /// The schedule of the recorded run that it was predicted from. In a store it is a file of its own.
    #[serde(skip)]
    pub recorded: Option<String>,
}

impl Evidence {
    pub fn new(command: &str, program: Vec<String>, finding: Finding, schedule: Option<String>) -> Evidence {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Evidence {
            version: EVIDENCE_VERSION,
            raddle: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            program,
            code_id: String::new(),
            found_at: now.map_or(0, |now| now.as_secs()),
            finding,
            schedule,
            recorded: None,
        }
    }

    /// Does this tell more than the other about the same finding? A higher grade does; at the same grade, one with a
    /// schedule does, and one of another build, because that is the program that the user has now.
    pub fn supersedes(&self, other: &Evidence) -> bool {
        let (mine, theirs) = (self.finding.grade(), other.finding.grade());
        let build = (&self.program, &self.code_id) != (&other.program, &other.code_id);
        mine > theirs || mine == theirs && self.schedule.is_some() && (other.schedule.is_none() || build)
    }
}
