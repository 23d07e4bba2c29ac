//! The modules of a process: which were rebuilt, and what each of them contributes to places and call graph.

use super::graph::{ANY, Destination, Graph, NodeIx, PlaceIx};
use super::interfaces::{self, Makers};
use super::place::{Kind, Strength};
use super::scan::{Facts, Target};
use super::{frame, runtimes, scan};
use crate::image::{Function, FunctionIx, Image};
use rustc_hash::FxHashMap;

/// A module's number: its place in the order of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleIx(pub u32);

/// How much of a module Raddle sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Built by `raddle cc`, at least in part: judged function by function.
    Rebuilt,
    /// A runtime whose synchronisation is interposed.
    Known,
    /// Anything else: judged as a whole.
    Foreign,
}

/// A place before anybody asks for its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub module: ModuleIx,
    pub function: Option<FunctionIx>,
    pub address: u64,
    pub kind: Kind,
    pub strength: Strength,
}

/// What was found out.
pub struct Findings {
    pub standings: Vec<Standing>,
    /// The first node of each module: that of its first function, or of the module as a whole.
    pub nodes: Vec<NodeIx>,
    pub spots: Vec<Spot>,
    pub graph: Graph,
    pub makers: Makers,
}

/// A module as it was given: unreadable ones have no image.
pub struct Module<'data> {
    /// The last part of the path.
    pub name: String,
    pub image: Option<Image<'data>>,
}

impl Module<'_> {
    pub fn known_as(&self) -> &str {
        self.image.as_ref().and_then(|image| image.soname).unwrap_or(&self.name)
    }

    fn standing(&self) -> Standing {
        if runtimes::is_known_library(self.known_as()) || runtimes::is_known_library(&self.name) {
            return Standing::Known;
        }
        match &self.image {
            Some(image) if is_rebuilt(image) => Standing::Rebuilt,
            _ => Standing::Foreign,
        }
    }
}

/// Does anything in it call the compilers' interface?
fn is_rebuilt(image: &Image) -> bool {
    image.imports().iter().any(|name| runtimes::is_hook(name))
        || image.function_named("__tsan_init").is_some()
}

struct Builder<'a, 'data> {
    modules: &'a [Module<'data>],
    standings: Vec<Standing>,
    nodes: Vec<NodeIx>,
    spots: Vec<Spot>,
    graph: Graph,
    makers: Makers,
    resolved: FxHashMap<&'a str, Destination>,
    /// Function pointers that code anywhere may call.
    taken: Vec<NodeIx>,
}

pub fn look_into(modules: &[Module]) -> Findings {
    let standings: Vec<Standing> = modules.iter().map(Module::standing).collect();
    let mut nodes = Vec::with_capacity(modules.len());
    let mut count = ANY.0 + 1;
    for (module, standing) in modules.iter().zip(&standings) {
        nodes.push(NodeIx(count));
        count += match (standing, &module.image) {
            (Standing::Rebuilt, Some(image)) => image.functions().len() as u32,
            _ => 1,
        };
    }
    let mut builder = Builder {
        modules,
        standings,
        nodes,
        spots: Vec::new(),
        graph: Graph::new(count as usize),
        makers: Makers::default(),
        resolved: FxHashMap::default(),
        taken: Vec::new(),
    };
    for ix in 0..modules.len() {
        builder.module(ModuleIx(ix as u32));
    }
    builder.finish()
}

impl<'a, 'data> Builder<'a, 'data> {
    fn module(&mut self, ix: ModuleIx) {
        let modules = self.modules;
        let image = modules[ix.0 as usize].image.as_ref();
        let standing = self.standings[ix.0 as usize];
        if let (Some(image), true) = (image, standing != Standing::Known) {
            image.imports().iter().for_each(|name| self.makers.note(name));
        }
        match (standing, image) {
            (Standing::Rebuilt, Some(image)) => self.rebuilt(ix, image),
            (Standing::Foreign, image) => self.foreign(ix, image),
            _ => {}
        }
    }

