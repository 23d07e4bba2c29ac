//! Dialects: the ways in which other tools write STD text.
//!
//! All of them share lines and bars; they differ in the words for conditions and in what a word means:
//!
//! | dialect | what marks it |
//! | --- | --- |
//! | RAPID | `r w acq rel fork join`, and what the head of [`super`] lists beside them |
//! | SUnhang | a wait is `rel(X)`, `wait(X)`, later `req(X)`, `acq(X)`: `wait` is where it *begins*; `fork(9)` means thread `T9` |
//! | RFF (C) | `wait_sleep(C)`, `wait_wake(C,T)`, `sig(C)`, `signal(C,T)`, `sigAll(C)`, `malloc(A,N)`, `free(A)`; threads are kernel ids, `fork` and `join` name POSIX threads, and a line `pthread(P) = tid(T)` says which is which |
//! | RV-Predict | accesses have values: `r(x,5)`, `w(x=5)` |
//!
//! Nothing has to be said beforehand, because no word means two things in one place: a thread that waits for a lock which
//! it does not hold begins to wait, one that still holds it (as the trace has it) was woken. What was seen is told at the
//! end. A dialect that is forced decides where a file is odd.

use crate::ids::ObjectId;

/// How STD text is to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InputDialect {
    /// By what the file shows.
    #[default]
    Auto,
    Rapid,
    Sunhang,
    RffC,
    RvPredict,
}

impl InputDialect {
    pub const ALL: [(&'static str, InputDialect); 5] = [
        ("auto", InputDialect::Auto),
        ("rapid", InputDialect::Rapid),
        ("sunhang", InputDialect::Sunhang),
        ("rff-c", InputDialect::RffC),
        ("rv-predict", InputDialect::RvPredict),
    ];
}

impl std::str::FromStr for InputDialect {
    type Err = String;

    fn from_str(text: &str) -> Result<InputDialect, String> {
        let found = InputDialect::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, dialect)| *dialect).ok_or_else(|| {
            let names = InputDialect::ALL.map(|(name, _)| name).join(", ");
            format!("there is no dialect `{text}`; there are {names}")
        })
    }
}

impl std::fmt::Display for InputDialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = InputDialect::ALL.iter().find(|(_, dialect)| dialect == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or("auto"))
    }
}

/// What a file showed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub sunhang: bool,
    pub rff: bool,
    pub values: bool,
    /// Some locations do not fit into 32 bits.
    pub long_locations: bool,
}

impl Marks {
    /// One line about the file.
    pub fn sentence(self, forced: InputDialect) -> String {
        let name = match (forced, self) {
            (InputDialect::Sunhang, _) => "SUnhang",
            (InputDialect::RffC, _) => "RFF for C",
            (InputDialect::RvPredict, _) => "RV-Predict",
            (InputDialect::Auto, Marks { rff: true, .. }) => "RFF for C",
            (InputDialect::Auto, Marks { sunhang: true, .. }) => "SUnhang",
            (InputDialect::Auto, Marks { values: true, .. }) => "RV-Predict",
            (InputDialect::Auto | InputDialect::Rapid, _) => "RAPID",
        };
        let how = if forced == InputDialect::Auto { "recognised" } else { "as told" };
        let values = if self.values { "; the values of accesses are not used" } else { "" };
        let long = if self.long_locations { "; long locations are shown by their low 32 bits" } else { "" };
        format!("STD text as {name} writes it ({how}){values}{long}")
    }
}

/// The wait that a thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub cond: ObjectId,
    pub lock: ObjectId,
    /// The trace did not show the lock's release, so it may not show its acquisition.
    pub implied: bool,
}
