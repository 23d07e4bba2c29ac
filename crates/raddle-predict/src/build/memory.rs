//! Memory of a program: plain accesses, releases, and atomics with the values that they read and wrote.

use super::*;

/// An access to a protected cell.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    thread: ThreadIx,
    /// In which segment of its thread.
    segment: u32,
    wrote: bool,
}

impl Builder<'_> {
    pub(super) fn access(&mut self, ix: EventIx, event: &Event, addr: u64, size: u64, kind: AccessKind) {
        let thread = event.thread;
        // Nobody else exists yet, and everybody else will be forked: these accesses come before all others.
        let alone = self.all_forked && !self.forked_any && thread == ThreadIx::MAIN;
        let start = self.space.translate(raddle_trace::Addr(addr));
        self.guards.access(thread, start, size, kind.writes());
        if alone || size == 0 {
            return;
        }
        self.ensure_started(ix, thread, false);
        self.race_entry(ix, thread, start, size, kind);
        if self.cells.is_some() && matches!(kind, AccessKind::Read | AccessKind::Write) {
            self.cell_step(ix, thread, start, kind == AccessKind::Read, kind == AccessKind::Write, false);
        }
    }

    /// Notes an access that may race, at the position that its thread is in before it.
    fn race_entry(&mut self, ix: EventIx, thread: ThreadIx, start: u64, size: u64, kind: AccessKind) {
        if self.benign.iter().any(|&(from, to)| start < to && from < start.saturating_add(size)) {
            return;
        }
        let pos = self.program.threads[thread.index()].steps.len() as Pos;
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.program.accesses.push(Access { start, size, pos, event: ix, kind });
    }

    pub(super) fn free(&mut self, ix: EventIx, event: &Event, addr: raddle_trace::Addr) {
        // The release is an access to the whole block, made while the block still is what it was.
        if let Some(size) = self.space.size_of(addr) {
            self.access(ix, event, addr.0, size, AccessKind::Free);
            self.space.free(addr);
        }
    }

    pub(super) fn atomic(
        &mut self,
        ix: EventIx,
        thread: ThreadIx,
        addr: raddle_trace::Addr,
        kind: AtomicKind,
        read: u64,
        written: u64,
    ) {
        if self.cells.is_some() {
            let memory = self.space.translate(addr);
            return self.cell_step(ix, thread, memory, kind.reads(), kind.writes(), true);
        }
        if !self.atomics {
            self.push(ix, thread, Action::Free, true);
            return;
        }
        let memory = self.space.translate(addr);
        if self.counters.has(memory) {
            return self.count(ix, thread, memory);
        }
        let register = self.register(memory);
        let (reads, writes) = (kind.reads().then_some(read), kind.writes().then_some(written));
        self.register_step(ix, thread, register, (reads, writes), true);
    }

    /// An access to a cell: what it reads is who wrote last, and every write is another value.
    fn cell_step(
        &mut self,
        ix: EventIx,
        thread: ThreadIx,
        start: u64,
        reads: bool,
        writes: bool,
        visible: bool,
    ) {
        let Some(cell) = self.cells.as_ref().and_then(|cells| cells.at(start)) else {
            if visible {
                self.push(ix, thread, Action::Free, true);
            }
            return;
        };
        let register = self.register(cell.start);
        if cell.protected && !visible && self.repeats(register, thread, writes) {
            return;
        }
        if self.last_writers.len() <= register.index() {
            self.last_writers.resize(register.index() + 1, 0);
        }
        let seen = self.last_writers[register.index()];
        let own = u64::from(ix.0) + 1;
        // Where accesses overlap in part, a write leaves some of what was there: it keeps its place among the writes.
        let reads = (reads || (writes && !cell.whole)).then_some(seen);
        self.register_step(ix, thread, register, (reads, writes.then_some(own)), visible);
        if writes {
            self.last_writers[register.index()] = own;
        }
    }

    /// Under the lock that protects a cell nobody comes between two accesses of one segment: the second one says nothing new.
    fn repeats(&mut self, register: RegisterIx, thread: ThreadIx, writes: bool) -> bool {
        let segment = self.threads[thread.index()].segment;
        let held = self.threads[thread.index()].lockset.is_some_and(|lockset| lockset != LocksetIx(0));
        let last = self.last_touches.insert(register, Touch { thread, segment, wrote: writes });
        let same = last.filter(|last| held && (last.thread, last.segment) == (thread, segment));
        let repeats = same.is_some_and(|last| last.wrote || !writes);
        if repeats && let Some(touch) = self.last_touches.get_mut(&register) {
            touch.wrote |= last.is_some_and(|last| last.wrote);
        }
        repeats
    }

    /// A step that reads and writes a register, with the values that the observed run had there.
    fn register_step(
        &mut self,
        ix: EventIx,
        thread: ThreadIx,
        register: RegisterIx,
        (read, written): (Option<u64>, Option<u64>),
        visible: bool,
    ) {
        let mut sets = ValueIx::NONE;
        if let Some(written) = written {
            sets = self.value(register, written);
        }
        let mut expects = ValueIx::NONE;
        if let Some(read) = read {
            let value = self.value(register, read);
            let state = &mut self.register_states[register.index()];
            if state.now == ValueIx::NONE {
                self.program.registers[register.index()].start = value;
                state.now = value;
            }
            if state.now == value {
                expects = value;
            } else if written.is_none() {
                // Observed out of order (weak memory, mixed sizes): it is taken as it is, and so is what follows.
                sets = value;
            }
        }
        let pos = self.push(ix, thread, Action::Atomic { register, expects, sets }, visible);
        let state = &mut self.register_states[register.index()];
        if expects != ValueIx::NONE {
            self.program.registers[register.index()].reads.add(thread, pos);
            if let Some(from) = state.writer.filter(|from| from.thread != thread) {
                self.edges.push(ObservedEdge { from, thread, pos });
            }
        }
        if sets != ValueIx::NONE {
            state.now = sets;
            state.writer = Some(Need { thread, pos: pos + 1 });
            let register = &mut self.program.registers[register.index()];
            register.writes.push((thread, pos, sets));
            register.writers.add(thread, pos);
        }
    }

    /// An operation that failed because of what others had done. Where reads are kept, so is this: the search does not
    /// go beyond it, and what leaves events out keeps everything that its object had seen.
    pub(super) fn failed(&mut self, ix: EventIx, thread: ThreadIx, object: Option<ObjectId>) {
        if self.cells.is_none() {
            self.push(ix, thread, Action::Free, true);
            return;
        }
        let register = self.register(u64::MAX);
        let expects = self.value(register, u64::MAX);
        self.program.registers[register.index()].start = self.value(register, 0);
        self.register_states[register.index()].now = self.program.registers[register.index()].start;
        let users = object.and_then(|object| self.lives.get(&object)).map(|life| life.uses.clone());
        let pos = self.push(ix, thread, Action::Atomic { register, expects, sets: ValueIx::NONE }, true);
        for (user, last) in users.into_iter().flatten().filter(|(user, _)| *user != thread) {
            self.edges.push(ObservedEdge { from: Need { thread: user, pos: last }, thread, pos });
        }
    }

    pub(super) fn register(&mut self, addr: u64) -> RegisterIx {
        *self.registers.entry(addr).or_insert_with(|| {
            let (start, reads, writers) = (ValueIx::NONE, Default::default(), Default::default());
            self.program.registers.push(Register { addr, start, reads, writes: Vec::new(), writers });
            self.register_states.push(RegisterState { now: ValueIx::NONE, writer: None });
            RegisterIx::from_len(self.program.registers.len() - 1)
        })
    }

    pub(super) fn value(&mut self, register: RegisterIx, value: u64) -> ValueIx {
        let next = ValueIx::from_len(self.values.len());
        *self.values.entry((register, value)).or_insert(next)
    }

    /// A value that only one step ever wrote can be read only after that step.
    pub(super) fn finish_atomics(&mut self) {
        let mut sources: FxHashMap<ValueIx, Option<Need>> = FxHashMap::default();
        for register in &self.program.registers {
            if register.start != ValueIx::NONE {
                sources.insert(register.start, None);
            }
            for &(thread, pos, value) in &register.writes {
                let source = Some(Need { thread, pos: pos + 1 });
                sources.entry(value).and_modify(|source| *source = None).or_insert(source);
            }
        }
        for (index, steps) in self.program.threads.iter().enumerate() {
            let thread = ThreadIx(index as u32);
            for (pos, step) in steps.steps.iter().enumerate() {
                if let Action::Atomic { expects, .. } = step.action
                    && let Some(&Some(source)) = sources.get(&expects)
                    && source.thread != thread
                {
                    self.needs.push((thread, pos as Pos, source));
                }
            }
        }
    }
}
