//! The model as CSPM text: RaceQuest's PROGRAM (§4.4) with a deadlock check (§4.5.1) or a race check (§5.3.1).
//!
//! What the solver decides on positions, these files ask a refinement checker, in the words of the paper: a THREAD process
//! per thread, INTER, the processes of SYNC, and `PROGRAM = INTER [| sync_events |] SYNC`; for a window of the trace,
//! `PROGRAM = (PREFIX ; INTER) [| sync_events |] SYNC` (§4.7.3). `raddle csp check` on such a file gives the verdict that
//! the solver gives, which is tested on random traces.
//!
//! # Deviations from the paper
//!
//! They follow the table in [`crate::program`].
//!
//! * A thread that would leave the observed path performs `stray`, and so does one whose future is not known (it ends
//!   with the window, or with a trace that was cut). The deadlock check takes `stray` like `endthreads`: not a deadlock.
//! * SIGNAL knows who has begun to wait; a signal that comes first is lost.
//! * BARRIER knows who is inside and who may leave, so that it can be entered again while others leave.
//! * Atomics and one-time initialisers have processes of their own.
//! * Steps that order nothing (failed operations, ends that nobody joins) are left out: they would only multiply states.
//! * Ending a wait's beginning and releasing its mutex is one step of the thread; here it is `waitbegin` and then `unlock`,
//!   which allows nothing more, because the thread waits already when it still has the mutex.

mod objects;

