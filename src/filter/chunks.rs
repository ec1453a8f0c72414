//! The bytes of a filter in chunks.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use std::io::Write;
use std::sync::Arc;

use super::format::{ChainHeader, HEADER_LEN, Header};
use super::hasher::{FilterHasher, Xxh3};
use super::inner::Inner;
use super::locked::Locked;

/// An iterator over the chunks of a filter: see [`CuckooFilter::chunks`](crate::CuckooFilter::chunks).
pub struct Chunks<'a, S = Xxh3> {
    /// The header of a growing filter.
    chain: Option<[u8; HEADER_LEN]>,
    tables: Vec<Table<'a>>,
    next: u32,
    hasher: PhantomData<fn() -> S>,
}

/// A table and its header.
struct Table<'a> {
    inner: Held<'a>,
    header: Header,
    bytes: [u8; HEADER_LEN],
}

/// A filter's only table, or a table of a chain, which may be taken out of the chain meanwhile.
pub(crate) enum Held<'a> {
    Borrowed(&'a Inner),
    Shared(Arc<Inner>),
}

impl core::ops::Deref for Held<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        match self {
            Held::Borrowed(inner) => inner,
            Held::Shared(inner) => inner,
        }
    }
}

impl<'a, S: FilterHasher> Chunks<'a, S> {
    /// Makes an iterator over the chunks of these tables, newest first, from number `next` on.
    pub(crate) fn new(
        chain: Option<ChainHeader>,
        tables: impl IntoIterator<Item = Held<'a>>,
        hasher: &S,
        next: u32,
    ) -> Self {
        let table = |inner: Held<'a>| {
            let bytes = Header::bytes(inner.shape(), hasher);
            let header = Header::parse(&bytes).expect("a filter's own header");
            Table { inner, header, bytes }
        };
        let tables = tables.into_iter().map(table).collect();
        Chunks { chain: chain.map(ChainHeader::bytes), tables, next, hasher: PhantomData }
    }
}

impl<S> Chunks<'_, S> {
    /// Returns the number of bytes of all chunks.
    fn all_bytes(&self) -> usize {
        let tables: u64 = self.tables.iter().map(|table| table.header.filter_len()).sum();
        tables as usize + if self.chain.is_some() { HEADER_LEN } else { 0 }
    }

    /// Returns all chunks, one after the other.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.all_bytes());
        self.for_each(|chunk| bytes.extend_from_slice(&chunk));
        bytes
    }

    /// Writes all chunks, one after the other, and flushes the writer.
    pub(super) fn write_to(mut self, writer: &mut impl Write) -> std::io::Result<()> {
        self.try_for_each(|chunk| writer.write_all(&chunk))?;
        writer.flush()
    }

    /// Makes a chunk.
    fn chunk(&self, mut number: u32) -> Option<Vec<u8>> {
        if let Some(chain) = &self.chain {
            let Some(rest) = number.checked_sub(1) else { return Some(chain.to_vec()) };
            number = rest;
        }
        for Table { inner, header, bytes } in &self.tables {
            let Some(segment) = number.checked_sub(1) else { return Some(bytes.to_vec()) };
            if segment < header.segments() {
                let locked = Locked::lock(&inner.table, segment);
                let mut chunk = header.segment_bytes(locked.len(), locked.segment().all_words());
                // Up to 2 MiB are hashed without the lock.
                drop(locked);
                header.seal(segment, &mut chunk);
                return Some(chunk);
            }
            number = segment - header.segments();
        }
        None
    }
}

impl<S> Iterator for Chunks<'_, S> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let chunk = self.chunk(self.next)?;
        self.next += 1;
        Some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let of_tables: u32 = self.tables.iter().map(|table| 1 + table.header.segments()).sum();
        let left = (of_tables + u32::from(self.chain.is_some())).saturating_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl<S> ExactSizeIterator for Chunks<'_, S> {}

impl<S> FusedIterator for Chunks<'_, S> {}

impl<S> fmt::Debug for Chunks<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("next", &self.next).finish_non_exhaustive()
    }
}
