//! Locks and conditions of a program: who holds what where, and which wait met which signal.

use super::*;

impl Builder<'_> {
    pub(super) fn lock_number(&mut self, object: ObjectId) -> LockIx {
        let life = self.lives.entry(object).or_default();
        *life.lock.get_or_insert_with(|| {
            self.program.locks.push(Lock::default());
            self.lock_states.push(LockState::default());
            LockIx::from_len(self.program.locks.len() - 1)
        })
    }

    pub(super) fn lock(
        &mut self,
        ix: EventIx,
        thread: ThreadIx,
        object: ObjectId,
        flags: LockFlags,
        shared: bool,
    ) {
        let lock = self.lock_number(object);
        if let Some(held) = self.threads[thread.index()].held.iter_mut().find(|held| held.lock == lock) {
            held.depth += 1;
            self.push(ix, thread, Action::Free, true);
            return;
        }
        let state = self.lock_states[lock.index()];
        if flags.owner_died
            && let Some(owner) = state.writer
        {
            self.owner_died(lock, owner);
        }
        let state = &mut self.lock_states[lock.index()];
        let taken = state.writer.is_some() || (!shared && state.readers > 0);
        if taken || flags.nested {
            // Somebody else has it: the trace lost an unlock. Nothing can be said about this hold.
            self.program.oddities += u64::from(taken);
            self.push(ix, thread, Action::Free, true);
            return;
        }
        if shared {
            state.readers += 1;
        } else {
            state.writer = Some(thread);
        }
        let tries = flags.patience != Patience::Blocking;
        self.threads[thread.index()].held.push(Held { lock, shared, depth: 1 });
        self.ensure_started(ix, thread, false);
        self.update_lockset(thread);
        let pos = self.push(ix, thread, Action::Lock { lock, shared, tries }, true);
        self.use_object(object, thread, pos);
        self.add_hold(lock, thread, Hold { acquire: pos, release: Pos::MAX, event: ix, shared });
    }

    pub(super) fn add_hold(&mut self, lock: LockIx, thread: ThreadIx, hold: Hold) {
        let uses = &mut self.program.locks[lock.index()].uses;
        let place = match uses.binary_search_by_key(&thread, |(thread, _)| *thread) {
            Ok(place) => place,
            Err(place) => {
                uses.insert(place, (thread, LockUse::default()));
                place
            }
        };
        let holds = if hold.shared { &mut uses[place].1.shared } else { &mut uses[place].1.exclusive };
        holds.push(hold);
    }

    pub(super) fn close_hold(&mut self, lock: LockIx, thread: ThreadIx, shared: bool, release: Pos) {
        let uses = &mut self.program.locks[lock.index()].uses;
        if let Ok(place) = uses.binary_search_by_key(&thread, |(thread, _)| *thread) {
            let holds = if shared { &mut uses[place].1.shared } else { &mut uses[place].1.exclusive };
            if let Some(hold) = holds.last_mut() {
                hold.release = release;
            }
        }
    }

    pub(super) fn update_lockset(&mut self, thread: ThreadIx) {
        let state = &mut self.threads[thread.index()];
        let mut set: Vec<(LockIx, bool)> = state.held.iter().map(|held| (held.lock, held.shared)).collect();
        set.sort_unstable();
        let next = LocksetIx::from_len(self.program.locksets.len());
        let number = *self.lockset_index.entry(set).or_insert_with_key(|set| {
            self.program.locksets.push(set.clone());
            next
        });
        state.lockset = Some(number);
    }

    /// The thread no longer has the lock; returns how it had it if this was the outermost release.
    pub(super) fn drop_held(&mut self, thread: ThreadIx, lock: LockIx) -> Option<Held> {
        let held = &mut self.threads[thread.index()].held;
        let place = held.iter().rposition(|held| held.lock == lock)?;
        if held[place].depth > 1 {
            held[place].depth -= 1;
            return None;
        }
        let held = held.remove(place);
        let state = &mut self.lock_states[lock.index()];
        if held.shared {
            state.readers = state.readers.saturating_sub(1);
        } else {
            state.writer = None;
        }
        self.update_lockset(thread);
        Some(held)
    }

    pub(super) fn unlock(&mut self, ix: EventIx, thread: ThreadIx, object: ObjectId, visible: bool) {
        let lock = self.lock_number(object);
        let had = self.threads[thread.index()].held.iter().any(|held| held.lock == lock);
        match self.drop_held(thread, lock) {
            Some(held) => {
                let pos = self.push(ix, thread, Action::Unlock { lock, shared: held.shared }, visible);
                self.use_object(object, thread, pos);
                self.close_hold(lock, thread, held.shared, pos);
            }
            None => {
                self.program.oddities += u64::from(!had);
                self.push(ix, thread, Action::Free, visible);
            }
        }
    }

    /// A robust mutex was taken over: its owner's last step released it.
    pub(super) fn owner_died(&mut self, lock: LockIx, owner: ThreadIx) {
        let Some(last) = self.program.threads[owner.index()].steps.len().checked_sub(1) else { return };
        let step = &mut self.program.threads[owner.index()].steps[last];
        if step.action == Action::Free && self.drop_held(owner, lock).is_some() {
            self.program.threads[owner.index()].steps[last].action = Action::Unlock { lock, shared: false };
            self.close_hold(lock, owner, false, last as Pos);
        }
    }

    // Conditions.

    pub(super) fn wait_begin(&mut self, ix: EventIx, thread: ThreadIx, object: ObjectId) {
        let lock = self.lock_number(object);
        let depth =
            self.threads[thread.index()].held.iter().find(|held| held.lock == lock).map(|held| held.depth);
        let released = match depth {
            Some(1) => self.drop_held(thread, lock),
            _ => None,
        };
        let releases = released.map_or(LockIx::NONE, |_| lock);
        let action = Action::WaitBegin { lock: releases, instance: InstanceIx::NONE, guarded: false };
        let pos = self.push(ix, thread, action, true);
        if let Some(held) = released {
            self.use_object(object, thread, pos);
            self.close_hold(lock, thread, held.shared, pos);
        }
        self.condition_steps.insert(ix, (thread, pos));
        self.guards.begin(thread, ix);
        self.threads[thread.index()].waiting = true;
    }

    pub(super) fn finish_conditions(&mut self) {
        let mut conditions = Conditions::of(self.events);
        if let Some(exchange) = self.exchange {
            exchange_waits(&mut conditions, exchange);
        }
        self.program.oddities += conditions.spurious.len() as u64;
        for instance in &conditions.instances {
            let Some(&(thread, signal)) = self.condition_steps.get(&instance.signal) else { continue };
            let number = InstanceIx::from_len(self.program.instances.len());
            let mut woken = Vec::new();
            for wait in &instance.woken {
                let (waiter, pos) = self.condition_steps[&wait.wait];
                if waiter == thread {
                    if self.exchange.is_some() {
                        self.never_woken(waiter, pos);
                    }
                    continue;
                }
                self.needs.push((waiter, pos, Need { thread, pos: signal + 1 }));
                let began = wait.began.and_then(|began| self.condition_steps.get(&began));
                let Some(&(_, began_pos)) = began.filter(|(_, began)| began + 1 == pos) else { continue };
                woken.push((waiter, pos));
                let steps = &mut self.program.threads[waiter.index()].steps;
                steps[pos as usize].action = Action::Wait { instance: number };
                if let Action::WaitBegin { lock, .. } = steps[began_pos as usize].action {
                    let guarded = self.guards.is_guarded(steps[began_pos as usize].event);
                    steps[began_pos as usize].action = Action::WaitBegin { lock, instance: number, guarded };
                }
            }
            if !woken.is_empty() {
                self.program.threads[thread.index()].steps[signal as usize].action =
                    Action::Signal { instance: number };
                self.program.instances.push(Instance { thread, signal, woken });
            }
        }
    }

    /// A wait whose signal another thread takes and that only its own thread could send then: no step of anybody wakes it.
    fn never_woken(&mut self, waiter: ThreadIx, pos: Pos) {
        let number = InstanceIx::from_len(self.program.instances.len());
        let nobody = Instance { thread: ThreadIx::MAIN, signal: Pos::MAX, woken: Vec::new() };
        self.program.instances.push(nobody);
        self.program.threads[waiter.index()].steps[pos as usize].action = Action::Wait { instance: number };
    }
}

/// The first signal wakes whom the second one woke, and the other way round.
fn exchange_waits(conditions: &mut Conditions, (first, second): Exchange) {
    let place = |wanted| conditions.instances.iter().position(|instance| instance.signal == wanted);
    let (Some(a), Some(b)) = (place(first), place(second)) else { return };
    let woken = std::mem::take(&mut conditions.instances[a].woken);
    conditions.instances[a].woken = std::mem::replace(&mut conditions.instances[b].woken, woken);
}
