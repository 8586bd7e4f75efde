//! Values by type, which a stream keeps for the libraries that use it: their caches.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// At most one value of each type.
#[derive(Default)]
pub(crate) struct StreamState(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl StreamState {
    /// The value of this type. The first call makes it.
    pub(crate) fn value<V: Default + Send + Sync + 'static>(&self) -> Arc<V> {
        let mut values = lock(&self.0);
        let value = values
            .entry(TypeId::of::<V>())
            .or_insert_with(|| Arc::new(V::default()));
        let value = value.clone().downcast();
        value.expect("the value under a type is of that type")
    }
}
