//! Unification, with the rules for dots.
//!
//! Parts of a dot are matched from the left, one against one; the last part of the shorter side, if it is still a
//! variable, stands for everything that is left on the longer side (`c?x` binds `x` to all remaining fields). A
//! constructor or channel swallows the parts that follow it as its arguments, see [`Unifier::normalise`].

use rustc_hash::{FxHashMap, FxHashSet};

use super::ty::{Class, Table, Ty, Type};
use crate::lang::ast::DeclId;
use crate::lang::source::Span;

/// A requirement that could not be decided yet because the type is still a variable.
#[derive(Clone, Debug)]
pub struct Pending {
    pub class: Class,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct Unifier {
    pub table: Table,
    pub pending: Vec<Pending>,
    /// The types of the fields of every datatype whose declaration has been read.
    pub data_fields: FxHashMap<DeclId, Vec<Ty>>,
    /// Datatypes that are known to be comparable.
    comparable: FxHashSet<DeclId>,
    /// Datatypes whose comparability is being decided: assumed where they occur in their own fields.
    assumed: Vec<DeclId>,
}

/// Types that do not agree; the caller knows what to say about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch;

/// Deepest recursion of unification; types of scripts are far shallower.
const UNIFY_DEPTH_MAX: u32 = 500;

impl Unifier {
    pub fn unify(&mut self, a: Ty, b: Ty) -> Result<(), Mismatch> {
        self.at_depth(a, b, 0)
    }

    fn at_depth(&mut self, a: Ty, b: Ty, depth: u32) -> Result<(), Mismatch> {
        if depth > UNIFY_DEPTH_MAX {
            return Err(Mismatch);
        }
        let a = self.normalise(a, depth)?;
        let b = self.normalise(b, depth)?;
        let (a, b) = (self.table.find(a), self.table.find(b));
        if a == b {
            return Ok(());
        }
        let d = depth + 1;
        match (self.table.get(a), self.table.get(b)) {
            (Type::Error, _) | (_, Type::Error) => Ok(()),
            (Type::Var { level }, _) => self.assign(a, level, b),
            (_, Type::Var { level }) => self.assign(b, level, a),
            (Type::Int, Type::Int)
            | (Type::Bool, Type::Bool)
            | (Type::Char, Type::Char)
            | (Type::Proc, Type::Proc)
            | (Type::Event, Type::Event) => Ok(()),
            (Type::Data(x), Type::Data(y)) if x == y => Ok(()),
            (Type::Set(x), Type::Set(y)) | (Type::Seq(x), Type::Seq(y)) => self.at_depth(x, y, d),
            (Type::Map(k, v), Type::Map(l, w)) => {
                self.at_depth(k, l, d)?;
                self.at_depth(v, w, d)
            }
            (Type::Tuple(xs), Type::Tuple(ys)) if xs.len() == ys.len() => self.all(&xs, &ys, d),
            (Type::Function(xs, x), Type::Function(ys, y)) if xs.len() == ys.len() => {
                self.all(&xs, &ys, d)?;
                self.at_depth(x, y, d)
            }
            (Type::Dot(xs), Type::Dot(ys)) => self.parts(&xs, &ys, d),
            (Type::Dotable(xs, x), Type::Dotable(ys, y)) => {
                self.parts(&xs, &ys, d)?;
                self.at_depth(x, y, d)
            }
            (Type::Dot(parts), _) => self.saturate(&parts, b, d),
            (_, Type::Dot(parts)) => self.saturate(&parts, a, d),
            _ => Err(Mismatch),
        }
    }

    fn all(&mut self, xs: &[Ty], ys: &[Ty], depth: u32) -> Result<(), Mismatch> {
        xs.iter().zip(ys).try_for_each(|(&x, &y)| self.at_depth(x, y, depth))
    }

    fn assign(&mut self, var: Ty, level: u32, to: Ty) -> Result<(), Mismatch> {
        let mut todo = vec![to];
        let mut visited = 0;
        while let Some(ty) = todo.pop() {
            let ty = self.table.find(ty);
            visited += 1;
            if ty == var || visited > 100_000 {
                return Err(Mismatch);
            }
            self.table.lower(ty, level);
            todo.extend(self.table.children(ty));
        }
        self.table.link(var, to);
        Ok(())
    }

