//! The tokens of CSPM and the lexer that finds them.
//!
//! Two peculiarities of the language are left to the parser, because they need context: whether `>` closes a
//! sequence or compares, and whether a line break ends a declaration (a token only remembers that one came before
//! it). Everything else is longest match. Lexing is total: bytes that begin no token become [`Kind::Junk`] with a
//! diagnostic, an unclosed comment or string runs to the end with a diagnostic.

use logos::{FilterResult, Logos};

use super::diagnostic::{Diagnostic, Stage};
use super::source::{FileId, Span};

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\f]+")]
pub enum Kind {
    #[token("\n")]
    Newline,
    #[regex(r"--[^\n]*")]
    LineComment,
    #[token("{-", block_comment)]
    BlockComment,
    /// A block comment that never ends.
    OpenComment,

    #[regex(r"[A-Za-z_][A-Za-z0-9_]*'*")]
    Ident,
    #[token("_", priority = 10)]
    Wildcard,
    #[regex(r"[0-9]+")]
    Int,
    #[regex(r"'([^'\\\n]|\\[^\n])'")]
    Char,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Str,
    /// A string that never ends.
    #[regex(r#""([^"\\\n]|\\[^\n])*"#)]
    OpenStr,

    #[token("channel")]
    Channel,
    #[token("datatype")]
    Datatype,
    #[token("subtype")]
    Subtype,
    #[token("nametype")]
    Nametype,
    #[token("external")]
    External,
    #[token("transparent")]
    Transparent,
    #[token("assert")]
    Assert,
    #[token("module")]
    Module,
    #[token("exports")]
    Exports,
    #[token("endmodule")]
    EndModule,
    #[token("instance")]
    Instance,
    #[token("include")]
    Include,
    #[token("print")]
    Print,
    #[token("Timed")]
    Timed,
    #[token("let")]
    Let,
    #[token("within")]
    Within,
    #[token("if")]
    If,
    #[token("then")]
    Then,
    #[token("else")]
    Else,
    #[token("true")]
    #[token("True")]
    True,
    #[token("false")]
    #[token("False")]
    False,
    #[token("not")]
    Not,
    #[token("and")]
    And,
    #[token("or")]
    Or,

    #[token("=")]
    Define,
    #[token("==")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<")]
    Lt,
    #[token(">")]
    Gt,
    #[token("<=")]
    Le,
    #[token(">=")]
    Ge,
    #[token("<>")]
    EmptySeq,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("^")]
    Caret,
    #[token("#")]
    Hash,

    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token("{|")]
    LPipeBrace,
    #[token("|}")]
    RPipeBrace,
    #[token("[")]
    LSquare,
    #[token("]")]
    RSquare,
    #[token("[[")]
    LRename,
    #[token("]]")]
    RRename,
    #[token("[|")]
    LPar,
    #[token("|]")]
    RPar,
    #[token("|>")]
    RException,
    #[token("[+")]
    LSyncChoice,
    #[token("+]")]
    RSyncChoice,
    #[token("/+")]
    LSyncInterrupt,
    #[token("+\\")]
    RSyncInterrupt,

    #[token(",")]
    Comma,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("?")]
    Question,
    #[token("!")]
    Bang,
    #[token("$")]
    Dollar,
    #[token(":")]
    Colon,
    #[token("::")]
    Scope,
    #[token("@")]
    At,
    #[token("@@")]
    AtAt,
    #[token("<-")]
    From,
    #[token("<->")]
    Tie,
    #[token("|")]
    Pipe,
    #[token("||")]
    Parallel,
    #[token("|||")]
    Interleave,
    #[token("|~|")]
    IntChoice,
    #[token("[]")]
    ExtChoice,
    #[token("[>")]
    Sliding,
    #[token("->")]
    Arrow,
    #[token("=>")]
    FatArrow,
    #[token("=>*")]
    FatArrowStar,
    #[token("/\\")]
    Interrupt,
    #[token("\\")]
    Backslash,
    #[token("|\\")]
    Project,
    #[token(";")]
    Semi,
    #[token("&")]
    Amp,
    #[regex(r"\[(T|F|FD|R|RD|V|VD|TP)=")]
    Refines,

    /// Bytes that begin no token.
    Junk,
    /// The end of the file; exactly one, at the end.
    End,
}

/// Block comments nest, which no regular expression can say.
fn block_comment(lexer: &mut logos::Lexer<Kind>) -> FilterResult<(), ()> {
    let bytes = lexer.remainder().as_bytes();
    let mut depth = 1usize;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'{', b'-', ..] => (depth, at) = (depth + 1, at + 2),
            [b'-', b'}', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    lexer.bump(at);
                    return FilterResult::Emit(());
                }
            }
            _ => at += 1,
        }
    }
    lexer.bump(bytes.len());
    FilterResult::Error(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
    /// A line break lies between this token and the one before it.
    pub after_newline: bool,
}

