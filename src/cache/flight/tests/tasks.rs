//! Tasks that load, and wait for others that load, on a runtime and polled by hand.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use super::{Cache, Count, until};
use crate::cache::flight::LoadError;
use crate::sync::Mutex;

type Task<'a> = Pin<Box<dyn Future<Output = Result<u32, LoadError<&'static str>>> + 'a>>;

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.add();
    }
}

/// A future to poll by hand, with a count of how often it was woken.
struct Polled<'a> {
    task: Task<'a>,
    woken: Arc<Count>,
}

impl<'a> Polled<'a> {
    fn new(task: impl Future<Output = Result<u32, LoadError<&'static str>>> + 'a) -> Self {
        Polled { task: Box::pin(task), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<Result<u32, LoadError<&'static str>>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.task.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// Is pending `n` times, then ready.
async fn pending(n: usize) {
    let mut left = n;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        Poll::Pending
    })
    .await;
}

/// A task that loads a value in three polls.
fn slow(cache: &Cache, value: u32) -> Polled<'_> {
    Polled::new(async move {
        let load = async {
            pending(2).await;
            Ok(value)
        };
        cache.try_get_or_insert_async(&1, load).await
    })
}

/// A task that loads a value at once.
fn quick<'a>(cache: &'a Cache, value: Result<u32, &'static str>) -> Polled<'a> {
    Polled::new(async move { cache.try_get_or_insert_async(&1, async { value }).await })
}

#[test]
fn a_thousand_tasks_load_once() {
    for threads in [1, 4] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .build()
            .expect("a runtime");
        let (cache, loads) = (Arc::new(Cache::new()), Arc::new(Count::default()));
        let task = || {
            let (cache, loads) = (Arc::clone(&cache), Arc::clone(&loads));
            async move {
                let load = async {
                    loads.add();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Ok::<_, ()>(7)
                };
                cache.try_get_or_insert_async(&1, load).await
            }
        };
        let tasks: Vec<_> = (0..1000).map(|_| runtime.spawn(task())).collect();
        for task in tasks {
            assert_eq!(runtime.block_on(task).expect("no panic"), Ok(7));
        }
        assert_eq!((loads.get(), cache.get(&1), cache.loads()), (1, Some(7), 0));
    }
}

#[test]
fn tasks_that_come_and_go_on_many_threads_leave_nothing_behind() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let cache = Arc::new(Cache::new());
    let tasks: Vec<_> = (0..2000_u32)
        .map(|i| {
            let cache = Arc::clone(&cache);
            runtime.spawn(async move {
                let load = async {
                    tokio::time::sleep(Duration::from_micros(u64::from(i % 7) * 50)).await;
                    if i % 5 == 0 { Err("no") } else { Ok(i) }
                };
                let key = i % 3;
                let got = cache.try_get_or_insert_async(&key, load);
                let most = Duration::from_micros(u64::from(i % 11) * 40);
                let ended = tokio::time::timeout(most, got).await;
                if i % 2 == 0 {
                    cache.remove(&key);
                }
                ended.is_ok()
            })
        })
        .collect();
    let ended: Vec<_> = tasks.into_iter().map(|task| runtime.block_on(task).expect("no panic")).collect();
    assert!(ended.contains(&true) && ended.contains(&false), "some end, and some are dropped");
    assert_eq!(cache.loads(), 0);
}

#[test]
fn a_task_is_woken_by_the_value() {
    let cache = Cache::new();
    let (mut leader, mut follower) = (slow(&cache, 7), quick(&cache, Ok(8)));
    assert!(leader.poll().is_pending() && follower.poll().is_pending());
    assert!(leader.poll().is_pending() && follower.poll().is_pending());
    assert_eq!(follower.woken.get(), 0);
    assert_eq!(leader.poll(), Poll::Ready(Ok(7)));
    assert_eq!(follower.woken.get(), 1);
    assert_eq!((follower.poll(), cache.loads()), (Poll::Ready(Ok(7)), 0));
}