    /// Matches the parts of two dots.
    fn parts(&mut self, xs: &[Ty], ys: &[Ty], depth: u32) -> Result<(), Mismatch> {
        let xs: Vec<Ty> = xs.iter().flat_map(|&x| self.table.parts(x)).collect();
        let ys: Vec<Ty> = ys.iter().flat_map(|&y| self.table.parts(y)).collect();
        let n = xs.len().min(ys.len());
        if xs.len() == ys.len() {
            return self.all(&xs, &ys, depth);
        }
        self.all(&xs[..n - 1], &ys[..n - 1], depth)?;
        let (x, y) = (self.table.dot(&xs[n - 1..]), self.table.dot(&ys[n - 1..]));
        let single = if xs.len() == n { x } else { y };
        if self.table.is_var(single) { self.at_depth(x, y, depth) } else { Err(Mismatch) }
    }

    /// Makes a dot whose head is not decided, or lacks arguments, into the single type `result`.
    fn saturate(&mut self, parts: &[Ty], result: Ty, depth: u32) -> Result<(), Mismatch> {
        let Some((&head, rest)) = parts.split_first() else { return Err(Mismatch) };
        match self.table.get(head) {
            Type::Var { .. } => {
                let (mut args, result) = (rest.to_vec(), result);
                let target = match self.table.get(result) {
                    // `k.x` wants to be a dotable: `k` takes `x` and then what that takes.
                    Type::Dotable(more, end) => {
                        args.extend(more);
                        self.table.add(Type::Dotable(args, end))
                    }
                    _ => self.table.add(Type::Dotable(args, result)),
                };
                self.at_depth(head, target, depth)
            }
            Type::Dotable(args, end) => {
                let left = self.absorb(args, rest, depth)?;
                match self.table.get(result) {
                    Type::Dotable(wanted, wanted_end) if !left.is_empty() => {
                        self.parts(&left, &wanted, depth)?;
                        self.at_depth(end, wanted_end, depth)
                    }
                    _ if left.is_empty() => self.at_depth(end, result, depth),
                    _ => Err(Mismatch),
                }
            }
            Type::Error => Ok(()),
            _ => Err(Mismatch),
        }
    }

    /// Gives a constructor's arguments the parts that follow it; what is left of the arguments. A constructor among the
    /// parts puts its own arguments in front of the remaining ones, and a variable at the end stands for all that remain:
    /// in `B.D.x` for those of `D` and of `B`.
    fn absorb(&mut self, args: Vec<Ty>, rest: &[Ty], depth: u32) -> Result<Vec<Ty>, Mismatch> {
        let mut wanted = args;
        wanted.reverse();
        let rest: Vec<Ty> = rest.iter().flat_map(|&part| self.table.parts(part)).collect();
        for (i, &part) in rest.iter().enumerate() {
            let last = i + 1 == rest.len();
            if last && wanted.len() > 1 && self.table.is_var(part) {
                wanted.reverse();
                let all = self.table.dot(&wanted);
                self.at_depth(part, all, depth)?;
                return Ok(Vec::new());
            }
            let next = wanted.pop().ok_or(Mismatch)?;
            if let Type::Dotable(lacking, inner) = self.table.get(part)
                && self.takes_whole(next, inner)
            {
                self.at_depth(inner, next, depth)?;
                wanted.extend(lacking.into_iter().rev());
                continue;
            }
            self.at_depth(part, next, depth)?;
        }
        wanted.reverse();
        Ok(wanted)
    }

    /// Whether an argument of type `wanted` is what an incomplete value becomes, rather than the incomplete value itself.
    fn takes_whole(&mut self, wanted: Ty, becomes: Ty) -> bool {
        !matches!(self.table.get(wanted), Type::Dotable(..) | Type::Var { .. })
            || self.table.find(wanted) == self.table.find(becomes)
    }

    /// Applies constructors and channels in a dot to the parts that follow them.
    ///
    /// `c.C.0.5` with `c : D.Int` and `C : Int => D` becomes an event. A trailing variable is left alone while more
    /// than one argument is missing: it may turn out to stand for all of them.
    pub fn normalise(&mut self, ty: Ty, depth: u32) -> Result<Ty, Mismatch> {
        let ty = self.table.find(ty);
        if !matches!(self.table.get(ty), Type::Dot(_)) {
            return Ok(ty);
        }
        let parts = self.table.parts(ty);
        let mut out = Vec::new();
        let mut at = 0;
        while at < parts.len() {
            let (value, next) = self.take(&parts, at, false, depth)?;
            out.push(value);
            if next == at {
                // Undecided from here on.
                out.pop();
                out.extend_from_slice(&parts[at..]);
                break;
            }
            at = next;
        }
        if let [only] = out[..] {
            return Ok(only);
        }
        Ok(self.table.dot(&out))
    }

