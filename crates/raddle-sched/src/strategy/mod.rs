//! Strategies: which of the threads that could go next goes next. One file each.
//!
//! A strategy owns its state: what it keeps for the run in its own structure, what it keeps at a thread in that thread's
//! [`Note`]. Nobody else looks into either. To add one: a file here with its paper and its deviations, a line in
//! [`AnyStrategy`], and a test of what its paper says in `tests/strategies.rs`.

pub mod delay;
pub mod follow;
pub mod guided;
pub mod pct;
pub mod period;
pub mod pos;
pub mod queue;
pub mod random;
pub mod rff;
pub mod round_robin;
pub mod surw;

use crate::courtesy::Yields;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};
use raddle_wire::region::strategy as number;

/// What a strategy keeps at a thread: two numbers, whose meaning is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note(pub [u64; 2]);

impl Note {
    pub const EMPTY: Note = Note([0; 2]);
}

/// What happens when a thread arrives while it is nobody's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenTurn {
    /// Somebody is chosen.
    Choose,
    /// It is the turn of the one who came.
    Take,
    /// The turn stays open for somebody else.
    StaysOpen,
}

/// Who goes, before anybody is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    Thread(ThreadIx),
    /// Nobody yet: whoever comes first takes the turn.
    LiesOpen,
    /// One of the candidates is to be picked.
    ByPick,
}

/// A thread that takes this many turns in a row while others could is treated as if it had yielded: it spins. Loops that
/// wait for somebody else do so within a few turns; two hundred leave room for honest work between.
const SPIN_TURNS_MAX: u32 = 200;

