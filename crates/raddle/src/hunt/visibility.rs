//! What could have ordered two accesses without Raddle seeing it: a finding that rests on happens-before and that such code could
//! explain is *suspected*, and names the code.

use raddle_findings::finding::Frame;
use raddle_findings::{Basis, Finding, Invisible, InvisibleKind};
use raddle_probe::visibility::{Cause, CodeAddress, Kind, Party, Place, Strength, Visibility};
use raddle_trace::tables::Module;
use std::path::Path;

/// The files of one process, looked into when the first finding asks for it.
pub struct Sight {
    modules: Vec<Module>,
    visibility: Option<Visibility>,
}

impl Sight {
    pub fn of(modules: &[Module]) -> Sight {
        Sight { modules: modules.to_vec(), visibility: None }
    }

    /// Takes note of libraries that were loaded since.
    pub fn update(&mut self, modules: &[Module]) {
        if modules.len() != self.modules.len() {
            self.modules = modules.to_vec();
            self.visibility = None;
        }
    }

    /// Adds to a finding that rests on happens-before what may explain it away.
    pub fn consider(&mut self, finding: &mut Finding) {
        let [first, second] = &finding.parties[..] else { return };
        let Basis::Unordered { invisible, .. } = &mut finding.basis else { return };
        let parties = [self.party(&first.stack), self.party(&second.stack)];
        let visibility = self.visibility.get_or_insert_with(|| {
            let paths: Vec<&str> = self.modules.iter().map(|module| module.path.as_str()).collect();
            Visibility::read(&paths)
        });
        let cause = visibility.cause([&parties[0], &parties[1]]);
        for place in cause.iter().flat_map(convincing) {
            let place = told(place);
            if !invisible.contains(&place) {
                invisible.push(place);
            }
        }
    }

    /// The calls of a stack, outermost first, as addresses in the files.
    fn party(&self, stack: &[Frame]) -> Party {
        let mut frames: Vec<CodeAddress> = Vec::new();
        for frame in stack.iter().rev() {
            let address = frame.raw.as_deref().and_then(|raw| self.address(raw));
            // Inlined calls share their address.
            frames.extend(address.filter(|address| frames.last() != Some(address)));
        }
        Party { entry: frames.first().cloned(), frames }
    }

    fn address(&self, raw: &str) -> Option<CodeAddress> {
        let (name, offset) = raw.rsplit_once("+0x")?;
        let offset = u64::from_str_radix(offset, 16).ok()?;
        let named = |module: &&Module| Path::new(&module.path).file_name().is_some_and(|file| file == name);
        Some(CodeAddress::new(&self.modules.iter().find(named)?.path, offset))
    }
}

/// The places of a cause that are reason enough to doubt the finding. A library that has no instruction by which threads
/// synchronise, a compressor for example, is none; nor is one thread that could synchronise with nobody.
fn convincing(cause: &Cause) -> Vec<&Place> {
    let doubtful =
        |place: &&Place| place.kind != Kind::LibraryNotRebuilt || place.strength == Strength::Locked;
    match cause {
        Cause::Both(places) => {
            let places: Vec<&Place> = places.iter().filter(doubtful).collect();
            if places.len() == 2 { places } else { Vec::new() }
        }
        Cause::One { place, .. } if place.strength == Strength::Locked => vec![place],
        Cause::One { .. } => Vec::new(),
    }
}

fn told(place: &Place) -> Invisible {
    let what = match place.kind {
        Kind::InlineAssembly => InvisibleKind::InlineAssembly,
        Kind::FunctionNotInstrumented => InvisibleKind::NotInstrumented,
        Kind::LibraryNotRebuilt => InvisibleKind::LibraryNotRebuilt,
        Kind::KernelInterface(_) => InvisibleKind::KernelInterface,
    };
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    Invisible {
        what,
        module: place.module_name.clone(),
        function: place.function.clone(),
        place: place.source.as_ref().map(|source| format!("{}:{}", file(&source.file), source.line)),
    }
}
