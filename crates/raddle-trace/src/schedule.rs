//! Schedules: the order in which threads take their visible operations, as text.
//!
//! A schedule is what a prediction hands to a replay, what an exploration keeps of an interesting run, and what a
//! person puts into a bug report. RaceQuest (§4.6) uses the checker's counterexample for it; this is that sequence with
//! a version, stable thread names and a way to say where the two halves of a race are. `docs/schedule-format.md` is the
//! description for users.
//!
//! # What is enforced
//!
//! A step says: *thread T performs its next visible operation, which is its n-th and must be of kind K*. Nothing in it
//! is an address, so a schedule survives address space randomisation, another machine and most recompilations. The name
//! of the object and the code location are information for people; a replayer may check them, it must not need them.
//! A step with `-> failed` is an unsuccessful try or timed operation whose result is mimicked (figure 4.15), or, for
//! `rmw`, a compare-exchange that has to fail.
//!
//! After the last step the program is on its own, except that `stop` lines park threads before an access (so that both
//! threads of a race stand before their accesses at the same time) and `block` lines say which operations are expected
//! never to complete (a deadlock).
//!
//! # Deviations from the paper
//!
//! Memory events are no steps (as in §5.4), but the paper drops them altogether; here the last two become stop points.
//! The two halves of a condition wait are two steps (`wait`, `wake`) and the mutex is taken back in a third (`relock`),
//! because other threads run between them.

use rustc_hash::FxHashMap;
use std::fmt::Write as _;

pub mod head;
mod parser;
mod step_kind;

pub use head::{Head, Input, RunOptions};
use parser::Parser;
pub use parser::ScheduleError;
pub use step_kind::{StepKind, step_of};

/// First line of every schedule.
pub const HEADER: &str = "raddle-schedule";
/// Version that this code writes.
pub const VERSION: u32 = 2;
/// The oldest version that it reads. Version 1 has no head: a replay has to be told the program.
pub const VERSION_MIN: u32 = 1;

/// A text of a schedule (thread name, object name, comment), interned: schedules of long runs have many steps and few
/// texts. 0 is the empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameIx(pub u32);

/// One thread takes its next visible operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Spawn path.
    pub thread: NameIx,
    /// The how-manieth visible operation of its thread this is, from 1.
    pub ordinal: u32,
    pub kind: StepKind,
    /// The operation does not succeed; the result is mimicked.
    pub failed: bool,
    /// Information for people; empty if there is no object.
    pub object: NameIx,
    /// Information for people: usually the code location.
    pub comment: NameIx,
}

/// What a stop point counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPlace {
    /// Accesses made by this place in the code: `module+0x1234` or `file:line`.
    Code(NameIx),
    /// Accesses that touch this memory object.
    Object(NameIx),
}

/// A thread is parked before an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    pub thread: NameIx,
    /// Counting begins when the thread has completed this many visible operations.
    pub after: u32,
    /// Park before the n-th access that matches, from 1.
    pub occurrence: u32,
    pub place: StopPlace,
    pub comment: NameIx,
}

/// An operation that is expected never to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub thread: NameIx,
    /// Which visible operation of the thread.
    pub ordinal: u32,
    pub kind: StepKind,
    pub object: NameIx,
    pub comment: NameIx,
}

/// Two places in the code whose accesses nothing orders in a run along the schedule, by the rules of C and C++11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unordered {
    pub places: [NameIx; 2],
    pub comment: NameIx,
}

/// How a run along the schedule is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Exit(u32),
    Signal(u32),
    Deadlock,
}

/// Which plain accesses are visible operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Visible {
    /// None: only synchronisation.
    #[default]
    Sync,
    /// Those made at these places in the code: `module+0x1234`.
    Sites(Vec<NameIx>),
    All,
}

/// An order of visible operations, and what is to be seen at its end.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// What it shows: `data-race 5f3c0a11`, or nothing.
    pub about: String,
    pub steps: Vec<Step>,
    pub stops: Vec<Stop>,
    pub blocks: Vec<Block>,
    pub unordered: Vec<Unordered>,
    pub visible: Visible,
    pub expected: Option<Expected>,
    /// Where the process is ended by the expected signal: the failed assertion, or the innermost calls of the user's own code.
    /// Empty: anywhere.
    pub crash_place: String,
    /// What a replay needs beside the steps.
    pub head: Head,
    names: Vec<String>,
    name_index: FxHashMap<String, NameIx>,
}