#[test]
fn a_task_that_is_polled_by_another_is_woken_there() {
    let cache = Cache::new();
    let (mut leader, mut follower) = (slow(&cache, 7), quick(&cache, Ok(8)));
    assert!(leader.poll().is_pending() && follower.poll().is_pending());
    let before = std::mem::take(&mut follower.woken);
    assert!(follower.poll().is_pending() && leader.poll().is_pending() && leader.poll().is_ready());
    assert_eq!((before.get(), follower.woken.get(), Arc::strong_count(&before)), (0, 1, 1));
}

/// Whenever the leader is dropped, the next waiting task loads, and the rest wait for it.
#[test]
fn a_leader_dropped_at_any_poll_is_replaced() {
    for polls in 1..=3 {
        let cache = Cache::new();
        let mut leader = slow(&cache, 7);
        let (mut second, mut third) = (quick(&cache, Ok(8)), quick(&cache, Ok(9)));
        assert!(leader.poll().is_pending() && second.poll().is_pending() && third.poll().is_pending());
        (1..polls).for_each(|poll| assert_eq!(leader.poll().is_ready(), poll == 2));
        drop(leader);
        let landed = polls == 3;
        assert_eq!((second.woken.get(), third.woken.get()), (1, usize::from(landed)));
        assert_eq!(second.poll(), Poll::Ready(Ok(if landed { 7 } else { 8 })));
        assert_eq!(third.woken.get(), 1);
        assert_eq!((third.poll(), cache.loads()), (second_value(landed), 0));
    }
}

fn second_value(landed: bool) -> Poll<Result<u32, LoadError<&'static str>>> {
    Poll::Ready(Ok(if landed { 7 } else { 8 }))
}

#[test]
fn a_future_that_is_never_polled_or_dropped_at_once_leaves_nothing() {
    let cache = Cache::new();
    drop(slow(&cache, 7));
    let mut dropped = slow(&cache, 7);
    assert!(dropped.poll().is_pending());
    assert_eq!(cache.loads(), 1);
    drop(dropped);
    assert_eq!(cache.loads(), 0);
    assert_eq!(quick(&cache, Ok(8)).poll(), Poll::Ready(Ok(8)));
}

#[test]
fn a_follower_that_is_woken_and_dropped_wakes_the_next() {
    let cache = Cache::new();
    let (mut leader, mut others) = (slow(&cache, 7), [8, 9, 10].map(|value| quick(&cache, Ok(value))));
    assert!(leader.poll().is_pending() && others.iter_mut().all(|other| other.poll().is_pending()));
    drop(leader);
    let [second, third, mut fourth] = others;
    assert_eq!((second.woken.get(), third.woken.get(), fourth.woken.get()), (1, 0, 0));
    drop(second);
    assert_eq!((third.woken.get(), fourth.woken.get(), cache.loads()), (1, 0, 1));
    drop(third);
    assert_eq!((fourth.woken.get(), cache.loads()), (1, 1));
    assert_eq!((fourth.poll(), cache.loads()), (Poll::Ready(Ok(10)), 0));
}

/// A task that is polled though another was woken to take over leads; the waker that it left is dropped, and panics.
#[test]
fn a_waker_whose_drop_panics_as_its_task_takes_over_passes_the_lead_on() {
    struct Fragile;
    impl Wake for Fragile {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Fragile {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("as planned");
            }
        }
    }
    let cache = Cache::new();
    let (mut leader, mut second, mut third) = (slow(&cache, 7), quick(&cache, Ok(8)), quick(&cache, Ok(9)));
    assert!(leader.poll().is_pending() && second.poll().is_pending());
    // The flight's own waker is the last.
    let waker = Waker::from(Arc::new(Fragile));
    assert!(third.task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    drop(leader);
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| third.poll()));
    assert!(polled.is_err());
    drop(third);
    assert_eq!((second.poll(), cache.loads()), (Poll::Ready(Ok(8)), 0));
}

