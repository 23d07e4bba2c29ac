//! Numbers of the concrete machine: integers of any size, rationals, and reals.
//!
//! R5RS's tower without complex numbers. An exact result is exact: an integer that does not fit into 64 bits is a bignum, a
//! quotient that is none is a rational, both of the `num` crates. Every number has one representation (a bignum never fits into
//! 64 bits, the denominator of a rational is at least two), so that `eqv?` and the canonical form of states compare structure.
//!
//! An exact number may have [`BITS_MAX`] bits. Beyond, the machine gives up; that is a limit of ours and no mistake of the
//! program, and the failure says which of the two it is.

use super::prims::{Refusal, kind, wrong};
use super::state::{FailureKind, Value};
use crate::syntax::prim::Prim;
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{FromPrimitive, Num, One, Pow, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::sync::Arc;

/// Bits of the numerator and of the denominator of an exact number.
pub const BITS_MAX: u64 = 1 << 18;

/// A number on its way through a computation.
#[derive(Clone, Debug)]
pub enum Number {
    Int(i64),
    Big(Arc<BigInt>),
    Ratio(Arc<BigRational>),
    Real(f64),
}

impl Number {
    pub fn of(value: &Value) -> Option<Number> {
        Some(match value {
            Value::Int(n) => Number::Int(*n),
            Value::Big(n) => Number::Big(n.clone()),
            Value::Ratio(q) => Number::Ratio(q.clone()),
            Value::Real(x) => Number::Real(*x),
            _ => return None,
        })
    }

    pub fn value(self) -> Value {
        match self {
            Number::Int(n) => Value::Int(n),
            Number::Big(n) => Value::Big(n),
            Number::Ratio(q) => Value::Ratio(q),
            Number::Real(x) => Value::Real(x),
        }
    }

    pub fn integer(n: BigInt) -> Number {
        match n.to_i64() {
            Some(n) => Number::Int(n),
            None => Number::Big(Arc::new(n)),
        }
    }

    pub fn ratio(q: BigRational) -> Number {
        if q.is_integer() { Number::integer(q.to_integer()) } else { Number::Ratio(Arc::new(q)) }
    }

    pub fn is_exact(&self) -> bool {
        !matches!(self, Number::Real(_))
    }

    pub fn is_integer(&self) -> bool {
        match self {
            Number::Int(_) | Number::Big(_) => true,
            Number::Ratio(_) => false,
            Number::Real(x) => x.is_finite() && x.fract() == 0.0,
        }
    }

    /// The exact value; none for a real.
    fn exact(&self) -> Option<BigRational> {
        Some(match self {
            Number::Int(n) => BigRational::from_integer((*n).into()),
            Number::Big(n) => BigRational::from_integer((**n).clone()),
            Number::Ratio(q) => (**q).clone(),
            Number::Real(_) => return None,
        })
    }

    fn big(&self) -> Option<BigInt> {
        match self {
            Number::Int(n) => Some((*n).into()),
            Number::Big(n) => Some((**n).clone()),
            _ => None,
        }
    }

    pub fn real(&self) -> f64 {
        match self {
            Number::Int(n) => *n as f64,
            Number::Big(n) => {
                n.to_f64().unwrap_or(if n.is_negative() { f64::NEG_INFINITY } else { f64::INFINITY })
            }
            Number::Ratio(q) => q.to_f64().unwrap_or(f64::NAN),
            Number::Real(x) => *x,
        }
    }

    /// The sign, for `zero?` and its kin; none for what is no number.
    pub fn sign(&self) -> Option<Ordering> {
        match self {
            Number::Int(n) => Some(n.cmp(&0)),
            Number::Big(n) => Some(if n.sign() == Sign::Minus { Ordering::Less } else { Ordering::Greater }),
            Number::Ratio(q) => Some(if q.is_negative() { Ordering::Less } else { Ordering::Greater }),
            Number::Real(x) => x.partial_cmp(&0.0),
        }
    }

    fn compare(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(b)),
            (Number::Real(a), b) => a.partial_cmp(&b.real()),
            (a, Number::Real(b)) => a.real().partial_cmp(b),
            (a, b) => Some(a.exact()?.cmp(&b.exact()?)),
        }
    }

    fn bits(&self) -> u64 {
        match self {
            Number::Int(_) | Number::Real(_) => 64,
            Number::Big(n) => n.bits(),
            Number::Ratio(q) => q.numer().bits().max(q.denom().bits()),
        }
    }

    fn limited(self) -> Result<Number, Refusal> {
        if self.bits() <= BITS_MAX { Ok(self) } else { Err(too_large()) }
    }

    /// As `display` shows it.
    pub fn text(&self, radix: u32) -> String {
        match self {
            Number::Int(n) if radix == 10 => n.to_string(),
            Number::Int(n) => BigInt::from(*n).to_str_radix(radix),
            Number::Big(n) => n.to_str_radix(radix),
            Number::Ratio(q) => {
                format!("{}/{}", q.numer().to_str_radix(radix), q.denom().to_str_radix(radix))
            }
            Number::Real(x) => format!("{x:?}"),
        }
    }
}

