//! What maps and caches of plain data do alike.

use bytemuck::{Pod, bytes_of};

/// Removes those of `entries` for which `keep` does not hold. `remove_if` removes the entry of a key, if there is one and its
/// condition holds.
///
/// An entry is removed as `keep` has seen it; of what has replaced it since, `keep` is asked anew.
pub(crate) fn retain<K: Pod, V: Pod>(
    entries: impl Iterator<Item = (K, V)>,
    mut keep: impl FnMut(&K, &V) -> bool,
    mut remove_if: impl FnMut(&K, &mut dyn FnMut(&K, &V) -> bool),
) {
    for (key, value) in entries {
        if !keep(&key, &value) {
            remove_unless_kept((key, value), &mut keep, &mut remove_if);
        }
    }
}

/// Removes an entry, for which `keep` does not hold, if it is still as it was; if another has replaced it, `keep` is asked of
/// that one, and so on.
pub(crate) fn remove_unless_kept<K: Pod, V: Pod>(
    mut entry: (K, V),
    keep: &mut impl FnMut(&K, &V) -> bool,
    mut remove_if: impl FnMut(&K, &mut dyn FnMut(&K, &V) -> bool),
) {
    loop {
        let mut replaced_by = None;
        remove_if(&entry.0, &mut |key, value| {
            let is_same = are_same(&(*key, *value), &entry);
            replaced_by = (!is_same).then_some((*key, *value));
            is_same
        });
        let Some((key, value)) = replaced_by else { return };
        if keep(&key, &value) {
            return;
        }
        entry = (key, value);
    }
}

/// Whether two entries are the same: if their bytes are, whatever `Eq` says.
pub(crate) fn are_same<K: Pod, V: Pod>(one: &(K, V), other: &(K, V)) -> bool {
    bytes_of(&one.0) == bytes_of(&other.0) && bytes_of(&one.1) == bytes_of(&other.1)
}
