//! What maps and caches of plain data do alike.

use bytemuck::{Pod, bytes_of};

/// Removes those of `entries` for which `keep` does not hold. `remove_if` removes the entry of a key, if there is one and its
/// condition holds.
///
/// An entry is removed as `keep` has seen it; of what has replaced it since, `keep` is asked anew. They are the same if their
/// bytes are, whatever `Eq` says.
pub(crate) fn retain<K: Pod, V: Pod>(
    entries: impl Iterator<Item = (K, V)>,
    mut keep: impl FnMut(&K, &V) -> bool,
    mut remove_if: impl FnMut(&K, &mut dyn FnMut(&K, &V) -> bool),
) {
    for (mut key, mut value) in entries {
        while !keep(&key, &value) {
            let mut replaced_by = None;
            remove_if(&key, &mut |other, current| {
                let is_same = bytes_of(other) == bytes_of(&key) && bytes_of(current) == bytes_of(&value);
                replaced_by = (!is_same).then_some((*other, *current));
                is_same
            });
            let Some(current) = replaced_by else { break };
            (key, value) = current;
        }
    }
}
