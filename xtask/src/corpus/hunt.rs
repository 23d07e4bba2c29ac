//! Verdicts of prediction: `raddle hunt` from one recorded run must report what the manifest says, confirmed by replay,
//! and nothing else.
//!
//! The rules are those of `corpus/README.md`: every group of findings that is due must be reported by at least one
//! confirmed finding, every confirmed finding must fit an entry, and a special kind may be called by its more general
//! name.

use super::explored::is_allowed;
use super::golden::{Golden, Source};
use super::manifest::{Case, Expected, Verdict};
use super::run::{Runner, Variant};
use anyhow::{Context, bail};
use raddle_findings::{Finding, FindingsFile, Grade, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

impl Expected {
    pub(super) fn is_race(&self) -> bool {
        !self.property && self.kind.is_race()
    }

    pub(super) fn is_due_online(&self) -> bool {
        !self.hidden && !self.optional
    }
}

/// What a manifest says about prediction.
struct Verdicts<'a> {
    predict: &'a [Verdict],
    finding: &'a [Expected],
}

impl Verdicts<'_> {
    /// Do these confirmed findings satisfy the manifest? An error says what is missing or too much.
    fn check(&self, case: &Case, findings: &[Finding]) -> anyhow::Result<()> {
        if self.predict == [Verdict::Clean] {
            return match findings.first() {
                Some(finding) => bail!("nothing may be reported, but: {}", describe(finding)),
                None => Ok(()),
            };
        }
        for &verdict in self.predict {
            if !findings.iter().any(|finding| fits_verdict(finding.kind, verdict)) {
                bail!("no confirmed finding is a {verdict:?}; there are: {}", describe_all(findings));
            }
        }
        let markers = markers(case)?;
        let entries: Vec<&Expected> = self.finding.iter().filter(|entry| !entry.property).collect();
        for finding in findings {
            if !entries.iter().any(|entry| fits(finding, entry, &markers)) {
                bail!("fits no entry of the manifest: {}", describe(finding));
            }
        }
        let mut groups: BTreeMap<String, bool> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| !entry.optional) {
            let shown = findings.iter().any(|finding| fits(finding, entry, &markers));
            *groups.entry(group(entry)).or_default() |= shown;
        }
        match groups.iter().find(|(_, shown)| !**shown) {
            Some((group, _)) => bail!("no finding for {group}; there are: {}", describe_all(findings)),
            None => Ok(()),
        }
    }
}

/// Findings whose markers share a middle word belong together.
pub(super) fn group(entry: &Expected) -> String {
    let middle = entry.places.first().and_then(|place| {
        let parts: Vec<&str> = place.split(':').collect();
        (parts.len() > 2).then(|| parts[1].to_owned())
    });
    format!("{} {}", entry.kind.name(), middle.unwrap_or_else(|| entry.places.join("+")))
}

/// What a hunt says to have brought about itself is found by this.
const PROVOKE: &str = "provoke";

/// May a program with these verdicts be brought to do this?
fn may_be(kind: Kind, verdicts: &[Verdict]) -> bool {
    is_allowed(kind, verdicts) || kind == Kind::Livelock && verdicts.contains(&Verdict::Livelock)
}

/// A hunt brings about what the manifest says, and nothing else: what some interleaving does, where it says no more. Programs with an
/// error may do more than the manifest says; correct ones may not.
fn provocations(case: &Case, found: &[Finding]) -> anyhow::Result<()> {
    let allowed: Vec<Verdict> = match case.provoke.is_empty() {
        true => case.explore.iter().chain(&case.predict).copied().collect(),
        false => case.provoke.clone(),
    };
    let may_do_more = case.provoke.is_empty() && case.explore.is_empty() && case.predict != [Verdict::Clean];
    if let Some(finding) = found.iter().find(|finding| !may_do_more && !may_be(finding.kind, &allowed)) {
        bail!("provoked, and no interleaving should do that: {}", describe(finding));
    }
    for &verdict in case.provoke.iter().filter(|verdict| **verdict != Verdict::Clean) {
        let shows = |finding: &&Finding| may_be(finding.kind, &[verdict]);
        let Some(finding) = found.iter().find(shows) else {
            bail!("{verdict:?} was not provoked; there are: {}", describe_all(found));
        };
        // A run that goes on for ever has no schedule that ends.
        if finding.grade() != Grade::Confirmed && verdict != Verdict::Livelock {
            bail!("provoked, but not confirmed: {} {:?}", describe(finding), finding.basis);
        }
    }
    Ok(())
}

/// A special case may be called by its more general name.
fn fits_verdict(kind: Kind, verdict: Verdict) -> bool {
    match verdict {
        Verdict::Race => kind.is_race(),
        Verdict::Deadlock => kind == Kind::Deadlock,
        Verdict::Blocked => matches!(kind, Kind::BlockedThread | Kind::Deadlock),
        Verdict::MissedSignal => matches!(kind, Kind::MissedSignal | Kind::BlockedThread | Kind::Deadlock),
        Verdict::Clean
        | Verdict::May
        | Verdict::Assert
        | Verdict::Crash
        | Verdict::Livelock
        | Verdict::WrongOutput => false,
    }
}