/// A comment, kept for the formatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct Lexed {
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Splits a text into tokens. Never fails; the last token is always [`Kind::End`].
pub fn lex(file: FileId, text: &str) -> Lexed {
    let mut lexed = Lexed::default();
    let mut after_newline = true;
    let mut lexer = Kind::lexer(text);
    while let Some(result) = lexer.next() {
        let range = lexer.span();
        let span = Span::new(file, range.start, range.end);
        let kind = match result {
            Ok(Kind::Newline) => {
                after_newline = true;
                continue;
            }
            Ok(Kind::LineComment) => {
                lexed.comments.push(Comment { span });
                continue;
            }
            Ok(Kind::BlockComment) => {
                lexed.comments.push(Comment { span });
                after_newline |= text[range].contains('\n');
                continue;
            }
            Ok(Kind::OpenStr) => {
                lexed.diagnostics.push(
                    Diagnostic::error(Stage::Syntax, span, "this string is not closed")
                        .note("a string ends with `\"` on the line it begins on"),
                );
                Kind::Str
            }
            Ok(kind) => kind,
            Err(()) if text[range.clone()].starts_with("{-") => {
                let start = Span::new(file, range.start, range.start + 2);
                lexed.comments.push(Comment { span });
                lexed.diagnostics.push(
                    Diagnostic::error(Stage::Syntax, start, "this comment is not closed")
                        .note("block comments nest: every `{-` needs its own `-}`"),
                );
                continue;
            }
            Err(()) => {
                // One message for a run of junk, not one a byte.
                if let Some(last) = lexed.tokens.last_mut()
                    && last.kind == Kind::Junk
                    && last.span.end == span.start
                {
                    last.span.end = span.end;
                    if let Some(diagnostic) = lexed.diagnostics.last_mut() {
                        diagnostic.span.end = span.end;
                    }
                    continue;
                }
                lexed.diagnostics.push(Diagnostic::error(
                    Stage::Syntax,
                    span,
                    "these characters mean nothing in CSPM",
                ));
                Kind::Junk
            }
        };
        lexed.tokens.push(Token { kind, span, after_newline });
        after_newline = false;
    }
    lexed.tokens.push(Token {
        kind: Kind::End,
        span: Span::new(file, text.len(), text.len()),
        after_newline: true,
    });
    lexed
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expect: Expect) {
        let lexed = lex(FileId(0), text);
        let mut out = String::new();
        for token in &lexed.tokens {
            let text = &text[token.span.start as usize..token.span.end as usize];
            out.push_str(&format!("{:?}({text}) ", token.kind));
        }
        for diagnostic in &lexed.diagnostics {
            out.push_str(&format!("\n{}", diagnostic.message));
        }
        expect.assert_eq(out.trim_end());
    }

    #[test]
    fn operators_take_the_longest_match() {
        check(
            "P[|A|>Q|~|R[[a<-b]]/\\S[FD=T |\\ X[+Y+]Z",
            expect![
                "Ident(P) LPar([|) Ident(A) RException(|>) Ident(Q) IntChoice(|~|) Ident(R) LRename([[) Ident(a) From(<-) Ident(b) RRename(]]) Interrupt(/\\) Ident(S) Refines([FD=) Ident(T) Project(|\\) Ident(X) LSyncChoice([+) Ident(Y) RSyncChoice(+]) Ident(Z) End()"
            ],
        );
    }

    #[test]
    fn comments_of_all_kinds_vanish() {
        check("a -- b\n{- c {- d -} e -} f", expect!["Ident(a) Ident(f) End()"]);
    }

    #[test]
    fn unclosed_comment_is_reported_once() {
        check(
            "a {- b {- c -}",
            expect![[r#"
            Ident(a) End() 
            this comment is not closed"#]],
        );
    }

    #[test]
    fn junk_is_one_token_and_one_message() {
        check(
            "a \u{e9}\u{e9} b",
            expect![[r#"
            Ident(a) Junk(éé) Ident(b) End() 
            these characters mean nothing in CSPM"#]],
        );
    }

    #[test]
    fn primes_characters_and_strings() {
        check(
            r#"x' 'x' "a\"b" _ _y"#,
            expect![[r#"Ident(x') Char('x') Str("a\"b") Wildcard(_) Ident(_y) End()"#]],
        );
    }

    #[test]
    fn an_open_string_ends_with_its_line() {
        check(
            "\"ab\nc",
            expect![[r#"
            Str("ab) Ident(c) End() 
            this string is not closed"#]],
        );
    }

    #[test]
    fn a_parenthesis_before_an_operator_stays_alone() {
        check(
            "(|||x:S@P) (|~| x:S@P)",
            expect![
                "LParen(() Interleave(|||) Ident(x) Colon(:) Ident(S) At(@) Ident(P) RParen()) LParen(() IntChoice(|~|) Ident(x) Colon(:) Ident(S) At(@) Ident(P) RParen()) End()"
            ],
        );
    }
}
