//! Why a cache could not load a value.

use core::convert::Infallible;
use core::error::Error;
use core::fmt;

/// There is no value: the error of a cache's `try_get_or_insert_with` and related methods.
///
/// Whichever it is, the key is as absent as before, or has its old value if that was stale, and the next call tries again:
/// failures are not remembered, except where there is an old value to be refreshed. An error of a loader goes to the caller
/// whose loader it was; other callers that wait for the key then run their own loaders, one at a time, so that the last of n
/// waits for n failures. To spare a source that fails, and the callers that wait, share the error with them
/// ([`Cache::try_get_or_insert_with_shared`](crate::Cache::try_get_or_insert_with_shared)); to spare it for longer, cache the
/// failure itself, as a `Result<V, E>` with a short time to live. If an old value is being [refreshed
/// ahead](crate::CacheBuilder::refresh_ahead) of its end, that value is returned instead of an error.
///
/// ```
/// use koel::LoadError;
///
/// fn answer(loaded: Result<u32, LoadError<std::io::Error>>) -> String {
///     match loaded {
///         Ok(value) => format!("200 {value}"),
///         Err(LoadError::TimedOut) => "503 try again".into(),
///         Err(LoadError::Loader(error)) => format!("502 {error}"),
///         Err(error) => format!("500 {error}"),
///     }
/// }
/// assert_eq!(answer(Ok(7)), "200 7");
/// assert_eq!(answer(Err(LoadError::TimedOut)), "503 try again");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError<E> {
    /// The loader of a key asked for the same key, itself or through the loaders of other keys, even in other threads or
    /// caches. To wait for it would mean waiting forever. The same holds for a thread that has [reserved](crate::Reservation) a
    /// key and asks for it.
    ///
    /// Not detected is a loader that hands the request to another task or thread and waits for the answer. Nor is a loader that
    /// awaits a future which was polled before the loader began, or before a key was reserved, as `join!` and `select!` poll
    /// several futures at a time: that future asked for its key outside of the loader. Such a cycle waits forever.
    ///
    /// Threads of rayon run other tasks while they wait, in `join`, in scopes and in parallel iterators; so does `block_on` of
    /// a runtime that has one thread. If a loader does that, a task that asks for its key may be run in the middle of it, by
    /// the same thread: that task gets this error, because the loader may be waiting for it. The loader also counts as waiting
    /// for whatever such a task waits for: so a task may get this error though its wait would have ended. The task can make the
    /// value itself; or the loader does its work on one thread, or in [`std::thread::scope`], whose threads run nothing else.
    ///
    /// But such a task may also be run by another thread, which has taken over a part of the loader's work and waits for the
    /// rest of it: the task then waits for the loader, and the loader for that thread, forever. The methods that end in
    /// `_timeout` give up such a wait.
    Recursion,
    /// The value did not come in time, neither from the caller that is loading it nor from any other. Only waiting for others
    /// is limited: a loader runs for as long as it takes.
    TimedOut,
    /// The loader's own error.
    Loader(E),
}

impl<E> LoadError<E> {
    /// The loader's own error, if this is one.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// let error = cache.try_get_or_insert_with(1, || Err("not there")).unwrap_err();
    /// assert_eq!(error.into_loader(), Some("not there"));
    /// ```
    pub fn into_loader(self) -> Option<E> {
        match self {
            LoadError::Loader(error) => Some(error),
            LoadError::Recursion | LoadError::TimedOut => None,
        }
    }

    /// The loader's own error, or what `other` makes of one of the cache's two errors. For error types that do not implement
    /// [`Error`], such as boxed ones: `?` cannot convert a `LoadError` of them.
    ///
    /// ```
    /// type Fault = Box<dyn std::error::Error + Send + Sync>;
    ///
    /// fn read(cache: &koel::Cache<String, String>, file: &str) -> Result<String, Fault> {
    ///     let load = || -> Result<String, Fault> { Ok(std::fs::read_to_string(file)?) };
    ///     cache.try_get_or_insert_with_ref(file, load).map_err(|error| error.into_loader_or(Fault::from))
    /// }
    /// assert!(read(&koel::Cache::new(10), "no such file").is_err());
    /// ```
    pub fn into_loader_or(self, other: impl FnOnce(LoadError<Infallible>) -> E) -> E {
        match self {
            LoadError::Loader(error) => error,
            LoadError::Recursion => other(LoadError::Recursion),
            LoadError::TimedOut => other(LoadError::TimedOut),
        }
    }
}

/// A loader's error is its [`source`](Error::source), and not part of the text.
impl<E> fmt::Display for LoadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadError::Recursion => {
                "a key's loader, or who has reserved it, asked the cache for the same key and would wait for itself"
            }
            LoadError::TimedOut => "another caller is loading the key and did not finish in time",
            LoadError::Loader(_) => "the key's loader failed",
        })
    }
}

impl<E: Error + 'static> Error for LoadError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LoadError::Loader(error) => Some(error),
            LoadError::Recursion | LoadError::TimedOut => None,
        }
    }
}

/// The value. For methods that return no error: recursion panics.
#[track_caller]
pub(crate) fn or_panic<V>(loaded: Result<V, LoadError<Infallible>>) -> V {
    match loaded {
        Ok(value) => value,
        Err(LoadError::Loader(never)) => match never {},
        Err(error @ (LoadError::Recursion | LoadError::TimedOut)) => panic!("{error}"),
    }
}
