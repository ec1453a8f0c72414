//! Why a cache could not load a value.

use core::convert::Infallible;
use core::error::Error;
use core::fmt;

/// There is no value: what a cache's `try_get_or_insert_with` and its kin say.
///
/// Whatever it is, the key is as absent as before, or has its old value if that was stale, and the next call tries again:
/// nothing is remembered of a failure, but where there is an old value to be refreshed.
/// An error of a loader goes to the caller whose loader it was; others who wait for the key then run their own
/// loaders, one at a time, so that the last of n waits for n failures. To spare a source that fails, and those who wait, share
/// the error with them ([`Cache::try_get_or_insert_with_shared`](crate::Cache::try_get_or_insert_with_shared)); to spare it for
/// longer, cache the failure itself, as a `Result<V, E>` with a short time to live. An old value that is
/// [refreshed ahead](crate::CacheBuilder::refresh_ahead) of its end takes the place of an error.
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
    /// The loader of a key asked for the same key, itself or through the loaders of other keys, also in other threads
    /// or caches. To wait for it would be to wait forever. So would a thread that has [reserved](crate::Reservation) a key and
    /// asks for it.
    ///
    /// A loader that hands the question to another task or thread and waits for the answer is not noticed. Nor is one that
    /// awaits what was polled before it began, or before a key was reserved, as `join!` and `select!` poll several futures at a
    /// time: that asked for its key outside of the loader. Such a circle waits for ever.
    ///
    /// Threads of rayon run other tasks while they wait, in `join`, in scopes and in parallel iterators; so does `block_on` of
    /// a runtime that has one thread. If a loader does that, a task that asks for its key may be run in the middle of it, by
    /// the same thread: that task gets this error, as it may be what the loader waits for. What such a task waits for, the
    /// loader counts as waiting for, too: so a task may get this error whose wait would have had an end. It can make the value
    /// itself; or the loader does its work on one thread, or in [`std::thread::scope`], whose threads run nothing else.
    ///
    /// But such a task may be run by another thread as well, which has taken over a part of the loader's work and waits for the
    /// rest of that: the task then waits for the loader, and the loader for that thread, for ever. The forms that end in
    /// `_timeout` give such a wait up.
    Recursion,
    /// The value did not come in time from whoever is loading it, nor from anybody else. Only waiting for others is limited: a
    /// loader runs for as long as it takes.
    TimedOut,
    /// The loader's own error.
    Loader(E),
}

impl<E> LoadError<E> {
    /// The loader's own error, if it is one.
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

    /// The loader's own error, or what `other` makes of the two that are the cache's. For errors that do not implement
    /// [`Error`], as boxed ones do not: `?` cannot convert a `LoadError` of them.
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

/// The value; for calls without an error to return it in, recursion panics.
#[track_caller]
pub(crate) fn or_panic<V>(loaded: Result<V, LoadError<Infallible>>) -> V {
    match loaded {
        Ok(value) => value,
        Err(LoadError::Loader(never)) => match never {},
        Err(error @ (LoadError::Recursion | LoadError::TimedOut)) => panic!("{error}"),
    }
}
