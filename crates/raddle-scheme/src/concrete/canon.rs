//! The canonical form of a state: two states that differ only in garbage, in the numbers of their objects or in the
//! order in which threads were created have the same one.
//!
//! Exploration identifies states by it, which is what makes the state space of a program that loops (a spinning `cas`,
//! say) finite. The form is the sequence of words met on a walk from the roots (top-level variables, then threads by
//! path), objects being numbered as they are met; the walk is breadth-first with a queue, so no structure is too deep.

use super::state::*;
use crate::syntax::core::VarId;
use num_bigint::BigInt;
use num_traits::Signed;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// A canonical state.
pub type Canon = Box<[u32]>;

/// What the walk takes as given.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Style {
    /// Threads have their names.
    Named,
    /// Threads have the ranks they are given, and what nobody can ask for any more is left out.
    Ranked,
    /// One thread, without the others and without what all of them share.
    Alone,
}

pub(super) struct Walk<'a, 'p> {
    machine: &'a Machine<'p>,
    state: &'a State,
    style: Style,
    pub(super) words: Vec<u32>,
    numbers: FxHashMap<ObjId, u32>,
    queue: VecDeque<ObjId>,
    strings: FxHashMap<&'a str, u32>,
    /// The rank of each thread; [`ENDED`] for those that are numbered as they are met.
    threads: Vec<u32>,
    ended: Vec<ThreadId>,
}

/// Ended threads matter as far as somebody can ask for their result.
pub(super) const ENDED: u32 = u32::MAX;

impl Machine<'_> {
    pub fn canon(&self, state: &State) -> Canon {
        let mut order: Vec<u32> = (0..state.threads.len() as u32).collect();
        order.sort_by(|&a, &b| state.threads[a as usize].path.cmp(&state.threads[b as usize].path));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &thread)| rank[thread as usize] = at as u32);
        let mut walk = Walk::new(self, state, Style::Named, rank);
        for global in 0..self.globals_count() as u32 {
            walk.object(ObjId(global));
        }
        for &thread in &order {
            walk.thread(&state.threads[thread as usize], &[]);
        }
        walk.finish()
    }
}

impl<'a, 'p> Walk<'a, 'p> {
    pub(super) fn new(
        machine: &'a Machine<'p>,
        state: &'a State,
        style: Style,
        threads: Vec<u32>,
    ) -> Walk<'a, 'p> {
        Walk {
            machine,
            state,
            style,
            words: Vec::with_capacity(64),
            numbers: FxHashMap::default(),
            queue: VecDeque::new(),
            strings: FxHashMap::default(),
            threads,
            ended: Vec::new(),
        }
    }

    /// Everything that was met on the way.
    pub(super) fn finish(mut self) -> Canon {
        let mut told = 0;
        loop {
            while let Some(object) = self.queue.pop_front() {
                let object = &self.state.heap[object.index()];
                self.origin(object);
                self.words.push(object.cells.len() as u32);
                for cell in &object.cells {
                    self.value(cell);
                }
            }
            let Some(&thread) = self.ended.get(told) else { return self.words.into() };
            told += 1;
            if let Control::Done(value) = &self.state.thread(thread).control {
                self.value(value);
            }
        }
    }

