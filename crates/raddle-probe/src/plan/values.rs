//! What an event carries, in terms of registers and stack words.
//!
//! Integers and pointers come in six registers and then on the stack, floating-point numbers in registers of their own, large structures on
//! the stack: the calling convention of System V for x86-64. Whether a function is called like that, and where its arguments are if it is not,
//! debug information says ([`crate::locate::AtEntry`]). What it does not vouch for is not taken from a register that may hold anything: the field
//! is unreadable, and a note says why. Calls of another file's functions keep to the convention. Of own code without debug information it is
//! assumed, and said; integers have eight bytes then, unless the user says a width.

use super::encode::Words;
use crate::aspect::{Aspect, Content, Operand, Relation, Source, Value, Width};
use crate::locate::{AtEntry, Class, Definition, Described, Knowledge, Locator, Note, Place};
use raddle_wire::probe::{global, source, value_head, what};

const REGISTERS: u64 = 6;
const VECTOR_REGISTERS: u64 = 8;
/// Numbers of the registers of arguments in debug information, in their order: rdi, rsi, rdx, rcx, r8, r9.
const ARGUMENT_REGISTERS: [u16; REGISTERS as usize] = [5, 4, 1, 2, 8, 9];
/// Functions have fewer parameters: more are a damaged file.
const PARAMETERS_MAX: usize = 256;

/// The function that an event is about.
pub(super) struct Called<'module> {
    name: String,
    /// The module of the place, as the plan counts them.
    module: usize,
    knowledge: Knowledge<'module>,
}

