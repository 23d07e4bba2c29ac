//! The picture in a terminal: a lane is a column of two characters, and what is done stands to the right, as in `git log --graph`.
//!
//! ```text
//!         1  1.1 1.2 (1.1: first, 1.2: second)
//!      1  ●  │   │   creates thread 1.1          deadlock.c:32
//!      4  │  ●   │   locks first                 deadlock.c:11
//!      6  │  ┃   ●   locks second                deadlock.c:22
//!         │  ✖━━━✖   waits for mutex `second`    deadlock.c:12
//! ```

use super::{Act, Line, Mark, Picture, Row, Stretch};
use std::fmt::Write as _;
use textwrap::core::display_width;

/// Columns of the number of a step and its margin.
const NUMBER: usize = 7;

/// The picture as lines of at most `width` columns.
pub fn lanes(picture: &Picture, width: usize) -> String {
    if picture.is_empty() {
        return String::new();
    }
    let cell = picture.lanes.iter().map(|lane| display_width(&lane.path)).max().unwrap_or(1).clamp(2, 8) + 1;
    let mut text = " ".repeat(NUMBER);
    for lane in &picture.lanes {
        text.push_str(&pad(&cut(&lane.path, cell - 1), cell));
    }
    let about: Vec<String> = picture
        .lanes
        .iter()
        .filter(|lane| !lane.about.is_empty())
        .map(|lane| format!("{}: {}", lane.path, lane.about))
        .collect();
    let room = width.saturating_sub(NUMBER + cell * picture.lanes.len()).max(16);
    if !about.is_empty() {
        let _ = write!(text, "({})", cut(&about.join(", "), room - 2));
    }
    end(&mut text);
    for (at, row) in picture.rows.iter().enumerate() {
        match row {
            Row::Fold(steps) => {
                text.push_str(&" ".repeat(NUMBER));
                text.push_str(&graph(picture, at, &[], cell));
                let noun = if *steps == 1 { "step" } else { "steps" };
                let _ = write!(text, "... {steps} {noun}");
                end(&mut text);
            }
            Row::Acts(acts) => {
                for (nth, act) in acts.iter().enumerate() {
                    let number = act.number.map_or_else(String::new, |number| number.to_string());
                    let _ = write!(text, "{number:>width$}  ", width = NUMBER - 2);
                    text.push_str(&graph(picture, at, if nth == 0 { acts } else { &[] }, cell));
                    text.push_str(&described(picture, at, act, acts.len() > 1, room));
                    end(&mut text);
                }
            }
        }
    }
    if picture.lanes_left_out > 0 {
        let _ = writeln!(text, "{}and {} more threads", " ".repeat(NUMBER), picture.lanes_left_out);
    }
    text
}

fn end(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push('\n');
}

/// The lanes of one row. Acts of one moment are joined.
fn graph(picture: &Picture, row: usize, acts: &[Act], cell: usize) -> String {
    let first = acts.iter().map(|act| act.lane).min();
    let last = acts.iter().map(|act| act.lane).max();
    let mut text = String::new();
    for lane in 0..picture.lanes.len() {
        let act = acts.iter().find(|act| act.lane == lane);
        let joined = first.is_some_and(|first| first <= lane) && last.is_some_and(|last| lane < last);
        let crossed = first.is_some_and(|first| first < lane) && last.is_some_and(|last| lane < last);
        let symbol = match act.map(|act| act.mark) {
            Some(Mark::Error) => '✖',
            Some(Mark::Moved | Mark::New) => '◆',
            Some(Mark::Plain) => '●',
            None if crossed => '━',
            None => stretch(picture, row, lane),
        };
        text.push(symbol);
        let filling = if joined { "━" } else { " " };
        text.push_str(&filling.repeat(cell - 1));
    }
    text
}

/// How a lane looks between its acts.
fn stretch(picture: &Picture, row: usize, lane: usize) -> char {
    let covering = |wanted: &[Stretch]| {
        let covers = |span: &&super::Span| span.lane == lane && span.from <= row && row <= span.to;
        picture.spans.iter().filter(covers).any(|span| wanted.contains(&span.stretch))
    };
    if covering(&[Stretch::Waits]) {
        '┊'
    } else if covering(&[Stretch::Holds, Stretch::HoldsForReading, Stretch::Region]) {
        '┃'
    } else {
        '│'
    }
}

fn described(picture: &Picture, row: usize, act: &Act, together: bool, room: usize) -> String {
    let mut words = match together {
        true => format!("{} {}", picture.lanes[act.lane].path, act.words),
        false => act.words.clone(),
    };
    let lost = |edge: &&super::Edge| edge.line == Line::Lost && edge.from == (row, act.lane);
    if picture.edges.iter().any(|edge| lost(&edge)) && !act.tells_that_nobody_waits {
        words.push_str(" (nobody waits)");
    }
    let place = cut(&act.spot.short(), room / 2);
    let left = room.saturating_sub(display_width(&place) + 1);
    format!("{} {place}", pad(&cut(&words, left), left))
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(display_width(text))))
}

/// At most so many columns.
fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if display_width(&kept) + display_width(c.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}
