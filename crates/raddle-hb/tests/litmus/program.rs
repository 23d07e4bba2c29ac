//! Litmus tests as the model reads them, taken from their C sources.
//!
//! The sources of `corpus/litmus` use a small part of C: functions of a few statements, started by `RUN`, and one
//! `printf` of registers and final values. This reader knows just that part and refuses everything else, so what is
//! computed from the axioms is about the very program that is run.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

#[derive(Clone, Debug)]
pub enum Statement {
    Load {
        register: String,
        location: String,
        order: Order,
    },
    Store {
        location: String,
        value: i64,
        order: Order,
    },
    Add {
        register: Option<String>,
        location: String,
        amount: i64,
        order: Order,
    },
    Exchange {
        register: String,
        location: String,
        expected: i64,
        value: i64,
        success: Order,
        failure: Order,
    },
    Fence(Order),
    PlainRead {
        register: Option<String>,
        location: String,
    },
    PlainWrite {
        location: String,
        value: i64,
    },
    /// The statement is executed if the register has this value; none: any but 0.
    If {
        register: String,
        value: Option<i64>,
        then: Vec<Statement>,
    },
}

#[derive(Debug)]
pub struct Program {
    pub threads: Vec<Vec<Statement>>,
    /// What is loaded when all threads are joined.
    pub at_end: Vec<Statement>,
    /// Registers in the order in which they are printed.
    pub printed: Vec<String>,
}

/// Reads a test. `defines`: what the manifest gives on the command line, as `NAME=VALUE`.
pub fn read(source: &str, header: &str, defines: &[String]) -> Program {
    let text = uncommented(source);
    let macros = macros(&[header, &text], defines);
    let code: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let code = expanded(&code, &macros);
    let variables = |kind: &str| -> Vec<String> {
        let declarations = code.split("static ").filter_map(|rest| rest.strip_prefix(kind));
        declarations
            .filter(|rest| !rest.contains('(') || rest.find(';') < rest.find('('))
            .flat_map(|rest| rest[..rest.find(';').unwrap()].split(',').map(|name| name.trim().to_owned()))
            .collect()
    };
    let (atomic, plain) = (variables("atomic_int "), variables("int "));
    let reader = Reader { atomic, plain };
    let run = between(&code, "RUN(", ")");
    let threads = run.split(',').map(|name| reader.block(&body(&code, name.trim()))).collect();
    let arguments = between(&code, "printf(", ");");
    let mut at_end = Vec::new();
    let printed = split_arguments(&arguments)
        .into_iter()
        .skip(1)
        .map(|argument| match argument.strip_prefix("LOAD(") {
            Some(rest) => {
                let (location, order) = rest.trim_end_matches(')').split_once(',').unwrap();
                let register = format!("final {location}");
                let load = Statement::Load {
                    register: register.clone(),
                    location: location.to_owned(),
                    order: order_of(order),
                };
                at_end.push(load);
                register
            }
            None => argument,
        })
        .collect();
    Program { threads, at_end, printed }
}

fn uncommented(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    while let Some(start) = rest.find("/*") {
        text.push_str(&rest[..start]);
        rest = &rest[start + rest[start..].find("*/").unwrap() + 2..];
    }
    text.push_str(rest);
    let lines = text.lines().map(|line| line.split("//").next().unwrap().trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

/// Defaults of the sources, overridden by the command line. Only those that a manifest may change.
fn macros(texts: &[&str], defines: &[String]) -> BTreeMap<String, String> {
    let mut macros = BTreeMap::new();
    for text in texts {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(name) = line.strip_prefix("#ifndef ") else { continue };
            let define = format!("#define {name}");
            if let Some(value) = lines.peek().and_then(|next| next.strip_prefix(&define)) {
                macros.insert(name.to_owned(), value.trim().to_owned());
            }
        }
    }
    for define in defines {
        let (name, value) = define.split_once('=').unwrap();
        macros.insert(name.to_owned(), value.to_owned());
    }
    macros
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn expanded(code: &str, macros: &BTreeMap<String, String>) -> String {
    let mut text = code.to_owned();
    // A macro may stand for another one (ST2 for ST); none of them is recursive.
    for _ in 0..3 {
        let mut out = String::new();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let end = (at..bytes.len()).find(|&ix| !is_word(bytes[ix])).unwrap_or(bytes.len());
            if end == at {
                out.push(bytes[at] as char);
                at += 1;
            } else {
                let word = &text[at..end];
                out.push_str(macros.get(word).map_or(word, String::as_str));
                at = end;
            }
        }
        text = out;
    }
    text
}

fn between(text: &str, start: &str, end: &str) -> String {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start} in {text}")) + start.len();
    let to = from + text[from..].find(end).unwrap();
    text[from..to].to_owned()
}

/// The statements of a function.
fn body(code: &str, name: &str) -> String {
    let start = code.find(&format!("void {name}(void)")).unwrap_or_else(|| panic!("no function {name}"));
    let open = start + code[start..].find('{').unwrap();
    let close = open + code[open..].find('}').unwrap();
    code[open + 1..close].to_owned()
}

