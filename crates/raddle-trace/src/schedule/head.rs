//! The head of a schedule: everything that a replay needs beside the steps.
//!
//! A replay takes the program, its arguments, folder, environment and standard input, the options of the runtime and the
//! seed from the file, and nothing from the command line. Paths below the *root* are written relative to it, so that a
//! project folder can be copied together with its evidence; the root of a schedule in a store is the folder that holds the
//! store, of any other schedule the current folder.
//!
//! ```text
//! program build/server
//! argument --selftest
//! folder .
//! environment LD_LIBRARY_PATH .
//! build-id 5b1d…
//! code-id 9f31…
//! source bank.c
//! flag -O2
//! compiler clang-22
//! run memory allocations one-at-a-time
//! seed 7
//! took 120 ms
//! input "two lines\n"
//! aspect "open(#return) after call open_file"
//! property "assert FILES [T= PROGRAM"
//! violates 1
//! ```
//!
//! The *code-id* is a hash of the program's code and constants. It does not depend on where the program was built, as the
//! build-id does: a program with another build-id and the same code-id is the same program.

use super::quote;

/// What the runtime is told beside the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Watch plain accesses.
    pub memory: bool,
    /// Watch them also before the first thread is created.
    pub from_start: bool,
    /// Let no access pass as redundant.
    pub keep_redundant: bool,
    pub allocations: bool,
    /// Threads run one at a time also between their visible operations.
    pub one_at_a_time: bool,
    /// The program's memory lies at addresses that depend on nothing but its own order of allocations.
    pub stable_memory: bool,
    /// The program starts at addresses that are the same each time.
    pub fixed_addresses: bool,
    /// The runtime is loaded into the program, which carries none.
    pub preload: bool,
}

impl RunOptions {
    const WORDS: [&'static str; 8] = [
        "memory",
        "from-start",
        "keep-redundant",
        "allocations",
        "one-at-a-time",
        "stable-memory",
        "fixed-addresses",
        "preload",
    ];

    fn fields(&mut self) -> [&mut bool; 8] {
        [
            &mut self.memory,
            &mut self.from_start,
            &mut self.keep_redundant,
            &mut self.allocations,
            &mut self.one_at_a_time,
            &mut self.stable_memory,
            &mut self.fixed_addresses,
            &mut self.preload,
        ]
    }

    /// The words of the options that are on.
    pub fn words(mut self) -> Vec<&'static str> {
        let on: Vec<bool> = self.fields().iter().map(|field| **field).collect();
        Self::WORDS.into_iter().zip(on).filter(|(_, on)| *on).map(|(word, _)| word).collect()
    }

    /// Switches the option with this word on. False: there is none.
    pub fn set(&mut self, word: &str) -> bool {
        let at = Self::WORDS.iter().position(|known| *known == word);
        match at {
            Some(at) => {
                *self.fields()[at] = true;
                true
            }
            None => false,
        }
    }
}

/// What the program reads from its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing: it is closed or empty.
    #[default]
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// It came from a terminal, or was more than is kept: a replay reads what it is given.
    Unknown,
}

/// Most bytes of standard input that a schedule holds.
pub const INPUT_BYTES_MAX: usize = 1 << 20;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Path of the program; empty in a schedule that says nothing about it.
    pub program: String,
    pub arguments: Vec<String>,
    pub folder: String,
    /// Variables that may matter to the program.
    pub environment: Vec<(String, String)>,
    /// In hexadecimal; empty if the program has none.
    pub build_id: String,
    pub code_id: String,
    /// Files that Raddle compiled the program of, if it did, and what with.
    pub sources: Vec<String>,
    pub flags: Vec<String>,
    pub compiler: String,
    pub options: RunOptions,
    pub seed: u64,
    /// How long the run took that the schedule was made from, in milliseconds; 0: not known. A replay in which a thread computes
    /// for much longer without an operation waits for something that this schedule keeps from happening.
    pub took_ms: u64,
    pub input: Input,
    /// Which places of the program are events, in the aspect language; empty if none are.
    pub aspects: String,
    /// What a run along the schedule violates: a script, and the number of its assertion, from 1.
    pub property: Option<(String, u32)>,
}

