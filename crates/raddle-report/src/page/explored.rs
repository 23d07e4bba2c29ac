//! What many runs of one program say: how they ended, and what that allows to say about the runs that were not made.

use super::Shown;
use crate::text::{count, name, words};
use raddle_findings::file::{Exploration, Outcome, Search};

/// Outcomes that are listed.
const OUTCOMES_MAX: usize = 50;

/// A distinct ending.
pub(super) struct Ending {
    pub runs: u64,
    /// Of all runs, in hundredths of a percent, for the length of a bar.
    pub share: u64,
    pub ending: String,
    pub first_run: u64,
    pub seed: u64,
    pub finding: String,
    /// Where the finding is on the page.
    pub anchor: String,
}

pub(super) struct Explored {
    pub claims: Vec<String>,
    pub endings: Vec<Ending>,
    pub more: usize,
}

pub(super) fn explored(exploration: &Exploration, findings: &[Shown<'_>]) -> Explored {
    // A search makes runs that only repeat others; they have no ending of their own.
    let ended: u64 = exploration.outcomes.iter().map(|outcome| outcome.count).sum();
    let ending = |outcome: &Outcome| {
        let at = findings.iter().position(|shown| Some(&shown.finding.id) == outcome.finding.as_ref());
        Ending {
            runs: outcome.count,
            share: outcome.count.saturating_mul(10_000) / ended.max(1),
            ending: described(outcome),
            first_run: outcome.first_run,
            seed: outcome.seed,
            finding: outcome.finding.as_deref().map(name).unwrap_or_default(),
            anchor: at.map(|at| format!("f{at}")).unwrap_or_default(),
        }
    };
    Explored {
        claims: claims(exploration),
        endings: exploration.outcomes.iter().take(OUTCOMES_MAX).map(ending).collect(),
        more: exploration.outcomes.len().saturating_sub(OUTCOMES_MAX),
    }
}

/// How the runs ended, in words where the ending is a simple one.
fn described(outcome: &Outcome) -> String {
    let ending = &outcome.ending;
    let number = |key: &str| ending.get(key).and_then(serde_json::Value::as_i64);
    let mut text = match (number("exit"), number("signal")) {
        (Some(status), _) => format!("exit status {status}"),
        (_, Some(signal)) => format!("ended by signal {signal}"),
        _ if ending.get("deadlock").is_some() => "deadlock".to_owned(),
        _ => words(&ending.to_string()),
    };
    if !outcome.stdout.is_empty() {
        text.push_str(&format!(", printed {}", crate::text::code(outcome.stdout.trim_end())));
    }
    text
}

/// What the numbers allow to say, and nothing more.
fn claims(exploration: &Exploration) -> Vec<String> {
    let runs = exploration.runs;
    let mut claims = vec![match exploration.schedules {
        Some(schedules) => {
            format!("{} with {}", count(runs, "run"), count(schedules, "distinct schedule"))
        }
        None => count(runs, "run"),
    }];
    let failing = exploration.outcomes.iter().filter(|outcome| outcome.finding.is_some());
    let failing: u64 = failing.map(|outcome| outcome.count).sum();
    match &exploration.search {
        Some(search) => claims.push(searched(search)),
        None if failing > 0 => claims.push(format!(
            "{failing} of {runs} runs failed ({:.1} %)",
            failing as f64 * 100.0 / runs.max(1) as f64
        )),
        None => claims.push(not_seen(exploration)),
    }
    if let Some(pairs) = exploration.reads_from.filter(|pairs| pairs.covered > 0 || pairs.predicted > 0) {
        let all = pairs.covered.saturating_add(pairs.predicted);
        claims.push(format!(
            "reads have seen {} of {} writes that they can see as far as is known",
            pairs.covered, all
        ));
    }
    match exploration.races {
        Some(0) => claims.push("no run showed a data race".to_owned()),
        Some(races) => claims.push(format!("the runs showed {}", count(races, "data race"))),
        None => {}
    }
    claims
}

/// How far an exhaustive search got.
fn searched(search: &Search) -> String {
    let within = search.bound.as_ref().map_or_else(String::new, |bound| {
        format!(" with at most {} {}", bound.most, crate::text::printable(&bound.of))
    });
    let executions = count(search.executions, "execution");
    match (search.complete, search.failures) {
        (true, 0) => format!(
            "no failure in any schedule{within}, for this program and this input: all {executions} were run"
        ),
        (true, failures) => {
            format!("{} among all {executions}{within}", count(failures, "failure"))
        }
        (false, failures) => format!(
            "{} in {executions}{within}; about {} exist, so nothing is said about the rest",
            count(failures, "failure"),
            search.estimate.executions.max(search.executions)
        ),
    }
}

/// How sure the reader may be if this is the chance of a wrong claim.
const DOUBT: f64 = 0.05;

/// The largest chance of a failure under which as many runs without one are seen in one of twenty cases: `(1-p)^runs = 0.05`.
fn chance_bound(runs: u64) -> f64 {
    1.0 - DOUBT.powf(1.0 / runs.max(1) as f64)
}

/// No run failed.
fn not_seen(exploration: &Exploration) -> String {
    let runs = exploration.runs;
    match &exploration.sampled {
        Some(strategy) if runs > 0 => format!(
            "0 of {runs} runs failed under `{}`: a run under it fails with a chance of at most {:.2} % (with 95 % confidence)",
            name(strategy),
            (chance_bound(runs) * 1e4).ceil() / 100.0
        ),
        _ => format!("0 of {runs} runs failed, which says nothing about schedules that were not run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound is where the binomial distribution has 5 % left for no failure at all, worked out by multiplication.
    #[test]
    fn the_bound_leaves_one_case_in_twenty() {
        for runs in [1u64, 10, 59, 1_000, 10_000] {
            let chance = chance_bound(runs);
            let none = (0..runs).fold(1.0, |none, _| none * (1.0 - chance));
            assert!((none - DOUBT).abs() < 1e-6, "{runs}: {none}");
        }
        // 59 runs are what textbooks take for 5 %.
        assert!(chance_bound(59) < 0.05 && chance_bound(58) > 0.05);
    }

    fn search(complete: bool, failures: u64) -> Search {
        let bound =
            raddle_findings::file::Bound { of: "preemptions".into(), most: 2, executions: vec![1, 4, 9] };
        Search { executions: 14, complete, failures, bound: Some(bound), ..Search::default() }
    }

    #[test]
    fn claims_go_as_far_as_the_runs() {
        let says = |exploration: Exploration| claims(&exploration).join("; ");
        let all = Exploration { runs: 14, search: Some(search(true, 0)), ..Exploration::default() };
        assert_eq!(
            says(all),
            "14 runs; no failure in any schedule with at most 2 preemptions, for this program and this input: all 14 executions were run"
        );
        let some = Exploration { runs: 14, search: Some(search(false, 0)), ..Exploration::default() };
        assert!(says(some).ends_with("about 14 exist, so nothing is said about the rest"));
        let drawn = Exploration { runs: 10_000, sampled: Some("pct:3".into()), ..Exploration::default() };
        assert!(
            says(drawn)
                .ends_with("a run under it fails with a chance of at most 0.03 % (with 95 % confidence)")
        );
        let adaptive = Exploration { runs: 10_000, ..Exploration::default() };
        assert!(says(adaptive).ends_with("says nothing about schedules that were not run"));
    }
}
