//! Lists for which there may be no memory.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::error::FilterError;
use crate::engine::advise_huge_pages;

/// The size in bytes of a table, or of a list of all keys, from which on huge pages are requested by default: a range of this
/// size contains at least one whole huge page.
pub(crate) const HUGE_BYTES: usize = 4 << 20;

/// Returns the error for lack of memory for a list of this many items.
fn no_room<T>(len: usize) -> FilterError {
    FilterError::OutOfMemory { bytes: len.saturating_mul(size_of::<T>()) }
}

/// Returns an empty list with room for this many items, if there is memory for it.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>, FilterError> {
    let mut list = Vec::new();
    reserve(&mut list, len)?;
    Ok(list)
}

/// As [`with_room`], for a list that is filled at once and read once: so that memory comes in few large pages. They are
/// requested as they are for a table of this many bytes.
pub(crate) fn with_room_for_all<T>(len: usize, huge_pages: Option<bool>) -> Result<Vec<T>, FilterError> {
    let mut list = with_room(len)?;
    let room: &mut [MaybeUninit<T>] = list.spare_capacity_mut();
    let bytes = size_of_val(room);
    if huge_pages.unwrap_or(bytes >= HUGE_BYTES) {
        advise_huge_pages(NonNull::from(room).cast(), bytes);
    }
    Ok(list)
}

/// Makes room for exactly this many more items, if there is memory for them.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), FilterError> {
    list.try_reserve_exact(more).map_err(|_| no_room::<T>(list.len().saturating_add(more)))
}

/// Appends an item, if there is memory for a longer list.
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), FilterError> {
    if list.len() == list.capacity() {
        list.try_reserve(1).map_err(|_| no_room::<T>(list.len() + 1))?;
    }
    list.push(item);
    Ok(())
}

/// Returns a list of all items, if there is memory for it.
pub(crate) fn try_collect<T>(items: impl Iterator<Item = T>) -> Result<Vec<T>, FilterError> {
    let list = with_room(items.size_hint().0)?;
    collect_into(list, items)
}

/// The same for many items, in a list from [`with_room_for_all`].
pub(crate) fn try_collect_all<T>(
    items: impl Iterator<Item = T>,
    huge_pages: Option<bool>,
) -> Result<Vec<T>, FilterError> {
    let list = with_room_for_all(items.size_hint().0, huge_pages)?;
    collect_into(list, items)
}

/// The same, in a list that is still empty.
#[inline]
fn collect_into<T>(mut list: Vec<T>, items: impl Iterator<Item = T>) -> Result<Vec<T>, FilterError> {
    debug_assert!(list.is_empty());
    let mut items = items.fuse();
    // As many as were announced are written without checking for each whether there is room. `zip` asks for a place first: no
    // item is lost for lack of one. If an item panics, those before it are leaked.
    let mut written = 0;
    for (place, item) in list.spare_capacity_mut().iter_mut().zip(items.by_ref()) {
        place.write(item);
        written += 1;
    }
    // SAFETY: the list was empty, and the first `written` places of its capacity have just been written.
    unsafe { list.set_len(written) };
    for item in items {
        push(&mut list, item)?;
    }
    Ok(list)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// An iterator that announces this many items.
    struct Announcing<I>(usize, I);

    impl<I: Iterator> Iterator for Announcing<I> {
        type Item = I::Item;

        fn next(&mut self) -> Option<I::Item> {
            self.1.next()
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            (self.0, None)
        }
    }

    #[test]
    fn all_items_are_in_the_list_however_many_were_announced() {
        for announced in [0, 1, 9, 10, 11, 100] {
            let list = try_collect(Announcing(announced, (0..10).map(|i| i.to_string())));
            assert_eq!(list.unwrap(), (0..10).map(|i| i.to_string()).collect::<Vec<_>>());
        }
        assert!(try_collect(Announcing(usize::MAX, 0..10)).is_err());
    }

    /// There are enough of them for whole huge pages, whatever is requested of the system.
    #[test]
    fn all_items_are_in_a_list_for_which_huge_pages_are_asked_for() {
        for huge_pages in [None, Some(false), Some(true)] {
            for (announced, len) in [(0, 0), (0, 3), (5, 3), (1 << 20, 3), (1 << 20, 1 << 20)] {
                let list = try_collect_all(Announcing(announced, 0..len), huge_pages).unwrap();
                assert!(
                    list.len() as u64 == len
                        && list.capacity() >= announced
                        && (0..).zip(list).all(|(i, n)| i == n)
                );
            }
            assert!(try_collect_all(Announcing(usize::MAX, 0..10), huge_pages).is_err());
        }
    }

    /// It is not asked again once it has ended.
    #[test]
    fn the_end_is_the_end() {
        let mut turn = 0;
        let items = core::iter::from_fn(|| {
            turn += 1;
            (turn % 3 != 0).then_some(turn)
        });
        assert_eq!(try_collect(Announcing(5, items)).unwrap(), [1, 2]);
    }
}