impl PartialEq for Schedule {
    /// Equal if they say the same, however their texts are numbered.
    fn eq(&self, other: &Schedule) -> bool {
        self.to_text() == other.to_text()
    }
}

impl Schedule {
    pub fn new(about: &str) -> Schedule {
        Schedule { about: about.to_owned(), ..Schedule::default() }
    }

    pub fn intern(&mut self, name: &str) -> NameIx {
        intern(&mut self.names, &mut self.name_index, name)
    }

    pub fn name(&self, ix: NameIx) -> &str {
        match ix.0.checked_sub(1) {
            Some(at) => &self.names[at as usize],
            None => "",
        }
    }

    /// Names of all threads that take part, in order of appearance.
    pub fn threads(&self) -> Vec<&str> {
        let mut seen = Vec::new();
        let all = self.steps.iter().map(|step| step.thread);
        let all = all.chain(self.stops.iter().map(|stop| stop.thread));
        for thread in all.chain(self.blocks.iter().map(|block| block.thread)) {
            if !seen.contains(&thread) {
                seen.push(thread);
            }
        }
        seen.into_iter().map(|ix| self.name(ix)).collect()
    }

    /// Puts source locations into the comments: `place` knows what a place in the code (`module+0x1234`) is called in the
    /// source. Comments are for people; nothing reads them.
    pub fn annotate(&mut self, mut place: impl FnMut(&str) -> Option<String>) {
        let mut known: FxHashMap<NameIx, NameIx> = FxHashMap::default();
        let comments = self.steps.iter().map(|step| step.comment);
        let comments: Vec<NameIx> = comments.chain(self.blocks.iter().map(|block| block.comment)).collect();
        for comment in comments {
            if let std::collections::hash_map::Entry::Vacant(entry) = known.entry(comment) {
                let found =
                    place(&self.names.get((comment.0 as usize).wrapping_sub(1)).cloned().unwrap_or_default());
                let found =
                    found.map_or(comment, |text| intern(&mut self.names, &mut self.name_index, &text));
                entry.insert(found);
            }
        }
        for step in &mut self.steps {
            step.comment = known[&step.comment];
        }
        for block in &mut self.blocks {
            block.comment = known[&block.comment];
        }
        for at in 0..self.stops.len() {
            let stop = self.stops[at];
            if let StopPlace::Code(code) = stop.place
                && let Some(text) = place(self.name(code))
            {
                let comment = self.name(stop.comment);
                let text = if comment.is_empty() { text } else { format!("{text}, {comment}") };
                self.stops[at].comment = self.intern(&text);
            }
        }
    }

    /// How often the running thread changes from one step to the next.
    pub fn context_switches(&self) -> usize {
        self.steps.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count()
    }

    /// The text format. [`Schedule::parse`] reads it back.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER} {VERSION}\n");
        if !self.about.is_empty() {
            text.push_str("about ");
            quote(&mut text, &self.about);
            text.push('\n');
        }
        match self.expected {
            None => {}
            Some(Expected::Exit(status)) => text.push_str(&format!("expect exit {status}\n")),
            Some(Expected::Signal(signal)) => {
                let _ = write!(text, "expect signal {signal}");
                if !self.crash_place.is_empty() {
                    text.push_str(" at ");
                    quote(&mut text, &self.crash_place);
                }
                text.push('\n');
            }
            Some(Expected::Deadlock) => text.push_str("expect deadlock\n"),
        }
        self.head.write(&mut text);
        match &self.visible {
            Visible::Sync => {}
            Visible::All => text.push_str("visible all\n"),
            Visible::Sites(sites) => {
                for &site in sites {
                    text.push_str("visible at ");
                    quote(&mut text, self.name(site));
                    text.push('\n');
                }
            }
        }
        for step in &self.steps {
            text.push_str("step ");
            self.operation(&mut text, step.thread, step.ordinal, step.kind, step.object);
            if step.failed {
                text.push_str(" -> failed");
            }
            self.end_line(&mut text, step.comment);
        }
        for block in &self.blocks {
            text.push_str("block ");
            self.operation(&mut text, block.thread, block.ordinal, block.kind, block.object);
            self.end_line(&mut text, block.comment);
        }
        for stop in &self.stops {
            text.push_str("stop ");
            quote(&mut text, self.name(stop.thread));
            let (word, place) = match stop.place {
                StopPlace::Code(place) => ("at", place),
                StopPlace::Object(place) => ("of", place),
            };
            let _ = write!(text, " after {} before access {} {word} ", stop.after, stop.occurrence);
            quote(&mut text, self.name(place));
            self.end_line(&mut text, stop.comment);
        }
        for unordered in &self.unordered {
            text.push_str("unordered ");
            quote(&mut text, self.name(unordered.places[0]));
            text.push_str(" and ");
            quote(&mut text, self.name(unordered.places[1]));
            self.end_line(&mut text, unordered.comment);
        }
        text
    }

    fn operation(&self, text: &mut String, thread: NameIx, ordinal: u32, kind: StepKind, object: NameIx) {
        quote(text, self.name(thread));
        let _ = write!(text, " {ordinal} {}", kind.word());
        if object != NameIx(0) {
            text.push(' ');
            quote(text, self.name(object));
        }
    }

    fn end_line(&self, text: &mut String, comment: NameIx) {
        if comment != NameIx(0) {
            text.push_str("  # ");
            text.push_str(self.name(comment));
        }
        text.push('\n');
    }

    /// Reads the text format. Never panics; the error names line and column.
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        Parser::new(text).schedule()
    }
}

