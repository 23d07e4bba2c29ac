//! Strategies: which of the threads that could go next goes next. One file each.
//!
//! A strategy owns its state: what it keeps for the run in its own structure, what it keeps at a thread in that thread's
//! [`Note`]. Nobody else looks into either. To add one: a file here with its paper and its deviations, its line in the table of
//! [`AnyStrategy`], which is also what users are told about it, and a test of what its paper says in `tests/strategies.rs`.

pub mod delay;
pub mod follow;
pub mod guided;
pub mod pct;
pub mod period;
pub mod pos;
pub mod preempt;
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

/// A strategy that users choose by its name alone, with one parameter at the most, and of which nobody else has to know anything.
#[derive(Debug, PartialEq, Eq)]
pub struct Listed {
    pub number: u32,
    pub name: &'static str,
    /// One line for users.
    pub about: &'static str,
    /// What its parameter is where none is given, and the least that it can be; none: it has none.
    pub parameter: Option<(u32, u32)>,
    /// Does it have to know how many choices a run has?
    pub needs_length: bool,
}

/// The table: for each strategy its variant, its type and number, and how it is made of a run's parameters, its blob, and whether
/// one thread runs at a time. Those in `listed` have a name and a line for users as well; the names of the others, which more has to
/// be known about, are in `raddle_explore::strategy`.
macro_rules! strategies {
    (
        |$parameters:ident, $blob:ident, $one_at_a_time:ident|
        known { $($name:ident($type:ty) = $number:path => $make:expr;)* }
        listed { $($own:ident($own_type:ty) = $own_number:literal $word:literal $parameter:expr, $needs_length:literal, $about:literal => $own_make:expr;)* }
    ) => {
        /// One of the strategies. An enumeration and no `dyn`: a decision is made at every visible operation.
        pub enum AnyStrategy<'t> {
            $($name($type),)*
            $($own($own_type),)*
        }

        /// All strategies that the table says everything about.
        pub const LISTED: &[Listed] =
            &[$(Listed { number: $own_number, name: $word, about: $about, parameter: $parameter, needs_length: $needs_length },)*];

        impl<'t> AnyStrategy<'t> {
            /// The strategy with this number; unknown numbers are `random`.
            #[allow(unused_variables)]
            pub fn new(
                which: u32,
                $parameters: &[u64; 8],
                $blob: &'t [u64],
                $one_at_a_time: bool,
            ) -> AnyStrategy<'t> {
                match which {
                    $($number => AnyStrategy::$name($make),)*
                    $($own_number => AnyStrategy::$own($own_make),)*
                    _ => AnyStrategy::RANDOM,
                }
            }
        }

        /// Asks whichever it is.
        macro_rules! delegate {
            ($any:ident.$method:ident $arguments:tt) => {
                match $any {
                    $(AnyStrategy::$name(strategy) => strategy.$method $arguments,)*
                    $(AnyStrategy::$own(strategy) => strategy.$method $arguments,)*
                }
            };
        }
    };
}

strategies! {
    |parameters, blob, one_at_a_time|
    known {
        Random(random::Random) = number::RANDOM => random::Random;
        RoundRobin(round_robin::RoundRobin) = number::ROUND_ROBIN => round_robin::RoundRobin;
        Queue(queue::Queue) = number::QUEUE => queue::Queue::new(one_at_a_time);
        Pct(pct::Pct) = number::PCT => pct::Pct::new(parameters[0], parameters[1]);
        Delay(delay::Delay) = number::DELAY => delay::Delay::new(parameters[0], parameters[1]);
        Pos(pos::Pos) = number::POS => pos::Pos;
        Surw(surw::Surw<'t>) = number::SURW => surw::Surw::new(blob);
        Guided(guided::Guided<'t>) = number::GUIDED => guided::Guided::new(blob);
        Follow(follow::Follow<'t>) = number::FOLLOW => follow::Follow::new(blob);
        Rff(rff::Rff<'t>) = number::RFF => rff::Rff::new(blob);
        Period(period::Period) = number::PERIOD => period::Period::new(parameters[0], parameters[1]);
    }
    listed {
        Preempt(preempt::Preempt) = 11 "preempt" Some((2, 0)), true,
            "at most so many preemptions, at random points; any thread goes where one cannot go on"
            => preempt::Preempt::new(parameters[0], parameters[1]);
    }
}

impl<'t> AnyStrategy<'t> {
    pub const RANDOM: AnyStrategy<'t> = AnyStrategy::Random(random::Random);
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
