//! [`Walk`]: over a directory's segments, one after the other.

/// The state of a walk: items of the current segment, and where the next one begins.
pub(crate) struct Walk<I> {
    /// What it has of the current segment, last first.
    pub(crate) items: Vec<I>,
    /// The prefix at which the next segment begins; 2^32 at the end.
    cursor: u64,
}

impl<I> Walk<I> {
    /// One that begins.
    pub(crate) fn new() -> Self {
        Walk { items: Vec::new(), cursor: 0 }
    }

    /// The next item; `fetch` appends those of the segment that begins at a prefix, and says where the one after it begins.
    #[inline]
    pub(crate) fn next(&mut self, mut fetch: impl FnMut(u64, &mut Vec<I>) -> Option<u64>) -> Option<I> {
        loop {
            if let Some(item) = self.items.pop() {
                return Some(item);
            }
            self.cursor = fetch(self.cursor, &mut self.items)?;
        }
    }
}
