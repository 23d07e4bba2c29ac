//! Definitions given in Rust: a table from call to body.
//!
//! ```
//! use raddle_csp::process::{Equations, Processes};
//! let mut arena = Processes::default();
//! let mut equations = Equations::default();
//! let tick = arena.events.plain("tick");
//! let clock = arena.call("CLOCK");            // declare …
//! let body = arena.prefix(tick, clock);       // … use …
//! equations.define(&arena, clock, body);      // … define
//! ```

use rustc_hash::FxHashMap;

use super::{CallId, Definitions, EvalError, ProcId, Process, Processes};

/// Bodies of calls built beforehand.
#[derive(Clone, Debug, Default)]
pub struct Equations {
    bodies: FxHashMap<CallId, ProcId>,
}

impl Equations {
    /// Gives the call `name` (a term made by [`Processes::call`]) its body; the last definition counts.
    ///
    /// # Panics
    /// If `name` is not a call: that is a slip in the program that builds the model.
    pub fn define(&mut self, arena: &Processes, name: ProcId, body: ProcId) {
        match *arena.get(name) {
            Process::Call(call) => self.bodies.insert(call, body),
            ref other => panic!("only calls can be defined, not {other:?}"),
        };
    }
}

impl Definitions for Equations {
    fn unfold(&mut self, call: CallId, arena: &mut Processes) -> Result<ProcId, EvalError> {
        self.bodies
            .get(&call)
            .copied()
            .ok_or_else(|| EvalError::new(format!("the process {} has no definition", arena.call_name(call))))
    }
}