fn split_arguments(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for letter in text.chars() {
        match letter {
            ',' if depth == 0 => parts.push(std::mem::take(&mut part).trim().to_owned()),
            _ => {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                part.push(letter);
            }
        }
    }
    parts.push(part.trim().to_owned());
    parts
}

fn order_of(text: &str) -> Order {
    match text.trim() {
        "rlx" => Order::Relaxed,
        "acq" => Order::Acquire,
        "rel" => Order::Release,
        "acq_rel" => Order::AcqRel,
        "sc" => Order::SeqCst,
        other => panic!("no memory order: {other}"),
    }
}

struct Reader {
    atomic: Vec<String>,
    plain: Vec<String>,
}

impl Reader {
    fn block(&self, text: &str) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut expected = 0;
        for statement in text.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            if let Some(value) = statement.strip_prefix("int expected =") {
                expected = value.trim().parse().unwrap();
            } else if statement.ends_with("= expected") {
                // The register of the exchange before it.
                let name = statement.split('=').next().unwrap().trim().to_owned();
                match statements.last_mut() {
                    Some(Statement::Exchange { register, .. }) => *register = name,
                    other => panic!("{statement} after {other:?}"),
                }
            } else {
                statements.extend(self.statement(statement, expected));
            }
        }
        statements
    }

    fn statement(&self, text: &str, expected: i64) -> Vec<Statement> {
        if text.starts_with("turn(") {
            return Vec::new();
        }
        if let Some(rest) = text.strip_prefix("if (") {
            let close = closing(rest);
            return self.condition(&rest[..close], &rest[close + 1..]);
        }
        if let Some(arguments) = call(text, "STORE") {
            let value = arguments[1].parse().unwrap();
            let order = order_of(&arguments[2]);
            return vec![Statement::Store { location: self.atomic(&arguments[0]), value, order }];
        }
        if let Some(arguments) = call(text, "FENCE") {
            return vec![Statement::Fence(order_of(&arguments[0]))];
        }
        if let Some(arguments) = call(text, "atomic_compare_exchange_strong_explicit") {
            return vec![Statement::Exchange {
                register: String::new(),
                location: self.atomic(arguments[0].trim_start_matches('&')),
                expected,
                value: arguments[2].parse().unwrap(),
                success: order_of(&arguments[3]),
                failure: order_of(&arguments[4]),
            }];
        }
        if let Some(arguments) = call(text, "use") {
            let names = arguments[0].split('+').map(str::trim);
            return names
                .map(|name| Statement::PlainRead { register: None, location: self.plain(name) })
                .collect();
        }
        if let Some(add) = self.add(text, None) {
            return vec![add];
        }
        let (left, right) = text.split_once('=').unwrap_or_else(|| panic!("not a known statement: {text}"));
        let (left, right) = (left.trim().to_owned(), right.trim());
        if let Some(arguments) = call(right, "LOAD") {
            let (location, order) = (self.atomic(&arguments[0]), order_of(&arguments[1]));
            return vec![Statement::Load { register: left, location, order }];
        }
        if let Some(add) = self.add(right, Some(left.clone())) {
            return vec![add];
        }
        match right.parse() {
            Ok(value) => vec![Statement::PlainWrite { location: self.plain(&left), value }],
            Err(_) => vec![Statement::PlainRead { register: Some(left), location: self.plain(right) }],
        }
    }

    fn condition(&self, condition: &str, then: &str) -> Vec<Statement> {
        let (left, value) = match condition.split_once("==") {
            Some((left, value)) => (left.trim(), Some(value.trim().parse().unwrap())),
            None => (condition.trim(), None),
        };
        let then = self.statement(then.trim(), 0);
        match call(left, "LOAD") {
            Some(arguments) => {
                let register = format!("seen {}", arguments[0]);
                let (location, order) = (self.atomic(&arguments[0]), order_of(&arguments[1]));
                vec![
                    Statement::Load { register: register.clone(), location, order },
                    Statement::If { register, value, then },
                ]
            }
            None => vec![Statement::If { register: left.to_owned(), value, then }],
        }
    }

    fn add(&self, text: &str, register: Option<String>) -> Option<Statement> {
        let arguments = call(text, "atomic_fetch_add_explicit")?;
        Some(Statement::Add {
            register,
            location: self.atomic(arguments[0].trim_start_matches('&')),
            amount: arguments[1].parse().unwrap(),
            order: order_of(&arguments[2]),
        })
    }

    fn atomic(&self, name: &str) -> String {
        assert!(self.atomic.iter().any(|known| known == name), "{name} is no atomic");
        name.to_owned()
    }

    fn plain(&self, name: &str) -> String {
        assert!(self.plain.iter().any(|known| known == name), "{name} is no plain variable");
        name.to_owned()
    }
}

/// The place of the bracket that closes the one before the text.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if depth == 0 {
            return at;
        }
    }
    panic!("no closing bracket in {text}")
}

fn call(text: &str, name: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
    Some(split_arguments(inner))
}
