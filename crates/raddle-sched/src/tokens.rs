//! Signals that wait for whoever takes them.
//!
//! Whom a signal of a condition variable wakes is not said by the standard. A search that chose at the signal would have to branch
//! there; instead a signal leaves a *token*, which any thread may take that waited before the signal was sent. Then the choice is
//! which of them goes first, and that is a choice like all others.
//!
//! A token that no waiter is left for (its waiter gave up) is dropped: of the tokens in order of time, the k-th needs at
//! least k waiters that began before it.

/// Signals that may be unanswered at once. Further ones are lost, as if nobody had waited.
const TOKENS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    on: usize,
    time: u64,
}

/// All unanswered signals, the oldest first.
pub struct Tokens {
    tokens: [Token; TOKENS_MAX],
    count: usize,
}

impl Tokens {
    pub const NONE: Tokens = Tokens { tokens: [Token { on: 0, time: 0 }; TOKENS_MAX], count: 0 };

    fn of(&self, on: usize) -> usize {
        self.tokens[..self.count].iter().filter(|token| token.on == on).count()
    }

    fn remove(&mut self, at: usize) {
        self.tokens.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }

    /// Leaves up to `count` signals, no more than there are waiters without one. How many.
    pub fn leave(&mut self, on: usize, time: u64, count: usize, waiters: usize) -> usize {
        let unanswered = waiters.saturating_sub(self.of(on));
        let left = count.min(unanswered).min(TOKENS_MAX - self.count);
        self.tokens[self.count..self.count + left].fill(Token { on, time });
        self.count += left;
        left
    }

    /// Takes the oldest signal for somebody who has waited since then.
    pub fn take(&mut self, on: usize, since: u64) -> bool {
        let fits = |token: &Token| token.on == on && token.time > since;
        let found = self.tokens[..self.count].iter().position(fits);
        if let Some(at) = found {
            self.remove(at);
        }
        found.is_some()
    }

    /// Drops signals that nobody can take; `waiters` says how many have waited since before a time.
    pub fn keep_answerable(&mut self, on: usize, waiters: impl Fn(u64) -> usize) {
        let (mut at, mut kept) = (0, 0);
        while at < self.count {
            let Token { on: other, time } = self.tokens[at];
            if other == on && waiters(time) <= kept {
                self.remove(at);
                continue;
            }
            kept += usize::from(other == on);
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_for_those_who_waited_before_it() {
        let mut tokens = Tokens::NONE;
        assert_eq!(tokens.leave(8, 5, 1, 0), 0, "nobody waits: it is lost");
        assert_eq!(tokens.leave(8, 5, 1, 1), 1);
        assert!(!tokens.take(8, 6), "came too late");
        assert!(!tokens.take(16, 1), "waits elsewhere");
        assert!(tokens.take(8, 1));
        assert!(!tokens.take(8, 1), "one signal wakes one thread");
    }

    #[test]
    fn a_broadcast_is_for_all_who_have_no_signal_yet() {
        let mut tokens = Tokens::NONE;
        assert_eq!(tokens.leave(8, 5, 1, 3), 1);
        assert_eq!(tokens.leave(8, 6, usize::MAX, 3), 2);
        assert_eq!(tokens.leave(8, 7, 1, 3), 0);
    }

    #[test]
    fn a_signal_goes_with_the_last_who_could_take_it() {
        let mut tokens = Tokens::NONE;
        tokens.leave(8, 5, 1, 1);
        // That waiter gave up; another one came later.
        tokens.keep_answerable(8, |time| usize::from(time > 7));
        assert_eq!(tokens.leave(8, 9, 1, 1), 1, "the later one is signalled");
    }
}
