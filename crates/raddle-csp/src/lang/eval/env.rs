//! Environments and lazy values.
//!
//! An environment is a chain of frames, one for each construct that binds names. A slot holds a value or a thunk: an
//! expression with its environment that is evaluated at most once, when somebody needs it. Thunks hold frames that
//! hold thunks, and streams hold thunks that hold streams, in chains as long as the script likes; [`Frame`], [`Thunk`]
//! and [`Stream`] are therefore dropped by a loop, not by recursion.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::value::{Stream, Value};
use crate::lang::ast::{ExprId, PatId};
use crate::lang::resolve::VarId;

pub type Env = Option<Rc<Frame>>;

#[derive(Debug)]
pub struct Frame {
    slots: RefCell<Vec<Slot>>,
    pub parent: Env,
    /// Tells frames apart, as part of the identity of calls of local definitions.
    pub id: u64,
}

#[derive(Clone, Debug)]
pub enum Slot {
    Empty,
    Value(Value),
    Thunk(Rc<Thunk>),
}

#[derive(Debug)]
pub struct Thunk {
    pub state: RefCell<State>,
}

#[derive(Debug)]
pub enum State {
    Pending(ExprId, Env),
    /// The variable that a pattern binds in the value of another thunk.
    Part(Rc<Thunk>, PatId, VarId),
    /// One sequence after another.
    Append(Slot, Slot),
    /// All elements of a sequence of sequences.
    Concat(Slot),
    /// What is left of a sequence comprehension.
    Rest(Box<Generator>),
    Running,
    Done(Value),
}

/// A generator of a sequence comprehension on its way through its source.
#[derive(Debug)]
pub struct Generator {
    /// The comprehension, and which of its statements this is.
    pub expr: ExprId,
    pub at: usize,
    /// The sequence of values that are left.
    pub source: Slot,
    /// The frame of the statements before it.
    pub frame: Rc<Frame>,
}

impl Thunk {
    pub fn new(state: State) -> Rc<Thunk> {
        count_one_more();
        Rc::new(Thunk { state: RefCell::new(state) })
    }
}

impl Frame {
    pub fn new(id: u64, slots: u32, parent: Env) -> Rc<Frame> {
        count_one_more();
        Rc::new(Frame { slots: RefCell::new(vec![Slot::Empty; slots as usize]), parent, id })
    }

    /// A frame with the same contents somewhere else.
    pub fn moved(&self, id: u64, parent: Env) -> Rc<Frame> {
        count_one_more();
        Rc::new(Frame { slots: RefCell::new(self.slots.borrow().clone()), parent, id })
    }

    /// A frame with the same contents, for the next round of a generator.
    pub fn copy(&self, id: u64) -> Rc<Frame> {
        count_one_more();
        Rc::new(Frame { slots: RefCell::new(self.slots.borrow().clone()), parent: self.parent.clone(), id })
    }

    pub fn set(&self, slot: u32, value: Slot) {
        if let Some(place) = self.slots.borrow_mut().get_mut(slot as usize) {
            *place = value;
        }
    }

    /// Forgets everything in it, when nobody can look it up any more.
    pub fn empty(&self) {
        // Dropping comes after giving the slots back: it may come by here again.
        let slots = std::mem::take(&mut *self.slots.borrow_mut());
        drop(slots);
    }

    pub fn each(&self, look: &mut dyn FnMut(&Slot)) {
        self.slots.borrow().iter().for_each(look);
    }

    pub fn get(&self, slot: u32) -> Slot {
        self.slots.borrow().get(slot as usize).cloned().unwrap_or(Slot::Empty)
    }
}

/// The slot `slot` of the frame `hops` levels up.
pub fn lookup(env: &Env, hops: u32, slot: u32) -> Slot {
    let mut frame = env;
    for _ in 0..hops {
        match frame {
            Some(inner) => frame = &inner.parent,
            None => return Slot::Empty,
        }
    }
    frame.as_ref().map_or(Slot::Empty, |f| f.get(slot))
}