impl Head {
    pub(super) fn write(&self, text: &mut String) {
        let mut line = |word: &str, values: &[&str]| {
            text.push_str(word);
            for value in values {
                text.push(' ');
                quote(text, value);
            }
            text.push('\n');
        };
        if !self.program.is_empty() {
            line("program", &[&self.program]);
        }
        for argument in &self.arguments {
            line("argument", &[argument]);
        }
        if !self.folder.is_empty() {
            line("folder", &[&self.folder]);
        }
        for (name, value) in &self.environment {
            line("environment", &[name, value]);
        }
        for (word, value) in [("build-id", &self.build_id), ("code-id", &self.code_id)] {
            if !value.is_empty() {
                line(word, &[value]);
            }
        }
        for source in &self.sources {
            line("source", &[source]);
        }
        for flag in &self.flags {
            line("flag", &[flag]);
        }
        if !self.compiler.is_empty() {
            line("compiler", &[&self.compiler]);
        }
        let words = self.options.words();
        if !words.is_empty() {
            line("run", &words);
        }
        if self.seed != 0 {
            line("seed", &[&self.seed.to_string()]);
        }
        if self.took_ms != 0 {
            line("took", &[&self.took_ms.to_string(), "ms"]);
        }
        for aspect in self.aspects.lines() {
            line("aspect", &[aspect]);
        }
        if let Some((script, assertion)) = &self.property {
            for script_line in script.lines() {
                line("property", &[script_line]);
            }
            line("violates", &[&assertion.to_string()]);
        }
        match &self.input {
            Input::Nothing => {}
            Input::Unknown => line("input", &["unknown"]),
            Input::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(chars) => line("input", &["text", chars]),
                Err(_) => {
                    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    line("input", &["hex", &hex]);
                }
            },
        }
    }
}

/// The bytes that hexadecimal digits stand for.
pub(super) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::*;

    fn full() -> Head {
        let mut options = RunOptions::default();
        for word in RunOptions::WORDS {
            assert!(options.set(word));
        }
        Head {
            program: "build/my server".into(),
            arguments: vec!["--port".into(), String::new(), "a\nb".into()],
            folder: ".".into(),
            environment: vec![("A".into(), "x=y".into()), ("EMPTY".into(), String::new())],
            build_id: "abcd".into(),
            code_id: "0123".into(),
            sources: vec!["bank.c".into()],
            flags: vec!["-O2".into()],
            compiler: "clang-22".into(),
            options,
            seed: u64::MAX,
            took_ms: 120,
            input: Input::Bytes(b"two\nlines\n".to_vec()),
            aspects: "open(#return) after call \"open\"\n\n-- done\n".into(),
            property: Some(("assert STOP [T= PROGRAM\n".into(), 1)),
        }
    }

    #[test]
    fn heads_survive_writing_and_reading() {
        for input in [Input::Nothing, Input::Unknown, Input::Bytes(vec![0, 255, 10]), full().input] {
            let schedule = Schedule { head: Head { input, ..full() }, ..Schedule::new("x") };
            let read = Schedule::parse(&schedule.to_text()).unwrap();
            assert_eq!(read.head, schedule.head);
        }
        let empty = Schedule::new("x");
        assert_eq!(Schedule::parse(&empty.to_text()).unwrap().head, Head::default());
    }

    #[test]
    fn wrong_heads_are_refused_with_their_place() {
        for (text, expected) in [
            ("run fast", "line 2, column 5: `fast` is no option of a run"),
            ("seed x", "line 2, column 6: the seed must be a number, found `x`"),
            ("took long", "line 2, column 6: the duration must be a number of milliseconds, found `long`"),
            ("took 7 s", "line 2, column 8: `ms` expected, found `s`"),
            ("input hex 0", "line 2, column 11: not hexadecimal: `0`"),
            ("input more", "line 2, column 7: `text`, `hex` or `unknown` expected, found `more`"),
        ] {
            let error = Schedule::parse(&format!("raddle-schedule 2\n{text}\n")).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
