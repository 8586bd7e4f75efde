//! What builds without debug assertions have for `order`: the same names, with nothing behind them.

use std::marker::PhantomData;

use cutlet_device::DeviceData;

use crate::{Result, Stream, View, ViewMut};

pub(crate) struct Access(());

impl Access {
    pub(crate) fn read<T: DeviceData>(_: &View<'_, T>, _: Caller) -> Self {
        Access(())
    }

    pub(crate) fn write<T: DeviceData>(_: &ViewMut<'_, T>, _: Caller) -> Self {
        Access(())
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Caller(());

impl Caller {
    pub(crate) const fn kernel(_: &'static str) -> Self {
        Caller(())
    }

    pub(crate) const fn call(_: &'static str) -> Self {
        Caller(())
    }
}

#[derive(Default)]
pub(crate) struct DeviceOrder(());

impl DeviceOrder {
    pub(crate) fn share(&self) {}
}

pub(crate) struct StreamOrder(());

pub(crate) struct Enqueued(());

impl StreamOrder {
    pub(crate) fn new(_: bool) -> Self {
        StreamOrder(())
    }

    pub(crate) fn enqueued(&self) -> Enqueued {
        Enqueued(())
    }

    pub(crate) fn is_waited_for(&self, _: Enqueued) {}

    pub(crate) fn call_is_refused(&self) {}

    pub(crate) fn follows(&self, _: &StreamOrder) {}

    pub(crate) fn follows_mark(&self, _: &Mark) {}
}

#[derive(Default)]
pub(crate) struct Mark(());

impl Mark {
    pub(crate) fn set(&self, _: &StreamOrder) {}

    pub(crate) fn add(&self, _: &StreamOrder) {}

    pub(crate) fn is_waited_for(&self) {}
}

#[derive(Default)]
pub(crate) struct Uses(());

#[derive(Clone, Copy)]
pub(crate) struct Tracked<'a>(PhantomData<&'a Uses>);

impl<'a> Tracked<'a> {
    pub(crate) const NONE: Self = Tracked(PhantomData);

    pub(crate) const fn of(_: &'a Uses) -> Self {
        Self::NONE
    }

    pub(crate) fn relaxed(self) -> Self {
        self
    }

    pub(crate) fn note(self, _: &Stream, _: Access, _: impl FnOnce() -> String) -> Result<()> {
        Ok(())
    }
}

/// Nothing takes memory.
const _: () = assert!(size_of::<(DeviceOrder, StreamOrder, Mark, Uses, Tracked<'_>)>() == 0);
