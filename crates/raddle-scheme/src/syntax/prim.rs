//! The primitive procedures: names, arities, and what each may touch.
//!
//! Only procedures that need the machine are primitive. Everything that can be said in Scheme (`map`, `append`,
//! `assoc`, ...) is, in the prelude of [`super::expand`], so that both machines run it by the same rules as user code.

/// How a primitive touches the heap. Decides which of its uses other threads can notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Pure, or allocates something that nobody else knows yet.
    Nothing,
    ReadPair,
    WritePair,
    ReadVector,
    WriteVector,
    CasVector,
    ReadRef,
    WriteRef,
    CasRef,
}

macro_rules! prims {
    ($($variant:ident $name:literal $min:literal $max:expr, $touch:ident;)*) => {
        /// A primitive procedure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Prim { $($variant),* }

        impl Prim {
            pub const ALL: &[Prim] = &[$(Prim::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Prim::$variant => $name),* }
            }

            /// Least and greatest number of arguments.
            pub fn arity(self) -> (usize, Option<usize>) {
                match self { $(Prim::$variant => ($min, $max)),* }
            }

            pub fn touch(self) -> Touch {
                match self { $(Prim::$variant => Touch::$touch),* }
            }
        }
    };
}

prims! {
    Add "+" 0 None, Nothing;
    Sub "-" 1 None, Nothing;
    Mul "*" 0 None, Nothing;
    Div "/" 1 None, Nothing;
    Quotient "quotient" 2 Some(2), Nothing;
    Remainder "remainder" 2 Some(2), Nothing;
    Modulo "modulo" 2 Some(2), Nothing;
    NumEq "=" 1 None, Nothing;
    Lt "<" 1 None, Nothing;
    Gt ">" 1 None, Nothing;
    Le "<=" 1 None, Nothing;
    Ge ">=" 1 None, Nothing;
    IsZero "zero?" 1 Some(1), Nothing;
    IsPositive "positive?" 1 Some(1), Nothing;
    IsNegative "negative?" 1 Some(1), Nothing;
    IsOdd "odd?" 1 Some(1), Nothing;
    IsEven "even?" 1 Some(1), Nothing;
    Abs "abs" 1 Some(1), Nothing;
    Min "min" 1 None, Nothing;
    Max "max" 1 None, Nothing;
    Floor "floor" 1 Some(1), Nothing;
    Ceiling "ceiling" 1 Some(1), Nothing;
    Truncate "truncate" 1 Some(1), Nothing;
    Round "round" 1 Some(1), Nothing;
    Numerator "numerator" 1 Some(1), Nothing;
    Denominator "denominator" 1 Some(1), Nothing;
    Rationalize "rationalize" 2 Some(2), Nothing;
    Sqrt "sqrt" 1 Some(1), Nothing;
    Expt "expt" 2 Some(2), Nothing;
    Exp "exp" 1 Some(1), Nothing;
    Log "log" 1 Some(1), Nothing;
    Sin "sin" 1 Some(1), Nothing;
    Cos "cos" 1 Some(1), Nothing;
    Tan "tan" 1 Some(1), Nothing;
    Asin "asin" 1 Some(1), Nothing;
    Acos "acos" 1 Some(1), Nothing;
    Atan "atan" 1 Some(2), Nothing;
    ToInexact "exact->inexact" 1 Some(1), Nothing;
    ToExact "inexact->exact" 1 Some(1), Nothing;
    Not "not" 1 Some(1), Nothing;
    Eq "eq?" 2 Some(2), Nothing;
    Eqv "eqv?" 2 Some(2), Nothing;
    IsNull "null?" 1 Some(1), Nothing;
    IsPair "pair?" 1 Some(1), Nothing;
    IsNumber "number?" 1 Some(1), Nothing;
    IsInteger "integer?" 1 Some(1), Nothing;
    IsRational "rational?" 1 Some(1), Nothing;
    IsExact "exact?" 1 Some(1), Nothing;
    IsInexact "inexact?" 1 Some(1), Nothing;
    IsBoolean "boolean?" 1 Some(1), Nothing;
    IsSymbol "symbol?" 1 Some(1), Nothing;
    IsString "string?" 1 Some(1), Nothing;
    IsChar "char?" 1 Some(1), Nothing;
    IsProcedure "procedure?" 1 Some(1), Nothing;
    IsVector "vector?" 1 Some(1), Nothing;
    IsRef "ref?" 1 Some(1), Nothing;
    IsLock "lock?" 1 Some(1), Nothing;
    IsThread "thread?" 1 Some(1), Nothing;
    CharToInteger "char->integer" 1 Some(1), Nothing;
    IntegerToChar "integer->char" 1 Some(1), Nothing;
    CharUpcase "char-upcase" 1 Some(1), Nothing;
    CharDowncase "char-downcase" 1 Some(1), Nothing;
    IsAlphabetic "char-alphabetic?" 1 Some(1), Nothing;
    IsNumeric "char-numeric?" 1 Some(1), Nothing;
    IsWhitespace "char-whitespace?" 1 Some(1), Nothing;
    IsUpperCase "char-upper-case?" 1 Some(1), Nothing;
    IsLowerCase "char-lower-case?" 1 Some(1), Nothing;
    CharLt "char<?" 2 Some(2), Nothing;
    CharGt "char>?" 2 Some(2), Nothing;
    CharLe "char<=?" 2 Some(2), Nothing;
    CharGe "char>=?" 2 Some(2), Nothing;
    StringAppend "string-append" 0 None, Nothing;
    StringOf "string" 0 None, Nothing;
    MakeString "make-string" 1 Some(2), Nothing;
    StringRef "string-ref" 2 Some(2), Nothing;
    Substring "substring" 3 Some(3), Nothing;
    StringUpcase "string-upcase" 1 Some(1), Nothing;
    StringDowncase "string-downcase" 1 Some(1), Nothing;
    StringLt "string<?" 2 Some(2), Nothing;
    StringGt "string>?" 2 Some(2), Nothing;
    StringLe "string<=?" 2 Some(2), Nothing;
    StringGe "string>=?" 2 Some(2), Nothing;
    StringLength "string-length" 1 Some(1), Nothing;
    StringEq "string=?" 2 Some(2), Nothing;
    NumberToString "number->string" 1 Some(2), Nothing;
    StringToNumber "string->number" 1 Some(2), Nothing;
    SymbolToString "symbol->string" 1 Some(1), Nothing;
    StringToSymbol "string->symbol" 1 Some(1), Nothing;
    Cons "cons" 2 Some(2), Nothing;
    Car "car" 1 Some(1), ReadPair;
    Cdr "cdr" 1 Some(1), ReadPair;
    SetCar "set-car!" 2 Some(2), WritePair;
    SetCdr "set-cdr!" 2 Some(2), WritePair;
    Vector "vector" 0 None, Nothing;
    MakeVector "make-vector" 1 Some(2), Nothing;
    VectorRef "vector-ref" 2 Some(2), ReadVector;
    VectorSet "vector-set!" 3 Some(3), WriteVector;
    VectorLength "vector-length" 1 Some(1), Nothing;
    CasVector "cas-vector" 4 Some(4), CasVector;
    NewRef "new-ref" 1 Some(1), Nothing;
    Deref "deref" 1 Some(1), ReadRef;
    RefSet "ref-set" 2 Some(2), WriteRef;
    CasRef "cas-ref" 3 Some(3), CasRef;
    NewLock "new-lock" 0 Some(0), Nothing;
    Display "display" 1 Some(1), Nothing;
    Write "write" 1 Some(1), Nothing;
    Newline "newline" 0 Some(0), Nothing;
    Void "void" 0 None, Nothing;
    Error "error" 0 None, Nothing;
    Limit "%limit" 1 Some(1), Nothing;
    Random "random" 1 Some(1), Nothing;
    CallCc "call-with-current-continuation" 1 Some(1), Nothing;
}

