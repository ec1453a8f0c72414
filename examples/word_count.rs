//! Counts the words of files, or of standard input, on all cores.
//!
//! ```text
//! cargo run --release --example word_count -- README.md docs/design.md
//! ```

use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use koel::HashMap;

fn main() -> ExitCode {
    let mut texts = Vec::new();
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        match std::fs::read_to_string(&path) {
            Ok(text) => texts.push(text),
            Err(error) => return fail(path.display(), &error),
        }
    }
    if texts.is_empty() {
        let mut text = String::new();
        if let Err(error) = std::io::stdin().read_to_string(&mut text) {
            return fail("standard input", &error);
        }
        texts.push(text);
    }

    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // The words themselves stay in the texts: the map's keys are slices of them.
    let counts: HashMap<&str, u64> = HashMap::new();
    std::thread::scope(|scope| {
        for share in lines.chunks(lines.len().div_ceil(threads).max(1)) {
            let counts = &counts;
            scope.spawn(move || {
                let pin = counts.pin();
                for word in share.iter().flat_map(|line| line.split(|c: char| !c.is_alphanumeric())) {
                    if !word.is_empty() {
                        pin.update_or_insert(word, |count| count + 1, 1);
                    }
                }
            });
        }
    });

    let mut sorted: Vec<(&str, u64)> = counts.into_iter().collect();
    sorted.sort_by_key(|&(word, count)| (std::cmp::Reverse(count), word));
    let most: String = sorted.iter().take(20).map(|(word, count)| format!("{count:>8}  {word}\n")).collect();
    match std::io::stdout().write_all(most.as_bytes()) {
        // The reader may have closed the pipe, as in `word_count | head`.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => fail("standard output", &error),
        _ => ExitCode::SUCCESS,
    }
}

fn fail(what: impl Display, error: &std::io::Error) -> ExitCode {
    eprintln!("word_count: {what}: {error}");
    ExitCode::from(2)
}
