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
    pub const LOCKED: u16 = 32;
    pub const UNLOCKED: u16 = 64;
    pub const REAL: u16 = 128;
    pub const CHAR: u16 = 256;
    /// The "result" of a thread that failed.
    pub const FAILED: u16 = 512;
    pub const BOOL: u16 = TRUE | FALSE;
    /// Bits that describe many concrete values.
    pub const VAGUE: u16 = REAL | CHAR;
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
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct AbsVal {
    pub bits: u16,
    pub int: Flat<i64>,
    pub string: Flat<u32>,
    /// Ascending, without repetition.
    pub refs: SmallVec<[Reference; 2]>,
}

impl AbsVal {
    pub fn bits(bits: u16) -> AbsVal {
        AbsVal { bits, ..AbsVal::default() }
    }

    pub fn int(n: i64) -> AbsVal {
        AbsVal { int: Flat::One(n), ..AbsVal::default() }
    }

    pub fn any_int() -> AbsVal {
        AbsVal { int: Flat::Any, ..AbsVal::default() }
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
            && self.refs.iter().all(|r| other.refs.binary_search(r).is_ok())
    }

    /// Whether some concrete value is described by both.
    pub fn meets(&self, other: &AbsVal) -> bool {
        self.bits & other.bits != 0
            || self.int.meets(other.int)
            || self.string.meets(other.string)
            || self.refs.iter().any(|r| other.refs.binary_search(r).is_ok())
    }

    /// How many kinds of concrete values are described, counting at most to two.
    fn parts(&self) -> usize {
        let count = |present: bool| present as usize;
        self.bits.count_ones() as usize
            + count(self.int != Flat::None)
            + count(self.string != Flat::None)
            + self.refs.len()
    }

    /// Whether exactly one concrete value is described; `single` knows about references to memory.
    pub fn exact(&self, single: impl Fn(Reference) -> bool) -> bool {
        self.parts() == 1
            && self.bits & bit::VAGUE == 0
            && self.int != Flat::Any
            && self.string != Flat::Any
            && self.refs.iter().all(|&r| single(r))
    }

    pub fn may_be_true(&self) -> bool {
        self.bits & !(bit::FALSE | bit::UNASSIGNED | bit::FAILED) != 0
            || self.int != Flat::None
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
        | Prim::IsInteger
        | Prim::IsBoolean
        | Prim::IsSymbol
        | Prim::IsString
        | Prim::IsChar
        | Prim::IsProcedure
        | Prim::IsVector
        | Prim::IsRef
        | Prim::IsLock
        | Prim::IsThread => is(&|value| part_count(value, prim) > 0),
        Prim::StringAppend => Answer { value: AbsVal::any_string(), may_fail: !all_strings(args) },
        Prim::NumberToString | Prim::SymbolToString => Answer { value: AbsVal::any_string(), may_fail: true },
        Prim::StringToNumber => {
            let number_or_false =
                AbsVal { bits: bit::REAL | bit::FALSE, int: Flat::Any, ..AbsVal::default() };
            Answer { value: number_or_false, may_fail: !all_strings(args) }
        }
        Prim::StringLength => Answer { value: AbsVal::any_int(), may_fail: !all_strings(args) },
        Prim::StringEq => Answer { value: AbsVal::bits(bit::BOOL), may_fail: !all_strings(args) },
        Prim::Void => Answer { value: AbsVal::bits(bit::UNSPECIFIED), may_fail: false },
        _ => numeric(prim, args, arithmetic),
    }
}

fn all_strings(args: &[&AbsVal]) -> bool {
    args.iter().all(|arg| arg.parts() == 1 && arg.string != Flat::None)
}

