//! The formatter behind `raddle csp fmt`.
//!
//! It works on tokens, not on the tree: comments and line breaks stay where the author put them (in CSPM a line break
//! can end a declaration, and people align choices by hand), while the blanks inside a line and the empty lines between
//! declarations get one form. A line keeps its indentation, tabs become four blanks. Formatting twice changes nothing,
//! and the tokens before and after are the same; a text for which they would not be is returned unchanged.

use super::source::FileId;
use super::token::{Kind, lex};

/// Blanks a tab stands for.
const TAB: usize = 4;

struct Piece {
    /// Absent for comments.
    kind: Option<Kind>,
    start: usize,
    end: usize,
}

/// Formats a script. Texts that do not lex are returned unchanged.
pub fn format(text: &str) -> String {
    let lexed = lex(FileId(0), text);
    if !lexed.diagnostics.is_empty() {
        return text.to_owned();
    }
    let mut pieces: Vec<Piece> = lexed
        .tokens
        .iter()
        .filter(|t| t.kind != Kind::End)
        .map(|t| Piece { kind: Some(t.kind), start: t.span.start as usize, end: t.span.end as usize })
        .chain(lexed.comments.iter().map(|c| Piece {
            kind: None,
            start: c.span.start as usize,
            end: c.span.end as usize,
        }))
        .collect();
    pieces.sort_by_key(|p| p.start);
    let formatted = lines(text, &pieces);
    if same_tokens(text, &formatted) { formatted } else { text.to_owned() }
}

fn lines(text: &str, pieces: &[Piece]) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, piece) in pieces.iter().enumerate() {
        let before = match i.checked_sub(1) {
            Some(last) => &text[pieces[last].end..piece.start],
            None => &text[..piece.start],
        };
        let breaks = before.bytes().filter(|&b| b == b'\n').count();
        if breaks > 0 || i == 0 {
            if i > 0 {
                out.push('\n');
                // Several empty lines become one.
                out.push_str(if breaks > 1 { "\n" } else { "" });
            }
            let indent = before.rsplit('\n').next().unwrap_or("");
            let width: usize = indent.chars().map(|c| if c == '\t' { TAB } else { 1 }).sum();
            out.push_str(&" ".repeat(width));
        } else {
            let was_apart = !before.is_empty();
            let apart = match (pieces[i - 1].kind, piece.kind) {
                (Some(left), Some(right)) => space(left, right, was_apart),
                // Around comments.
                _ => true,
            };
            out.push_str(if apart { " " } else { "" });
        }
        // A comment of several lines keeps them; blanks at the end of its lines go.
        let body = &text[piece.start..piece.end];
        match piece.kind {
            Some(_) => out.push_str(body),
            None => {
                let trimmed: Vec<&str> = body.split('\n').map(str::trim_end).collect();
                out.push_str(&trimmed.join("\n"));
            }
        }
    }
    if !pieces.is_empty() {
        out.push('\n');
    }
    out
}

/// Operators that have a blank on both sides wherever they stand between operands.
fn is_spaced(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Define
            | Kind::Eq
            | Kind::Ne
            | Kind::Le
            | Kind::Ge
            | Kind::Arrow
            | Kind::FatArrow
            | Kind::FatArrowStar
            | Kind::From
            | Kind::Tie
            | Kind::Interleave
            | Kind::IntChoice
            | Kind::ExtChoice
            | Kind::Sliding
            | Kind::Interrupt
            | Kind::Project
            | Kind::Amp
            | Kind::And
            | Kind::Or
            | Kind::Refines
            | Kind::Then
            | Kind::Else
            | Kind::Within
            | Kind::At
    )
}

fn space(left: Kind, right: Kind, was_apart: bool) -> bool {
    // Two dots in a row, or a dot beside a number, would change meaning when joined.
    if matches!(left, Kind::Dot) && matches!(right, Kind::Dot | Kind::DotDot) {
        return true;
    }
    // `(` and `|` side by side are the beginning of a map.
    if left == Kind::LParen && matches!(right, Kind::Pipe | Kind::Parallel | Kind::RPipeBrace) {
        return was_apart;
    }
    if left == Kind::Pipe && right == Kind::RParen {
        return was_apart;
    }
    if left == Kind::LParen || right == Kind::RParen || right == Kind::Comma {
        return false;
    }
    if left == Kind::Comma {
        return true;
    }
    if is_spaced(left) || is_spaced(right) {
        return true;
    }
    let joins = |kind: Kind| matches!(kind, Kind::Dot | Kind::Question | Kind::Bang | Kind::Dollar);
    if joins(left) || joins(right) {
        // `a ? -1` must not become an operator of its own; only plain operands are pulled together.
        let plain = |kind: Kind| {
            joins(kind)
                || matches!(
                    kind,
                    Kind::Ident | Kind::Int | Kind::LParen | Kind::RParen | Kind::True | Kind::False
                )
        };
        return if plain(left) && plain(right) { false } else { was_apart };
    }
    was_apart
}

fn same_tokens(a: &str, b: &str) -> bool {
    let (x, y) = (lex(FileId(0), a), lex(FileId(0), b));
    x.tokens.len() == y.tokens.len()
        && x.comments.len() == y.comments.len()
        && x.tokens.iter().zip(&y.tokens).all(|(s, t)| {
            s.kind == t.kind
                && s.after_newline == t.after_newline
                && a[s.span.start as usize..s.span.end as usize]
                    == b[t.span.start as usize..t.span.end as usize]
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expect: Expect) {
        let formatted = format(text);
        expect.assert_eq(&formatted);
        assert_eq!(format(&formatted), formatted, "formatting twice changes something");
    }

    #[test]
    fn blanks_get_one_form() {
        check(
            "P=a->b   ->STOP[]c ? x!y->P\nQ = f( 1,2 )|||R\n",
            expect![[r#"
            P = a -> b -> STOP [] c?x!y -> P
            Q = f(1, 2) ||| R
        "#]],
        );
    }

    #[test]
    fn comments_and_line_breaks_stay() {
        check(
            "-- head  \nP = a ->   -- why\n\t(b->STOP)   \n\n\n\n{- two\n   lines -}\nQ=STOP",
            expect![[r#"
            -- head
            P = a -> -- why
                (b -> STOP)

            {- two
               lines -}
            Q = STOP
        "#]],
        );
    }

    #[test]
    fn maps_and_replicated_operators_keep_their_brackets() {
        check(
            "m = (| 1=>2 |)\nP = (||| x:S@Q(x))\nR=( |~| x:S @ P )\ne = (||)",
            expect![[r#"
            m = (| 1 => 2 |)
            P = (||| x:S @ Q(x))
            R = (|~| x:S @ P)
            e = (||)
        "#]],
        );
    }

    #[test]
    fn what_does_not_lex_stays() {
        assert_eq!(format("P =  \u{e9}"), "P =  \u{e9}");
    }

    #[test]
    fn the_corpus_keeps_its_tokens() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/csp");
        for entry in std::fs::read_dir(folder).expect("the corpus is part of the repository") {
            let path = entry.expect("a readable entry").path();
            if path.extension().is_some_and(|e| e == "csp") {
                let text = std::fs::read_to_string(&path).expect("a readable script");
                let formatted = format(&text);
                assert!(same_tokens(&text, &formatted), "{}", path.display());
                assert_eq!(format(&formatted), formatted, "{}", path.display());
            }
        }
    }
}
