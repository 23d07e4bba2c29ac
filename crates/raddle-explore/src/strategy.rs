//! Strategies by name, with their parameters. The runtime makes the choices (`raddle-rt/src/steer/strategy/`, one file a
//! strategy); here is what a user says and what the runtime is told.

use raddle_wire::region::strategy;

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
    /// No preemption but for this many delays (delay-bounded).
    Delay { delays: u32 },
}

/// What the command line accepts.
pub const NAMES: [&str; 5] = ["random", "round-robin", "queue", "pct", "delay"];

const DEPTH_DEFAULT: u32 = 3;
const DELAYS_DEFAULT: u32 = 2;
/// Most changes of priority or delays that the runtime keeps.
const POINTS_MAX: u32 = 15;

/// A strategy's name could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy `{name}`; choose one of {}, or give a parameter as in `pct:3`", NAMES.join(", "))]
pub struct UnknownStrategy {
    pub name: String,
}

impl std::str::FromStr for Strategy {
    type Err = UnknownStrategy;

    /// `NAME` or `NAME:PARAMETER`.
    fn from_str(text: &str) -> Result<Strategy, UnknownStrategy> {
        let unknown = || UnknownStrategy { name: text.to_owned() };
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
            ("pct", depth) => Ok(Strategy::Pct { depth: depth.unwrap_or(DEPTH_DEFAULT).max(1) }),
            ("delay", delays) => Ok(Strategy::Delay { delays: delays.unwrap_or(DELAYS_DEFAULT) }),
            _ => Err(unknown()),
        }
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Strategy::Random => f.write_str("random"),
            Strategy::RoundRobin => f.write_str("round-robin"),
            Strategy::Queue => f.write_str("queue"),
            Strategy::Pct { depth } => write!(f, "pct:{depth}"),
            Strategy::Delay { delays } => write!(f, "delay:{delays}"),
        }
    }
}

impl Strategy {
    /// Number of the strategy and its parameters, as the region carries them. `steps` estimates the decisions of a run.
    pub fn encode(self, steps: u64) -> (u32, [u64; 8]) {
        let mut parameters = [0; 8];
        let number = match self {
            Strategy::Random => strategy::RANDOM,
            Strategy::RoundRobin => strategy::ROUND_ROBIN,
            Strategy::Queue => strategy::QUEUE,
            Strategy::Pct { depth } => {
                parameters[0] = u64::from(depth);
                strategy::PCT
            }
            Strategy::Delay { delays } => {
                parameters[0] = u64::from(delays);
                strategy::DELAY
            }
        };
        parameters[1] = steps.max(1);
        (number, parameters)
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
        for text in ["random", "round-robin", "queue", "pct:4", "delay:0"] {
            assert_eq!(text.parse::<Strategy>().unwrap().to_string(), text);
        }
        assert_eq!("pct".parse(), Ok(Strategy::Pct { depth: DEPTH_DEFAULT }));
        for text in ["", "pct:", "pct:x", "pct:99", "random:1", "fair"] {
            assert!(text.parse::<Strategy>().is_err(), "{text}");
        }
    }
}
