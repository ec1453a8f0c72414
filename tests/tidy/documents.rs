//! The documents: their lines are narrow, and their links have targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::source::{root, sources};

/// The documents in the repository's root and in `docs`: the path and the text of each.
fn documents() -> Vec<(PathBuf, String)> {
    let folders = [root(), root().join("docs")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.clone(), std::fs::read_to_string(path).expect("a document")))
        .collect()
}

/// Lines that are not in a block of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchor of a heading on the pages that show a document.
fn anchor(heading: &str) -> String {
    let letter = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
    };
    heading.trim_start_matches('#').trim().chars().filter_map(letter).collect()
}

/// The targets of the links of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Whether a link of the document at `from` leads to a file, and to a heading in it, if it names one. Pages elsewhere are not
/// fetched.
fn leads_somewhere(from: &Path, target: &str) -> bool {
    let (path, place) = target.split_once('#').unwrap_or((target, ""));
    let to = if path.is_empty() { from.to_owned() } else { from.with_file_name(path) };
    let has_place = || {
        let text = std::fs::read_to_string(&to).unwrap_or_default();
        prose(&text).any(|(_, line)| line.starts_with('#') && anchor(line) == place)
    };
    target.starts_with("https://") || to.exists() && (place.is_empty() || has_place())
}

/// Except for tables, whose rows have to be one line.
#[test]
fn documents_are_narrow() {
    for (path, text) in documents() {
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('|')) {
            let wide = line.chars().count();
            assert!(wide <= 128, "{}:{number} has {wide} columns, 128 are the most", path.display());
        }
    }
}

#[test]
fn links_of_documents_lead_somewhere() {
    let mut seen = 0;
    for (path, text) in documents() {
        for (number, line) in prose(&text) {
            for target in targets(line) {
                assert!(leads_somewhere(&path, target), "{}:{number} leads to {target}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 80, "{seen} links");
}

#[test]
fn the_checks_of_documents_see_what_they_look_for() {
    let text = "# A\n```sh\n# not this\n```\n[a](b.md), [c](#a)\n";
    assert_eq!(prose(text).map(|(number, _)| number).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(targets("[a](b.md), [c](#a) and f[0](x").collect::<Vec<_>>(), ["b.md", "#a"]);
    assert_eq!(anchor("## 2026-11-27: bustle's, `YCSB`'s mixes"), "2026-11-27-bustles-ycsbs-mixes");
    let readme = root().join("README.md");
    assert!(leads_somewhere(&readme, "#measured") && leads_somewhere(&readme, "docs/design.md#rooms"));
    assert!(!leads_somewhere(&readme, "#nowhere") && !leads_somewhere(&readme, "docs/nothing.md"));
}

/// rustdoc does not check this.
#[test]
fn links_to_headings_lead_to_headings() {
    let sources = sources("src");
    let comments = || {
        sources.iter().flat_map(|source| {
            let of_docs = |line: &'_ str| {
                let line = line.trim_start();
                line.strip_prefix("/// ").or(line.strip_prefix("//! ")).map(str::to_owned)
            };
            source.lines().filter_map(move |(number, line)| Some((&source.name, number, of_docs(line)?)))
        })
    };
    let headings: BTreeSet<String> =
        comments().filter(|(.., line)| line.starts_with("# ")).map(|(.., line)| anchor(&line)).collect();
    let mut seen = 0;
    for (name, number, line) in comments() {
        for target in targets(&line) {
            let Some((_, place)) = target.split_once('#').filter(|(to, _)| !to.contains('/')) else {
                continue;
            };
            seen += 1;
            assert!(headings.contains(place), "{name}:{number} leads to {target}");
        }
    }
    assert!(seen > 40, "{seen} links");
}
