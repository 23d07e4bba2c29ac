//! Calls of functions, from their entries to their returns.
//!
//! A call comes into a trace in one of two ways.
//!
//! * *Announced*: an event of the program's own (`RADDLE_EVENT("get", map)`, STD `call(get,M)`) or of an aspect
//!   (`get(#0,#1) before body map_get`). Its values are the fields of the event. The call lasts until the event `get_return` of the same
//!   thread (`get_return(#return) after body map_get`), whose fields are further values; if the trace has no event `get_return` at all, the
//!   call is the moment of its event.
//! * *Seen by the instrumentation*: an activation of the function with this name, from its entry to its exit. Entries and exits are
//!   between the events of the thread: an activation that has no event (neither access nor synchronisation) is not seen, and
//!   neither is an inlined call. Such calls carry no values.
//!
//! A name that is announced is not looked for among functions.

use crate::race::Site;
use crate::step::Step;
use raddle_trace::{
    ContextIx, Event, EventSource, LocationIx, Op, Tables, TextIx, ThreadIx, TraceError, ops_beside,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// What the end of a call's name says that the event is its return.
pub const RETURN: &str = "_return";

/// A name of a call, by its place in the list of those that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameIx(pub u32);

/// A value of a call: number or word of a field, or an object, as a text.
pub type Value = Box<str>;

/// Name and values of an announcement.
pub fn announcement(text: &str, object: u64) -> (&str, Vec<Value>) {
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, "")) => (name, Vec::new()),
        Some((name, fields)) => (name, fields.split(',').map(Value::from).collect()),
        None => (text, vec![object.to_string().into()]),
    }
}

/// A function that is active in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Active {
    name: NameIx,
    /// How many calls lead to it.
    level: u32,
    /// Where it was called, if that is known.
    call: Option<(LocationIx, ContextIx)>,
}

/// Where in a trace the calls with some names are.
#[derive(Clone, Debug, Default)]
pub struct CallPlaces {
    names: Vec<String>,
    /// Names that the trace announces, returns left out.
    announced: BTreeSet<String>,
    /// Names whose returns it announces.
    returned: BTreeSet<String>,
    /// Names that are functions of the program.
    functions: FxHashSet<NameIx>,
    /// Fewest values that calls of an announced name carry.
    values: FxHashMap<String, usize>,
    /// What is active in a context, the function itself left out: outermost first.
    contexts: FxHashMap<ContextIx, Vec<Active>>,
    /// Functions, and the innermost call of each context in which one of their places was seen.
    locations: FxHashMap<LocationIx, NameIx>,
    innermost: FxHashMap<ContextIx, (u32, Option<(LocationIx, ContextIx)>)>,
}

impl CallPlaces {
    /// Reads a trace once. `named` says which of the names a place's function has.
    pub fn find(
        source: &mut dyn EventSource,
        names: &[String],
        named: &mut dyn FnMut(&Tables, LocationIx) -> Option<usize>,
    ) -> Result<CallPlaces, TraceError> {
        let (mut locations, mut seen, mut texts) =
            (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        let mut batch = Vec::new();
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for event in &batch {
                locations.insert(event.location);
                seen.insert(event.context);
                if let Op::Custom { name, .. } = event.op {
                    texts.insert(name);
                }
            }
        }
        let tables = source.tables();
        let mut places = CallPlaces { names: names.to_vec(), ..CallPlaces::default() };
        places.hear(texts.into_iter().map(|text| tables.text(text)));
        let mut of_location: FxHashMap<LocationIx, Option<NameIx>> = FxHashMap::default();
        let mut function = |location: LocationIx| {
            *of_location.entry(location).or_insert_with(|| {
                let name = named(tables, location)?;
                (!places.announced.contains(&places.names[name])).then_some(NameIx(name as u32))
            })
        };
        let own =
            locations.into_iter().filter_map(|location| Some((location, function(location)?))).collect();
        let mut contexts = FxHashMap::default();
        for &context in &seen {
            let calls = tables.chain(context);
            let active: Vec<Active> = (calls.iter().enumerate())
                .filter_map(|(level, &(_, call))| {
                    // The call after `level` calls was made by the function to which they lead.
                    let made = level.checked_sub(1).map(|before| (calls[before].1, calls[before].0));
                    Some(Active { name: function(call)?, level: level as u32, call: made })
                })
                .collect();
            if !active.is_empty() {
                contexts.insert(context, active);
            }
            let last = calls.last().map(|&(outer, call)| (call, outer));
            places.innermost.insert(context, (calls.len() as u32, last));
        }
        places.locations = own;
        places.contexts = contexts;
        let inner = places.locations.values();
        places.functions = inner.copied().chain(places.contexts.values().flatten().map(|a| a.name)).collect();
        Ok(places)
    }

