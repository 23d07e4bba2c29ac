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

use crate::event::{AtomicKind, Op};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// First line of every schedule.
pub const HEADER: &str = "raddle-schedule";
/// Version that this code reads and writes.
pub const VERSION: u32 = 1;

/// Kind of a visible operation: what a replayer compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepKind {
    Fork,
    Start,
    End,
    Join,
    Detach,
    Cancel,
    Lock,
    ReadLock,
    Unlock,
    /// The mutex is taken back after a condition wait.
    Relock,
    Signal,
    Broadcast,
    /// A condition wait begins; the mutex is released.
    Wait,
    /// A condition wait ends: woken, or with `failed` timed out.
    Wake,
    BarrierEnter,
    BarrierExit,
    SemWait,
    SemPost,
    OnceBegin,
    OnceEnd,
    OncePassed,
    Load,
    Store,
    /// Read-modify-write; with `failed` a compare-exchange that did not store.
    Rmw,
    Fence,
    FutexWake,
    FutexWait,
    Acquire,
    Release,
    Custom,
    /// A plain access, in a schedule that has `visible` lines.
    Read,
    Write,
    /// A system call whose result a demo holds.
    Syscall,
    /// A signal handler runs.
    Handler,
}

impl StepKind {
    /// Every kind with its word in the text format.
    pub const WORDS: [(StepKind, &'static str); 34] = [
        (StepKind::Fork, "fork"),
        (StepKind::Start, "start"),
        (StepKind::End, "end"),
        (StepKind::Join, "join"),
        (StepKind::Detach, "detach"),
        (StepKind::Cancel, "cancel"),
        (StepKind::Lock, "lock"),
        (StepKind::ReadLock, "read-lock"),
        (StepKind::Unlock, "unlock"),
        (StepKind::Relock, "relock"),
        (StepKind::Signal, "signal"),
        (StepKind::Broadcast, "broadcast"),
        (StepKind::Wait, "wait"),
        (StepKind::Wake, "wake"),
        (StepKind::BarrierEnter, "barrier-enter"),
        (StepKind::BarrierExit, "barrier-exit"),
        (StepKind::SemWait, "sem-wait"),
        (StepKind::SemPost, "sem-post"),
        (StepKind::OnceBegin, "once-begin"),
        (StepKind::OnceEnd, "once-end"),
        (StepKind::OncePassed, "once-passed"),
        (StepKind::Load, "load"),
        (StepKind::Store, "store"),
        (StepKind::Rmw, "rmw"),
        (StepKind::Fence, "fence"),
        (StepKind::FutexWake, "futex-wake"),
        (StepKind::FutexWait, "futex-wait"),
        (StepKind::Acquire, "acquire"),
        (StepKind::Release, "release"),
        (StepKind::Custom, "custom"),
        (StepKind::Read, "read"),
        (StepKind::Write, "write"),
        (StepKind::Syscall, "syscall"),
        (StepKind::Handler, "handler"),
    ];

    pub fn word(self) -> &'static str {
        StepKind::WORDS[self as usize].1
    }

    pub fn from_word(word: &str) -> Option<StepKind> {
        StepKind::WORDS.iter().find(|(_, w)| *w == word).map(|&(kind, _)| kind)
    }