fn too_large() -> Refusal {
    (FailureKind::Limit, format!("a number of more than {BITS_MAX} bits"))
}

fn by_zero() -> Refusal {
    wrong("division by zero".to_owned())
}

/// Digits of a number that is read; a longer one is no number.
const DIGITS_MAX: usize = 100_000;

/// `12`, `-3`, `1/3`, and in radix ten `1.5`, `.5`, `1e3`. Nothing else is a number, in particular not `+`, `-` and `...`.
pub fn read(text: &str, radix: u32) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = |c: char| c.is_digit(radix) || (c == '.' && radix == 10);
    if text.len() > DIGITS_MAX || !digits.starts_with(starts) {
        return None;
    }
    if radix == 10
        && let Ok(n) = text.parse::<i64>()
    {
        return Some(Number::Int(n));
    }
    let whole = |text: &str| {
        let plain = text.strip_prefix('+').unwrap_or(text);
        let digits = plain.strip_prefix('-').unwrap_or(plain);
        let fine = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        fine.then(|| BigInt::from_str_radix(plain, radix).ok()).flatten()
    };
    if let Some((above, below)) = text.split_once('/') {
        let (above, below) = (whole(above)?, whole(below)?);
        let plain = below.is_positive() && !text.contains("/+");
        return plain.then(|| Number::ratio(BigRational::new(above, below)));
    }
    if let Some(n) = whole(text) {
        return Some(Number::integer(n));
    }
    // What is beyond the largest real is infinite, as everywhere in its arithmetic.
    (radix == 10).then(|| text.parse::<f64>().ok()).flatten().map(Number::Real)
}

/// A number that may say how it is written: `#xff`, `#b101`, `#e1.5`, `#i1/3`, `#x#e10`; by itself it is in `radix`.
pub fn read_prefixed(text: &str, mut radix: u32) -> Option<Number> {
    let (mut rest, mut exact) = (text, None);
    while let Some(tail) = rest.strip_prefix('#') {
        let mut chars = tail.chars();
        match chars.next()?.to_ascii_lowercase() {
            'x' => radix = 16,
            'o' => radix = 8,
            'b' => radix = 2,
            'd' => radix = 10,
            'e' => exact = Some(true),
            'i' => exact = Some(false),
            _ => return None,
        }
        rest = chars.as_str();
    }
    let value = read(rest, radix)?;
    match exact {
        Some(true) => to_exact(value).ok(),
        Some(false) => Some(Number::Real(value.real())),
        None => Some(value),
    }
}

pub fn number(prim: Prim, value: &Value) -> Result<Number, Refusal> {
    Number::of(value).ok_or_else(|| wrong(format!("{} needs numbers, not {}", prim.name(), kind(value))))
}

fn add(a: &Number, b: &Number) -> Result<Number, Refusal> {
    combine(a, b, i64::checked_add, |a, b| a + b, |a, b| a + b, |a, b| a + b)
}

fn subtract(a: &Number, b: &Number) -> Result<Number, Refusal> {
    combine(a, b, i64::checked_sub, |a, b| a - b, |a, b| a - b, |a, b| a - b)
}

fn multiply(a: &Number, b: &Number) -> Result<Number, Refusal> {
    if a.bits().saturating_add(b.bits()) > BITS_MAX + 128 {
        return Err(too_large());
    }
    combine(a, b, i64::checked_mul, |a, b| a * b, |a, b| a * b, |a, b| a * b)
}

