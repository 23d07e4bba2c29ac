//! The C11 memory model by brute force: every candidate execution of a litmus test, judged by the axioms.
//!
//! The axioms are those of Batty and others, *Mathematizing C++ concurrency* ("post-Rapperswil"), without consume and
//! locks, as Lidbury's thesis lists them in §3.4. Nothing here is clever: values that loads may have are guessed, then
//! for each guess every reads-from, every modification order and every order of `seq_cst` operations is tried, and each
//! axiom is a loop over pairs of events. It shares no code and no idea with the runtime.

use super::program::{Order, Program, Statement};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Kind {
    Read,
    Write,
    Update,
    Fence,
}

#[derive(Clone, Debug)]
struct Event {
    thread: usize,
    kind: Kind,
    location: String,
    /// None: a plain access.
    order: Option<Order>,
    read: i64,
    written: i64,
}

impl Event {
    fn reads(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Update)
    }

    fn writes(&self) -> bool {
        matches!(self.kind, Kind::Write | Kind::Update)
    }

    fn is_fence(&self) -> bool {
        matches!(self.kind, Kind::Fence)
    }

    fn is_sc(&self) -> bool {
        self.order == Some(Order::SeqCst)
    }

    fn acquires(&self) -> bool {
        self.order.is_some_and(Order::acquires)
    }

    fn releases(&self) -> bool {
        self.order.is_some_and(Order::releases)
    }
}

/// What a test can do, as printed lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Allowed by the axioms.
    pub allowed: BTreeSet<String>,
    /// Those without load buffering: sequenced-before and reads-from have no cycle.
    pub without_buffering: BTreeSet<String>,
    /// Those in which the order of `seq_cst` operations takes part in no such cycle either.
    pub executable: BTreeSet<String>,
    /// Those that an interleaving gives.
    pub interleaved: BTreeSet<String>,
    /// Some allowed execution has a data race.
    pub races: bool,
}

type Registers = BTreeMap<String, i64>;

/// One way through a thread for guessed values.
#[derive(Clone, Default)]
struct Path {
    events: Vec<Event>,
    registers: Registers,
}

pub fn outcomes(program: &Program) -> Outcomes {
    let values = values(program);
    let mut blocks: Vec<Vec<Path>> = Vec::new();
    for (thread, statements) in program.threads.iter().chain([&program.at_end]).enumerate() {
        blocks.push(paths(statements, thread + 1, &values, Path::default()));
    }
    let mut found = Outcomes::default();
    each_product(&blocks, &mut Vec::new(), &mut |chosen: &[Path]| judge(program, chosen, &mut found));
    found
}

/// Every value that a location can have: 0, what is stored, and what additions make of it.
fn values(program: &Program) -> BTreeSet<i64> {
    let mut values = BTreeSet::from([0]);
    let mut amounts = Vec::new();
    fn collect(statements: &[Statement], values: &mut BTreeSet<i64>, amounts: &mut Vec<i64>) {
        for statement in statements {
            match statement {
                Statement::Store { value, .. }
                | Statement::PlainWrite { value, .. }
                | Statement::Exchange { value, .. } => {
                    values.insert(*value);
                }
                Statement::Add { amount, .. } => amounts.push(*amount),
                Statement::If { then, .. } => collect(then, values, amounts),
                _ => {}
            }
        }
    }
    for statements in &program.threads {
        collect(statements, &mut values, &mut amounts);
    }
    for amount in amounts {
        values = values.iter().flat_map(|&value| [value, value + amount]).collect();
    }
    values
}

fn paths(statements: &[Statement], thread: usize, values: &BTreeSet<i64>, path: Path) -> Vec<Path> {
    let mut ways = vec![path];
    for statement in statements {
        ways = ways.into_iter().flat_map(|path| steps(statement, thread, values, path)).collect();
    }
    ways
}