    /// The visible operation that an event stands for and whether it failed; `None` for what is not visible: plain
    /// accesses, allocations, requests (the operation itself follows), the unlock inside a condition wait (its
    /// [`StepKind::Wait`] follows), initialisations, signal handlers, yields.
    ///
    /// This is the one definition of *visible* that ordinals in schedules are counted by.
    pub fn of(op: &Op) -> Option<(StepKind, bool)> {
        let done = |kind| Some((kind, false));
        let failed = |kind| Some((kind, true));
        match op {
            Op::Fork { .. } => done(StepKind::Fork),
            Op::Start { .. } => done(StepKind::Start),
            Op::End => done(StepKind::End),
            Op::Join { .. } => done(StepKind::Join),
            Op::JoinFailed { .. } => failed(StepKind::Join),
            Op::Detach { .. } => done(StepKind::Detach),
            Op::Cancel { .. } => done(StepKind::Cancel),
            Op::Lock { flags, .. } if flags.wait => done(StepKind::Relock),
            Op::Lock { .. } => done(StepKind::Lock),
            Op::LockFailed { .. } => failed(StepKind::Lock),
            Op::ReadLock { .. } => done(StepKind::ReadLock),
            Op::ReadLockFailed { .. } => failed(StepKind::ReadLock),
            Op::Unlock { flags, .. } if flags.wait => None,
            Op::Unlock { .. } => done(StepKind::Unlock),
            Op::Signal { .. } => done(StepKind::Signal),
            Op::Broadcast { .. } => done(StepKind::Broadcast),
            Op::WaitBegin { .. } => done(StepKind::Wait),
            Op::Wait { .. } => done(StepKind::Wake),
            Op::WaitFailed { .. } => failed(StepKind::Wake),
            Op::BarrierEnter { .. } => done(StepKind::BarrierEnter),
            Op::BarrierExit { .. } => done(StepKind::BarrierExit),
            Op::SemWait { .. } => done(StepKind::SemWait),
            Op::SemWaitFailed { .. } => failed(StepKind::SemWait),
            Op::SemPost { .. } => done(StepKind::SemPost),
            Op::OnceBegin { .. } => done(StepKind::OnceBegin),
            Op::OnceEnd { .. } => done(StepKind::OnceEnd),
            Op::OncePassed { .. } => done(StepKind::OncePassed),
            Op::Atomic { kind: AtomicKind::Load, .. } => done(StepKind::Load),
            Op::Atomic { kind: AtomicKind::Store, .. } => done(StepKind::Store),
            Op::Atomic { kind: AtomicKind::Rmw, .. } => done(StepKind::Rmw),
            Op::Atomic { kind: AtomicKind::CasFailed, .. } => failed(StepKind::Rmw),
            Op::Fence { .. } => done(StepKind::Fence),
            Op::FutexWake { .. } => done(StepKind::FutexWake),
            Op::FutexWait { .. } => done(StepKind::FutexWait),
            Op::FutexWaitFailed { .. } => failed(StepKind::FutexWait),
            Op::Acquire { .. } => done(StepKind::Acquire),
            Op::Release { .. } => done(StepKind::Release),
            Op::Custom { .. } => done(StepKind::Custom),
            Op::Read { .. }
            | Op::Write { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Request { .. }
            | Op::SemRequest { .. }
            | Op::BarrierInit { .. }
            | Op::SemInit { .. }
            | Op::Init { .. }
            | Op::Destroy { .. }
            | Op::SignalEnter { .. }
            | Op::SignalExit { .. }
            | Op::ProcessFork { .. }
            | Op::ProcessExec { .. }
            | Op::ProcessExit { .. }
            | Op::AtomicBegin { .. }
            | Op::AtomicEnd { .. }
            | Op::BenignRace { .. }
            | Op::Yield
            | Op::Lost { .. } => None,
        }
    }
}

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
        if name.is_empty() {
            return NameIx(0);
        }
        if let Some(&ix) = self.name_index.get(name) {
            return ix;
        }
        self.names.push(name.to_owned());
        let ix = NameIx(u32::try_from(self.names.len()).expect("fewer than 2^32 names"));
        self.name_index.insert(name.to_owned(), ix);
        ix
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
            Some(Expected::Signal(signal)) => text.push_str(&format!("expect signal {signal}\n")),
            Some(Expected::Deadlock) => text.push_str("expect deadlock\n"),
        }
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

/// A schedule could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ScheduleError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub problem: String,
}

/// One word of a line, and the column it starts at.
struct Word {
    column: usize,
    text: String,
    quoted: bool,
}