    fn hear<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        let mut heard: FxHashMap<&str, usize> = FxHashMap::default();
        for text in texts {
            let (name, values) = announcement(text, 0);
            let fewest = heard.entry(name).or_insert(values.len());
            *fewest = values.len().min(*fewest);
        }
        for (&name, &count) in &heard {
            let asked = |name: &str| self.names.iter().any(|asked| asked == name);
            match name.strip_suffix(RETURN).and_then(|call| Some((call, *heard.get(call)?))) {
                Some((call, own)) if !asked(name) => {
                    self.returned.insert(call.to_owned());
                    self.values.insert(call.to_owned(), own + count);
                }
                _ => {
                    self.announced.insert(name.to_owned());
                    self.values.entry(name.to_owned()).or_insert(count);
                }
            }
        }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The calls that the trace announces.
    pub fn announced(&self) -> &BTreeSet<String> {
        &self.announced
    }

    /// Is there a function with this name in the trace?
    pub fn is_function(&self, name: &str) -> bool {
        self.functions.iter().any(|ix| self.names[ix.0 as usize] == name)
    }

    /// How many values calls of this name carry.
    pub fn values(&self, name: &str) -> usize {
        self.values.get(name).copied().unwrap_or(0)
    }

    /// The functions that are active at an event, outermost first.
    fn active(&self, event: &Event, into: &mut Vec<Active>) {
        into.clear();
        into.extend(self.contexts.get(&event.context).into_iter().flatten());
        if let Some(&name) = self.locations.get(&event.location)
            && let Some(&(level, call)) = self.innermost.get(&event.context)
        {
            into.push(Active { name, level, call });
        }
    }
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It is entered, with its values as far as they are known.
    Entry { name: NameIx, values: Vec<Value> },
    /// It returns; further values.
    Return { name: NameIx, values: Vec<Value> },
}

/// An entry or return, and what is said of its place.
#[derive(Clone, Debug)]
pub struct Told {
    pub edge: Edge,
    pub site: Site,
}

/// What the text of an event says about calls: the function, whether it returns, and its arguments if they are known.
type Meaning = (NameIx, bool, Option<Vec<Value>>);

/// Follows the calls of all threads.
#[derive(Clone, Debug, Default)]
pub struct CallTracker {
    /// By text: a call of this name, or a return.
    meanings: FxHashMap<TextIx, Option<Meaning>>,
    active: Vec<Vec<Active>>,
    last: Vec<Option<Site>>,
    scratch: Vec<Active>,
}

