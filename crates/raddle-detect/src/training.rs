//! Names of code places that mean the same in another trace of the same program.

use raddle_trace::{Location, LocationIx, Tables};

/// A place, independent of where the program was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlaceName {
    Unknown,
    /// A location of a converted trace.
    Foreign(u32),
    /// File name of the module and address in its own numbering.
    Module(String, u64),
    /// An address outside all modules.
    Absolute(u64),
}

impl std::fmt::Display for PlaceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlaceName::Unknown => f.write_str("an unknown place"),
            PlaceName::Foreign(number) => write!(f, "location {number}"),
            PlaceName::Module(module, address) => write!(f, "{module}+{address:#x}"),
            PlaceName::Absolute(address) => write!(f, "{address:#x}"),
        }
    }
}

pub fn place_name(tables: &Tables, location: LocationIx) -> PlaceName {
    match *tables.location(location) {
        Location::Unknown => PlaceName::Unknown,
        Location::Foreign(number) => PlaceName::Foreign(number),
        Location::Pc(pc) => match tables.module_of(pc) {
            Some(module) => {
                let name = module.path.rsplit('/').next().unwrap_or(&module.path);
                PlaceName::Module(name.to_owned(), pc.wrapping_sub(module.bias))
            }
            None => PlaceName::Absolute(pc),
        },
    }
}
