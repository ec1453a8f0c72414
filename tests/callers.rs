//! A panic names the line that called koel, if the caller is at fault.

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use koel::{
    Cache, Compute, CuckooFilter, FilterView, HashMap, HashSet, InlineCache, InlineMap, ManualClock,
    Operation, ScalableCuckooFilter,
};

static FILE: Mutex<String> = Mutex::new(String::new());

/// Requests of this many bytes and more are refused.
static TOO_MANY: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Sparing;

// SAFETY: memory comes from the system's allocator, or is refused.
unsafe impl GlobalAlloc for Sparing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= TOO_MANY.load(Ordering::Relaxed) {
            return core::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises: all that there is comes from the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static SPARING: Sparing = Sparing;

/// The file that the panic of `call` names.
fn blamed<T>(call: impl FnOnce() -> T) -> String {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "no panic");
    std::mem::take(&mut *FILE.lock().unwrap())
}

#[track_caller]
fn assert_blamed_here<T>(call: impl FnOnce() -> T) {
    assert_eq!(blamed(call), file!());
}

/// Alone in this file: the hook is the process's.
#[test]
fn a_panic_names_the_line_that_called() {
    set_hook(Box::new(|info| {
        *FILE.lock().unwrap() = info.location().map_or(String::new(), |at| at.file().to_owned());
    }));
    let map: HashMap<u64, u64> = HashMap::builder().fixed_capacity(1).build();
    let inline: InlineMap<u64, u64> = InlineMap::builder().fixed_capacity(1).build();
    let pin = map.pin();
    let fits = (0..99).take_while(|&n| pin.checked_insert(n, n).is_ok()).count();
    let inline_fits = (0..99).take_while(|&n| inline.checked_insert(n, n).is_ok()).count();
    let (new, inline_new) = (fits as u64, inline_fits as u64);

    assert_blamed_here(|| pin.insert(new, 0));
    assert_blamed_here(|| pin.try_insert(new, 0).map(|_| ()).map_err(|_| ()));
    assert_blamed_here(|| *pin.get_or_insert(new, 0));
    assert_blamed_here(|| *pin.get_or_insert_default(new));
    assert_blamed_here(|| *pin.update_or_insert(new, |n| *n, 0));
    assert_blamed_here(|| {
        matches!(pin.compute(new, |_| Operation::<_, ()>::Insert(0)), Compute::Inserted(..))
    });
    assert_blamed_here(|| matches!(pin.compute(new, |_| Operation::<_, ()>::Remove), Compute::Removed(..)));
    assert_blamed_here(|| pin.checked_compute(new, |_| Operation::<_, ()>::Remove).is_ok());
    assert_blamed_here(|| {
        matches!(pin.compute_ref(&new, |_| Operation::<_, ()>::Remove), Compute::Removed(..))
    });
    assert_blamed_here(|| pin.checked_compute_ref(&new, |_| Operation::<_, ()>::Remove).is_ok());
    assert_blamed_here(|| *pin.update_or_insert_ref(&new, |n| *n, 0));
    assert_blamed_here(|| *pin.update_or_insert_with_ref(&new, |n| *n, || 0));
    assert_blamed_here(|| pin.try_insert_with(new, || 0).is_ok());
    assert_blamed_here(|| pin.extend([(new, 0)]));
    assert_blamed_here(|| pin[&new]);
    assert_blamed_here(|| pin.get_many(&[1, 2], &mut []));
    assert_blamed_here(|| pin.get_many_ref(&[&1, &2], &mut []));
    assert_blamed_here(|| pin.contains_many(&[1, 2], &mut []));
    assert_blamed_here(|| pin.contains_many_ref(&[&1, &2], &mut []));
    assert_blamed_here(|| HashMap::<u64, u64>::with_capacity(usize::MAX));
    assert_blamed_here(|| HashMap::<u64, u64>::builder().capacity(usize::MAX).build());

    let set = HashSet::from(HashMap::builder().fixed_capacity(1).build());
    let set_new = (0..99).find(|&n| set.checked_insert(n).is_err()).unwrap();
    assert_blamed_here(|| set.insert(set_new));
    assert_blamed_here(|| *set.pin().get_or_insert(set_new));

    assert_blamed_here(|| inline.insert(inline_new, 0));
    assert_blamed_here(|| inline.try_insert(inline_new, 0).is_ok());
    assert_blamed_here(|| inline.get_or_insert(inline_new, 0));
    assert_blamed_here(|| inline.get_or_insert_default(inline_new));
    assert_blamed_here(|| inline.update_or_insert(inline_new, |n| n, 0));
    assert_blamed_here(|| inline.compute(inline_new, |_| Operation::<_, ()>::Insert(0)));
    assert_blamed_here(|| inline.checked_compute(inline_new, |_| Operation::<_, ()>::Remove).is_ok());
    assert_blamed_here(|| inline.try_insert_with(inline_new, || 0).is_ok());
    assert_blamed_here(|| inline.extend([(inline_new, 0)]));
    assert_blamed_here(|| inline.get_many(&[1, 2], &mut []));
    assert_blamed_here(|| inline.contains_many(&[1, 2], &mut []));
    assert_blamed_here(|| InlineMap::<u64, u64>::with_capacity(usize::MAX));

    drop(pin);
    let (mut map, mut inline) = (map, inline);
    assert_blamed_here(|| Extend::extend(&mut map, [(new, 0)]));
    assert_blamed_here(|| Extend::extend(&mut inline, [(inline_new, 0)]));
    assert_blamed_here(|| Extend::extend(&mut map, [(&new, &0)]));
    assert_blamed_here(|| Extend::extend(&mut &map, [(&new, &0)]));
    assert_blamed_here(|| Extend::extend(&mut inline, [(&inline_new, &0)]));
    assert_blamed_here(|| Extend::extend(&mut &inline, [(&inline_new, &0)]));

    caches_name_it();
    filters_name_it();
    drop(take_hook());
}

