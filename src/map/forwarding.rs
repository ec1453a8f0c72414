//! [`forward_iterator`]: the common part of iterators that wrap another one.

/// Implements `Iterator`, `FusedIterator` and `Debug` for a type whose field `0` is an iterator, and that yields a part of each
/// of its items. Parameters and arguments are in square brackets, because a macro cannot match angle brackets.
macro_rules! forward_iterator {
    (impl[$($params:tt)*] $name:ident[$($args:tt)*] yields $item:ty: |$whole:pat_param| $part:expr) => {
        impl<$($params)*> ::core::iter::Iterator for $name<$($args)*> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.0.next().map(|$whole| $part)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<$($params)*> ::core::iter::FusedIterator for $name<$($args)*> {}

        impl<$($params)*> ::core::fmt::Debug for $name<$($args)*> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use forward_iterator;