pub(super) fn fits(finding: &Finding, entry: &Expected, markers: &Markers) -> bool {
    let fits_kind = match entry.kind {
        Kind::DataRace | Kind::UseAfterFree => finding.kind.is_race(),
        Kind::Deadlock => fits_verdict(finding.kind, Verdict::Deadlock),
        Kind::BlockedThread => fits_verdict(finding.kind, Verdict::Blocked),
        Kind::MissedSignal => fits_verdict(finding.kind, Verdict::MissedSignal),
        other => finding.kind == other,
    };
    fits_kind
        && finding.parties.iter().all(|party| {
            entry.places.iter().filter_map(|place| markers.get(place)).any(|lines| {
                party.stack.iter().any(|frame| {
                    let file = frame.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("");
                    frame.line.is_some_and(|line| lines.contains(&(file.to_owned(), line)))
                })
            })
        })
}

/// File and line of each marker.
pub(super) type Markers = BTreeMap<String, BTreeSet<(String, u32)>>;

/// Lines of the markers in a case's sources.
pub(super) fn markers(case: &Case) -> anyhow::Result<Markers> {
    let mut markers = Markers::new();
    let sources = case.files.iter().chain(case.shared.values().flatten());
    for source in sources {
        let path = case.folder.join(source);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name =
            Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//") else { continue };
            for word in comment.split_whitespace().filter(|word| word.contains(':')) {
                markers.entry(word.to_owned()).or_default().insert((name.clone(), number as u32 + 1));
            }
        }
    }
    Ok(markers)
}

pub(super) fn describe_all(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "none".to_owned();
    }
    findings.iter().map(describe).collect::<Vec<_>>().join("; ")
}

pub(super) fn describe(finding: &Finding) -> String {
    let places: Vec<String> = finding
        .parties
        .iter()
        .map(|party| {
            let frame = party.stack.iter().find(|frame| frame.file.is_some());
            frame.map_or("?".to_owned(), |frame| {
                format!("{}:{}", frame.file.as_deref().unwrap_or("?"), frame.line.unwrap_or(0))
            })
        })
        .collect();
    format!("{} {} ({})", finding.grade().name(), finding.kind.name(), places.join(" and "))
}

impl Runner {
    /// Hunts once in the case and compares what was confirmed with the manifest.
    pub fn hunt(&self, case: &Case, variant: Variant, golden: Golden) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new().prefix("raddle-hunt-").tempdir()?;
        let folder = scratch.path().join("program");
        self.build(case, variant, &folder, true)?;
        self.limited(self.hunt_command(case, &folder, &["--output", "findings.json"]), case)?;
        let kept = FindingsFile::read(&folder.join("findings.json"))?;
        if case.crashes() {
            self.crashed(case, &kept.findings, &folder)?;
        }
        // A crash is not what prediction is asked about; that programs crash is part of some of them.
        let reported: Vec<Finding> = kept
            .findings
            .into_iter()
            .filter(|finding| finding.grade().is_failing())
            .filter(|finding| finding.kind != Kind::Crash || finding.by == PROVOKE)
            .collect();
        let (provoked, reported): (Vec<Finding>, Vec<Finding>) =
            reported.into_iter().partition(|finding| finding.by == PROVOKE);
        provocations(case, &provoked)?;
        if !case.predict.is_empty() {
            Verdicts { predict: &case.predict, finding: &case.findings }.check(case, &reported)?;
        }
        if let Some(source) = Source::of(case).filter(|source| source.is_hunted()) {
            self.golden(case, source, &folder, golden)?;
        }
        let reported: Vec<Finding> = reported.into_iter().chain(provoked).collect();
        for finding in reported.iter().filter(|finding| finding.grade() == Grade::Confirmed) {
            if finding.schedule.is_none() {
                bail!("confirmed, but no schedule is stored: {}", describe(finding));
            }
        }
        for finding in reported.iter().filter(|finding| finding.schedule.is_some()) {
            self.replay(case, finding, &folder)?;
        }
        Ok(())
    }

    /// A program that dies of a signal: the crash is a finding, and happens again.
    fn crashed(&self, case: &Case, found: &[Finding], folder: &Path) -> anyhow::Result<()> {
        let is_crash = |finding: &&Finding| matches!(finding.kind, Kind::Crash | Kind::AssertionFailure);
        let Some(crash) = found.iter().find(is_crash) else {
            bail!("no crash is reported; there are: {}", describe_all(found));
        };
        if crash.grade() != Grade::Confirmed {
            bail!("the crash is not confirmed: {} {:?}", describe(crash), crash.basis);
        }
        self.replay(case, crash, folder)
    }

    /// A hunt in the program of a case that was built into this folder.
    pub(super) fn hunt_command(&self, case: &Case, folder: &Path, options: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(&self.raddle);
        command.args(["hunt", "--quiet", "--workers", "1"]).args(options).args(["--", "./program"]);
        command.args(&case.args);
        command.current_dir(folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "100");
        command
    }

    /// A confirmed finding happens again each time it is asked for: [`REPLAYS`] times, or as often as
    /// `RADDLE_TEST_REPLAYS` says.
    fn replay(&self, case: &Case, finding: &Finding, folder: &Path) -> anyhow::Result<()> {
        let wanted = std::env::var("RADDLE_TEST_REPLAYS").ok().and_then(|value| value.parse().ok());
        let wanted: u64 = wanted.unwrap_or(REPLAYS);
        let mut command = std::process::Command::new(&self.raddle);
        command.args(["replay", "--json", "--repeat", &wanted.to_string(), &finding.id]);
        command.current_dir(folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "100");
        let output = self.limited(command, case)?;
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| {
            format!(
                "raddle replay ended with {} and printed {} and {}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        match told["shown"].as_u64() {
            Some(shown) if shown == wanted => Ok(()),
            _ => bail!("{} was not shown again each time: {told}", describe(finding)),
        }
    }
}

const REPLAYS: u64 = 3;
