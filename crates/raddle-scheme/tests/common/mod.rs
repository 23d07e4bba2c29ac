//! Random small concurrent programs, as text.

mod cases;

pub use cases::cases;
use raddle_scheme::concrete::run::Dice;

/// Writes programs that end or spin in finitely many states.
pub struct Author {
    dice: Dice,
    pub fuel: usize,
}

impl Author {
    pub fn new(seed: u64) -> Author {
        Author { dice: Dice::new(seed.wrapping_add(1)), fuel: 0 }
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.dice.below(from.len() as u64) as usize]
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.dice.below(n)
    }

    pub fn program(&mut self) -> String {
        self.fuel = 7;
        let mut out = String::from(
            "(define x 0)\n(define y 1)\n(define lock #unlocked)\n(define mutex (new-lock))\n(define cell (new-ref 0))\n\
             (define pair (cons 0 1))\n(define vec (vector 0 1))\n(define handle #f)\n",
        );
        let f = self.statement(1);
        let g = self.statement(1);
        out += &format!("(define (f n) {f})\n(define (g n) (let ((m (+ n 1))) {g}))\n");
        let threads = 1 + self.below(2);
        for at in 0..threads {
            let body = match self.below(4) {
                0 => format!("(f {})", self.below(3)),
                1 => format!("(begin (g 1) {})", self.statement(1)),
                _ => format!("(begin {} {})", self.statement(2), self.statement(1)),
            };
            out += &format!("(define t{at} (spawn {body}))\n");
        }
        if self.below(4) == 0 {
            out += "(define (start n) (spawn (f n)))\n(define u0 (start 1))\n(define u1 (start 2))\n";
        }
        out += &self.statement(1);
        out.push('\n');
        for at in 0..threads {
            if self.below(3) > 0 {
                out += &format!("(join t{at})\n");
            }
        }
        out + &self.value() + "\n"
    }

    pub fn value(&mut self) -> String {
        match self.below(9) {
            0 => "0".into(),
            1 => "1".into(),
            2 => "x".into(),
            3 => "y".into(),
            4 => "(+ x 1)".into(),
            5 => "(deref cell)".into(),
            6 => "(car pair)".into(),
            7 => "(vector-ref vec 0)".into(),
            _ => "(vector-ref vec x)".into(),
        }
    }

    fn test(&mut self) -> String {
        match self.below(4) {
            0 => "(= x 0)".into(),
            1 => "(eq? y 1)".into(),
            2 => format!("(cas x {} {})", self.below(2), self.below(3)),
            _ => "(< y 2)".into(),
        }
    }

    pub fn statement(&mut self, depth: usize) -> String {
        if depth == 0 || self.fuel == 0 {
            return self.value();
        }
        self.fuel -= 1;
        let var = self.pick(&["x", "y"]);
        match self.below(18) {
            0 | 1 => format!("(set! {var} {})", self.value()),
            2 => format!("(set! {var} (+ {var} 1))"),
            3 => format!("(cas {var} {} {})", self.below(2), self.below(3)),
            4 => format!("(let spin () (if (cas {var} 0 1) #t (spin)))"),
            5 => format!("(if {} {} {})", self.test(), self.statement(depth - 1), self.statement(depth - 1)),
            6 => format!("(begin (acquire lock) {} (release lock))", self.statement(depth - 1)),
            7 => format!("(begin (acquire mutex) {} (release mutex))", self.statement(depth - 1)),
            8 => format!("(begin {} {})", self.statement(depth - 1), self.statement(depth - 1)),
            9 => format!("(ref-set cell {})", self.value()),
            10 => format!("(cas-ref cell 0 {})", self.value()),
            11 => format!("(set-car! pair {})", self.value()),
            12 => format!("(vector-set! vec {} {})", self.below(2), self.value()),
            13 => format!("(let ((v {})) (set! {var} v))", self.value()),
            14 => "(begin (acquire lock) (acquire mutex) (release mutex) (release lock))".into(),
            15 => "(begin (acquire mutex) (acquire lock) (release lock) (release mutex))".into(),
            16 => format!("(if {} (error \"bad\") #f)", self.test()),
            _ => format!("(let ((t (spawn (set! {var} {})))) (join t))", self.value()),
        }
    }
}