impl CallTracker {
    /// Entries and returns of functions between the thread's last event and this one, in their order.
    pub fn before(&mut self, places: &CallPlaces, step: &Step<'_>, told: &mut Vec<Told>) {
        if places.functions.is_empty() {
            return;
        }
        let thread = step.thread().index();
        if self.active.len() <= thread {
            self.active.resize(thread + 1, Vec::new());
            self.last.resize(thread + 1, None);
        }
        let site = Site::of(step);
        places.active(step.event, &mut self.scratch);
        let (active, now) = (&mut self.active[thread], &self.scratch);
        // The activation to which n calls lead goes on if they were all kept.
        let same = active
            .iter()
            .zip(now)
            .take_while(|(was, is)| {
                (was.name, was.level) == (is.name, is.level) && is.level <= step.event.kept_calls
            })
            .count();
        let from = self.last[thread].unwrap_or(site);
        for ended in active.drain(same..).rev() {
            told.push(Told {
                edge: Edge::Return { name: ended.name, values: Vec::new() },
                site: placed(from, ended),
            });
        }
        for &begun in &now[same..] {
            told.push(Told {
                edge: Edge::Entry { name: begun.name, values: Vec::new() },
                site: placed(site, begun),
            });
            active.push(begun);
        }
        self.last[thread] = Some(site);
    }

    /// What an event announces.
    pub fn announced(&mut self, places: &CallPlaces, tables: &Texts, step: &Step<'_>, told: &mut Vec<Told>) {
        let Op::Custom { name: text, object } = step.event.op else { return };
        let meaning = self.meanings.entry(text).or_insert_with(|| {
            let written = tables.get(text)?;
            let (name, values) = announcement(written, 0);
            let of =
                |name: &str| places.names.iter().position(|known| known == name).map(|ix| NameIx(ix as u32));
            // Without fields the value is the object.
            let values = written.ends_with(')').then_some(values);
            match of(name) {
                Some(name) => Some((name, false, values)),
                None => {
                    let call = name.strip_suffix(RETURN).filter(|call| places.returned.contains(*call))?;
                    // A return without fields says nothing new.
                    Some((of(call)?, true, Some(values.unwrap_or_default())))
                }
            }
        });
        let Some((name, is_return, values)) = meaning else { return };
        let (name, is_return) = (*name, *is_return);
        let values = values.clone().unwrap_or_else(|| vec![object.0.to_string().into()]);
        let site = Site::of(step);
        if is_return {
            told.push(Told { edge: Edge::Return { name, values }, site });
            return;
        }
        told.push(Told { edge: Edge::Entry { name, values }, site });
        if !places.returned.contains(&places.names[name.0 as usize]) {
            told.push(Told { edge: Edge::Return { name, values: Vec::new() }, site });
        }
    }

    /// A thread does nothing more: its functions end with it, innermost first.
    pub fn end(&mut self, thread: ThreadIx, told: &mut Vec<Told>) {
        let Some(active) = self.active.get_mut(thread.index()) else { return };
        let Some(last) = self.last[thread.index()] else { return };
        told.extend(active.drain(..).rev().map(|open| Told {
            edge: Edge::Return { name: open.name, values: Vec::new() },
            site: placed(last, open),
        }));
    }

    /// Threads that have acted, as far as functions are followed.
    pub fn threads(&self) -> impl Iterator<Item = ThreadIx> + use<> {
        (0..self.active.len() as u32).map(ThreadIx)
    }
}

/// The call, seen from the function that makes it.
fn placed(site: Site, active: Active) -> Site {
    match active.call {
        Some((location, context)) => Site { location, context, ..site },
        None => site,
    }
}

/// Texts of a trace, taken over as they come.
#[derive(Clone, Debug, Default)]
pub struct Texts(Vec<String>);

impl Texts {
    /// Takes over the texts up to those of these events.
    pub fn learn(&mut self, tables: &Tables, events: &[Event]) {
        let texts = events.iter().filter_map(|event| match event.op {
            Op::Custom { name, .. } => Some(name),
            Op::Acquire { .. } | Op::Release { .. } | Op::BenignRace { .. } | ops_beside!(Annotated) => None,
        });
        let Some(last) = texts.max() else { return };
        while self.0.len() <= last.index() {
            self.0.push(tables.text(TextIx(self.0.len() as u32)).to_owned());
        }
    }

    fn get(&self, text: TextIx) -> Option<&str> {
        self.0.get(text.index()).map(String::as_str)
    }
}