fn divide(a: &Number, b: &Number) -> Result<Number, Refusal> {
    match (a, b) {
        (_, Number::Int(0)) if a.is_exact() => Err(by_zero()),
        (Number::Int(a), Number::Int(b)) if a.checked_rem(*b) == Some(0) => Ok(Number::Int(a / b)),
        _ => match (a.exact(), b.exact()) {
            (Some(a), Some(b)) => Number::ratio(a / b).limited(),
            _ => Ok(Number::Real(a.real() / b.real())),
        },
    }
}

fn combine(
    a: &Number,
    b: &Number,
    small: fn(i64, i64) -> Option<i64>,
    large: fn(BigInt, BigInt) -> BigInt,
    exact: fn(BigRational, BigRational) -> BigRational,
    inexact: fn(f64, f64) -> f64,
) -> Result<Number, Refusal> {
    if let (Number::Int(a), Number::Int(b)) = (a, b)
        && let Some(n) = small(*a, *b)
    {
        return Ok(Number::Int(n));
    }
    if let (Some(a), Some(b)) = (a.big(), b.big()) {
        return Number::integer(large(a, b)).limited();
    }
    match (a.exact(), b.exact()) {
        (Some(a), Some(b)) => Number::ratio(exact(a, b)).limited(),
        _ => Ok(Number::Real(inexact(a.real(), b.real()))),
    }
}

/// The smaller (or larger) of two; an inexact argument makes the result inexact.
fn extreme(a: &Number, b: &Number, wanted: Ordering) -> Number {
    let first = a.compare(b).is_none_or(|order| order == wanted || order.is_eq());
    let result = if first { a } else { b };
    if a.is_exact() && b.is_exact() { result.clone() } else { Number::Real(result.real()) }
}

/// `+ - * / min max` of any number of arguments.
pub fn fold(prim: Prim, args: &[Value]) -> Result<Value, Refusal> {
    let unit = Number::Int((matches!(prim, Prim::Mul | Prim::Div)) as i64);
    // (- x) and (/ x) start from the unit, every other use from the first number.
    let (mut acc, rest) = match args {
        [_] if matches!(prim, Prim::Sub | Prim::Div) => (unit, args),
        [] => (unit, args),
        [first, rest @ ..] => (number(prim, first)?, rest),
    };
    for next in rest {
        let next = number(prim, next)?;
        acc = match prim {
            Prim::Add => add(&acc, &next)?,
            Prim::Sub => subtract(&acc, &next)?,
            Prim::Mul => multiply(&acc, &next)?,
            Prim::Div => divide(&acc, &next)?,
            Prim::Min => extreme(&acc, &next, Ordering::Less),
            _ => extreme(&acc, &next, Ordering::Greater),
        };
    }
    Ok(acc.value())
}

/// `= < > <= >=`
pub fn compare(prim: Prim, args: &[Value], holds: fn(Ordering) -> bool) -> Result<Value, Refusal> {
    let mut result = true;
    for arg in args {
        number(prim, arg)?;
    }
    for pair in args.windows(2) {
        result &= number(prim, &pair[0])?.compare(&number(prim, &pair[1])?).is_some_and(holds);
    }
    Ok(Value::Bool(result))
}

/// `quotient remainder modulo`
pub fn integer_division(prim: Prim, args: &[Value]) -> Result<Value, Refusal> {
    let (a, b) = (number(prim, &args[0])?, number(prim, &args[1])?);
    if !a.is_integer() || !b.is_integer() {
        return Err(wrong(format!("{} needs two integers", prim.name())));
    }
    if b.sign() == Some(Ordering::Equal) {
        return Err(by_zero());
    }
    if let (Number::Int(a), Number::Int(b)) = (&a, &b)
        && let Some(rest) = a.checked_rem(*b)
    {
        return Ok(Value::Int(match prim {
            Prim::Quotient => a / b,
            Prim::Remainder => rest,
            _ if rest != 0 && (rest < 0) != (*b < 0) => rest + b,
            _ => rest,
        }));
    }
    if let (Some(a), Some(b)) = (a.big(), b.big()) {
        let result = match prim {
            Prim::Quotient => a / b,
            Prim::Remainder => a % b,
            _ => a.mod_floor(&b),
        };
        return Ok(Number::integer(result).value());
    }
    let (a, b) = (a.real(), b.real());
    Ok(Value::Real(match prim {
        Prim::Quotient => (a / b).trunc(),
        Prim::Remainder => a % b,
        _ => a - b * (a / b).floor(),
    }))
}