fn steps(statement: &Statement, thread: usize, values: &BTreeSet<i64>, path: Path) -> Vec<Path> {
    let after =
        |kind: Kind, location: &str, order: Option<Order>, read: i64, written: i64, to: Option<&str>| {
            let mut path = path.clone();
            path.events.push(Event { thread, kind, location: location.to_owned(), order, read, written });
            if let Some(register) = to {
                path.registers.insert(register.to_owned(), read);
            }
            path
        };
    match statement {
        Statement::Load { register, location, order } => values
            .iter()
            .map(|&value| after(Kind::Read, location, Some(*order), value, 0, Some(register)))
            .collect(),
        Statement::PlainRead { register, location } => values
            .iter()
            .map(|&value| after(Kind::Read, location, None, value, 0, register.as_deref()))
            .collect(),
        Statement::Store { location, value, order } => {
            vec![after(Kind::Write, location, Some(*order), 0, *value, None)]
        }
        Statement::PlainWrite { location, value } => {
            vec![after(Kind::Write, location, None, 0, *value, None)]
        }
        Statement::Add { register, location, amount, order } => values
            .iter()
            .map(|&value| {
                after(Kind::Update, location, Some(*order), value, value + amount, register.as_deref())
            })
            .collect(),
        Statement::Exchange { register, location, expected, value, success, failure } => values
            .iter()
            .map(|&found| {
                if found == *expected {
                    after(Kind::Update, location, Some(*success), found, *value, Some(register))
                } else {
                    after(Kind::Read, location, Some(*failure), found, 0, Some(register))
                }
            })
            .collect(),
        Statement::Fence(order) => vec![after(Kind::Fence, "", Some(*order), 0, 0, None)],
        Statement::If { register, value, then } => {
            let found = path.registers.get(register).copied().unwrap_or(0);
            let holds = value.map_or(found != 0, |value| found == value);
            if holds { paths(then, thread, values, path) } else { vec![path] }
        }
    }
}

fn each_product<T: Clone>(choices: &[Vec<T>], chosen: &mut Vec<T>, each: &mut impl FnMut(&[T])) {
    match choices.get(chosen.len()) {
        None => each(chosen),
        Some(options) => {
            for option in options {
                chosen.push(option.clone());
                each_product(choices, chosen, each);
                chosen.pop();
            }
        }
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &item) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(at);
        for mut permutation in permutations(&rest) {
            permutation.insert(0, item);
            all.push(permutation);
        }
    }
    all
}

/// A relation between events, as a matrix.
#[derive(Clone)]
struct Relation(Vec<Vec<bool>>);

impl Relation {
    fn new(size: usize) -> Relation {
        Relation(vec![vec![false; size]; size])
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.0[from][to]
    }

    fn add(&mut self, from: usize, to: usize) {
        self.0[from][to] = true;
    }

    fn union(&self, other: &Relation) -> Relation {
        let mut all = self.clone();
        for (from, row) in other.0.iter().enumerate() {
            for (to, &related) in row.iter().enumerate() {
                all.0[from][to] |= related;
            }
        }
        all
    }

    fn closed(mut self) -> Relation {
        let size = self.0.len();
        for via in 0..size {
            for from in 0..size {
                if self.0[from][via] {
                    for to in 0..size {
                        self.0[from][to] |= self.0[via][to];
                    }
                }
            }
        }
        self
    }

    fn has_cycle(self) -> bool {
        let closed = self.closed();
        (0..closed.0.len()).any(|event| closed.has(event, event))
    }

    fn of_order(size: usize, order: &[usize]) -> Relation {
        let mut relation = Relation::new(size);
        for (at, &from) in order.iter().enumerate() {
            for &to in &order[at + 1..] {
                relation.add(from, to);
            }
        }
        relation
    }
}

/// A candidate execution.
struct Execution<'a> {
    events: &'a [Event],
    /// Sequenced before, within a thread.
    sb: &'a Relation,
    /// Sequenced before, and what starting and joining threads orders.
    sb_asw: &'a Relation,
    /// For each reading event the write that it reads from.
    rf: &'a [Option<usize>],
    mo: &'a Relation,
}

