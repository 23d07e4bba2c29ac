//! Memory that is counted before it is taken.
//!
//! States of a search go to disk when memory is short; machines cannot. Leaves, compressions and normal forms therefore
//! ask for room as they grow: they estimate the bytes they hold (vectors with the slack of their growth, hash tables with
//! their free slots) and end with a [`CheckError::Memory`] that says what grew, before the system would end the process.
//! The estimates are meant to be a little high. What is asked for includes what the computation holds already, so a check
//! costs an addition and a comparison.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::verdict::CheckError;
use crate::process::Compression;

/// What needs memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// The states of a component are listed.
    Explore,
    /// They are merged by strong bisimulation.
    Reduce,
    Compress(Compression),
    /// The specification's normal form.
    Specification,
    /// The normal form by which determinism is decided.
    Determinism,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Explore => f.write_str("exploring"),
            Work::Reduce => f.write_str("reducing"),
            Work::Compress(how) => write!(f, "`{}` of", how.name()),
            Work::Specification => f.write_str("the normal form of the specification"),
            Work::Determinism => f.write_str("deciding whether there is nondeterminism in"),
        }
    }
}

impl Work {
    /// What to do when there is not enough.
    pub fn advice(self) -> &'static str {
        match self {
            Work::Explore | Work::Reduce | Work::Compress(Compression::Explicate) => {
                "check that its parameters are bounded, compress its parts or raise the memory limit"
            }
            Work::Compress(Compression::StrongBisimulation | Compression::TauLoopFactor) => {
                "compress its parts first or raise the memory limit"
            }
            Work::Compress(_) => "use `sbisim`, compress its parts first or raise the memory limit",
            Work::Specification => {
                "write a specification with fewer hidden choices, use `normal` on its parts or raise the memory limit"
            }
            Work::Determinism => "use `normal` or `diamond` on its parts or raise the memory limit",
        }
    }
}

/// The room that a computation has.
#[derive(Clone, Debug)]
pub struct Room {
    pub work: Work,
    /// Of which process.
    pub name: String,
    /// The definition that process stands in, if it has no name itself.
    pub within: Option<String>,
    /// Bytes that are held while it goes on.
    pub held_bytes: u64,
    pub max_bytes: u64,
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Room {
    /// As much as there is.
    pub fn unlimited() -> Room {
        Room {
            work: Work::Explore,
            name: String::new(),
            within: None,
            held_bytes: 0,
            max_bytes: u64::MAX,
            cancel: None,
        }
    }

    /// An error unless the computation, at so many states, may hold so many bytes.
    pub fn hold(&self, states: usize, bytes: u64) -> Result<(), CheckError> {
        if let Some(cancel) = &self.cancel
            && cancel.load(Ordering::Relaxed)
        {
            return Err(CheckError::Cancelled);
        }
        if self.held_bytes.saturating_add(bytes) > self.max_bytes {
            return Err(CheckError::Memory {
                work: self.work,
                name: self.name.clone(),
                within: self.within.clone(),
                states,
                limit_mb: self.max_bytes >> 20,
            });
        }
        Ok(())
    }

    /// What is left for the next step while `bytes` stay.
    pub fn beside(&self, bytes: u64) -> Room {
        Room { held_bytes: self.held_bytes.saturating_add(bytes), ..self.clone() }
    }

    /// The same room for other work.
    pub fn to(&self, work: Work) -> Room {
        Room { work, ..self.clone() }
    }
}
