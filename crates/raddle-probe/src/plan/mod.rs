//! From aspects to a plan: what the runtime has to change in a program so that its events are seen.
//!
//! A place is found ([`crate::locate`]), then its code is looked at ([`code`]): how can a thread be led through a stub there? Aspects that meet
//! at one place share a stub. What an event carries is said in terms of registers and stack words ([`values`]), from debug information
//! where there is some and by the calling convention otherwise. Everything goes into one file of words ([`raddle_wire::probe`]), which is made
//! once for a build of the program and a text of aspects.
//!
//! What cannot be done is not left out in silence: each place that has no probe has a [`Note`].

mod code;
mod encode;
mod values;

use crate::aspect::{Aspect, File, JoinPoint, Moment};
use crate::locate::{Locator, Module, Note, Place};
use code::{Anchor, ModuleCode};
use encode::Words;
use raddle_wire::probe::{access, target};
use std::collections::BTreeMap;
use values::Called;

/// A plan and what it does not cover.
pub struct Plan {
    /// What the runtime reads.
    pub words: Vec<u64>,
    /// Places that have a probe, and places that aspects name.
    pub probes: usize,
    pub places: usize,
    /// By aspect.
    pub notes: Vec<(usize, Note)>,
    /// Some aspect is about accesses to a global: they have to be observed.
    pub needs_accesses: bool,
}

/// Aspects at one place: their numbers, by moment.
#[derive(Default)]
struct Meeting {
    before: Vec<usize>,
    after: Vec<usize>,
    /// What is called or entered; all of them are about one function.
    place: Option<Place>,
}

/// Plans the probes of a program.
///
/// `models` says of functions what they are, in the same language: `lock(#0) after call my_lock`. Its aspects are numbered behind those of `file`.
pub fn plan(file: &File, models: &File, modules: &[Module], locator: &Locator) -> Plan {
    let own = file.aspects().map(|aspect| (aspect, false));
    let aspects: Vec<(&Aspect, bool)> = own.chain(models.aspects().map(|aspect| (aspect, true))).collect();
    let mut made = Plan { words: Vec::new(), probes: 0, places: 0, notes: Vec::new(), needs_accesses: false };
    let mut meetings: BTreeMap<(usize, Anchor), Meeting> = BTreeMap::new();
    let mut ranges: Vec<(usize, Place)> = Vec::new();
    for (number, (aspect, _)) in aspects.iter().enumerate() {
        let located = locator.locate(aspect);
        made.notes.extend(located.notes.into_iter().map(|note| (number, note)));
        made.places += located.places.len();
        for place in located.places {
            let anchor = match aspect.join_point {
                JoinPoint::ReadGlobal | JoinPoint::WriteGlobal => {
                    if aspect.moment == Moment::After {
                        let message = "events after an access to a global are not seen yet";
                        made.notes.push((number, Note::doubt(message, "write `before`")));
                        continue;
                    }
                    made.needs_accesses = true;
                    ranges.push((number, place));
                    continue;
                }
                JoinPoint::Call => Anchor::Call(place.loaded_at.unwrap_or(place.address)),
                JoinPoint::Body => Anchor::Body(place.address),
                JoinPoint::Line => Anchor::Line(place.address),
            };
            let meeting = meetings.entry((place.module, anchor)).or_default();
            meeting.place.get_or_insert(place);
            match aspect.moment {
                Moment::Before => meeting.before.push(number),
                Moment::After => meeting.after.push(number),
            }
        }
    }
    let mut words = Words::new();
    let mut used: Vec<usize> = meetings.keys().map(|(module, _)| *module).collect();
    used.extend(ranges.iter().map(|(_, place)| place.module));
    used.sort_unstable();
    used.dedup();
    for (at, &module) in used.iter().enumerate() {
        let here: Vec<(Anchor, &Meeting)> = meetings
            .iter()
            .filter(|((number, _), _)| *number == module)
            .map(|((_, anchor), meeting)| (*anchor, meeting))
            .collect();
        let Some(image) = locator.image(module) else { continue };
        let mut code = ModuleCode::new(image, at);
        for &(anchor, meeting) in &here {
            let number = words.probes.len();
            let rows = |range| locator.rows_within(module, range);
            match code.add(anchor, number as u32, !meeting.after.is_empty(), rows) {
                Ok(placed) => {
                    let mut made_of = |numbers: &[usize]| {
                        let called = meeting.place.as_ref().map(|place| Called::at(place, at, locator));
                        events(&mut words, &aspects, numbers, called.as_ref(), &mut made.notes)
                    };
                    let (before, after) = (made_of(&meeting.before), made_of(&meeting.after));
                    let (kind, to) = placed.target;
                    words.probes.push([
                        at as u64,
                        kind,
                        to,
                        placed.address,
                        before.0,
                        before.1,
                        after.0,
                        after.1,
                    ]);
                    made.probes += 1;
                }
                Err(reason) => {
                    let place = locator.image(module).and_then(|image| {
                        let function = image.function(image.function_at(anchor.address())?);
                        Some(format!(" in {}", function.name?))
                    });
                    let message = format!(
                        "no probe fits at {:#x}{}: {reason}",
                        anchor.address(),
                        place.unwrap_or_default()
                    );
                    let help = "`body` and `call` of a function that is not inlined always have room";
                    let about = meeting.before.iter().chain(&meeting.after);
                    made.notes.extend(about.map(|&number| (number, Note::doubt(&*message, help))));
                }
            }
        }
        // Only now is it known where islands lie.
        let finished = code.finish();
        for (probe, to) in finished.islands {
            words.probes[probe as usize][2] = to;
        }
        for lost in finished.lost {
            let found =
                here.iter().find(|(anchor, _)| anchor.address() == lost || code.entry_of(*anchor) == lost);
            for &number in found.iter().flat_map(|(_, meeting)| meeting.before.iter().chain(&meeting.after)) {
                let message = format!("no probe fits at {lost:#x}: its code cannot be moved");
                made.notes.push((number, Note::doubt(message, "name another place near it")));
            }
        }
        let path = modules[module].path.as_os_str().as_encoded_bytes();
        let identity = raddle_wire::probe::identity(&modules[module].build_id().unwrap_or_default(), path);
        words.module(identity, &code);
        for (number, place) in ranges.iter().filter(|(_, place)| place.module == module) {
            let bits = match aspects[*number].0.join_point {
                JoinPoint::ReadGlobal => access::READS,
                _ => access::WRITES,
            };
            let (event, _) = events(&mut words, &aspects, &[*number], None, &mut made.notes);
            words.ranges.push([at as u64, place.address, place.address + place.bytes, bits, event]);
            made.probes += 1;
        }
    }
    debug_assert!(
        words.probes.iter().all(|probe| probe[1] <= target::NONE),
        "every probe has a kind of target"
    );
    made.words = words.finish();
    made
}

/// The events of some aspects, one after the other: where they begin, and how many.
fn events(
    words: &mut Words,
    aspects: &[(&Aspect, bool)],
    numbers: &[usize],
    called: Option<&Called<'_>>,
    notes: &mut Vec<(usize, Note)>,
) -> (u64, u64) {
    let mut made = Vec::new();
    for &number in numbers {
        let mut told = Vec::new();
        match values::event(aspects[number], called, words, &mut told) {
            Ok(event) => made.push(event),
            Err(message) => {
                let help = "leave the field out, or say its width, as in `#1:i32`";
                told.push(Note::doubt(message, help));
            }
        }
        for note in told {
            let note = (number, note);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    let at = words.position();
    for event in &made {
        words.push(event);
    }
    (at, made.len() as u64)
}