fn caches_name_it() {
    let cache: Cache<u64, u64> = Cache::new(1);
    assert_blamed_here(|| cache.compute(1, |_| Operation::<_, ()>::Remove).is_ok());
    assert_blamed_here(|| cache.compute_ref(&1, |_| Operation::<_, ()>::Remove).is_ok());
    assert_blamed_here(|| cache.get_many(&[1, 2], &mut []));
    assert_blamed_here(|| cache.get_many_ref(&[&1, &2], &mut []));
    assert_blamed_here(|| cache.pin().get_many(&[1, 2], &mut []));
    assert_blamed_here(|| cache.pin().get_many_ref(&[&1, &2], &mut []));
    let inline_cache = InlineCache::<u64, u64>::new(1);
    assert_blamed_here(|| inline_cache.compute(1, |_| Operation::<_, ()>::Remove));
    assert_blamed_here(|| inline_cache.get_many(&[1, 2], &mut []));
    assert_blamed_here(|| InlineCache::<u64, u64>::new(usize::MAX));
    assert_blamed_here(|| InlineCache::<u64, u64>::builder().build());
    let clock = ManualClock::new();
    clock.advance(Duration::MAX);
    assert_blamed_here(|| clock.advance(Duration::from_nanos(1)));
}

fn filters_name_it() {
    let (filter, growing) = (CuckooFilter::new(10, 0.1).unwrap(), ScalableCuckooFilter::new(0.1).unwrap());
    assert_blamed_here(|| filter.contains_many(&[1, 2], &mut []));
    assert_blamed_here(|| filter.contains_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| filter.contains_many_bytes(&["a", "b"], &mut []));
    assert_blamed_here(|| growing.contains_many(&[1, 2], &mut []));
    assert_blamed_here(|| growing.contains_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| growing.contains_many_bytes(&["a", "b"], &mut []));
    assert_blamed_here(|| filter.insert_unique_many(&[1, 2], &mut []));
    assert_blamed_here(|| filter.insert_unique_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| filter.insert_unique_many_bytes(&["a", "b"], &mut []));
    assert_blamed_here(|| growing.insert_unique_many(&[1, 2], &mut []));
    assert_blamed_here(|| growing.insert_unique_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| growing.insert_unique_many_bytes(&["a", "b"], &mut []));
    assert_blamed_here(|| filter.remove_many(&[1, 2], &mut []));
    assert_blamed_here(|| filter.remove_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| filter.remove_many_bytes(&["a", "b"], &mut []));
    assert_blamed_here(|| growing.remove_many(&[1, 2], &mut []));
    assert_blamed_here(|| growing.remove_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| growing.remove_many_bytes(&["a", "b"], &mut []));
    let bytes = filter.to_bytes();
    let view = FilterView::from_bytes(&bytes).unwrap();
    assert_blamed_here(|| view.contains_many(&[1, 2], &mut []));
    assert_blamed_here(|| view.contains_many_hash(&[1, 2], &mut []));
    assert_blamed_here(|| view.contains_many_bytes(&["a", "b"], &mut []));
    // There is no memory for a copy.
    let (filter, growing) =
        (CuckooFilter::new(100_000, 0.1).unwrap(), ScalableCuckooFilter::builder().capacity(100_000));
    let growing = growing.build().unwrap();
    TOO_MANY.store(50_000, Ordering::Relaxed);
    assert_blamed_here(|| filter.clone());
    assert_blamed_here(|| growing.clone());
    TOO_MANY.store(usize::MAX, Ordering::Relaxed);
    assert_eq!(filter.clone().len() + growing.clone().len(), 0);
}