struct Parser<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    line: usize,
    schedule: Schedule,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { lines: text.lines().enumerate(), line: 0, schedule: Schedule::default() }
    }

    fn schedule(mut self) -> Result<Schedule, ScheduleError> {
        let mut seen_header = false;
        while let Some((number, line)) = self.lines.next() {
            self.line = number + 1;
            let (words, comment) = self.words(line)?;
            if words.is_empty() {
                continue;
            }
            let mut words =
                Words { words: words.into_iter().peekable(), end: line.chars().count() + 1, line: self.line };
            if !seen_header {
                self.header(&mut words)?;
                seen_header = true;
                continue;
            }
            self.entry(&mut words, &comment)?;
        }
        if !seen_header {
            return Err(ScheduleError {
                line: self.line.max(1),
                column: 1,
                problem: format!("empty; a schedule begins with `{HEADER} {VERSION}`"),
            });
        }
        Ok(self.schedule)
    }

    fn header(&mut self, words: &mut Words) -> Result<(), ScheduleError> {
        let word = words.next("the header")?;
        if word.text != HEADER || word.quoted {
            return Err(self
                .error(word.column, format!("not a schedule: it does not begin with `{HEADER} {VERSION}`")));
        }
        let column = words.column();
        let version = words.number("the version")?;
        if version != VERSION {
            return Err(self.error(
                column,
                format!("version {version} is not known; this raddle reads version {VERSION}"),
            ));
        }
        words.finish()
    }

    fn entry(&mut self, words: &mut Words, comment: &str) -> Result<(), ScheduleError> {
        let word = words.next("`about`, `expect`, `visible`, `step`, `block`, `stop` or `unordered`")?;
        let comment = self.schedule.intern(comment);
        match word.text.as_str() {
            "about" => self.schedule.about = words.next("what it is about")?.text,
            "expect" => {
                let word = words.next("`exit`, `signal` or `deadlock`")?;
                self.schedule.expected = Some(match word.text.as_str() {
                    "exit" => Expected::Exit(words.number("the status")?),
                    "signal" => Expected::Signal(words.number("the signal's number")?),
                    "deadlock" => Expected::Deadlock,
                    other => {
                        let problem = format!("`exit`, `signal` or `deadlock` expected, found `{other}`");
                        return Err(self.error(word.column, problem));
                    }
                });
            }
            "visible" => {
                let word = words.next("`all` or `at`")?;
                match (word.text.as_str(), &mut self.schedule.visible) {
                    ("all", visible) => *visible = Visible::All,
                    ("at", visible) => {
                        let site = words.next("a place")?;
                        let mut sites = match std::mem::take(visible) {
                            Visible::Sites(sites) => sites,
                            _ => Vec::new(),
                        };
                        sites.push(self.schedule.intern(&site.text));
                        self.schedule.visible = Visible::Sites(sites);
                    }
                    (other, _) => {
                        return Err(
                            self.error(word.column, format!("`all` or `at` expected, found `{other}`"))
                        );
                    }
                }
            }
            "step" => {
                let (thread, ordinal, kind, object) = self.operation(words)?;
                let failed = words.take("->");
                if failed {
                    words.keyword("failed")?;
                }
                self.schedule.steps.push(Step { thread, ordinal, kind, failed, object, comment });
            }
            "block" => {
                let (thread, ordinal, kind, object) = self.operation(words)?;
                self.schedule.blocks.push(Block { thread, ordinal, kind, object, comment });
            }
            "stop" => {
                let thread = self.thread(words)?;
                words.keyword("after")?;
                let after = words.number("how many visible operations come first")?;
                words.keyword("before")?;
                words.keyword("access")?;
                let column = words.column();
                let occurrence = words.number("which access")?;
                if occurrence == 0 {
                    return Err(self.error(column, "accesses are counted from 1".into()));
                }
                let word = words.next("`at` or `of`")?;
                let name = words.next("a place")?;
                let name_ix = self.schedule.intern(&name.text);
                let place = match word.text.as_str() {
                    "at" => StopPlace::Code(name_ix),
                    "of" => StopPlace::Object(name_ix),
                    other => {
                        return Err(
                            self.error(word.column, format!("`at` or `of` expected, found `{other}`"))
                        );
                    }
                };
                self.schedule.stops.push(Stop { thread, after, occurrence, place, comment });
            }
            "unordered" => {
                let first = words.next("a place in the code")?.text;
                words.keyword("and")?;
                let second = words.next("a place in the code")?.text;
                let places = [self.schedule.intern(&first), self.schedule.intern(&second)];
                self.schedule.unordered.push(Unordered { places, comment });
            }
            other => {
                let problem = format!(
                    "`about`, `expect`, `visible`, `step`, `block`, `stop` or `unordered` expected, found `{other}`"
                );
                return Err(self.error(word.column, problem));
            }
        }
        words.finish()
    }

    fn thread(&mut self, words: &mut Words) -> Result<NameIx, ScheduleError> {
        let word = words.next("a thread name")?;
        if word.text.is_empty() {
            return Err(self.error(word.column, "a thread name cannot be empty".into()));
        }
        Ok(self.schedule.intern(&word.text))
    }

    fn operation(&mut self, words: &mut Words) -> Result<(NameIx, u32, StepKind, NameIx), ScheduleError> {
        let thread = self.thread(words)?;
        let column = words.column();
        let ordinal = words.number("the number of the operation")?;
        if ordinal == 0 {
            return Err(self.error(column, "operations are counted from 1".into()));
        }
        let word = words.next("an operation")?;
        let Some(kind) = StepKind::from_word(&word.text) else {
            return Err(self.error(word.column, format!("`{}` is no operation", word.text)));
        };
        let object = match words.words.next_if(|word| word.quoted || word.text != "->") {
            Some(word) => self.schedule.intern(&word.text),
            None => NameIx(0),
        };
        Ok((thread, ordinal, kind, object))
    }

    /// Splits a line into its words and its comment.
    fn words(&self, line: &str) -> Result<(Vec<Word>, String), ScheduleError> {
        let mut words = Vec::new();
        let mut chars = line.chars().enumerate().peekable();
        while let Some(&(at, c)) = chars.peek() {
            let column = at + 1;
            if c.is_whitespace() {
                chars.next();
            } else if c == '#' {
                let comment: String = chars.skip(1).map(|(_, c)| c).collect();
                return Ok((words, comment.trim().to_owned()));
            } else if c == '"' {
                chars.next();
                let text = self.quoted(&mut chars, column)?;
                words.push(Word { column, text, quoted: true });
            } else {
                let mut text = String::new();
                while let Some((at, c)) = chars.next_if(|&(_, c)| !c.is_whitespace()) {
                    if matches!(c, '"' | '\\' | '#') {
                        return Err(self.error(
                            at + 1,
                            format!("`{c}` inside a word; put the word between quotation marks"),
                        ));
                    }
                    text.push(c);
                }
                words.push(Word { column, text, quoted: false });
            }
        }
        Ok((words, String::new()))
    }

    fn quoted(
        &self,
        chars: &mut impl Iterator<Item = (usize, char)>,
        start: usize,
    ) -> Result<String, ScheduleError> {
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Ok(text),
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'u')) => {
                        let digits: String =
                            chars.by_ref().map(|(_, c)| c).take_while(|&c| c != '}').collect();
                        let value =
                            digits.strip_prefix('{').and_then(|digits| u32::from_str_radix(digits, 16).ok());
                        let Some(c) = value.and_then(char::from_u32) else {
                            return Err(self.error(
                                at + 1,
                                "not a character: `\\u{…}` takes a hexadecimal code point".into(),
                            ));
                        };
                        text.push(c);
                    }
                    _ => {
                        return Err(
                            self.error(at + 1, "unknown escape; known are \\\" \\\\ \\n \\t \\u{…}".into())
                        );
                    }
                },
                c => text.push(c),
            }
        }
        Err(self.error(start, "the quotation mark is never closed".into()))
    }

    fn error(&self, column: usize, problem: String) -> ScheduleError {
        ScheduleError { line: self.line, column, problem }
    }
}