    /// A library that was not rebuilt is one place, and may call back whatever it was given.
    fn foreign(&mut self, ix: ModuleIx, image: Option<&'a Image<'data>>) {
        let calls_kernel =
            |image: &Image| image.imports().iter().any(|&name| matches!(name, "syscall" | "sched_yield"));
        let strength = match image {
            Some(image) if !scan::has_sign(image) && !calls_kernel(image) => Strength::Plain,
            _ => Strength::Locked,
        };
        let node = self.nodes[ix.0 as usize];
        self.add_spot(
            node,
            Spot { module: ix, function: None, address: 0, kind: Kind::LibraryNotRebuilt, strength },
        );
    }

    fn rebuilt(&mut self, ix: ModuleIx, image: &'a Image<'data>) {
        let mut facts = scan::scan(image);
        let is_part = parts_of_instrumented(image, &facts);
        let is_raddle = is_raddle(image);
        for number in 0..facts.len() {
            let function_ix = FunctionIx(number as u32);
            let function = image.function(function_ix);
            let is_linkage = image.code_at(function.start).is_none_or(|code| code.is_linkage);
            if is_raddle[number] || is_linkage {
                continue;
            }
            let node = self.node(ix, function_ix);
            if let Some((address, kind, strength)) = judge(image, function, &facts[number], is_part[number]) {
                self.add_spot(
                    node,
                    Spot { module: ix, function: Some(function_ix), address, kind, strength },
                );
            }
            self.calls(ix, image, function_ix, &facts[number]);
            self.graph.add_function(node, &mut facts[number]);
        }
        for &slot in image.addresses_in_data() {
            if let Destination::Node(node) = self.destination(ix, image, slot.into()) {
                self.taken.push(node);
            }
        }
    }

    fn calls(&mut self, ix: ModuleIx, image: &'a Image<'data>, from: FunctionIx, facts: &Facts) {
        let node = self.node(ix, from);
        for call in &facts.calls {
            let Some(target) = call.target else {
                self.graph.add_call(node, call, ANY);
                continue;
            };
            if let Some(name) = name_of(image, target) {
                self.makers.note(name);
            }
            match self.destination(ix, image, target) {
                Destination::Node(to) => self.graph.add_call(node, call, to),
                Destination::Interface(interface) if !interface.is_harmless(call.arguments) => {
                    let kind = Kind::KernelInterface(interface);
                    // The call itself, not what follows it: that may be another line.
                    let address = call.returns_to.saturating_sub(1);
                    let spot =
                        Spot { module: ix, function: Some(from), address, kind, strength: Strength::Locked };
                    self.add_spot(node, spot);
                }
                _ => {}
            }
        }
        for &target in &facts.takes {
            match self.destination(ix, image, target) {
                Destination::Node(to) => {
                    self.graph.add_taken(node, to);
                    self.taken.push(to);
                }
                Destination::Interface(interface) => {
                    let kind = Kind::KernelInterface(interface);
                    let address = image.function(from).start;
                    let spot =
                        Spot { module: ix, function: Some(from), address, kind, strength: Strength::Locked };
                    self.add_spot(node, spot);
                }
                Destination::Known => {}
            }
        }
    }

    /// Where a call leads. Raddle's own functions are known by the names that they interpose.
    fn destination(&mut self, ix: ModuleIx, image: &'a Image<'data>, target: Target) -> Destination {
        match target {
            Target::Own(function) => {
                let found = image.function(function);
                match found.name {
                    Some(name) if runtimes::is_raddle(found) => known(name),
                    _ => Destination::Node(self.node(ix, function)),
                }
            }
            Target::Name(name) => self.resolve(image.import(name)),
        }
    }

    /// As the dynamic linker does it: the first module that exports the name.
    fn resolve(&mut self, name: &'a str) -> Destination {
        if let Some(&found) = self.resolved.get(name) {
            return found;
        }
        let found = self.search(name);
        self.resolved.insert(name, found);
        found
    }

