//! Giving back environments and lazy values that refer to themselves.
//!
//! Frames, thunks and values are counted references, which do not see that a `let` with a recursive function is no
//! longer used: its frame holds the function, and the function holds the frame. So does `xs = <1>^xs`, and so do thunks
//! of global names. Every such ring goes through a frame of a `let` (other frames are filled with what is older than they
//! are) or through a thunk, the only things that change after they are made. [`Cycles`] knows these, and now and then
//! asks which of them are held by nothing but each other: *trial deletion* (Bacon and Rajan, "Concurrent cycle
//! collection in reference counted systems", 2001), all at once. From what is known everything within reach is
//! counted; whatever has more references than were found from inside is in use, by a local variable of the evaluator,
//! by a table or by something that is not followed, and so is all that it reaches. The rest is emptied, which opens the
//! rings. Nothing is asked before as many were made as were in use last time, so the work is a constant for each.
//!
//! When the script goes, everything that is left is emptied: nobody can ask for values then.

use std::rc::{Rc, Weak};

use rustc_hash::FxHashMap;

use super::env::{Env, Frame, Slot, State, Thunk};
use super::value::{Closure, Lazy, LazyMap, List, Set, Stream, Value};

/// Fewer are not worth the trouble.
const ASK_MIN: usize = 8_192;

/// The frames and thunks through which rings go.
#[derive(Debug)]
pub(super) struct Cycles {
    frames: Vec<Weak<Frame>>,
    thunks: Vec<Weak<Thunk>>,
    /// How many there are when it is asked next what is in use.
    ask_at: usize,
}

impl Default for Cycles {
    fn default() -> Cycles {
        Cycles { frames: Vec::new(), thunks: Vec::new(), ask_at: ASK_MIN }
    }
}

impl Cycles {
    pub fn frame(&mut self, frame: Rc<Frame>) -> Rc<Frame> {
        self.frames.push(Rc::downgrade(&frame));
        self.ask_if_many();
        frame
    }

    pub fn thunk(&mut self, thunk: Rc<Thunk>) -> Rc<Thunk> {
        self.thunks.push(Rc::downgrade(&thunk));
        self.ask_if_many();
        thunk
    }

    fn ask_if_many(&mut self) {
        if self.frames.len() + self.thunks.len() < self.ask_at {
            return;
        }
        self.forget_the_dead();
        let left = self.frames.len() + self.thunks.len();
        // Mostly counting references was enough.
        if left > self.ask_at / 2 {
            self.collect();
            self.forget_the_dead();
        }
        self.ask_at = ASK_MIN.max(2 * (self.frames.len() + self.thunks.len()));
    }

    fn forget_the_dead(&mut self) {
        self.frames.retain(|frame| frame.strong_count() > 0);
        self.thunks.retain(|thunk| thunk.strong_count() > 0);
    }

    /// Empties what only holds itself.
    fn collect(&mut self) {
        let mut graph = Graph::default();
        for frame in self.frames.iter().filter_map(Weak::upgrade) {
            graph.find(Node::Frame(frame));
        }
        for thunk in self.thunks.iter().filter_map(Weak::upgrade) {
            graph.find(Node::Thunk(thunk));
        }
        for node in graph.unused() {
            node.empty();
        }
    }
}

impl Drop for Cycles {
    fn drop(&mut self) {
        for thunk in self.thunks.iter().filter_map(Weak::upgrade) {
            Node::Thunk(thunk).empty();
        }
        for frame in self.frames.iter().filter_map(Weak::upgrade) {
            Node::Frame(frame).empty();
        }
    }
}

/// Something that is shared.
#[derive(Clone)]
enum Node {
    Frame(Rc<Frame>),
    Thunk(Rc<Thunk>),
    Closure(Rc<Closure>),
    List(Rc<List>),
    Lazy(Rc<Lazy>),
    Stream(Rc<Stream>),
    LazyMap(Rc<LazyMap>),
}

impl Node {
    fn address(&self) -> usize {
        match self {
            Node::Frame(rc) => Rc::as_ptr(rc) as usize,
            Node::Thunk(rc) => Rc::as_ptr(rc) as usize,
            Node::Closure(rc) => Rc::as_ptr(rc) as usize,
            Node::List(rc) => Rc::as_ptr(rc) as usize,
            Node::Lazy(rc) => Rc::as_ptr(rc) as usize,
            Node::Stream(rc) => Rc::as_ptr(rc) as usize,
            Node::LazyMap(rc) => Rc::as_ptr(rc) as usize,
        }
    }

    fn references(&self) -> usize {
        match self {
            Node::Frame(rc) => Rc::strong_count(rc),
            Node::Thunk(rc) => Rc::strong_count(rc),
            Node::Closure(rc) => Rc::strong_count(rc),
            Node::List(rc) => Rc::strong_count(rc),
            Node::Lazy(rc) => Rc::strong_count(rc),
            Node::Stream(rc) => Rc::strong_count(rc),
            Node::LazyMap(rc) => Rc::strong_count(rc),
        }
    }

