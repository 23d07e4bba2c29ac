//! `raddle explain KIND`: a page for each kind of finding, and the table of grades.
//!
//! The pages are text files beside this one. Each has the same parts, and the short texts of machine formats are taken from
//! them: the title, the first paragraph, and the part *What to do*. How to suppress a finding is the same for every kind
//! and is added here.

use raddle_findings::{Grade, Kind, KindWords};

/// The page about a kind: plain text of at most 80 columns.
pub fn explain(kind: Kind) -> String {
    format!("{}\n## How to suppress it\n\n{}", page(kind), suppressing(kind))
}

fn page(kind: Kind) -> &'static str {
    match kind {
        Kind::DataRace => include_str!("data-race.md"),
        Kind::UseAfterFree => include_str!("use-after-free.md"),
        Kind::HighLevelRace => include_str!("high-level-race.md"),
        Kind::AtomicityViolation => include_str!("atomicity-violation.md"),
        Kind::OrderViolation => include_str!("order-violation.md"),
        Kind::Deadlock => include_str!("deadlock.md"),
        Kind::LockOrder => include_str!("lock-order.md"),
        Kind::MissedSignal => include_str!("missed-signal.md"),
        Kind::BlockedThread => include_str!("blocked-thread.md"),
        Kind::Livelock => include_str!("livelock.md"),
        Kind::Starvation => include_str!("starvation.md"),
        Kind::NonProgress => include_str!("non-progress.md"),
        Kind::ContractViolation => include_str!("contract-violation.md"),
        Kind::LockMisuse => include_str!("lock-misuse.md"),
        Kind::ThreadLeak => include_str!("thread-leak.md"),
        Kind::Crash => include_str!("crash.md"),
        Kind::AssertionFailure => include_str!("assertion-failure.md"),
        Kind::PropertyViolation => include_str!("property-violation.md"),
        Kind::FailedStatus => include_str!("failed-status.md"),
        Kind::WrongOutput => include_str!("wrong-output.md"),
    }
}

fn suppressing(kind: Kind) -> String {
    let kind = match kind {
        Kind::DataRace | Kind::UseAfterFree | Kind::HighLevelRace => "race",
        Kind::Deadlock | Kind::LockOrder => "deadlock",
        Kind::LockMisuse => "mutex",
        Kind::ThreadLeak => "thread",
        other => other.name(),
    };
    format!(
        "Put a line into a file and name the file with `--suppressions FILE`:\n\n    {kind}:PATTERN\n\n\
         PATTERN is compared with the functions, files and modules of the stacks and\n\
         with the names of the objects; `*` stands for any characters. A finding that\n\
         was already there can be kept out of reports with `--baseline FILE` instead.\n"
    )
}

/// The short texts about a kind.
pub(crate) fn words(kind: Kind) -> KindWords {
    let page = page(kind);
    let title = page.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
    KindWords {
        title,
        description: paragraph(page.lines().skip(2)),
        help: paragraph(page.lines().skip_while(|line| *line != "## What to do").skip(2)),
    }
}

fn paragraph<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What each grade promises, the strongest first: a table of at most 80 columns.
pub fn grades() -> String {
    let mut text = String::from(
        "grade       what it means\n----------  ------------------------------------------------------------------\n",
    );
    for grade in Grade::ALL {
        for (at, line) in textwrap::wrap(meaning(grade), 66).into_iter().enumerate() {
            let name = if at == 0 { grade.name() } else { "" };
            text.push_str(&format!("{name:<10}  {line}\n"));
        }
    }
    text
}

fn meaning(grade: Grade) -> &'static str {
    match grade {
        Grade::Confirmed => {
            "The error was seen under a stored schedule, and again each time that schedule was replayed from its file. \
             `raddle replay ID` shows it. Always listed; exit status 1."
        }
        Grade::Observed => {
            "The error happened in a run that Raddle watched, but no stored schedule has made it happen again. Always \
             listed; exit status 1."
        }
        Grade::Unordered => {
            "No synchronisation visible to Raddle orders two conflicting accesses, by the rules of C and C++11. Always \
             listed; exit status 1."
        }
        Grade::Predicted => {
            "Analysis of a recorded run found a schedule that leads to the error, but replaying it did not show the \
             error; the finding says why. Listed with `--all`; exit status 1 with `--fail-on predicted`."
        }
        Grade::Suspected => {
            "A rule that is imprecise by design reports it, or code that Raddle cannot see may prevent it. Listed where \
             the rule was asked for and with `--all`; exit status 1 with `--fail-on suspected`."
        }
    }
}
