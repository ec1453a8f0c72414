//! Tests that certain lifetimes cannot be shortened; they run with the documentation's tests.
//!
//! Code that could use a `&HashMap<&'static str, ()>` as a `&HashMap<&'short str, ()>` could insert a text that is dropped
//! before the map. So every type that takes keys and values in, or leads to one that does, is invariant in their types. Types
//! that only give them out need not be: iterators, even if they remove.
//!
//! Code may fail to compile for many reasons: next to each test is a twin that compiles, with the same type, and the same
//! function of a type that is covariant.

/// Types in which `T` must not become one of a shorter lifetime; `'s` is that of a borrow.
macro_rules! must_not_shorten {
    ($($name:ident: $type:literal;)*) => {$(
        #[doc = concat!(
            "```compile_fail\ntype Of<'s, T> = ", $type, ";\n",
            "fn shorter<'s>(of: Of<'s, &'static str>) -> Of<'s, &'s str> { of }\n",
            "```\n\n",
            "```\ntype Of<'s, T> = ", $type, ";\n",
            "fn as_long<'s>(of: Of<'s, &'s str>) -> Of<'s, &'s str> { of }\n",
            "type Covariant<'s, T> = &'s Option<T>;\n",
            "fn shorter<'s>(of: Covariant<'s, &'static str>) -> Covariant<'s, &'s str> { of }\n",
            "```"
        )]
        struct $name;
    )*};
}

must_not_shorten! {
    KeysOfHashMap: "&'s koel::HashMap<T, ()>";
    ValuesOfHashMap: "&'s koel::HashMap<(), T>";
    KeysOfPinned: "koel::Pinned<'s, T, ()>";
    ValuesOfPinned: "koel::Pinned<'s, (), T>";
    KeysOfPinnedOwned: "koel::PinnedOwned<'s, T, ()>";
    ValuesOfPinnedOwned: "koel::PinnedOwned<'s, (), T>";
    KeysOfIterMut: "koel::IterMut<'s, T, ()>";
    ValuesOfIterMut: "koel::IterMut<'s, (), T>";
    KeysOfValuesMut: "koel::ValuesMut<'s, T, ()>";
    ValuesOfValuesMut: "koel::ValuesMut<'s, (), T>";
    KeysOfRef: "koel::Ref<'s, T, ()>";
    ValuesOfRef: "koel::Ref<'s, (), T>";
    KeysOfMappedRef: "koel::MappedRef<'s, (), T, ()>";
    ValuesOfMappedRef: "koel::MappedRef<'s, (), (), T>";
    ValuesOfHashSet: "&'s koel::HashSet<T>";
    ValuesOfPinnedSet: "koel::PinnedSet<'s, T>";
    ValuesOfPinnedSetOwned: "koel::PinnedSetOwned<'s, T>";
    ValuesOfSetRef: "koel::SetRef<'s, T>";
    KeysOfCache: "&'s koel::Cache<T, ()>";
    ValuesOfCache: "&'s koel::Cache<(), T>";
    KeysOfCacheView: "koel::CacheView<'s, T, ()>";
    ValuesOfCacheView: "koel::CacheView<'s, (), T>";
    KeysOfCacheViewOwned: "koel::CacheViewOwned<'s, T, ()>";
    ValuesOfCacheViewOwned: "koel::CacheViewOwned<'s, (), T>";
    KeysOfCacheRef: "koel::CacheRef<'s, T, ()>";
    ValuesOfCacheRef: "koel::CacheRef<'s, (), T>";
    KeysOfMappedCacheRef: "koel::MappedCacheRef<'s, (), T, ()>";
    ValuesOfMappedCacheRef: "koel::MappedCacheRef<'s, (), (), T>";
    KeysOfCacheEntry: "koel::CacheEntry<'s, T, ()>";
    ValuesOfCacheEntry: "koel::CacheEntry<'s, (), T>";
    KeysOfReservation: "koel::Reservation<'s, T, ()>";
    ValuesOfReservation: "koel::Reservation<'s, (), T>";
    KeysOfDetachedReservation: "koel::DetachedReservation<'s, T, ()>";
    ValuesOfDetachedReservation: "koel::DetachedReservation<'s, (), T>";
    KeysOfCacheBuilder: "(koel::CacheBuilder<T, ()>, &'s ())";
    ValuesOfCacheBuilder: "(koel::CacheBuilder<(), T>, &'s ())";
}
