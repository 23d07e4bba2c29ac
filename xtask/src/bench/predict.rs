//! Prediction: the program of RaceQuest's figure 5.17 beside its table 5.9, and ten million events.
//!
//! The paper's seconds are from its authors' machine, with the cost of replaying for RaceQuest; they are shown for the
//! order of magnitude. Ours are the prediction alone, from a trace in memory to candidates with witnesses.

use super::{Bench, Limit, Outcome, Subject};
use raddle_predict::bench_traces::{figure_5_17, workers};
use raddle_predict::{CandidateKind, Options, predict};

/// Table 5.9: iterations, then seconds of RaceQuest, RVPredict, CHESS (`None`: failed).
const TABLE_5_9: &[(u32, f64, Option<f64>, f64)] = &[
    (10, 1.30, Some(1.69), 3.83),
    (50, 1.60, Some(4.04), 70.57),
    (100, 2.04, Some(50.78), 385.50),
    (150, 2.86, Some(85.59), 1013.46),
    (200, 3.79, None, 2235.16),
];
const LONGER: &[u32] = &[1_000, 10_000, 100_000];
const EVENTS: usize = 10_000_000;

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("predict");
    let mut seconds: Vec<(u32, f64)> = Vec::new();
    for n in TABLE_5_9.iter().map(|row| row.0).chain(LONGER.iter().copied()) {
        let trace = figure_5_17(n);
        let mut found = Vec::new();
        let subject = Subject::function("predict", || {
            found = predict(&trace, &Options::default())
                .candidates
                .iter()
                .map(|candidate| candidate.kind)
                .collect();
        });
        let rows = bench.measure(&format!("figure 5.17, N = {n}"), vec![subject])?;
        anyhow::ensure!(found == [CandidateKind::DataRace], "N = {n}: the race was not found: {found:?}");
        seconds.push((n, rows[0].wall_s));
        outcome.rows.extend(rows);
    }
    for &(n, racequest, rvpredict, chess) in TABLE_5_9 {
        outcome.fact(&format!("N = {n}: RaceQuest in the paper, s"), racequest);
        if let Some(rvpredict) = rvpredict {
            outcome.fact(&format!("N = {n}: RVPredict in the paper, s"), rvpredict);
        }
        outcome.fact(&format!("N = {n}: CHESS in the paper, s"), chess);
    }
    let at = |n: u32| seconds.iter().find(|(m, _)| *m == n).map_or(f64::NAN, |(_, s)| *s);
    outcome.bar("N = 200, seconds", at(200), Limit::AtMost(0.020));
    outcome.bar("N = 100,000, seconds", at(100_000), Limit::AtMost(2.0));
    outcome.bar(
        "growth from N = 10,000 to 100,000 (linear is 10)",
        at(100_000) / at(10_000),
        Limit::AtMost(15.0),
    );
    let trace = workers(EVENTS, 1);
    let mut races = 0;
    let subject = Subject::function("predict", || {
        races = predict(&trace, &Options::default()).candidates.len();
    });
    // Once is enough: it is long.
    let rows = Bench { rounds: 1 }.measure("10 million events, 9 threads", vec![subject])?;
    outcome.bar("10 million events, seconds", rows[0].wall_s, Limit::AtMost(60.0));
    outcome.bar("10 million events, peak memory of this process, GiB", peak_gib()?, Limit::AtMost(4.0));
    outcome.fact("10 million events: candidates", races as f64);
    outcome.rows.extend(rows);
    outcome.note("The paper's seconds are from its authors' machine and include replaying.");
    Ok(outcome)
}

fn peak_gib() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.trim().strip_suffix(" kB")).unwrap_or("0").trim().parse()?;
    Ok(kib / (1 << 20) as f64)
}