/// What something that is gone held.
#[derive(Debug)]
enum Remains {
    Frame(#[allow(dead_code)] Vec<Slot>, #[allow(dead_code)] Env),
    Thunk(#[allow(dead_code)] State),
    Stream(#[allow(dead_code)] Slot, #[allow(dead_code)] Slot),
}

thread_local! {
    /// What is waiting to be dropped by the outermost drop.
    static GRAVE: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
    static DIGGING: Cell<bool> = const { Cell::new(false) };
}

fn bury(remains: Remains) {
    // During thread exit the storage may be gone; then recursion is all that is left.
    let outermost = GRAVE.try_with(|grave| {
        grave.borrow_mut().push(remains);
        !DIGGING.replace(true)
    });
    if outermost != Ok(true) {
        return;
    }
    while let Some(remains) = GRAVE.with(|grave| grave.borrow_mut().pop()) {
        drop(remains);
    }
    DIGGING.set(false);
}

/// How many frames and thunks there are on this thread.
#[cfg(test)]
pub(super) fn live() -> usize {
    LIVE.get()
}

#[cfg(test)]
thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// Counts what is made, for tests.
fn count_one_more() {
    #[cfg(test)]
    LIVE.set(LIVE.get() + 1);
}

fn count_one_less() {
    #[cfg(test)]
    LIVE.set(LIVE.get() - 1);
}

impl Drop for Frame {
    fn drop(&mut self) {
        count_one_less();
        let (slots, parent) = (std::mem::take(self.slots.get_mut()), self.parent.take());
        if !slots.is_empty() || parent.is_some() {
            bury(Remains::Frame(slots, parent));
        }
    }
}

impl Drop for Thunk {
    fn drop(&mut self) {
        count_one_less();
        let state = self.state.get_mut();
        // Frames bury what they hold themselves.
        let deep = match state {
            State::Pending(..) | State::Running => false,
            State::Done(value) => value.is_lazy(),
            State::Part(..) | State::Append(..) | State::Concat(_) | State::Rest(_) => true,
        };
        if deep {
            bury(Remains::Thunk(std::mem::replace(state, State::Running)));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if matches!((&self.head, &self.rest), (Slot::Value(head), Slot::Empty) if !head.is_lazy()) {
            return;
        }
        let head = std::mem::replace(&mut self.head, Slot::Empty);
        bury(Remains::Stream(head, std::mem::replace(&mut self.rest, Slot::Empty)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_nested_thunks_are_dropped_without_recursion() {
        let mut env: Env = None;
        for id in 0..1_000_000 {
            let frame = Frame::new(id, 1, None);
            frame.set(0, Slot::Thunk(Thunk::new(State::Pending(ExprId(0), env))));
            env = Some(frame);
        }
        drop(env);
    }

    #[test]
    fn a_million_nested_frames_are_dropped_without_recursion() {
        let mut env: Env = None;
        for id in 0..1_000_000 {
            env = Some(Frame::new(id, 0, env));
        }
        drop(env);
    }

    #[test]
    fn a_million_cells_are_dropped_without_recursion() {
        let mut rest = Slot::Empty;
        for n in 0..1_000_000 {
            let cell = Value::Stream(Rc::new(Stream::new(Slot::Value(Value::Int(n)), rest)));
            rest = if n % 2 == 0 { Slot::Value(cell) } else { Slot::Thunk(Thunk::new(State::Done(cell))) };
        }
        drop(rest);
    }

    #[test]
    fn a_million_appends_are_dropped_without_recursion() {
        let mut left = Slot::Empty;
        for _ in 0..1_000_000 {
            left = Slot::Thunk(Thunk::new(State::Append(left, Slot::Empty)));
        }
        drop(left);
    }

    #[test]
    fn looks_up_through_frames() {
        let outer = Frame::new(0, 1, None);
        outer.set(0, Slot::Value(Value::Int(7)));
        let inner: Env = Some(Frame::new(1, 1, Some(outer)));
        assert!(matches!(lookup(&inner, 1, 0), Slot::Value(Value::Int(7))));
        assert!(matches!(lookup(&inner, 2, 0), Slot::Empty));
    }
}
