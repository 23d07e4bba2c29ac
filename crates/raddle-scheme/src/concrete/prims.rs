//! Primitive procedures on concrete values. Those that touch existing cells are in [`super::step`], where the accesses
//! are; here is the rest: arithmetic, predicates, strings.

use super::number::{self, Number, number};
use super::state::{FailureKind, Value};
use crate::syntax::prim::Prim;
use crate::syntax::reader::Symbols;
use std::cmp::Ordering;

/// Why a primitive has no result: the program's mistake, or a limit of the machine.
pub type Refusal = (FailureKind, String);

pub fn wrong(message: String) -> Refusal {
    (FailureKind::Wrong, message)
}

/// Bytes of a string.
pub const STRING_MAX: usize = 1 << 24;

/// Applies a primitive that touches no existing cell and allocates nothing.
pub fn apply(prim: Prim, args: &[Value], symbols: &Symbols) -> Result<Value, Refusal> {
    let truth = |b: bool| Ok(Value::Bool(b));
    let sign = |wanted: Ordering| -> Result<Value, Refusal> {
        Ok(Value::Bool(number(prim, &args[0])?.sign() == Some(wanted)))
    };
    let is_number = |test: fn(&Number) -> bool| Number::of(&args[0]).is_some_and(|number| test(&number));
    match prim {
        Prim::Add | Prim::Sub | Prim::Mul | Prim::Div | Prim::Min | Prim::Max => number::fold(prim, args),
        Prim::Quotient | Prim::Remainder | Prim::Modulo => number::integer_division(prim, args),
        Prim::NumEq => number::compare(prim, args, Ordering::is_eq),
        Prim::Lt => number::compare(prim, args, Ordering::is_lt),
        Prim::Gt => number::compare(prim, args, Ordering::is_gt),
        Prim::Le => number::compare(prim, args, Ordering::is_le),
        Prim::Ge => number::compare(prim, args, Ordering::is_ge),
        Prim::IsZero => sign(Ordering::Equal),
        Prim::IsPositive => sign(Ordering::Greater),
        Prim::IsNegative => sign(Ordering::Less),
        Prim::IsOdd => truth(!number::is_even(prim, &args[0])?),
        Prim::IsEven => truth(number::is_even(prim, &args[0])?),
        Prim::Abs => number::absolute(number(prim, &args[0])?).map(Number::value),
        Prim::Floor | Prim::Ceiling | Prim::Truncate | Prim::Round => {
            Ok(number::rounded(prim, number(prim, &args[0])?).value())
        }
        Prim::Numerator | Prim::Denominator => number::part(prim, number(prim, &args[0])?).map(Number::value),
        Prim::Rationalize => {
            number::rationalize(number(prim, &args[0])?, number(prim, &args[1])?).map(Number::value)
        }
        Prim::Sqrt => number::square_root(number(prim, &args[0])?).map(Number::value),
        Prim::Expt => number::power(number(prim, &args[0])?, number(prim, &args[1])?).map(Number::value),
        Prim::Exp | Prim::Log | Prim::Sin | Prim::Cos | Prim::Tan | Prim::Asin | Prim::Acos | Prim::Atan => {
            number::transcendental(prim, args)
        }
        Prim::ToInexact => Ok(Value::Real(number(prim, &args[0])?.real())),
        Prim::ToExact => number::to_exact(number(prim, &args[0])?).map(Number::value),
        Prim::Not => truth(!args[0].truthy()),
        Prim::Eq | Prim::Eqv => truth(args[0].same(&args[1])),
        Prim::IsNull => truth(args[0] == Value::Nil),
        Prim::IsPair => truth(matches!(args[0], Value::Pair(_))),
        Prim::IsNumber => truth(is_number(|_| true)),
        Prim::IsInteger => truth(is_number(Number::is_integer)),
        Prim::IsRational => truth(is_number(|x| x.real().is_finite() || x.is_exact())),
        Prim::IsExact => truth(is_number(Number::is_exact)),
        Prim::IsInexact => truth(is_number(|x| !x.is_exact())),
        Prim::IsBoolean => truth(matches!(args[0], Value::Bool(_))),
        Prim::IsSymbol => truth(matches!(args[0], Value::Symbol(_) | Value::Made(_))),
        Prim::IsString => truth(matches!(args[0], Value::Str(_))),
        Prim::IsChar => truth(matches!(args[0], Value::Char(_))),
        Prim::IsProcedure => truth(matches!(args[0], Value::Closure(..) | Value::Prim(_) | Value::Escape(_))),
        Prim::IsVector => truth(matches!(args[0], Value::Vector(_))),
        Prim::IsRef => truth(matches!(args[0], Value::Ref(_))),
        Prim::IsLock => truth(matches!(args[0], Value::Lock(_) | Value::LockState(_))),
        Prim::IsThread => truth(matches!(args[0], Value::Thread(_))),
        Prim::StringAppend => {
            let mut out = String::new();
            for arg in args {
                out.push_str(string(prim, arg)?);
                if out.len() > STRING_MAX {
                    return Err((FailureKind::Limit, format!("a string of more than {STRING_MAX} bytes")));
                }
            }
            Ok(Value::Str(out.into()))
        }
        Prim::CharToInteger => Ok(Value::Int(i64::from(u32::from(character(prim, &args[0])?)))),
        Prim::IntegerToChar => {
            let code = match &args[0] {
                Value::Int(n) => u32::try_from(*n).ok().and_then(char::from_u32),
                _ => None,
            };
            code.map(Value::Char)
                .ok_or_else(|| wrong("integer->char needs the number of a character".to_owned()))
        }
        Prim::CharUpcase => {
            let c = character(prim, &args[0])?;
            Ok(Value::Char(single(c.to_uppercase()).unwrap_or(c)))
        }
        Prim::CharDowncase => {
            let c = character(prim, &args[0])?;
            Ok(Value::Char(single(c.to_lowercase()).unwrap_or(c)))
        }
        Prim::IsAlphabetic => truth(character(prim, &args[0])?.is_alphabetic()),
        Prim::IsNumeric => truth(character(prim, &args[0])?.is_numeric()),
        Prim::IsWhitespace => truth(character(prim, &args[0])?.is_whitespace()),
        Prim::IsUpperCase => truth(character(prim, &args[0])?.is_uppercase()),
        Prim::IsLowerCase => truth(character(prim, &args[0])?.is_lowercase()),
        Prim::CharLt | Prim::CharGt | Prim::CharLe | Prim::CharGe => {
            let order = character(prim, &args[0])?.cmp(&character(prim, &args[1])?);
            truth(match prim {
                Prim::CharLt => order.is_lt(),
                Prim::CharGt => order.is_gt(),
                Prim::CharLe => order.is_le(),
                _ => order.is_ge(),
            })
        }
        Prim::StringOf => {
            let text = args.iter().map(|arg| character(prim, arg)).collect::<Result<String, _>>()?;
            Ok(Value::Str(text.into()))
        }
        Prim::MakeString => match (&args[0], args.get(1)) {
            (Value::Int(n @ 0..), fill) if *n <= STRING_MAX as i64 / 4 => {
                let fill = fill.map_or(Ok(' '), |fill| character(prim, fill))?;
                Ok(Value::Str(std::iter::repeat_n(fill, *n as usize).collect::<String>().into()))
            }
            (Value::Int(0..), _) => {
                Err((FailureKind::Limit, format!("a string of more than {STRING_MAX} bytes")))
            }
            (other, _) => Err(wrong(format!("make-string needs a length, not {}", kind(other)))),
        },
        Prim::StringRef => {
            let text = string(prim, &args[0])?;
            let found = match &args[1] {
                Value::Int(at) => usize::try_from(*at).ok().and_then(|at| text.chars().nth(at)),
                _ => None,
            };
            found
                .map(Value::Char)
                .ok_or_else(|| wrong("string-ref needs an index within the string".to_owned()))
        }
        Prim::Substring => {
            let text = string(prim, &args[0])?;
            let (Value::Int(from), Value::Int(to)) = (&args[1], &args[2]) else {
                return Err(wrong("substring needs two indices".to_owned()));
            };
            let count = text.chars().count() as i64;
            if !(0 <= *from && from <= to && *to <= count) {
                return Err(wrong(format!("{from} to {to} is no part of a string of length {count}")));
            }
            let part: String = text.chars().skip(*from as usize).take((to - from) as usize).collect();
            Ok(Value::Str(part.into()))
        }
        Prim::StringUpcase => Ok(Value::Str(string(prim, &args[0])?.to_uppercase().into())),
        Prim::StringDowncase => Ok(Value::Str(string(prim, &args[0])?.to_lowercase().into())),
        Prim::StringLt | Prim::StringGt | Prim::StringLe | Prim::StringGe => {
            let order = string(prim, &args[0])?.cmp(string(prim, &args[1])?);
            truth(match prim {
                Prim::StringLt => order.is_lt(),
                Prim::StringGt => order.is_gt(),
                Prim::StringLe => order.is_le(),
                _ => order.is_ge(),
            })
        }
        Prim::StringLength => string(prim, &args[0]).map(|s| Value::Int(s.chars().count() as i64)),
        Prim::StringEq => truth(string(prim, &args[0])? == string(prim, &args[1])?),
        Prim::NumberToString => {
            let text = number(prim, &args[0])?.text(radix(prim, args)?);
            Ok(Value::Str(text.into()))
        }
        Prim::StringToNumber => {
            let read = number::read_prefixed(string(prim, &args[0])?, radix(prim, args)?);
            Ok(read.map_or(Value::Bool(false), Number::value))
        }
        Prim::SymbolToString => match &args[0] {
            Value::Symbol(s) => Ok(Value::Str(symbols.name(*s).into())),
            Value::Made(name) => Ok(Value::Str(name.clone())),
            other => Err(wrong(format!("symbol->string needs a symbol, not {}", kind(other)))),
        },
        Prim::StringToSymbol => match &args[0] {
            Value::Str(name) => {
                Ok(symbols.find(name).map_or_else(|| Value::Made(name.clone()), Value::Symbol))
            }
            other => Err(wrong(format!("string->symbol needs a string, not {}", kind(other)))),
        },
        Prim::Void => Ok(Value::Unspecified),
        other => unreachable!("{} touches the heap", other.name()),
    }
}

