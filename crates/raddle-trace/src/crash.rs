//! Reading crash reports (`raddle_wire::crash`): what a program died of, and where each of its threads stood.
//!
//! The block was written by a program that was about to die, and lies in memory that the program can write at any time, so
//! nothing in it is trusted: a block whose check does not fit, or whose counts do not, is [`Damaged`]. Reading is total.
//!
//! Program counters are addresses of the run, which [`crate::symbols::Symbolizer::call_frames`] with the run's modules makes places of. Those of
//! frames are return addresses, as everywhere in traces, or made to look like one (one byte into the instruction that faulted); [`CrashReport::pc`]
//! is the processor's own. Where a thread crashed inside the runtime (in an atomic operation
//! on a pointer that is null, say), the innermost frame lies in the runtime's own code and the second one is the program's.

use crate::region::Region;
use crate::schedule::StepKind;
use raddle_wire::crash::{
    BODY_WORDS, CRASH_VERSION, EndBlock, FRAMES_MAX, HEAD_WORDS, NAME_MAX, NO_HOLDER, TEXT_MAX,
    THREAD_HEAD_WORDS, THREADS_MAX, cause, check, flag, state, text,
};
use raddle_wire::region::PHASES;
use std::sync::atomic::Ordering;

/// What a program died of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashReport {
    pub signal: i32,
    /// `si_code`: what kind of fault, or who sent the signal (0 and below).
    pub code: i32,
    /// The address that could not be accessed, for a fault; 0 for a signal that somebody sent.
    pub address: u64,
    /// Spawn path of the crashed thread; empty for one that the runtime did not know.
    pub thread: String,
    /// The instruction that faulted, or that the signal interrupted.
    pub pc: u64,
    pub assertion: Option<Assertion>,
    /// What the C library said when it aborted the program (`double free or corruption (out)`), if there was no assertion.
    pub message: Option<String>,
    /// The crashed thread first.
    pub threads: Vec<CrashedThread>,
    /// Threads that were alive; more than `threads` when there was no room for all.
    pub alive: usize,
    /// False: the program died before the report was finished. What there is, is right.
    pub complete: bool,
}

/// An assertion that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// As in the source; `error N` for `assert_perror`.
    pub expression: String,
    pub file: String,
    pub line: u32,
    /// Empty where it is not told.
    pub function: String,
}

/// One thread at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashedThread {
    /// Spawn path.
    pub name: String,
    /// As [`raddle_wire::region::PartyEntry::thread`].
    pub index: u32,
    /// Hash of the spawn path, as [`raddle_wire::region::PartyEntry::path`].
    pub path: u64,
    /// Return addresses, innermost first.
    pub frames: Vec<u64>,
    /// The stack is deeper than `frames`.
    pub cut: bool,
    pub waits: Option<Wait>,
    /// What it was doing, as the end of a sentence, in a steered run.
    pub phase: Option<&'static str>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// An operation of a steered run that would block.
    Operation {
        kind: StepKind,
        object: u64,
        /// Index of the thread that holds the object.
        holder: Option<u32>,
    },
    /// A system call, by its number and first argument: for a futex the word that is waited for.
    Call { number: u32, argument: u64 },
}

/// Where the threads of a steered run stood when the runtime ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndStacks {
    /// One of [`raddle_wire::region::outcome`].
    pub outcome: u32,
    /// Those of the outcome's parties first, in their order.
    pub threads: Vec<CrashedThread>,
    pub alive: usize,
}

/// What the runtime left about the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Crash(CrashReport),
    Outcome(EndStacks),
}

impl End {
    pub fn crash(self) -> Option<CrashReport> {
        match self {
            End::Crash(report) => Some(report),
            End::Outcome(_) => None,
        }
    }

    /// The threads of either.
    pub fn threads(&self) -> &[CrashedThread] {
        match self {
            End::Crash(report) => &report.threads,
            End::Outcome(stacks) => &stacks.threads,
        }
    }
}

/// The program has overwritten the report, or another version wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the crash report in the shared memory is damaged")]
pub struct Damaged;

impl Region {
    /// What the runtime left about the end of the run; `None` if the program ended by itself.
    pub fn end(&self) -> Result<Option<End>, Damaged> {
        read_block(self.end_block())
    }

    /// As [`Region::end`], for run number `run` of a fork server whose result has not been consumed yet.
    pub fn end_of_run(&self, run: u32) -> Result<Option<End>, Damaged> {
        read_block(self.end_block_of_run(run))
    }
}

fn read_block(block: &EndBlock) -> Result<Option<End>, Damaged> {
    let found = block.state.load(Ordering::Acquire);
    if found == state::EMPTY || found == state::CLAIMED {
        return Ok(None);
    }
    let used = block.used.load(Ordering::Relaxed) as usize;
    let cells = block.body.get(..used).ok_or(Damaged)?;
    let words: Vec<u64> = cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
    if check(words.iter().copied()) != block.check.load(Ordering::Relaxed) {
        return Err(Damaged);
    }
    read(&words, found == state::COMPLETE).map(Some).ok_or(Damaged)
}

