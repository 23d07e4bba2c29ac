//! Verdicts of online detection: `raddle run` must report the races that happens-before can see in the run as the program
//! times itself, and nothing where the manifest says `clean`.
//!
//! Places are compared only for builds without optimisation. A known group of findings that is `hidden` (another order
//! would be needed) is not due.

use super::golden::{Golden, Source};
use super::hunt::{describe, describe_all, fits, group, markers};
use super::manifest::{Case, End, Expected, Verdict};
use super::run::{Runner, Variant};
use anyhow::bail;
use raddle_findings::{Finding, FindingsFile, Kind};
use std::collections::BTreeMap;
use std::process::Command;

/// What a manifest says about online detection.
struct OnlineVerdict<'a> {
    online: &'a [Verdict],
    finding: &'a [Expected],
}

impl OnlineVerdict<'_> {
    fn check(&self, case: &Case, variant: Variant, findings: &[Finding]) -> anyhow::Result<()> {
        let races: Vec<Finding> = findings
            .iter()
            .filter(|finding| finding.kind.is_race() && finding.grade().is_failing())
            .cloned()
            .collect();
        self.check_misuse(case, variant, findings)?;
        if let Some(finding) = races.iter().find(|finding| finding.parties.len() != 2) {
            bail!("a race has two parties: {}", describe(finding));
        }
        match self.online {
            [Verdict::Clean] => match races.first() {
                Some(finding) => bail!("nothing may be reported, but: {}", describe(finding)),
                None => return Ok(()),
            },
            [Verdict::Race] if races.is_empty() => bail!("no race is reported"),
            [Verdict::Race | Verdict::May] => {}
            other => bail!("`online` says {other:?}: one verdict is enough"),
        }
        if variant.optimisation != "-O0" {
            return Ok(());
        }
        let markers = markers(case)?;
        let is_race = |entry: &&Expected| entry.is_race();
        let entries: Vec<&Expected> = self.finding.iter().filter(is_race).collect();
        for finding in &races {
            if !entries.iter().any(|entry| fits(finding, entry, &markers)) {
                bail!("fits no entry of the manifest: {}", describe(finding));
            }
            if let Some(party) = finding.parties.iter().find(|party| party.stack.is_empty()) {
                bail!("thread {} has no stack: {}", party.thread.path, describe(finding));
            }
        }
        if self.online == [Verdict::May] {
            return Ok(());
        }
        let mut groups: BTreeMap<String, bool> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.is_due_online()) {
            let shown = races.iter().any(|finding| fits(finding, entry, &markers));
            *groups.entry(group(entry)).or_default() |= shown;
        }
        match groups.iter().find(|(_, shown)| !**shown) {
            Some((group, _)) => bail!("no finding for {group}; there are: {}", describe_all(&races)),
            None => Ok(()),
        }
    }

    /// Each misuse of the manifest is told of. It has nothing to do with the verdict, which is about races.
    fn check_misuse(&self, case: &Case, variant: Variant, findings: &[Finding]) -> anyhow::Result<()> {
        if variant.optimisation != "-O0" {
            return Ok(());
        }
        let markers = markers(case)?;
        let due = self.finding.iter().filter(|entry| entry.kind == Kind::LockMisuse);
        for entry in due.filter(|entry| entry.is_due_online()) {
            if !findings.iter().any(|finding| fits(finding, entry, &markers)) {
                bail!("no finding for {}; there are: {}", group(entry), describe_all(findings));
            }
        }
        Ok(())
    }
}

impl Runner {
    /// Runs the case under online detection and compares what is found with the manifest.
    pub fn online(&self, case: &Case, variant: Variant, golden: Golden) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new().prefix("raddle-online-").tempdir()?;
        let folder = scratch.path().join("program");
        self.build(case, variant, &folder, true)?;
        let mut command = Command::new(&self.raddle);
        command.args(["run", "--quiet", "--output", "findings.json", "--", "./program"]).args(&case.args);
        command.current_dir(&folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "100");
        let stdout = self.limited_output(command, case, 1)?;
        let kept = FindingsFile::read(&folder.join("findings.json"))?;
        // A program that ends itself by a signal may take its output with it.
        if matches!(case.end, End::Status(_)) {
            super::run::compare_output(case, &stdout)?;
        }
        OnlineVerdict { online: &case.online, finding: &case.findings }.check(
            case,
            variant,
            &kept.findings,
        )?;
        match Source::of(case) {
            Some(Source::Run) => self.golden(case, Source::Run, &folder, golden),
            _ => Ok(()),
        }
    }
}