pub trait Strategy {
    /// Once, before the first thread is registered.
    fn prepare(&mut self, _tools: &mut Tools<'_>) {}

    /// Does it have to know what every thread is about to do? Then somebody is chosen only when all have arrived.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// A thread exists now. `draw` is a random number of its own.
    fn registered(&mut self, _tools: &mut Tools<'_>, _thread: ThreadIx, _path: u64, _draw: u64) {}

    /// It was created by another one.
    fn born(&mut self, _tools: &mut Tools<'_>, _parent: ThreadIx, _child: ThreadIx) {}

    /// A thread has come to a new operation.
    fn arrived(&mut self, _tools: &mut Tools<'_>, _thread: ThreadIx) {}

    /// A thread has come while it is nobody's turn.
    fn open_turn(&mut self, _view: &View<'_, '_>, _thread: ThreadIx) -> OpenTurn {
        OpenTurn::Choose
    }

    /// Who goes, before anybody is picked?
    fn serve(&self, _view: &View<'_, '_>) -> Served {
        Served::ByPick
    }

    /// Picks one of two or more candidates.
    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx;

    /// The thread goes next, whether it was picked or the only one.
    fn chosen(&mut self, _view: &View<'_, '_>, _tools: &mut Tools<'_>, _thread: ThreadIx) {}

    /// A thread has finished its operation. True: the turn lies open, and it may go on.
    fn finished(&mut self, _view: &View<'_, '_>, _tools: &mut Tools<'_>, _thread: ThreadIx) -> bool {
        false
    }

    /// Is every choice the search's own? Then chance has no say: signals wait for whoever comes first, operations with a time limit
    /// give up where they stand, and threads that yield are not put back.
    fn is_exhaustive(&self) -> bool {
        false
    }

    /// Must the next thread be a certain one, whether it has yielded or not?
    fn is_bound(&self) -> bool {
        false
    }

    fn spin_turns_max(&self) -> u32 {
        SPIN_TURNS_MAX
    }

    /// How is it taken that a thread yields?
    fn yields(&self) -> Yields {
        Yields::Chance
    }

    fn may_lie_open(&self) -> bool {
        false
    }

    /// How a waiting thread looks after a turn that may lie open.
    fn patience(&self, _view: &View<'_, '_>, _thread: ThreadIx, _looks: u32) -> Option<queue::Patience> {
        None
    }
}

/// One of the strategies. An enumeration and no `dyn`: a decision is made at every visible operation.
pub enum AnyStrategy<'t> {
    Random(random::Random),
    RoundRobin(round_robin::RoundRobin),
    Queue(queue::Queue),
    Pct(pct::Pct),
    Delay(delay::Delay),
    Pos(pos::Pos),
    Surw(surw::Surw<'t>),
    Guided(guided::Guided<'t>),
    Follow(follow::Follow<'t>),
    Rff(rff::Rff<'t>),
    Period(period::Period),
}

impl<'t> AnyStrategy<'t> {
    pub const RANDOM: AnyStrategy<'t> = AnyStrategy::Random(random::Random);

    /// The strategy with this number (`raddle_wire::region::strategy`); unknown numbers are `random`.
    pub fn new(which: u32, parameters: &[u64; 8], blob: &'t [u64], one_at_a_time: bool) -> AnyStrategy<'t> {
        match which {
            number::ROUND_ROBIN => AnyStrategy::RoundRobin(round_robin::RoundRobin),
            number::QUEUE => AnyStrategy::Queue(queue::Queue::new(one_at_a_time)),
            number::PCT => AnyStrategy::Pct(pct::Pct::new(parameters[0], parameters[1])),
            number::DELAY => AnyStrategy::Delay(delay::Delay::new(parameters[0], parameters[1])),
            number::POS => AnyStrategy::Pos(pos::Pos),
            number::SURW => AnyStrategy::Surw(surw::Surw::new(blob)),
            number::FOLLOW => AnyStrategy::Follow(follow::Follow::new(blob)),
            number::RFF => AnyStrategy::Rff(rff::Rff::new(blob)),
            number::PERIOD => AnyStrategy::Period(period::Period::new(parameters[0], parameters[1])),
            number::GUIDED => AnyStrategy::Guided(guided::Guided::new(blob)),
            _ => AnyStrategy::RANDOM,
        }
    }
}

macro_rules! delegate {
    ($self:ident.$name:ident($($argument:expr),*)) => {
        match $self {
            AnyStrategy::Random(strategy) => strategy.$name($($argument),*),
            AnyStrategy::RoundRobin(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Queue(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Pct(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Delay(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Pos(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Surw(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Guided(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Follow(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Rff(strategy) => strategy.$name($($argument),*),
            AnyStrategy::Period(strategy) => strategy.$name($($argument),*),
        }
    };
}

impl Strategy for AnyStrategy<'_> {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        delegate!(self.prepare(tools))
    }

    #[inline]
    fn looks_ahead(&self) -> bool {
        delegate!(self.looks_ahead())
    }

    fn registered(&mut self, tools: &mut Tools<'_>, thread: ThreadIx, path: u64, draw: u64) {
        delegate!(self.registered(tools, thread, path, draw))
    }

    fn born(&mut self, tools: &mut Tools<'_>, parent: ThreadIx, child: ThreadIx) {
        delegate!(self.born(tools, parent, child))
    }

    #[inline]
    fn arrived(&mut self, tools: &mut Tools<'_>, thread: ThreadIx) {
        delegate!(self.arrived(tools, thread))
    }

    #[inline]
    fn open_turn(&mut self, view: &View<'_, '_>, thread: ThreadIx) -> OpenTurn {
        delegate!(self.open_turn(view, thread))
    }

    #[inline]
    fn serve(&self, view: &View<'_, '_>) -> Served {
        delegate!(self.serve(view))
    }

    #[inline]
    fn pick(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>) -> ThreadIx {
        delegate!(self.pick(view, tools))
    }

    #[inline]
    fn chosen(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>, thread: ThreadIx) {
        delegate!(self.chosen(view, tools, thread))
    }

    #[inline]
    fn finished(&mut self, view: &View<'_, '_>, tools: &mut Tools<'_>, thread: ThreadIx) -> bool {
        delegate!(self.finished(view, tools, thread))
    }

    #[inline]
    fn is_exhaustive(&self) -> bool {
        delegate!(self.is_exhaustive())
    }

    #[inline]
    fn is_bound(&self) -> bool {
        delegate!(self.is_bound())
    }

    #[inline]
    fn spin_turns_max(&self) -> u32 {
        delegate!(self.spin_turns_max())
    }

    fn yields(&self) -> Yields {
        delegate!(self.yields())
    }

    fn may_lie_open(&self) -> bool {
        delegate!(self.may_lie_open())
    }

    fn patience(&self, view: &View<'_, '_>, thread: ThreadIx, looks: u32) -> Option<queue::Patience> {
        delegate!(self.patience(view, thread, looks))
    }
}
