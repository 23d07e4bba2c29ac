//! Visibility of synchronisation: which code of a process could order threads without Raddle seeing it.
//!
//! A happens-before detector is right about two unordered accesses only if it has seen everything that could order them. Raddle sees what
//! `raddle cc` has rebuilt (each atomic operation is a call of a hook) and what goes through interposed functions (pthreads, C11 threads,
//! semaphores, futexes by `syscall`). It does not see a lock in inline assembly, an object or library that was built
//! otherwise, another runtime (OpenMP's), or the kernel passing something on from one thread to another. This module finds such
//! *places* in the files of the process, by disassembly, and says which of them a thread can reach.
//!
//! | what is found | why it counts |
//! | --- | --- |
//! | a locked instruction, `xchg` with memory, a fence, `syscall` in a rebuilt function | compilers make calls of hooks for atomics, so somebody wrote it ([`Kind::InlineAssembly`]) |
//! | a function without hooks that accesses more than its frame | it was not rebuilt, or is marked `no_sanitize`; on x86 plain moves release and acquire ([`Kind::FunctionNotInstrumented`]) |
//! | a shared library without hooks that is no known runtime | nothing in it was rebuilt ([`Kind::LibraryNotRebuilt`]) |
//! | a call of `msgsnd`, `sigwait`, `flock`, ... | the kernel orders threads in a way that is not followed ([`Kind::KernelInterface`]) |
//!
//! # When a finding could be explained
//!
//! Two accesses may have been ordered unseen if *both* threads can reach a place and the two places fit: code of the program on both
//! sides, the same library, or a sender and a receiver of one channel ([`interfaces`]). Reaching is by the static call graph
//! ([`graph`]), which over-approximates, so that a place that matters is not missed; a program without places is never
//! affected.
//!
//! # What is not found
//!
//! *Plain moves in inline assembly inside an instrumented function*: they cannot be told from the function's own accesses, whose hooks
//! come before them. A compiler barrier (`asm("" ::: "memory")`) leaves no instruction at all; the accesses around it are
//! instrumented and by the rules of C do race. *Order by files* (lock files, polling a file's contents), *order by time*. *A third thread* that
//! takes part: if thread A hands over to C unseen and C to B visibly, B need not reach a place; [`Cause::One`] is for that.
//! *Code made at run time*.

mod frame;
mod graph;
pub mod interfaces;
mod names;
mod place;
mod process;
mod runtimes;
mod scan;

pub use place::{Kind, Place, SourceLine, Strength};
pub use process::Standing;

use crate::image::Image;
use graph::{NodeIx, PlaceIx, Position};
use names::Names;
use process::{Findings, Module, ModuleIx, Spot};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// A place in the code of a module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeAddress {
    /// As the module was given to [`Visibility::read`].
    pub module: PathBuf,
    /// In the file's own numbering: a program counter less the module's bias.
    pub address: u64,
}

impl CodeAddress {
    pub fn new(module: impl Into<PathBuf>, address: u64) -> CodeAddress {
        CodeAddress { module: module.into(), address }
    }
}

/// A thread that made one of two accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Where the thread started: what `pthread_create` was given, `main` for the first one. It matters most for threads of a library
    /// that was not rebuilt, whose frames are on no stack that Raddle keeps.
    pub entry: Option<CodeAddress>,
    /// Its stack at the access, outermost first: return addresses, then the access itself. May be empty.
    pub frames: Vec<CodeAddress>,
}

/// What could have ordered two accesses unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Both threads can reach places that fit together: the first one's, the second one's.
    Both(Box<[Place; 2]>),
    /// Only one of them can reach a place that acts on memory ([`Kind::acts_on_memory`]). It explains the finding only if a third thread, or visible atomics of
    /// the other one, take part.
    One { party: usize, place: Box<Place> },
}

/// How much of one module is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleStanding {
    pub module: PathBuf,
    pub name: String,
    pub standing: Standing,
}

/// What is known about the files of one process.
pub struct Visibility {
    paths: Vec<PathBuf>,
    module_names: Vec<String>,
    by_path: FxHashMap<PathBuf, ModuleIx>,
    findings: Findings,
    names: Names,
    problems: Vec<String>,
}

