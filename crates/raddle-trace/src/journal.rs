//! Reading the journal of a steered run (`raddle_wire::journal`): its turns, and the schedule that repeats them.
//!
//! The journal was written by the tested program, so nothing in it is trusted: an entry that does not fit ends the journal
//! there, as if the program had been killed in the middle of writing it.

use crate::schedule::{NameIx, Schedule, Step, StepKind};
use crate::tables::Module;
use raddle_wire::journal::{BORN, ENTRY_WORDS, has_payload, is_for_search};
use raddle_wire::step::{self, StepWord};

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index into [`Journal::threads`].
    pub thread: usize,
    pub kind: StepKind,
    pub failed: bool,
    /// Which operation of its thread, from 1.
    pub ordinal: u32,
    pub pc: u64,
    pub object: u64,
    /// What came from outside.
    pub payload: Vec<u8>,
}

/// All turns of a run.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Spawn paths.
    pub threads: Vec<String>,
    pub turns: Vec<Turn>,
}

/// More threads than a step word can name.
const THREADS_MAX: usize = 1 << 16;

impl Journal {
    pub fn read(bytes: &[u8]) -> Journal {
        let mut journal = Journal::default();
        let mut children: Vec<u32> = Vec::new();
        let mut rest = bytes;
        while let Some((entry, after)) = rest.split_at_checked(ENTRY_WORDS * 8) {
            rest = after;
            let word = |at: usize| u64::from_le_bytes(entry[at * 8..at * 8 + 8].try_into().expect("8 bytes"));
            let step = StepWord::unpack(word(0));
            if step.kind == BORN {
                let parent = step.ordinal as usize;
                let name = match (journal.threads.len(), children.get_mut(parent)) {
                    (0, _) => "1".to_owned(),
                    (_, Some(count)) => {
                        *count += 1;
                        format!("{}.{count}", journal.threads[parent])
                    }
                    (_, None) => return journal,
                };
                if usize::from(step.thread) != journal.threads.len() || journal.threads.len() >= THREADS_MAX {
                    return journal;
                }
                journal.threads.push(name);
                children.push(0);
                continue;
            }
            if is_for_search(step.kind) {
                continue;
            }
            let Some(&(kind, _)) = StepKind::WORDS.get(usize::from(step.kind)) else { return journal };
            // Operations are counted from 1.
            if usize::from(step.thread) >= journal.threads.len() || step.ordinal == 0 {
                return journal;
            }
            let mut payload = Vec::new();
            let mut object = word(2);
            if has_payload(step.kind) {
                let Some(bytes) = usize::try_from(object).ok().filter(|&bytes| bytes <= rest.len()) else {
                    return journal;
                };
                payload = rest[..bytes].to_vec();
                rest = &rest[bytes.next_multiple_of(8).min(rest.len())..];
                object = 0;
            }
            journal.turns.push(Turn {
                thread: usize::from(step.thread),
                kind,
                failed: step.failed,
                ordinal: step.ordinal,
                pc: word(1),
                object,
                payload,
            });
        }
        journal
    }

    /// Hash by which the runtime knows a thread.
    pub fn hash(&self, thread: usize) -> u64 {
        step::hash(step::HASH_START, self.threads[thread].as_bytes())
    }

    /// How often the running thread changes.
    pub fn context_switches(&self) -> usize {
        self.turns.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count()
    }

    /// The schedule that repeats the run. Objects are told in the numbering of these modules, places in the code by
    /// `source` as far as it knows them.
    pub fn schedule(
        &self,
        about: &str,
        modules: &[Module],
        mut source: impl FnMut(u64) -> Option<String>,
    ) -> Schedule {
        let mut schedule = Schedule::new(about);
        let names: Vec<NameIx> = self.threads.iter().map(|name| schedule.intern(name)).collect();
        let mut forked = 0;
        for turn in &self.turns {
            // The object of these is a thread, which has a name; whatever else a step acts on has a place.
            let object = if turn.kind == StepKind::Fork {
                forked += 1;
                self.threads.get(forked).cloned().unwrap_or_default()
            } else if turn.kind == StepKind::Join {
                let child = (turn.object & !(1 << 63)) as usize;
                self.threads.get(child).cloned().unwrap_or_default()
            } else {
                place(modules, turn.object).unwrap_or_default()
            };
            let comment = source(turn.pc).or_else(|| place(modules, turn.pc)).unwrap_or_default();
            let (object, comment) = (schedule.intern(&object), schedule.intern(&comment));
            schedule.steps.push(Step {
                thread: names[turn.thread],
                ordinal: turn.ordinal,
                kind: turn.kind,
                failed: turn.failed,
                object,
                comment,
            });
        }
        schedule
    }
}

/// An address as `module+0x1234`.
pub fn place(modules: &[Module], address: u64) -> Option<String> {
    let module = modules.iter().find(|module| (module.start..module.end).contains(&address))?;
    let file = module.path.rsplit('/').next().unwrap_or(&module.path);
    Some(format!("{file}+{:#x}", address.wrapping_sub(module.bias)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Rng;

    fn entry(thread: u16, kind: u8, ordinal: u32, object: u64, payload: &[u8]) -> Vec<u8> {
        let step = StepWord { thread, kind, failed: false, ordinal };
        let mut bytes: Vec<u8> =
            [step.pack(), 0x1010, object].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn example() -> Vec<u8> {
        [
            entry(0, BORN, 0, 0, &[]),
            entry(1, BORN, 0, 0, &[]),
            entry(0, step::FORK, 1, 0, &[]),
            entry(1, step::SYSCALL, 1, 3, b"abc"),
            entry(2, BORN, 1, 0, &[]),
            entry(1, step::FORK, 2, 0, &[]),
            entry(2, step::LOCK, 1, 0x1800, &[]),
        ]
        .concat()
    }

    #[test]
    fn an_operation_without_a_number_ends_the_journal() {
        let bytes = [example(), entry(0, step::LOCK, 0, 0, &[]), entry(0, step::LOCK, 2, 0, &[])].concat();
        let journal = Journal::read(&bytes);
        assert_eq!(journal.turns.len(), 4);
        let schedule = journal.schedule("test", &[], |_| None);
        assert_eq!(Schedule::parse(&schedule.to_text()), Ok(schedule));
    }

    #[test]
    fn turns_have_names_and_payloads() {
        let journal = Journal::read(&example());
        assert_eq!(journal.threads, ["1", "1.1", "1.1.1"]);
        assert_eq!(journal.turns[1].payload, b"abc");
        assert_eq!(journal.context_switches(), 2);
        let module =
            Module { path: "/x/bank".into(), start: 0x1000, end: 0x2000, bias: 0x1000, build_id: vec![] };
        let text = journal.schedule("test", &[module], |_| None).to_text();
        assert!(text.contains("step 1 1 fork 1.1  # bank+0x10"), "{text}");
        assert!(text.contains("step 1.1.1 1 lock bank+0x800  # bank+0x10"), "{text}");
    }

    #[test]
    fn damaged_journals_end_early_and_never_panic() {
        let good = example();
        for case in 0..2000 {
            let mut rng = Rng::new(case);
            let mut bytes = good.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u32) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            bytes.truncate(rng.below(bytes.len() as u32 + 1) as usize);
            assert!(Journal::read(&bytes).turns.len() <= 4, "case {case}");
        }
    }
}
