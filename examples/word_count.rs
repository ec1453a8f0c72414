//! Counts the words of files, or of standard input, on all cores.
//!
//! ```text
//! cargo run --release --example word_count -- README.md docs/design.md
//! ```

use std::io::Read;
use std::process::ExitCode;

use koel::HashMap;

fn main() -> ExitCode {
    let mut texts = Vec::new();
    for path in std::env::args().skip(1) {
        match std::fs::read_to_string(&path) {
            Ok(text) => texts.push(text),
            Err(error) => {
                eprintln!("word_count: {path}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    if texts.is_empty() {
        let mut text = String::new();
        if let Err(error) = std::io::stdin().read_to_string(&mut text) {
            eprintln!("word_count: standard input: {error}");
            return ExitCode::from(2);
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
    for (word, count) in sorted.iter().take(20) {
        println!("{count:>8}  {word}");
    }
    ExitCode::SUCCESS
}
