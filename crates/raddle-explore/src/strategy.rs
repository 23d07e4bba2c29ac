//! Strategies by name, with their parameters. The runtime makes the choices (`raddle-sched/src/strategy/`, one file a
//! strategy); here is what a user says and what the runtime is told. A strategy of which nobody has to know more than its number and a
//! parameter has no line here: it comes from the table there ([`LISTED`]).

use crate::estimate::Estimate;
use raddle_sched::strategy::{LISTED, Listed};
use raddle_wire::region::{noise, option, steer, strategy};

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Every thread that can go is equally likely.
    Random,
    /// One visible operation each, in order of creation.
    RoundRobin,
    /// First come, first served.
    Queue,
    /// Random priorities and `depth - 1` changes of them (PCT).
    Pct { depth: u32 },
    /// Random priorities of operations, drawn anew where they race (partial order sampling).
    Pos,
    /// All orders of the operations on one object are equally likely (selectively uniform random walk).
    Surw,
    /// No preemption but for this many delays (delay-bounded).
    Delay { delays: u32 },
    /// Reads see certain writes, found out from what was seen before (reads-from fuzzing).
    Rff,
    /// Stretches of each thread's operations in a random order (periodical scheduling).
    Period { periods: u32 },
    /// The threads run free, with sleeps and yields thrown in.
    Noise(Noise),
    /// One of the table's, and its parameter.
    Listed(&'static Listed, u32),
}

/// Which noise, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Of a thousand chances, so many are taken.
    pub per_mille: u32,
    /// Longest sleep in microseconds; 0 yields.
    pub strength_us: u32,
    pub before: bool,
    pub after: bool,
    /// Bit k: operations of kind k; 0: all.
    pub kinds: u64,
    /// What it does.
    pub how: How,
    /// Only at some of the variables.
    pub one_variable: bool,
}

/// What noise does to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Sleep,
    Busy,
    Halt,
    Meet,
}

impl How {
    const WORDS: [(How, &'static str, u64); 4] = [
        (How::Sleep, "sleep", noise::SLEEP),
        (How::Busy, "busy", noise::BUSY),
        (How::Halt, "halt", noise::HALT),
        (How::Meet, "meet", noise::MEET),
    ];
}

impl Default for Noise {
    fn default() -> Self {
        Noise {
            per_mille: 100,
            strength_us: 200,
            before: true,
            after: true,
            kinds: 0,
            how: How::Sleep,
            one_variable: false,
        }
    }
}

/// Strategies that are known here.
const NAMES: [&str; 10] =
    ["random", "round-robin", "queue", "pct", "pos", "surw", "delay", "rff", "period", "noise"];

/// What the command line accepts.
pub fn names() -> Vec<&'static str> {
    NAMES.into_iter().chain(LISTED.iter().map(|listed| listed.name)).collect()
}

const DEPTH_DEFAULT: u32 = 3;
const DELAYS_DEFAULT: u32 = 2;
const PERIODS_DEFAULT: u32 = 3;
/// Most changes of priority or delays that the runtime keeps.
const POINTS_MAX: u32 = 15;

/// A strategy's name could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownStrategy {
    #[error("there is no strategy `{0}`; choose one of {names}, or give a parameter as in `pct:3`", names = names().join(", "))]
    Name(String),
    #[error("`pct:0` looks for nothing: errors have a depth of 1 at least, as in `pct:1`")]
    NoDepth,
    #[error(
        "`{0}` says nothing to noise; it takes probability=PER-MILLE, strength=MICROSECONDS, where=before|after|both, \
         how=sleep|busy|halt|meet, at=all|variable and only=OPERATION+OPERATION, with commas between them"
    )]
    Noise(String),
}

impl std::str::FromStr for Strategy {
    type Err = UnknownStrategy;