fn judge(program: &Program, chosen: &[Path], found: &mut Outcomes) {
    let locations: BTreeSet<&str> = chosen
        .iter()
        .flat_map(|path| path.events.iter().filter(|event| !event.is_fence()))
        .map(|event| event.location.as_str())
        .collect();
    // Initial values, as plain writes of thread 0.
    let mut events: Vec<Event> = locations
        .iter()
        .map(|location| Event {
            thread: 0,
            kind: Kind::Write,
            location: (*location).to_owned(),
            order: None,
            read: 0,
            written: 0,
        })
        .collect();
    events.extend(chosen.iter().flat_map(|path| path.events.iter().cloned()));
    let size = events.len();
    let last_thread = chosen.len();
    let (mut sb, mut sb_asw) = (Relation::new(size), Relation::new(size));
    for (from, a) in events.iter().enumerate() {
        for (to, b) in events.iter().enumerate() {
            if from < to && a.thread == b.thread && a.thread != 0 {
                sb.add(from, to);
            }
            let created = a.thread == 0 && b.thread != 0;
            let joined = b.thread == last_thread && a.thread != last_thread;
            if sb.has(from, to) || created || joined {
                sb_asw.add(from, to);
            }
        }
    }
    let sources: Vec<Vec<Option<usize>>> = events
        .iter()
        .enumerate()
        .map(|(reader, event)| {
            if !event.reads() {
                return vec![None];
            }
            let fits = |writer: &usize| {
                let other = &events[*writer];
                *writer != reader
                    && other.writes()
                    && other.location == event.location
                    && other.written == event.read
            };
            (0..size).filter(fits).map(Some).collect()
        })
        .collect();
    let orders: Vec<Vec<Vec<usize>>> = locations
        .iter()
        .map(|location| {
            let writes = |ix: &usize| events[*ix].writes() && events[*ix].location == **location;
            let (initial, others): (Vec<usize>, Vec<usize>) =
                (0..size).filter(writes).partition(|&ix| events[ix].thread == 0);
            permutations(&others)
                .into_iter()
                .map(|order| initial.iter().copied().chain(order).collect())
                .collect()
        })
        .collect();
    let line = printed(program, chosen);
    each_product(&sources, &mut Vec::new(), &mut |rf: &[Option<usize>]| {
        each_product(&orders, &mut Vec::new(), &mut |mo: &[Vec<usize>]| {
            let mut all = Relation::new(size);
            for order in mo {
                all = all.union(&Relation::of_order(size, order));
            }
            let execution = Execution { events: &events, sb: &sb, sb_asw: &sb_asw, rf, mo: &all };
            execution.judge(&line, found);
        });
    });
}

fn printed(program: &Program, chosen: &[Path]) -> String {
    let value = |register: &String| {
        let found = chosen.iter().find_map(|path| path.registers.get(register));
        found.copied().unwrap_or(0).to_string()
    };
    program.printed.iter().map(value).collect::<Vec<_>>().join(" ")
}

