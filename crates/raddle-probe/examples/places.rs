//! Lists the code of a program that could synchronise threads unseen: `places EXECUTABLE [LIBRARY...]`. With `--from FUNCTION` only what
//! that function of the executable can reach.

use raddle_probe::visibility::Visibility;
use std::path::PathBuf;

fn main() {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut from = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--from" => from = words.next(),
            _ => paths.push(word.into()),
        }
    }
    let start = std::time::Instant::now();
    let visibility = Visibility::read(&paths);
    let read = start.elapsed();
    for problem in visibility.problems() {
        eprintln!("{problem}");
    }
    match from {
        Some(function) => match visibility.could_reach_named(&paths[0], &function) {
            Some(place) => println!("{place}"),
            None => println!("nothing"),
        },
        None => {
            for module in visibility.modules() {
                println!("{:?} {}", module.standing, module.name);
            }
            for place in visibility.places() {
                println!("{place}");
            }
        }
    }
    eprintln!("read in {} ms", read.as_millis());
}