/// Reads the words of a report. `None`: they are none.
pub fn read(words: &[u64], complete: bool) -> Option<End> {
    if words.len() > BODY_WORDS {
        return None;
    }
    let mut words = Words(words);
    let head = words.take(HEAD_WORDS)?;
    let (version, why) = halves(head[0]);
    let (signal, code) = halves(head[1]);
    let (_, alive) = halves(head[4]);
    let (count, kind) = halves(head[5]);
    let (line, expression) = halves(head[6]);
    let (file, function) = halves(head[7]);
    if version != CRASH_VERSION || count as usize > THREADS_MAX || alive < count {
        return None;
    }
    let lengths = [expression, file, function].map(|length| length as usize);
    let texts = words.texts(lengths)?;
    let threads: Vec<CrashedThread> = (0..count).map(|_| words.thread()).collect::<Option<_>>()?;
    if !words.0.is_empty() {
        return None;
    }
    let alive = alive as usize;
    if why == cause::OUTCOME {
        return Some(End::Outcome(EndStacks { outcome: signal, threads, alive }));
    }
    let [expression, file, function] = texts;
    let (assertion, message) = match kind {
        text::NONE => (None, None),
        text::ASSERTION => (Some(Assertion { expression, file, line, function }), None),
        text::MESSAGE => (None, Some(expression)),
        _ => return None,
    };
    (why == cause::SIGNAL).then(|| {
        End::Crash(CrashReport {
            signal: signal as i32,
            code: code as i32,
            address: head[2],
            thread: threads.first().map_or_else(String::new, |thread| thread.name.clone()),
            pc: head[3],
            assertion,
            message,
            threads,
            alive,
            complete,
        })
    })
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The words that have not been read yet.
struct Words<'a>(&'a [u64]);