    fn search(&self, name: &str) -> Destination {
        for (number, module) in self.modules.iter().enumerate() {
            let Some(image) = &module.image else { continue };
            let Some(address) = image.export(name) else { continue };
            return match self.standings[number] {
                Standing::Known => known(name),
                Standing::Foreign => Destination::Node(self.nodes[number]),
                Standing::Rebuilt => match image.function_at(address) {
                    Some(function) if !runtimes::is_raddle(image.function(function)) => {
                        Destination::Node(self.node(ModuleIx(number as u32), function))
                    }
                    _ => known(name),
                },
            };
        }
        known(name)
    }

    fn node(&self, module: ModuleIx, function: FunctionIx) -> NodeIx {
        NodeIx(self.nodes[module.0 as usize].0 + function.0)
    }

    fn add_spot(&mut self, node: NodeIx, spot: Spot) {
        self.graph.add_place(node, PlaceIx(self.spots.len() as u32));
        self.spots.push(spot);
    }

    fn finish(mut self) -> Findings {
        self.taken.sort_unstable();
        self.taken.dedup();
        for &node in &self.taken {
            self.graph.add_taken(ANY, node);
        }
        self.graph.finish();
        let Builder { standings, nodes, spots, graph, makers, .. } = self;
        Findings { standings, nodes, spots, graph, makers }
    }
}

fn known(name: &str) -> Destination {
    interfaces::find(name).map_or(Destination::Known, Destination::Interface)
}

fn name_of<'a>(image: &'a Image, target: Target) -> Option<&'a str> {
    match target {
        Target::Own(ix) => image.function(ix).name,
        Target::Name(ix) => Some(image.import(ix)),
    }
}

/// Compilers split rarely run parts off a function. Such a part has no hooks of its own if it only goes on where the function left
/// off, so it is as instrumented as the function that jumps to it.
fn parts_of_instrumented(image: &Image, facts: &[Facts]) -> Vec<bool> {
    let mut parts = vec![false; facts.len()];
    for facts in facts.iter().filter(|facts| facts.has_hooks) {
        for call in &facts.calls {
            if let Some(Target::Own(to)) = call.target
                && image.function(to).name.is_none_or(|name| name.contains(".cold"))
            {
                parts[to.0 as usize] = true;
            }
        }
    }
    parts
}

/// In a stripped file the runtime's inner functions have no names, but they lie between those that it exports.
fn is_raddle(image: &Image) -> Vec<bool> {
    let functions = image.functions();
    let own: Vec<bool> = functions.iter().map(runtimes::is_raddle).collect();
    // Is the nearest function with a name, on each side, the runtime's?
    let near = |order: &mut dyn Iterator<Item = usize>| {
        let mut near = vec![false; functions.len()];
        let mut last = false;
        for number in order {
            last = if functions[number].name.is_some() { own[number] } else { last };
            near[number] = last;
        }
        near
    };
    let before = near(&mut (0..functions.len()));
    let behind = near(&mut (0..functions.len()).rev());
    (0..functions.len()).map(|number| own[number] || before[number] && behind[number]).collect()
}

/// Is this function a place, and of which kind?
fn judge(image: &Image, function: &Function, facts: &Facts, is_part: bool) -> Option<(u64, Kind, Strength)> {
    if function.name.is_some_and(runtimes::is_added) {
        return None;
    }
    // gcc gives a function either all hooks or none. Some accesses of an instrumented one it leaves without: those that pass or return
    // structures by value.
    let has_hooks = if image.is_by_clang { facts.is_instrumented } else { facts.has_hooks };
    let is_instrumented = has_hooks || is_part;
    let is_foreign = !is_instrumented && frame::touches_others(image, function);
    match facts.sign {
        Some((address, _)) => {
            // A rebuilt function that calls others says so to the runtime when it is entered.
            let is_silent = !facts.has_hooks && !is_part && !facts.calls.is_empty();
            let kind =
                if is_foreign || is_silent { Kind::FunctionNotInstrumented } else { Kind::InlineAssembly };
            Some((address, kind, Strength::Locked))
        }
        None if is_foreign => {
            let strength = if facts.pauses { Strength::Locked } else { Strength::Plain };
            Some((function.start, Kind::FunctionNotInstrumented, strength))
        }
        None => None,
    }
}
