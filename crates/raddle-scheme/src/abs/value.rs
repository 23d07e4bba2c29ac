//! Abstract values: finite descriptions of sets of values.
//!
//! The product of a flat lattice for integers and one for strings, a bit for each kind of value that needs no further
//! description, and a set of references (closures, cells, threads). Integer constants survive arithmetic only within a
//! bound, so that there are finitely many; with no arithmetic at all ([`Arithmetic::None`], what the paper's machine
//! does: its figure 3 keeps booleans as they are and abstracts numbers) literals are not even constants.

use super::space::{AddrId, EnvId, TidId};
use crate::syntax::core::{LambdaId, index};
use crate::syntax::prim::Prim;
use crate::syntax::reader::Symbol;
use smallvec::SmallVec;

index!(
    /// An interned abstract value.
    ValId
);

/// Kinds of values that one bit describes.
pub mod bit {
    pub const UNSPECIFIED: u16 = 1;
    pub const UNASSIGNED: u16 = 2;
    pub const NIL: u16 = 4;
    pub const TRUE: u16 = 8;
    pub const FALSE: u16 = 16;
    /// Taken by an `acquire`: somebody holds it.
    pub const LOCKED: u16 = 32;
    pub const UNLOCKED: u16 = 64;
    pub const REAL: u16 = 128;
    pub const CHAR: u16 = 256;
    /// The "result" of a thread that failed.
    pub const FAILED: u16 = 512;
    /// Taken, and nobody holds it: a lock that started out so, or a copy of one that was taken. Told apart from [`LOCKED`]
    /// where one store describes all moments ([`super::AbsVal::as_value`]); elsewhere the state of the lock is enough.
    pub const TAKEN: u16 = 1024;
    /// All states of a lock.
    pub const LOCK: u16 = LOCKED | UNLOCKED | TAKEN;
    /// Exact numbers that are no integers.
    pub const RATIO: u16 = 2048;
    /// Any symbol: what `string->symbol` makes.
    pub const SYMBOL: u16 = 4096;
    pub const BOOL: u16 = TRUE | FALSE;
    /// Bits that describe many concrete values.
    pub const VAGUE: u16 = REAL | RATIO | CHAR | SYMBOL;
    /// Numbers beside the integers.
    pub const BROKEN: u16 = REAL | RATIO;
}

/// None, one known, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Flat<T> {
    #[default]
    None,
    One(T),
    Any,
}

impl<T: Copy + PartialEq> Flat<T> {
    pub fn join(self, other: Flat<T>) -> Flat<T> {
        match (self, other) {
            (Flat::None, x) | (x, Flat::None) => x,
            (Flat::One(a), Flat::One(b)) if a == b => self,
            _ => Flat::Any,
        }
    }

    pub fn below(self, other: Flat<T>) -> bool {
        self == other || self == Flat::None || other == Flat::Any
    }

    fn meets(self, other: Flat<T>) -> bool {
        match (self, other) {
            (Flat::None, _) | (_, Flat::None) => false,
            (Flat::One(a), Flat::One(b)) => a == b,
            _ => true,
        }
    }
}

/// Integers: none, one known, all from zero to below a small bound, or any.
///
/// The bounds are what keeps an index within its vector: `(modulo n 4)` and `(random 4)` are below four whatever `n` is.
/// The join of two different integers is any integer: an interval for each loop variable would pay for itself nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Whole {
    #[default]
    None,
    One(i64),
    /// From zero to below this bound, which is at least two and at most [`BELOW_MAX`].
    Below(u32),
    Any,
}

/// The greatest bound that is worth being known: no vector is longer. All bounds come from integers of the text, so there are
/// finitely many.
pub const BELOW_MAX: i64 = crate::concrete::state::VECTOR_MAX;

impl Whole {
    /// All integers from zero to below `n`.
    pub fn below_bound(n: i64) -> Whole {
        match n {
            ..=0 => Whole::None,
            1 => Whole::One(0),
            n if n <= BELOW_MAX => Whole::Below(n as u32),
            _ => Whole::Any,
        }
    }

