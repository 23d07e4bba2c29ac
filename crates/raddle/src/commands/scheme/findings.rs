//! Findings of Scheme's analysis as findings of the house: one schema, whichever engine found them.
//!
//! A finding that the analysis made happen is confirmed here as every other is: its schedule is written, read back and replayed
//! twice. One that does not show the error again is *observed*, and says so. What only the abstract machine has met is
//! *suspected*. Scheme has no functions with debug information; the definition at the left margin above a place stands for
//! the function, so that ids do not depend on line numbers.

use raddle_findings::{
    Access, Action, Attempt, Basis, Detail, Finding, Frame, Kind, Object, Party, Role, Shown, Thread, Wait,
    What,
};
use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{self, Deed, Grade};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source};

/// Replays before a finding is called confirmed.
const REPLAYS: u32 = 2;

/// Steps after which a replay is given up.
const STEPS_MAX: usize = 10_000_000;

/// A finding in the schema of every command.
pub(super) fn convert(program: &Program, found: &finding::Finding, by: &str, clock: &Clock) -> Finding {
    let parties = found.parts.iter().map(|part| party(&program.source, part)).collect();
    Finding::new(kind(found.kind), by, basis(program, found, clock), parties, detail(found))
}

fn kind(kind: finding::Kind) -> Kind {
    match kind {
        finding::Kind::Race => Kind::DataRace,
        finding::Kind::Deadlock => Kind::Deadlock,
        finding::Kind::Livelock => Kind::Livelock,
        // What was read before the swap is no longer true, and nobody looks again.
        finding::Kind::UnretriedCas => Kind::AtomicityViolation,
        finding::Kind::Error => Kind::Crash,
    }
}

/// The words of an error are the program's own; places are no part of them, so that ids stay.
fn detail(found: &finding::Finding) -> Detail {
    match found.kind {
        finding::Kind::Error | finding::Kind::UnretriedCas => Detail::Words { text: found.message.clone() },
        finding::Kind::Race | finding::Kind::Deadlock | finding::Kind::Livelock => Detail::None,
    }
}

fn basis(program: &Program, found: &finding::Finding, clock: &Clock) -> Basis {
    match (found.grade, &found.schedule) {
        (Grade::Suspected, _) => Basis::rule(),
        (Grade::Confirmed, None) => Basis::observed(),
        (Grade::Confirmed, Some(schedule)) => {
            let text = schedule.text(&found.message);
            let shown = (0..REPLAYS).filter(|_| shows(program, &text, found.kind, clock)).count() as u32;
            if shown == REPLAYS {
                return Basis::Replayed { shown: how(found.kind), replays: REPLAYS };
            }
            let mut basis = Basis::observed();
            basis.tried(Attempt::NotAgain { shown, replays: REPLAYS });
            basis
        }
    }
}

fn how(kind: finding::Kind) -> Shown {
    match kind {
        finding::Kind::Race => Shown::Parked,
        finding::Kind::Deadlock | finding::Kind::Livelock => Shown::Blocked,
        finding::Kind::UnretriedCas | finding::Kind::Error => Shown::Ended,
    }
}

/// Does the schedule, read from its text, lead to the error?
fn shows(program: &Program, text: &str, kind: finding::Kind, clock: &Clock) -> bool {
    let Ok(schedule) = Schedule::parse(text) else { return false };
    let run = run(&Machine::new(program), Scheduler::Replay(schedule), 0, STEPS_MAX, clock, |_| {});
    match kind {
        finding::Kind::Race => matches!(run.ending, Ending::ScheduleEnds { race: Some(_), .. }),
        finding::Kind::Deadlock => matches!(run.ending, Ending::Deadlock(_)),
        finding::Kind::Livelock => run.livelock.is_some(),
        finding::Kind::UnretriedCas => run.unretried.is_some(),
        finding::Kind::Error => matches!(run.ending, Ending::Failed { .. }),
    }
}

fn party(source: &Source, part: &finding::Part) -> Party {
    let object = part.object.as_deref().map(|name| Object::named(name, What::Memory));
    let accesses =
        |access, atomic| Action::Accesses { access, bytes: 0, atomic, vptr: false, object: object.clone() };
    let action = match part.deed {
        Deed::Reads => accesses(Access::Read, false),
        Deed::Writes => accesses(Access::Write, false),
        Deed::Swaps | Deed::SwapsOnce => accesses(Access::ReadWrite, true),
        Deed::Accesses => accesses(Access::Any, false),
        Deed::WaitsForLock => Action::waits(Wait::Lock, object),
        Deed::WaitsForThread => Action::waits(Wait::ThreadEnd, object),
        Deed::Waits => Action::waits(Wait::Other, object),
        Deed::Spins => Action::Plays { role: Role::RepeatsItself, object },
        Deed::Fails => Action::Crashes,
    };
    Party::new(Thread::at(part.path.clone().unwrap_or_default()), action, vec![frame(source, part)])
}

fn frame(source: &Source, part: &finding::Part) -> Frame {
    if part.span.is_prelude() {
        return Frame { raw: Some(part.place.clone()), library: true, ..Frame::default() };
    }
    let start = (part.span.start as usize).min(source.text.len());
    let (bytes, _) = source.lines(start, start);
    let (line, column) = source.line_column(part.span.start);
    Frame {
        function: definition(&source.text[..bytes.end]),
        file: Some(source.name.clone()),
        line: u32::try_from(line).ok(),
        column: u32::try_from(column).ok(),
        source: Some(source.text[bytes].trim_end().to_owned()),
        ..Frame::default()
    }
}

/// The name that the last definition at the left margin defines.
fn definition(text: &str) -> Option<String> {
    let last = text.lines().rev().find(|line| line.starts_with('('))?;
    let rest = last.strip_prefix("(define")?.trim_start().trim_start_matches('(');
    let name: String = rest.chars().take_while(|c| !c.is_whitespace() && !matches!(c, '(' | ')')).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_scheme::analyze::{Options, analyze};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn findings(text: &str) -> Vec<Finding> {
        let clock = Clock::new(None, Arc::new(AtomicBool::new(false)));
        let source = Source::new("counter.scm", text);
        let program = raddle_scheme::parse_within(source, &clock).unwrap_or_else(|_| panic!("{text}"));
        let report = analyze(&program, &Options::default(), &clock, &mut |_| {});
        report.findings.iter().map(|found| convert(&program, found, "scheme", &clock)).collect()
    }

    const COUNTER: &str = "(define counter 0)\n(define (work)\n  (set! counter (+ counter 1)))\n\
                           (let ((t (spawn (work)))) (work) (join t) counter)\n";

    #[test]
    fn a_race_is_confirmed_by_replaying_its_schedule_and_names_its_places() {
        let found = findings(COUNTER);
        let race = found.iter().find(|finding| finding.kind == Kind::DataRace).expect("the race");
        assert_eq!(race.basis, Basis::Replayed { shown: Shown::Parked, replays: REPLAYS });
        let frame = &race.parties[0].stack[0];
        assert_eq!((frame.function.as_deref(), frame.line), (Some("work"), Some(3)));
        assert_eq!(race.objects[0].name.as_deref(), Some("counter"));
    }

    #[test]
    fn a_comment_above_changes_no_id() {
        let ids = |text: &str| -> Vec<String> { findings(text).into_iter().map(|f| f.id).collect() };
        assert!(!ids(COUNTER).is_empty());
        assert_eq!(ids(COUNTER), ids(&format!("; a comment\n\n{COUNTER}")));
    }
}