impl Execution<'_> {
    fn all(&self) -> std::ops::Range<usize> {
        0..self.events.len()
    }

    fn judge(&self, line: &str, found: &mut Outcomes) {
        let Some(hb) = self.happens_before() else { return };
        if !self.coherent(&hb) {
            return;
        }
        let sc_events: Vec<usize> = self.all().filter(|&event| self.events[event].is_sc()).collect();
        let rf = self.reads_from();
        let causal = self.sb_asw.union(&rf);
        let buffers = causal.clone().has_cycle();
        for order in permutations(&sc_events) {
            let sc = Relation::of_order(self.events.len(), &order);
            if !self.sc_consistent(&sc, &hb) {
                continue;
            }
            found.allowed.insert(line.to_owned());
            found.races |= self.races(&hb);
            if !buffers {
                found.without_buffering.insert(line.to_owned());
            }
            if !causal.union(&sc).has_cycle() {
                found.executable.insert(line.to_owned());
            }
            if !causal.union(self.mo).union(&self.before_writes()).has_cycle() {
                found.interleaved.insert(line.to_owned());
            }
        }
    }

    fn reads_from(&self) -> Relation {
        let mut relation = Relation::new(self.events.len());
        for (reader, writer) in self.rf.iter().enumerate() {
            if let Some(writer) = writer {
                relation.add(*writer, reader);
            }
        }
        relation
    }

    /// From a read to the writes that come after what it read.
    fn before_writes(&self) -> Relation {
        let mut relation = Relation::new(self.events.len());
        for (reader, writer) in self.rf.iter().enumerate() {
            for later in self.all().filter(|&later| later != reader) {
                if writer.is_some_and(|writer| self.mo.has(writer, later)) {
                    relation.add(reader, later);
                }
            }
        }
        relation
    }

    /// Is `write` in the release sequence that `head` heads (or would head)?
    fn in_release_sequence(&self, head: usize, write: usize) -> bool {
        let goes_on = |event: usize| {
            self.events[event].thread == self.events[head].thread
                || matches!(self.events[event].kind, Kind::Update)
        };
        head == write
            || self.mo.has(head, write)
                && goes_on(write)
                && self
                    .all()
                    .filter(|&between| self.mo.has(head, between) && self.mo.has(between, write))
                    .all(goes_on)
    }

    /// Synchronises-with: release store or fence, release sequence, reads-from, acquire load or fence.
    fn synchronises(&self) -> Relation {
        let mut sw = Relation::new(self.events.len());
        for reader in self.all() {
            let Some(source) = self.rf[reader] else { continue };
            if self.events[reader].order.is_none() {
                continue;
            }
            for head in self.all() {
                let is_head = self.events[head].writes()
                    && self.events[head].order.is_some()
                    && self.in_release_sequence(head, source);
                if !is_head {
                    continue;
                }
                let fence_before = |fence: &usize| {
                    self.events[*fence].is_fence()
                        && self.events[*fence].releases()
                        && self.sb.has(*fence, head)
                };
                let fence_after = |fence: &usize| {
                    self.events[*fence].is_fence()
                        && self.events[*fence].acquires()
                        && self.sb.has(reader, *fence)
                };
                let itself = |event: usize, yes: bool| yes.then_some(event);
                let from: Vec<usize> = itself(head, self.events[head].releases())
                    .into_iter()
                    .chain(self.all().filter(fence_before))
                    .collect();
                let to: Vec<usize> = itself(reader, self.events[reader].acquires())
                    .into_iter()
                    .chain(self.all().filter(fence_after))
                    .collect();
                for &a in &from {
                    for &b in &to {
                        if self.events[a].thread != self.events[b].thread {
                            sw.add(a, b);
                        }
                    }
                }
            }
        }
        sw
    }

    fn happens_before(&self) -> Option<Relation> {
        let hb = self.sb_asw.union(&self.synchronises()).closed();
        self.all().all(|event| !hb.has(event, event)).then_some(hb)
    }

    /// Modification order agrees with happens-before, reads are coherent, updates read the store right before them.
    fn coherent(&self, hb: &Relation) -> bool {
        let same = |a: usize, b: usize| {
            !self.events[a].is_fence() && self.events[a].location == self.events[b].location
        };
        for a in self.all() {
            for b in self.all().filter(|&b| a != b && same(a, b)) {
                let (writes_a, writes_b) = (self.events[a].writes(), self.events[b].writes());
                // CoWW.
                if writes_a && writes_b && hb.has(a, b) && !self.mo.has(a, b) {
                    return false;
                }
                if let Some(source) = self.rf[b] {
                    // A read does not happen before what it reads.
                    if source == a && hb.has(b, a) {
                        return false;
                    }
                    if self.events[b].order.is_none() {
                        // A plain read that no write races with reads the last write that happens before it.
                        if writes_a && hb.has(a, b) && self.mo.has(source, a) {
                            return false;
                        }
                        continue;
                    }
                    // CoWR.
                    if writes_a && hb.has(a, b) && self.mo.has(source, a) {
                        return false;
                    }
                    // CoRW.
                    if writes_a && hb.has(b, a) && (source == a || self.mo.has(a, source)) {
                        return false;
                    }
                    // CoRR.
                    if let Some(other) = self.rf[a]
                        && hb.has(a, b)
                        && self.mo.has(source, other)
                    {
                        return false;
                    }
                    if matches!(self.events[b].kind, Kind::Update) {
                        let between = |w: usize| self.mo.has(source, w) && self.mo.has(w, b);
                        if !self.mo.has(source, b) || self.all().any(between) {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    fn sc_consistent(&self, sc: &Relation, hb: &Relation) -> bool {
        for a in self.all() {
            for b in self.all() {
                if sc.has(a, b) && (hb.has(b, a) || self.mo.has(b, a)) {
                    return false;
                }
            }
        }
        let fence = |event: usize| self.events[event].is_fence() && self.events[event].is_sc();
        // Fences order modifications (consistent-mo, 3).
        for a in self.all().filter(|&a| self.events[a].writes()) {
            for b in self.all().filter(|&b| self.events[b].writes() && self.mo.has(b, a)) {
                let two = |x: usize| {
                    fence(x)
                        && self.sb.has(a, x)
                        && self.all().any(|y| fence(y) && sc.has(x, y) && self.sb.has(y, b))
                };
                if self.all().any(two) {
                    return false;
                }
            }
        }
        for reader in self.all() {
            let Some(source) = self.rf[reader] else { continue };
            if self.events[reader].order.is_none() {
                continue;
            }
            let overlooked = |write: &usize| self.mo.has(source, *write) && *write != reader;
            for write in self.all().filter(overlooked) {
                let fence_after_write = |x: usize| fence(x) && self.sb.has(write, x);
                let fence_before_read = |y: usize| fence(y) && self.sb.has(y, reader);
                // Rule 5.
                let five = self.events[reader].is_sc()
                    && self.all().any(|x| fence_after_write(x) && sc.has(x, reader));
                // Rule 6.
                let six = self.events[write].is_sc()
                    && self.all().any(|y| sc.has(write, y) && fence_before_read(y));
                // Rule 7.
                let seven = self.all().any(|x| {
                    fence_after_write(x) && self.all().any(|y| sc.has(x, y) && fence_before_read(y))
                });
                if five || six || seven {
                    return false;
                }
            }
            // Rule 8.
            if self.events[reader].is_sc() && !self.sc_read_allowed(reader, source, sc, hb) {
                return false;
            }
        }
        true
    }

    /// A `seq_cst` read reads the last `seq_cst` write before it, or a write that is not `seq_cst` and does not happen before
    /// that one.
    fn sc_read_allowed(&self, reader: usize, source: usize, sc: &Relation, hb: &Relation) -> bool {
        let before = |write: &usize| {
            self.events[*write].writes()
                && self.events[*write].location == self.events[reader].location
                && sc.has(*write, reader)
        };
        let last = self
            .all()
            .filter(before)
            .find(|&write| !self.all().filter(before).any(|later| sc.has(write, later)));
        if self.events[source].is_sc() {
            return last == Some(source);
        }
        last.is_none_or(|last| !hb.has(source, last))
    }

    fn races(&self, hb: &Relation) -> bool {
        self.all().any(|a| {
            self.all().any(|b| {
                let (one, other) = (&self.events[a], &self.events[b]);
                a < b
                    && one.thread != other.thread
                    && !one.is_fence()
                    && one.location == other.location
                    && (one.writes() || other.writes())
                    && (one.order.is_none() || other.order.is_none())
                    && !hb.has(a, b)
                    && !hb.has(b, a)
            })
        })
    }
}