    pub fn join(self, other: Whole) -> Whole {
        match (self, other) {
            (Whole::None, x) | (x, Whole::None) => x,
            (Whole::One(a), Whole::One(b)) if a == b => self,
            (Whole::Below(a), Whole::Below(b)) => Whole::Below(a.max(b)),
            (Whole::One(a), Whole::Below(b)) | (Whole::Below(b), Whole::One(a))
                if (0..BELOW_MAX).contains(&a) =>
            {
                Whole::Below(b.max(a as u32 + 1))
            }
            _ => Whole::Any,
        }
    }

    pub fn below(self, other: Whole) -> bool {
        match (self, other) {
            (Whole::One(a), Whole::Below(b)) => (0..i64::from(b)).contains(&a),
            (Whole::Below(a), Whole::Below(b)) => a <= b,
            _ => self == other || self == Whole::None || other == Whole::Any,
        }
    }

    fn meets(self, other: Whole) -> bool {
        match (self, other) {
            (Whole::None, _) | (_, Whole::None) => false,
            (Whole::One(a), Whole::One(b)) => a == b,
            (Whole::One(a), Whole::Below(b)) | (Whole::Below(b), Whole::One(a)) => {
                (0..i64::from(b)).contains(&a)
            }
            _ => true,
        }
    }

    fn may_be_zero(self) -> bool {
        self.meets(Whole::One(0))
    }
}

/// A value that refers to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    Symbol(Symbol),
    Prim(Prim),
    Closure(LambdaId, EnvId),
    /// By the address of the car.
    Pair(AddrId),
    /// By the address of the length.
    Vector(AddrId),
    Ref(AddrId),
    Lock(AddrId),
    Thread(TidId),
    /// A continuation, by the address of its frames.
    Kont(AddrId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct AbsVal {
    pub bits: u16,
    pub int: Whole,
    pub string: Flat<u32>,
    /// Ascending, without repetition.
    pub refs: SmallVec<[Reference; 2]>,
}

impl AbsVal {
    pub fn bits(bits: u16) -> AbsVal {
        AbsVal { bits, ..AbsVal::default() }
    }

    pub fn int(n: i64) -> AbsVal {
        AbsVal { int: Whole::One(n), ..AbsVal::default() }
    }

    pub fn any_int() -> AbsVal {
        AbsVal { int: Whole::Any, ..AbsVal::default() }
    }

    pub fn any_string() -> AbsVal {
        AbsVal { string: Flat::Any, ..AbsVal::default() }
    }

    pub fn reference(reference: Reference) -> AbsVal {
        AbsVal { refs: [reference].into_iter().collect(), ..AbsVal::default() }
    }

    pub fn is_none(&self) -> bool {
        *self == AbsVal::default()
    }

    pub fn join(&self, other: &AbsVal) -> AbsVal {
        let mut refs = self.refs.clone();
        for reference in &other.refs {
            if let Err(at) = refs.binary_search(reference) {
                refs.insert(at, *reference);
            }
        }
        AbsVal {
            bits: self.bits | other.bits,
            int: self.int.join(other.int),
            string: self.string.join(other.string),
            refs,
        }
    }

    pub fn below(&self, other: &AbsVal) -> bool {
        self.bits & !other.bits == 0
            && self.int.below(other.int)
            && self.string.below(other.string)
            && self.refs.iter().all(|r| other.describes(*r))
    }

    /// Whether the reference is one of those described.
    fn describes(&self, reference: Reference) -> bool {
        self.refs.binary_search(&reference).is_ok()
            || self.bits & bit::SYMBOL != 0 && matches!(reference, Reference::Symbol(_))
    }

    /// Whether some concrete value is described by both.
    pub fn meets(&self, other: &AbsVal) -> bool {
        self.bits & other.bits != 0
            || self.int.meets(other.int)
            || self.string.meets(other.string)
            || self.refs.iter().any(|r| other.describes(*r))
            || other.refs.iter().any(|r| self.describes(*r))
    }

    /// How many kinds of concrete values are described, counting at most to two.
    fn parts(&self) -> usize {
        let count = |present: bool| present as usize;
        self.bits.count_ones() as usize
            + count(self.int != Whole::None)
            + count(self.string != Flat::None)
            + self.refs.len()
    }

    /// Whether exactly one concrete value is described; `single` knows about references to memory.
    pub fn exact(&self, single: impl Fn(Reference) -> bool) -> bool {
        self.parts() == 1
            && self.bits & bit::VAGUE == 0
            && !matches!(self.int, Whole::Any | Whole::Below(_))
            && self.string != Flat::Any
            && self.refs.iter().all(|&r| single(r))
    }

    /// What a cell gives when it is read: who holds a lock does not come along with its state.
    pub fn as_value(&self) -> AbsVal {
        let mut value = self.clone();
        if value.bits & bit::LOCKED != 0 {
            value.bits = value.bits & !bit::LOCKED | bit::TAKEN;
        }
        value
    }

    pub fn may_be_true(&self) -> bool {
        self.bits & !(bit::FALSE | bit::UNASSIGNED | bit::FAILED) != 0
            || self.int != Whole::None
            || self.string != Flat::None
            || !self.refs.is_empty()
    }

    pub fn may_be_false(&self) -> bool {
        self.bits & bit::FALSE != 0
    }
}

/// What becomes of integer constants in arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// No number is known, not even a literal; every comparison is any boolean.
    None,
    /// Results up to this magnitude stay constants.
    Bounded(i64),
}