    /// `NAME`, `NAME:PARAMETER`, or `noise:KEY=VALUE,...`.
    fn from_str(text: &str) -> Result<Strategy, UnknownStrategy> {
        let unknown = || UnknownStrategy::Name(text.to_owned());
        if let Some(settings) = text.strip_prefix("noise:") {
            return Noise::parse(settings).map(Strategy::Noise);
        }
        let (name, parameter) = match text.split_once(':') {
            Some((name, number)) => {
                let number: u32 = number.parse().map_err(|_| unknown())?;
                if number > POINTS_MAX {
                    return Err(unknown());
                }
                (name, Some(number))
            }
            None => (text, None),
        };
        match (name, parameter) {
            ("random", None) => Ok(Strategy::Random),
            ("round-robin", None) => Ok(Strategy::RoundRobin),
            ("queue", None) => Ok(Strategy::Queue),
            ("pos", None) => Ok(Strategy::Pos),
            ("surw", None) => Ok(Strategy::Surw),
            ("rff", None) => Ok(Strategy::Rff),
            ("period", Some(0)) => Err(unknown()),
            ("period", periods) => Ok(Strategy::Period { periods: periods.unwrap_or(PERIODS_DEFAULT) }),
            ("noise", None) => Ok(Strategy::Noise(Noise::default())),
            ("pct", Some(0)) => Err(UnknownStrategy::NoDepth),
            ("pct", depth) => Ok(Strategy::Pct { depth: depth.unwrap_or(DEPTH_DEFAULT) }),
            ("delay", delays) => Ok(Strategy::Delay { delays: delays.unwrap_or(DELAYS_DEFAULT) }),
            _ => {
                let listed = LISTED.iter().find(|listed| listed.name == name).ok_or_else(unknown)?;
                match (listed.parameter, parameter) {
                    (None, None) => Ok(Strategy::Listed(listed, 0)),
                    (Some((default, least)), given) if given.is_none_or(|number| number >= least) => {
                        Ok(Strategy::Listed(listed, given.unwrap_or(default)))
                    }
                    _ => Err(unknown()),
                }
            }
        }
    }
}