#[test]
fn when_all_who_waited_are_gone_nothing_is_left() {
    let cache = Cache::new();
    let (mut leader, mut others) = (slow(&cache, 7), [8, 9, 10].map(|value| quick(&cache, Ok(value))));
    assert!(leader.poll().is_pending() && others.iter_mut().all(|other| other.poll().is_pending()));
    let woken = others.each_ref().map(|other| Arc::clone(&other.woken));
    drop((leader, others));
    assert_eq!(cache.loads(), 0);
    assert!(woken.iter().all(|woken| Arc::strong_count(woken) == 1));
}

#[test]
fn who_comes_while_the_next_is_yet_to_run_loads() {
    let cache = Cache::new();
    let (mut leader, mut waiting) = (slow(&cache, 7), quick(&cache, Ok(8)));
    assert!(leader.poll().is_pending() && waiting.poll().is_pending());
    drop(leader);
    // A task that is woken and not polled holds nobody up.
    assert_eq!(quick(&cache, Ok(9)).poll(), Poll::Ready(Ok(9)));
    assert_eq!((waiting.poll(), cache.loads()), (Poll::Ready(Ok(9)), 0));
}

#[test]
fn after_an_error_the_next_task_loads() {
    let cache = Cache::new();
    let failing = async {
        pending(1).await;
        Err("no")
    };
    let mut leader = Polled::new(cache.try_get_or_insert_async(&1, failing));
    let (mut second, mut third) = (quick(&cache, Err("nor I")), quick(&cache, Ok(9)));
    assert!(leader.poll().is_pending() && second.poll().is_pending() && third.poll().is_pending());
    assert_eq!(leader.poll(), Poll::Ready(Err(LoadError::Loader("no"))));
    assert_eq!(second.poll(), Poll::Ready(Err(LoadError::Loader("nor I"))));
    assert_eq!(third.woken.get(), 1);
    assert_eq!((third.poll(), cache.loads()), (Poll::Ready(Ok(9)), 0));
}

#[test]
fn tasks_and_threads_wait_for_each_other() {
    let cache = Cache::new();
    let mut leader = slow(&cache, 7);
    assert!(leader.poll().is_pending());
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| cache.get_or_insert_with(&1, || 8));
        super::until(|| cache.followers(&1) == 1);
        assert!(leader.poll().is_pending() && leader.poll().is_ready());
        assert_eq!(thread.join().unwrap(), 7);
    });
}

/// Two tasks of one thread, each of which loads what the other waits for.
#[test]
fn tasks_that_would_wait_for_each_other_are_told() {
    let cache = Cache::new();
    let crossed = |mine: u32, other: u32| {
        let cache = &cache;
        Polled::new(async move {
            let load = async move {
                pending(1).await;
                let loaded = cache.try_get_or_insert_async(&other, async { Ok::<_, ()>(0) }).await;
                Ok(loaded.unwrap_or(100 + mine))
            };
            cache.try_get_or_insert_async(&{ mine }, load).await
        })
    };
    let (mut one, mut two) = (crossed(1, 2), crossed(2, 1));
    assert!(one.poll().is_pending() && two.poll().is_pending() && one.poll().is_pending());
    assert_eq!(two.poll(), Poll::Ready(Ok(102)));
    assert_eq!((one.poll(), cache.loads()), (Poll::Ready(Ok(102)), 0));
}

/// A loader that gives up waiting for another key no longer waits for it.
#[test]
fn a_wait_that_was_given_up_is_no_part_of_a_circle() {
    let cache = Cache::new();
    let mut two = Polled::new(cache.try_get_or_insert_async(&2, async {
        pending(1).await;
        quick_of(&cache, 1).await.map_err(|_| "told")
    }));
    assert!(two.poll().is_pending());
    let mut one = Polled::new(cache.try_get_or_insert_async(&1, async {
        let mut wait = quick_of(&cache, 2);
        let waits = poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        drop(wait);
        pending(1).await;
        Ok(7)
    }));
    assert!(one.poll().is_pending() && two.poll().is_pending() && one.poll().is_ready());
    assert_eq!((two.poll(), cache.loads()), (Poll::Ready(Ok(7)), 0));
}

