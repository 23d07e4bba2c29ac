//! Primitive procedures on concrete values. Those that touch existing cells are in [`super::step`], where the accesses
//! are; here is the rest: arithmetic, predicates, strings.

use super::state::Value;
use crate::syntax::prim::Prim;
use crate::syntax::reader::{self, Datum, Symbols};

/// A number: exact as long as possible.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Real(f64),
}

fn number(prim: Prim, value: &Value) -> Result<Number, String> {
    match value {
        Value::Int(n) => Ok(Number::Int(*n)),
        Value::Real(x) => Ok(Number::Real(*x)),
        other => Err(format!("{} needs numbers, not {}", prim.name(), kind(other))),
    }
}

fn real(number: Number) -> f64 {
    match number {
        Number::Int(n) => n as f64,
        Number::Real(x) => x,
    }
}

fn fold(
    prim: Prim,
    args: &[Value],
    unit: i64,
    exact: fn(i64, i64) -> Option<i64>,
    inexact: fn(f64, f64) -> f64,
) -> Result<Value, String> {
    let mut numbers = Vec::with_capacity(args.len());
    for arg in args {
        numbers.push(number(prim, arg)?);
    }
    // (- x) and (/ x) start from the unit, every other use from the first number.
    let (mut acc, rest) = match (prim, &numbers[..]) {
        (Prim::Sub | Prim::Div, &[_]) => (Number::Int(unit), &numbers[..]),
        (_, []) => (Number::Int(unit), &numbers[..]),
        (_, [first, rest @ ..]) => (*first, rest),
    };
    for &next in rest {
        acc = match (acc, next) {
            (Number::Int(a), Number::Int(b)) => match exact(a, b) {
                Some(n) => Number::Int(n),
                None if prim == Prim::Div && b == 0 => return Err("division by zero".to_owned()),
                None if prim == Prim::Div => Number::Real(a as f64 / b as f64),
                None => return Err(format!("({} {a} {b}) does not fit into 64 bits", prim.name())),
            },
            (a, b) => Number::Real(inexact(real(a), real(b))),
        };
    }
    Ok(match acc {
        Number::Int(n) => Value::Int(n),
        Number::Real(x) => Value::Real(x),
    })
}

fn compare(
    prim: Prim,
    args: &[Value],
    exact: fn(&i64, &i64) -> bool,
    inexact: fn(&f64, &f64) -> bool,
) -> Result<Value, String> {
    let mut result = true;
    for pair in args.windows(2) {
        result &= match (number(prim, &pair[0])?, number(prim, &pair[1])?) {
            (Number::Int(a), Number::Int(b)) => exact(&a, &b),
            (a, b) => inexact(&real(a), &real(b)),
        };
    }
    if let [one] = args {
        number(prim, one)?;
    }
    Ok(Value::Bool(result))
}

fn integers(prim: Prim, args: &[Value]) -> Result<(i64, i64), String> {
    match args {
        [Value::Int(_), Value::Int(0)] => Err("division by zero".to_owned()),
        [Value::Int(a), Value::Int(b)] => Ok((*a, *b)),
        _ => Err(format!("{} needs two integers", prim.name())),
    }
}

/// Exact where the number is the square of an integer.
fn square_root(number: Number) -> Result<Value, String> {
    match number {
        Number::Int(n) if n >= 0 && n.isqrt() * n.isqrt() == n => Ok(Value::Int(n.isqrt())),
        number if real(number) >= 0.0 => Ok(Value::Real(real(number).sqrt())),
        number => Err(format!("(sqrt {}) is no real number", real(number))),
    }
}

