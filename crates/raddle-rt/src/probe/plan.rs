//! The plan in this process: read in place, checked once as a whole, so that hooks need not check anything.

use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::probe::{
    CONDITION_WORDS, EVENT_WORDS, HEAD_WORDS, MAGIC, MODULE_WORDS, MODULES_MAX, PATCH_BYTES_MAX, PATCH_WORDS,
    PROBE_WORDS, RANGE_WORDS, SLOT_BYTES, VALUE_WORDS, source, text_place,
};

static PLAN: AtomicUsize = AtomicUsize::new(0);
static WORDS: AtomicUsize = AtomicUsize::new(0);
/// Where the plan's modules lie, as the bias plus one; 0: not loaded yet.
static BIASES: [AtomicUsize; MODULES_MAX] = [const { AtomicUsize::new(0) }; MODULES_MAX];
/// Where their blobs lie.
static BLOBS: [AtomicUsize; MODULES_MAX] = [const { AtomicUsize::new(0) }; MODULES_MAX];

/// A plan that was found sound.
#[derive(Clone, Copy)]
pub struct Plan {
    words: &'static [u64],
}

/// A table of the plan: where it begins, and how many entries it has.
#[derive(Clone, Copy)]
struct Table {
    at: usize,
    count: usize,
    words: usize,
}

impl Table {
    fn entry(self, words: &'static [u64], ix: usize) -> Option<&'static [u64]> {
        let at = (ix < self.count).then(|| self.at.checked_add(ix * self.words))??;
        words.get(at..at.checked_add(self.words)?)
    }
}

/// The plan, once it is loaded.
#[inline]
pub fn plan() -> Option<Plan> {
    let start = PLAN.load(Ordering::Acquire);
    if start == 0 {
        return None;
    }
    let count = WORDS.load(Ordering::Relaxed);
    // SAFETY: mapped by `publish`'s caller with this many words, never unmapped.
    let words = unsafe { core::slice::from_raw_parts(start as *const u64, count) };
    Some(Plan { words })
}

/// Makes the words the plan of this process, if they are one.
pub fn publish(words: &'static [u64]) -> bool {
    let plan = Plan { words };
    if plan.check().is_none() {
        return false;
    }
    WORDS.store(words.len(), Ordering::Relaxed);
    PLAN.store(words.as_ptr() as usize, Ordering::Release);
    true
}

pub fn bias(module: usize) -> Option<usize> {
    BIASES.get(module)?.load(Ordering::Acquire).checked_sub(1)
}

pub fn blob(module: usize) -> usize {
    BLOBS.get(module).map_or(0, |blob| blob.load(Ordering::Relaxed))
}

pub fn place(module: usize, bias: usize, blob: usize) {
    BLOBS[module].store(blob, Ordering::Relaxed);
    BIASES[module].store(bias + 1, Ordering::Release);
}

impl Plan {
    fn table(self, at: usize, words: usize) -> Table {
        Table { at: self.words[at + 1] as usize, count: self.words[at] as usize, words }
    }

    pub fn modules(self) -> usize {
        (self.words[2] as usize).min(MODULES_MAX)
    }

    pub fn module(self, ix: usize) -> Option<Module> {
        let entry = self.table(2, MODULE_WORDS).entry(self.words, ix)?;
        Some(Module { plan: self, entry })
    }

    #[inline]
    pub fn probe(self, number: u64) -> Option<&'static [u64]> {
        self.table(4, PROBE_WORDS).entry(self.words, number as usize)
    }

    pub fn ranges(self) -> usize {
        self.words[6] as usize
    }

