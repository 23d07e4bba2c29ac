//! The aspect language: which places of a program are events, and what they carry.
//!
//! After RaceQuest's instrumentation specification (thesis of 2017, figure 6.3 and table 6.1). One aspect a line:
//!
//! ```text
//! open(#return) after call open_file
//! access(#0)    before call write_file when #1 > 0     -- a comment
//! x(store)      before write-global pool.head
//! tick          before line worker.c:12
//! ```
//!
//! An aspect names an event with its fields, says whether it happens *before* or *after* a join point (`call`, `body`, `read-global`,
//! `write-global`, `line`), and which *target* is meant: a pattern of function names, a global or a field of one, a file and line.
//!
//! Beyond the paper: conditions (`when`), arguments by name (`#arg(size)`), the thread (`#self`), the place that called (`#caller`),
//! widths (`#1:i32`, for functions without debug information), functions of one library (`libz.so!deflate`), comments.
//!
//! Parsing is total ([`parse`]): it returns what could be understood, and a diagnostic for everything else. Printing
//! ([`File`]'s `Display`) gives the one form in which `raddle aspects fmt` writes files; parsing it gives the same file again.

mod diagnostic;
mod parser;
mod print;
mod rules;

pub use diagnostic::{Diagnostic, Severity};
pub use parser::{ASPECTS_MAX, FILE_BYTES_MAX, Parsed, parse};

use std::ops::Range;

/// Most fields of an event: what fits in one record of the runtime.
pub const FIELDS_MAX: usize = 8;
/// Most comparisons of a condition.
pub const COMPARISONS_MAX: usize = 4;
/// Most dereferences of one field.
pub const DEREFERENCES_MAX: u8 = 8;
/// Arguments beyond this one are not passed by any compiler in a way that anybody writes by hand.
pub const ARGUMENT_MAX: u16 = 63;

/// Where something stands in the text, in bytes. No part of what it says: two spans are always equal.
#[derive(Clone, Debug, Default)]
pub struct Span(pub Range<usize>);

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

/// A file of aspects, with what matters only to people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    pub lines: Vec<Line>,
}

impl File {
    pub fn aspects(&self) -> impl Iterator<Item = &Aspect> {
        self.lines.iter().filter_map(|line| line.aspect.as_ref())
    }
}

/// One line: an aspect, a comment, both, or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub aspect: Option<Aspect>,
    /// Without the dashes and the space around.
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aspect {
    pub event: Event,
    pub moment: Moment,
    pub join_point: JoinPoint,
    pub target: Target,
    /// All of them have to hold.
    pub condition: Vec<Comparison>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub fields: Vec<Field>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    Before,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinPoint {
    Call,
    Body,
    ReadGlobal,
    WriteGlobal,
    Line,
}

impl Moment {
    pub const ALL: [Moment; 2] = [Moment::Before, Moment::After];

    pub fn word(self) -> &'static str {
        match self {
            Moment::Before => "before",
            Moment::After => "after",
        }
    }
}

impl JoinPoint {
    pub const ALL: [JoinPoint; 5] =
        [JoinPoint::Call, JoinPoint::Body, JoinPoint::ReadGlobal, JoinPoint::WriteGlobal, JoinPoint::Line];

    pub fn word(self) -> &'static str {
        match self {
            JoinPoint::Call => "call",
            JoinPoint::Body => "body",
            JoinPoint::ReadGlobal => "read-global",
            JoinPoint::WriteGlobal => "write-global",
            JoinPoint::Line => "line",
        }
    }

    /// Is its target the name of a function?
    pub fn is_of_functions(self) -> bool {
        matches!(self, JoinPoint::Call | JoinPoint::Body)
    }

    /// Is its target the name of a variable?
    pub fn is_of_globals(self) -> bool {
        matches!(self, JoinPoint::ReadGlobal | JoinPoint::WriteGlobal)
    }
}

/// What an event carries at one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub content: Content,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The same in every event: a name of the model.
    Word(String),
    /// The same in every event: a number.
    Number(i64),
    Value(Value),
}

/// Something that has to be looked up when the event happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub dereferences: u8,
    pub source: Source,
    /// Said by the user, where debug information does not.
    pub width: Option<Width>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Argument(u16),
    /// An argument by its name in the source.
    Named(String),
    Return,
    /// How many bytes are accessed.
    Size,
    /// Where they are.
    Address,
    /// What is read, or was written.
    Accessed,
    /// The handle of the thread, as `pthread_self` returns it.
    Thread,
    /// The place to which the function returns.
    Caller,
}

/// How a value lies in its register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Width {
    /// 1, 2, 4 or 8.
    pub bytes: u8,
    pub signed: bool,
}

impl Width {
    pub const WORD: Width = Width { bytes: 8, signed: true };
    pub const ALL: [(Width, &'static str); 8] = [
        (Width { bytes: 1, signed: true }, "i8"),
        (Width { bytes: 2, signed: true }, "i16"),
        (Width { bytes: 4, signed: true }, "i32"),
        (Width { bytes: 8, signed: true }, "i64"),
        (Width { bytes: 1, signed: false }, "u8"),
        (Width { bytes: 2, signed: false }, "u16"),
        (Width { bytes: 4, signed: false }, "u32"),
        (Width { bytes: 8, signed: false }, "u64"),
    ];

    pub fn word(self) -> &'static str {
        Width::ALL.iter().find(|(width, _)| *width == self).map_or("i64", |(_, word)| word)
    }
}

/// What the join point is about, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A pattern of the file names of modules, before `!`.
    pub module: Option<String>,
    pub name: TargetName,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A pattern of functions' names, mangled or demangled.
    Function(String),
    /// A global, or a part of one (`pool.head`, `slots[3].lock`).
    Global(String),
    Line {
        file: String,
        line: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub left: Value,
    pub relation: Relation,
    pub right: Operand,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    Number(i64),
    Value(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// Longer spellings first, for the parser.
    pub const ALL: [Relation; 6] = [
        Relation::Equal,
        Relation::Unequal,
        Relation::LessOrEqual,
        Relation::GreaterOrEqual,
        Relation::Less,
        Relation::Greater,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::Unequal => "!=",
            Relation::Less => "<",
            Relation::LessOrEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterOrEqual => ">=",
        }
    }

    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::Unequal => left != right,
            Relation::Less => left < right,
            Relation::LessOrEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterOrEqual => left >= right,
        }
    }
}