    fn object(&mut self, object: ObjId) {
        if self.style == Style::Alone && object.index() < self.machine.globals_count() {
            self.words.extend([u32::MAX, object.0]);
            return;
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(object).or_insert_with(|| {
            self.queue.push_back(object);
            next
        });
        self.words.push(number);
    }

    /// The variables of an environment, or of those the ones that are needed.
    fn env(&mut self, env: &Env, needed: Option<&[VarId]>) {
        let needed = needed.filter(|_| self.style != Style::Named);
        let count = self.words.len();
        self.words.push(env.len() as u32);
        for &(var, object) in env.iter() {
            match needed {
                Some(needed) if needed.binary_search(&var).is_err() => self.words[count] -= 1,
                _ => {
                    self.words.push(var.0);
                    self.object(object);
                }
            }
        }
    }

    /// Top-level variables that code mentions.
    fn globals(&mut self, vars: &[VarId]) {
        if self.style == Style::Ranked {
            for &var in vars {
                if let Some(object) = self.machine.global_object(var) {
                    self.object(object);
                }
            }
        }
    }

    fn context(&mut self, context: &Context) {
        if self.machine.track > 0 {
            self.words.push(context.calls.len() as u32);
            self.words.extend(context.calls.iter().map(|c| c.0));
            self.words.push(context.spawns.len() as u32);
            for (site, calls) in &context.spawns {
                self.words.extend([site.0, calls.len() as u32]);
                self.words.extend(calls.iter().map(|c| c.0));
            }
        }
    }

    fn origin(&mut self, object: &Object) {
        // Where an object was made is part of the state: races are named by it.
        let words = match object.origin {
            Origin::Var(var) => [0, var.0, 0],
            Origin::Pair(site, at) => [1, site.0, at],
            Origin::Vector(site) => [2, site.0, 0],
            Origin::Ref(site) => [3, site.0, 0],
            Origin::Lock(site) => [4, site.0, 0],
        };
        self.words.extend(words);
        self.context(&object.context);
    }

    /// A thread, and the threads it waits for.
    pub(super) fn thread(&mut self, thread: &'a Thread, awaited: &[ThreadId]) {
        let machine = self.machine;
        if self.style == Style::Named {
            self.words.push(thread.path.len() as u32);
            self.words.extend(thread.path.iter());
            // The spawn counter names future children, so it belongs to the state.
            self.words.push(thread.children);
        } else {
            self.words.push(awaited.len() as u32);
        }
        if self.style == Style::Ranked {
            let from = self.words.len();
            self.words.extend(awaited.iter().map(|t| self.threads[t.index()]));
            self.words[from..].sort_unstable();
        }
        match &thread.control {
            Control::Eval(expr, env) => {
                self.words.extend([0, expr.0]);
                self.env(env, Some(machine.program.free(*expr)));
                if self.style == Style::Ranked {
                    self.globals(machine.mentioned(*expr));
                }
            }
            Control::Return(value) => {
                self.words.push(1);
                self.value(value);
            }
            Control::Done(value) => {
                self.words.push(2);
                self.value(value);
            }
            Control::Failed(failure) => {
                // The message is part of the state: two failures of one expression are two findings.
                self.words.extend([3, failure.site.0, failure.message.len() as u32]);
                self.words.extend(failure.message.bytes().map(u32::from));
            }
        }
        self.context(&thread.context);
        self.words.push(thread.stack.len() as u32);
        for frame in &thread.stack {
            self.words.extend([frame.expr.0, frame.index, frame.values.len() as u32]);
            for value in &frame.values {
                self.value(value);
            }
            if self.style == Style::Named {
                self.env(&frame.env, None);
            } else {
                let needs = machine.needs(frame.expr, frame.index);
                self.env(&frame.env, Some(&needs.0));
                self.globals(&needs.1);
            }
            self.context(&frame.context);
        }
    }

    fn value(&mut self, value: &'a Value) {
        let halves = |bits: u64| [bits as u32, (bits >> 32) as u32];
        match value {
            Value::Unspecified => self.words.push(0),
            Value::Unassigned => self.words.push(1),
            Value::Nil => self.words.push(2),
            Value::Bool(b) => self.words.push(3 + *b as u32),
            Value::LockState(l) => self.words.push(5 + *l as u32),
            Value::Int(n) => {
                self.words.push(7);
                self.words.extend(halves(*n as u64));
            }
            Value::Big(n) => {
                self.words.push(20);
                self.big(n);
            }
            Value::Ratio(q) => {
                self.words.push(21);
                self.big(q.numer());
                self.big(q.denom());
            }
            Value::Real(x) => {
                self.words.push(8);
                self.words.extend(halves(x.to_bits()));
            }
            Value::Char(c) => self.words.extend([9, *c as u32]),
            Value::Made(name) => {
                self.words.push(24);
                self.string(name);
            }
            Value::Str(s) => self.string(s),
            Value::Symbol(s) => self.words.extend([12, s.0]),
            Value::Prim(prim) => self.words.extend([13, *prim as u32]),
            Value::Closure(lambda, env) => {
                self.words.extend([14, lambda.0]);
                self.env(env, None);
                if self.style == Style::Ranked {
                    self.globals(self.machine.mentioned(self.machine.program.lambda(*lambda).body));
                }
            }
            Value::Pair(object) => self.reference(15, *object),
            Value::Vector(object) => self.reference(16, *object),
            Value::Ref(object) => self.reference(17, *object),
            Value::Lock(object) => self.reference(18, *object),
            Value::Escape(object) => self.reference(23, *object),
            Value::Thread(thread) => self.other(19, *thread),
            Value::Result(thread) => self.other(22, *thread),
        }
    }

    /// The first occurrence spells the string out, later ones refer to it.
    fn string(&mut self, s: &'a str) {
        let next = self.strings.len() as u32;
        match self.strings.get(s) {
            Some(&number) => self.words.extend([10, number]),
            None => {
                self.strings.insert(s, next);
                self.words.extend([11, s.len() as u32]);
                self.words.extend(s.bytes().map(u32::from));
            }
        }
    }

    /// A reference to a thread.
    fn other(&mut self, tag: u32, thread: ThreadId) {
        self.words.push(tag);
        match (self.style, self.threads.get(thread.index()).copied()) {
            (Style::Alone, _) | (_, None) => {}
            (_, Some(ENDED)) => {
                let known = self.ended.iter().position(|&t| t == thread);
                let number = known.unwrap_or(self.ended.len());
                if known.is_none() {
                    self.ended.push(thread);
                }
                self.words.extend([ENDED, number as u32]);
            }
            (_, Some(rank)) => self.words.push(rank),
        }
    }

    fn big(&mut self, n: &BigInt) {
        let digits = n.iter_u32_digits();
        self.words.extend([n.is_negative() as u32, digits.len() as u32]);
        self.words.extend(digits);
    }

    fn reference(&mut self, tag: u32, object: ObjId) {
        self.words.push(tag);
        self.object(object);
    }
}

/// Objects below which a heap is not worth collecting.
const COLLECT_ABOVE: usize = 128;
/// Cells above which it is, however few objects they belong to.
const CELLS_ABOVE: usize = 100_000;

impl Machine<'_> {
    /// Drops unreachable objects and renumbers the rest. Locations found before are void afterwards.
    pub fn collect(&self, state: &mut State) {
        if state.heap.len() < COLLECT_ABOVE + 2 * self.globals_count() && state.cells < CELLS_ABOVE {
            return;
        }
        let mut moved: Vec<Option<ObjId>> = vec![None; state.heap.len()];
        let mut order: Vec<ObjId> = Vec::new();
        let mut meet = |object: ObjId, order: &mut Vec<ObjId>| {
            if moved[object.index()].is_none() {
                moved[object.index()] = Some(ObjId(order.len() as u32));
                order.push(object);
            }
        };
        (0..self.globals_count() as u32).for_each(|global| meet(ObjId(global), &mut order));
        for thread in &state.threads {
            thread_references(thread, |o| meet(o, &mut order));
        }
        let mut at = 0;
        while at < order.len() {
            let object = &state.heap[order[at].index()];
            object.cells.iter().for_each(|value| references(value, |o| meet(o, &mut order)));
            at += 1;
        }
        let target = |object: ObjId| moved[object.index()].unwrap_or(object);
        let mut old: Vec<Option<Rc<Object>>> =
            std::mem::take(&mut state.heap).into_iter().map(Some).collect();
        state.cells = 0;
        for &object in &order {
            if let Some(mut object) = old[object.index()].take() {
                state.cells += object.cells.len();
                let mut moves = false;
                object.cells.iter().for_each(|value| references(value, |o| moves |= target(o) != o));
                if moves {
                    Rc::make_mut(&mut object).cells.iter_mut().for_each(|value| relocate(value, &target));
                }
                state.heap.push(object);
            }
        }
        for thread in &mut state.threads {
            let mut moves = false;
            thread_references(thread, |o| moves |= target(o) != o);
            if !moves {
                continue;
            }
            let thread = Rc::make_mut(thread);
            match &mut thread.control {
                Control::Eval(_, env) => relocate_env(env, &target),
                Control::Return(value) | Control::Done(value) => relocate(value, &target),
                Control::Failed(_) => {}
            }
            for frame in &mut thread.stack {
                relocate_env(&mut frame.env, &target);
                frame.values.iter_mut().for_each(|value| relocate(value, &target));
            }
        }
    }
}

