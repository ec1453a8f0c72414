//! Loads of many keys, during which user code asks for those keys, or panics.

use std::cell::RefCell;
use std::rc::Rc;

use koel::{Cache, LoadError};
use pollster::block_on;

use crate::common::catch;
use crate::edges::comes_to_an_end;

type Hook = Rc<dyn Fn()>;

thread_local! {
    /// A hook, and after how many more calls of user code it is to run, once.
    static HOOK: RefCell<Option<(usize, Hook)>> = const { RefCell::new(None) };
}

/// Called whenever user code is called.
fn called() {
    let due = HOOK.try_with(|hook| {
        let mut hook = hook.borrow_mut();
        match &mut *hook {
            Some((0, _)) => hook.take().map(|(_, hook)| hook),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    });
    // A thread that ends may drop something when it has no hook any more.
    if let Ok(Some(hook)) = due {
        hook();
    }
}

/// A key or a value that calls this when it is cloned and dropped. `Eq` and `Hash` may not use a cache.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Calling(u32);

impl Clone for Calling {
    fn clone(&self) -> Self {
        called();
        Calling(self.0)
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        called();
    }
}

const KEYS: u32 = 3;

fn cache() -> Rc<Cache<Calling, Calling>> {
    let cache = Cache::new(100);
    cache.insert(Calling(0), Calling(0)).unwrap();
    Rc::new(cache)
}

/// Loads three keys, of which one is there and one occurs twice; the loader has all but the last, and some others.
fn load_some(cache: &Cache<Calling, Calling>, as_task: bool) -> Result<Vec<Option<Calling>>, LoadError<()>> {
    let keys = [2, 0, 1, 2, 5].map(Calling);
    let mut out = [const { None }; 5];
    let load = |keys: Vec<Calling>| {
        called();
        let mut pairs: Vec<_> =
            keys.iter().filter(|key| key.0 != 5).map(|key| (Calling(key.0), Calling(key.0 * 10))).collect();
        pairs.push((Calling(9), Calling(9)));
        Ok(pairs.into_iter().rev().inspect(|_| called()))
    };
    let loaded = match as_task {
        false => cache.try_get_many_or_insert_with(&keys, &mut out, load),
        true => block_on(cache.try_get_many_or_insert_async(&keys, &mut out, async |keys| load(keys))),
    };
    loaded.map(|()| out.into())
}

/// Runs `hook` during a load, at each call of user code in turn; then passes the result to `after`.
fn at_each_call(
    hook: impl Fn(&Cache<Calling, Calling>) + Copy + Send + 'static,
    after: impl Fn(&Cache<Calling, Calling>, Result<Vec<Option<Calling>>, String>) + Send + 'static,
) {
    comes_to_an_end(move || {
        for as_task in [false, true] {
            let reached = (0..).take_while(|&n| {
                let cache = cache();
                let asked = Rc::clone(&cache);
                HOOK.set(Some((n, Rc::new(move || hook(&asked)))));
                let got = catch(|| load_some(&cache, as_task).expect("the loader does not fail"));
                let reached = HOOK.take().is_none();
                if reached {
                    after(&cache, got);
                }
                reached
            });
            assert!(reached.count() > 20);
        }
    });
}

#[test]
fn who_asks_in_the_midst_of_it_is_answered_or_told() {
    let ask = |cache: &Cache<Calling, Calling>| {
        for key in [0, 1, 2, 5] {
            let got = cache.try_get_or_insert_with(Calling(key), || Err(()));
            assert!(match &got {
                Ok(value) => value.0 == key * 10,
                Err(error) => key != 0 && matches!(error, LoadError::Recursion | LoadError::Loader(())),
            });
        }
    };
    at_each_call(ask, |cache, got| {
        assert_eq!(
            got,
            Ok([Some(20), Some(0), Some(10), Some(20), None].map(|value| value.map(Calling)).to_vec())
        );
        assert_eq!(cache.get(&Calling(1)), Some(Calling(10)));
        assert_eq!(cache.len(), KEYS as usize);
    });
}

#[test]
fn who_writes_in_the_midst_of_it_is_not_overwritten() {
    let write = |cache: &Cache<Calling, Calling>| {
        cache.insert(Calling(1), Calling(11)).unwrap();
        cache.remove(&Calling(2));
        cache.clear();
        cache.insert(Calling(1), Calling(11)).unwrap();
    };
    at_each_call(write, |cache, got| {
        let got = got.unwrap();
        assert!(matches!(got[2], Some(Calling(10 | 11))) && got[0] == got[3], "{got:?}");
        assert_eq!(cache.get(&Calling(1)), Some(Calling(11)));
    });
}

#[test]
fn a_panic_in_the_midst_of_it_leaves_nobody_loading() {
    at_each_call(
        |_| panic!("as planned"),
        |cache, _| {
            // If a load were left unfinished, this would wait for it.
            let again = load_some(cache, false).unwrap();
            assert_eq!(again[..4], [Some(20), Some(0), Some(10), Some(20)].map(|value| value.map(Calling)));
            assert!(again[4].is_none());
        },
    );
}
