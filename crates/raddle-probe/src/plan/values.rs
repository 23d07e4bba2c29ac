//! What an event carries, in terms of registers and stack words.
//!
//! Integers and pointers come in six registers and then on the stack, floating-point numbers in registers of their own, large structures on
//! the stack: the calling convention of System V for x86-64. Debug information says which parameter is what; without it, all of them
//! are taken for integers of eight bytes, unless the user says a width.

use super::encode::Words;
use crate::aspect::{Aspect, Content, Operand, Relation, Source, Value, Width};
use crate::locate::{Class, Described, Locator};
use raddle_wire::probe::{source, value_head, what};

const REGISTERS: u64 = 6;
const VECTOR_REGISTERS: u64 = 8;

/// The words of one event.
pub(super) fn event(
    (aspect, is_model): (&Aspect, bool),
    called: &str,
    locator: &Locator,
    words: &mut Words,
) -> Result<Vec<u64>, String> {
    let mut fields = Vec::new();
    for field in &aspect.event.fields {
        match &field.content {
            Content::Word(word) => fields.extend([value_head(source::WORD, 0, 8, true), words.text(word)]),
            Content::Number(number) => fields.extend(constant(*number)),
            Content::Value(value) => fields.extend(place(value, called, locator)?),
        }
    }
    let mut conditions = Vec::new();
    for comparison in &aspect.condition {
        conditions.extend(place(&comparison.left, called, locator)?);
        let relation = Relation::ALL.iter().position(|relation| *relation == comparison.relation);
        conditions.push(relation.unwrap_or(0) as u64);
        conditions.extend(match &comparison.right {
            Operand::Number(number) => constant(*number),
            Operand::Value(value) => place(value, called, locator)?,
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

fn place(value: &Value, called: &str, locator: &Locator) -> Result<[u64; 2], String> {
    let described = locator.signature(called);
    let (from, which, class) = match &value.source {
        Source::Argument(number) => argument(called, described, usize::from(*number), value.dereferences)?,
        Source::Named(name) => {
            let Some(Described { signature, .. }) = described else {
                return Err(format!("the parameters of `{called}` are not known without debug information"));
            };
            let Some(number) = signature.parameters.iter().position(|(known, _)| known == name) else {
                let names: Vec<&str> = signature.parameters.iter().map(|(name, _)| name.as_str()).collect();
                return Err(format!("`{called}` has no parameter `{name}`; it has {}", names.join(", ")));
            };
            argument(called, described, number, value.dereferences)?
        }
        Source::Return => {
            let class = described.map_or(Class::Unknown, |described| {
                described.class(described.signature.returns, value.dereferences)
            });
            if let (Class::Float { .. }, 0) = (class, value.dereferences) {
                return Err(format!("`{called}` returns a floating-point number"));
            }
            (source::RETURN, 0, class)
        }
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

/// Where an argument is, and what it is after the dereferences.
fn argument(
    called: &str,
    described: Option<Described<'_>>,
    number: usize,
    dereferences: u8,
) -> Result<(u8, u64, Class), String> {
    let Some(described) = described else {
        let number = number as u64;
        return Ok(match number.checked_sub(REGISTERS) {
            None => (source::REGISTER, number, Class::Unknown),
            Some(word) => (source::STACK, word, Class::Unknown),
        });
    };
    let signature = described.signature;
    let class = |of, dereferences| described.class(of, dereferences);
    // A large result is written to where a hidden first argument points.
    let hidden = matches!(class(signature.returns, 0), Class::Aggregate { bytes } if bytes > 16);
    let (mut registers, mut vectors, mut stack) = (u64::from(hidden), 0, 0);
    for (at, (name, of)) in signature.parameters.iter().enumerate() {
        let wanted = at == number;
        match class(*of, 0) {
            Class::Float { bytes } => {
                if wanted {
                    return Err(format!("parameter `{name}` of `{called}` is a floating-point number"));
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
                    return Err(format!("parameter `{name}` of `{called}` is a structure"));
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
    let beyond = (number - signature.parameters.len()) as u64;
    Ok(match registers + beyond {
        register if register < REGISTERS => (source::REGISTER, register, Class::Unknown),
        word => (source::STACK, stack + word - registers.max(REGISTERS), Class::Unknown),
    })
}