    /// Takes one value off the parts: a plain part, or a constructor with its arguments. Returns the position it
    /// started at when it cannot be decided yet. `more`: the constructor around it wants further arguments.
    fn take(&mut self, parts: &[Ty], at: usize, more: bool, depth: u32) -> Result<(Ty, usize), Mismatch> {
        if depth > UNIFY_DEPTH_MAX {
            return Err(Mismatch);
        }
        let Type::Dotable(args, result) = self.table.get(parts[at]) else { return Ok((parts[at], at + 1)) };
        let mut next = at + 1;
        let mut taken = 0;
        while taken < args.len() && next < parts.len() {
            let last = next + 1 == parts.len();
            let more = more || taken + 1 < args.len();
            if last && more && self.table.is_var(parts[next]) {
                return Ok((parts[at], at));
            }
            let (value, after) = self.take(parts, next, more, depth + 1)?;
            if after == next {
                return Ok((parts[at], at));
            }
            // An inner constructor that still lacks arguments ends the dot; what it lacks comes first.
            if let Type::Dotable(lacking, inner) = self.table.get(value)
                && self.takes_whole(args[taken], inner)
            {
                self.at_depth(inner, args[taken], depth + 1)?;
                let mut lacking = lacking;
                lacking.extend_from_slice(&args[taken + 1..]);
                return Ok((self.table.add(Type::Dotable(lacking, result)), after));
            }
            self.at_depth(value, args[taken], depth + 1)?;
            taken += 1;
            next = after;
        }
        if taken == args.len() {
            return Ok((result, next));
        }
        Ok((self.table.add(Type::Dotable(args[taken..].to_vec(), result)), next))
    }

    /// Decides a requirement if it can; `Ok(false)` means not yet.
    pub fn satisfies(&mut self, class: Class, ty: Ty) -> Result<bool, Mismatch> {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.decide(class, ty))
    }

    fn decide(&mut self, class: Class, ty: Ty) -> Result<bool, Mismatch> {
        let ty = self.normalise(ty, 0)?;
        let mut decided = true;
        match (class, self.table.get(ty)) {
            (_, Type::Error) => {}
            (Class::Extends(target), Type::Dotable(_, result)) => self.unify(result, target)?,
            (Class::Extends(_), Type::Var { .. }) => decided = false,
            (Class::Extends(target), Type::Dot(parts)) => match self.table.get(parts[0]) {
                Type::Dotable(_, result) => self.unify(result, target)?,
                Type::Var { .. } => decided = false,
                _ => self.unify(ty, target)?,
            },
            (Class::Extends(target), _) => self.unify(ty, target)?,
            (_, Type::Var { .. }) => decided = false,
            (Class::Complete, Type::Dotable(..)) => return Err(Mismatch),
            // A variable at the end may turn out to be what the constructors before it lack.
            (Class::Complete, Type::Dot(parts)) if parts.last().is_some_and(|&p| self.table.is_var(p)) => {
                decided = false;
            }
            (Class::Complete, Type::Dot(parts)) => {
                for part in parts {
                    decided &= self.satisfies(class, part)?;
                }
            }
            (Class::Complete, _) => {}
            (Class::Eq, Type::Data(decl)) => decided = self.comparable(decl)?,
            (_, Type::Function(..)) => return Err(Mismatch),
            (Class::Eq | Class::Ord, Type::Proc) => return Err(Mismatch),
            (Class::Ord, Type::Event | Type::Data(_) | Type::Dotable(..) | Type::Dot(_)) => {
                return Err(Mismatch);
            }
            // Sets are ordered by inclusion, sequences by prefix, maps by their keys: what they hold need have no order.
            (Class::Ord, Type::Set(element)) => decided = self.satisfies(Class::Element, element)?,
            (Class::Ord, Type::Seq(element)) => decided = self.satisfies(Class::Eq, element)?,
            (Class::Ord, Type::Map(key, value)) => {
                decided = self.satisfies(Class::Eq, key)? & self.satisfies(Class::Ord, value)?;
            }
            (Class::Element, Type::Dotable(..)) => {}
            _ => {
                for child in self.table.children(ty) {
                    decided &= self.satisfies(class, child)?;
                }
            }
        }
        Ok(decided)
    }

    /// Whether the values of a datatype can be compared: if those of all its fields can. The greatest solution: a
    /// datatype that occurs in itself does not make itself incomparable.
    fn comparable(&mut self, decl: DeclId) -> Result<bool, Mismatch> {
        if self.comparable.contains(&decl) || self.assumed.contains(&decl) {
            return Ok(true);
        }
        let Some(fields) = self.data_fields.get(&decl).cloned() else { return Ok(false) };
        self.assumed.push(decl);
        let all = fields.iter().try_fold(true, |all, &field| Ok(self.satisfies(Class::Eq, field)? & all));
        self.assumed.pop();
        if all == Ok(true) && self.assumed.is_empty() {
            self.comparable.insert(decl);
        }
        all
    }
}