fn transcendental(prim: Prim, args: &[Value]) -> Result<Value, String> {
    let x = real(number(prim, &args[0])?);
    let defined = match prim {
        Prim::Log => x > 0.0,
        Prim::Asin | Prim::Acos => (-1.0..=1.0).contains(&x),
        _ => true,
    };
    if !defined {
        return Err(format!("({} {x}) is no real number", prim.name()));
    }
    Ok(Value::Real(match prim {
        Prim::Exp => x.exp(),
        Prim::Log => x.ln(),
        Prim::Sin => x.sin(),
        Prim::Cos => x.cos(),
        Prim::Tan => x.tan(),
        Prim::Asin => x.asin(),
        Prim::Acos => x.acos(),
        _ => match args.get(1) {
            Some(other) => x.atan2(real(number(prim, other)?)),
            None => x.atan(),
        },
    }))
}

/// Applies a primitive that touches no existing cell and allocates nothing.
pub fn apply(prim: Prim, args: &[Value], symbols: &Symbols) -> Result<Value, String> {
    let truth = |b: bool| Ok(Value::Bool(b));
    let order = |prim, args: &[Value]| -> Result<std::cmp::Ordering, String> {
        let n = real(number(prim, &args[0])?);
        Ok(n.partial_cmp(&0.0).unwrap_or(std::cmp::Ordering::Equal))
    };
    match prim {
        Prim::Add => fold(prim, args, 0, i64::checked_add, |a, b| a + b),
        Prim::Sub => fold(prim, args, 0, i64::checked_sub, |a, b| a - b),
        Prim::Mul => fold(prim, args, 1, i64::checked_mul, |a, b| a * b),
        Prim::Div => {
            fold(prim, args, 1, |a, b| (b != 0 && a.checked_rem(b)? == 0).then(|| a / b), |a, b| a / b)
        }
        Prim::Quotient => integers(prim, args).map(|(a, b)| Value::Int(a.wrapping_div(b))),
        Prim::Remainder => integers(prim, args).map(|(a, b)| Value::Int(a.wrapping_rem(b))),
        Prim::Modulo => integers(prim, args).map(|(a, b)| {
            let r = a.wrapping_rem(b);
            Value::Int(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
        }),
        Prim::NumEq => compare(prim, args, i64::eq, f64::eq),
        Prim::Lt => compare(prim, args, i64::lt, f64::lt),
        Prim::Gt => compare(prim, args, i64::gt, f64::gt),
        Prim::Le => compare(prim, args, i64::le, f64::le),
        Prim::Ge => compare(prim, args, i64::ge, f64::ge),
        Prim::IsZero => truth(order(prim, args)?.is_eq()),
        Prim::IsPositive => truth(order(prim, args)?.is_gt()),
        Prim::IsNegative => truth(order(prim, args)?.is_lt()),
        Prim::IsOdd | Prim::IsEven => match &args[0] {
            Value::Int(n) => truth((n % 2 == 0) == (prim == Prim::IsEven)),
            other => Err(format!("{} needs an integer, not {}", prim.name(), kind(other))),
        },
        Prim::Abs => match number(prim, &args[0])? {
            Number::Int(n) => {
                n.checked_abs().map(Value::Int).ok_or_else(|| format!("(abs {n}) does not fit into 64 bits"))
            }
            Number::Real(x) => Ok(Value::Real(x.abs())),
        },
        Prim::Min => fold(prim, args, 0, |a, b| Some(a.min(b)), f64::min),
        Prim::Max => fold(prim, args, 0, |a, b| Some(a.max(b)), f64::max),
        Prim::Floor | Prim::Ceiling | Prim::Truncate | Prim::Round => Ok(match number(prim, &args[0])? {
            Number::Int(n) => Value::Int(n),
            Number::Real(x) => Value::Real(match prim {
                Prim::Floor => x.floor(),
                Prim::Ceiling => x.ceil(),
                Prim::Truncate => x.trunc(),
                _ => x.round_ties_even(),
            }),
        }),
        Prim::Sqrt => square_root(number(prim, &args[0])?),
        Prim::Exp | Prim::Log | Prim::Sin | Prim::Cos | Prim::Tan | Prim::Asin | Prim::Acos | Prim::Atan => {
            transcendental(prim, args)
        }
        Prim::ToInexact => Ok(Value::Real(real(number(prim, &args[0])?))),
        Prim::ToExact => match number(prim, &args[0])? {
            Number::Int(n) => Ok(Value::Int(n)),
            // Powers of two, so that the limits are exact.
            Number::Real(x) if x.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&x) => {
                Ok(Value::Int(x as i64))
            }
            Number::Real(x) => Err(format!("(inexact->exact {x}) is no integer of 64 bits")),
        },
        Prim::Not => truth(!args[0].truthy()),
        Prim::Eq | Prim::Eqv => truth(args[0].same(&args[1])),
        Prim::IsNull => truth(args[0] == Value::Nil),
        Prim::IsPair => truth(matches!(args[0], Value::Pair(_))),
        Prim::IsNumber => truth(matches!(args[0], Value::Int(_) | Value::Real(_))),
        Prim::IsInteger => truth(matches!(args[0], Value::Int(_))),
        Prim::IsBoolean => truth(matches!(args[0], Value::Bool(_))),
        Prim::IsSymbol => truth(matches!(args[0], Value::Symbol(_))),
        Prim::IsString => truth(matches!(args[0], Value::Str(_))),
        Prim::IsChar => truth(matches!(args[0], Value::Char(_))),
        Prim::IsProcedure => truth(matches!(args[0], Value::Closure(..) | Value::Prim(_))),
        Prim::IsVector => truth(matches!(args[0], Value::Vector(_))),
        Prim::IsRef => truth(matches!(args[0], Value::Ref(_))),
        Prim::IsLock => truth(matches!(args[0], Value::Lock(_) | Value::LockState(_))),
        Prim::IsThread => truth(matches!(args[0], Value::Thread(_))),
        Prim::StringAppend => {
            let mut out = String::new();
            for arg in args {
                out.push_str(string(prim, arg)?);
            }
            Ok(Value::Str(out.into()))
        }
        Prim::StringLength => string(prim, &args[0]).map(|s| Value::Int(s.chars().count() as i64)),
        Prim::StringEq => truth(string(prim, &args[0])? == string(prim, &args[1])?),
        Prim::NumberToString => match number(prim, &args[0])? {
            Number::Int(n) => Ok(Value::Str(n.to_string().into())),
            Number::Real(x) => Ok(Value::Str(format!("{x:?}").into())),
        },
        Prim::StringToNumber => Ok(match reader::number(string(prim, &args[0])?) {
            Some(Datum::Int(n)) => Value::Int(n),
            Some(Datum::Real(x)) => Value::Real(x),
            _ => Value::Bool(false),
        }),
        Prim::SymbolToString => match &args[0] {
            Value::Symbol(s) => Ok(Value::Str(symbols.name(*s).into())),
            other => Err(format!("symbol->string needs a symbol, not {}", kind(other))),
        },
        Prim::Void => Ok(Value::Unspecified),
        other => unreachable!("{} touches the heap", other.name()),
    }
}

fn string(prim: Prim, value: &Value) -> Result<&str, String> {
    match value {
        Value::Str(s) => Ok(s),
        other => Err(format!("{} needs strings, not {}", prim.name(), kind(other))),
    }
}

/// What a value is, with an article.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Unspecified => "an unspecified value",
        Value::Unassigned => "an unassigned variable",
        Value::Nil => "the empty list",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Real(_) => "a number",
        Value::Char(_) => "a character",
        Value::Str(_) => "a string",
        Value::Symbol(_) => "a symbol",
        Value::LockState(_) | Value::Lock(_) => "a lock",
        Value::Prim(_) | Value::Closure(..) => "a procedure",
        Value::Pair(_) => "a pair",
        Value::Vector(_) => "a vector",
        Value::Ref(_) => "a ref",
        Value::Thread(_) => "a thread",
    }
}