use crate::ids::{InstanceIx, LockIx, OnceIx, Pos, ValueIx};
use crate::intervals::{Interval, IntervalIx};
use crate::names::Names;
use crate::program::{AccessKind, Action, Program, Step};
use raddle_trace::model::EventIx;
use raddle_trace::{MemoryTrace, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A part of the observed order: steps `start .. end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub start: usize,
    pub end: usize,
}

/// What a file asks.
#[derive(Clone, Copy, Debug)]
pub enum Question<'i> {
    Deadlock,
    Race(IntervalIx, &'i Interval),
}

/// Events in one process definition; longer sequences go on in another, so that nothing nests too deeply.
const CHAIN_MAX: usize = 40;

/// Writes the file.
pub fn emit(
    trace: &MemoryTrace,
    program: &Program,
    names: &Names,
    question: Question<'_>,
    window: Option<Window>,
) -> String {
    let mut writer = Writer::new(trace, program, names);
    writer.number_values();
    writer.number_orders();
    writer.file(question, window)
}

/// The model without a question, in parts: for properties of the user's own.
pub struct Model {
    /// Types and channels.
    pub declarations: String,
    /// The threads, what synchronisation allows, and `PROGRAM`.
    pub processes: String,
    /// The events that each step performs, by thread.
    pub steps: Vec<Vec<Vec<String>>>,
    /// Channels of synchronisation that have a meaning to people.
    pub channels: Vec<&'static str>,
}

/// Channels that only tie steps together, or say how a thread leaves the observed path.
const ARTIFICIAL: &[&str] =
    &["before", "after", "unmet", "late", "missed", "rdmissed", "once_early", "other"];

/// Makes the model. `spoken`: what is said for events of the program's own, which no process of SYNC shares. `mentioned`: channels
/// that are declared whether they occur or not.
pub fn model(
    trace: &MemoryTrace,
    program: &Program,
    names: &Names,
    spoken: &FxHashMap<EventIx, String>,
    mentioned: &[&'static str],
) -> Model {
    let mut writer = Writer::new(trace, program, names);
    writer.spoken = Some(spoken);
    writer.number_values();
    writer.number_orders();
    let steps = program
        .thread_ids()
        .map(|thread| {
            let positions = 0..program.steps(thread).len() as Pos;
            positions
                .map(|pos| writer.events(thread, pos).into_iter().map(|event| event.text).collect())
                .collect()
        })
        .collect();
    let mut processes = String::new();
    for thread in program.thread_ids() {
        let limit = program.steps(thread).len() as Pos;
        writer.thread(&mut processes, thread, 0, limit, Question::Deadlock);
    }
    writer.composition(false);
    processes.push_str(&std::mem::take(&mut writer.text));
    writer.channels.extend(mentioned);
    writer.declarations(Question::Deadlock);
    let channels = writer.channels.iter().copied().filter(|channel| !ARTIFICIAL.contains(channel)).collect();
    Model { declarations: std::mem::take(&mut writer.text), processes, steps, channels }
}

/// Objects that the events of the file mention.
#[derive(Default)]
struct Used {
    locks: BTreeSet<u32>,
    instances: BTreeSet<u32>,
    barriers: BTreeSet<u32>,
    semaphores: BTreeSet<u32>,
    onces: BTreeSet<u32>,
    registers: BTreeSet<u32>,
    orders: BTreeSet<usize>,
    forked: BTreeSet<u32>,
    joined: BTreeSet<u32>,
}

struct Writer<'a> {
    trace: &'a MemoryTrace,
    program: &'a Program,
    names: &'a Names,
    text: String,
    /// Channels of synchronisation that occur.
    channels: BTreeSet<&'static str>,
    /// Orders that no other process expresses: (thread, step) that comes after -> numbers.
    orders: FxHashMap<(u32, Pos), Vec<usize>>,
    /// Steps that such an order begins at, and its number.
    sources: FxHashSet<(u32, Pos, usize)>,
    /// Values of registers, numbered per register.
    values: FxHashMap<ValueIx, u32>,
    used: Used,
    spoken: Option<&'a FxHashMap<EventIx, String>>,
}

/// One event of a thread's process, and what the thread does instead if it cannot.
struct Event {
    text: String,
    /// Performed instead, before `stray`.
    otherwise: Option<String>,
}

impl Event {
    fn new(text: String) -> Event {
        Event { text, otherwise: None }
    }
}

impl<'a> Writer<'a> {
    fn new(trace: &'a MemoryTrace, program: &'a Program, names: &'a Names) -> Writer<'a> {
        Writer {
            trace,
            program,
            names,
            text: String::new(),
            channels: BTreeSet::new(),
            orders: FxHashMap::default(),
            sources: FxHashSet::default(),
            values: FxHashMap::default(),
            used: Used::default(),
            spoken: None,
        }
    }
}

impl Writer<'_> {
    fn number_values(&mut self) {
        for register in &self.program.registers {
            let mut count = 0;
            let written = register.writes.iter().map(|&(_, _, value)| value);
            for value in std::iter::once(register.start).chain(written) {
                if value != ValueIx::NONE && !self.values.contains_key(&value) {
                    self.values.insert(value, count);
                    count += 1;
                }
            }
        }
        // Values that are read but that nobody writes: an odd trace. They get a number of their own.
        let reads = self.program.threads.iter().flat_map(|thread| &thread.steps);
        for step in reads {
            if let Action::Atomic { expects, .. } = step.action
                && expects != ValueIx::NONE
            {
                let next = self.values.len() as u32;
                self.values.entry(expects).or_insert(next);
            }
        }
    }

    fn value(&self, value: ValueIx) -> u32 {
        // The value that a register has before anybody knows it.
        self.values.get(&value).copied().unwrap_or_else(|| self.unknown_value())
    }

    fn unknown_value(&self) -> u32 {
        self.values.values().copied().max().map_or(0, |max| max + 1)
    }

    /// Forks, joins, signals, initialisers and values have processes; what else a step needs becomes an ORDER process.
    fn number_orders(&mut self) {
        let mut next = 0;
        for thread in self.program.thread_ids() {
            for (pos, step) in self.program.steps(thread).iter().enumerate() {
                for need in self.program.needs_of(step) {
                    let expressed = match step.action {
                        Action::Wait { .. } | Action::Atomic { .. } | Action::OncePassed { .. } => true,
                        Action::Free
                        | Action::Lock { .. }
                        | Action::Unlock { .. }
                        | Action::Signal { .. }
                        | Action::WaitBegin { .. }
                        | Action::BarrierEnter { .. }
                        | Action::BarrierExit { .. }
                        | Action::SemWait { .. }
                        | Action::SemPost { .. } => pos == 0 || self.is_join(step),
                    };
                    if !expressed {
                        self.orders.entry((thread.0, pos as Pos)).or_default().push(next);
                        self.sources.insert((need.thread.0, need.pos - 1, next));
                        next += 1;
                    }
                }
            }
        }
    }

    fn is_join(&self, step: &Step) -> bool {
        matches!(self.trace.events[step.event.index()].op, raddle_trace::Op::Join { .. }) && step.waits
    }

    /// Events of one step, in order.
    fn events(&mut self, thread: ThreadIx, pos: Pos) -> Vec<Event> {
        let program = self.program;
        let step = &program.steps(thread)[pos as usize];
        let t = thread.0;
        let mut events = Vec::new();
        let orders = self.orders.get(&(t, pos)).cloned().unwrap_or_default();
        for order in orders {
            self.used.orders.insert(order);
            self.channels.insert("after");
            let otherwise = (!step.waits).then(|| {
                self.channels.insert("unmet");
                format!("unmet.{order}")
            });
            events.push(Event { text: format!("after.{order}"), otherwise });
        }
        if pos == 0 && !program.needs_of(step).is_empty() {
            self.channels.insert("start");
            self.used.forked.insert(t);
            events.push(Event::new(format!("start.{t}")));
        }
        self.own_events(thread, pos, step, &mut events);
        let mut sources: Vec<usize> =
            self.sources.iter().filter(|(u, p, _)| (*u, *p) == (t, pos)).map(|(.., order)| *order).collect();
        sources.sort_unstable();
        for order in sources {
            self.used.orders.insert(order);
            self.channels.insert("before");
            events.push(Event::new(format!("before.{order}")));
        }
        events
    }

    fn own_events(&mut self, thread: ThreadIx, pos: Pos, step: &Step, events: &mut Vec<Event>) {
        let program = self.program;
        let t = thread.0;
        let event = |writer: &mut Self, channel: &'static str, rest: String| {
            writer.channels.insert(channel);
            Event::new(format!("{channel}.{t}.{rest}"))
        };
        match step.action {
            Action::Free => {
                self.thread_events(thread, pos, step, events);
                // Steps that the trace does not have stand for the event nearest to them.
                let is_own = pos == 0 || program.steps(thread)[pos as usize - 1].event != step.event;
                let text = self.spoken.and_then(|spoken| spoken.get(&step.event)).filter(|_| is_own);
                events.extend(text.map(|text| Event::new(text.clone())));
            }
            Action::Lock { lock, shared, tries } => {
                self.used.locks.insert(lock.0);
                let (channel, missed) = match (shared, tries) {
                    (false, false) => ("lock", None),
                    (true, false) => ("rdlock", None),
                    (false, true) => ("trylock", Some("missed")),
                    (true, true) => ("tryrdlock", Some("rdmissed")),
                };
                let mut entry = event(self, channel, lock.0.to_string());
                entry.otherwise = missed.map(|missed| {
                    self.channels.insert(missed);
                    format!("{missed}.{t}.{}", lock.0)
                });
                events.push(entry);
            }
            Action::Unlock { lock, .. } => {
                self.used.locks.insert(lock.0);
                events.push(event(self, "unlock", lock.0.to_string()));
            }
            Action::Signal { instance } => {
                self.used.instances.insert(instance.0);
                let broadcast =
                    matches!(self.trace.events[step.event.index()].op, raddle_trace::Op::Broadcast { .. });
                let channel = if broadcast { "broadcast" } else { "signal" };
                events.push(event(self, channel, instance.0.to_string()));
            }
            Action::WaitBegin { lock, instance, guarded } => {
                if instance != InstanceIx::NONE {
                    self.used.instances.insert(instance.0);
                    let channel = if guarded { "waitbegin" } else { "waitblind" };
                    let mut entry = event(self, channel, instance.0.to_string());
                    if guarded {
                        self.channels.insert("late");
                        entry.otherwise = Some(format!("late.{t}.{}", instance.0));
                    }
                    events.push(entry);
                }
                if lock != LockIx::NONE {
                    self.used.locks.insert(lock.0);
                    events.push(event(self, "unlock", lock.0.to_string()));
                }
            }
            Action::Wait { instance } => {
                self.used.instances.insert(instance.0);
                events.push(event(self, "wait", instance.0.to_string()));
            }
            Action::BarrierEnter { barrier } => {
                self.used.barriers.insert(barrier.0);
                events.push(event(self, "barrier_enter", barrier.0.to_string()));
            }
            Action::BarrierExit { barrier } => {
                self.used.barriers.insert(barrier.0);
                events.push(event(self, "barrier_exit", barrier.0.to_string()));
            }
            Action::SemWait { sem } => {
                self.used.semaphores.insert(sem.0);
                events.push(event(self, "sem_wait", sem.0.to_string()));
            }
            Action::SemPost { sem } => {
                self.used.semaphores.insert(sem.0);
                events.push(event(self, "sem_post", sem.0.to_string()));
            }
            Action::OncePassed { once } => {
                self.used.onces.insert(once.0);
                let mut entry = event(self, "once_passed", once.0.to_string());
                self.channels.insert("once_early");
                entry.otherwise = Some(format!("once_early.{t}.{}", once.0));
                events.push(entry);
            }
            Action::Atomic { register, expects, sets } => {
                self.used.registers.insert(register.0);
                let known = |value| value != ValueIx::NONE;
                let (read, written) = (self.value(expects), self.value(sets));
                let mut entry = match (known(expects), known(sets)) {
                    (true, true) => event(self, "rmw", format!("{}.{read}.{written}", register.0)),
                    (true, false) => event(self, "load", format!("{}.{read}", register.0)),
                    (false, true) => event(self, "store", format!("{}.{written}", register.0)),
                    (false, false) => return,
                };
                if known(expects) {
                    self.channels.insert("other");
                    entry.otherwise = Some(format!("other.{t}.{}.{read}", register.0));
                }
                events.push(entry);
            }
        }
        if let Some(once) = program.onces.iter().position(|once| once.thread == thread && once.begin == pos) {
            events.push(self.once_event(thread, "once_begin", once));
        }
        if let Some(once) = program.onces.iter().position(|once| once.thread == thread && once.end == pos) {
            events.push(self.once_event(thread, "once_end", once));
        }
    }

    fn once_event(&mut self, thread: ThreadIx, channel: &'static str, once: usize) -> Event {
        self.channels.insert(channel);
        self.used.onces.insert(once as u32);
        Event::new(format!("{channel}.{}.{once}", thread.0))
    }

    /// Forks, ends and joins.
    fn thread_events(&mut self, thread: ThreadIx, pos: Pos, step: &Step, events: &mut Vec<Event>) {
        let program = self.program;
        let t = thread.0;
        let follows = |need: &crate::program::Need| need.thread == thread && need.pos == pos + 1;
        for child in program.thread_ids() {
            let first = program.steps(child).first();
            if child != thread && first.is_some_and(|first| program.needs_of(first).iter().any(follows)) {
                self.channels.insert("fork");
                self.used.forked.insert(child.0);
                events.push(Event::new(format!("fork.{t}.{}", child.0)));
            }
        }
        if self.is_join(step) {
            for need in program.needs_of(step) {
                self.channels.insert("join");
                self.used.joined.insert(need.thread.0);
                events.push(Event::new(format!("join.{t}.{}", need.thread.0)));
            }
        }
        let last = pos as usize + 1 == program.steps(thread).len();
        if last && self.is_joined(thread) {
            self.channels.insert("end");
            self.used.joined.insert(t);
            events.push(Event::new(format!("end.{t}")));
        }
    }

    fn is_joined(&self, thread: ThreadIx) -> bool {
        let end = self.program.steps(thread).len() as Pos;
        let steps = self.program.threads.iter().flat_map(|thread| &thread.steps);
        steps.filter(|step| self.is_join(step)).any(|step| {
            self.program.needs_of(step).iter().any(|need| need.thread == thread && need.pos == end)
        })
    }

    // The file.

    fn file(mut self, question: Question<'_>, window: Option<Window>) -> String {
        let program = self.program;
        let window = window.filter(|window| window.start > 0 || window.end < program.order.len());
        let mut from: Vec<Pos> = vec![0; program.thread_count()];
        let mut limit: Vec<Pos> = program.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
        let mut prefix = Vec::new();
        if let Some(window) = window {
            for &thread in &program.order[..window.start] {
                prefix.extend(self.events(thread, from[thread.index()]));
                from[thread.index()] += 1;
            }
            if window.end < program.order.len() {
                limit = from.clone();
                for &thread in &program.order[window.start..window.end] {
                    limit[thread.index()] += 1;
                }
            }
        }
        let mut processes = String::new();
        for thread in program.thread_ids() {
            self.thread(&mut processes, thread, from[thread.index()], limit[thread.index()], question);
        }
        if window.is_some() {
            chain(&mut processes, "PREFIX", &prefix, "SKIP");
        }
        self.header(question, window);
        self.declarations(question);
        self.text.push_str("-- The threads, each in its own order.\n\n");
        self.text.push_str(&processes);
        self.composition(window.is_some());
        self.check(question);
        self.text
    }

    fn thread(&mut self, text: &mut String, thread: ThreadIx, from: Pos, limit: Pos, question: Question<'_>) {
        let mut events = Vec::new();
        for pos in from..=limit {
            if let Question::Race(_, interval) = question {
                let mut kinds: Vec<AccessKind> = interval
                    .entries
                    .iter()
                    .filter(|entry| entry.thread == thread && entry.pos == pos)
                    .map(|entry| entry.kind)
                    .collect();
                kinds.sort_unstable();
                kinds.dedup();
                events.extend(
                    kinds.into_iter().map(|kind| Event::new(format!("{}.{}", memory(kind), thread.0))),
                );
            }
            if pos < limit {
                events.extend(self.events(thread, pos));
            }
        }
        let steps = &self.program.threads[thread.index()];
        let open = steps.open_ended || (limit as usize) < steps.steps.len();
        let name = self.trace.tables.threads.get(thread.index()).map_or("?", |thread| &thread.name);
        let _ = writeln!(text, "-- thread {name}");
        chain(text, &format!("THREAD_{}", thread.0), &events, if open { "stray -> STOP" } else { "SKIP" });
    }

    fn header(&mut self, question: Question<'_>, window: Option<Window>) {
        let asked = match question {
            Question::Deadlock => "Can some order of these events get stuck?".to_owned(),
            Question::Race(number, interval) => {
                let name = self
                    .names
                    .memory(&self.trace.tables, interval.start)
                    .unwrap_or_else(|| format!("{:#x}", interval.start));
                format!(
                    "Can two threads access interval {} ({} bytes at {name}) at the same time?",
                    number.0,
                    interval.end - interval.start
                )
            }
        };
        let _ = writeln!(
            self.text,
            "-- {asked}\n-- Written by `raddle predict --emit-csp`; check with `raddle csp check`."
        );
        if let Some(window) = window {
            let _ = writeln!(
                self.text,
                "-- A window: steps {} to {} of {}; those before come as they were observed.",
                window.start,
                window.end,
                self.program.order.len()
            );
        }
        self.text.push('\n');
    }

    fn declarations(&mut self, question: Question<'_>) {
        let range = |count: usize| format!("{{0..{}}}", count.saturating_sub(1));
        let program = self.program;
        let orders = self.orders.values().map(Vec::len).sum();
        let types = [
            ("thread", program.thread_count()),
            ("mutex", program.locks.len()),
            ("condition", program.instances.len()),
            ("barrier", program.barriers.len()),
            ("semaphore", program.semaphores.len()),
            ("once", program.onces.len()),
            ("register", program.registers.len()),
            ("value", self.unknown_value() as usize + 1),
            ("order", orders),
        ];
        let mut needed: BTreeSet<&str> = BTreeSet::from(["thread"]);
        let mut channels = String::new();
        for channel in &self.channels {
            let fields: &[&'static str] = match *channel {
                "fork" | "join" => &["thread", "thread"],
                "start" | "end" => &["thread"],
                "signal" | "broadcast" | "waitbegin" | "waitblind" | "wait" | "late" => {
                    &["thread", "condition"]
                }
                "barrier_enter" | "barrier_exit" => &["thread", "barrier"],
                "sem_wait" | "sem_post" => &["thread", "semaphore"],
                "once_begin" | "once_end" | "once_passed" | "once_early" => &["thread", "once"],
                "load" | "store" | "other" => &["thread", "register", "value"],
                "rmw" => &["thread", "register", "value", "value"],
                "before" | "after" | "unmet" => &["order"],
                _ => &["thread", "mutex"],
            };
            needed.extend(fields);
            let _ = writeln!(channels, "channel {channel} : {}", fields.join("."));
        }
        for (name, count) in types {
            if needed.contains(name) {
                let _ = writeln!(self.text, "nametype {name} = {}", range(count));
            }
        }
        self.text.push_str(&channels);
        self.text.push_str("channel endthreads, stray\n");
        if matches!(question, Question::Race(..)) {
            self.text.push_str("channel read, write, aread, awrite : thread\nchannel race\n");
        }
        self.text.push('\n');
    }

    fn has(&self, channel: &str) -> bool {
        self.channels.contains(channel)
    }

    fn composition(&mut self, prefix: bool) {
        let threads: Vec<String> =
            self.program.thread_ids().map(|thread| format!("THREAD_{}", thread.0)).collect();
        let _ = writeln!(self.text, "INTER = ({}) ; endthreads -> SKIP\n", threads.join(" ||| "));
        self.text.push_str("-- What synchronisation allows.\n\n");
        let mut parts: Vec<String> = Vec::new();
        self.forks_and_joins(&mut parts);
        self.locks(&mut parts);
        self.conditions(&mut parts);
        self.barriers(&mut parts);
        self.semaphores(&mut parts);
        self.onces(&mut parts);
        self.registers(&mut parts);
        self.order_processes(&mut parts);
        let sync = if parts.is_empty() { "STOP".to_owned() } else { parts.join("\n   ||| ") };
        let _ = writeln!(self.text, "SYNC = {sync}\n");
        let channels: Vec<&str> = self.channels.iter().copied().collect();
        let set =
            if channels.is_empty() { "{}".to_owned() } else { format!("{{| {} |}}", channels.join(", ")) };
        let _ = writeln!(self.text, "sync_events = {set}");
        let inter = if prefix { "(PREFIX ; INTER)" } else { "INTER" };
        let _ = writeln!(self.text, "PROGRAM = {inter} [| sync_events |] SYNC\n");
    }

    fn check(&mut self, question: Question<'_>) {
        match question {
            Question::Deadlock => self.text.push_str(
                "channel live\n\
                 LIVE = live -> LIVE\n\n\
                 -- Holds if every order comes to its end (or leaves what was observed).\n\
                 assert LIVE [F= (((PROGRAM [| {endthreads, stray} |> SKIP) \\ Events) ; LIVE)\n",
            ),
            Question::Race(..) => self.text.push_str(
                "race_events = union({| read, write, aread, awrite |}, sync_events)\n\
                 RACE = RACE_ERR /\\ ([] z : race_events @ z -> RACE)\n\
                 RACE_ERR = read?t -> (write?u:diff(thread, {t}) -> race -> SKIP\n                      \
                 [] awrite?u:diff(thread, {t}) -> race -> SKIP)\n  \
                 [] write?t -> write?u:diff(thread, {t}) -> race -> SKIP\n  \
                 [] aread?t -> write?u:diff(thread, {t}) -> race -> SKIP\n  \
                 [] awrite?t -> write?u:diff(thread, {t}) -> race -> SKIP\n\n\
                 -- Holds if the interval is free of races.\n\
                 assert STOP [T= (PROGRAM [| race_events |] RACE) |\\ {race}\n",
            ),
        }
    }
}

fn memory(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write | AccessKind::Free => "write",
        AccessKind::AtomicRead => "aread",
        AccessKind::AtomicWrite => "awrite",
    }
}

/// Writes a sequence of events as processes `NAME`, `NAME_1`, `NAME_2`, ... of bounded length.
fn chain(text: &mut String, name: &str, events: &[Event], end: &str) {
    let pieces: Vec<&[Event]> =
        if events.is_empty() { vec![&[]] } else { events.chunks(CHAIN_MAX).collect() };
    for (index, piece) in pieces.iter().enumerate() {
        let this = if index == 0 { name.to_owned() } else { format!("{name}_{index}") };
        let next = if index + 1 < pieces.len() { format!("{name}_{}", index + 1) } else { end.to_owned() };
        let _ = write!(text, "{this} =");
        let mut open = 0;
        for event in *piece {
            match &event.otherwise {
                None => {
                    let _ = write!(text, "\n  {} ->", event.text);
                }
                Some(otherwise) => {
                    let _ = write!(text, "\n  ({otherwise} -> stray -> STOP [] {} ->", event.text);
                    open += 1;
                }
            }
        }
        let _ = writeln!(text, "\n  {next}{}\n", ")".repeat(open));
    }
}
