//! Names for objects and places that survive another run: `module+0x1234`, `heap:1.2:17+0x10`, `mutex-3`.
//!
//! Static data is named by its module and offset, heap data by the allocation it lies in (the n-th of its thread). What
//! is neither, for example an object of a foreign trace, is numbered by kind in order of appearance.

use raddle_trace::{Location, LocationIx, MemoryTrace, Op, Tables, ops_about, ops_beside};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Allocation {
    end: u64,
    name: String,
}

/// See the module's text. Where an address was allocated more than once, the last allocation gives the name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    heap: BTreeMap<u64, Allocation>,
    numbers: FxHashMap<u64, (&'static str, u32)>,
    counts: FxHashMap<&'static str, u32>,
}

impl Names {
    pub fn of(trace: &MemoryTrace) -> Names {
        let mut names = Names::default();
        let mut allocations: Vec<u32> = vec![0; trace.tables.threads.len()];
        for event in &trace.events {
            if let Op::Alloc { addr, size } = event.op {
                let Some(count) = allocations.get_mut(event.thread.index()) else { continue };
                *count += 1;
                let name = format!("heap:{}:{}", trace.tables.threads[event.thread.index()].name, count);
                names.heap.insert(addr.0, Allocation { end: addr.0.saturating_add(size), name });
            } else if let Some((object, kind)) = object(&event.op) {
                names.numbers.entry(object).or_insert_with(|| {
                    let count = names.counts.entry(kind).or_default();
                    *count += 1;
                    (kind, *count)
                });
            }
        }
        names
    }

    /// Module and offset, or allocation and offset.
    pub fn memory(&self, tables: &Tables, addr: u64) -> Option<String> {
        if let Some((&start, allocation)) = self.heap.range(..=addr).next_back()
            && addr < allocation.end
        {
            return Some(match addr - start {
                0 => allocation.name.clone(),
                offset => format!("{}+{offset:#x}", allocation.name),
            });
        }
        module_offset(tables, addr)
    }

    /// The object that an operation is about; empty if there is none.
    pub fn object_of(&self, tables: &Tables, op: &Op) -> String {
        let child = match *op {
            Op::Fork { child } | Op::Join { child } | Op::JoinFailed { child } | Op::Detach { child } => {
                Some(child)
            }
            Op::Cancel { thread } => Some(thread),
            Op::Start { .. } | Op::End | ops_beside!(Thread) => None,
        };
        if let Some(child) = child {
            return tables.threads.get(child.index()).map_or_else(String::new, |thread| thread.name.clone());
        }
        let Some((object, kind)) = object(op) else { return String::new() };
        if let Some(name) = self.memory(tables, object) {
            return name;
        }
        let (kind, number) = self.numbers.get(&object).copied().unwrap_or((kind, 0));
        format!("{kind}-{number}")
    }

    /// A place in the code.
    pub fn code(&self, tables: &Tables, location: LocationIx) -> String {
        match tables.locations().get(location.index()) {
            Some(Location::Pc(pc)) => module_offset(tables, *pc).unwrap_or_else(|| format!("{pc:#x}")),
            Some(Location::Foreign(number)) => format!("L{number}"),
            _ => "unknown".to_owned(),
        }
    }

    /// `writes 4 bytes of bank+0x4010`.
    pub fn access(&self, tables: &Tables, op: &Op) -> String {
        let (verb, addr, size) = match *op {
            Op::Read { addr, size, .. } => ("reads", addr, u64::from(size)),
            Op::Write { addr, size, .. } => ("writes", addr, u64::from(size)),
            Op::Atomic { addr, size, kind, .. } if kind.writes() => {
                ("atomically writes", addr, u64::from(size))
            }
            Op::Atomic { addr, size, .. } => ("atomically reads", addr, u64::from(size)),
            Op::Free { addr } => {
                let name = self.memory(tables, addr.0).unwrap_or_else(|| format!("{:#x}", addr.0));
                return format!("releases {name}");
            }
            Op::Fence { .. } | Op::Alloc { .. } | Op::Lost { .. } | ops_about!(Sync) => return String::new(),
        };
        let name = self.memory(tables, addr.0).unwrap_or_else(|| format!("{:#x}", addr.0));
        format!("{verb} {size} byte{} of {name}", if size == 1 { "" } else { "s" })
    }
}

fn module_offset(tables: &Tables, addr: u64) -> Option<String> {
    let module = tables.module_of(addr)?;
    let name = module.path.rsplit('/').next().unwrap_or(&module.path);
    Some(format!("{name}+{:#x}", addr.wrapping_sub(module.bias)))
}

/// Number and kind of the object that an operation is about.
fn object(op: &Op) -> Option<(u64, &'static str)> {
    Some(match *op {
        Op::Lock { lock, flags } | Op::LockFailed { lock, flags } | Op::Unlock { lock, flags } => {
            (lock.0, if flags.rwlock { "rwlock" } else { "mutex" })
        }
        Op::Request { lock, flags, .. } => (lock.0, if flags.rwlock { "rwlock" } else { "mutex" }),
        Op::ReadLock { lock, .. } | Op::ReadLockFailed { lock, .. } => (lock.0, "rwlock"),
        Op::Signal { cond } | Op::Broadcast { cond } | Op::WaitBegin { cond, .. } => (cond.0, "condition"),
        Op::Wait { cond, .. } | Op::WaitFailed { cond, .. } => (cond.0, "condition"),
        Op::BarrierInit { barrier, .. } | Op::BarrierEnter { barrier } | Op::BarrierExit { barrier } => {
            (barrier.0, "barrier")
        }
        Op::SemInit { sem, .. } | Op::SemRequest { sem } | Op::SemWait { sem } => (sem.0, "semaphore"),
        Op::SemWaitFailed { sem } | Op::SemPost { sem } => (sem.0, "semaphore"),
        Op::OnceBegin { once } | Op::OnceEnd { once } | Op::OncePassed { once } => (once.0, "once"),
        Op::Atomic { addr, .. } => (addr.0, "atomic"),
        Op::FutexWake { word, .. } | Op::FutexWait { word } | Op::FutexWaitFailed { word } => {
            (word.0, "futex")
        }
        Op::Send { channel } | Op::Receive { channel } => (channel.0, "channel"),
        Op::Acquire { object } | Op::Release { object } | Op::Custom { object, .. } => (object.0, "object"),
        Op::Read { .. }
        | Op::Write { .. }
        | Op::Fence { .. }
        | Op::Alloc { .. }
        | Op::Free { .. }
        | Op::Lost { .. }
        | Op::BenignRace { .. }
        | ops_about!(Nothing, Thread, Signal, Life) => return None,
    })
}
