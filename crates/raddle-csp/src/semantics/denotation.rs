//! What a process denotes, up to a bound: traces, stable failures and divergences as plain tables.
//!
//! Over an alphabet of at most [`EVENTS_MAX`] events and traces of at most `length` events everything is enumerated.
//! A trace is a number (see [`Traces`]); its refusals are a bit set over all subsets of the alphabet with `✓`. Nothing is
//! clever, on purpose: this is what the engine is held against.

/// Largest alphabet: refusal sets over three events and `✓` are the 16 bits of a word.
pub const EVENTS_MAX: usize = 3;

/// A set of refusal sets: bit `x` is set if the refusal set with the characteristic number `x` belongs.
pub type Refusals = u16;

/// All traces of at most `length` events over `events` events, numbered: ⟨⟩ is 0, and shorter ones come first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traces {
    pub events: usize,
    pub length: usize,
}

impl Traces {
    /// Number of the first trace of the given length.
    pub fn first(self, length: usize) -> usize {
        (0..length).map(|l| self.events.pow(l as u32)).sum()
    }

    pub fn count(self) -> usize {
        self.first(self.length + 1)
    }

    /// The number of a trace.
    pub fn number(self, trace: &[u8]) -> usize {
        self.first(trace.len()) + trace.iter().fold(0, |code, &e| code * self.events + e as usize)
    }

    /// The trace with a number.
    pub fn trace(self, number: usize) -> Vec<u8> {
        let length = (0..=self.length).rev().find(|&l| self.first(l) <= number).expect("⟨⟩ is the first");
        let mut code = number - self.first(length);
        let mut trace = vec![0; length];
        for event in trace.iter_mut().rev() {
            *event = (code % self.events) as u8;
            code /= self.events;
        }
        trace
    }

    pub fn all(self) -> impl Iterator<Item = (usize, Vec<u8>)> {
        (0..self.count()).map(move |n| (n, self.trace(n)))
    }
}

/// The characteristic number of `✓` in a refusal set over `events` events.
pub fn tick_bit(events: usize) -> usize {
    1 << events
}

/// The refusal sets for which `keep` holds.
pub fn refusals(events: usize, keep: impl Fn(usize) -> bool) -> Refusals {
    (0..1usize << (events + 1)).filter(|&x| keep(x)).fold(0, |set, x| set | 1 << x)
}

/// See the module's head. Entry `n` of a table belongs to the trace with number `n`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denotation {
    pub space: Traces,
    /// `s` is a trace.
    pub traces: Vec<bool>,
    /// `s⌢⟨✓⟩` is a trace.
    pub ticks: Vec<bool>,
    /// Refusals of stable states after `s`, and those that `✓` after `s` brings.
    pub failures: Vec<Refusals>,
    /// `s` is a divergence or extends one.
    pub divergences: Vec<bool>,
    /// Whether a trace longer than the bound may have been left out.
    pub truncated: bool,
}

impl Denotation {
    /// No behaviour at all, not even ⟨⟩: the start for collecting.
    pub fn nothing(space: Traces) -> Denotation {
        let count = space.count();
        Denotation {
            space,
            traces: vec![false; count],
            ticks: vec![false; count],
            failures: vec![0; count],
            divergences: vec![false; count],
            truncated: false,
        }
    }

    /// The closure conditions of the models: what `✓` allows to be refused, and that divergence goes on for ever.
    pub fn closed(mut self) -> Denotation {
        let space = self.space;
        for (n, trace) in space.all() {
            if self.ticks[n] {
                self.failures[n] |= refusals(space.events, |x| x & tick_bit(space.events) == 0);
            }
            if let Some((_, before)) = trace.split_last() {
                self.divergences[n] |= self.divergences[space.number(before)];
            }
        }
        self
    }

    /// The same process looked at less far.
    pub fn cut(&self, length: usize) -> Denotation {
        let space = Traces { length, ..self.space };
        let n = space.count();
        let longer = self.traces[n.min(self.traces.len())..].iter().any(|&t| t);
        Denotation {
            space,
            traces: self.traces[..n].to_vec(),
            ticks: self.ticks[..n].to_vec(),
            failures: self.failures[..n].to_vec(),
            divergences: self.divergences[..n].to_vec(),
            truncated: self.truncated || longer,
        }
    }

    /// Whether there is a trace as long as the bound: it may go on.
    pub fn reaches_bound(&self) -> bool {
        self.traces[self.space.first(self.space.length)..].iter().any(|&t| t)
    }

    fn fails(&self, n: usize) -> Refusals {
        self.failures[n]
    }

    /// Length of the shortest behaviour of `other` that is not one of `self`, in the traces model (a `✓` counts as an
    /// event); `None` if there is none within the bound.
    pub fn trace_violation(&self, other: &Denotation) -> Option<usize> {
        let lengths = self.space.all().filter_map(|(n, trace)| {
            if other.traces[n] && !self.traces[n] {
                Some(trace.len())
            } else if other.ticks[n] && !self.ticks[n] {
                Some(trace.len() + 1)
            } else {
                None
            }
        });
        lengths.min()
    }

    /// The same in stable failures.
    pub fn failure_violation(&self, other: &Denotation) -> Option<usize> {
        let refusal = self.space.all().filter(|(n, _)| other.fails(*n) & !self.fails(*n) != 0);
        refusal.map(|(_, t)| t.len()).chain(self.trace_violation(other)).min()
    }

    /// The same in failures-divergences: a divergence of `self` allows everything from there on.
    pub fn divergence_violation(&self, other: &Denotation) -> Option<usize> {
        let violations = self.space.all().filter_map(|(n, trace)| {
            if self.divergences[n] {
                return None;
            }
            if other.divergences[n]
                || other.fails(n) & !self.fails(n) != 0
                || (other.traces[n] && !self.traces[n])
            {
                Some(trace.len())
            } else if other.ticks[n] && !self.ticks[n] {
                Some(trace.len() + 1)
            } else {
                None
            }
        });
        violations.min()
    }

    /// Length of the shortest trace after which everything, `✓` included, is refused.
    pub fn deadlock(&self) -> Option<usize> {
        let everything = (1usize << (self.space.events + 1)) - 1;
        self.space.all().find(|(n, _)| self.failures[*n] & 1 << everything != 0).map(|(_, t)| t.len())
    }

    /// Length of the shortest divergence.
    pub fn divergence(&self) -> Option<usize> {
        self.space.all().find(|(n, _)| self.divergences[*n]).map(|(_, t)| t.len())
    }

    /// Length of the shortest trace `s` with `s⌢⟨a⟩` a trace and `{a}` refused after it; or, in `FD`, of the shortest
    /// divergence if that is not longer. Traces as long as the bound are not looked at: what follows is not known.
    pub fn nondeterminism(&self, with_divergence: bool) -> Option<usize> {
        let space = self.space;
        let inside = space.all().filter(|(_, t)| t.len() < space.length);
        inside
            .filter(|(n, trace)| {
                if with_divergence && self.divergences[*n] {
                    return true;
                }
                let refused = |bit: usize| self.failures[*n] & 1 << bit != 0;
                let choice = (0..space.events).any(|e| {
                    let mut longer = trace.clone();
                    longer.push(e as u8);
                    self.traces[space.number(&longer)] && refused(1 << e)
                });
                choice || (self.ticks[*n] && refused(tick_bit(space.events)))
            })
            .map(|(_, t)| t.len())
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_traces_match() {
        for events in 1..=EVENTS_MAX {
            let space = Traces { events, length: 4 };
            for (n, trace) in space.all() {
                assert_eq!(space.number(&trace), n);
            }
        }
    }
}
