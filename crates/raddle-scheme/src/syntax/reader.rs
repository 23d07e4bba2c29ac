//! The reader: text to data.
//!
//! A datum is what R5RS calls an external representation. They live in one arena and a list holds the indices of its
//! elements, which were all read before it, so that no pass over data needs recursion: a file nested a million deep is
//! read by the same loop as a flat one. The reader is total: it always returns the data it could make sense of, plus
//! the errors it met.
//!
//! Beyond R5RS it reads `[` `]` as parentheses, `#;` and nested `#| |#` comments, `#true`/`#false`, and the two lock
//! literals `#locked` and `#unlocked` of CScheme_L. Symbols keep their case, as in R6RS and later.

use super::source::{SOURCE_BYTES_MAX, Span, SyntaxError};
use crate::concrete::number::{self, Number};
use crate::limits::Clock;
use logos::{FilterResult, Lexer, Logos};
use num_bigint::BigInt;
use num_rational::BigRational;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Errors beyond this many are dropped: the first ones are what a person reads.
pub const ERRORS_MAX: usize = 50;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub u32);

/// Names and their numbers.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, Symbol>,
}

impl Symbols {
    pub fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&symbol) = self.numbers.get(name) {
            return symbol;
        }
        let symbol = Symbol(self.names.len() as u32);
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.numbers.insert(name, symbol);
        symbol
    }

    /// The symbol of that name, if the text or an expander mentions it.
    pub fn find(&self, name: &str) -> Option<Symbol> {
        self.numbers.get(name).copied()
    }

    pub fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }
}

/// Index of a datum in its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatumId(pub u32);

#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Int(i64),
    Big(Arc<BigInt>),
    Ratio(Arc<BigRational>),
    Real(f64),
    Bool(bool),
    Str(Arc<str>),
    Char(char),
    Symbol(Symbol),
    /// `#locked` (true) or `#unlocked`.
    Lock(bool),
    /// A proper list, or an improper one with what follows the dot.
    List(Box<[DatumId]>, Option<DatumId>),
    Vector(Box<[DatumId]>),
}

/// Everything that was read from one text.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub symbols: Symbols,
    nodes: Vec<(Datum, Span)>,
    pub top: Vec<DatumId>,
    pub errors: Vec<SyntaxError>,
}

impl Data {
    pub fn datum(&self, id: DatumId) -> &Datum {
        &self.nodes[id.0 as usize].0
    }

    pub fn span(&self, id: DatumId) -> Span {
        self.nodes[id.0 as usize].1
    }

    /// Adds a datum made by hand (the expander builds some).
    pub fn push(&mut self, datum: Datum, span: Span) -> DatumId {
        self.nodes.push((datum, span));
        DatumId(self.nodes.len() as u32 - 1)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(skip r"[ \t\r\n\x0C]+")]
#[logos(skip r";[^\n]*")]
enum Token {
    #[token("(")]
    #[token("[")]
    Open,
    #[token(")")]
    #[token("]")]
    Close,
    #[token("#(")]
    OpenVector,
    #[token("'")]
    Quote,
    #[token("`")]
    Quasiquote,
    #[token(",")]
    Unquote,
    #[token(",@")]
    Splice,
    #[token("#;")]
    DatumComment,
    #[token("#|", block_comment)]
    UnclosedComment,
    #[token("\"", string)]
    Str(bool),
    #[token("|", bars)]
    Bars(bool),
    #[regex(r"#\\([a-zA-Z][a-zA-Z0-9]*|[^a-zA-Z])")]
    Char,
    #[regex(r#"#[^\s()\[\]"';`,\\|][^\s()\[\]"';`,]*"#)]
    Hash,
    #[regex(r#"[^\s()\[\]"';`,#|][^\s()\[\]"';`,|]*"#)]
    Atom,
}

/// Skips a nested block comment; an unclosed one becomes a token that is reported.
fn block_comment(lexer: &mut Lexer<Token>) -> FilterResult<(), ()> {
    let bytes = lexer.remainder().as_bytes();
    let (mut at, mut depth) = (0, 1usize);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"|#" => (depth, at) = (depth - 1, at + 2),
            b"#|" => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            lexer.bump(at);
            return FilterResult::Skip;
        }
    }
    lexer.bump(bytes.len());
    FilterResult::Emit(())
}

/// Runs to the closing quote; false when there is none.
fn string(lexer: &mut Lexer<Token>) -> bool {
    runs_to(lexer, b'"')
}

