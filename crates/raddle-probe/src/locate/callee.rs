//! What is known about how the function at a place is called: whether its arguments are where the calling convention says.

use super::debug::{Class, DebugInfo, Definition, Signature};
use super::entry::AtEntry;
use super::{Locator, Note, Place, Symbol, names};
use crate::image::{Function, Image};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use rustc_hash::FxHashSet;

/// A signature and what its types mean.
#[derive(Clone, Copy)]
pub struct Described<'module> {
    pub signature: &'module Signature,
    debug: &'module DebugInfo,
}

impl<'module> Described<'module> {
    pub fn class(&self, of: Option<usize>, dereferences: u8) -> Class {
        self.debug.class(of, dereferences)
    }
}

/// How much is known of a function.
#[derive(Clone, Copy)]
pub enum Knowledge<'module> {
    /// Debug information has the code that begins there.
    Compiled {
        described: Described<'module>,
        definition: &'module Definition,
        /// The compiler took parameters away, added some or moved them.
        parameters_changed: bool,
        /// It may have taken the result away.
        result_changed: bool,
    },
    /// It is called by name in another file, so caller and function keep to the calling convention.
    Elsewhere(Option<Described<'module>>),
    /// Code of the program without debug information.
    Unknown,
}

impl<'modules> Locator<'modules> {
    /// What is known of the function that is called or entered at a place.
    pub fn knowledge(&self, place: &Place) -> Knowledge<'modules> {
        let modules: &'modules [super::Module] = self.modules;
        let Some(entry) = place.entry else { return Knowledge::Elsewhere(self.described(&place.what)) };
        let module = &modules[place.module];
        if module.is_system {
            return Knowledge::Unknown;
        }
        let debug = module.debug();
        let all = debug.definitions(entry);
        let named = all.iter().find(|definition| definition.is_called(&place.what));
        let Some(definition) = named.or(all.first()) else {
            return match self.caller_knows_only_its_name(place) {
                true => Knowledge::Elsewhere(self.described(&place.what)),
                false => Knowledge::Unknown,
            };
        };
        let suffix = |clone: fn(&str) -> bool| {
            let symbols = self.views[place.module].as_ref().and_then(|view| view.names.get(&entry));
            symbols.is_some_and(|symbols| symbols.iter().any(|symbol| clone(&symbol.name)))
        };
        let gone = |place: &AtEntry| {
            matches!(place, AtEntry::Nowhere | AtEntry::Constant(_) | AtEntry::Global(_) | AtEntry::Computed)
        };
        Knowledge::Compiled {
            described: Described { signature: &definition.signature, debug },
            definition,
            parameters_changed: definition.is_changed
                || suffix(names::is_clone)
                || definition.at_entry.iter().any(gone),
            result_changed: definition.is_changed || suffix(names::may_lack_result),
        }
    }

    /// The caller has debug information and the function has none: it was compiled apart, so its caller could not look into it.
    fn caller_knows_only_its_name(&self, place: &Place) -> bool {
        let debug = self.modules[place.module].debug();
        let caller = self.views[place.module].as_ref().filter(|_| place.within.is_some()).and_then(|view| {
            let function = view.image.function_at(place.address)?;
            Some(view.image.function(function).start)
        });
        let is_described = caller.is_some_and(|caller| !debug.definitions(caller).is_empty());
        is_described && !debug.defines(&place.what)
    }

    /// How a function of this name is declared, wherever it may be.
    fn described(&self, name: &str) -> Option<Described<'modules>> {
        let modules: &'modules [super::Module] = self.modules;
        modules.iter().find_map(|module| {
            // Libraries of the system have no debug information of their own, and the program need not read them for that.
            let debug = (!module.is_system).then(|| module.debug())?;
            let signature = debug.signature(name)?;
            Some(Described { signature, debug })
        })
    }

    /// Functions of the source that are meant and have no code that bears their name: their calls went elsewhere.
    pub(super) fn gone(&self, module: usize, pattern: &str) -> Option<Note> {
        let own = self.views[module].as_ref()?.own_names();
        let meant = self.modules[module].debug().defined().filter(|name| names::matches(pattern, name));
        let first = meant.filter(|name| !own.contains(name)).min()?;
        let message = format!(
            "`{first}` has no code of its own: it was inlined, became one with an equal function, or was removed"
        );
        Some(Note::doubt(message, "compile with -fno-inline and -fno-ipa-icf, or with -O0"))
    }

    /// Another function of the source has the same code: nobody can tell which of both is called.
    pub(super) fn folded(&self, place: &Place) -> Option<Note> {
        let entry = place.entry?;
        let module = &self.modules[place.module];
        let symbols = self.views[place.module].as_ref()?.names.get(&entry)?;
        if module.is_system {
            return None;
        }
        let debug = module.debug();
        let own = debug.definitions(entry);
        // Names of one function have one definition. Where two have definitions, they were two functions.
        let source = |name: &str| debug.defines(name);
        let same = |other: &str| {
            other == place.what
                || own
                    .iter()
                    .any(|definition| definition.is_called(&place.what) && definition.is_called(other))
        };
        let readable = symbols.iter().map(|symbol| symbol.spellings[0].as_str());
        let other = readable.filter(|name| source(name) && source(&place.what)).find(|name| !same(name));
        let message = match other {
            Some(other) => format!(
                "`{}` and `{other}` became one piece of code, so their events cannot be told apart",
                place.what
            ),
            None if self.may_be_folded(place.module, &place.what, symbols) => {
                format!("the code of `{}` may also stand for another function with equal code", place.what)
            }
            None => match self.equal_code(place.module, entry, &place.what) {
                Some(other) => format!(
                    "`{}` and `{other}` have equal code, so calls of one may have become calls of the other",
                    place.what
                ),
                None => return None,
            },
        };
        Some(Note::doubt(message, "compile with -fno-ipa-icf (gcc) or without --icf (linker)"))
    }

    /// gcc folds a function into an equal one and may make a variant of that: nothing tells any more that both are meant.
    fn may_be_folded(&self, module: usize, name: &str, symbols: &[Symbol]) -> bool {
        let debug = self.modules[module].debug();
        let parameters = |name: &str| debug.signature(name).map(|signature| signature.parameters.len());
        let variant = symbols.iter().any(|symbol| names::is_clone(&symbol.name));
        let alike = |other: &String| other != name && parameters(other) == parameters(name);
        debug.may_fold && (variant || self.without_trace(module).iter().any(alike))
    }

    /// Another function of the source with the same instructions, where a compiler looks for such.
    fn equal_code(&self, module: usize, entry: u64, name: &str) -> Option<String> {
        let debug = self.modules[module].debug();
        let view = self.views[module].as_ref().filter(|_| debug.may_fold)?;
        let own = view.image.function(view.image.function_from(entry)?);
        let bytes = own.end - own.start;
        let alike = view.image.functions().iter().find(|other| {
            let called = other.name.map(names::readable);
            let is_other = other.start != own.start
                && called.is_some_and(|other| other != name && debug.defines(&other));
            other.end - other.start == bytes && is_other && does_the_same(&view.image, own, other)
        })?;
        alike.name.map(names::readable)
    }

    /// Functions of the source that have neither code of their own nor inlined copies.
    fn without_trace(&self, module: usize) -> &[String] {
        let Some(view) = &self.views[module] else { return &[] };
        view.without_trace.get_or_init(|| {
            let debug = self.modules[module].debug();
            let inlined: FxHashSet<String> =
                debug.inlined.iter().flat_map(|copy| &copy.names).map(|name| names::readable(name)).collect();
            let own = view.own_names();
            let lost = debug.defined().filter(|name| !own.contains(name) && !inlined.contains(*name));
            lost.map(str::to_owned).collect()
        })
    }
}

