//! How the many runs of a program were made, in one line.

/// Runs of one program, added up over its fork servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Fork servers that were asked.
    pub servers: u32,
    /// Those whose last runs were all forked.
    pub given_up: u32,
    /// Runs of all kinds.
    pub runs: u64,
    /// Runs in processes that were kept.
    pub kept: u64,
    /// Runs that were begun there and made again by a fork.
    pub repeated: u64,
    pub why: Why,
}

/// Why runs were not made in a process that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Why {
    #[default]
    Unknown,
    NotWanted,
    Strategy,
    Options,
    System,
    Call(String),
    Threads,
    Attributes,
    Nobody,
    Gone,
    /// With this seed.
    Disagreed(u64),
    /// At this address.
    Memory(u64),
}

impl Why {
    /// Is it an error of Raddle's?
    fn is_ours(&self) -> bool {
        matches!(self, Why::Disagreed(_) | Why::Memory(_))
    }

    fn text(&self) -> String {
        match self {
            Why::Unknown => "there were too few runs to compare the two".to_owned(),
            Why::NotWanted => "as asked for".to_owned(),
            Why::Strategy => "under this strategy several threads run at a time".to_owned(),
            Why::Options => "the options of these runs watch the program, or lay out its memory".to_owned(),
            Why::System => "the system or its C library does not allow more".to_owned(),
            Why::Call(name) => format!("the program makes the system call `{name}`"),
            Why::Threads => "the program makes more threads than can be kept".to_owned(),
            Why::Attributes => "the program makes threads with stacks or priorities of their own".to_owned(),
            Why::Nobody => "its threads wait where the scheduler does not see it".to_owned(),
            Why::Gone => "a process that was to make many runs ended".to_owned(),
            Why::Disagreed(seed) => format!(
                "with seed {seed} a run in a kept process differed from the forked one, which is a bug in raddle; please report it"
            ),
            Why::Memory(address) => format!(
                "memory at {address:#x} was not put back in a kept process, which is a bug in raddle; please report it"
            ),
        }
    }
}

impl Pace {
    pub fn add(&mut self, other: Pace) {
        self.servers += other.servers;
        self.given_up += other.given_up;
        self.runs += other.runs;
        self.kept += other.kept;
        self.repeated += other.repeated;
        if self.why == Why::Unknown || other.why.is_ours() {
            self.why = other.why;
        }
    }

    /// Which mode was used, and why.
    pub fn sentence(&self) -> String {
        if self.servers == 0 {
            return "mode exec: the program was started for each run".to_owned();
        }
        if self.kept == 0 || self.given_up == self.servers {
            return format!("mode fork: {}", self.why.text());
        }
        let mut text =
            format!("mode fibers: {} of {} runs in processes that were kept", self.kept, self.runs);
        if self.repeated > 0 {
            let times =
                if self.repeated == 1 { "once".to_owned() } else { format!("{} times", self.repeated) };
            text.push_str(&format!("; {times} a run had to be made again by a fork ({})", self.why.text()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_the_mode_and_why() {
        let whole = Pace { servers: 1, runs: 1000, kept: 980, ..Pace::default() };
        assert_eq!(whole.sentence(), "mode fibers: 980 of 1000 runs in processes that were kept");
        let forked = Pace { servers: 1, given_up: 1, why: Why::Call("fork".into()), ..Pace::default() };
        assert_eq!(forked.sentence(), "mode fork: the program makes the system call `fork`");
        assert_eq!(Pace::default().sentence(), "mode exec: the program was started for each run");
    }

    #[test]
    fn an_error_of_ours_is_said_before_anything_else() {
        let mut sum = Pace { servers: 1, given_up: 1, why: Why::Call("read".into()), ..Pace::default() };
        sum.add(Pace { servers: 1, given_up: 1, why: Why::Disagreed(7), ..Pace::default() });
        assert!(sum.sentence().contains("seed 7") && sum.sentence().contains("bug in raddle"));
    }
}