    fn empty(&self) {
        match self {
            Node::Frame(frame) => frame.empty(),
            // Never asked again; the state is put elsewhere first, because it may hold the thunk.
            Node::Thunk(thunk) => drop(thunk.state.replace(State::Running)),
            // These cannot change. What they hold is emptied.
            Node::Closure(_) | Node::List(_) | Node::Lazy(_) | Node::Stream(_) | Node::LazyMap(_) => {}
        }
    }

    /// Calls `held` for everything that this holds, once for each reference. What is left out counts as in use.
    fn each(&self, held: &mut dyn FnMut(Node)) {
        match self {
            Node::Frame(frame) => {
                environment(&frame.parent, held);
                frame.each(&mut |slot| of_slot(slot, held));
            }
            Node::Thunk(thunk) => {
                // Whoever changes it at the moment has a reference of its own.
                let Ok(state) = thunk.state.try_borrow() else { return };
                match &*state {
                    State::Pending(_, env) => environment(env, held),
                    State::Part(whole, ..) => held(Node::Thunk(whole.clone())),
                    State::Append(left, right) => {
                        of_slot(left, held);
                        of_slot(right, held);
                    }
                    State::Concat(rest) => of_slot(rest, held),
                    State::Rest(generator) => {
                        of_slot(&generator.source, held);
                        held(Node::Frame(generator.frame.clone()));
                    }
                    State::Running => {}
                    State::Done(value) => of_value(value, held),
                }
            }
            Node::Closure(closure) => {
                environment(&closure.env, held);
                closure.args.iter().flatten().for_each(|slot| of_slot(slot, held));
            }
            Node::List(list) => list.items.iter().for_each(|value| of_value(value, held)),
            Node::Lazy(lazy) => lazy.slots.iter().for_each(|slot| of_slot(slot, held)),
            Node::Stream(cell) => {
                of_slot(&cell.head, held);
                of_slot(&cell.rest, held);
            }
            Node::LazyMap(map) => map.entries.values().for_each(|slot| of_slot(slot, held)),
        }
    }
}

fn environment(env: &Env, held: &mut dyn FnMut(Node)) {
    if let Some(frame) = env {
        held(Node::Frame(frame.clone()));
    }
}

fn of_slot(slot: &Slot, held: &mut dyn FnMut(Node)) {
    match slot {
        Slot::Empty => {}
        Slot::Value(value) => of_value(value, held),
        Slot::Thunk(thunk) => held(Node::Thunk(thunk.clone())),
    }
}

fn of_value(value: &Value, held: &mut dyn FnMut(Node)) {
    match value {
        Value::Function(closure) => held(Node::Closure(closure.clone())),
        Value::Tuple(list)
        | Value::Data(_, list)
        | Value::Dot(list)
        | Value::Image(list)
        | Value::Set(Set::List(list)) => held(Node::List(list.clone())),
        Value::Seq(seq) => held(Node::List(seq.shared().clone())),
        Value::Lazy(lazy) | Value::LazyDot(lazy) => held(Node::Lazy(lazy.clone())),
        Value::Stream(cell) => held(Node::Stream(cell.clone())),
        Value::LazyMap(map) => held(Node::LazyMap(map.clone())),
        // The keys of maps are complete values, and of complete maps the values too; functions in them are rare.
        Value::Map(_) | Value::Set(_) => {}
        Value::Int(_)
        | Value::Bool(_)
        | Value::Char(_)
        | Value::SeqFrom(_)
        | Value::Builtin(_)
        | Value::Process(_) => {}
    }
}

/// What can be reached, and from how many references of what was found it is.
#[derive(Default)]
struct Graph {
    places: FxHashMap<usize, usize>,
    nodes: Vec<Node>,
    from_inside: Vec<usize>,
}

impl Graph {
    fn find(&mut self, node: Node) -> usize {
        *self.places.entry(node.address()).or_insert_with(|| {
            self.nodes.push(node);
            self.from_inside.push(0);
            self.nodes.len() - 1
        })
    }

    /// The nodes that only nodes hold that are not used either.
    fn unused(mut self) -> Vec<Node> {
        let mut next = 0;
        while let Some(node) = self.nodes.get(next).cloned() {
            node.each(&mut |held| {
                let at = self.find(held);
                self.from_inside[at] += 1;
            });
            next += 1;
        }
        // One reference to each is our own.
        let mut used: Vec<bool> = self
            .nodes
            .iter()
            .zip(&self.from_inside)
            .map(|(node, inside)| node.references() > inside + 1)
            .collect();
        let mut waiting: Vec<usize> = (0..used.len()).filter(|&n| used[n]).collect();
        while let Some(n) = waiting.pop() {
            self.nodes[n].each(&mut |held| {
                if let Some(&at) = self.places.get(&held.address())
                    && !std::mem::replace(&mut used[at], true)
                {
                    waiting.push(at);
                }
            });
        }
        self.nodes.into_iter().zip(used).filter(|(_, used)| !used).map(|(node, _)| node).collect()
    }
}