/// The result of a primitive on abstract values, and whether it may have none.
pub struct Answer {
    pub value: AbsVal,
    pub may_fail: bool,
}

/// Applies a primitive that neither touches nor allocates memory. `concrete` computes it on integers.
pub fn apply(
    prim: Prim,
    args: &[&AbsVal],
    arithmetic: Arithmetic,
    eq: impl Fn(&AbsVal, &AbsVal) -> (bool, bool),
) -> Answer {
    let truth = |yes: bool, no: bool| {
        let bits = if yes { bit::TRUE } else { 0 } | if no { bit::FALSE } else { 0 };
        Answer { value: AbsVal::bits(bits), may_fail: false }
    };
    let is = |test: &dyn Fn(&AbsVal) -> bool| {
        // Yes for the part that passes, no for what is left.
        let yes = test(args[0]);
        let rest = args[0].parts() > part_count(args[0], prim);
        truth(yes, rest)
    };
    match prim {
        Prim::Not => truth(args[0].may_be_false(), args[0].may_be_true()),
        Prim::Eq | Prim::Eqv => {
            let (yes, no) = eq(args[0], args[1]);
            truth(yes, no)
        }
        Prim::IsNull
        | Prim::IsPair
        | Prim::IsNumber
        | Prim::IsExact
        | Prim::IsInexact
        | Prim::IsBoolean
        | Prim::IsSymbol
        | Prim::IsString
        | Prim::IsChar
        | Prim::IsProcedure
        | Prim::IsVector
        | Prim::IsRef
        | Prim::IsLock
        | Prim::IsThread => is(&|value| part_count(value, prim) > 0),
        // A real may be one or not.
        Prim::IsInteger | Prim::IsRational => {
            let accepted = part_count(args[0], prim);
            let real = args[0].bits & bit::REAL != 0;
            truth(accepted > 0 || real, args[0].parts() > accepted || real)
        }
        Prim::StringAppend => Answer { value: AbsVal::any_string(), may_fail: !all_strings(args) },
        Prim::NumberToString => {
            let (number, radix) = (is_pure_number(args[0]), is_radix(args));
            Answer { value: AbsVal::any_string(), may_fail: !(number && radix) }
        }
        Prim::SymbolToString => {
            let symbols = part_count(args[0], Prim::IsSymbol) == args[0].parts();
            Answer { value: AbsVal::any_string(), may_fail: !symbols }
        }
        Prim::StringToSymbol => Answer { value: AbsVal::bits(bit::SYMBOL), may_fail: !all_strings(args) },
        Prim::StringToNumber => {
            let number_or_false =
                AbsVal { bits: bit::BROKEN | bit::FALSE, int: Whole::Any, ..AbsVal::default() };
            Answer { value: number_or_false, may_fail: !(all_strings(&args[..1]) && is_radix(args)) }
        }
        Prim::StringLength => Answer { value: AbsVal::any_int(), may_fail: !all_strings(args) },
        Prim::StringEq => Answer { value: AbsVal::bits(bit::BOOL), may_fail: !all_strings(args) },
        Prim::CharToInteger => Answer { value: AbsVal::any_int(), may_fail: !all_chars(args) },
        Prim::IntegerToChar => Answer { value: AbsVal::bits(bit::CHAR), may_fail: true },
        Prim::CharUpcase | Prim::CharDowncase => {
            Answer { value: AbsVal::bits(bit::CHAR), may_fail: !all_chars(args) }
        }
        Prim::IsAlphabetic
        | Prim::IsNumeric
        | Prim::IsWhitespace
        | Prim::IsUpperCase
        | Prim::IsLowerCase
        | Prim::CharLt
        | Prim::CharGt
        | Prim::CharLe
        | Prim::CharGe => Answer { value: AbsVal::bits(bit::BOOL), may_fail: !all_chars(args) },
        Prim::StringOf => Answer { value: AbsVal::any_string(), may_fail: !all_chars(args) },
        Prim::MakeString | Prim::Substring => Answer { value: AbsVal::any_string(), may_fail: true },
        Prim::StringRef => Answer { value: AbsVal::bits(bit::CHAR), may_fail: true },
        Prim::StringUpcase | Prim::StringDowncase => {
            Answer { value: AbsVal::any_string(), may_fail: !all_strings(args) }
        }
        Prim::StringLt | Prim::StringGt | Prim::StringLe | Prim::StringGe => {
            Answer { value: AbsVal::bits(bit::BOOL), may_fail: !all_strings(args) }
        }
        Prim::Void => Answer { value: AbsVal::bits(bit::UNSPECIFIED), may_fail: false },
        _ => numeric(prim, args, arithmetic),
    }
}

