//! Send and Sync, checked at compile time. An unconditional implementation would allow data races in safe code.

use core::cell::Cell;
use core::error::Error;
use core::fmt::Debug;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use koel::{
    Builder, Cache, CacheBuilder, CacheDump, CacheError, CacheIter, CacheStats, CacheView, CapacityError,
    Cause, Clock, Compute, Drain, Full, HashMap, HashMapKind, HashSet, InlineCache, InlineCacheBuilder,
    InlineCacheIter, InlineDrain, InlineIter, InlineKeys, InlineMap, InlineMapKind, InlineValues, IntoIter,
    Iter, Keys, LocalGuard, ManualClock, Occupied, Operation, OwnedGuard, Pinned, PinnedOwned, PinnedSet,
    PinnedSetOwned, Policy, Refused, SetDrain, SetExtractIf, SetIntoIter, SetRef, Stats, Values, ViewIter,
    Why,
};

/// Does not compile unless the type implements all the traits.
macro_rules! assert_is {
    ($type:ty: $($bound:tt)+) => {
        const _: fn() = || {
            fn check<T: ?Sized + $($bound)+>() {}
            check::<$type>();
        };
    };
}

/// Does not compile if the type implements the trait: then `Test::<_>` has two candidates.
macro_rules! assert_is_not {
    ($type:ty: $bound:path) => {
        const _: fn() = || {
            struct Implements;
            trait Test<T> {
                fn test() {}
            }
            impl<T: ?Sized> Test<()> for T {}
            impl<T: ?Sized + $bound> Test<Implements> for T {}
            <$type as Test<_>>::test()
        };
    };
}

