//! Events and sets of events.
//!
//! An event is a channel with the values of its fields, already rendered; the engine only ever sees its number. `τ` and
//! `✓` have fixed numbers so that the hot paths can test for them without a table.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// The number of an event in its [`EventTable`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EventId(pub u32);

impl EventId {
    /// The internal event `τ`.
    pub const TAU: EventId = EventId(0);
    /// The termination signal `✓`.
    pub const TICK: EventId = EventId(1);
    /// The first visible event.
    pub const FIRST_VISIBLE: EventId = EventId(2);

    /// Whether the event belongs to `Σ`: neither `τ` nor `✓`.
    pub fn is_visible(self) -> bool {
        self >= EventId::FIRST_VISIBLE
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The structured name of an event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EventName {
    pub channel: Arc<str>,
    pub fields: Arc<[Arc<str>]>,
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.channel)?;
        for field in self.fields.iter() {
            write!(f, ".{field}")?;
        }
        Ok(())
    }
}

/// All events of a script, numbered in the order of their first use.
#[derive(Clone, Debug)]
pub struct EventTable {
    names: Vec<EventName>,
    numbers: FxHashMap<EventName, EventId>,
}

impl Default for EventTable {
    fn default() -> EventTable {
        let special = |name: &str| EventName { channel: name.into(), fields: Arc::new([]) };
        EventTable { names: vec![special("τ"), special("✓")], numbers: FxHashMap::default() }
    }
}

impl EventTable {
    /// The number of the event `channel.field.field…`; a new one if it was not seen before.
    pub fn intern<F: AsRef<str>>(&mut self, channel: &str, fields: &[F]) -> EventId {
        let fields: Arc<[Arc<str>]> = fields.iter().map(|f| Arc::from(f.as_ref())).collect();
        let name = EventName { channel: channel.into(), fields };
        if let Some(&id) = self.numbers.get(&name) {
            return id;
        }
        let id = EventId(u32::try_from(self.names.len()).expect("fewer than 2^32 events"));
        self.names.push(name.clone());
        self.numbers.insert(name, id);
        id
    }

    /// The event of a channel without fields.
    pub fn plain(&mut self, name: &str) -> EventId {
        self.intern::<&str>(name, &[])
    }

    /// The event with this structured name, if it was interned.
    pub fn find(&self, name: &EventName) -> Option<EventId> {
        self.numbers.get(name).copied()
    }

    /// The event that prints as `text`, if there is one. Linear; for messages and tests.
    pub fn find_text(&self, text: &str) -> Option<EventId> {
        self.ids().find(|&id| self.name(id).to_string() == text)
    }

    pub fn name(&self, id: EventId) -> &EventName {
        &self.names[id.index()]
    }

    /// Number of events including `τ` and `✓`.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no visible event was interned.
    pub fn is_empty(&self) -> bool {
        self.names.len() == EventId::FIRST_VISIBLE.index()
    }

    /// All visible events.
    pub fn ids(&self) -> impl Iterator<Item = EventId> + use<> {
        (EventId::FIRST_VISIBLE.0..self.names.len() as u32).map(EventId)
    }
}

/// A set of visible events, kept sorted.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct EventSet(Arc<[EventId]>);

impl EventSet {
    pub fn contains(&self, event: EventId) -> bool {
        self.0.binary_search(&event).is_ok()
    }

    pub fn iter(&self) -> impl Iterator<Item = EventId> + '_ {
        self.0.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_slice(&self) -> &[EventId] {
        &self.0
    }

    /// The set with `✓` added: for parallel operators whose operands terminate together.
    pub fn with_tick(&self) -> EventSet {
        EventSet([EventId::TICK].into_iter().chain(self.iter().filter(|e| e.is_visible())).collect())
    }

    pub fn union(&self, other: &EventSet) -> EventSet {
        self.iter().chain(other.iter()).collect()
    }

    pub fn intersection(&self, other: &EventSet) -> EventSet {
        self.iter().filter(|&e| other.contains(e)).collect()
    }

    pub fn difference(&self, other: &EventSet) -> EventSet {
        self.iter().filter(|&e| !other.contains(e)).collect()
    }
}

/// `τ` and `✓` are left out: they belong to no set of the language.
impl FromIterator<EventId> for EventSet {
    fn from_iter<I: IntoIterator<Item = EventId>>(events: I) -> EventSet {
        let mut list: Vec<EventId> = events.into_iter().filter(|e| e.is_visible()).collect();
        list.sort_unstable();
        list.dedup();
        EventSet(list.into())
    }
}
