//! From reports to findings: names, stacks, grades.

use crate::report::{Part, Report};
use crate::step::{Names, VarIx};
use raddle_findings::{Finding, Frame, Party};
use raddle_trace::{Addr, ContextIx, Location, LocationIx, ObjectId, Tables, ThreadIx};

/// Knows what things are called. The default knows numbers only; the command line brings symbols or the names of a
/// converted trace.
pub trait Namer {
    fn variable(&mut self, addr: Addr) -> String {
        format!("memory at {:#x}", addr.0)
    }

    fn object(&mut self, object: ObjectId) -> String {
        format!("{:#x}", object.0)
    }

    fn stack(&mut self, tables: &Tables, location: LocationIx, context: ContextIx) -> Vec<Frame> {
        std::iter::once(location).chain(tables.stack(context)).map(|place| frame(tables, place)).collect()
    }
}

/// Numbers instead of names.
pub struct Numbers;

impl Namer for Numbers {}

/// A frame without symbols.
pub fn frame(tables: &Tables, location: LocationIx) -> Frame {
    let raw = match *tables.location(location) {
        Location::Unknown => None,
        Location::Foreign(number) => Some(format!("L{number}")),
        Location::Pc(pc) => Some(match tables.module_of(pc) {
            Some(module) => {
                let name = module.path.rsplit('/').next().unwrap_or(&module.path);
                format!("{name}+{:#x}", pc.wrapping_sub(module.bias))
            }
            None => format!("{pc:#x}"),
        }),
    };
    Frame { raw, ..Frame::default() }
}

/// Turns a report into a finding.
pub fn render(report: &Report, tables: &Tables, names: &Names, namer: &mut dyn Namer) -> Finding {
    let mut text = |text: &str| fill_in(text, tables, names, namer);
    let message = text(&report.message);
    let objects: Vec<String> = report.objects.iter().map(|object| text(object)).collect();
    let mut notes: Vec<String> = report.notes.iter().map(|note| text(note)).collect();
    let actions: Vec<String> = report.parts.iter().map(|part| text(&part.action)).collect();
    if report.occurrences > 1 {
        notes.push(format!("seen {} times at these places", report.occurrences));
    }
    let party = |(part, action): (&Part, String)| Party {
        thread: thread_name(tables, part.thread),
        action,
        stack: namer.stack(tables, part.location, part.context),
        locks: Vec::new(),
    };
    let parties = report.parts.iter().zip(actions).map(party).collect();
    let mut finding = Finding::new(report.kind, report.grade, report.by, message, parties);
    finding.objects = objects;
    finding.notes = notes;
    finding
}

fn thread_name(tables: &Tables, thread: ThreadIx) -> String {
    match tables.threads.get(thread.index()) {
        Some(thread) => thread.name.clone(),
        None => format!("?{}", thread.0),
    }
}

/// Replaces the tokens of a text by names.
fn fill_in(text: &str, tables: &Tables, names: &Names, namer: &mut dyn Namer) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        result.push_str(&rest[..start]);
        let Some(len) = rest[start..].find('}') else { break };
        let token = &rest[start + 1..start + len];
        let number = token.get(2..).and_then(|digits| digits.parse::<u64>().ok());
        match (token.get(..2), number) {
            (Some("o:"), Some(number)) => result.push_str(&namer.object(ObjectId(number))),
            (Some("v:"), Some(number)) => result.push_str(&namer.variable(names.var(VarIx(number as u32)))),
            (Some("t:"), Some(number)) => result.push_str(&thread_name(tables, ThreadIx(number as u32))),
            _ => result.push_str(&rest[start..=start + len]),
        }
        rest = &rest[start + len + 1..];
    }
    result.push_str(rest);
    result
}
