//! Keys that are made from a reference when they turn out to be missing.

use core::ffi::CStr;
use std::borrow::Cow;
use std::ffi::{CString, OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use equivalent::Equivalent;

/// A type from which a key of type `K` can be made: `get_or_insert_with_ref`, `update_or_insert_ref`, `compute_ref` and related
/// methods take one by reference, and make the key only if it is missing.
///
/// It is implemented for every type that is `Clone`, which makes a copy of itself, and for texts, slices and paths of the
/// standard library, which make their owned forms: `String`, `Box<str>`, `Arc<str>`, `Rc<str>` and `Cow<str>` from `str`, and
/// so on. Implement it for types of your own that also implement [`Equivalent`](crate::Equivalent), such as a key's parts.
///
/// It must be implemented for the type that the reference leads to, and a `String` is not a `str`: with keys `Arc<str>` pass
/// `&text[..]`, not `&text`, and with keys `Arc<[T]>` a slice, not a `&Vec<T>`.
///
/// The key must hash like the value it is made from, and be [equivalent](crate::Equivalent) to it: a key that is not may never
/// be found again. If `to_key` panics, the map or cache is as it was before the call. It may run [under a map's
/// lock](crate::HashMap#under-a-lock).
///
/// For a type that is `ToOwned`, and neither `Clone` nor from the standard library, use [`ByToOwned`]. Specify the type of a
/// map's keys when you make the map: a `&str` may become any of the above.
///
/// ```
/// use std::sync::Arc;
///
/// use koel::{Cache, Equivalent, ToKey};
///
/// let lengths: Cache<Arc<str>, usize> = Cache::new(100);
/// assert_eq!(lengths.get_or_insert_with_ref("seven", || 5), 5);
///
/// #[derive(Hash)] // as the pair does: its parts in their order
/// struct Page<'a>(u32, &'a str);
///
/// impl Equivalent<(u32, String)> for Page<'_> {
///     fn equivalent(&self, key: &(u32, String)) -> bool {
///         self.0 == key.0 && self.1 == key.1
///     }
/// }
///
/// impl ToKey<(u32, String)> for Page<'_> {
///     fn to_key(&self) -> (u32, String) {
///         (self.0, self.1.to_owned())
///     }
/// }
///
/// let pages: Cache<(u32, String), usize> = Cache::new(100);
/// assert_eq!(pages.get_or_insert_with_ref(&Page(1, "index"), || 512), 512);
/// assert_eq!(pages.get(&(1, "index".to_owned())), Some(512));
/// ```
#[diagnostic::on_unimplemented(
    message = "no key of type `{K}` can be made of a `{Self}`",
    note = "implement `koel::ToKey<{K}>` for it, or hand over the key itself, without `_ref`",
    note = "of a `String` hand over the text, `&text[..]`, and of a `Vec` the slice"
)]
pub trait ToKey<K> {
    /// A key that is equivalent to this.
    #[must_use]
    fn to_key(&self) -> K;
}

/// A reference to a value that is [`ToOwned`], such as types of other crates that are borrowed like texts and paths: it hashes
/// like that value, is equivalent to the same keys, and makes them by [`to_owned`](ToOwned::to_owned).
///
/// ```
/// use koel::{ByToOwned, HashMap};
///
/// /// A name, borrowed.
/// #[derive(Hash, PartialEq, Eq)]
/// #[repr(transparent)]
/// struct Name(str);
///
/// #[derive(Hash, PartialEq, Eq)]
/// struct OwnedName(String);
///
/// impl Name {
///     fn new(name: &str) -> &Name {
///         // SAFETY: the same, by the representation.
///         unsafe { &*(name as *const str as *const Name) }
///     }
/// }
///
/// impl std::borrow::Borrow<Name> for OwnedName {
///     fn borrow(&self) -> &Name {
///         Name::new(&self.0)
///     }
/// }
///
/// impl ToOwned for Name {
///     type Owned = OwnedName;
///
///     fn to_owned(&self) -> OwnedName {
///         OwnedName(self.0.to_owned())
///     }
/// }
///
/// let ages: HashMap<OwnedName, u32> = HashMap::new();
/// assert_eq!(*ages.pin().get_or_insert_with_ref(&ByToOwned(Name::new("ada")), || 36), 36);
/// assert_eq!(ages.pin().get(Name::new("ada")), Some(&36));
/// ```
#[derive(Debug, Hash)]
pub struct ByToOwned<'q, Q: ?Sized>(pub &'q Q);

// Not suggested to a user that has looked up a type which is equivalent to no key.
#[diagnostic::do_not_recommend]
impl<K: ?Sized, Q: ?Sized + Equivalent<K>> Equivalent<K> for ByToOwned<'_, Q> {
    #[inline]
    fn equivalent(&self, key: &K) -> bool {
        self.0.equivalent(key)
    }
}

impl<K, Q: ?Sized + ToOwned<Owned = K>> ToKey<K> for ByToOwned<'_, Q> {
    #[inline]
    fn to_key(&self) -> K {
        self.0.to_owned()
    }
}

impl<K: Clone> ToKey<K> for K {
    #[inline]
    fn to_key(&self) -> K {
        self.clone()
    }
}

/// Implements `ToKey` for a borrowed type of which the standard library has owned forms.
macro_rules! owners {
    ($borrowed:ty: $($owner:ty),+) => {$(
        impl ToKey<$owner> for $borrowed {
            #[inline]
            fn to_key(&self) -> $owner {
                self.into()
            }
        }
    )+};
}

owners!(str: String, Box<str>, Arc<str>, Rc<str>);
owners!(Path: PathBuf, Box<Path>, Arc<Path>, Rc<Path>);
owners!(OsStr: OsString, Box<OsStr>, Arc<OsStr>, Rc<OsStr>);
owners!(CStr: CString, Box<CStr>, Arc<CStr>, Rc<CStr>);

/// The same for slices.
macro_rules! owners_of_slices {
    ($($owner:ty),+) => {$(
        impl<T: Clone> ToKey<$owner> for [T] {
            #[inline]
            fn to_key(&self) -> $owner {
                self.into()
            }
        }
    )+};
}

owners_of_slices!(Vec<T>, Box<[T]>, Arc<[T]>, Rc<[T]>);

impl<'k, Q: ?Sized + ToOwned> ToKey<Cow<'k, Q>> for Q {
    #[inline]
    fn to_key(&self) -> Cow<'k, Q> {
        Cow::Owned(self.to_owned())
    }
}
