//! Contracts of modules: which sequences of calls must be atomic.
//!
//! The language is that of Sousa, Dias, Ferreira, Lourenço (*Preventing atomicity violations with contracts*, 2015) and of Dias et
//! al. (*Verifying concurrent programs using contracts*, ICST 2017). A line is a *target*, a sequence of calls that a client makes
//! and that must not be interrupted, and its *spoilers*, the sequences that may not run inside it; without spoilers every target
//! of the file is one.
//!
//! ```text
//! # a comment
//! contains get                              basic
//! contains(M) get(M) <- remove(M)           extended: parameter and context
//! begin(F) commit(F) <- begin(F) | abort(F) several spoilers
//! get(M,K) put(M,K) <- put(M,K)             several parameters: the same map and the same key
//! contains(M,_) get(M) <- clear(M)          any value
//! ```
//!
//! A parameter stands for one value in target and spoiler; parameters are compared by their places in the calls.

use std::collections::BTreeSet;
use std::fmt;

/// A call in a contract: its name, and its parameters, `None` for any value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    pub name: String,
    pub parameters: Vec<Option<String>>,
}

pub type Sequence = Vec<Call>;

/// One line of a contract file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    pub target: Sequence,
    /// Empty in the basic form.
    pub spoilers: Vec<Sequence>,
    pub line: u32,
}

impl Contract {
    /// The calls that the contract names.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.target.iter().chain(self.spoilers.iter().flatten())
    }
}

/// The names of all calls of contracts, each once.
pub fn call_names(contracts: &[Contract]) -> Vec<String> {
    let names: BTreeSet<&str> =
        contracts.iter().flat_map(Contract::calls).map(|call| call.name.as_str()).collect();
    names.into_iter().map(str::to_owned).collect()
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.parameters.is_empty() {
            let written: Vec<&str> =
                self.parameters.iter().map(|name| name.as_deref().unwrap_or("_")).collect();
            write!(f, "({})", written.join(","))?;
        }
        Ok(())
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written =
            |sequence: &Sequence| sequence.iter().map(Call::to_string).collect::<Vec<_>>().join(" ");
        f.write_str(&written(&self.target))?;
        if !self.spoilers.is_empty() {
            write!(f, " <- {}", self.spoilers.iter().map(written).collect::<Vec<_>>().join(" | "))?;
        }
        Ok(())
    }
}

/// A contract file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ContractError {
    pub line: u32,
    pub column: usize,
    pub problem: String,
}

/// Reads a contract file.
pub fn parse(text: &str) -> Result<Vec<Contract>, ContractError> {
    let mut contracts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number as u32 + 1;
        let code = line.split('#').next().unwrap_or("");
        if code.trim().is_empty() {
            continue;
        }
        let (target, spoilers) = match code.find("<-") {
            Some(arrow) => {
                let mut spoilers = Vec::new();
                let mut column = arrow + 2;
                for part in code[arrow + 2..].split('|') {
                    spoilers.push(sequence(part, number, column)?);
                    column += part.len() + 1;
                }
                (sequence(&code[..arrow], number, 0)?, spoilers)
            }
            None => (sequence(code, number, 0)?, Vec::new()),
        };
        contracts.push(Contract { target, spoilers, line: number });
    }
    Ok(contracts)
}

/// Bytes of the name that a text begins with.
fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && !"_:.~".contains(c)).unwrap_or(text.len())
}

fn sequence(text: &str, line: u32, start: usize) -> Result<Sequence, ContractError> {
    let mut calls = Vec::new();
    let mut rest = text;
    let error =
        |at: usize, problem: &str| ContractError { line, column: start + at + 1, problem: problem.into() };
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        if rest.is_empty() {
            break;
        }
        let len = word(rest);
        if len == 0 {
            return Err(error(at, "expected the name of a call"));
        }
        let name = rest[..len].to_owned();
        rest = &rest[len..];
        let mut parameters = Vec::new();
        if let Some(inside) = rest.strip_prefix('(') {
            let Some(close) = inside.find(')') else { return Err(error(at + len, "expected `)`")) };
            let mut column = at + len + 1;
            for part in inside[..close].split(',') {
                let written = part.trim();
                if written.is_empty() || word(written) != written.len() {
                    return Err(error(column, "expected the name of a parameter, or `_` for any"));
                }
                parameters.push((written != "_").then(|| written.to_owned()));
                column += part.len() + 1;
            }
            rest = &inside[close + 1..];
        }
        calls.push(Call { name, parameters });
    }
    if calls.is_empty() {
        return Err(error(text.len(), "expected a sequence of calls"));
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_are_read() {
        let file =
            "# maps\ncontains get\ncontains(M) get(M) <- remove(M) | clear(_) put(M)\nget(M, K) put(M,_)\n";
        let contracts = parse(file).unwrap();
        assert_eq!(contracts.len(), 3);
        assert_eq!(contracts[0].target.len(), 2);
        assert!(contracts[0].spoilers.is_empty());
        assert_eq!(contracts[1].spoilers.len(), 2);
        assert_eq!(contracts[1].spoilers[1][0].parameters, [None]);
        assert_eq!(contracts[1].target[0].parameters, [Some("M".to_owned())]);
        assert_eq!(contracts[2].target[0].parameters, [Some("M".to_owned()), Some("K".to_owned())]);
        assert_eq!(contracts[2].target[1].parameters, [Some("M".to_owned()), None]);
    }

    #[test]
    fn contracts_are_written_as_they_are_read() {
        let file = "contains get\ncontains(M) get(M) <- remove(M) | clear(_) put(M)\nget(M,K) put(M,_) <- put(M,K)\n";
        let written: String = parse(file).unwrap().iter().map(|contract| format!("{contract}\n")).collect();
        assert_eq!(written, file);
    }

    /// Whatever is written, the reader ends in contracts or in an error; what it accepts is the same when it is written and read again.
    #[test]
    fn any_text_is_read_or_refused() {
        let mut rng = raddle_trace::generate::Rng::new(23);
        let pieces = [
            "a", "get", "(", ")", ",", "_", "X", " ", "<-", "|", "#", "\n", "\t", "é", "::~x.", "((", "<",
            "-",
        ];
        let mut accepted = 0;
        for _ in 0..20_000 {
            let count = 1 + rng.below(12);
            let text: String = (0..count).map(|_| pieces[rng.below(pieces.len() as u32) as usize]).collect();
            let Ok(contracts) = parse(&text) else { continue };
            let written: String = contracts.iter().map(|contract| format!("{contract}\n")).collect();
            let again = parse(&written).unwrap_or_else(|error| panic!("{error}: {text:?} as {written:?}"));
            let same = |contracts: &[Contract]| -> Vec<_> {
                contracts.iter().map(|c| (c.target.clone(), c.spoilers.clone())).collect()
            };
            assert_eq!(same(&again), same(&contracts), "{text:?} as {written:?}");
            accepted += contracts.len();
        }
        assert!(accepted > 500, "{accepted}");
    }

    #[test]
    fn broken_contracts_are_named_by_line_and_column() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("a b\nc(X d\n").starts_with("line 2, column 2: expected `)`"));
        assert!(error("a <- \n").starts_with("line 1, column 6: expected a sequence"));
        assert!(error("a ) b\n").starts_with("line 1, column 3: expected the name of a call"));
        assert!(error("a() b\n").starts_with("line 1, column 3: expected the name of a parameter"));
        assert!(error("a(X,) b\n").starts_with("line 1, column 5: expected the name of a parameter"));
    }
}