impl<'module> Called<'module> {
    pub fn at(place: &Place, module: usize, locator: &Locator<'module>) -> Called<'module> {
        Called { name: place.what.clone(), module, knowledge: locator.knowledge(place) }
    }
}

/// Why a value cannot be had.
enum Refused {
    /// The aspect asks for something that there is not.
    Wrong(String),
    /// The compiler did not leave it where it could be found.
    Untrusted(String),
}

type Found<T> = Result<T, Refused>;

const KEEP_PARAMETERS: &str = "compile with -O0, or give the function `__attribute__((noipa))` (gcc) or a use of each \
                               parameter, such as an empty `asm` (clang)";

/// The words of one event.
pub(super) fn event(
    (aspect, is_model): (&Aspect, bool),
    called: Option<&Called<'_>>,
    words: &mut Words,
    notes: &mut Vec<Note>,
) -> Result<Vec<u64>, String> {
    let mut fields = Vec::new();
    for field in &aspect.event.fields {
        match &field.content {
            Content::Word(word) => fields.extend([value_head(source::WORD, 0, 8, true), words.text(word)]),
            Content::Number(number) => fields.extend(constant(*number)),
            Content::Value(value) => fields.extend(value_words(value, called, notes)?),
        }
    }
    let mut conditions = Vec::new();
    for comparison in &aspect.condition {
        conditions.extend(value_words(&comparison.left, called, notes)?);
        let relation = Relation::ALL.iter().position(|relation| *relation == comparison.relation);
        conditions.push(relation.unwrap_or(0) as u64);
        conditions.extend(match &comparison.right {
            Operand::Number(number) => constant(*number),
            Operand::Value(value) => value_words(value, called, notes)?,
        });
    }
    let name = words.text(&aspect.event.name);
    let kind = match is_model {
        false => what::EVENT,
        true => {
            let known =
                what::WORDS.iter().find(|(word, _)| *word == aspect.event.name).map(|(_, kind)| *kind);
            let words: Vec<&str> = what::WORDS.iter().map(|(word, _)| *word).collect();
            known.ok_or_else(|| {
                format!("`{}` is no model; there are {}", aspect.event.name, words.join(", "))
            })?
        }
    };
    if is_model && aspect.event.fields.len() != 1 {
        return Err(format!("`{}` is about one object, such as `#0`", aspect.event.name));
    }
    let mut event = vec![kind, name, aspect.event.fields.len() as u64, aspect.condition.len() as u64];
    event.extend(fields);
    event.extend(conditions);
    Ok(event)
}

fn constant(number: i64) -> [u64; 2] {
    [value_head(source::NUMBER, 0, 8, true), number as u64]
}

/// The words of a value; those of an unreadable one, and a note, if the compiler did not leave it.
fn value_words(
    value: &Value,
    called: Option<&Called<'_>>,
    notes: &mut Vec<Note>,
) -> Result<[u64; 2], String> {
    let asks_function =
        matches!(value.source, Source::Argument(_) | Source::Named(_) | Source::Return | Source::Caller);
    if let (true, Some(Called { name, knowledge: Knowledge::Unknown, .. })) = (asks_function, called) {
        let message = format!(
            "`{name}` has no debug information: its arguments are taken to be passed as the calling convention says"
        );
        notes.push(Note::doubt(message, "compile with -g"));
    }
    match place(value, called) {
        Ok(words) => Ok(words),
        Err(Refused::Wrong(message)) => Err(message),
        Err(Refused::Untrusted(message)) => {
            notes.push(Note::doubt(message, KEEP_PARAMETERS));
            Ok([value_head(source::UNREADABLE, 0, 8, true), 0])
        }
    }
}

fn place(value: &Value, called: Option<&Called<'_>>) -> Found<[u64; 2]> {
    let function =
        || called.ok_or_else(|| Refused::Wrong("no function is called or entered here".to_owned()));
    let (from, which, class) = match &value.source {
        Source::Argument(number) => argument(function()?, usize::from(*number), value.dereferences)?,
        Source::Named(name) => {
            let called = function()?;
            let Some(Described { signature, .. }) = called.described() else {
                let message =
                    format!("the parameters of `{}` are not known without debug information", called.name);
                return Err(Refused::Wrong(message));
            };
            let Some(number) = signature.parameters.iter().position(|(known, _)| known == name) else {
                let names: Vec<&str> = signature.parameters.iter().map(|(name, _)| name.as_str()).collect();
                let message =
                    format!("`{}` has no parameter `{name}`; it has {}", called.name, names.join(", "));
                return Err(Refused::Wrong(message));
            };
            argument(called, number, value.dereferences)?
        }
        Source::Return => returned(function()?, value.dereferences)?,
        Source::Size => (source::SIZE, 0, Class::Unknown),
        Source::Address => (source::ADDRESS, 0, Class::Unknown),
        Source::Accessed => (source::ACCESSED, 0, Class::Unknown),
        Source::Thread => (source::THREAD, 0, Class::Unknown),
        Source::Caller => (source::CALLER, 0, Class::Unknown),
    };
    let width = value.width.unwrap_or(match class {
        Class::Integer { bytes, signed } => Width { bytes, signed },
        _ => Width::WORD,
    });
    Ok([value_head(from, value.dereferences, width.bytes, width.signed), which])
}

fn returned(called: &Called<'_>, dereferences: u8) -> Found<(u8, u64, Class)> {
    let name = &called.name;
    if let Knowledge::Compiled { result_changed: true, .. } = called.knowledge {
        let message =
            format!("`#return` of `{name}` cannot be known: the compiler changed how `{name}` is called");
        return Err(Refused::Untrusted(message));
    }
    let class = called
        .described()
        .map_or(Class::Unknown, |described| described.class(described.signature.returns, dereferences));
    match (class, dereferences) {
        (Class::Float { .. }, 0) => Err(Refused::Wrong(format!("`{name}` returns a floating-point number"))),
        _ => Ok((source::RETURN, 0, class)),
    }
}

impl<'module> Called<'module> {
    fn described(&self) -> Option<Described<'module>> {
        match self.knowledge {
            Knowledge::Compiled { described, .. } => Some(described),
            Knowledge::Elsewhere(described) => described,
            Knowledge::Unknown => None,
        }
    }
}