/// How many parts of the value the type predicate accepts.
fn part_count(value: &AbsVal, prim: Prim) -> usize {
    let refs = |test: fn(&Reference) -> bool| value.refs.iter().filter(|r| test(r)).count();
    let bits = |mask: u16| (value.bits & mask).count_ones() as usize;
    match prim {
        Prim::IsNull => bits(bit::NIL),
        Prim::IsPair => refs(|r| matches!(r, Reference::Pair(_))),
        Prim::IsNumber => bits(bit::REAL) + (value.int != Flat::None) as usize,
        Prim::IsInteger => (value.int != Flat::None) as usize,
        Prim::IsBoolean => bits(bit::BOOL),
        Prim::IsSymbol => refs(|r| matches!(r, Reference::Symbol(_))),
        Prim::IsString => (value.string != Flat::None) as usize,
        Prim::IsChar => bits(bit::CHAR),
        Prim::IsProcedure => refs(|r| matches!(r, Reference::Closure(..) | Reference::Prim(_))),
        Prim::IsVector => refs(|r| matches!(r, Reference::Vector(_))),
        Prim::IsRef => refs(|r| matches!(r, Reference::Ref(_))),
        Prim::IsLock => refs(|r| matches!(r, Reference::Lock(_))) + bits(bit::LOCKED | bit::UNLOCKED),
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
    let number = |v: &AbsVal| v.int != Flat::None || v.bits & bit::REAL != 0;
    if !args.iter().all(|arg| number(arg)) {
        return Answer { value: AbsVal::default(), may_fail: true };
    }
    let pure =
        args.iter().all(|arg| arg.refs.is_empty() && arg.string == Flat::None && arg.bits & !bit::REAL == 0);
    let known: Option<SmallVec<[i64; 4]>> = args
        .iter()
        .map(|arg| match arg.int {
            Flat::One(n) if arg.bits & bit::REAL == 0 => Some(n),
            _ => None,
        })
        .collect();
    if let (Arithmetic::Bounded(bound), Some(known)) = (arithmetic, known) {
        use crate::concrete::{prims, state::Value};
        let values: SmallVec<[Value; 4]> = known.iter().map(|&n| Value::Int(n)).collect();
        return match prims::apply(prim, &values, &Default::default()) {
            Ok(Value::Bool(b)) => {
                Answer { value: AbsVal::bits(if b { bit::TRUE } else { bit::FALSE }), may_fail: !pure }
            }
            Ok(Value::Int(n)) if n.abs() <= bound => Answer { value: AbsVal::int(n), may_fail: !pure },
            Ok(Value::Int(_)) => Answer { value: AbsVal::any_int(), may_fail: !pure },
            Ok(_) => Answer { value: AbsVal::bits(bit::REAL), may_fail: !pure },
            Err(_) => Answer { value: AbsVal::default(), may_fail: true },
        };
    }
    let may_be_real = args.iter().any(|arg| arg.bits & bit::REAL != 0);
    if predicate {
        let needs_integers = matches!(prim, Prim::IsOdd | Prim::IsEven);
        return Answer { value: AbsVal::bits(bit::BOOL), may_fail: !pure || needs_integers && may_be_real };
    }
    match prim {
        Prim::Exp | Prim::Sin | Prim::Cos | Prim::Tan | Prim::Atan | Prim::ToInexact => {
            return Answer { value: AbsVal::bits(bit::REAL), may_fail: !pure };
        }
        Prim::Log | Prim::Asin | Prim::Acos => {
            return Answer { value: AbsVal::bits(bit::REAL), may_fail: true };
        }
        Prim::ToExact => return Answer { value: AbsVal::any_int(), may_fail: !pure || may_be_real },
        _ => {}
    }
    let real = may_be_real || matches!(prim, Prim::Div | Prim::Sqrt);
    // An exact result needs exact arguments. Integers are taken as unbounded here: an overflow of 64 bits, which stops
    // the concrete machine, is no behaviour that we look for.
    let divides = matches!(prim, Prim::Div | Prim::Quotient | Prim::Remainder | Prim::Modulo);
    let undefined = divides || prim == Prim::Sqrt;
    let int = args.iter().all(|arg| arg.int != Flat::None);
    let mut value = AbsVal::default();
    if int {
        value.int = Flat::Any;
    }
    if real {
        value.bits |= bit::REAL;
    }
    Answer { value, may_fail: !pure || undefined }
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
            AbsVal::bits(bit::TRUE),
            AbsVal::bits(bit::BOOL),
            AbsVal::any_string(),
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
        use crate::concrete::{prims, state::Value};
        let eq = |_: &AbsVal, _: &AbsVal| (true, true);
        let numbers = [-4, -1, 0, 1, 4, 7].map(Value::Int).into_iter();
        let numbers: Vec<Value> =
            numbers.chain([-2.5, -1.0, 0.0, 0.5, 4.0, 1e300].map(Value::Real)).collect();
        let exactly = |value: &Value| match value {
            Value::Int(n) => AbsVal::int(*n),
            Value::Real(_) => AbsVal::bits(bit::REAL),
            Value::Bool(true) => AbsVal::bits(bit::TRUE),
            Value::Bool(false) => AbsVal::bits(bit::FALSE),
            other => unreachable!("{other:?} is no result of arithmetic"),
        };
        let check = |prim: Prim, args: &[&Value]| {
            let exact: Vec<AbsVal> = args.iter().map(|arg| exactly(arg)).collect();
            let any: Vec<AbsVal> =
                exact.iter().map(|arg| arg.join(&AbsVal::any_int()).join(&AbsVal::bits(bit::REAL))).collect();
            let values: Vec<Value> = args.iter().map(|&arg| arg.clone()).collect();
            let concrete = prims::apply(prim, &values, &Default::default());
            for known in [&exact, &any] {
                for arithmetic in [Arithmetic::None, Arithmetic::Bounded(8)] {
                    let refs: Vec<&AbsVal> = known.iter().collect();
                    let answer = apply(prim, &refs, arithmetic, eq);
                    match &concrete {
                        Ok(value) => {
                            let covered = exactly(value).below(&answer.value);
                            assert!(covered, "{} {args:?}: {value:?}, {:?}", prim.name(), answer.value);
                        }
                        Err(why) if why.contains("64 bits") && prim != Prim::ToExact => {}
                        Err(why) => assert!(answer.may_fail, "{} {args:?}: {why}", prim.name()),
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