impl Noise {
    fn parse(settings: &str) -> Result<Noise, UnknownStrategy> {
        let mut noise = Noise::default();
        for setting in settings.split(',') {
            let problem = || UnknownStrategy::Noise(setting.to_owned());
            let (key, value) = setting.split_once('=').ok_or_else(problem)?;
            match key {
                "probability" => {
                    noise.per_mille =
                        value.parse().ok().filter(|&number| number <= 1000).ok_or_else(problem)?;
                }
                "strength" => noise.strength_us = value.parse().map_err(|_| problem())?,
                "where" => {
                    (noise.before, noise.after) = match value {
                        "before" => (true, false),
                        "after" => (false, true),
                        "both" => (true, true),
                        _ => return Err(problem()),
                    };
                }
                "how" => {
                    let known = How::WORDS.into_iter().find(|(_, word, _)| *word == value);
                    noise.how = known.map(|(how, ..)| how).ok_or_else(problem)?;
                }
                "at" => {
                    noise.one_variable = match value {
                        "variable" => true,
                        "all" => false,
                        _ => return Err(problem()),
                    };
                }
                "only" => {
                    for word in value.split('+') {
                        let words = raddle_wire::step::WORDS;
                        let kind = words.iter().position(|known| *known == word).ok_or_else(problem)?;
                        noise.kinds |= 1 << kind;
                    }
                }
                _ => return Err(problem()),
            }
        }
        Ok(noise)
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Strategy::Random => f.write_str("random"),
            Strategy::RoundRobin => f.write_str("round-robin"),
            Strategy::Queue => f.write_str("queue"),
            Strategy::Pct { depth } => write!(f, "pct:{depth}"),
            Strategy::Pos => f.write_str("pos"),
            Strategy::Surw => f.write_str("surw"),
            Strategy::Delay { delays } => write!(f, "delay:{delays}"),
            Strategy::Rff => f.write_str("rff"),
            Strategy::Period { periods } => write!(f, "period:{periods}"),
            Strategy::Listed(Listed { name, parameter: None, .. }, _) => f.write_str(name),
            Strategy::Listed(listed, parameter) => write!(f, "{}:{parameter}", listed.name),
            Strategy::Noise(noise) => {
                let place = match (noise.before, noise.after) {
                    (true, false) => "before",
                    (false, true) => "after",
                    _ => "both",
                };
                write!(
                    f,
                    "noise:probability={},strength={},where={place}",
                    noise.per_mille, noise.strength_us
                )?;
                let how = How::WORDS.iter().find(|(how, ..)| *how == noise.how && noise.how != How::Sleep);
                if let Some((_, word, _)) = how {
                    write!(f, ",how={word}")?;
                }
                if noise.one_variable {
                    f.write_str(",at=variable")?;
                }
                for (index, word) in raddle_wire::step::WORDS.iter().enumerate() {
                    if noise.kinds >> index & 1 != 0 {
                        let first = noise.kinds & ((1 << index) - 1) == 0;
                        write!(f, "{}{word}", if first { ",only=" } else { "+" })?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl Strategy {
    /// How the runtime is to steer for this strategy.
    pub fn steer(self) -> u32 {
        if matches!(self, Strategy::Noise(_)) { steer::NOISE } else { steer::CONTROL }
    }

    /// Number of the strategy and its parameters, as the region carries them. `steps` estimates the decisions of a run.
    pub fn encode(self, steps: u64) -> (u32, [u64; 8]) {
        let mut parameters = [0; 8];
        parameters[1] = steps.max(1);
        let number = match self {
            Strategy::Random => strategy::RANDOM,
            Strategy::RoundRobin => strategy::ROUND_ROBIN,
            Strategy::Queue => strategy::QUEUE,
            Strategy::Pct { depth } => {
                parameters[0] = u64::from(depth);
                strategy::PCT
            }
            Strategy::Pos => strategy::POS,
            Strategy::Surw => strategy::SURW,
            Strategy::Rff => strategy::RFF,
            Strategy::Period { periods } => {
                parameters[0] = u64::from(periods);
                strategy::PERIOD
            }
            Strategy::Delay { delays } => {
                parameters[0] = u64::from(delays);
                strategy::DELAY
            }
            Strategy::Listed(listed, parameter) => {
                parameters[0] = u64::from(parameter);
                listed.number
            }
            Strategy::Noise(settings) => {
                parameters[noise::PER_MILLE] = u64::from(settings.per_mille);
                parameters[noise::STRENGTH_US] = u64::from(settings.strength_us);
                parameters[noise::PLACE] =
                    u64::from(settings.before) * noise::BEFORE + u64::from(settings.after) * noise::AFTER;
                parameters[noise::KINDS] = settings.kinds;
                let how = How::WORDS.iter().find(|(how, ..)| *how == settings.how);
                parameters[noise::HOW] = how.map_or(noise::SLEEP, |&(_, _, number)| number);
                parameters[noise::ONE_VARIABLE] = u64::from(settings.one_variable);
                strategy::RANDOM
            }
        };
        (number, parameters)
    }

    /// What else the runtime has to know, as words of the region's blob.
    pub fn words(self, estimate: &Estimate) -> Vec<u64> {
        match self {
            Strategy::Surw => estimate.walks(),
            Strategy::Rff => estimate.constraints.clone(),
            Strategy::Random
            | Strategy::RoundRobin
            | Strategy::Queue
            | Strategy::Pct { .. }
            | Strategy::Pos
            | Strategy::Delay { .. }
            | Strategy::Period { .. }
            | Strategy::Listed(..)
            | Strategy::Noise(_) => Vec::new(),
        }
    }

    /// Does the next run depend on what the last one showed?
    pub fn learns(self) -> bool {
        self == Strategy::Rff
    }

    /// How many schedules it has at most, where that is known from the choices of a run.
    pub fn schedules(self, steps: u64) -> Option<u64> {
        match self {
            Strategy::Delay { delays } => {
                raddle_sched::strategy::delay::schedules(u64::from(delays), steps.max(1))
            }
            Strategy::Random
            | Strategy::RoundRobin
            | Strategy::Queue
            | Strategy::Pct { .. }
            | Strategy::Pos
            | Strategy::Surw
            | Strategy::Rff
            | Strategy::Period { .. }
            | Strategy::Listed(..)
            | Strategy::Noise(_) => None,
        }
    }

    /// Does the strategy have to know how long a run is, or who does what in it?
    pub fn needs_estimate(self) -> bool {
        match self {
            Strategy::Pct { .. } | Strategy::Delay { .. } | Strategy::Period { .. } | Strategy::Surw => true,
            Strategy::Listed(listed, _) => listed.needs_length,
            Strategy::Random
            | Strategy::RoundRobin
            | Strategy::Queue
            | Strategy::Pos
            | Strategy::Rff
            | Strategy::Noise(_) => false,
        }
    }

    /// Does the strategy recognise objects by their addresses?
    pub fn needs_fixed_addresses(self) -> bool {
        matches!(self, Strategy::Surw | Strategy::Rff)
    }

    /// Does one processor do? Noise needs real parallelism.
    pub fn stays_on_one_processor(self) -> bool {
        !matches!(self, Strategy::Noise(_))
    }

    /// Does the same seed give the same run?
    pub fn is_deterministic(self) -> bool {
        !matches!(self, Strategy::Queue | Strategy::Noise(_))
    }

    /// Options of a run under this strategy. Where the seed decides, threads run one at a time also between visible
    /// operations: with data races, the order of plain accesses matters too.
    pub fn options(self) -> u64 {
        if self.is_deterministic() { option::ONE_AT_A_TIME } else { 0 }
    }

    /// Does each run with a seed of its own draw its schedule for itself, from the same distribution? Then what was not seen in N
    /// runs is rare. `delay` and `period` go through their schedules in order, others learn or leave the choice to the system.
    pub fn samples(self) -> bool {
        match self {
            Strategy::Random | Strategy::Pct { .. } | Strategy::Pos | Strategy::Surw => true,
            Strategy::RoundRobin
            | Strategy::Queue
            | Strategy::Rff
            | Strategy::Delay { .. }
            | Strategy::Period { .. }
            // The table does not say how they draw.
            | Strategy::Listed(..)
            | Strategy::Noise(_) => false,
        }
    }

    /// Do two runs with different seeds differ at all?
    pub fn is_seeded(self) -> bool {
        !matches!(self, Strategy::RoundRobin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for text in [
            "random",
            "round-robin",
            "queue",
            "pct:4",
            "pos",
            "surw",
            "delay:0",
            "rff",
            "period:2",
            "noise:probability=100,strength=200,where=both",
            "noise:probability=7,strength=0,where=after,only=lock+sem-post",
            "noise:probability=7,strength=9,where=both,how=halt,at=variable,only=lock",
        ] {
            assert_eq!(text.parse::<Strategy>().unwrap().to_string(), text);
        }
        assert_eq!("pct".parse(), Ok(Strategy::Pct { depth: DEPTH_DEFAULT }));
        assert_eq!("noise".parse(), Ok(Strategy::Noise(Noise::default())));
        for text in [
            "",
            "pct:",
            "pct:0",
            "pct:x",
            "pct:99",
            "random:1",
            "fair",
            "noise:x",
            "noise:where=up",
            "noise:only=fly",
        ] {
            assert!(text.parse::<Strategy>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_name_is_a_strategy() {
        for name in names() {
            let strategy: Strategy = name.parse().unwrap();
            assert!(strategy.to_string().starts_with(name));
        }
        // No two strategies have one number, and those of the table are described.
        let mut numbers: Vec<u32> = names()
            .into_iter()
            .filter(|&name| name != "noise")
            .map(|name| name.parse::<Strategy>().unwrap().encode(1).0)
            .chain([strategy::GUIDED, strategy::FOLLOW])
            .collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{numbers:?}");
        assert!(LISTED.iter().all(|listed| listed.about.len() > 10));
    }
}