/// Are these the same instructions, on the same variables?
fn does_the_same(image: &Image, a: &Function, b: &Function) -> bool {
    let decoded = |function: &Function| {
        let decoder = Decoder::with_ip(64, image.bytes_of(function), function.start, DecoderOptions::NONE);
        decoder.into_iter().collect::<Vec<Instruction>>()
    };
    let (first, second) = (decoded(a), decoded(b));
    let same = |x: &Instruction, y: &Instruction| {
        let operands = (0..x.op_count()).all(|at| {
            let (kind, target) = (x.op_kind(at), |i: &Instruction| i.near_branch_target());
            kind == y.op_kind(at)
                && match kind {
                    OpKind::Register => x.op_register(at) == y.op_register(at),
                    OpKind::NearBranch64 if (a.start..a.end).contains(&target(x)) => {
                        target(x) - a.start == target(y).wrapping_sub(b.start)
                    }
                    OpKind::NearBranch64 => target(x) == target(y),
                    OpKind::Memory => {
                        // Relative to the instruction: the address that is meant.
                        x.memory_displacement64() == y.memory_displacement64()
                            && (x.memory_base(), x.memory_index()) == (y.memory_base(), y.memory_index())
                            && x.memory_index_scale() == y.memory_index_scale()
                    }
                    _ => x.try_immediate(at).ok() == y.try_immediate(at).ok(),
                }
        });
        x.code() == y.code() && operands
    };
    first.len() == second.len() && first.iter().zip(&second).all(|(x, y)| same(x, y))
}
