//! `koel-bench guard` from outside: nothing is left in the folder of the databases.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn guard(folder: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    command.arg("guard").arg("--folder").arg(folder).args(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Whether the databases' folder, the only one there, has anything in it.
fn is_filled(folder: &Path) -> bool {
    let mut databases = fs::read_dir(folder).unwrap();
    databases
        .next()
        .is_some_and(|one| fs::read_dir(one.unwrap().path()).is_ok_and(|mut files| files.next().is_some()))
}

#[test]
fn databases_are_removed_when_all_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guard.html");
    let args = ["--keys", "1k", "--threads", "1", "--rounds", "1", "--seconds", "0", "--html"];
    let output =
        guard(folder.path(), &[&args[..], &[page.to_str().unwrap()]].concat()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // One for each workload on each store.
    assert_eq!(fs::read_to_string(page).unwrap().matches("<svg ").count(), 8);
}

/// Whether the tests run with hang-ups ignored, as under `nohup`: then the program ignores them, too.
fn ignores_hang_ups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[test]
fn signals_remove_the_database_that_is_in_use() {
    let last = if ignores_hang_ups() { "TERM" } else { "HUP" };
    for (store, signal) in [("redb", "INT"), ("fjall", "INT"), ("redb", "TERM"), ("fjall", last)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = guard(folder.path(), &["--keys", "50M", "--stores", store]);
        let start = Instant::now();
        while !is_filled(folder.path()) && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(child.try_wait().unwrap(), None, "it is still at work");
        let id = child.id();
        assert!(Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{store}, {signal}: {told}");
        assert!(told.contains("koel-bench: stopped"), "{store}, {signal}: {told}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{store}, {signal}");
    }
}