/// The words of one line, taken one by one.
struct Words {
    words: std::iter::Peekable<std::vec::IntoIter<Word>>,
    /// Column behind the line, for what is missing.
    end: usize,
    line: usize,
}

impl Words {
    fn column(&mut self) -> usize {
        self.words.peek().map_or(self.end, |word| word.column)
    }

    fn next(&mut self, expected: &str) -> Result<Word, ScheduleError> {
        self.words.next().ok_or_else(|| ScheduleError {
            line: self.line,
            column: self.end,
            problem: format!("{expected} is missing"),
        })
    }

    fn take(&mut self, keyword: &str) -> bool {
        self.words.next_if(|word| !word.quoted && word.text == keyword).is_some()
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), ScheduleError> {
        let column = self.column();
        let word = self.next(&format!("`{keyword}`"))?;
        if word.text == keyword && !word.quoted {
            return Ok(());
        }
        let problem = format!("`{keyword}` expected, found `{}`", word.text);
        Err(ScheduleError { line: self.line, column, problem })
    }

    fn number(&mut self, what: &str) -> Result<u32, ScheduleError> {
        let word = self.next(what)?;
        word.text.parse().map_err(|_| ScheduleError {
            line: self.line,
            column: word.column,
            problem: format!("{what} must be a number, found `{}`", word.text),
        })
    }

    fn finish(&mut self) -> Result<(), ScheduleError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(ScheduleError {
                line: self.line,
                column: word.column,
                problem: format!("nothing expected here, found `{}`", word.text),
            }),
        }
    }
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
raddle-schedule 1
about \"data-race 5f3c0a11\"
expect signal 6
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
        check("", "line 1, column 1: empty; a schedule begins with `raddle-schedule 1`");
        check("hello", "line 1, column 1: not a schedule: it does not begin with `raddle-schedule 1`");
        check("raddle-schedule 9", "line 1, column 17: version 9 is not known; this raddle reads version 1");
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