fn intern(names: &mut Vec<String>, index: &mut FxHashMap<String, NameIx>, name: &str) -> NameIx {
    if name.is_empty() {
        return NameIx(0);
    }
    if let Some(&ix) = index.get(name) {
        return ix;
    }
    names.push(name.to_owned());
    let ix = NameIx(u32::try_from(names.len()).expect("fewer than 2^32 names"));
    index.insert(name.to_owned(), ix);
    ix
}

/// Writes a word as it is if that is unambiguous, else between quotation marks.
fn quote(text: &mut String, word: &str) {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '#' | '\\');
    if !word.is_empty() && word != "->" && word.chars().all(plain) {
        text.push_str(word);
        return;
    }
    text.push('"');
    for c in word.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                let _ = write!(text, "\\u{{{:x}}}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Rng;

    /// How many cases a property test tries; `RADDLE_TEST_CASES` says otherwise.
    fn cases(default: u64) -> u64 {
        std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
    }

    fn example() -> Schedule {
        let mut schedule = Schedule::new("data-race 5f3c0a11");
        let main = schedule.intern("1");
        let child = schedule.intern("1.1");
        let mutex = schedule.intern("bank+0x4040");
        let line = schedule.intern("bank.c:12");
        let none = NameIx(0);
        let step = |thread, ordinal, kind, failed, object, comment| Step {
            thread,
            ordinal,
            kind,
            failed,
            object,
            comment,
        };
        schedule.steps.push(step(main, 1, StepKind::Fork, false, child, line));
        schedule.steps.push(step(child, 1, StepKind::Start, false, none, none));
        schedule.steps.push(step(child, 2, StepKind::Lock, true, mutex, line));
        schedule.blocks.push(Block {
            thread: main,
            ordinal: 2,
            kind: StepKind::Join,
            object: child,
            comment: none,
        });
        schedule.expected = Some(Expected::Signal(6));
        schedule.crash_place = "bank.c:20 transfer".into();
        schedule.head.options.stable_memory = true;
        let site = schedule.intern("bank+0x11e0");
        schedule.visible = Visible::Sites(vec![site]);
        let place = StopPlace::Code(schedule.intern("bank+0x11f4"));
        schedule.stops.push(Stop { thread: child, after: 2, occurrence: 1, place, comment: line });
        let places = [schedule.intern("bank+0x11f4"), schedule.intern("bank+0x1203")];
        schedule.unordered.push(Unordered { places, comment: none });
        schedule
    }

    #[test]
    fn text_is_as_documented() {
        let expected = "\
raddle-schedule 2
about \"data-race 5f3c0a11\"
expect signal 6 at \"bank.c:20 transfer\"
run stable-memory
visible at bank+0x11e0
step 1 1 fork 1.1  # bank.c:12
step 1.1 1 start
step 1.1 2 lock bank+0x4040 -> failed  # bank.c:12
block 1 2 join 1.1
stop 1.1 after 2 before access 1 at bank+0x11f4  # bank.c:12
unordered bank+0x11f4 and bank+0x1203
";
        assert_eq!(example().to_text(), expected);
        assert_eq!(Schedule::parse(expected).unwrap(), example());
    }

    #[test]
    fn every_kind_has_its_own_word_at_its_own_index() {
        for (index, (kind, word)) in StepKind::WORDS.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(StepKind::from_word(word), Some(kind));
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        let check =
            |text: &str, expected: &str| assert_eq!(Schedule::parse(text).unwrap_err().to_string(), expected);
        check("", "line 1, column 1: empty; a schedule begins with `raddle-schedule 2`");
        check("hello", "line 1, column 1: not a schedule: it does not begin with `raddle-schedule 2`");
        check(
            "raddle-schedule 9",
            "line 1, column 17: version 9 is not known; this raddle reads versions 1 to 2",
        );
        check("raddle-schedule 1\nstep 1 1 fly", "line 2, column 10: `fly` is no operation");
        check("raddle-schedule 1\nstep 1 0 lock", "line 2, column 8: operations are counted from 1");
        check(
            "raddle-schedule 1\nstep 1 x lock",
            "line 2, column 8: the number of the operation must be a number, found `x`",
        );
        check("raddle-schedule 1\nstep 1 1", "line 2, column 9: an operation is missing");
        check(
            "raddle-schedule 1\n\nstop 1 after 3 before access 1 in x",
            "line 3, column 32: `at` or `of` expected, found `in`",
        );
        check("raddle-schedule 1\nstep \"1", "line 2, column 6: the quotation mark is never closed");
        check(
            "raddle-schedule 1\nstep 1 1 lock m -> busy",
            "line 2, column 20: `failed` expected, found `busy`",
        );
        check("raddle-schedule 1\nstep 1 1 lock m n", "line 2, column 17: nothing expected here, found `n`");
    }

    /// Any schedule survives writing and reading, whatever its names are made of.
    #[test]
    fn writing_and_reading_is_the_identity() {
        for case in 0..cases(300) {
            let mut seed = Rng::new(case);
            let mut schedule = Schedule::new(&random_name(&mut seed));
            for _ in 0..seed.below(12) {
                let thread = random_name(&mut seed) + "1";
                let (thread, object) = (schedule.intern(&thread), schedule.intern(&random_name(&mut seed)));
                let comment = random_name(&mut seed).replace(char::is_control, " ");
                let comment = schedule.intern(comment.trim());
                let kind = StepKind::WORDS[seed.below(30) as usize].0;
                let ordinal = 1 + seed.below(1000);
                schedule.steps.push(Step {
                    thread,
                    ordinal,
                    kind,
                    failed: seed.below(2) == 0,
                    object,
                    comment,
                });
                schedule.blocks.push(Block { thread, ordinal, kind, object, comment });
                let place = schedule.intern("p q");
                let place =
                    if seed.below(2) == 0 { StopPlace::Code(place) } else { StopPlace::Object(place) };
                schedule.stops.push(Stop { thread, after: ordinal, occurrence: 1, place, comment });
                schedule.unordered.push(Unordered { places: [thread, object], comment });
            }
            let text = schedule.to_text();
            let again = Schedule::parse(&text).unwrap_or_else(|error| panic!("seed {case}: {error}\n{text}"));
            assert_eq!(again, schedule, "seed {case}");
            assert_eq!(again.steps.len(), schedule.steps.len(), "seed {case}");
        }
    }

    fn random_name(seed: &mut Rng) -> String {
        let letters = ['a', '1', '.', ' ', '"', '\\', '#', '\n', '\u{85}', 'é', '-', '>', '\t'];
        (0..seed.below(6)).map(|_| letters[seed.below(letters.len() as u32) as usize]).collect()
    }

    /// The reader is total: mutated schedules give a schedule or an error, and what it accepts it can write and read.
    #[test]
    fn mutated_schedules_never_panic() {
        let original = example().to_text();
        for case in 0..cases(3000) {
            let mut seed = Rng::new(case);
            let mut bytes = original.clone().into_bytes();
            for _ in 0..1 + seed.below(6) {
                if bytes.is_empty() {
                    break;
                }
                let at = seed.below(bytes.len() as u32) as usize;
                match seed.below(4) {
                    0 => bytes[at] = seed.below(256) as u8,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, b"\"\\#\n -1"[seed.below(7) as usize]),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            if let Ok(schedule) = Schedule::parse(&String::from_utf8_lossy(&bytes)) {
                assert_eq!(Schedule::parse(&schedule.to_text()).as_ref(), Ok(&schedule), "seed {case}");
            }
        }
    }
}