/// Runs to the bar that closes a symbol such as `|a b|`; false when there is none.
fn bars(lexer: &mut Lexer<Token>) -> bool {
    runs_to(lexer, b'|')
}

fn runs_to(lexer: &mut Lexer<Token>, end: u8) -> bool {
    let bytes = lexer.remainder().as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            byte if byte == end => {
                lexer.bump(at + 1);
                return true;
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    lexer.bump(bytes.len());
    false
}

/// An open parenthesis, or a prefix that waits for one datum.
enum Pending {
    List {
        start: usize,
        elements: Vec<DatumId>,
        vector: bool,
        dot: Dot,
    },
    /// `'`, `` ` ``, `,` or `,@`, and the word it stands for.
    Prefix {
        start: usize,
        word: &'static str,
    },
    Comment {
        start: usize,
    },
}

/// How far an improper list has come.
#[derive(Clone, Copy, PartialEq)]
enum Dot {
    None,
    Seen,
    Tail(DatumId),
}

/// Reads a whole text. Never fails: see [`Data::errors`].
pub fn read(text: &str) -> Data {
    read_within(text, &Clock::unlimited()).unwrap_or_default()
}

/// Tokens between two looks at the clock.
const CLOCK_TOKENS: usize = 256;

/// [`read`], until the clock runs out.
pub fn read_within(text: &str, clock: &Clock) -> Option<Data> {
    let mut reader = Reader { data: Data::default(), pending: Vec::new() };
    if text.len() > SOURCE_BYTES_MAX {
        let message = format!("the file is larger than {SOURCE_BYTES_MAX} bytes");
        reader.error(SyntaxError::new(Span::new(0, 0), message));
        return Some(reader.data);
    }
    for (count, (token, range)) in Token::lexer(text).spanned().enumerate() {
        if count % CLOCK_TOKENS == 0 && clock.is_over() {
            return None;
        }
        let span = Span::new(range.start, range.end);
        match token {
            Ok(token) => reader.token(token, &text[range], span),
            Err(()) => reader.error(SyntaxError::new(span, "this is no Scheme token")),
        }
    }
    reader.finish(text.len());
    Some(reader.data)
}

struct Reader {
    data: Data,
    pending: Vec<Pending>,
}

impl Reader {
    fn error(&mut self, error: SyntaxError) {
        if self.data.errors.len() < ERRORS_MAX {
            self.data.errors.push(error);
        }
    }

    fn token(&mut self, token: Token, text: &str, span: Span) {
        let start = span.start as usize;
        match token {
            Token::Open | Token::OpenVector => self.pending.push(Pending::List {
                start,
                elements: Vec::new(),
                vector: token == Token::OpenVector,
                dot: Dot::None,
            }),
            Token::Close => self.close(span),
            Token::Quote => self.pending.push(Pending::Prefix { start, word: "quote" }),
            Token::Quasiquote => self.pending.push(Pending::Prefix { start, word: "quasiquote" }),
            Token::Unquote => self.pending.push(Pending::Prefix { start, word: "unquote" }),
            Token::Splice => self.pending.push(Pending::Prefix { start, word: "unquote-splicing" }),
            Token::DatumComment => self.pending.push(Pending::Comment { start }),
            Token::UnclosedComment => {
                self.error(SyntaxError::new(span, "this block comment is never closed"))
            }
            Token::Str(false) => self.error(SyntaxError::new(span, "this string is never closed")),
            Token::Str(true) => {
                let value = self.unescape(&text[1..text.len() - 1], span);
                self.atom(Datum::Str(value.into()), span);
            }
            Token::Bars(false) => {
                self.error(SyntaxError::new(span, "this symbol between bars is never closed"))
            }
            Token::Bars(true) => {
                let name = self.unescape(&text[1..text.len() - 1], span);
                let datum = Datum::Symbol(self.data.symbols.intern(&name));
                self.atom(datum, span);
            }
            Token::Char => match character(&text[2..]) {
                Some(value) => self.atom(Datum::Char(value), span),
                None => self.error(SyntaxError::new(span, format!("{text} is no character name"))),
            },
            Token::Hash => match text {
                "#t" | "#true" => self.atom(Datum::Bool(true), span),
                "#f" | "#false" => self.atom(Datum::Bool(false), span),
                "#locked" => self.atom(Datum::Lock(true), span),
                "#unlocked" => self.atom(Datum::Lock(false), span),
                _ => match number::read_prefixed(text, 10) {
                    Some(number) => self.atom(datum(number), span),
                    None => self.error(SyntaxError::new(span, format!("{text} is not known")).help(
                        "known are #t, #f, #locked, #unlocked, #\\x, #( and numbers such as #xff or #e1.5",
                    )),
                },
            },
            Token::Atom if text == "." => self.dot(span),
            Token::Atom => {
                let datum =
                    plain_number(text).unwrap_or_else(|| Datum::Symbol(self.data.symbols.intern(text)));
                self.atom(datum, span);
            }
        }
    }

    fn atom(&mut self, datum: Datum, span: Span) {
        let id = self.data.push(datum, span);
        self.deliver(id);
    }

    /// Hands a finished datum to whatever waits for it; prefixes may finish in turn.
    fn deliver(&mut self, mut id: DatumId) {
        loop {
            match self.pending.pop() {
                None => return self.data.top.push(id),
                Some(Pending::Comment { .. }) => return,
                Some(Pending::Prefix { start, word }) => {
                    let end = self.data.span(id).end as usize;
                    let word = Datum::Symbol(self.data.symbols.intern(word));
                    let word = self.data.push(word, Span::new(start, start + 1));
                    id = self.data.push(Datum::List([word, id].into(), None), Span::new(start, end));
                }
                Some(Pending::List { start, mut elements, vector, mut dot }) => {
                    match dot {
                        Dot::None => elements.push(id),
                        Dot::Seen => dot = Dot::Tail(id),
                        Dot::Tail(_) => {
                            let span = self.data.span(id);
                            self.error(SyntaxError::new(span, "only one datum may follow the dot"));
                        }
                    }
                    return self.pending.push(Pending::List { start, elements, vector, dot });
                }
            }
        }
    }

    fn dot(&mut self, span: Span) {
        match self.pending.last_mut() {
            Some(Pending::List { elements, vector: false, dot: dot @ Dot::None, .. })
                if !elements.is_empty() =>
            {
                *dot = Dot::Seen;
            }
            _ => self.error(SyntaxError::new(span, "a dot belongs between the last two data of a list")),
        }
    }

    fn close(&mut self, span: Span) {
        // A prefix directly before a closing parenthesis lacks its datum.
        while let Some(Pending::Prefix { start, .. } | Pending::Comment { start }) = self.pending.last() {
            let start = *start;
            self.pending.pop();
            self.error(SyntaxError::new(Span::new(start, start + 1), "a datum is missing after this"));
        }
        let Some(Pending::List { start, elements, vector, dot }) = self.pending.pop() else {
            return self.error(SyntaxError::new(span, "this parenthesis closes nothing"));
        };
        let whole = Span::new(start, span.end as usize);
        let tail = match dot {
            Dot::None => None,
            Dot::Tail(id) => Some(id),
            Dot::Seen => {
                self.error(SyntaxError::new(whole, "a datum is missing after the dot"));
                None
            }
        };
        let datum = if vector { Datum::Vector(elements.into()) } else { Datum::List(elements.into(), tail) };
        let id = self.data.push(datum, whole);
        self.deliver(id);
    }

    fn finish(&mut self, end: usize) {
        // Only the innermost open parenthesis is reported: it is the one that most likely lacks its partner.
        match self.pending.pop() {
            None => {}
            Some(Pending::List { start, .. }) => {
                let span = Span::new(start, (start + 1).min(end));
                self.error(
                    SyntaxError::new(span, "this parenthesis is never closed").help("add the missing `)`"),
                );
            }
            Some(Pending::Prefix { start, .. } | Pending::Comment { start }) => {
                let span = Span::new(start, (start + 1).min(end));
                self.error(SyntaxError::new(span, "a datum is missing after this"));
            }
        }
        self.pending.clear();
    }

    fn unescape(&mut self, raw: &str, span: Span) -> String {
        let mut out = String::with_capacity(raw.len());
        let mut chars = raw.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(c @ ('"' | '\\' | '|')) => out.push(c),
                Some(other) => {
                    self.error(SyntaxError::new(span, format!("\\{other} is no escape in a string")));
                }
                None => {}
            }
        }
        out
    }
}