    #[inline]
    pub fn range(self, ix: usize) -> Option<&'static [u64]> {
        self.table(6, RANGE_WORDS).entry(self.words, ix)
    }

    /// The events from a position on: one after the other.
    pub fn event(self, at: usize) -> Option<Event> {
        let head = self.words.get(at..at.checked_add(EVENT_WORDS)?)?;
        let fields = usize::try_from(head[2]).ok()?.checked_mul(VALUE_WORDS)?;
        let conditions = usize::try_from(head[3]).ok()?.checked_mul(CONDITION_WORDS)?;
        let start = at + EVENT_WORDS;
        let middle = start.checked_add(fields)?;
        let end = middle.checked_add(conditions)?;
        Some(Event {
            what: head[0],
            name: head[1],
            fields: self.words.get(start..middle)?,
            conditions: self.words.get(middle..end)?,
            next: end,
        })
    }

    pub fn text(self, word: u64) -> &'static [u8] {
        let (at, bytes) = text_place(word);
        // SAFETY: `check` has looked at every text; words are larger than bytes.
        let all =
            unsafe { core::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), self.words.len() * 8) };
        all.get(at..at.saturating_add(bytes)).unwrap_or_default()
    }

    /// Are all positions inside?
    fn check(self) -> Option<()> {
        let words = self.words;
        (words.len() >= HEAD_WORDS && words[0] == MAGIC && words[1] as usize == words.len()).then_some(())?;
        (self.words[2] as usize <= MODULES_MAX).then_some(())?;
        for ix in 0..self.modules() {
            let module = self.module(ix)?;
            module.blob()?;
            for patch in 0..module.patches() {
                let (_, bytes, ..) = module.patch(patch)?;
                (bytes <= PATCH_BYTES_MAX).then_some(())?;
            }
            for slot in 0..module.slots() {
                (module.slot(slot)?.checked_add(8)? <= module.blob()?.len()).then_some(())?;
            }
        }
        for ix in 0..words[4] {
            let probe = self.probe(ix)?;
            ((probe[0] as usize) < self.modules()).then_some(())?;
            for list in [4, 6] {
                let mut at = probe[list] as usize;
                for _ in 0..probe[list + 1] {
                    at = self.event(at)?.next;
                }
            }
        }
        for ix in 0..self.ranges() {
            let range = self.range(ix)?;
            ((range[0] as usize) < self.modules()).then_some(())?;
            self.event(range[4] as usize)?;
        }
        Some(())
    }
}

#[derive(Clone, Copy)]
pub struct Module {
    plan: Plan,
    entry: &'static [u64],
}

impl Module {
    pub fn identity(self) -> u64 {
        self.entry[0]
    }

    /// From the module's bias to its blob.
    pub fn distance(self) -> usize {
        self.entry[1] as usize
    }

    pub fn blob(self) -> Option<&'static [u8]> {
        let (at, bytes) = (self.entry[2] as usize, self.entry[3] as usize);
        let words = self.plan.words.get(at..at.checked_add(bytes.div_ceil(8))?)?;
        (bytes >= SLOT_BYTES).then_some(())?;
        // SAFETY: inside the words.
        Some(unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), bytes) })
    }

    pub fn patches(self) -> usize {
        self.entry[4] as usize
    }

    /// Address, how many bytes, the old ones and the new ones.
    pub fn patch(self, ix: usize) -> Option<(usize, usize, [u64; 2], [u64; 2])> {
        let table = Table { at: self.entry[5] as usize, count: self.patches(), words: PATCH_WORDS };
        let patch = table.entry(self.plan.words, ix)?;
        Some((patch[0] as usize, patch[1] as usize, [patch[2], patch[3]], [patch[4], patch[5]]))
    }

    pub fn slots(self) -> usize {
        self.entry[6] as usize
    }

    pub fn slot(self, ix: usize) -> Option<usize> {
        let table = Table { at: self.entry[7] as usize, count: self.slots(), words: 1 };
        Some(table.entry(self.plan.words, ix)?[0] as usize)
    }
}

/// An event of the plan.
#[derive(Clone, Copy)]
pub struct Event {
    pub what: u64,
    pub name: u64,
    fields: &'static [u64],
    conditions: &'static [u64],
    pub next: usize,
}

/// A value, as the plan says it.
#[derive(Clone, Copy)]
pub struct Value {
    pub source: u8,
    pub dereferences: u8,
    pub bytes: u8,
    pub signed: bool,
    pub which: u64,
}

impl Value {
    fn of(words: &[u64]) -> Value {
        let head = words[0];
        Value {
            source: head as u8,
            dereferences: (head >> 8) as u8,
            bytes: (head >> 16) as u8,
            signed: head >> 24 & 1 != 0,
            which: words[1],
        }
    }

    pub fn is_word(self) -> bool {
        self.source == source::WORD
    }
}

impl Event {
    pub fn fields(self) -> impl Iterator<Item = Value> {
        self.fields.chunks_exact(VALUE_WORDS).map(Value::of)
    }

    /// What is compared, the relation, and with what.
    pub fn conditions(self) -> impl Iterator<Item = (Value, u64, Value)> {
        self.conditions
            .chunks_exact(CONDITION_WORDS)
            .map(|words| (Value::of(&words[..2]), words[2], Value::of(&words[3..])))
    }
}
