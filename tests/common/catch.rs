//! Expected panics, without their noise.

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local!(static EXPECTED: Cell<bool> = const { Cell::new(false) });

/// Runs `body` and returns the message of its panic, which is not printed.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |info| {
            if !EXPECTED.with(Cell::get) {
                print(info);
            }
        }));
    });
    let outer = EXPECTED.with(|expected| expected.replace(true));
    let result = catch_unwind(AssertUnwindSafe(body));
    EXPECTED.with(|expected| expected.set(outer));
    result.map_err(|payload| match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic that is no text".to_owned(),
    })
}