assert_is!(HashMap<u64, String>: Send + Sync + Debug + Clone + PartialEq + Eq + Default);
assert_is!(InlineMap<u64, u64>: Send + Sync + Debug + Clone + PartialEq + Eq + Default);
assert_is!(HashSet<String>: Send + Sync + Debug + Clone + PartialEq + Eq + Default + Unpin);
assert_is!(HashSet<String>: UnwindSafe + RefUnwindSafe + FromIterator<String> + Extend<String>);
assert_is!(HashSet<u64>: Extend<u64> + Extend<&'static u64> + IntoIterator<Item = u64> + From<[u64; 3]>);
assert_is!(&'static HashSet<u64>: Extend<u64> + Extend<&'static u64>);
assert_is!(&'static PinnedSet<'static, String>: IntoIterator<Item = &'static String>);
assert_is!(PinnedSet<'static, String>: Debug + UnwindSafe + RefUnwindSafe);
assert_is!(PinnedSetOwned<'static, String>: Send + Sync + Debug);
assert_is!(SetDrain<'static, String, OwnedGuard<'static>>: Send + Sync + Debug + core::iter::FusedIterator);
assert_is!(SetDrain<'static, String>: UnwindSafe);
type SetCondition = fn(&u64) -> bool;
assert_is!(SetExtractIf<'static, u64, SetCondition>: Send + Sync + Debug + core::iter::FusedIterator);
assert_is_not!(SetExtractIf<'static, Rc<u64>, SetCondition>: Send);
assert_is_not!(SetExtractIf<'static, u64, Rc<u64>>: Send);
assert_is!(SetIntoIter<String>: Send + Sync + Debug + ExactSizeIterator + core::iter::FusedIterator + UnwindSafe);
assert_is!(SetRef<'static, String>: Debug + core::fmt::Display + UnwindSafe);
assert_is!(SetRef<'static, String, koel::RandomState, OwnedGuard<'static>>: Send + Sync);
assert_is_not!(HashSet<Rc<u64>>: Send);
assert_is_not!(HashSet<Cell<u64>>: Sync);
assert_is_not!(HashSet<Cell<u64>>: UnwindSafe);
assert_is_not!(HashSet<std::sync::MutexGuard<'static, u64>>: Sync);
assert_is_not!(HashSet<u64, NotShared>: Sync);
assert_is_not!(PinnedSet<'static, u64>: Send);
assert_is_not!(PinnedSetOwned<'static, Cell<u64>>: Send);
assert_is_not!(SetDrain<'static, u64>: Send);
assert_is_not!(SetIntoIter<Rc<u64>>: Send);
assert_is!(ClonedValues<OwnedGuard<'static>>: Send + Sync + Debug + UnwindSafe + core::iter::FusedIterator);
assert_is_not!(ClonedValues<koel::LocalGuard<'static>>: Send);
/// From `PinnedSet::into_iter_cloned`.
type ClonedValues<G> = koel::SetIterWith<'static, u64, fn(&u64) -> u64, koel::RandomState, G>;
type LookAtSet<F> = koel::SetIterWith<'static, u64, F, koel::RandomState, OwnedGuard<'static>>;
assert_is!(LookAtSet<fn(&u64) -> bool>: Iterator<Item = bool> + core::iter::FusedIterator + Send + Sync + Debug);
assert_is_not!(LookAtSet<Rc<u64>>: Send);
assert_is_not!(koel::SetIterWith<'static, u64, fn(&u64) -> bool>: Send);
assert_is_not!(SetRef<'static, u64>: Send);
assert_is_not!(SetRef<'static, Cell<u64>, koel::RandomState, OwnedGuard<'static>>: Send);
assert_is!(IntoIter<u64, String>: Send + Sync + Debug + ExactSizeIterator + core::iter::FusedIterator);
assert_is!(IntoIter<u64, String>: UnwindSafe + RefUnwindSafe);
assert_is_not!(IntoIter<u64, Cell<u64>>: UnwindSafe);
assert_is!(Drain<'static, u64, String>: UnwindSafe);
assert_is_not!(Drain<'static, u64, Cell<u64>>: UnwindSafe);
assert_is!(Iter<'static, u64, String>: UnwindSafe);
assert_is_not!(Iter<'static, u64, Cell<u64>>: UnwindSafe);
assert_is!(CacheIter<'static, u64, String>: UnwindSafe);
assert_is_not!(CacheIter<'static, u64, Cell<u64>>: UnwindSafe);
assert_is!(koel::ValuesMut<'static, u64, String>: Send + Sync + Debug + ExactSizeIterator + core::iter::FusedIterator);
assert_is!(koel::ValuesMut<'static, u64, Cell<u64>>: Send);
struct Plain;
assert_is!(koel::ValuesMut<'static, Plain, Plain>: Debug);
assert_is!(koel::IterMut<'static, Plain, Plain>: Debug);
assert_is_not!(koel::ValuesMut<'static, u64, Rc<u64>>: Send);
assert_is_not!(koel::ValuesMut<'static, Rc<u64>, u64>: Send);
assert_is_not!(koel::ValuesMut<'static, u64, Cell<u64>>: Sync);
assert_is!(koel::IterMut<'static, u64, String>: Send + Sync + Debug + ExactSizeIterator + core::iter::FusedIterator);
assert_is!(koel::IterMut<'static, Cell<u64>, Cell<u64>>: Send);
assert_is_not!(koel::IterMut<'static, u64, Rc<u64>>: Send);
assert_is_not!(koel::IterMut<'static, Rc<u64>, u64>: Send);
assert_is_not!(koel::IterMut<'static, Cell<u64>, u64>: Sync);
assert_is!(&'static mut HashMap<u64, String>: IntoIterator<Item = (&'static u64, &'static mut String)>);
type Condition = fn(&u64, &mut u64) -> bool;
assert_is!(koel::ExtractIf<'static, u64, u64, Condition>: Send + Sync + Debug + core::iter::FusedIterator);
assert_is_not!(koel::ExtractIf<'static, u64, u64, Rc<u64>>: Send);
assert_is_not!(koel::ExtractIf<'static, u64, u64, Cell<u64>>: Sync);
assert_is_not!(koel::ExtractIf<'static, u64, Rc<u64>, Condition>: Send);
assert_is_not!(koel::ExtractIf<'static, u64, Cell<u64>, Condition>: Sync);
assert_is!(InlineIter<'static, u64, u64>: Send + Sync + Debug + core::iter::FusedIterator);
assert_is!(InlineDrain<'static, u64, u64>: Send + Sync + Debug);
assert_is!(InlineKeys<'static, u64, u64>: Send + Debug);
assert_is!(InlineValues<'static, u64, u64>: Send + Debug);
// Across an `.await`, in a walk over an owned pin.
assert_is!(Iter<'static, u64, String>: Send + Sync + Debug + core::iter::FusedIterator);
/// A type that is not `Debug`; items are not shown.
struct Mute;
assert_is!(Iter<'static, Mute, Mute>: Debug);
assert_is!(Keys<'static, Mute, Mute>: Debug);
assert_is!(Values<'static, Mute, Mute>: Debug);
assert_is!(koel::ClonedIter<'static, u64, String, koel::RandomState, OwnedGuard<'static>>: Send + Sync + Debug);
type Look<V> = fn(&u64, &V) -> u64;
type LookAtOwned<V, F = Look<V>, S = koel::RandomState> =
    koel::IterWith<'static, u64, V, F, S, OwnedGuard<'static>>;
assert_is!(LookAtOwned<std::sync::Mutex<u64>>: Send + Sync + Debug + core::iter::FusedIterator);
assert_is!(LookAtOwned<String>: Iterator<Item = u64> + UnwindSafe);
assert_is!(koel::IterWith<'static, u64, u64, Look<u64>>: Iterator<Item = u64> + UnwindSafe);
assert_is!(koel::IterWith<'static, Mute, Mute, Mute>: Debug);
assert_is_not!(koel::IterWith<'static, u64, u64, Look<u64>>: Send);
assert_is_not!(koel::IterWith<'static, u64, u64, Look<u64>>: Sync);
assert_is_not!(LookAtOwned<Cell<u64>>: Send);
assert_is_not!(LookAtOwned<Rc<u64>>: Send);
assert_is_not!(LookAtOwned<u64, Rc<u64>>: Send);
assert_is_not!(LookAtOwned<u64, Cell<u64>>: Sync);
assert_is_not!(LookAtOwned<u64, Look<u64>, NotShared>: Send);
assert_is!(koel::ClonedIter<'static, u64, String>: UnwindSafe + core::iter::FusedIterator);
assert_is!(koel::Ref<'static, u64, String, koel::RandomState, OwnedGuard<'static>>: Send + Sync + Debug);
assert_is!(koel::Ref<'static, u64, String>: Debug + UnwindSafe);
const _: fn() = || {
    fn is_sent(_: impl Send + Sync + 'static) {}
    fn made(map: &'static HashMap<String, u64>, names: &'static HashSet<String>) {
        is_sent(map.pin_owned().into_get_or_insert_with(String::new(), || 1));
        is_sent(map.pin_owned().into_get_or_insert_with_ref("", || 1));
        is_sent(names.pin_owned().into_get_or_insert_with("", str::to_owned));
    }
    let _ = made;
};
assert_is!(OfOwned<str, String>: Send + Sync + Debug + core::fmt::Display + UnwindSafe);
assert_is!(koel::MappedRef<'static, str, u64, String>: Debug + UnwindSafe);
assert_is!(Keys<'static, u64, String>: Send + Sync + Debug);
assert_is!(Values<'static, u64, String>: Send + Sync + Debug);
// Whatever key and value are: they are not cloned.
assert_is!(Iter<'static, NotDebug, NotDebug>: Clone);
assert_is!(Keys<'static, NotDebug, NotDebug>: Clone);
assert_is!(Values<'static, NotDebug, NotDebug>: Clone);
assert_is!(ViewIter<'static, NotDebug, NotDebug, NotDebug>: Clone);
assert_is!(koel::DumpIter<'static, NotDebug, NotDebug>: Clone);
assert_is!(Drain<'static, u64, String, OwnedGuard<'static>>: Send + Sync + Debug);
assert_is!(Drain<'static, u64, u64>: Debug);
assert_is!(PinnedOwned<'static, u64, String>: Send + Sync + Debug);
assert_is!(OwnedGuard<'static>: Send + Sync + Debug);
assert_is!(LocalGuard<'static>: Debug);
assert_is!(Stats: Send + Sync + Debug + Clone + Default + PartialEq + Eq + Unpin);
assert_is!(CapacityError: Error + Send + Sync + Clone + Copy + PartialEq + Eq);
assert_is!(Full<u64, String>: Error + Send + Sync + Clone + PartialEq);
// Whatever key and value are.
assert_is!(Full<NotDebug, NotDebug>: Error + Debug + Send + Sync);
assert_is!(Occupied<u64, u64>: Error + Debug + Clone + Copy + PartialEq + Send + Sync);
assert_is!(Operation<u64, ()>: Debug + Clone + Copy + PartialEq);
assert_is!(Compute<u64, u64, ()>: Debug + Clone + Copy + PartialEq);
assert_is!(Builder<HashMapKind<u64, String>>: Send + Sync + Debug + Clone);
assert_is!(Builder<HashMapKind<NotDebug, NotDebug>>: Clone);
assert_is!(Builder<InlineMapKind<u64, u64>>: Send + Sync + Debug + Clone);
assert_is!(HashMap<u64, u64>: Unpin);

struct NotDebug;

/// A part of a value, with a view that may be sent.
type OfOwned<U, V, K = u64, S = koel::RandomState> =
    koel::MappedRef<'static, U, K, V, S, OwnedGuard<'static>>;

/// The same, of a value in a cache.
type OfCached<U, V, K = u64> = koel::MappedCacheRef<'static, U, K, V, koel::RandomState, OwnedGuard<'static>>;

// A panic leaves a map as it was, and so it may be looked at afterwards.
assert_is!(HashMap<u64, String>: UnwindSafe + RefUnwindSafe);
assert_is!(InlineMap<u64, u64>: UnwindSafe + RefUnwindSafe);
assert_is!(Cache<u64, String>: UnwindSafe + RefUnwindSafe);
assert_is!(koel::CuckooFilter: UnwindSafe + RefUnwindSafe);
assert_is!(koel::ChunkLoader: Send + Sync + Debug + Default + Unpin + UnwindSafe + RefUnwindSafe);
assert_is!(koel::FilterViewOwned<Vec<u8>>: Send + Sync + Debug + Clone + Unpin + UnwindSafe + RefUnwindSafe);
assert_is_not!(koel::FilterViewOwned<Rc<[u8]>>: Send);
assert_is!(koel::ScalableCuckooFilter: UnwindSafe + RefUnwindSafe);
assert_is!(koel::guard::Guarded<koel::guard::HashMapStore>: UnwindSafe + RefUnwindSafe);
assert_is_not!(Cache<u64, Cell<u64>>: UnwindSafe);
// And so may its views, which have all operations, and walks.
assert_is!(Pinned<'static, u64, String>: UnwindSafe + RefUnwindSafe);
assert_is!(PinnedOwned<'static, u64, String>: UnwindSafe + RefUnwindSafe);
assert_is!(CacheView<'static, u64, String>: UnwindSafe + RefUnwindSafe);
assert_is!(koel::CacheViewOwned<'static, u64, String>: UnwindSafe + RefUnwindSafe);
assert_is!(Iter<'static, u64, String>: UnwindSafe);
assert_is!(Keys<'static, u64, String>: UnwindSafe);
assert_is!(Values<'static, u64, String>: UnwindSafe);
assert_is!(Drain<'static, u64, String>: UnwindSafe);
assert_is!(IntoIter<u64, String>: UnwindSafe);
assert_is!(InlineIter<'static, u64, u64>: UnwindSafe);
assert_is!(InlineDrain<'static, u64, u64>: UnwindSafe);
assert_is!(CacheIter<'static, u64, String>: UnwindSafe);
assert_is!(ViewIter<'static, u64, String>: UnwindSafe);
assert_is!(InlineCacheIter<'static, u64, u64>: UnwindSafe);
assert_is!(koel::Chunks<'static>: UnwindSafe + ExactSizeIterator + core::iter::FusedIterator);
assert_is_not!(Pinned<'static, u64, Cell<u64>>: UnwindSafe);
assert_is_not!(CacheView<'static, u64, Cell<u64>>: UnwindSafe);
assert_is_not!(Iter<'static, u64, Cell<u64>>: UnwindSafe);
assert_is_not!(ViewIter<'static, u64, Cell<u64>>: UnwindSafe);
assert_is_not!(IntoIter<u64, Cell<u64>>: UnwindSafe);

// Entries are dropped by any thread and shared by all.
assert_is_not!(HashMap<u64, Rc<u64>>: Send);
assert_is_not!(HashMap<Rc<u64>, u64>: Send);
assert_is_not!(HashMap<u64, Rc<u64>>: Sync);
assert_is!(HashMap<u64, Cell<u64>>: Send);
assert_is_not!(HashMap<u64, Cell<u64>>: Sync);
// Insertion through a shared map sends the value to the thread that drops it: a guard that must stay on its thread must not be
// inserted.
assert_is_not!(HashMap<u64, std::sync::MutexGuard<'static, u64>>: Sync);
assert_is_not!(HashMap<u64, u64, NotShared>: Sync);
assert_is_not!(InlineMap<u64, u64, NotShared>: Sync);
assert_is_not!(InlineMap<u64, NotSent>: Send);
assert_is_not!(InlineMap<u64, NotSent>: Sync);
assert_is_not!(InlineIter<'static, u64, NotSent>: Send);
// Through a shared one other threads can reach clones of it, and so entries of their own.
assert_is_not!(InlineIter<'static, u64, Shared>: Sync);
assert_is_not!(InlineIter<'static, Shared, u64>: Sync);
assert_is_not!(InlineKeys<'static, Shared, u64>: Sync);
assert_is_not!(InlineValues<'static, u64, Shared>: Sync);

// A pin belongs to its thread, unless it is an owned one; and then its map must be shareable.
assert_is_not!(Pinned<'static, u64, u64>: Send);
assert_is_not!(Pinned<'static, u64, u64>: Sync);
assert_is_not!(PinnedOwned<'static, u64, Cell<u64>>: Send);
assert_is_not!(LocalGuard<'static>: Send);
assert_is_not!(LocalGuard<'static>: Sync);
assert_is_not!(IntoIter<u64, Rc<u64>>: Send);
assert_is_not!(IntoIter<u64, Cell<u64>>: Sync);
assert_is_not!(Drain<'static, u64, Rc<u64>>: Send);
assert_is_not!(Drain<'static, u64, u64>: Send);
assert_is_not!(Drain<'static, u64, Cell<u64>, OwnedGuard<'static>>: Send);
assert_is_not!(Iter<'static, u64, Rc<u64>>: Send);
assert_is_not!(Iter<'static, Cell<u64>, u64>: Send);
// Through a shared one other threads can reach clones of it, and so entries.
assert_is_not!(Iter<'static, Cell<u64>, u64>: Sync);
assert_is_not!(Iter<'static, u64, Cell<u64>>: Sync);
assert_is_not!(Iter<'static, u64, std::sync::MutexGuard<'static, u64>>: Sync);
assert_is_not!(Drain<'static, u64, u64>: Sync);
assert_is_not!(Drain<'static, u64, Cell<u64>, OwnedGuard<'static>>: Sync);
assert_is_not!(koel::ClonedIter<'static, u64, u64>: Sync);
assert_is_not!(ViewIter<'static, u64, Cell<u64>>: Sync);
assert_is_not!(ViewIter<'static, u64, u64, NotShared>: Sync);
assert_is!(ViewIter<'static, u64, String>: Send + Sync);
assert_is_not!(ViewIter<'static, u64, Cell<u64>>: Send);
assert_is_not!(ViewIter<'static, u64, u64, NotShared>: Send);
assert_is_not!(Iter<'static, u64, Cell<u64>>: Send);
assert_is_not!(koel::ClonedIter<'static, u64, u64>: Send);
assert_is_not!(koel::ClonedIter<'static, u64, Cell<u64>, koel::RandomState, OwnedGuard<'static>>: Send);
assert_is_not!(koel::ClonedIter<'static, u64, Rc<u64>, koel::RandomState, OwnedGuard<'static>>: Send);
assert_is_not!(koel::ClonedIter<'static, u64, u64, NotShared, OwnedGuard<'static>>: Send);
assert_is!(koel::CacheRef<'static, u64, String, koel::RandomState, OwnedGuard<'static>>: Send + Sync + Debug);
assert_is_not!(koel::CacheRef<'static, u64, u64>: Send);
assert_is_not!(koel::CacheRef<'static, u64, Cell<u64>, koel::RandomState, OwnedGuard<'static>>: Send);
assert_is_not!(koel::CacheRef<'static, u64, Cell<u64>, koel::RandomState, OwnedGuard<'static>>: Sync);
assert_is_not!(koel::Ref<'static, u64, u64>: Send);
assert_is_not!(koel::Ref<'static, u64, Cell<u64>, koel::RandomState, OwnedGuard<'static>>: Sync);
assert_is_not!(koel::Ref<'static, u64, Cell<u64>, koel::RandomState, OwnedGuard<'static>>: Send);
assert_is_not!(koel::Ref<'static, Rc<u64>, u64, koel::RandomState, OwnedGuard<'static>>: Send);
assert_is_not!(koel::Ref<'static, u64, u64, NotShared, OwnedGuard<'static>>: Send);
// A view may drop any entry of its map where it ends; and the type of a part need not follow from that of values.
assert_is_not!(koel::MappedRef<'static, u64, u64, u64>: Send);
assert_is_not!(koel::MappedRef<'static, u64, u64, u64>: Sync);
assert_is!(OfCached<str, String>: Send + Sync + Debug);
assert_is_not!(koel::MappedCacheRef<'static, u64, u64, u64>: Send);
assert_is_not!(OfCached<u64, Rc<u64>>: Send);
assert_is_not!(OfCached<u64, Cell<u64>>: Send);
assert_is_not!(OfCached<u64, u64, Rc<u64>>: Send);
assert_is_not!(OfCached<Cell<u64>, u64>: Send);
assert_is_not!(OfCached<Cell<u64>, u64>: Sync);
assert_is_not!(OfOwned<u64, Rc<u64>>: Send);
assert_is_not!(OfOwned<u64, Rc<u64>>: Sync);
assert_is_not!(OfOwned<u64, Cell<u64>>: Send);
assert_is_not!(OfOwned<u64, std::sync::MutexGuard<'static, u64>>: Send);
assert_is_not!(OfOwned<u64, u64, Rc<u64>>: Send);
assert_is_not!(OfOwned<u64, u64, u64, NotShared>: Send);
assert_is_not!(OfOwned<Cell<u64>, u64>: Send);
assert_is_not!(OfOwned<Cell<u64>, u64>: Sync);
assert_is_not!(OfOwned<Rc<u64>, u64>: Send);
assert_is_not!(OfOwned<Cell<u64>, u64>: UnwindSafe);
// It is never dropped with the view, and so need not be `Send` itself.
assert_is!(OfOwned<std::sync::MutexGuard<'static, u64>, u64>: Send + Sync);

// Caches: like maps; and weigher, expiry function, listener and clock may be used by any thread.
assert_is!(Cache<u64, String>: Send + Sync + Debug + Unpin);
assert_is!(Cache<NotDebug, NotDebug>: Send + Sync + Debug);
assert_is_not!(Cache<u64, Rc<u64>>: Send);
assert_is_not!(Cache<Rc<u64>, u64>: Send);
assert_is_not!(Cache<u64, Rc<u64>>: Sync);
assert_is_not!(Cache<Rc<u64>, u64>: Sync);
assert_is!(Cache<u64, Cell<u64>>: Send);
assert_is!(Cache<Cell<u64>, u64>: Send);
assert_is_not!(Cache<u64, Cell<u64>>: Sync);
assert_is_not!(Cache<Cell<u64>, u64>: Sync);
// A thread that evicts drops entries that another thread has inserted.
assert_is_not!(Cache<u64, std::sync::MutexGuard<'static, u64>>: Sync);
assert_is_not!(Cache<u64, std::sync::MutexGuard<'static, u64>>: Send);
assert_is!(Cache<u64, u64, NotShared>: Send);
assert_is_not!(Cache<u64, u64, NotShared>: Sync);
assert_is_not!(Cache<u64, u64, Rc<ahash::RandomState>>: Send);
assert_is!(InlineCache<u64, u64>: Send + Sync + Debug + Unpin + UnwindSafe + RefUnwindSafe);
assert_is!(InlineCacheBuilder<u64, u64>: Send + Sync + Debug);
assert_is!(InlineCacheIter<'static, u64, u64>: Send + Sync + Debug);
assert_is_not!(InlineCache<u64, u64, NotShared>: Sync);
assert_is_not!(InlineCache<u64, NotSent>: Send);
assert_is_not!(InlineCache<u64, NotSent>: Sync);
assert_is_not!(InlineCacheIter<'static, u64, NotSent>: Send);
assert_is_not!(InlineCacheIter<'static, u64, Shared>: Sync);
assert_is!(CacheBuilder<u64, String>: Send + Sync + Debug);
assert_is!(CacheBuilder<NotDebug, NotDebug>: Debug);
assert_is_not!(CacheBuilder<u64, u64, Rc<ahash::RandomState>>: Send);
assert_is_not!(CacheBuilder<u64, u64, NotShared>: Sync);
assert_is!(CacheDump<u64, u64>: Send + Sync + Clone + Debug);
assert_is!(CacheDump<Cell<u64>, Cell<u64>>: Send);
assert_is!(koel::DumpIter<'static, u64, u64>: Send + Sync + Debug + ExactSizeIterator + DoubleEndedIterator);
assert_is!(&'static CacheDump<u64, u64>: IntoIterator<Item = (&'static u64, &'static u64)>);
assert_is!(koel::DumpIntoIter<u64, u64>: Send + Sync + Debug + ExactSizeIterator + DoubleEndedIterator);
assert_is_not!(CacheDump<Cell<u64>, u64>: Sync);
assert_is!(CacheView<'static, u64, u64>: Debug);
assert_is!(koel::CacheEntry<'static, u64, u64>: Debug + Send + Sync);
assert_is!(koel::Reservation<'static, u64, NotDebug>: Debug + UnwindSafe + RefUnwindSafe);
assert_is_not!(koel::Reservation<'static, u64, u64>: Send);
assert_is_not!(koel::Reservation<'static, u64, u64>: Sync);
assert_is!(koel::DetachedReservation<'static, u64, NotDebug>: Debug + Send + Sync + UnwindSafe + RefUnwindSafe);
assert_is_not!(koel::DetachedReservation<'static, u64, Cell<u64>>: Send);
assert_is_not!(koel::DetachedReservation<'static, Rc<u64>, u64>: Send);
assert_is_not!(koel::DetachedReservation<'static, u64, u64, NotShared>: Send);
assert_is_not!(CacheView<'static, u64, u64>: Send);
assert_is_not!(CacheView<'static, u64, u64>: Sync);
assert_is!(CacheIter<'static, u64, u64>: Debug + Iterator<Item = (u64, u64)>);
assert_is_not!(CacheIter<'static, u64, u64>: Send);
assert_is_not!(CacheIter<'static, u64, u64>: Sync);
assert_is!(ViewIter<'static, u64, u64>: Send + Debug + Iterator<Item = (&'static u64, &'static u64)>);
assert_is_not!(ViewIter<'static, u64, Cell<u64>>: Sync);
assert_is!(Refused<NotDebug, NotDebug>: Error + Debug + Send + Sync);
assert_is!(Refused<u64, String>: Clone + PartialEq + Eq);
assert_is_not!(Refused<u64, Rc<u64>>: Send);
assert_is!(Why: Debug + Clone + Copy + PartialEq + Eq + Send + Sync);
assert_is!(CacheError: Error + Clone + Copy + PartialEq + Eq + Send + Sync);
assert_is!(CacheStats: Debug + Clone + Copy + Default + PartialEq + Eq + Send + Sync + Unpin);
assert_is!(Cause: Debug + core::fmt::Display + Clone + Copy + PartialEq + Eq + core::hash::Hash + Send + Sync);
assert_is!(Policy: Debug + Clone + Copy + Default + PartialEq + Eq + core::hash::Hash + Send + Sync);
assert_is!(ManualClock: Debug + Clone + Default + Clock + Send + Sync);
assert_is!(dyn Clock: Send + Sync);
assert_is!(std::sync::Arc<dyn Clock>: Clock);
assert_is!(Box<dyn Clock>: Clock);

/// A hash function that cannot be shared.
struct NotShared(#[expect(dead_code, reason = "what counts is its type")] Cell<u64>);

/// Plain data that must stay on its thread.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct NotSent {
    _number: u64,
    _thread: core::marker::PhantomData<*mut ()>,
}

/// Plain data that other threads may look at, but must not have.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Shared {
    _number: u64,
    _thread: core::marker::PhantomData<std::sync::MutexGuard<'static, ()>>,
}

// SAFETY: a number.
unsafe impl koel::Zeroable for NotSent {}
// SAFETY: a number.
unsafe impl koel::Pod for NotSent {}
// SAFETY: a number.
unsafe impl koel::Zeroable for Shared {}
// SAFETY: a number.
unsafe impl koel::Pod for Shared {}

/// Which lifetimes must not be shortened, `src/lifetimes.rs` says.
#[test]
fn a_map_of_borrowed_values_holds_them() {
    let text = String::from("borrowed");
    let map: HashMap<&str, &str> = HashMap::new();
    map.pin().insert(&text, &text);
    assert_eq!(map.pin().get("borrowed"), Some(&"borrowed"));
    drop(map);
    drop(text);
}