fn all_chars(args: &[&AbsVal]) -> bool {
    args.iter().all(|arg| arg.parts() == 1 && arg.bits == bit::CHAR)
}

fn all_strings(args: &[&AbsVal]) -> bool {
    args.iter().all(|arg| arg.parts() == 1 && arg.string != Flat::None)
}

/// A number and nothing else.
fn is_pure_number(value: &AbsVal) -> bool {
    value.refs.is_empty()
        && value.string == Flat::None
        && value.bits & !bit::BROKEN == 0
        && (value.int != Whole::None || value.bits != 0)
}

/// Whether the second argument, if there is one, is certainly a radix.
fn is_radix(args: &[&AbsVal]) -> bool {
    args.get(1).is_none_or(|radix| radix.parts() == 1 && matches!(radix.int, Whole::One(2..=36)))
}

/// How many parts of the value the type predicate accepts.
fn part_count(value: &AbsVal, prim: Prim) -> usize {
    let refs = |test: fn(&Reference) -> bool| value.refs.iter().filter(|r| test(r)).count();
    let bits = |mask: u16| (value.bits & mask).count_ones() as usize;
    match prim {
        Prim::IsNull => bits(bit::NIL),
        Prim::IsPair => refs(|r| matches!(r, Reference::Pair(_))),
        Prim::IsNumber => bits(bit::BROKEN) + (value.int != Whole::None) as usize,
        Prim::IsInteger => (value.int != Whole::None) as usize,
        Prim::IsRational | Prim::IsExact => bits(bit::RATIO) + (value.int != Whole::None) as usize,
        Prim::IsInexact => bits(bit::REAL),
        Prim::IsBoolean => bits(bit::BOOL),
        Prim::IsSymbol => refs(|r| matches!(r, Reference::Symbol(_))) + bits(bit::SYMBOL),
        Prim::IsString => (value.string != Flat::None) as usize,
        Prim::IsChar => bits(bit::CHAR),
        Prim::IsProcedure => {
            refs(|r| matches!(r, Reference::Closure(..) | Reference::Prim(_) | Reference::Kont(_)))
        }
        Prim::IsVector => refs(|r| matches!(r, Reference::Vector(_))),
        Prim::IsRef => refs(|r| matches!(r, Reference::Ref(_))),
        Prim::IsLock => refs(|r| matches!(r, Reference::Lock(_))) + bits(bit::LOCK),
        Prim::IsThread => refs(|r| matches!(r, Reference::Thread(_))),
        other => unreachable!("{} is no predicate", other.name()),
    }
}

