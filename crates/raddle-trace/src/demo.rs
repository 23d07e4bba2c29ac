//! Demo files: a run that can be given again, with all that came into it from outside.
//!
//! Lidbury's demos (2019, §4.4) are a folder of files for the seeds, the order of threads, signals, system calls and
//! asynchronous events. This is one file: a magic number, the length of a description in JSON, the description, and one
//! zstd frame with the columns of the journal. Order of threads is run-length encoded; kinds, places and results lie
//! beside each other, each kind of number in its own column, which is what makes them small.
//!
//! Readers trust nothing: lengths are bounded before anything is allocated, and every error names the byte.

use crate::journal::{Journal, Turn, place};
use crate::schedule::{Schedule, Step, StepKind};
use crate::tables::Module;
use serde::{Deserialize, Serialize};
use std::io::Read;

const MAGIC: &[u8; 8] = b"RADDEMO\x01";
const ABOUT_BYTES_MAX: usize = 16 << 20;
/// Most bytes that the columns of a demo may have when unpacked.
const COLUMNS_BYTES_MAX: u64 = 4 << 30;
const ZSTD_LEVEL: i32 = 6;

/// What a demo says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Program and arguments.
    pub command: Vec<String>,
    pub directory: String,
    pub strategy: String,
    pub seed: u64,
    /// The program got its memory at addresses that depend on nothing else.
    pub stable_memory: bool,
    pub preload: bool,
    /// The run ended in a deadlock.
    #[serde(default)]
    pub deadlock: bool,
    /// The signal that ended the program, or 0.
    #[serde(default)]
    pub ended_by: i32,
    /// Threads ran one at a time, also between visible operations.
    #[serde(default)]
    pub one_at_a_time: bool,
    /// Functions whose results it does not hold (`raddle_wire::calls`).
    #[serde(default)]
    pub left_out: Vec<String>,
    /// What online detection looked for while it was recorded; a replay looks for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detecting: Option<Detecting>,
    /// Status as a shell tells it, and hashes of what was printed.
    pub status: u8,
    pub stdout: u64,
    pub stderr: u64,
    /// Spawn paths.
    pub threads: Vec<String>,
    /// Places in the code.
    pub sites: Vec<String>,
}

/// Settings of online detection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detecting {
    /// Bits of [`raddle_wire::region::option`].
    pub options: u64,
    /// By [`raddle_wire::region::detect`].
    pub settings: Vec<u64>,
}

/// A run that can be given again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demo {
    pub about: About,
    pub steps: Vec<DemoStep>,
    /// What the steps that take something from outside are given, in order.
    pub payloads: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoStep {
    /// Indices into [`About::threads`] and [`About::sites`].
    pub thread: u32,
    pub site: u32,
    pub kind: StepKind,
    pub failed: bool,
}

/// A demo could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
pub struct DemoError {
    pub offset: usize,
    pub problem: String,
}

fn problem<T>(offset: usize, problem: impl Into<String>) -> Result<T, DemoError> {
    Err(DemoError { offset, problem: problem.into() })
}