fn thread_references(thread: &Thread, mut meet: impl FnMut(ObjId)) {
    match &thread.control {
        Control::Eval(_, env) => env.iter().for_each(|entry| meet(entry.1)),
        Control::Return(value) | Control::Done(value) => references(value, &mut meet),
        Control::Failed(_) => {}
    }
    for frame in &thread.stack {
        frame.env.iter().for_each(|entry| meet(entry.1));
        frame.values.iter().for_each(|value| references(value, &mut meet));
    }
}

fn references(value: &Value, mut meet: impl FnMut(ObjId)) {
    match value {
        Value::Closure(_, env) => env.iter().for_each(|entry| meet(entry.1)),
        Value::Pair(object)
        | Value::Vector(object)
        | Value::Ref(object)
        | Value::Lock(object)
        | Value::Escape(object) => meet(*object),
        _ => {}
    }
}

fn relocate(value: &mut Value, target: &impl Fn(ObjId) -> ObjId) {
    match value {
        Value::Closure(_, env) => relocate_env(env, target),
        Value::Pair(object)
        | Value::Vector(object)
        | Value::Ref(object)
        | Value::Lock(object)
        | Value::Escape(object) => *object = target(*object),
        _ => {}
    }
}

fn relocate_env(env: &mut Env, target: &impl Fn(ObjId) -> ObjId) {
    if env.iter().any(|entry| target(entry.1) != entry.1) {
        *env = env.iter().map(|&(var, object)| (var, target(object))).collect();
    }
}

/// A 128-bit fingerprint of a canonical state. Explorations keep these instead of the states themselves: among a
/// million states the chance that any two collide is below 2^-88.
pub fn fingerprint(canon: &[u32]) -> u128 {
    let (mut a, mut b) = (0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f_u64);
    for &word in canon {
        a = mix(a ^ u64::from(word));
        b = mix(b.wrapping_add(u64::from(word)).wrapping_mul(0x1656_67b1_9e37_79f9) ^ a.rotate_left(32));
    }
    (u128::from(mix(a ^ canon.len() as u64)) << 64) | u128::from(b)
}

/// The finaliser of splitmix64: a bijection whose every output bit depends on every input bit.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
