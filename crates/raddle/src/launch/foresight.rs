//! What threads of a real program may still access: facts from its machine code ([`raddle_probe::branches`]), at the addresses where
//! the program lies in memory.

use raddle_explore::systematic::pruning::{Access, Foresight, Place};
use raddle_probe::branches::{Address, Facts};
use raddle_probe::image::Image;
use raddle_trace::tables::Module;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The code of the program itself. What lies in its libraries is not looked at.
pub struct Foreseen {
    facts: Facts,
    start: u64,
    end: u64,
    bias: u64,
    known: HashMap<u64, Option<BTreeSet<Access>>>,
}

impl Foreseen {
    /// `None`: the file cannot be read as a program, or is not among the modules.
    pub fn of(program: &Path, modules: &[Module]) -> Option<Foreseen> {
        let bytes = std::fs::read(program).ok()?;
        let image = Image::parse(&bytes).ok()?;
        let name = program.file_name()?;
        let module = modules.iter().find(|module| Path::new(&module.path).file_name() == Some(name))?;
        Some(Foreseen {
            facts: Facts::of(&image),
            start: module.start,
            end: module.end,
            bias: module.bias,
            known: HashMap::new(),
        })
    }

    fn in_file(&self, pc: u64) -> Option<u64> {
        (self.start..self.end).contains(&pc).then(|| pc.wrapping_sub(self.bias))
    }
}

fn place_of(address: Address) -> Place {
    match address {
        Address::Constant(_) => Place::Global,
        Address::Frame => Place::Own,
        Address::Any => Place::Any,
    }
}

impl Foresight for Foreseen {
    fn rest(&mut self, pc: u64) -> Option<BTreeSet<Access>> {
        if let Some(known) = self.known.get(&pc) {
            return known.clone();
        }
        let found = self.in_file(pc).and_then(|place| self.facts.rest(place));
        let bias = self.bias;
        let rest = found.map(|accesses| {
            accesses
                .into_iter()
                .map(|access| Access {
                    object: match access.address {
                        Address::Constant(address) => Some(address.wrapping_add(bias)),
                        Address::Frame | Address::Any => None,
                    },
                    place: place_of(access.address),
                    bytes: access.bytes,
                    writes: access.writes,
                    atomic: access.atomic,
                    locks: access.locks.iter().map(|lock| lock.wrapping_add(bias)).collect(),
                })
                .collect::<BTreeSet<Access>>()
        });
        self.known.insert(pc, rest.clone());
        rest
    }

    fn place(&mut self, pc: u64) -> Place {
        self.in_file(pc).and_then(|pc| self.facts.address_at(pc)).map_or(Place::Any, place_of)
    }

    fn ignores_result(&mut self, pc: u64) -> bool {
        self.in_file(pc).is_some_and(|place| self.facts.ignores_result(place))
    }
}
