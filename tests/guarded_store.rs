//! The example `guarded_store`: bad input, a short run, Ctrl-C.
//!
//! `cargo test` builds the examples; `cargo test --test guarded_store` alone does not.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use koel::guard::{RedbStore, Store};

fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("this program");
    path.pop();
    path.pop();
    path.push("examples/guarded_store");
    assert!(path.exists(), "not built: `cargo test --no-run`, without naming a test, builds {path:?}");
    path
}

fn run(args: &[&str]) -> Output {
    Command::new(program()).args(args).output().expect("the example runs")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Exit code 2, and a message that has these words.
fn refuses(args: &[&str], words: &[&str]) {
    let output = run(args);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
    assert!(words.iter().all(|word| told.contains(word)), "{args:?}: {told}");
}

#[test]
fn bad_input_ends_with_a_clear_error_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let db = folder.path().join("good.redb");
    let good = file("good.txt", b"a\nb\n");
    let bad_utf8 = file("bad.txt", b"a\n\xff\xfe\nb\n");
    let long = file("long.txt", &[b'k'; 70_000]);
    let empty = file("empty.txt", b"\n\n");
    refuses(&["--keys", "no/such/file"], &["no/such/file"]);
    refuses(&["--requests", "no/such/file"], &["no/such/file"]);
    refuses(&["--db", text(&db), "--keys", text(&bad_utf8)], &["line 2", "UTF-8"]);
    refuses(&["--db", text(&db), "--keys", text(&long)], &["70000", "65535"]);
    refuses(&["--db", text(&db), "--keys", text(&empty)], &["no keys"]);
    assert!(!db.exists(), "nothing is made for bad keys");
    refuses(&["--db", text(&good)], &["good.txt"]);
    assert_eq!(std::fs::read(&good).unwrap(), b"a\nb\n", "a file that is no database is left alone");
    refuses(&["--db", text(folder.path())], &[text(folder.path())]);
    refuses(&["--seconds", "never"], &["--seconds", "never", "--help"]);
    refuses(&["--nonsense"], &["--nonsense"]);
    let _open = RedbStore::open(&db).unwrap();
    refuses(&["--db", text(&db), "--keys", text(&good)], &["open"]);
}

#[test]
fn a_short_run_checks_every_answer_and_the_next_one_opens_with_its_filter() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keys) = (folder.path().join("db.redb"), folder.path().join("keys.txt"));
    let lines: String = (0..1000).map(|number| format!("key {number} ä\n")).collect();
    std::fs::write(&keys, lines).unwrap();
    let requests = folder.path().join("requests.txt");
    std::fs::write(&requests, "key 1 ä\nnobody\nkey 999 ä\n").unwrap();
    let (db, keys, requests) = (text(&db), text(&keys), text(&requests));
    for args in [
        vec!["--db", db, "--keys", keys, "--seconds", "0.2"],
        vec!["--db", db, "--requests", requests, "--seconds", "0.2"],
    ] {
        let output = run(&args);
        let (out, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(out.contains("Of every answer it was checked") && out.contains("1,000"), "{out}");
        assert!(told.contains("db.redb.filter"), "{told}");
    }
}

/// A key that was put around the guard is not in the filter that was kept, and the guard was not told.
#[test]
fn who_listens_no_longer_is_no_error_and_the_filter_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [db, keys] = ["unheard.redb", "keys.txt"].map(|name| folder.path().join(name));
    std::fs::write(&keys, "a\nb\nc\n").unwrap();
    let mut command = Command::new(program());
    command.args(["--db", text(&db), "--keys", text(&keys), "--seconds", "0.05"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("unheard.redb.filter").exists());
}

#[test]
fn a_wrong_answer_ends_with_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keys) = (folder.path().join("db.redb"), folder.path().join("keys.txt"));
    std::fs::write(&keys, "a\nb\n").unwrap();
    assert_eq!(run(&["--db", text(&db), "--keys", text(&keys), "--seconds", "0.1"]).status.code(), Some(0));
    let around = redb::Database::open(&db).unwrap().begin_write().unwrap();
    let data = redb::TableDefinition::<&[u8], &[u8]>::new("koel.data");
    {
        let mut table = around.open_table(data).unwrap();
        // One key may be taken for another.
        for number in 0..10 {
            table.insert(format!("around {number}").as_bytes(), &b"1"[..]).unwrap();
        }
    }
    around.commit().unwrap();
    let output = run(&["--db", text(&db), "--seconds", "0.1"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("a wrong answer: `around ") || told.contains("the filter misses "), "{told}");
}

/// Keys that look like the writer's, files in the place of the filter, and databases of others.
#[test]
fn what_is_the_user_s_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (db, keys, mine) = (path("x.filter"), path("keys.txt"), path("x.filter.filter"));
    std::fs::write(&keys, "writer:0\nwriter::1\nada\n").unwrap();
    std::fs::write(&mine, "not a filter").unwrap();
    let args = ["--db", text(&db), "--keys", text(&keys), "--requests", text(&keys), "--seconds", "0.1"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("Of every answer it was checked"),
        "the report comes first"
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("x.filter.filter: no filter"));
    assert_eq!(std::fs::read(&mine).unwrap(), b"not a filter");
    let store = RedbStore::open(&db).unwrap();
    assert!([&b"writer:0"[..], b"writer::1", b"ada"].iter().all(|key| store.get(key).unwrap().is_some()));
    let empty = path("empty.redb");
    drop(RedbStore::open(&empty).unwrap());
    refuses(&["--db", text(&empty)], &["empty.redb", "no keys", "--keys"]);
}

#[test]
fn ctrl_c_stops_it_and_the_database_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keys) = (folder.path().join("db.redb"), folder.path().join("keys.txt"));
    std::fs::write(&keys, "a\nb\nc\n").unwrap();
    let mut command = Command::new(program());
    command.args(["--db", text(&db), "--keys", text(&keys), "--seconds", "600"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // It prints how many readers there are when the keys are in the database.
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains("3 keys; ")));
    let id = child.id();
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {id}")]).status().unwrap().success());
    assert!(told.any(|line| line.contains("stopped; ")));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let store = RedbStore::open(&db).unwrap();
    assert!(store.get(b"a").unwrap().is_some() && store.get(b"c").unwrap().is_some());
}