/// Does the file begin as a demo does?
pub fn is_demo(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl Demo {
    /// Makes a demo of a run's journal.
    pub fn new(mut about: About, journal: Journal, modules: &[Module]) -> Demo {
        about.threads = journal.threads;
        let mut known = std::collections::HashMap::new();
        let (mut steps, mut payloads) = (Vec::new(), Vec::new());
        for Turn { thread, kind, failed, pc, payload, .. } in journal.turns {
            let site = *known.entry(pc).or_insert_with(|| {
                about.sites.push(place(modules, pc).unwrap_or_default());
                about.sites.len() as u32 - 1
            });
            if matches!(kind, StepKind::Syscall | StepKind::Handler) {
                payloads.push(payload);
            }
            steps.push(DemoStep { thread: thread as u32, site, kind, failed });
        }
        Demo { about, steps, payloads }
    }

    /// The order of the demo's steps.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::new("demo");
        let names: Vec<_> = self.about.threads.iter().map(|name| schedule.intern(name)).collect();
        let sites: Vec<_> = self.about.sites.iter().map(|name| schedule.intern(name)).collect();
        let nothing = schedule.intern("");
        let mut ordinals = vec![0; names.len()];
        for step in &self.steps {
            let thread = step.thread as usize;
            ordinals[thread] += 1;
            schedule.steps.push(Step {
                thread: names[thread],
                ordinal: ordinals[thread],
                kind: step.kind,
                failed: step.failed,
                object: nothing,
                comment: sites[step.site as usize],
            });
        }
        schedule
    }

    /// The payloads as the runtime reads them: each with its length before it, filled up to whole words.
    pub fn payload(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in &self.payloads {
            bytes.extend((payload.len() as u64).to_le_bytes());
            bytes.extend(payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    pub fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let about = serde_json::to_vec(&self.about)?;
        let mut columns = Vec::new();
        number(&mut columns, self.steps.len() as u64);
        for run in self.steps.chunk_by(|a, b| a.thread == b.thread) {
            number(&mut columns, u64::from(run[0].thread));
            number(&mut columns, run.len() as u64);
        }
        columns.extend(self.steps.iter().map(|step| step.kind as u8 | u8::from(step.failed) << 7));
        for step in &self.steps {
            number(&mut columns, u64::from(step.site));
        }
        for payload in &self.payloads {
            number(&mut columns, payload.len() as u64);
        }
        for payload in &self.payloads {
            columns.extend(payload);
        }
        let packed = zstd::encode_all(columns.as_slice(), ZSTD_LEVEL)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend((about.len() as u32).to_le_bytes());
        bytes.extend(about);
        bytes.extend(packed);
        Ok(bytes)
    }

    pub fn read(bytes: &[u8]) -> Result<Demo, DemoError> {
        if !is_demo(bytes) {
            return problem(0, "not a demo: it does not begin as one");
        }
        let length = match bytes.get(8..12).and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => u32::from_le_bytes(bytes) as usize,
            None => return problem(8, "the file ends too early"),
        };
        if length > ABOUT_BYTES_MAX {
            return problem(8, "the description is too long");
        }
        let Some(about) = bytes.get(12..12 + length) else {
            return problem(12, "the file ends inside its description");
        };
        let about: About = match serde_json::from_slice(about) {
            Ok(about) => about,
            Err(error) => return problem(12, format!("the description cannot be read: {error}")),
        };
        let start = 12 + length;
        let mut columns = Vec::new();
        let unpacked = zstd::stream::read::Decoder::new(&bytes[start..])
            .and_then(|decoder| decoder.take(COLUMNS_BYTES_MAX).read_to_end(&mut columns));
        if let Err(error) = unpacked {
            return problem(start, format!("the columns cannot be unpacked: {error}"));
        }
        Columns { bytes: &columns, at: 0, start }.demo(about)
    }
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

struct Columns<'a> {
    bytes: &'a [u8],
    at: usize,
    start: usize,
}

impl Columns<'_> {
    fn error<T>(&self, text: &str) -> Result<T, DemoError> {
        problem(self.start, format!("{text} (byte {} of the columns)", self.at))
    }

    fn number(&mut self) -> Result<u64, DemoError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else { return self.error("the columns end too early") };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        self.error("a number is too long")
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], DemoError> {
        let Some(end) = self.at.checked_add(bytes).filter(|&end| end <= self.bytes.len()) else {
            return self.error("the columns end too early");
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn demo(mut self, about: About) -> Result<Demo, DemoError> {
        let count = self.number()? as usize;
        // Every step has at least a kind and a site.
        if count > self.bytes.len() {
            return self.error("more steps than there is room for");
        }
        let mut threads = Vec::new();
        while threads.len() < count {
            let (thread, run) = (self.number()?, self.number()? as usize);
            if thread as usize >= about.threads.len() || run == 0 || run > count - threads.len() {
                return self.error("a run of steps does not fit");
            }
            threads.resize(threads.len() + run, thread as u32);
        }
        let kinds = self.take(count)?.to_vec();
        let mut steps = Vec::with_capacity(count);
        let mut payload_count = 0;
        for (thread, byte) in threads.into_iter().zip(kinds) {
            let Some(&(kind, _)) = StepKind::WORDS.get(usize::from(byte & 0x7f)) else {
                return self.error("there is no such operation");
            };
            let site = self.number()?;
            if site as usize >= about.sites.len() {
                return self.error("there is no such place");
            }
            payload_count += usize::from(matches!(kind, StepKind::Syscall | StepKind::Handler));
            steps.push(DemoStep { thread, site: site as u32, kind, failed: byte & 0x80 != 0 });
        }
        let mut lengths = Vec::new();
        for _ in 0..payload_count {
            lengths.push(self.number()? as usize);
        }
        let mut payloads = Vec::new();
        for length in lengths {
            payloads.push(self.take(length)?.to_vec());
        }
        if self.at != self.bytes.len() {
            return self.error("there is something behind the last result");
        }
        Ok(Demo { about, steps, payloads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Rng;

    fn random_demo(seed: u64) -> Demo {
        let mut rng = Rng::new(seed);
        let about = About {
            command: vec!["./server".into()],
            threads: (0..1 + rng.below(4)).map(|n| format!("1.{n}")).collect(),
            sites: (0..1 + rng.below(5)).map(|n| format!("server+{n:#x}")).collect(),
            seed,
            ..About::default()
        };
        let mut demo = Demo { about, ..Demo::default() };
        for _ in 0..rng.below(60) {
            let (kind, _) = StepKind::WORDS[rng.below(StepKind::WORDS.len() as u32) as usize];
            demo.steps.push(DemoStep {
                thread: rng.below(demo.about.threads.len() as u32),
                site: rng.below(demo.about.sites.len() as u32),
                kind,
                failed: rng.below(5) == 0,
            });
            if matches!(kind, StepKind::Syscall | StepKind::Handler) {
                demo.payloads.push((0..rng.below(200)).map(|_| rng.below(256) as u8).collect());
            }
        }
        demo
    }

    #[test]
    fn writing_and_reading_is_the_identity() {
        for seed in 0..300 {
            let demo = random_demo(seed);
            assert_eq!(Demo::read(&demo.to_bytes().unwrap()).as_ref(), Ok(&demo), "seed {seed}");
            assert_eq!(demo.schedule().steps.len(), demo.steps.len());
            assert!(demo.payload().len().is_multiple_of(8));
        }
    }

    #[test]
    fn damaged_demos_are_refused_and_never_panic() {
        for seed in 0..1500 {
            let mut rng = Rng::new(seed);
            let mut bytes = random_demo(seed % 40).to_bytes().unwrap();
            if rng.below(2) == 0 {
                bytes.truncate(rng.below(bytes.len() as u32) as usize);
                assert!(Demo::read(&bytes).is_err(), "seed {seed}");
            } else {
                let at = rng.below(bytes.len() as u32) as usize;
                bytes[at] ^= 1 << rng.below(8);
                let _ = Demo::read(&bytes);
            }
        }
    }
}
