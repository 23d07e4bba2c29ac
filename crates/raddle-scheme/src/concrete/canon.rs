//! The canonical form of a state: two states that differ only in garbage, in the numbers of their objects or in the
//! order in which threads were created have the same one.
//!
//! Exploration identifies states by it, which is what makes the state space of a program that loops (a spinning `cas`,
//! say) finite. The form is the sequence of words met on a walk from the roots (top-level variables, then threads by
//! path), objects being numbered as they are met; the walk is breadth-first with a queue, so no structure is too deep.

use super::state::*;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A canonical state.
pub type Canon = Box<[u32]>;

struct Walk<'a> {
    state: &'a State,
    words: Vec<u32>,
    numbers: FxHashMap<ObjId, u32>,
    queue: VecDeque<ObjId>,
    strings: FxHashMap<&'a str, u32>,
    threads: Vec<u32>,
    contexts: bool,
}

impl Machine<'_> {
    pub fn canon(&self, state: &State) -> Canon {
        let mut order: Vec<u32> = (0..state.threads.len() as u32).collect();
        order.sort_by(|&a, &b| state.threads[a as usize].path.cmp(&state.threads[b as usize].path));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &thread)| rank[thread as usize] = at as u32);
        let mut walk = Walk {
            state,
            words: Vec::with_capacity(64),
            numbers: FxHashMap::default(),
            queue: VecDeque::new(),
            strings: FxHashMap::default(),
            threads: rank,
            contexts: self.track > 0,
        };
        for global in 0..self.globals_count() as u32 {
            walk.object(ObjId(global));
        }
        for &thread in &order {
            walk.thread(&state.threads[thread as usize]);
        }
        while let Some(object) = walk.queue.pop_front() {
            let object = &state.heap[object.index()];
            walk.origin(object);
            walk.words.push(object.cells.len() as u32);
            for cell in &object.cells {
                walk.value(cell);
            }
        }
        walk.words.into()
    }
}

impl<'a> Walk<'a> {
    fn object(&mut self, object: ObjId) {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(object).or_insert_with(|| {
            self.queue.push_back(object);
            next
        });
        self.words.push(number);
    }

    fn env(&mut self, env: &Env) {
        self.words.push(env.len() as u32);
        for &(var, object) in env.iter() {
            self.words.push(var.0);
            self.object(object);
        }
    }

    fn context(&mut self, context: &Context) {
        if self.contexts {
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

    fn thread(&mut self, thread: &'a Thread) {
        self.words.push(thread.path.len() as u32);
        self.words.extend(thread.path.iter());
        // The spawn counter names future children, so it belongs to the state.
        self.words.push(thread.children);
        match &thread.control {
            Control::Eval(expr, env) => {
                self.words.extend([0, expr.0]);
                self.env(env);
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
            self.env(&frame.env);
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
            Value::Real(x) => {
                self.words.push(8);
                self.words.extend(halves(x.to_bits()));
            }
            Value::Char(c) => self.words.extend([9, *c as u32]),
            Value::Str(s) => {
                // The first occurrence spells the string out, later ones refer to it.
                let next = self.strings.len() as u32;
                match self.strings.get(&**s) {
                    Some(&number) => self.words.extend([10, number]),
                    None => {
                        self.strings.insert(s, next);
                        self.words.extend([11, s.len() as u32]);
                        self.words.extend(s.bytes().map(u32::from));
                    }
                }
            }
            Value::Symbol(s) => self.words.extend([12, s.0]),
            Value::Prim(prim) => self.words.extend([13, *prim as u32]),
            Value::Closure(lambda, env) => {
                self.words.extend([14, lambda.0]);
                self.env(env);
            }
            Value::Pair(object) => self.reference(15, *object),
            Value::Vector(object) => self.reference(16, *object),
            Value::Ref(object) => self.reference(17, *object),
            Value::Lock(object) => self.reference(18, *object),
            Value::Thread(thread) => {
                let rank = self.threads[thread.index()];
                debug_assert!((rank as usize) < self.state.threads.len());
                self.words.extend([19, rank]);
            }
        }
    }

    fn reference(&mut self, tag: u32, object: ObjId) {
        self.words.push(tag);
        self.object(object);
    }
}

/// Objects below which a heap is not worth collecting.
const COLLECT_ABOVE: usize = 128;

impl Machine<'_> {
    /// Drops unreachable objects and renumbers the rest. Locations found before are void afterwards.
    pub fn collect(&self, state: &mut State) {
        if state.heap.len() < COLLECT_ABOVE + 2 * self.globals_count() {
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
            match &thread.control {
                Control::Eval(_, env) => env.iter().for_each(|entry| meet(entry.1, &mut order)),
                Control::Return(value) | Control::Done(value) => references(value, |o| meet(o, &mut order)),
                Control::Failed(_) => {}
            }
            for frame in &thread.stack {
                frame.env.iter().for_each(|entry| meet(entry.1, &mut order));
                frame.values.iter().for_each(|value| references(value, |o| meet(o, &mut order)));
            }
        }
        let mut at = 0;
        while at < order.len() {
            let object = &state.heap[order[at].index()];
            object.cells.iter().for_each(|value| references(value, |o| meet(o, &mut order)));
            at += 1;
        }
        let target = |object: ObjId| moved[object.index()].unwrap_or(object);
        let mut old: Vec<Option<Object>> = std::mem::take(&mut state.heap).into_iter().map(Some).collect();
        for &object in &order {
            if let Some(mut object) = old[object.index()].take() {
                object.cells.iter_mut().for_each(|value| relocate(value, &target));
                state.heap.push(object);
            }
        }
        for thread in &mut state.threads {
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

fn references(value: &Value, mut meet: impl FnMut(ObjId)) {
    match value {
        Value::Closure(_, env) => env.iter().for_each(|entry| meet(entry.1)),
        Value::Pair(object) | Value::Vector(object) | Value::Ref(object) | Value::Lock(object) => {
            meet(*object)
        }
        _ => {}
    }
}

fn relocate(value: &mut Value, target: &impl Fn(ObjId) -> ObjId) {
    match value {
        Value::Closure(_, env) => relocate_env(env, target),
        Value::Pair(object) | Value::Vector(object) | Value::Ref(object) | Value::Lock(object) => {
            *object = target(*object)
        }
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