/// `odd? even?`
pub fn is_even(prim: Prim, value: &Value) -> Result<bool, Refusal> {
    match number(prim, value)? {
        Number::Int(n) => Ok(n % 2 == 0),
        Number::Big(n) => Ok(n.is_even()),
        Number::Real(x) if x.is_finite() && x.fract() == 0.0 => Ok(x % 2.0 == 0.0),
        _ => Err(wrong(format!("{} needs an integer", prim.name()))),
    }
}

pub fn absolute(number: Number) -> Result<Number, Refusal> {
    match number.sign() {
        Some(Ordering::Less) => subtract(&Number::Int(0), &number),
        _ => Ok(if let Number::Real(x) = number { Number::Real(x.abs()) } else { number }),
    }
}

/// `floor ceiling truncate round`
pub fn rounded(prim: Prim, number: Number) -> Number {
    match number {
        Number::Ratio(q) => Number::integer(match prim {
            Prim::Floor => q.floor().to_integer(),
            Prim::Ceiling => q.ceil().to_integer(),
            Prim::Truncate => q.trunc().to_integer(),
            _ => {
                // To the nearest, halves to the even one.
                let below = q.floor().to_integer();
                let twice =
                    (&*q - BigRational::from_integer(below.clone())) * BigRational::from_integer(2.into());
                let up = match twice.cmp(&BigRational::one()) {
                    Ordering::Less => false,
                    Ordering::Greater => true,
                    Ordering::Equal => below.is_odd(),
                };
                if up { below + 1 } else { below }
            }
        }),
        Number::Real(x) => Number::Real(match prim {
            Prim::Floor => x.floor(),
            Prim::Ceiling => x.ceil(),
            Prim::Truncate => x.trunc(),
            _ => x.round_ties_even(),
        }),
        whole => whole,
    }
}

/// `numerator denominator`
pub fn part(prim: Prim, number: Number) -> Result<Number, Refusal> {
    let inexact = !number.is_exact();
    let exact = to_exact(number)?.exact().unwrap_or_else(BigRational::zero);
    let part = if prim == Prim::Numerator { exact.numer() } else { exact.denom() };
    let part = Number::integer(part.clone());
    Ok(if inexact { Number::Real(part.real()) } else { part })
}

/// The simplest rational that is no further from the number than the tolerance; an inexact argument makes it inexact.
pub fn rationalize(number: Number, tolerance: Number) -> Result<Number, Refusal> {
    let inexact = !number.is_exact() || !tolerance.is_exact();
    if inexact {
        let (x, y) = (number.real(), tolerance.real());
        if x.is_nan() || y.is_nan() || x.is_infinite() && y.is_infinite() {
            return Ok(Number::Real(f64::NAN));
        }
        if x.is_infinite() || y.is_infinite() {
            return Ok(Number::Real(if x.is_infinite() { x } else { 0.0 }));
        }
    }
    let exactly = |number: Number| Ok(to_exact(number)?.exact().unwrap_or_else(BigRational::zero));
    let (x, y) = (exactly(number)?, exactly(tolerance)?.abs());
    let (low, high) = (&x - &y, x + y);
    let simplest = if low.is_positive() {
        simplest_between(&low, &high)
    } else if high.is_negative() {
        -simplest_between(&-high, &-low)
    } else {
        BigRational::zero()
    };
    let simplest = Number::ratio(simplest);
    Ok(if inexact { Number::Real(simplest.real()) } else { simplest })
}

/// The rational with the least numerator and denominator from one positive number to another: both have the same continued
/// fraction up to some place, and there the least integer in between ends it.
fn simplest_between(low: &BigRational, high: &BigRational) -> BigRational {
    let (mut a, mut b) = (low.numer().clone(), low.denom().clone());
    let (mut c, mut d) = (high.numer().clone(), high.denom().clone());
    // The last two convergents.
    let (mut above, mut above_before) = (BigInt::one(), BigInt::zero());
    let (mut below, mut below_before) = (BigInt::zero(), BigInt::one());
    loop {
        let (whole, rest) = a.div_rem(&b);
        let (whole_high, rest_high) = c.div_rem(&d);
        let last = rest.is_zero() || whole < whole_high;
        let term = if last && !rest.is_zero() { whole + 1 } else { whole };
        (above, above_before) = (&term * &above + above_before, above);
        (below, below_before) = (&term * &below + below_before, below);
        if last {
            return BigRational::new(above, below);
        }
        // What is left of both is below one, and its inverse is looked at next: the order turns round.
        (a, b, c, d) = (d, rest_high, b, rest);
    }
}