impl<'a> Words<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u64]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes: Vec<u8> =
            self.take(count.div_ceil(8))?.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(count);
        Some(bytes)
    }

    /// Texts that stand one behind the other.
    fn texts(&mut self, lengths: [usize; 3]) -> Option<[String; 3]> {
        let total = lengths.iter().try_fold(0usize, |sum, &length| sum.checked_add(length))?;
        if total > TEXT_MAX {
            return None;
        }
        let bytes = self.bytes(total)?;
        let (first, rest) = bytes.split_at(lengths[0]);
        let (second, third) = rest.split_at(lengths[1]);
        Some([first, second, third].map(|text| String::from_utf8_lossy(text).into_owned()))
    }

    fn thread(&mut self) -> Option<CrashedThread> {
        let head = self.take(THREAD_HEAD_WORDS)?;
        let (index, flags) = halves(head[0]);
        let (lengths, what) = halves(head[2]);
        let (name, frames) = ((lengths & 0xffff) as usize, (lengths >> 16) as usize);
        let (holder, phase) = halves(head[4]);
        if name > NAME_MAX || frames > FRAMES_MAX {
            return None;
        }
        let name = String::from_utf8_lossy(&self.bytes(name)?).into_owned();
        let frames = self.take(frames)?.to_vec();
        let waits = match flags & (flag::OPERATION | flag::CALL) {
            0 => None,
            flag::OPERATION => Some(Wait::Operation {
                kind: StepKind::WORDS.get(what as usize)?.0,
                object: head[3],
                holder: (holder != NO_HOLDER).then_some(holder),
            }),
            flag::CALL => Some(Wait::Call { number: what, argument: head[3] }),
            _ => return None,
        };
        Some(CrashedThread {
            name,
            index,
            path: head[1],
            frames,
            cut: flags & flag::CUT != 0,
            waits,
            // Phase 0 is that of a thread that is not steered.
            phase: PHASES.get(phase as usize).copied().filter(|_| phase != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Rng;
    use crate::region::RegionConfig;
    use raddle_wire::crash::{Head, ThreadHead, Writer};
    use raddle_wire::step;

    fn head_of(name: &str, index: u32) -> ThreadHead<'_> {
        ThreadHead {
            index,
            path: step::hash(step::HASH_START, name.as_bytes()),
            name: name.as_bytes(),
            flags: 0,
            what: 0,
            object: 0,
            holder: NO_HOLDER,
            phase: 0,
        }
    }

    fn region() -> Region {
        Region::create(&RegionConfig { server: true, ..RegionConfig::default() }).unwrap()
    }

    const HEAD: Head = Head { cause: cause::SIGNAL, signal: 6, code: -6, address: 0, pc: 0x1234, thread: 2 };

    /// A report as the runtime writes it.
    fn write(block: &EndBlock) {
        assert!(block.claim());
        let mut writer = Writer::begin(block, HEAD);
        writer.texts(text::ASSERTION, 17, [b"balance >= 0", b"bank.c", b"withdraw"]);
        writer.seal(false, 1);
        writer.thread(head_of("1.2", 2), &[0x1234, 0x5678]);
        writer.seal(false, 1);
        let mut waiting = head_of("1", 0);
        waiting.flags = flag::OPERATION;
        (waiting.what, waiting.object, waiting.holder, waiting.phase) = (u32::from(step::JOIN), 9, 2, 4);
        writer.thread(waiting, &[0x9999]);
        let mut calling = head_of("1.1", 1);
        (calling.flags, calling.what, calling.object) = (flag::CALL, 202, 0x7000);
        writer.thread(calling, &[]);
        writer.seal(true, 3);
    }

    #[test]
    fn what_was_written_is_read() {
        let region = region();
        assert_eq!(region.end(), Ok(None));
        write(region.end_block());
        let report = region.end().unwrap().and_then(End::crash).expect("a crash");
        assert_eq!((report.signal, report.code, report.pc), (6, -6, 0x1234));
        assert_eq!(report.thread, "1.2");
        assert_eq!(
            report.assertion,
            Some(Assertion {
                expression: "balance >= 0".into(),
                file: "bank.c".into(),
                line: 17,
                function: "withdraw".into()
            })
        );
        assert_eq!(report.threads[0].frames, [0x1234, 0x5678]);
        let waits = Wait::Operation { kind: StepKind::Join, object: 9, holder: Some(2) };
        assert_eq!(report.threads[1].waits, Some(waits));
        assert_eq!(report.threads[1].phase, Some("is blocked"));
        assert_eq!(report.threads[2].waits, Some(Wait::Call { number: 202, argument: 0x7000 }));
        assert!(report.complete && report.alive == 3);
        assert!(!region.end_block().claim(), "the first one wins");
    }

    #[test]
    fn a_report_travels_with_its_run() {
        let region = region();
        write(region.end_block());
        region.end_block_of_run(67).copy_from(region.end_block());
        region.end_block().clear();
        region.end_block_of_run(4).copy_from(region.end_block());
        assert!(region.end_of_run(3).unwrap().is_some(), "run 67 stands in the place of run 3");
        assert_eq!(region.end_of_run(4), Ok(None));
    }

    #[test]
    fn a_report_that_was_cut_off_tells_what_it_has() {
        let region = region();
        let block = region.end_block();
        assert!(block.claim());
        assert_eq!(region.end(), Ok(None));
        let mut writer = Writer::begin(block, HEAD);
        writer.seal(false, 1);
        // Written, and never sealed.
        writer.thread(head_of("1.2", 2), &[1, 2, 3]);
        let report = region.end().unwrap().and_then(End::crash).expect("a crash");
        assert_eq!((report.signal, report.complete, report.threads.len()), (6, false, 0));
    }

    #[test]
    fn deep_stacks_and_many_threads_are_cut_and_say_so() {
        let region = region();
        let block = region.end_block();
        assert!(block.claim());
        let mut writer = Writer::begin(block, HEAD);
        let long = [b'x'; 2 * TEXT_MAX];
        writer.texts(text::ASSERTION, 1, [&long, &long, &long]);
        let name = "1.".repeat(NAME_MAX);
        let deep: Vec<u64> = (0..100).collect();
        let fit = (0..1000).filter(|&index| writer.thread(head_of(&name, index), &deep)).count();
        assert_eq!(fit, THREADS_MAX);
        writer.seal(true, 1000);
        let report = region.end().unwrap().and_then(End::crash).expect("a crash");
        assert_eq!((report.threads.len(), report.alive), (THREADS_MAX, 1000));
        assert!(report.threads.iter().all(|thread| thread.cut && thread.frames.len() == FRAMES_MAX));
        let Some(Assertion { expression, file, function, .. }) = report.assertion else {
            panic!("an assertion")
        };
        assert_eq!(expression.len() + file.len() + function.len(), TEXT_MAX);
    }

    #[test]
    fn a_block_that_the_program_overwrote_is_refused() {
        let region = region();
        write(region.end_block());
        let block = region.end_block();
        let used = block.used.load(Ordering::Relaxed);
        for at in 0..used as usize {
            let good = block.body[at].fetch_xor(1 << 40, Ordering::Relaxed);
            assert_eq!(region.end(), Err(Damaged), "word {at}");
            block.body[at].store(good, Ordering::Relaxed);
        }
        for wrong in [0, used - 1, used + 1, u32::MAX] {
            block.used.store(wrong, Ordering::Relaxed);
            assert_eq!(region.end(), Err(Damaged), "{wrong} words");
        }
    }

    #[test]
    fn no_words_make_the_reader_panic() {
        let region = region();
        write(region.end_block());
        let block = region.end_block();
        let used = block.used.load(Ordering::Relaxed) as usize;
        let good: Vec<u64> = block.body[..used].iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        assert!(read(&good, true).is_some());
        for case in 0..20_000 {
            let mut rng = Rng::new(case);
            let mut words = good.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(words.len() as u32) as usize;
                words[at] ^= u64::from(rng.below(256)) << (8 * rng.below(8));
            }
            words.truncate(rng.below(words.len() as u32 + 1) as usize);
            if let Some(end) = read(&words, true) {
                assert!(end.threads().len() <= THREADS_MAX, "case {case}");
            }
        }
    }
}