fn numeric(prim: Prim, args: &[&AbsVal], arithmetic: Arithmetic) -> Answer {
    let predicate = matches!(
        prim,
        Prim::NumEq
            | Prim::Lt
            | Prim::Gt
            | Prim::Le
            | Prim::Ge
            | Prim::IsZero
            | Prim::IsPositive
            | Prim::IsNegative
            | Prim::IsOdd
            | Prim::IsEven
    );
    let number = |v: &AbsVal| v.int != Whole::None || v.bits & bit::BROKEN != 0;
    if !args.iter().all(|arg| number(arg)) {
        return Answer { value: AbsVal::default(), may_fail: true };
    }
    let pure = args.iter().all(|arg| is_pure_number(arg));
    let known: Option<SmallVec<[i64; 4]>> = args
        .iter()
        .map(|arg| match arg.int {
            Whole::One(n) if arg.bits & bit::BROKEN == 0 => Some(n),
            _ => None,
        })
        .collect();
    if let (Arithmetic::Bounded(bound), Some(known)) = (arithmetic, known) {
        use crate::concrete::{prims, state::FailureKind, state::Value};
        let values: SmallVec<[Value; 4]> = known.iter().map(|&n| Value::Int(n)).collect();
        let value = match prims::apply(prim, &values, &Default::default()) {
            Ok(Value::Bool(b)) => AbsVal::bits(if b { bit::TRUE } else { bit::FALSE }),
            Ok(Value::Int(n)) if (-bound..=bound).contains(&n) => AbsVal::int(n),
            Ok(Value::Int(_) | Value::Big(_)) => AbsVal::any_int(),
            Ok(Value::Ratio(_)) => AbsVal::bits(bit::RATIO),
            Ok(_) => AbsVal::bits(bit::REAL),
            // Larger than we compute with; the program goes on with it.
            Err((FailureKind::Limit, _)) => any_number(),
            Err(_) => return Answer { value: AbsVal::default(), may_fail: true },
        };
        return Answer { value, may_fail: !pure };
    }
    let may_be_real = args.iter().any(|arg| arg.bits & bit::REAL != 0);
    let may_be_ratio = args.iter().any(|arg| arg.bits & bit::RATIO != 0);
    let may_be_exact = args.iter().all(|arg| arg.int != Whole::None || arg.bits & bit::RATIO != 0);
    if predicate {
        let needs_integers = matches!(prim, Prim::IsOdd | Prim::IsEven);
        let broken = may_be_real || may_be_ratio;
        return Answer { value: AbsVal::bits(bit::BOOL), may_fail: !pure || needs_integers && broken };
    }
    let mut value = AbsVal::default();
    if may_be_exact {
        value.int = Whole::Any;
    }
    if may_be_real {
        value.bits |= bit::REAL;
    }
    // Whether it may have no result on numbers: a division by zero, a root or a logarithm that is not real.
    let undefined = match prim {
        Prim::Exp | Prim::Sin | Prim::Cos | Prim::Tan | Prim::Atan | Prim::ToInexact => {
            value = AbsVal::bits(bit::REAL);
            false
        }
        Prim::Log | Prim::Asin | Prim::Acos => {
            value = AbsVal::bits(bit::REAL);
            true
        }
        Prim::Floor | Prim::Ceiling | Prim::Truncate | Prim::Round => false,
        Prim::Numerator | Prim::Denominator => may_be_real,
        Prim::ToExact => {
            value = AbsVal { int: Whole::Any, ..AbsVal::default() };
            if may_be_real || may_be_ratio {
                value.bits |= bit::RATIO;
            }
            may_be_real
        }
        Prim::Quotient | Prim::Remainder | Prim::Modulo => {
            // The sign of a remainder is the dividend's, that of a modulo the divisor's.
            let bounded =
                prim == Prim::Modulo || prim == Prim::Remainder && matches!(args[0].int, Whole::Below(_));
            if let (true, false, Whole::One(n)) = (bounded && may_be_exact, may_be_real, args[1].int)
                && n > 0
                && arithmetic != Arithmetic::None
            {
                value.int = Whole::below_bound(n);
            }
            may_be_real || may_be_ratio || args[1].int.may_be_zero()
        }
        Prim::Div => {
            if may_be_exact {
                value.bits |= bit::RATIO;
            }
            let divisors = if args.len() == 1 { args } else { &args[1..] };
            divisors.iter().any(|arg| arg.int.may_be_zero())
        }
        Prim::Sqrt => {
            value.bits |= bit::REAL | if may_be_ratio { bit::RATIO } else { 0 };
            true
        }
        Prim::Expt => {
            let power = matches!(args[1].int, Whole::One(0..)) && args[1].bits & bit::BROKEN == 0;
            if !power {
                value.bits |= bit::BROKEN;
            } else if may_be_ratio {
                value.bits |= bit::RATIO;
            }
            !power
        }
        _ => {
            if may_be_ratio && may_be_exact {
                value.bits |= bit::RATIO;
            }
            false
        }
    };
    Answer { value, may_fail: !pure || undefined }
}

