//! Contractions: `contract("mk,nk->mn", A, B)`, or with extents, as `contract("mk,nk->mn", m=128, n=256, k=64)`.

use cutlet_layout_core::contraction::Notation;
use cutlet_layout_core::{Int, Layout};

use super::{Calculator, Operands, Reads};
use crate::contraction;
use crate::refusal::{Refusal, cut};
use crate::value::Value;

impl<'a> Calculator<'a> {
    /// Reads the arguments, behind the opening parenthesis, and applies the operation.
    pub(super) fn contraction(&mut self, begin: usize) -> Result<Value, Refusal> {
        let place = self.reader.place();
        let notation = Notation::parse(self.quoted()?)
            .map_err(|error| self.reader.refusal(place, error.message()))?;
        let mut given = Operands::default();
        let mut extents = Vec::new();
        while self.reader.eat(",") && !self.reader.at_text(")") {
            let place = self.reader.place();
            match self.keyword() {
                Some(name) => extents.push(self.extent(name, place)?),
                None => {
                    let place = self.reader.place();
                    given.push(self.comparison()?, place);
                }
            }
        }
        self.reader.expect(")", "`,` or `)`")?;
        let layouts = self.tensors(&notation, &extents, &given);
        let layouts = layouts.map_err(|refusal| match refusal.column {
            Some(_) => refusal,
            None => self.reader.refusal(place, refusal.message),
        })?;
        let mut operands = Operands::one(Value::Notation(notation), place);
        for (tensor, layout) in layouts.into_iter().enumerate() {
            let place = given.places.get(tensor).copied();
            operands.push(Value::Layout(layout), place.unwrap_or(begin));
        }
        self.called("contract", &operands, begin)
    }

    /// The text between quotes.
    fn quoted(&mut self) -> Result<&'a str, Refusal> {
        let Some(quote) = ["\"", "'"].into_iter().find(|it| self.reader.eat(it)) else {
            return Err(self
                .reader
                .expected("a notation in quotes, as \"mk,nk->mn\""));
        };
        let rest = self.reader.rest();
        let Some(end) = rest.find(quote) else {
            return Err(self
                .reader
                .expected(&format!("`{quote}` behind the notation")));
        };
        self.reader.advance(end + quote.len());
        Ok(&rest[..end])
    }

    /// An extent, behind `m=`. It may be a symbol.
    fn extent(&mut self, name: &str, begin: usize) -> Result<(char, Int), Refusal> {
        let mut letters = name.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else {
            let message = format!(
                "an extent is given by its letter, as `m=64`, but here is `{}`",
                cut(name)
            );
            return Err(self.reader.refusal(begin, message));
        };
        let place = self.reader.place();
        let extent = self.reading(Reads::Extents, Self::comparison)?.int();
        let extent = extent.and_then(|extent| match extent.value() {
            1.. => Ok(extent),
            other => Err(Refusal::new(format!(
                "an extent is at least 1, but here is {other}"
            ))),
        });
        let extent = extent.map_err(|refusal| self.reader.refusal(place, refusal.message))?;
        Ok((letter, extent))
    }

    /// The layouts of A, B and C.
    fn tensors(
        &self,
        notation: &Notation,
        extents: &[(char, Int)],
        given: &Operands,
    ) -> Result<[Layout; 3], Refusal> {
        if let Some(place) = given.places.get(3) {
            let message = "a contraction has the layouts of A, B and C: here is one more";
            return Err(self.reader.refusal(*place, message));
        }
        let mut layouts = [None; 3];
        for ((layout, value), place) in layouts.iter_mut().zip(&given.values).zip(&given.places) {
            let found = value.sliced();
            let found = found.map_err(|refusal| self.reader.refusal(*place, refusal.message))?;
            *layout = Some(found.layout);
        }
        contraction::layouts(notation, extents, layouts)
    }
}
