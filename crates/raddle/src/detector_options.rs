//! What detectors are told beside the trace: the options that `raddle detect` and `raddle hunt` share.

use anyhow::{Context, bail};
use raddle_detect::calls::CallPlaces;
use raddle_detect::contract::{self, Contract};
use raddle_detect::contract_inference::{Learnt, announced};
use raddle_detect::detectors::avio::{Avio, AvioFacts};
use raddle_detect::detectors::order::{GivenPlace, Order, OrderFacts, parse_pairs};
use raddle_detect::region::{FunctionPlaces, Regions};
use raddle_detect::registry::{ENTRIES, Settings, find};
use raddle_detect::training::{PlaceName, place_name};
use raddle_findings::pattern::Pattern;
use raddle_trace::MemoryTrace;
use raddle_trace::open::OpenTrace;
use raddle_trace::symbols::{CodeFrame, Symbolizer};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(clap::Args)]
#[command(next_help_heading = "What detectors are told")]
pub struct DetectorOptions {
    /// What is meant to be atomic: what RADDLE_ATOMIC_BEGIN/END mark, or critical sections.
    #[arg(long, value_enum, default_value = "marked")]
    regions: RegionKind,
    /// Functions that are meant to be atomic, by name; `*` stands for anything. Instead of --regions.
    #[arg(long, value_name = "PATTERN")]
    functions: Vec<String>,
    /// A trace of a good run, to learn from (avio, order, and contracts without --contracts). May be repeated.
    #[arg(long, value_name = "TRACE")]
    train: Vec<PathBuf>,
    /// File with pairs `PLACE < PLACE` that must come in this order, each FILE:LINE or an STD location (order).
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// File with contracts (contracts, contracts-lockset).
    #[arg(long, value_name = "FILE")]
    contracts: Option<PathBuf>,
    /// Write the contracts that were learnt from good runs into this file.
    #[arg(long, value_name = "FILE", requires = "train")]
    write_contracts: Option<PathBuf>,
    /// Address ranges that belong together, as FROM..TO,FROM..TO in hexadecimal; one option a set (atomicsets).
    #[arg(long, value_name = "RANGES")]
    atomic_set: Vec<String>,
    /// Steps without progress that count as non-progress (nonprogress).
    #[arg(long, value_name = "N")]
    steps_bound: Option<u64>,
    /// Turns of others that count as starvation (nonprogress).
    #[arg(long, value_name = "N")]
    turns_bound: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RegionKind {
    Marked,
    CriticalSections,
}

impl DetectorOptions {
    /// The detectors that were asked for; `all` stands for those that have what they need.
    pub fn chosen(&self, with: &[String]) -> anyhow::Result<Vec<String>> {
        let ready = |name: &str| match name {
            "contracts" | "contracts-lockset" => self.contracts.is_some() || !self.train.is_empty(),
            "order" => !self.train.is_empty() || self.pairs.is_some(),
            _ => true,
        };
        let mut names: Vec<String> = Vec::new();
        for name in with {
            if name == "all" {
                names.extend(ENTRIES.iter().map(|entry| entry.name.to_owned()).filter(|name| ready(name)));
                continue;
            }
            if find(name).is_none() {
                bail!(unknown(name));
            }
            names.push(name.clone());
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        match names.iter().find(|name| !ready(name)).map(String::as_str) {
            Some(name @ ("contracts" | "contracts-lockset")) => {
                bail!("`{name}` needs a file of contracts or good runs: --contracts FILE, --train TRACE")
            }
            Some(_) => bail!("`order` needs good runs or pairs: --train TRACE, --pairs FILE"),
            None => Ok(names),
        }
    }

    /// What the named detectors are told about this trace.
    pub fn settings(&self, trace: &Path, names: &[String]) -> anyhow::Result<Settings> {
        let mut settings = Settings {
            regions: match self.regions {
                RegionKind::Marked => Regions::Marked,
                RegionKind::CriticalSections => Regions::CriticalSections,
            },
            steps_bound: self.steps_bound,
            turns_bound: self.turns_bound,
            ..Settings::default()
        };
        if !self.functions.is_empty() {
            settings.regions = functions(trace, &self.functions)?;
        }
        if let Some(file) = &self.contracts {
            settings.contracts = contract::parse(&read(file)?).with_context(|| file.display().to_string())?;
        }
        if let Some(file) = &self.pairs {
            let pairs = parse_pairs(&read(file)?)
                .map_err(|problem| anyhow::anyhow!("{}: {problem}", file.display()))?;
            settings.order = Some(given_orders(&pairs, trace)?);
        }
        for set in &self.atomic_set {
            settings.atomic_sets.0.push(ranges(set)?);
        }
        let checks_contracts = names.iter().any(|name| name.starts_with("contracts"));
        let mut learnt = (self.contracts.is_none() && checks_contracts).then(Learnt::default);
        for train in &self.train {
            learn(train, names, &mut settings, learnt.as_mut())?;
        }
        if let Some(learnt) = learnt {
            settings.contracts = learnt.contracts();
            if let Some(file) = &self.write_contracts {
                let text: String =
                    settings.contracts.iter().map(|contract| format!("{contract}\n")).collect();
                std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
        if !settings.contracts.is_empty() {
            settings.calls = Arc::new(calls(trace, &settings.contracts)?);
        }
        Ok(settings)
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// What to say about a name that is none.
pub fn unknown(name: &str) -> String {
    format!("there is no detector `{name}`; `raddle detect --list` has the table")
}

/// Reads `1000..1010,2000..2008`.
fn ranges(text: &str) -> anyhow::Result<Vec<std::ops::Range<u64>>> {
    let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let range = |text: &str| {
        let (from, to) = text.split_once("..")?;
        Some(number(from)?..number(to)?)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.with_context(|| format!("`{text}` is not a list of address ranges such as 1000..1010,2000..2008"))
}

/// Learns from a good run.
fn learn(
    path: &Path,
    names: &[String],
    settings: &mut Settings,
    contracts: Option<&mut Learnt>,
) -> anyhow::Result<()> {
    let trace = MemoryTrace::read(&mut OpenTrace::open(path)?)?;
    if let Some(learnt) = contracts {
        let places = CallPlaces::find(&mut trace.source(), &announced(&trace), &mut |_, _| None)?;
        learnt.add(&trace, &Arc::new(places));
    }
    if names.iter().any(|name| name == "avio") {
        let mut avio = Avio::new(None);
        raddle_detect::run_on(&trace, &mut avio);
        settings.avio.get_or_insert_with(AvioFacts::default).add(avio.facts(&trace.tables));
    }
    if names.iter().any(|name| name == "order") {
        let mut order = Order::new(None);
        raddle_detect::run_on(&trace, &mut order);
        settings.order.get_or_insert_with(OrderFacts::default).add(order.facts(&trace.tables));
    }
    Ok(())
}

/// The pairs that a user gave, in the places of this trace.
fn given_orders(pairs: &[(GivenPlace, GivenPlace)], path: &Path) -> anyhow::Result<OrderFacts> {
    let mut lines: Vec<(Option<String>, Option<u32>, PlaceName)> = Vec::new();
    if pairs.iter().any(|(a, b)| [a, b].iter().any(|place| matches!(place, GivenPlace::Line(..)))) {
        let mut symbols: Option<Symbolizer> = None;
        FunctionPlaces::find(&mut OpenTrace::open(path)?, &mut |tables, location| {
            let symbols = symbols.get_or_insert_with(|| Symbolizer::new(&tables.modules));
            for frame in symbols.location(tables.location(location)).iter() {
                lines.push((frame.file.clone(), frame.line, place_name(tables, location)));
            }
            false
        })?;
    }
    Ok(OrderFacts::given(pairs, &mut |file, line| {
        let here = |name: &str| name == file || name.ends_with(&format!("/{file}"));
        let found: Vec<PlaceName> = lines
            .iter()
            .filter(|(name, at, _)| *at == Some(line) && name.as_deref().is_some_and(here))
            .map(|(_, _, place)| place.clone())
            .collect();
        if found.is_empty() {
            eprintln!("raddle: note: no event of the trace is at {file}:{line}");
        }
        found
    }))
}

/// Where a trace has the calls that contracts name: announced, or functions of that name.
fn calls(path: &Path, contracts: &[Contract]) -> anyhow::Result<CallPlaces> {
    let names = contract::call_names(contracts);
    let mut symbols: Option<Symbolizer> = None;
    let places = CallPlaces::find(&mut OpenTrace::open(path)?, &names, &mut |tables, location| {
        let symbols = symbols.get_or_insert_with(|| Symbolizer::new(&tables.modules));
        let frames = symbols.location(tables.location(location));
        // The function itself is the last frame: those before it are inlined.
        let function = frames.last()?.function.as_deref()?;
        let bare = function.split('(').next().unwrap_or(function);
        names.iter().position(|name| name == function || name == bare)
    })?;
    Ok(places)
}

/// Where the functions with these names are active.
fn functions(path: &Path, patterns: &[String]) -> anyhow::Result<Regions> {
    let patterns: Vec<Pattern> = patterns.iter().map(|text| Pattern::new(text)).collect();
    let mut source = OpenTrace::open(path)?;
    let mut symbols: Option<Symbolizer> = None;
    let mut inlined: BTreeSet<String> = BTreeSet::new();
    let places = FunctionPlaces::find(&mut source, &mut |tables, location| {
        let symbols = symbols.get_or_insert_with(|| Symbolizer::new(&tables.modules));
        let frames = symbols.location(tables.location(location));
        let chosen = |frame: &&CodeFrame| {
            let function = frame.function.as_deref().unwrap_or_default();
            let bare = function.split('(').next().unwrap_or(function);
            patterns.iter().any(|pattern| pattern.matches(function) || pattern.matches(bare))
        };
        // The last frame is the function itself, those before it are inlined: they have no entries and exits.
        let (own, others) = frames.split_last().expect("never empty");
        inlined.extend(others.iter().filter(chosen).filter_map(|frame| frame.function.clone()));
        chosen(&own)
    })?;
    if !inlined.is_empty() {
        let names = inlined.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        eprintln!(
            "raddle: note: {names}: inlined calls have no entry and exit and are not seen as regions; \
             compile with -fno-inline or mark them noinline"
        );
    }
    if places.locations.is_empty() && places.contexts.is_empty() {
        bail!("no event of the trace lies in a function with such a name; see `raddle trace dump`");
    }
    Ok(Regions::Functions(Arc::new(places)))
}
