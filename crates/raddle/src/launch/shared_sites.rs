//! Which memory accesses are worth a scheduling point: those to memory that two threads touch, one of them writing.
//!
//! Whether memory is shared is known only after the fact, so a run is recorded first. What is kept are the places in the
//! code that made such accesses, not the addresses: places are the same in every run.

#![warn(clippy::wildcard_enum_match_arm)]

use super::{Launch, Streams, exploring, process, steering};
use raddle_trace::collector::Collector;
use raddle_trace::event::Op;
use raddle_trace::file::meta::ProgramInfo;
use raddle_trace::ids::{LocationIx, ThreadIx};
use raddle_trace::journal::place;
use raddle_trace::ops_about;
use raddle_trace::region::{Region, RegionConfig};
use raddle_trace::schedule::Visible;
use raddle_trace::source::EventSource;
use raddle_trace::tables::Location;
use raddle_wire::region::{observe, option, steer, strategy};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// What `--visible` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum VisibleAccesses {
    /// None at first; those that race in a run are visible in the runs after it.
    Auto,
    Sync,
    Shared,
    All,
}

impl VisibleAccesses {
    /// Options of the region and, for `shared`, the places (which takes one recorded run).
    pub fn settings(
        self,
        launch: &Launch,
        seed: u64,
        timeout: Duration,
    ) -> anyhow::Result<(u64, Vec<String>)> {
        Ok(match self {
            VisibleAccesses::Auto | VisibleAccesses::Sync => (0, Vec::new()),
            VisibleAccesses::All => (steering::visible_options(&Visible::All), Vec::new()),
            VisibleAccesses::Shared => {
                (steering::visible_options(&Visible::Sites(Vec::new())), find(launch, seed, timeout)?)
            }
        })
    }
}

/// Most threads that may touch one word before it no longer matters who else does.
const GRANULE_BYTES: u64 = 8;
/// Longest range that is looked at word by word.
const RANGE_BYTES_MAX: u64 = 1 << 16;

#[derive(Default)]
struct Granule {
    first: Option<ThreadIx>,
    shared: bool,
    written: bool,
    sites: HashSet<LocationIx>,
}

/// Records one run under `random` and looks who touched what.
fn find(launch: &Launch, seed: u64, timeout: Duration) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("first.trace");
    let config = RegionConfig {
        observe: observe::RECORD,
        steer: steer::CONTROL,
        strategy: strategy::RANDOM,
        options: option::MEMORY | option::KEEP_REDUNDANT | option::ONE_AT_A_TIME,
        seed,
        processor: exploring::processors().first().copied(),
        ..RegionConfig::default()
    };
    let region = Arc::new(Region::create(&config)?);
    let program = ProgramInfo { command: launch.words(), directory: String::new() };
    let collector = Collector::start(Arc::clone(&region), &path, program)?;
    let running = process::start(launch, &region, Streams::Silent)?;
    let status = running.wait_within(timeout)?;
    collector.finish(status)?;
    shared_sites(raddle_trace::open(&path)?.as_mut())
}

fn shared_sites(source: &mut dyn EventSource) -> anyhow::Result<Vec<String>> {
    let mut granules: HashMap<u64, Granule> = HashMap::new();
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            let (address, bytes, writes) = match event.op {
                Op::Read { addr, size, .. } => (addr.0, u64::from(size), false),
                Op::Write { addr, size, .. } => (addr.0, u64::from(size), true),
                Op::Atomic { .. }
                | Op::Fence { .. }
                | Op::Alloc { .. }
                | Op::Free { .. }
                | Op::Lost { .. }
                | ops_about!(Sync) => continue,
            };
            let end = address + bytes.clamp(1, RANGE_BYTES_MAX) - 1;
            for granule in address / GRANULE_BYTES..=end / GRANULE_BYTES {
                let granule = granules.entry(granule).or_default();
                granule.shared |= granule.first.is_some_and(|first| first != event.thread);
                granule.first.get_or_insert(event.thread);
                granule.written |= writes;
                granule.sites.insert(event.location);
            }
        }
    }
    let tables = source.tables();
    let mut sites = BTreeSet::new();
    for granule in granules.values().filter(|granule| granule.shared && granule.written) {
        for &site in &granule.sites {
            if let Location::Pc(pc) = tables.location(site) {
                sites.extend(place(&tables.modules, *pc));
            }
        }
    }
    Ok(sites.into_iter().collect())
}
