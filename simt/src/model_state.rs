//! What models of the hardware keep with a block or a thread.

use std::any::Any;
use std::cell::OnceCell;

/// One value per type, made when it is first asked for. Each model has types of its own, so that blocks and threads
/// know no model.
#[derive(Default)]
pub(crate) struct ModelState {
    value: OnceCell<Box<dyn Any>>,
    rest: OnceCell<Box<ModelState>>,
}

impl ModelState {
    /// The value of type `T`, made now if there is none.
    pub(crate) fn get_or_default<T: Default + 'static>(&self) -> &T {
        let mut state = self;
        loop {
            let value = state.value.get_or_init(|| Box::<T>::default());
            match value.downcast_ref() {
                Some(value) => return value,
                None => state = state.rest.get_or_init(Box::default),
            }
        }
    }

    /// The value of type `T`, if it was made.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        let mut state = self;
        loop {
            match state.value.get()?.downcast_ref() {
                Some(value) => return Some(value),
                None => state = state.rest.get()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn each_type_has_one_value() {
        let state = ModelState::default();
        assert!(state.get::<Cell<u32>>().is_none());
        state.get_or_default::<Cell<u32>>().set(5);
        assert!(state.get::<Cell<i64>>().is_none());
        state.get_or_default::<Cell<i64>>().set(-7);
        assert_eq!(state.get::<Cell<u32>>().map(Cell::get), Some(5));
        assert_eq!(state.get_or_default::<Cell<i64>>().get(), -7);
    }
}
