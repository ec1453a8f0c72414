//! The common path of `get`, and of a pin, has no locked instruction and is inlined: the compiler's own listing is searched.
//!
//! x86_64 only, where a locked instruction is recognized by its prefix or as an `xchg` with memory.

#![cfg(target_arch = "x86_64")]

use std::path::Path;
use std::process::Command;

/// The lines of a function in an assembly listing. On macOS names begin with `_`, and on Windows functions end with
/// `.seh_endproc`.
fn body<'a>(listing: &'a str, function: &str) -> Vec<&'a str> {
    let label = format!("{function}:");
    let lines: Vec<&str> = listing
        .lines()
        .skip_while(|line| line.strip_prefix('_').unwrap_or(line) != label)
        .take_while(|line| !line.contains(".cfi_endproc") && !line.contains(".seh_endproc"))
        .collect();
    assert!(lines.len() > 20, "no body of {function} in the listing: {lines:?}");
    lines
}

/// Functions that are kept out of line on purpose, off the common path: a look-up that met a writer; pins that overlap another,
/// and their end; the end of one that somebody waits for.
const APART: [&str; 3] = ["find_carefully", "enter_beside", "leave_on_call"];

/// Lines that call a function, or jump to one.
fn calls<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let is_call = |line: &&&str| {
        let code = line.trim();
        code.starts_with("call") || code.starts_with('j') && code.contains("koel")
    };
    lines.iter().filter(is_call).copied().collect()
}

/// Lines that lock the bus or the cache line.
fn locked<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let is_locked = |line: &&&str| {
        let code = line.split('#').next().unwrap_or_default().trim();
        code.starts_with("lock")
            || code.starts_with("mfence")
            || code.starts_with("xchg") && code.contains('[')
            || code.starts_with("xchg") && code.contains('(')
    };
    lines.iter().filter(is_locked).copied().collect()
}

/// A cargo command on this package, in a target directory that nobody else uses.
fn cargo(arguments: &[&str], target: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Compiles the example and returns its listing.
fn listing() -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("disassembly");
    let examples = target.join("release/examples");
    // The listing of an earlier build must not be found, and cargo must not conclude that there is nothing to build.
    let _ = std::fs::remove_dir_all(&examples);
    let cleaned = cargo(&["clean", "--release", "--package", "koel", "--quiet"], &target).status();
    assert!(cleaned.expect("cargo runs").success());
    let built = cargo(&["rustc", "--release", "--example", "look_up"], &target)
        .args(["--", "--emit=asm", "-Ccodegen-units=1"])
        .status();
    assert!(built.expect("cargo runs").success());
    let listings: Vec<_> = std::fs::read_dir(&examples)
        .expect("the examples' directory")
        .map(|entry| entry.expect("a file in it").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "s"))
        .collect();
    assert_eq!(listings.len(), 1, "{listings:?}");
    std::fs::read_to_string(&listings[0]).expect("a readable listing")
}

#[test]
fn get_has_no_locked_instruction_and_is_inlined() {
    let listing = listing();
    for name in APART {
        assert!(listing.contains(name), "the listing does not know {name}, which is said to be apart");
    }
    for function in ["koel_hash_map_get", "koel_inline_map_get", "koel_hash_map_pin_and_get"] {
        if function.contains("pin") && !cfg!(target_os = "linux") {
            // A fence, where the system has no `membarrier`.
            continue;
        }
        let lines = body(&listing, function);
        assert_eq!(locked(&lines), Vec::<&str>::new(), "{function} has locked instructions");
        let calls = calls(&lines);
        // Functions that are not inlined are not searched.
        let unknown = calls.iter().find(|call| !APART.iter().any(|name| call.contains(name)));
        assert_eq!(unknown, None, "{function} calls what may lock");
        assert!(calls.iter().any(|call| call.contains(APART[0])), "{function}: no calls were found");
    }
    // The search finds such instructions where there are any: code that fills the maps locks.
    let lines: Vec<&str> = listing.lines().collect();
    assert!(!locked(&lines).is_empty(), "none in the whole listing");
}
