//! Reading the reports of the online detector: from words of shared memory to numbers with names.
//!
//! The format is [`raddle_wire::report`]. The words come from a program that may have gone wrong in any way: lengths are
//! clamped to what is there, unknown items are skipped, and what is missing stays empty.

use raddle_wire::report::{
    self as wire, count_of, dependency, home, lock, party, small_of, tag, tag_of, text,
};

pub use raddle_wire::report::{About, Deed, ReportKind};

/// What a program says about how it wants to be looked at, instead of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    pub options: String,
    pub suppressions: String,
}

/// The program's own wishes, if the words are that and no report.
pub fn decode_defaults(words: &[u64]) -> Option<Defaults> {
    let mut found = None;
    let mut rest = words;
    while let Some((&head, after)) = rest.split_first() {
        let (item, next) = after.split_at(count_of(head).min(after.len()));
        rest = next;
        if tag_of(head) != tag::TEXT {
            continue;
        }
        let defaults = found.get_or_insert_with(Defaults::default);
        let Some((&length, words)) = item.split_first() else { continue };
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match small_of(head) {
            text::OPTIONS => defaults.options = text,
            text::SUPPRESSIONS => defaults.suppressions = text,
            _ => {}
        }
    }
    found
}

/// A lock that a party holds, and the stack where it was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawLock {
    pub object: u64,
    pub read: bool,
    pub frames: Vec<u64>,
}

/// One thread's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawParty {
    pub thread: u32,
    /// Bits of [`raddle_wire::record::access`].
    pub aux: u8,
    pub atomic: bool,
    /// The access is the release of the memory.
    pub free: bool,
    /// Where it happened is no longer known.
    pub lost: bool,
    pub bytes: u64,
    pub address: u64,
    /// Program counters, innermost first.
    pub frames: Vec<u64>,
    pub locks: Vec<RawLock>,
}

impl RawParty {
    pub fn writes(&self) -> bool {
        self.aux & raddle_wire::record::access::WRITE != 0
    }
}

/// The allocated memory in which the error happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawBlock {
    pub thread: u32,
    pub start: u64,
    pub bytes: u64,
    pub frames: Vec<u64>,
}

/// Whose memory it is: where the thread lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawOwner {
    pub thread: u32,
    pub on_stack: bool,
    pub pointer: u64,
    /// A program counter of the function, and the frame's canonical address.
    pub frame: Option<(u64, u64)>,
}

/// A thread of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawThread {
    pub index: u32,
    pub parent: u32,
    /// It is its parent's n-th child, from 1.
    pub ordinal: u32,
    pub name: String,
    pub frames: Vec<u64>,
}

/// One report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawReport {
    pub kind: ReportKind,
    pub address: u64,
    pub bytes: u64,
    pub parties: Vec<RawParty>,
    pub block: Option<RawBlock>,
    pub owner: Option<RawOwner>,
    pub threads: Vec<RawThread>,
}

/// Reads the body of an entry.
pub fn decode(words: &[u64]) -> RawReport {
    let mut report = RawReport {
        kind: ReportKind::Unknown(0),
        address: 0,
        bytes: 0,
        parties: Vec::new(),
        block: None,
        owner: None,
        threads: Vec::new(),
    };
    let mut rest = words;
    while let Some((&head, after)) = rest.split_first() {
        let (payload, next) = after.split_at(count_of(head).min(after.len()));
        rest = next;
        let word = |ix: usize| payload.get(ix).copied().unwrap_or(0);
        let frames = |from: usize| payload.get(from..).unwrap_or_default().to_vec();
        let small = small_of(head);
        match tag_of(head) {
            tag::KIND => {
                report.kind = ReportKind::from_number(small);
                (report.address, report.bytes) = (word(0), word(1));
            }
            tag::PARTY => report.parties.push(RawParty {
                thread: small,
                aux: (word(0) & party::AUX_MASK) as u8,
                atomic: word(0) & party::ATOMIC != 0,
                free: word(0) & party::FREE != 0,
                lost: word(0) & party::LOST != 0,
                bytes: word(0) >> party::BYTES_SHIFT,
                address: word(1),
                frames: frames(2),
                locks: Vec::new(),
            }),
            tag::LOCK => {
                if let Some(party) = report.parties.last_mut() {
                    let read = small & lock::READ != 0;
                    party.locks.push(RawLock { object: word(0), read, frames: frames(1) });
                }
            }
            tag::BLOCK => {
                let (start, bytes) = (word(0), word(1));
                report.block = Some(RawBlock { thread: small, start, bytes, frames: frames(2) });
            }
            tag::OWNER => {
                report.owner = Some(RawOwner {
                    thread: small,
                    on_stack: word(0) == u64::from(home::STACK),
                    pointer: word(1),
                    frame: (payload.len() >= 4).then(|| (word(2), word(3))),
                });
            }
            tag::THREAD => {
                let name: Vec<u8> = word(1).to_le_bytes().into_iter().chain(word(2).to_le_bytes()).collect();
                let used = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                report.threads.push(RawThread {
                    index: small,
                    parent: word(0) as u32,
                    ordinal: (word(0) >> 32) as u32,
                    name: String::from_utf8_lossy(&name[..used]).into_owned(),
                    frames: frames(3),
                });
            }
            _ => {}
        }
    }
    report
}

/// A lock: its address, and which of the objects at that address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawLockName {
    pub object: u64,
    pub serial: u64,
}

