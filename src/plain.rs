//! What maps and caches of plain data have in common.

use bytemuck::{Pod, bytes_of};

/// Removes an entry if it is unchanged; if another has replaced it, that one stays and is returned. `remove_if` removes the
/// entry of a key, if there is one and its condition holds.
pub(crate) fn remove_or_current<K: Pod, V: Pod>(
    entry: (K, V),
    remove_if: impl FnOnce(&K, &mut dyn FnMut(&K, &V) -> bool),
) -> Option<(K, V)> {
    let mut replaced_by = None;
    remove_if(&entry.0, &mut |key, value| {
        let is_same = are_same(&(*key, *value), &entry);
        replaced_by = (!is_same).then_some((*key, *value));
        is_same
    });
    replaced_by
}

/// Whether two entries are the same, which they are if their bytes are equal, whatever `Eq` says.
pub(crate) fn are_same<K: Pod, V: Pod>(one: &(K, V), other: &(K, V)) -> bool {
    bytes_of(&one.0) == bytes_of(&other.0) && bytes_of(&one.1) == bytes_of(&other.1)
}