impl Visibility {
    /// Reads the files of a process, the executable first, the others in the order of loading. Files that cannot be read are
    /// reported by [`Visibility::problems`] and count as libraries that were not rebuilt; names in brackets (`[vdso]`) are skipped.
    pub fn read<P: AsRef<Path>>(modules: &[P]) -> Visibility {
        let mut problems = Vec::new();
        let mut files = Vec::new();
        for path in modules.iter().map(AsRef::as_ref).filter(|path| !path.to_string_lossy().starts_with('['))
        {
            let map =
                map(path).map_err(|error| problems.push(format!("cannot read {}: {error}", path.display())));
            files.push((path.to_owned(), map.ok()));
        }
        let files: Vec<(PathBuf, &[u8])> = files
            .iter()
            .map(|(path, map)| (path.clone(), map.as_ref().map_or(&[][..], |map| &map[..])))
            .collect();
        let mut visibility = Visibility::of_bytes(&files);
        // A file that is not there was reported once; that its bytes are no ELF file is then no news.
        visibility.problems.retain(|problem| {
            !problems.iter().any(|known: &String| {
                let told = |text: &str| text.split(": ").next().map(str::to_owned);
                told(known) == told(problem)
            })
        });
        problems.append(&mut visibility.problems);
        visibility.problems = problems;
        visibility
    }

    /// As [`Visibility::read`], for files that are in memory already.
    pub fn of_bytes(files: &[(PathBuf, &[u8])]) -> Visibility {
        let mut problems = Vec::new();
        let modules: Vec<Module> = files
            .iter()
            .map(|(path, bytes)| {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
                let image = Image::parse(bytes)
                    .map_err(|error| problems.push(format!("cannot read {}: {error}", path.display())))
                    .ok();
                Module { name, image }
            })
            .collect();
        let findings = process::look_into(&modules);
        let names = Names::of(&modules, &findings.standings);
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
        let by_path =
            paths.iter().enumerate().map(|(ix, path)| (path.clone(), ModuleIx(ix as u32))).collect();
        let module_names = modules.iter().map(|module| module.known_as().to_owned()).collect();
        Visibility { paths, module_names, by_path, findings, names, problems }
    }

    /// Files that could not be read: one sentence each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Each module, with how much of it is seen.
    pub fn modules(&self) -> Vec<ModuleStanding> {
        let standing = |ix: usize| ModuleStanding {
            module: self.paths[ix].clone(),
            name: self.module_names[ix].clone(),
            standing: self.findings.standings[ix],
        };
        (0..self.paths.len()).map(standing).collect()
    }

    /// Every place, whoever can reach it. Calls that order nothing in this program are left out.
    pub fn places(&self) -> Vec<Place> {
        let all = (0..self.findings.spots.len() as u32).map(PlaceIx);
        all.filter(|&ix| self.counts(ix)).map(|ix| self.place(ix)).collect()
    }

    /// The nearest place that the code can run which starts at (or holds) this address.
    pub fn could_reach(&self, code: &CodeAddress) -> Option<Place> {
        let node = self.node(code)?;
        self.reached(&[Position { node, returns_to: None }]).first().map(|&ix| self.place(ix))
    }

    /// As [`Visibility::could_reach`], for a function by its (mangled) name in a module's symbol table.
    pub fn could_reach_named(&self, module: &Path, function: &str) -> Option<Place> {
        let address = self.names.address(*self.by_path.get(module)?, function)?;
        self.could_reach(&CodeAddress::new(module, address))
    }

    /// All places that the thread can reach, nearest first.
    pub fn reached_by(&self, party: &Party) -> Vec<Place> {
        self.reached(&self.positions(party)).into_iter().map(|ix| self.place(ix)).collect()
    }

    /// What could have ordered an access of each of the two threads, unseen.
    ///
    /// Of several causes the strongest one is told; both threads reaching something that fits is stronger than one of them.
    pub fn cause(&self, parties: [&Party; 2]) -> Option<Cause> {
        let mut reached = parties.map(|party| self.reached(&self.positions(party)));
        let process_wide: Vec<PlaceIx> = (0..self.findings.spots.len() as u32)
            .map(PlaceIx)
            .filter(|&ix| matches!(self.spot(ix).kind, Kind::KernelInterface(interface) if interface.is_process_wide))
            .collect();
        for places in &mut reached {
            places.extend(&process_wide);
            // Stable: among equals the nearest one stays first.
            places.sort_by_key(|&ix| std::cmp::Reverse(self.spot(ix).strength));
        }
        if let Some(pair) = self.pair(&reached) {
            return Some(Cause::Both(Box::new(pair.map(|ix| self.place(ix)))));
        }
        reached.iter().enumerate().find_map(|(party, places)| {
            let place = places.iter().find(|&&ix| self.spot(ix).kind.acts_on_memory())?;
            Some(Cause::One { party, place: Box::new(self.place(*place)) })
        })
    }