impl Prim {
    /// The primitive of that name; some have a second one.
    pub fn by_name(name: &str) -> Option<Prim> {
        let name = match name {
            "ref" | "make-ref" | "atom" => "new-ref",
            "ref-get" | "read" => "deref",
            "compare-and-set!" => "cas-ref",
            "empty?" => "null?",
            "call/cc" => "call-with-current-continuation",
            "ref-set!" => "ref-set",
            "ref-cas" => "cas-ref",
            "vector-cas" | "vector-cas!" => "cas-vector",
            "make-lock" => "new-lock",
            "real?" | "complex?" => "number?",
            "exact" => "inexact->exact",
            "inexact" => "exact->inexact",
            "boolean=?" | "char=?" | "symbol=?" => "eqv?",
            name => name,
        };
        Prim::ALL.iter().copied().find(|prim| prim.name() == name)
    }

    /// Whether that many arguments are accepted.
    pub fn accepts(self, count: usize) -> bool {
        let (min, max) = self.arity();
        count >= min && max.is_none_or(|max| count <= max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for &prim in Prim::ALL {
            assert_eq!(Prim::by_name(prim.name()), Some(prim));
        }
        assert_eq!(Prim::by_name("ref-set!"), Some(Prim::RefSet));
        assert_eq!(Prim::by_name("frobnicate"), None);
    }
}