fn string(prim: Prim, value: &Value) -> Result<&str, Refusal> {
    match value {
        Value::Str(s) => Ok(s),
        other => Err(wrong(format!("{} needs strings, not {}", prim.name(), kind(other)))),
    }
}

fn character(prim: Prim, value: &Value) -> Result<char, Refusal> {
    match value {
        Value::Char(c) => Ok(*c),
        other => Err(wrong(format!("{} needs characters, not {}", prim.name(), kind(other)))),
    }
}

/// The one character of a case mapping; some have more.
fn single(mut mapped: impl Iterator<Item = char>) -> Option<char> {
    let first = mapped.next()?;
    mapped.next().is_none().then_some(first)
}

/// The radix that may follow a number or its text.
fn radix(prim: Prim, args: &[Value]) -> Result<u32, Refusal> {
    match args.get(1) {
        None => Ok(10),
        Some(Value::Int(radix @ 2..=36)) => Ok(*radix as u32),
        Some(_) => Err(wrong(format!("{} needs a radix from 2 to 36", prim.name()))),
    }
}

/// What a value is, with an article.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Unspecified => "an unspecified value",
        Value::Unassigned => "an unassigned variable",
        Value::Nil => "the empty list",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Big(_) | Value::Ratio(_) | Value::Real(_) => "a number",
        Value::Char(_) => "a character",
        Value::Str(_) => "a string",
        Value::Symbol(_) | Value::Made(_) => "a symbol",
        Value::LockState(_) | Value::Lock(_) => "a lock",
        Value::Prim(_) | Value::Closure(..) | Value::Escape(_) => "a procedure",
        Value::Pair(_) => "a pair",
        Value::Vector(_) => "a vector",
        Value::Ref(_) => "a ref",
        Value::Thread(_) => "a thread",
        Value::Result(_) => "a value to come",
    }
}