fn quick_of(cache: &Cache, key: u32) -> Task<'_> {
    Box::pin(async move { cache.try_get_or_insert_async(&key, async { Ok(0) }).await })
}

#[test]
fn the_future_can_be_sent_to_other_threads() {
    fn is_send(_: &impl Send) {}
    let cache = Cache::new();
    is_send(&cache.try_get_or_insert_async(&1, async { Ok::<_, ()>(1) }));
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("waker");
    }
}

#[test]
fn all_who_wait_are_woken_though_a_waker_panics() {
    let cache = Cache::new();
    let first = slow(&cache, 7);
    let (mut first, mut second, mut third) = (first, slow(&cache, 8), slow(&cache, 9));
    assert!(first.poll().is_pending());
    let waker = Waker::from(Arc::new(Panics));
    assert!(second.task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(third.poll().is_pending());
    assert!(first.poll().is_pending());
    let landing = std::panic::AssertUnwindSafe(|| first.poll());
    std::panic::catch_unwind(landing).expect_err("the waker panics");
    assert_eq!((third.woken.get(), cache.get(&1), cache.loads()), (1, Some(7), 0));
    assert_eq!((second.poll(), third.poll()), (Poll::Ready(Ok(7)), Poll::Ready(Ok(7))));
}

/// A wait in a cache that no longer exists, whose place in memory another one may have: it waits for nothing in the other one.
#[test]
fn a_wait_that_was_forgotten_is_no_other_s() {
    fn never(cache: &Cache, key: u32) -> Polled<'_> {
        Polled::new(async move { cache.try_get_or_insert_async(&key, core::future::pending()).await })
    }
    fn asks_for_another(cache: &Cache, key: u32, other: u32) -> Polled<'_> {
        Polled::new(async move {
            let load = async {
                let inner = cache.try_get_or_insert_async::<()>(&other, core::future::pending()).await;
                inner
                    .map_err(|error| if error == LoadError::Recursion { "a circle" } else { "another error" })
            };
            cache.try_get_or_insert_async(&key, load).await
        })
    }
    for _ in 0..if cfg!(miri) { 3 } else { 200 } {
        let cache = Cache::new();
        let (mut two, mut one) = (never(&cache, 2), asks_for_another(&cache, 1, 2));
        assert!(two.poll().is_pending() && one.poll().is_pending());
        core::mem::forget(one);
        drop(two);
        drop(cache);
        let cache = Cache::new();
        let (mut one, mut two) = (never(&cache, 1), asks_for_another(&cache, 2, 1));
        assert!(one.poll().is_pending());
        let polled = two.poll();
        assert!(polled.is_pending(), "{polled:?}");
    }
}

/// An executor that polls at once: the code that runs when a task is woken asks for the key.
struct Asks {
    cache: Arc<Cache>,
    answers: Mutex<Vec<Result<u32, LoadError<&'static str>>>>,
}

impl Wake for Asks {
    fn wake(self: Arc<Self>) {
        let answer = self.cache.try_get_or_insert_with(&1, || Ok(8));
        self.answers.lock().push(answer);
    }
}

#[test]
fn who_is_woken_by_a_load_that_fails_may_load_on_the_same_thread() {
    let cache = Arc::new(Cache::new());
    let asks = Arc::new(Asks { cache: Arc::clone(&cache), answers: Mutex::new(Vec::new()) });
    let (waker, steps) = (Waker::from(Arc::clone(&asks)), Count::default());
    std::thread::scope(|scope| {
        let loaded = cache.try_get_or_insert_with(&1, || {
            scope.spawn(|| {
                let mut task = quick(&cache, Ok(9)).task;
                assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                steps.add();
                until(|| steps.get() == 2);
            });
            until(|| steps.get() == 1);
            Err("no")
        });
        steps.add();
        assert_eq!(loaded, Err(LoadError::Loader("no")));
    });
    assert_eq!((asks.answers.lock().as_slice(), cache.get(&1)), ([Ok(8)].as_slice(), Some(8)));
}