/// Where an argument is, and what it is after the dereferences.
fn argument(called: &Called<'_>, number: usize, dereferences: u8) -> Found<(u8, u64, Class)> {
    let conventional = || conventional(called, number, dereferences);
    let Knowledge::Compiled { described, definition, parameters_changed, .. } = called.knowledge else {
        return conventional();
    };
    let name = &called.name;
    let untrusted = |why: &str| {
        let parameter = definition.signature.parameters.get(number).map(|(name, _)| name.as_str());
        let parameter = parameter.filter(|name| !name.is_empty()).map(|name| format!(" (`{name}`)"));
        let message =
            format!("`#{number}`{} of `{name}` cannot be known: {why}", parameter.unwrap_or_default());
        Err(Refused::Untrusted(message))
    };
    let Some(place) = definition.at_entry.get(number) else {
        return match parameters_changed {
            true => untrusted("the compiler changed how the function is called"),
            false => conventional(),
        };
    };
    let of = definition.signature.parameters[number].1;
    let class = described.class(of, dereferences);
    if let Class::Aggregate { .. } | Class::Float { .. } = described.class(of, 0) {
        return match parameters_changed || is_foreign_aggregate(&described, definition, number) {
            true => untrusted("the compiler changed how the function is called"),
            false => conventional(),
        };
    }
    match *place {
        AtEntry::Register(register) => {
            match ARGUMENT_REGISTERS.iter().position(|&argument| argument == register) {
                Some(which) => Ok((source::REGISTER, which as u64, class)),
                None => untrusted("the compiler passes it in a register that is not for arguments"),
            }
        }
        AtEntry::Stack(word) => Ok((source::STACK, word, class)),
        AtEntry::Constant(value) => Ok((source::NUMBER, value as u64, class)),
        AtEntry::Global(address) => Ok((source::GLOBAL, global(called.module, address), class)),
        AtEntry::Frame if parameters_changed => untrusted("the compiler changed how the function is called"),
        AtEntry::Frame if is_foreign_aggregate(&described, definition, number) => {
            untrusted("Rust passes the structures before it in its own way")
        }
        AtEntry::Frame => conventional(),
        AtEntry::Computed => untrusted("the compiler passes something else in its place"),
        AtEntry::Nowhere => untrusted("the compiler does not pass it, or not as it is written"),
    }
}

/// Rust's own convention differs where structures are passed or returned.
fn is_foreign_aggregate(described: &Described<'_>, definition: &Definition, number: usize) -> bool {
    let before = definition.signature.parameters.iter().take(number + 1).map(|(_, of)| *of);
    let aggregate = |of| matches!(described.class(of, 0), Class::Aggregate { .. });
    definition.is_rust && before.chain([definition.signature.returns]).any(aggregate)
}

/// Where the calling convention puts an argument.
fn conventional(called: &Called<'_>, number: usize, dereferences: u8) -> Found<(u8, u64, Class)> {
    let Some(described) = called.described() else {
        let number = number as u64;
        return Ok(match number.checked_sub(REGISTERS) {
            None => (source::REGISTER, number, Class::Unknown),
            Some(word) => (source::STACK, word, Class::Unknown),
        });
    };
    let signature = described.signature;
    let function = &called.name;
    let wrong =
        |name: &str, what: &str| Err(Refused::Wrong(format!("parameter `{name}` of `{function}` is {what}")));
    let class = |of, dereferences| described.class(of, dereferences);
    // A large result is written to where a hidden first argument points.
    let hidden = matches!(class(signature.returns, 0), Class::Aggregate { bytes } if bytes > 16);
    let (mut registers, mut vectors, mut stack) = (u64::from(hidden), 0, 0);
    for (at, (name, of)) in signature.parameters.iter().take(PARAMETERS_MAX).enumerate() {
        let wanted = at == number;
        match class(*of, 0) {
            Class::Float { bytes } => {
                if wanted {
                    return wrong(name, "a floating-point number");
                }
                match bytes {
                    0..=8 if vectors < VECTOR_REGISTERS => vectors += 1,
                    _ => stack += bytes.div_ceil(8).max(1),
                }
            }
            Class::Aggregate { bytes } => {
                let parts = bytes.div_ceil(8);
                let fits = bytes <= 16 && registers + parts <= REGISTERS;
                if wanted && (dereferences > 0 || bytes > 8) {
                    return wrong(name, "a structure");
                }
                if wanted {
                    let place = if fits { (source::REGISTER, registers) } else { (source::STACK, stack) };
                    return Ok((place.0, place.1, Class::Unknown));
                }
                if fits { registers += parts } else { stack += parts }
            }
            Class::Integer { .. } | Class::Pointer | Class::Unknown => {
                let place = match registers < REGISTERS {
                    true => (source::REGISTER, registers),
                    false => (source::STACK, stack),
                };
                if wanted {
                    return Ok((place.0, place.1, class(*of, dereferences)));
                }
                if registers < REGISTERS { registers += 1 } else { stack += 1 }
            }
        }
    }
    // Functions with `...` have more arguments than parameters.
    let beyond = number.saturating_sub(signature.parameters.len()) as u64;
    Ok(match registers + beyond {
        register if register < REGISTERS => (source::REGISTER, register, Class::Unknown),
        word => (source::STACK, stack + word - registers.max(REGISTERS), Class::Unknown),
    })
}
