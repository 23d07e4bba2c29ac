//! The names every script starts with, their types and when they may be used.
//!
//! Functions on processes that FDR calls *transparent* (compressions, which keep the meaning) and *external*
//! (everything else that is not pure CSP) have to be declared by the script before they are in scope.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    Always,
    /// After `transparent NAME`.
    Transparent,
    /// After `external NAME`.
    External,
    /// After either.
    TransparentOrExternal,
}

macro_rules! builtins {
    ($($variant:ident $name:literal $visibility:ident $ty:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Builtin { $($variant),* }

        impl Builtin {
            pub const ALL: &[Builtin] = &[$(Builtin::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name),* }
            }

            pub fn visibility(self) -> Visibility {
                match self { $(Builtin::$variant => Visibility::$visibility),* }
            }

            /// The type in the notation of CSPM.
            pub fn ty(self) -> &'static str {
                match self { $(Builtin::$variant => $ty),* }
            }
        }
    };
}

builtins! {
    Stop "STOP" Always "Proc",
    Skip "SKIP" Always "Proc",
    Div "DIV" Always "Proc",
    Chaos "CHAOS" Always "({Event}) -> Proc",
    Run "RUN" Always "({Event}) -> Proc",
    Buffer "BUFFER" Always "(Int, {(Event, Event)}) -> Proc",
    TStop "TSTOP" Always "Proc",
    TSkip "TSKIP" Always "Proc",
    Wait "WAIT" Always "(Int) -> Proc",

    Int "Int" Always "{Int}",
    Bool "Bool" Always "{Bool}",
    Char "Char" Always "{Char}",
    Proc "Proc" Always "{Proc}",
    Events "Events" Always "{Event}",

    Union "union" Always "({a}, {a}) -> {a}",
    Inter "inter" Always "({a}, {a}) -> {a}",
    Diff "diff" Always "({a}, {a}) -> {a}",
    BigUnion "Union" Always "({{a}}) -> {a}",
    BigInter "Inter" Always "({{a}}) -> {a}",
    Member "member" Always "(a, {a}) -> Bool",
    Card "card" Always "({a}) -> Int",
    Empty "empty" Always "({a}) -> Bool",
    SetOf "set" Always "(<a>) -> {a}",
    PowerSet "Set" Always "({a}) -> {{a}}",
    AllSeqs "Seq" Always "({a}) -> {<a>}",
    SeqOf "seq" Always "({a}) -> <a>",

    Length "length" Always "(<a>) -> Int",
    Null "null" Always "(<a>) -> Bool",
    Head "head" Always "(<a>) -> a",
    Tail "tail" Always "(<a>) -> <a>",
    Concat "concat" Always "(<<a>>) -> <a>",
    Elem "elem" Always "(a, <a>) -> Bool",

    EmptyMap "emptyMap" Always "(| k => v |)",
    MapFromList "mapFromList" Always "(<(k, v)>) -> (| k => v |)",
    MapLookup "mapLookup" Always "((| k => v |), k) -> v",
    MapMember "mapMember" Always "((| k => v |), k) -> Bool",
    MapToList "mapToList" Always "((| k => v |)) -> <(k, v)>",
    MapUpdate "mapUpdate" Always "((| k => v |), k, v) -> (| k => v |)",
    MapUpdateMultiple "mapUpdateMultiple" Always "((| k => v |), <(k, v)>) -> (| k => v |)",
    MapDelete "mapDelete" Always "((| k => v |), k) -> (| k => v |)",
    AllMaps "Map" Always "({k}, {v}) -> {(| k => v |)}",

    Extensions "extensions" Always "(a) -> {b}",
    Productions "productions" Always "(a) -> {b}",
    Error "error" Always "(<Char>) -> a",
    Show "show" Always "(a) -> <Char>",

    RelationalImage "relational_image" External "({(a, b)}) -> (a) -> {b}",
    RelationalInverseImage "relational_inverse_image" External "({(a, b)}) -> (b) -> {a}",
    Transpose "transpose" External "({(a, b)}) -> {(b, a)}",
    TransitiveClosure "mtransclose" External "({(a, a)}, {a}) -> {(a, a)}",

    Prioritise "prioritise" External "(Proc, <{Event}>) -> Proc",
    PrioritiseNoCache "prioritise_nocache" External "(Proc, <{Event}>) -> Proc",
    PrioritisePo "prioritisepo" External "(Proc, {Event}, {(Event, Event)}, {Event}) -> Proc",
    TimedPriority "timed_priority" Always "(Proc) -> Proc",
    Chase "chase" TransparentOrExternal "(Proc) -> Proc",
    ChaseNoCache "chase_nocache" TransparentOrExternal "(Proc) -> Proc",
    Loop "loop" External "(Proc) -> Proc",
    Deter "deter" External "(Proc) -> Proc",

    Normal "normal" Transparent "(Proc) -> Proc",
    Sbisim "sbisim" Transparent "(Proc) -> Proc",
    Wbisim "wbisim" Transparent "(Proc) -> Proc",
    Dbisim "dbisim" Transparent "(Proc) -> Proc",
    Diamond "diamond" Transparent "(Proc) -> Proc",
    TauLoopFactor "tau_loop_factor" Transparent "(Proc) -> Proc",
    Explicate "explicate" Transparent "(Proc) -> Proc",
    LazyEnumerate "lazyenumerate" Transparent "(Proc) -> Proc",
    LazyNorm "lazynorm" Transparent "(Proc) -> Proc",
    LazyCompile "lazy_compile" Transparent "(Proc, {Event}) -> Proc",

    ModelCompress "model_compress" Transparent "(Proc) -> Proc",

    WeakBuffer "WEAK_BUFFER" Always "(Int, Event, {(Event, Event)}) -> Proc",
    FailureWatchdog "failure_watchdog" External "(Proc, {Event}, Event) -> Proc",
    TraceWatchdog "trace_watchdog" External "(Proc, {Event}, Event) -> Proc",
}

impl Builtin {
    pub fn find(name: &str) -> Option<Builtin> {
        Builtin::ALL.iter().copied().find(|b| b.name() == name)
    }

    /// Whether the name stands for a function (rather than for a process, a set or a map).
    pub fn is_function(self) -> bool {
        // A map type begins with `(|`, every function type with a parenthesised argument list.
        self.ty().contains("->")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, a) in Builtin::ALL.iter().enumerate() {
            assert_eq!(Builtin::find(a.name()), Some(*a));
            assert!(Builtin::ALL[i + 1..].iter().all(|b| b.name() != a.name()), "{}", a.name());
        }
    }
}
