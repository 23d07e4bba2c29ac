//! A run to draw: a schedule with names for people.

use crate::text::name;
use raddle_findings::{Finding, Frame, Object, Place, headline_frame};
use raddle_trace::schedule::{NameIx, Schedule, StepKind};
use std::collections::HashMap;

/// A place in the source. Everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spot {
    /// As the schedule or the frame has it; a schedule has only the file's own name.
    pub file: String,
    /// 0: not known.
    pub line: u32,
    pub function: String,
}

impl Spot {
    /// `bank.c:20`.
    pub fn short(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        match (file, self.line) {
            ("", _) => String::new(),
            (file, 0) => name(file),
            (file, line) => format!("{}:{line}", name(file)),
        }
    }

    pub fn of_stack(stack: &[Frame]) -> Spot {
        let frame = headline_frame(stack).or(stack.first());
        frame.map_or_else(Spot::default, Spot::of_frame)
    }

    pub fn of_frame(frame: &Frame) -> Spot {
        Spot {
            file: frame.file.clone().or_else(|| frame.raw.clone()).unwrap_or_default(),
            line: frame.line.unwrap_or(0),
            function: frame.function.clone().unwrap_or_default(),
        }
    }

    /// From a comment of a schedule: `bank.c:20 deposit`, `bank+0x1234`.
    pub fn of_comment(comment: &str) -> Spot {
        let (place, function) = comment.split_once(' ').unwrap_or((comment, ""));
        let function = function.split(',').next().unwrap_or_default().trim().to_owned();
        match place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
            Some((file, line)) => Spot { file: file.to_owned(), line, function },
            None => Spot { file: place.to_owned(), line: 0, function },
        }
    }
}

/// Names of objects that schedules call `module+0x1234`.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_place: HashMap<String, String>,
}

impl Names {
    /// The names that a finding knows.
    pub fn of(finding: &Finding) -> Names {
        let mut names = Names::default();
        let actions = finding.parties.iter().filter_map(|party| party.action.object());
        let held = finding.parties.iter().flat_map(|party| &party.locks).map(|held| &held.lock);
        for object in finding.objects.iter().chain(actions).chain(held) {
            names.learn(object);
        }
        names
    }

    fn learn(&mut self, object: &Object) {
        if let (Some(name), Place::Global { module, offset }) = (&object.name, &object.place) {
            self.by_place.insert(format!("{module}+{offset:#x}"), name.clone());
        }
    }

    /// Adds what somebody else knows: the name of `module+0x1234`.
    pub fn add(&mut self, place: String, name: String) {
        self.by_place.entry(place).or_insert(name);
    }

    /// Adds what is not known yet.
    pub fn extend(&mut self, others: &Names) {
        for (place, name) in &others.by_place {
            self.add(place.clone(), name.clone());
        }
    }

    pub fn get<'a>(&'a self, raw: &'a str) -> &'a str {
        self.by_place.get(raw).map_or(raw, String::as_str)
    }
}

/// A step of a run, with its thread as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStep {
    pub thread: usize,
    pub ordinal: u32,
    pub kind: StepKind,
    pub failed: bool,
    pub object: NameIx,
    pub comment: NameIx,
}

/// A schedule, with its threads numbered in order of appearance.
pub struct Run<'a> {
    pub schedule: &'a Schedule,
    pub names: Names,
    pub threads: Vec<&'a str>,
    pub steps: Vec<RunStep>,
    /// What never completes.
    pub blocks: Vec<RunStep>,
}

impl<'a> Run<'a> {
    pub fn new(schedule: &'a Schedule, names: Names) -> Run<'a> {
        let mut numbers: HashMap<NameIx, usize> = HashMap::new();
        let mut threads: Vec<&str> = Vec::new();
        let mut number = |thread: NameIx| {
            *numbers.entry(thread).or_insert_with(|| {
                threads.push(schedule.name(thread));
                threads.len() - 1
            })
        };
        let steps = schedule.steps.iter().map(|step| RunStep {
            thread: number(step.thread),
            ordinal: step.ordinal,
            kind: step.kind,
            failed: step.failed,
            object: step.object,
            comment: step.comment,
        });
        let steps: Vec<RunStep> = steps.collect();
        let blocks = schedule.blocks.iter().map(|block| RunStep {
            thread: number(block.thread),
            ordinal: block.ordinal,
            kind: block.kind,
            failed: false,
            object: block.object,
            comment: block.comment,
        });
        let blocks: Vec<RunStep> = blocks.collect();
        for stop in &schedule.stops {
            number(stop.thread);
        }
        Run { schedule, names, threads, steps, blocks }
    }

    /// What an object is called.
    pub fn object(&self, object: NameIx) -> &str {
        self.names.get(self.schedule.name(object))
    }

    pub fn spot(&self, step: &RunStep) -> Spot {
        Spot::of_comment(self.schedule.name(step.comment))
    }

    pub fn thread(&self, path: &str) -> Option<usize> {
        self.threads.iter().position(|thread| *thread == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_places() {
        let spot = Spot::of_comment("bank.c:20 deposit, reads 4 bytes");
        assert_eq!((spot.file.as_str(), spot.line, spot.function.as_str()), ("bank.c", 20, "deposit"));
        assert_eq!(Spot::of_comment("bank+0x1234").short(), "bank+0x1234");
        assert_eq!(Spot::of_comment("").short(), "");
    }
}