fn any_number() -> AbsVal {
    AbsVal { bits: bit::BROKEN, int: Whole::Any, ..AbsVal::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<AbsVal> {
        vec![
            AbsVal::default(),
            AbsVal::int(1),
            AbsVal::int(2),
            AbsVal::any_int(),
            AbsVal::bits(bit::RATIO),
            AbsVal::bits(bit::TRUE),
            AbsVal::bits(bit::BOOL),
            AbsVal::any_string(),
            AbsVal::bits(bit::SYMBOL),
            AbsVal::reference(Reference::Symbol(Symbol(3))),
            AbsVal::reference(Reference::Symbol(Symbol(3))).join(&AbsVal::bits(bit::SYMBOL)),
            AbsVal::reference(Reference::Prim(Prim::Car)),
            AbsVal::int(1).join(&AbsVal::bits(bit::NIL)),
        ]
    }

    #[test]
    fn join_is_the_least_upper_bound() {
        for a in some() {
            for b in some() {
                let join = a.join(&b);
                assert!(a.below(&join) && b.below(&join));
                assert_eq!(join, b.join(&a));
                for c in some() {
                    assert!(!(a.below(&c) && b.below(&c)) || join.below(&c), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }

    /// What the bounds are for, and that each operation on them covers the integers they stand for.
    #[test]
    fn bounds_describe_what_they_say() {
        let all = [Whole::None, Whole::One(-1), Whole::One(0), Whole::One(3), Whole::One(40), Whole::Any]
            .into_iter()
            .chain([2, 7, 12, 32, 33, 40, 41, 200, BELOW_MAX].map(Whole::below_bound))
            .collect::<Vec<_>>();
        let has = |set: Whole, n: i64| Whole::One(n).below(set);
        for &a in &all {
            for &b in &all {
                let join = a.join(b);
                assert!(a.below(join) && b.below(join) && join == b.join(a), "{a:?} {b:?}");
                for n in -2..50 {
                    assert!(!(has(a, n) || has(b, n)) || has(join, n), "{a:?} {b:?} {n}");
                    assert!(!(a.below(b) && has(a, n)) || has(b, n), "{a:?} {b:?} {n}");
                    assert!(!(has(a, n) && has(b, n)) || a.meets(b), "{a:?} {b:?} {n}");
                }
            }
        }
        let eq = |_: &AbsVal, _: &AbsVal| (true, true);
        let modulo = |by: i64| {
            apply(Prim::Modulo, &[&AbsVal::any_int(), &AbsVal::int(by)], Arithmetic::Bounded(8), eq)
        };
        assert_eq!((modulo(4).value.int, modulo(4).may_fail), (Whole::Below(4), false));
        assert_eq!((modulo(-4).value.int, modulo(-4).may_fail), (Whole::Any, false));
        assert!(modulo(0).may_fail);
    }

    #[test]
    fn arithmetic_stays_within_its_bound() {
        let eq = |_: &AbsVal, _: &AbsVal| (true, true);
        let add = |a: &AbsVal, b: &AbsVal, how| apply(Prim::Add, &[a, b], how, eq).value;
        let (one, eight) = (AbsVal::int(1), AbsVal::int(8));
        assert_eq!(add(&one, &one, Arithmetic::Bounded(8)), AbsVal::int(2));
        assert_eq!(add(&one, &eight, Arithmetic::Bounded(8)), AbsVal::any_int());
        assert_eq!(add(&one, &one, Arithmetic::None), AbsVal::any_int());
        let less = apply(Prim::Lt, &[&one, &eight], Arithmetic::None, eq).value;
        assert_eq!(less, AbsVal::bits(bit::BOOL));
    }

    /// What the concrete machine computes is covered, whatever is known about the arguments.
    #[test]
    fn numbers_are_covered() {
        use crate::concrete::prims;
        use crate::concrete::state::{FailureKind, Value};
        let eq = |_: &AbsVal, _: &AbsVal| (true, true);
        let numbers = [-4, -1, 0, 1, 4, 7].map(Value::Int).into_iter();
        let ratio = |a: i64, b: i64| {
            Value::Ratio(std::sync::Arc::new(num_rational::BigRational::new(a.into(), b.into())))
        };
        let big = Value::Big(std::sync::Arc::new(num_bigint::BigInt::from(i64::MAX) * 3));
        let numbers: Vec<Value> = numbers
            .chain([-2.5, -1.0, 0.0, 0.5, 4.0, 1e300].map(Value::Real))
            .chain([ratio(1, 2), ratio(-7, 3), ratio(9, 4), big, Value::Int(i64::MAX), Value::Int(i64::MIN)])
            .collect();
        let exactly = |value: &Value| match value {
            Value::Int(n) => AbsVal::int(*n),
            Value::Big(_) => AbsVal::any_int(),
            Value::Ratio(_) => AbsVal::bits(bit::RATIO),
            Value::Real(_) => AbsVal::bits(bit::REAL),
            Value::Bool(true) => AbsVal::bits(bit::TRUE),
            Value::Bool(false) => AbsVal::bits(bit::FALSE),
            other => unreachable!("{other:?} is no result of arithmetic"),
        };
        let check = |prim: Prim, args: &[&Value]| {
            let exact: Vec<AbsVal> = args.iter().map(|arg| exactly(arg)).collect();
            let any: Vec<AbsVal> = exact.iter().map(|arg| arg.join(&any_number())).collect();
            let kind: Vec<AbsVal> = exact
                .iter()
                .map(|arg| if arg.int == Whole::None { arg.clone() } else { AbsVal::any_int() })
                .collect();
            let values: Vec<Value> = args.iter().map(|&arg| arg.clone()).collect();
            let concrete = prims::apply(prim, &values, &Default::default());
            for known in [&exact, &kind, &any] {
                for arithmetic in [Arithmetic::None, Arithmetic::Bounded(8)] {
                    let refs: Vec<&AbsVal> = known.iter().collect();
                    let answer = apply(prim, &refs, arithmetic, eq);
                    match &concrete {
                        Ok(value) => {
                            let covered = exactly(value).below(&answer.value);
                            assert!(covered, "{} {args:?}: {value:?}, {:?}", prim.name(), answer.value);
                        }
                        Err((FailureKind::Limit, _)) => {}
                        Err((_, why)) => assert!(answer.may_fail, "{} {args:?}: {why}", prim.name()),
                    }
                }
            }
        };
        let arithmetic = Prim::ALL.iter().filter(|&&prim| prim >= Prim::Add && prim < Prim::Not);
        for &prim in arithmetic {
            for a in &numbers {
                for b in &numbers {
                    if prim.accepts(2) {
                        check(prim, &[a, b]);
                    }
                }
                if prim.accepts(1) {
                    check(prim, &[a]);
                }
            }
        }
    }
}
