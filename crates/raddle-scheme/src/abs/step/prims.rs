//! Primitive procedures on abstract values: those that touch or allocate memory. The pure ones are in
//! [`crate::abs::value`].

use super::{Out, View, op};
use crate::abs::space::*;
use crate::abs::value::{self, AbsVal, Arithmetic, Reference, ValId, bit};
use crate::concrete::state::{Origin, VECTOR_MAX};
use crate::machine::access::Action;
use crate::syntax::prim::{Prim, Touch};
use smallvec::SmallVec;

impl Space<'_> {
    pub(super) fn prim(&mut self, out: &mut Out, ctx: Ctx, view: View, prim: Prim, args: &[ValId]) {
        let site = out.site;
        let store = view.store;
        if !prim.accepts(args.len()) {
            return out.fail(store, false, None);
        }
        let unspecified = self.value(AbsVal::bits(bit::UNSPECIFIED));
        if prim.touch() != Touch::Nothing {
            let (addrs, may_fail) = self.touched(store, prim, args);
            if may_fail {
                out.fail(store, false, None);
            }
            let visible = self.program.visible_touch(prim.touch());
            for addr in addrs {
                match prim.touch() {
                    Touch::ReadPair | Touch::ReadVector | Touch::ReadRef => {
                        let done = visible.then_some(op(Action::Read, site, addr, None));
                        self.give_cell(out, ctx, store, addr, done);
                    }
                    Touch::CasRef | Touch::CasVector => {
                        self.compare_and_swap(
                            out,
                            ctx,
                            store,
                            addr,
                            args[args.len() - 2],
                            args[args.len() - 1],
                        );
                    }
                    _ => {
                        let written = args[args.len() - 1];
                        let store = self.write(store, addr, written);
                        let done = visible.then_some(op(Action::Write, site, addr, Some(written)));
                        self.give(out, ctx, store, unspecified, done);
                    }
                }
            }
            return;
        }
        let time = ctx.time;
        match prim {
            Prim::Cons => {
                let car = self.addr(Addr::Cell(Origin::Pair(site, 0), 0, time));
                let cdr = self.sibling(car, 1);
                let store = self.alloc_fresh(view, car);
                let store = self.alloc(store, car, args[0], false);
                let store = self.alloc(store, cdr, args[1], false);
                let value = self.value(AbsVal::reference(Reference::Pair(car)));
                self.give(out, ctx, store, value, None);
            }
            Prim::Vector | Prim::MakeVector => self.make_vector(out, ctx, view, prim, args),
            Prim::VectorLength => {
                let base = self.value_of(args[0]);
                let mut may_fail =
                    base.bits != 0 || base.int != value::Whole::None || base.string != value::Flat::None;
                for &reference in &base.refs {
                    match reference {
                        Reference::Vector(length) => self.give_cell(out, ctx, store, length, None),
                        _ => may_fail = true,
                    }
                }
                if may_fail {
                    out.fail(store, false, None);
                }
            }
            Prim::NewRef | Prim::NewLock => {
                let origin = if prim == Prim::NewRef { Origin::Ref(site) } else { Origin::Lock(site) };
                let addr = self.addr(Addr::Cell(origin, 0, time));
                let store = self.alloc_fresh(view, addr);
                let (content, reference) = if prim == Prim::NewRef {
                    (args[0], Reference::Ref(addr))
                } else {
                    (self.value(AbsVal::bits(bit::UNLOCKED)), Reference::Lock(addr))
                };
                let store = self.alloc(store, addr, content, false);
                let value = self.value(AbsVal::reference(reference));
                self.give(out, ctx, store, value, None);
            }
            // Here a continuation may be entered as often as anybody likes, which covers that it is left once.
            Prim::CallCc => {
                let kont = self.value(AbsVal::reference(Reference::Kont(ctx.kont)));
                self.apply(out, ctx, view, args[0], [kont].into_iter().collect());
            }
            Prim::Display | Prim::Write | Prim::Newline => self.give(out, ctx, store, unspecified, None),
            // What would follow is unknown, so the limit counts as an error that may be met; the concrete machine tells them apart.
            Prim::Error | Prim::Limit => out.fail(store, true, None),
            Prim::Random => {
                let known = self.value_of(args[0]);
                if !matches!(known.int, value::Whole::One(n) if n > 0)
                    || known.bits != 0
                    || !known.refs.is_empty()
                    || known.string != value::Flat::None
                {
                    out.fail(store, false, None);
                }
                if known.int != value::Whole::None {
                    let int = match known.int {
                        value::Whole::One(n) if self.config.arithmetic != Arithmetic::None => {
                            value::Whole::below_bound(n)
                        }
                        _ => value::Whole::Any,
                    };
                    // Nothing is below zero; whoever asks for it has failed above.
                    if int != value::Whole::None {
                        let value = self.value(AbsVal { int, ..AbsVal::default() });
                        self.give(out, ctx, store, value, None);
                    }
                }
            }
            pure => {
                let values: SmallVec<[std::rc::Rc<AbsVal>; 4]> =
                    args.iter().map(|&arg| self.value_of(arg)).collect();
                let refs: SmallVec<[&AbsVal; 4]> = values.iter().map(|v| &**v).collect();
                let answer =
                    value::apply(pure, &refs, self.config.arithmetic, |a, b| self.equal(store, a, b));
                if answer.may_fail {
                    out.fail(store, false, None);
                }
                if !answer.value.is_none() {
                    let value = self.value(answer.value);
                    self.give(out, ctx, store, value, None);
                }
            }
        }
    }

    fn make_vector(&mut self, out: &mut Out, ctx: Ctx, view: View, prim: Prim, args: &[ValId]) {
        let site = out.site;
        let length = self.addr(Addr::Length(site, ctx.time));
        let mut store = self.alloc_fresh(view, length);
        let (size, fill) = if prim == Prim::Vector {
            (self.value(AbsVal::int(args.len() as i64)), None)
        } else {
            let known = self.value_of(args[0]);
            if matches!(known.int, value::Whole::None | value::Whole::One(..0)) {
                return out.fail(store, false, None);
            }
            let certain = known.bits == 0 && known.refs.is_empty() && known.string == value::Flat::None;
            // A vector that is longer than the machine makes may be any that long: what follows covers it, and so does the failure.
            if !(certain && matches!(known.int, value::Whole::One(0..=VECTOR_MAX) | value::Whole::Below(_))) {
                out.fail(store, false, None);
            }
            let size = AbsVal { int: known.int, ..AbsVal::default() };
            let fill = match args.get(1) {
                Some(&fill) => fill,
                None => self.value(AbsVal::int(0)),
            };
            (self.value(size), Some(fill))
        };
        store = self.alloc(store, length, size, false);
        match self.vector_size(site) {
            Some(count) => {
                for at in 0..count {
                    let cell = self.sibling(length, at);
                    store = self.alloc(store, cell, fill.unwrap_or_else(|| args[at as usize]), false);
                }
            }
            None => {
                let cell = self.sibling(length, ANY_CELL);
                let unassigned = self.value(AbsVal::bits(bit::UNSPECIFIED));
                let contents: Vec<ValId> =
                    fill.into_iter().chain(args.iter().copied().filter(|_| fill.is_none())).collect();
                let first = contents.first().copied().unwrap_or(unassigned);
                for value in [first].into_iter().chain(contents) {
                    store = self.alloc(store, cell, value, true);
                }
            }
        }
        let value = self.value(AbsVal::reference(Reference::Vector(length)));
        self.give(out, ctx, store, value, None);
    }
}
