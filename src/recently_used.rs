//! A map that is bounded by use: the entry whose last use is the longest ago makes room for a new one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map of at most `MOST` entries.
pub(crate) struct RecentlyUsed<K, V, const MOST: usize> {
    entries: HashMap<K, Entry<V>>,
    /// How many uses there have been.
    uses: u64,
}

struct Entry<V> {
    value: V,
    /// The number of its last use.
    last_use: u64,
}

impl<K, V, const MOST: usize> Default for RecentlyUsed<K, V, MOST> {
    fn default() -> Self {
        const { assert!(MOST > 0, "a map has room for an entry") }
        RecentlyUsed {
            entries: HashMap::new(),
            uses: 0,
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone, const MOST: usize> RecentlyUsed<K, V, MOST> {
    /// The value of a key, which counts as a use.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.last_use = self.uses;
        Some(entry.value.clone())
    }

    /// Keeps a value. If there is no room for it, the entry goes whose last use is the longest ago.
    ///
    /// That entry is searched for among all. Whoever makes a new value takes longer than that.
    pub fn insert(&mut self, key: K, value: V) {
        if self.entries.len() >= MOST && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.uses += 1;
        let last_use = self.uses;
        self.entries.insert(key, Entry { value, last_use });
    }
}

#[cfg(test)]
impl<K, V, const MOST: usize> RecentlyUsed<K, V, MOST> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of a map, of these, in order. Looking counts as a use.
    fn found(map: &mut RecentlyUsed<u32, u32, 3>, keys: [u32; 5]) -> Vec<u32> {
        keys.into_iter().filter_map(|key| map.get(&key)).collect()
    }

    #[test]
    fn the_entry_goes_whose_last_use_is_the_longest_ago() {
        let mut map = RecentlyUsed::<u32, u32, 3>::default();
        for key in [1, 2, 3] {
            map.insert(key, key);
        }
        assert_eq!(map.get(&1), Some(1));
        map.insert(4, 4);
        assert_eq!(found(&mut map, [1, 2, 3, 4, 5]), [1, 3, 4]);
        // A new value of a key that there is takes no other's room.
        map.insert(1, 10);
        assert_eq!(found(&mut map, [1, 2, 3, 4, 5]), [10, 3, 4]);
        map.insert(5, 5);
        map.insert(6, 6);
        assert_eq!(found(&mut map, [4, 3, 1, 5, 2]), [4, 5]);
        assert_eq!(map.get(&6), Some(6));
    }
}
