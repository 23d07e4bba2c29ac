//! Environments and lazy values.
//!
//! An environment is a chain of frames, one for each construct that binds names. A slot holds a value or a thunk: an
//! expression with its environment that is evaluated at most once, when somebody needs it. Thunks hold frames that
//! hold thunks, in chains as long as the script likes; [`Frame`] is therefore dropped by a loop, not by recursion.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::value::Value;
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
    Running,
    Done(Value),
}

impl Thunk {
    pub fn pending(expr: ExprId, env: Env) -> Rc<Thunk> {
        Rc::new(Thunk { state: RefCell::new(State::Pending(expr, env)) })
    }

    pub fn part(whole: Rc<Thunk>, pat: PatId, var: VarId) -> Rc<Thunk> {
        Rc::new(Thunk { state: RefCell::new(State::Part(whole, pat, var)) })
    }
}

impl Frame {
    pub fn new(id: u64, slots: u32, parent: Env) -> Rc<Frame> {
        Rc::new(Frame { slots: RefCell::new(vec![Slot::Empty; slots as usize]), parent, id })
    }

    /// A frame with the same contents, for the next round of a generator.
    pub fn copy(&self, id: u64) -> Rc<Frame> {
        Rc::new(Frame { slots: RefCell::new(self.slots.borrow().clone()), parent: self.parent.clone(), id })
    }

    pub fn set(&self, slot: u32, value: Slot) {
        if let Some(place) = self.slots.borrow_mut().get_mut(slot as usize) {
            *place = value;
        }
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

thread_local! {
    /// What frames that are gone held, waiting to be dropped by the outermost drop.
    static GRAVE: RefCell<Vec<(Vec<Slot>, Env)>> = const { RefCell::new(Vec::new()) };
    static DIGGING: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Frame {
    fn drop(&mut self) {
        let held = (std::mem::take(self.slots.get_mut()), self.parent.take());
        if held.0.is_empty() && held.1.is_none() {
            return;
        }
        // During thread exit the storage may be gone; then recursion is all that is left.
        let outermost = GRAVE.try_with(|grave| {
            grave.borrow_mut().push(held);
            !DIGGING.replace(true)
        });
        if outermost != Ok(true) {
            return;
        }
        while let Some(held) = GRAVE.with(|grave| grave.borrow_mut().pop()) {
            drop(held);
        }
        DIGGING.set(false);
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
            frame.set(0, Slot::Thunk(Thunk::pending(ExprId(0), env)));
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
    fn looks_up_through_frames() {
        let outer = Frame::new(0, 1, None);
        outer.set(0, Slot::Value(Value::Int(7)));
        let inner: Env = Some(Frame::new(1, 1, Some(outer)));
        assert!(matches!(lookup(&inner, 1, 0), Slot::Value(Value::Int(7))));
        assert!(matches!(lookup(&inner, 2, 0), Slot::Empty));
    }
}
