//! What a group found out: rows, facts, bars; as JSON for machines and as Markdown for people.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// One subject on one case: the minimum of the rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub case: String,
    pub subject: String,
    pub cpu_s: f64,
    pub wall_s: f64,
    /// Peak memory of all its processes together; absent for functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_kib: Option<u64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A limit and the value measured for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bar {
    pub what: String,
    pub value: f64,
    pub limit: Limit,
}

impl Bar {
    pub fn holds(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.value <= limit,
            Limit::AtLeast(limit) => self.value >= limit,
        }
    }
}

/// Everything a group found out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub group: String,
    pub machine: String,
    pub rows: Vec<Row>,
    /// Numbers beside the rows: states per second, bytes per event, ...
    pub facts: BTreeMap<String, f64>,
    pub bars: Vec<Bar>,
    /// Sentences a reader needs to judge the numbers: what was left out, and why.
    pub notes: Vec<String>,
}

impl Outcome {
    pub fn new(group: &str) -> Outcome {
        Outcome {
            group: group.to_owned(),
            machine: machine(),
            rows: Vec::new(),
            facts: BTreeMap::new(),
            bars: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn fact(&mut self, what: &str, value: f64) {
        self.facts.insert(what.to_owned(), value);
    }

    pub fn bar(&mut self, what: &str, value: f64, limit: Limit) {
        self.bars.push(Bar { what: what.to_owned(), value, limit });
    }

    pub fn note(&mut self, sentence: &str) {
        self.notes.push(sentence.to_owned());
    }

    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(format!("{}.json", self.group));
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn read(path: &Path) -> anyhow::Result<Outcome> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a bench result", path.display()))
    }

    /// Tables: CPU times with their ratio to the first subject of the case, facts, bars.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.group, self.machine);
        if !self.rows.is_empty() {
            text.push_str(
                "| case | subject | CPU s | ratio | wall s | peak MiB |\n|---|---|---:|---:|---:|---:|\n",
            );
        }
        let mut base: Option<(&str, f64)> = None;
        for row in &self.rows {
            if base.is_none_or(|(case, _)| case != row.case) {
                base = Some((&row.case, row.cpu_s));
            }
            let ratio = row.cpu_s / base.map_or(row.cpu_s, |(_, cpu)| cpu);
            let peak = row.peak_kib.map_or(String::new(), |kib| format!("{:.1}", kib as f64 / 1024.0));
            text.push_str(&format!(
                "| {} | {} | {:.4} | {ratio:.2} | {:.4} | {peak} |\n",
                row.case, row.subject, row.cpu_s, row.wall_s
            ));
        }
        for (what, value) in &self.facts {
            text.push_str(&format!("\n- {what}: {}", figure(*value)));
        }
        if !self.bars.is_empty() {
            text.push_str("\n\n| bar | measured | limit | holds |\n|---|---:|---:|---|\n");
        }
        for bar in &self.bars {
            let limit = match bar.limit {
                Limit::AtMost(limit) => format!("<= {}", figure(limit)),
                Limit::AtLeast(limit) => format!(">= {}", figure(limit)),
            };
            let holds = if bar.holds() { "yes" } else { "**no**" };
            text.push_str(&format!("| {} | {} | {limit} | {holds} |\n", bar.what, figure(bar.value)));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }
}

fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}

/// For each case that has both: CPU time of `subject` over CPU time of `base`.
pub fn ratios(rows: &[Row], subject: &str, base: &str) -> Vec<(String, f64)> {
    let time = |case: &str, subject: &str| {
        rows.iter().find(|row| row.case == case && row.subject == subject).map(|row| row.cpu_s)
    };
    let mut cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
    cases.dedup();
    cases
        .into_iter()
        .filter_map(|case| Some((case.to_owned(), time(case, subject)? / time(case, base)?)))
        .collect()
}

pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, count), value| (sum + value.ln(), count + 1));
    assert!(count > 0, "a mean of nothing");
    (sum / f64::from(count)).exp()
}

fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split(':').nth(1)?.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cpu}, {cores} cores")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, subject: &str, cpu_s: f64) -> Row {
        Row { case: case.into(), subject: subject.into(), cpu_s, wall_s: cpu_s, peak_kib: Some(2048) }
    }

    #[test]
    fn ratios_pair_rows_of_one_case() {
        let rows = [
            row("a", "native", 1.0),
            row("a", "ours", 3.0),
            row("b", "native", 2.0),
            row("b", "ours", 24.0),
            row("c", "ours", 1.0),
        ];
        let ratios = ratios(&rows, "ours", "native");
        assert_eq!(ratios, [("a".to_owned(), 3.0), ("b".to_owned(), 12.0)]);
        let mean = geometric_mean(ratios.into_iter().map(|(_, ratio)| ratio));
        assert!((mean - 6.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn bars_hold_up_to_their_limit() {
        let bar = |value, limit| Bar { what: "x".into(), value, limit };
        assert!(bar(1.0, Limit::AtMost(1.0)).holds());
        assert!(!bar(1.1, Limit::AtMost(1.0)).holds());
        assert!(!bar(0.9, Limit::AtLeast(1.0)).holds());
    }

    #[test]
    fn an_outcome_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut outcome = Outcome::new("try");
        outcome.rows.push(row("a", "native", 1.0));
        outcome.fact("speed", 12.5);
        outcome.bar("fast", 2.0, Limit::AtLeast(1.0));
        outcome.write(folder.path()).unwrap();
        let back = Outcome::read(&folder.path().join("try.json")).unwrap();
        assert_eq!(back.markdown(), outcome.markdown());
        assert!(back.markdown().contains("| a | native | 1.0000 | 1.00 | 1.0000 | 2.0 |"));
    }
}