/// Exact where the number is the square of an exact one.
pub fn square_root(number: Number) -> Result<Number, Refusal> {
    if number.sign() == Some(Ordering::Less) {
        return Err(wrong(format!("(sqrt {}) is no real number", number.text(10))));
    }
    if let Some(q) = number.exact() {
        let (above, below) = (q.numer().sqrt(), q.denom().sqrt());
        if &(&above * &above) == q.numer() && &(&below * &below) == q.denom() {
            return Ok(Number::ratio(BigRational::new(above, below)));
        }
    }
    Ok(Number::Real(number.real().sqrt()))
}

pub fn power(base: Number, power: Number) -> Result<Number, Refusal> {
    let (Some(exact), Number::Int(exponent)) = (base.exact(), &power) else {
        if base.is_exact() && matches!(power, Number::Big(_)) {
            return big_power(base, power);
        }
        if let (Number::Real(x), Number::Int(n)) = (&base, &power)
            && let Ok(n) = i32::try_from(*n)
        {
            return Ok(Number::Real(x.powi(n)));
        }
        let result = base.real().powf(power.real());
        if result.is_nan() && !base.real().is_nan() && !power.real().is_nan() {
            return Err(wrong(format!("(expt {} {}) is no real number", base.text(10), power.text(10))));
        }
        return Ok(Number::Real(result));
    };
    if exact.is_zero() && *exponent < 0 {
        return Err(by_zero());
    }
    if exact.is_zero() || exact.is_one() || *exponent == 0 {
        return Ok(if *exponent == 0 { Number::Int(1) } else { base });
    }
    if exact.numer().abs().is_one() && exact.denom().is_one() {
        return Ok(Number::Int(if exponent % 2 == 0 { 1 } else { -1 }));
    }
    let bits = base.bits_exactly().saturating_mul(exponent.unsigned_abs());
    let (Ok(times), true) = (u32::try_from(exponent.unsigned_abs()), bits <= BITS_MAX + 64) else {
        return Err(too_large());
    };
    let above = Pow::pow(exact.numer(), times);
    let below = Pow::pow(exact.denom(), times);
    Number::ratio(if *exponent < 0 { BigRational::new(below, above) } else { BigRational::new(above, below) })
        .limited()
}

/// An exact number to a power of more than 64 bits: only the trivial ones have a result that fits.
fn big_power(base: Number, power: Number) -> Result<Number, Refusal> {
    let negative = power.sign() == Some(Ordering::Less);
    match base {
        Number::Int(0) if negative => Err(by_zero()),
        Number::Int(0 | 1) => Ok(base),
        Number::Int(-1) => Ok(Number::Int(if power.big().is_some_and(|n| n.is_even()) { 1 } else { -1 })),
        _ => Err(too_large()),
    }
}

impl Number {
    /// Bits that a power of the number has, for each factor.
    fn bits_exactly(&self) -> u64 {
        match self {
            Number::Int(n) => u64::from(64 - n.unsigned_abs().leading_zeros()).saturating_sub(1).max(1),
            other => other.bits(),
        }
    }
}

pub fn to_exact(number: Number) -> Result<Number, Refusal> {
    match number {
        Number::Real(x) => match BigRational::from_f64(x) {
            Some(q) => Ok(Number::ratio(q)),
            None => Err(wrong(format!("(inexact->exact {x}) is no number"))),
        },
        exact => Ok(exact),
    }
}

pub fn transcendental(prim: Prim, args: &[Value]) -> Result<Value, Refusal> {
    let x = number(prim, &args[0])?.real();
    let defined = match prim {
        Prim::Log => x > 0.0,
        Prim::Asin | Prim::Acos => (-1.0..=1.0).contains(&x),
        _ => true,
    };
    if !defined {
        return Err(wrong(format!("({} {x}) is no real number", prim.name())));
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
            Some(other) => x.atan2(number(prim, other)?.real()),
            None => x.atan(),
        },
    }))
}