fn character(name: &str) -> Option<char> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Some(c),
        _ => match name {
            "space" => Some(' '),
            "newline" => Some('\n'),
            "tab" => Some('\t'),
            "nul" | "null" => Some('\0'),
            "return" => Some('\r'),
            "linefeed" => Some('\n'),
            "alarm" => Some('\x07'),
            "backspace" => Some('\x08'),
            "delete" | "rubout" => Some('\x7f'),
            "escape" | "altmode" => Some('\x1b'),
            _ => {
                let code =
                    name.strip_prefix('x').filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()))?;
                char::from_u32(u32::from_str_radix(code, 16).ok()?)
            }
        },
    }
}

fn datum(number: Number) -> Datum {
    match number {
        Number::Int(n) => Datum::Int(n),
        Number::Big(n) => Datum::Big(n),
        Number::Ratio(q) => Datum::Ratio(q),
        Number::Real(x) => Datum::Real(x),
    }
}

fn plain_number(text: &str) -> Option<Datum> {
    number::read(text, 10).map(datum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes data back, so that a test can state what was read.
    fn show(data: &Data, id: DatumId) -> String {
        let list = |items: &[DatumId]| items.iter().map(|&x| show(data, x)).collect::<Vec<_>>().join(" ");
        match data.datum(id) {
            Datum::Int(n) => n.to_string(),
            Datum::Big(n) => n.to_string(),
            Datum::Ratio(q) => q.to_string(),
            Datum::Real(x) => format!("{x:?}"),
            Datum::Bool(b) => format!("#{}", if *b { "t" } else { "f" }),
            Datum::Str(s) => format!("{s:?}"),
            Datum::Char(c) => format!("#\\{c}"),
            Datum::Symbol(s) => data.symbols.name(*s).to_owned(),
            Datum::Lock(b) => if *b { "#locked" } else { "#unlocked" }.to_owned(),
            Datum::List(items, None) => format!("({})", list(items)),
            Datum::List(items, Some(tail)) => format!("({} . {})", list(items), show(data, *tail)),
            Datum::Vector(items) => format!("#({})", list(items)),
        }
    }

    fn check(text: &str, expected: &str) {
        let data = read(text);
        assert_eq!(data.errors, [], "{text}");
        assert_eq!(data.top.iter().map(|&id| show(&data, id)).collect::<Vec<_>>().join(" "), expected);
    }

    fn check_error(text: &str, message: &str) {
        let data = read(text);
        assert!(data.errors.iter().any(|e| e.message.contains(message)), "{text}: {:?}", data.errors);
    }

    #[test]
    fn reads_every_datum() {
        check("1 -2 +3 1.5 -.5 1e2", "1 -2 3 1.5 -0.5 100.0");
        check("9223372036854775808 -9223372036854775808", "9223372036854775808 -9223372036854775808");
        check("1/3 -2/4 4/2 1/0 1/-2 +/2", "1/3 -1/2 2 1/0 1/-2 +/2");
        check("#xff #b-101 #e1.5 #i1/2 #x#e10", "255 -5 3/2 0.5 16");
        check("#t #f #true #false #locked #unlocked", "#t #f #t #f #locked #unlocked");
        check("a + - ... set-car! <=? 1+", "a + - ... set-car! <=? 1+");
        check(r#""a\n\"b\\" #\a #\space #\("#, r##""a\n\"b\\" #\a #\  #\("##);
        check("(1 . 2) (1 2 . 3) () [a (b)] #(1 #(2))", "(1 . 2) (1 2 . 3) () (a (b)) #(1 #(2))");
        check("`(a ,b ,@c)", "(quasiquote (a (unquote b) (unquote-splicing c)))");
        check("'a ''b '(c)", "(quote a) (quote (quote b)) (quote (c))");
    }

    #[test]
    fn skips_every_comment() {
        check("1 ; 2\n3 #| 4 #| 5 |# 6 |# 7 #;(8 9) #;'x 10", "1 3 7 10");
        check("#|# 1 |#2", "2");
    }

    #[test]
    fn reports_and_goes_on() {
        check_error("(1 2", "never closed");
        check_error("1) 2", "closes nothing");
        check_error("(1 . )", "missing after the dot");
        check_error("( . 1)", "a dot belongs");
        check_error("(1 . 2 3)", "only one datum");
        check_error("\"abc", "string is never closed");
        check_error("#| abc", "comment is never closed");
        check_error("(')", "missing after this");
        check_error("#what", "not known");
        let data = read("(a b) ) (c)");
        assert_eq!((data.top.len(), data.errors.len()), (2, 1));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let depth = 1_000_000;
        let text = "(".repeat(depth) + &")".repeat(depth);
        let data = read(&text);
        assert_eq!((data.len(), data.errors.len()), (depth, 0));
        assert_eq!(read(&"'".repeat(depth)).errors.len(), 1);
    }

    #[test]
    fn spans_cover_the_datum() {
        let text = "(a (b c))";
        let data = read(text);
        let Datum::List(items, None) = data.datum(data.top[0]) else { panic!("a list") };
        let span = data.span(items[1]);
        assert_eq!(&text[span.start as usize..span.end as usize], "(b c)");
    }
}