/// A lock that was held when another was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawHeld {
    pub lock: RawLockName,
    pub read: bool,
    pub pc: u64,
}

/// A thread asked for a lock while it held others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawDependency {
    pub thread: u32,
    pub wanted: RawLockName,
    pub read: bool,
    pub frames: Vec<u64>,
    pub held: Vec<RawHeld>,
    /// Which child of its parent the thread is, which one its parent is, and so on up to the main thread. Empty where not known.
    pub ordinals: Vec<u32>,
}

/// Reads the lock dependencies up to the first that is not complete.
pub fn decode_dependencies(words: &[u64]) -> Vec<RawDependency> {
    let mut list = Vec::new();
    let mut rest = words;
    while let Some((&head, after)) = rest.split_first() {
        if tag_of(head) != tag::DEPENDENCY || count_of(head) > after.len() {
            break;
        }
        let (payload, next) = after.split_at(count_of(head));
        rest = next;
        let [object, serial, how, more @ ..] = payload else { continue };
        let calls = more.iter().position(|&pc| pc == 0).unwrap_or(more.len());
        let more_than_calls = more.get(calls + 1..).unwrap_or_default();
        let held_words = usize::from(*how as u16) * 3;
        let (held, ordinals) = more_than_calls.split_at(held_words.min(more_than_calls.len()));
        let held = held.chunks_exact(3).map(|held| RawHeld {
            lock: RawLockName { object: held[0], serial: held[1] & !dependency::HELD_READ },
            read: held[1] & dependency::HELD_READ != 0,
            pc: held[2],
        });
        list.push(RawDependency {
            thread: small_of(head),
            wanted: RawLockName { object: *object, serial: *serial },
            read: how & dependency::READ != 0,
            frames: more[..calls].to_vec(),
            held: held.collect(),
            ordinals: ordinals.iter().map(|&word| word as u32).collect(),
        });
    }
    list
}

/// Frames of a stack that a report can hold.
pub const FRAMES_MAX: usize = wire::FRAMES_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use raddle_wire::report::kind;

    fn sample() -> Vec<u64> {
        let name = u64::from_le_bytes(*b"worker\0\0");
        vec![
            wire::head(tag::KIND, 2, kind::DATA_RACE),
            0x1000,
            4,
            wire::head(tag::PARTY, 4, 2),
            8 | 4 << party::BYTES_SHIFT,
            0x1000,
            0x400100,
            0x400200,
            wire::head(tag::LOCK, 2, lock::READ),
            0x2000,
            0x400300,
            wire::head(tag::PARTY, 2, u32::MAX),
            party::LOST | party::ATOMIC | 2 << party::BYTES_SHIFT,
            0x1000,
            wire::head(tag::BLOCK, 3, 0),
            0xff0,
            64,
            0x400400,
            wire::head(99, 1, 7),
            12345,
            wire::head(tag::THREAD, 4, 2),
            3 << 32,
            name,
            0,
            0x400500,
        ]
    }

    #[test]
    fn everything_is_read() {
        let report = decode(&sample());
        assert_eq!((report.kind, report.address, report.bytes), (ReportKind::DataRace, 0x1000, 4));
        let [first, second] = report.parties.as_slice() else { panic!("{report:?}") };
        assert_eq!((first.thread, first.bytes, first.writes(), first.lost), (2, 4, true, false));
        assert_eq!(first.frames, [0x400100, 0x400200]);
        assert_eq!(first.locks, [RawLock { object: 0x2000, read: true, frames: vec![0x400300] }]);
        assert!(second.lost && second.atomic && !second.writes());
        assert_eq!(report.block.unwrap().bytes, 64);
        let thread = &report.threads[0];
        assert_eq!((thread.index, thread.parent, thread.ordinal, thread.name.as_str()), (2, 0, 3, "worker"));
    }

    #[test]
    fn dependencies_are_read() {
        let words = [
            wire::head(tag::DEPENDENCY, 3 + 1 + 1 + 3 + 2, 4),
            0x100,
            7,
            1 | dependency::READ,
            0x400100,
            0,
            0x200,
            8 | dependency::HELD_READ,
            0x400200,
            2,
            1,
            wire::head(tag::DEPENDENCY, 3, 4),
        ];
        let list = decode_dependencies(&words);
        assert_eq!(list.len(), 1, "the second is cut off");
        let lock = |object, serial| RawLockName { object, serial };
        let held = vec![RawHeld { lock: lock(0x200, 8), read: true, pc: 0x400200 }];
        let expected = RawDependency {
            thread: 4,
            wanted: lock(0x100, 7),
            read: true,
            frames: vec![0x400100],
            held,
            ordinals: vec![2, 1],
        };
        assert_eq!(list[0], expected);
    }

    proptest! {
        #[test]
        fn damaged_dependencies_are_survived(words in prop::collection::vec(any::<u64>(), 0..12), count in 0usize..20) {
            let mut words = words;
            if let Some(first) = words.first_mut() {
                *first = wire::head(tag::DEPENDENCY, count, 1);
            }
            decode_dependencies(&words);
        }

        /// Whatever the program left in its memory, reading it ends and does not panic.
        #[test]
        fn damage_is_survived(at in 0usize..25, word: u64, length in 0usize..26) {
            let mut words = sample();
            words[at] = word;
            words.truncate(length);
            decode(&words);
        }
    }
}