    /// Two places that fit together. Linear in the number of places but for kernel interfaces, of which distinct ones are few.
    fn pair(&self, reached: &[Vec<PlaceIx>; 2]) -> Option<[PlaceIx; 2]> {
        let memory =
            |side: usize| reached[side].iter().copied().find(|&ix| self.spot(ix).kind.acts_on_memory());
        let both_memory = memory(0).zip(memory(1)).map(|(a, b)| [a, b]);
        let strength = |pair: &[PlaceIx; 2]| pair.map(|ix| self.spot(ix).strength).into_iter().min();
        let candidates = [both_memory, self.same_library(reached), self.same_channel(reached)];
        // The first of the strongest: code of the program is the likeliest.
        candidates.into_iter().flatten().rev().max_by_key(strength)
    }

    fn same_library(&self, reached: &[Vec<PlaceIx>; 2]) -> Option<[PlaceIx; 2]> {
        let is_library = |ix: &&PlaceIx| self.spot(**ix).kind == Kind::LibraryNotRebuilt;
        reached[0].iter().filter(is_library).find(|ix| reached[1].contains(ix)).map(|&ix| [ix, ix])
    }

    fn same_channel(&self, reached: &[Vec<PlaceIx>; 2]) -> Option<[PlaceIx; 2]> {
        let interfaces = |side: usize| {
            let mut distinct: Vec<(&'static interfaces::Interface, PlaceIx)> = Vec::new();
            for &ix in &reached[side] {
                if let Kind::KernelInterface(interface) = self.spot(ix).kind
                    && !distinct.iter().any(|(known, _)| std::ptr::eq(*known, interface))
                {
                    distinct.push((interface, ix));
                }
            }
            distinct
        };
        let (first, second) = (interfaces(0), interfaces(1));
        let makers = &self.findings.makers;
        first.iter().find_map(|&(a, a_ix)| {
            let fits = |&&(b, _): &&(&'static interfaces::Interface, PlaceIx)| {
                makers.orders(a, b) || makers.orders(b, a)
            };
            second.iter().find(fits).map(|&(_, b_ix)| [a_ix, b_ix])
        })
    }

    fn reached(&self, positions: &[Position]) -> Vec<PlaceIx> {
        let mut reached = self.findings.graph.reach(positions);
        reached.retain(|&ix| self.counts(ix));
        reached
    }

    fn positions(&self, party: &Party) -> Vec<Position> {
        let nodes: Vec<(NodeIx, u64)> =
            party.frames.iter().filter_map(|frame| Some((self.node(frame)?, frame.address))).collect();
        let mut positions: Vec<Position> = Vec::with_capacity(nodes.len() + 1);
        for (number, &(node, address)) in nodes.iter().enumerate() {
            // Inlined calls share the frame of the function that they are in. The innermost frame is the access itself, and may be anywhere.
            let calls_next = nodes.get(number + 1).is_some_and(|next| next.0 != node);
            positions.push(Position { node, returns_to: calls_next.then_some(address) });
        }
        // Frames are missing where code was not rebuilt: then the call that a frame has made need not have led to the next one.
        if let Some(entry) = party.entry.as_ref().and_then(|entry| self.node(entry))
            && positions.first().is_none_or(|first| first.node != entry)
        {
            positions.insert(0, Position { node: entry, returns_to: None });
        }
        positions
    }

    fn node(&self, code: &CodeAddress) -> Option<NodeIx> {
        let module = *self.by_path.get(&code.module)?;
        let first = self.findings.nodes[module.0 as usize];
        match self.findings.standings[module.0 as usize] {
            Standing::Rebuilt => Some(NodeIx(first.0 + self.names.function_at(module, code.address)?.0)),
            Standing::Foreign => Some(first),
            Standing::Known => None,
        }
    }

    fn spot(&self, ix: PlaceIx) -> &Spot {
        &self.findings.spots[ix.0 as usize]
    }

    /// Can this place order anything in this program?
    fn counts(&self, ix: PlaceIx) -> bool {
        match self.spot(ix).kind {
            Kind::KernelInterface(interface) => self.findings.makers.allow(interface),
            _ => true,
        }
    }

    fn place(&self, ix: PlaceIx) -> Place {
        let spot = *self.spot(ix);
        let module = spot.module.0 as usize;
        let path = &self.paths[module];
        Place {
            module: path.clone(),
            module_name: self.module_names[module].clone(),
            function: spot.function.and_then(|function| self.names.function(spot.module, function)),
            address: spot.address,
            source: spot.function.and_then(|_| self.names.source(spot.module, path, spot.address)),
            kind: spot.kind,
            strength: spot.strength,
        }
    }
}

fn map(path: &Path) -> std::io::Result<memmap2::Mmap> {
    let file = std::fs::File::open(path)?;
    // SAFETY: the map is only read; a file that changes under us changes bytes that the readers check as they go.
    unsafe { memmap2::Mmap::map(&file) }
}
