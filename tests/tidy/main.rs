//! The rules of the code's style, checked by a machine: citations have targets, imports point downward, unsafe code is
//! justified, files and functions are short; and of the documents: links have targets, lines are narrow.

mod documents;
mod rooms;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use source::{Source, root, sources};

/// Engine files, highest first, as the table in `src/engine/mod.rs` lists them; the files of one row know nothing of
/// one another.
fn engine_rows() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("src/engine/mod.rs")).expect("the engine");
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .filter_map(|line| line.split(" | ").next());
    let names = |row: &str| row.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect();
    rows.map(names).collect()
}

/// All sources of this repository that are not the library's.
fn beside_the_library() -> Vec<Source> {
    ["tests", "fuzz/harness", "fuzz/fuzz_targets", "loom-tests", "shuttle-tests", "benches", "examples"]
        .into_iter()
        .flat_map(sources)
        .collect()
}

/// All sources of this repository.
fn everything() -> Vec<Source> {
    sources("src").into_iter().chain(beside_the_library()).collect()
}

#[test]
fn every_citation_leads_to_the_design_and_every_definition_is_cited() {
    let design = std::fs::read_to_string(root().join("docs/design.md")).expect("docs/design.md");
    let defined: BTreeSet<String> = design
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- **["))
        .filter_map(|line| line.split("]**").next().map(str::to_owned))
        .collect();
    let mut cited = BTreeMap::new();
    for source in sources("src") {
        for (number, line) in source.lines() {
            for label in citations(line) {
                cited.entry(label).or_insert_with(|| format!("{}:{number}", source.name));
            }
        }
    }
    for source in beside_the_library().into_iter().filter(|source| !source.name.starts_with("tests/tidy/")) {
        for (number, line) in source.lines() {
            for label in citations(line) {
                let at = format!("{}:{number}", source.name);
                assert!(
                    defined.contains(&label),
                    "{at} cites [{label}], which docs/design.md does not define"
                );
            }
        }
    }
    assert!(defined.len() > 10 && cited.len() > 10, "{defined:?} {cited:?}");
    for (label, at) in &cited {
        assert!(defined.contains(label), "{at} cites [{label}], which docs/design.md does not define");
    }
    for label in &defined {
        assert!(cited.contains_key(label), "docs/design.md defines [{label}], which nothing in src cites");
    }
    for label in citations(&design) {
        assert!(defined.contains(&label), "docs/design.md cites [{label}] and does not define it");
    }
}

/// The citations in a text: `[I3]`, and `[R2]..[R4]` with those in between.
fn citations(text: &str) -> Vec<String> {
    let mut labels = Vec::new();
    for (at, _) in text.match_indices('[') {
        let Some((label, rest)) = text[at + 1..].split_once(']') else { continue };
        let Some((letter, number)) = parse(label) else { continue };
        let last =
            rest.strip_prefix("..[").and_then(|rest| rest.split_once(']')).and_then(|(last, _)| parse(last));
        for number in number..=last.map_or(number, |(_, last)| last) {
            labels.push(format!("{letter}{number}"));
        }
    }
    labels
}

fn parse(label: &str) -> Option<(char, u32)> {
    let letter = label.chars().next().filter(|letter| "IRWGMCEBLFD".contains(*letter))?;
    Some((letter, label[1..].parse().ok()?))
}

#[test]
fn imports_of_the_engine_point_downward() {
    let rows = engine_rows();
    let row_of = |name: &str| rows.iter().position(|row| row.iter().any(|other| other == name));
    for source in sources("src/engine") {
        let name = source.stem();
        if name == "mod" {
            continue;
        }
        let row = row_of(&name).unwrap_or_else(|| panic!("{name} is not in the table of src/engine/mod.rs"));
        for (number, line) in source.code() {
            let at = format!("{}:{number}: {}", source.name, line.trim());
            assert!(!line.contains("crate::map"), "the engine imports a map: {at}");
            assert!(!line.contains("crate::engine"), "a path around the table: {at}");
            for other in rows.iter().flatten().filter(|other| line.contains(&format!("super::{other}"))) {
                assert!(row_of(other) > Some(row), "an import that points upward or sideways: {at}");
            }
        }
    }
}

/// Whether a line has a path that begins with this crate: `bloom::` is not `loom::`.
fn names(line: &str, root: &str) -> bool {
    let begins = |at: usize| !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    line.match_indices(root).any(|(at, _)| begins(at))
}

#[test]
fn atomics_come_from_one_file_and_reclamation_from_another() {
    for source in sources("src") {
        for (number, line) in source.code() {
            let at = format!("{}:{number}: {}", source.name, line.trim());
            if source.name != "src/sync.rs" {
                assert!(!line.contains("sync::atomic") || line.contains("crate::sync"), "atomics: {at}");
                assert!(!names(&line, "loom::") && !names(&line, "shuttle::"), "loom or shuttle: {at}");
                assert!(!line.contains("parking_lot"), "locks: {at}");
            }
            if source.name != "src/reclaim/barrier.rs" {
                assert!(!names(&line, "rustix::"), "the kernel: {at}");
            }
            if source.name != "src/cache/coarse.rs" {
                assert!(!names(&line, "libc::"), "the C library: {at}");
            }
            if source.name == "src/hash.rs" {
                assert!(!line.contains("crate::"), "hash.rs is pure: {at}");
            }
            let above =
                ["src/map/", "src/set/", "src/lib.rs"].iter().any(|path| source.name.starts_with(path));
            assert!(above || !line.contains("crate::map"), "maps are on top, but for sets: {at}");
        }
    }
}

#[test]
fn unsafe_code_is_argued() {
    for source in everything() {
        let lines: Vec<(usize, &str)> = source.lines().collect();
        for (i, (number, line)) in lines.iter().enumerate() {
            if !source::strip(line).contains("unsafe {")
                && !source::strip(line).trim_start().starts_with("unsafe impl")
            {
                continue;
            }
            // In the comment above, perhaps with the beginning of the statement in between.
            let above = lines[i.saturating_sub(6)..=i].iter().any(|(_, line)| line.contains("// SAFETY:"));
            assert!(above, "{}:{number}: unsafe without SAFETY: {}", source.name, line.trim());
        }
    }
}

#[test]
fn files_are_short() {
    for (files, most) in [(sources("src"), 800), (beside_the_library(), 400)] {
        for source in files {
            let lines = source.lines().count();
            assert!(lines <= most, "{} has {lines} lines, {most} are the most", source.name);
        }
    }
}

/// A comment that names a partner does so within a few lines above.
#[test]
fn an_ordering_has_its_comment() {
    const STRONG: [&str; 5] = ["Acquire", "Release", "AcqRel", "SeqCst", "PROTECTED"];
    let strong = |line: &str| STRONG.iter().any(|word| line.contains(word));
    let (mut seen, mut silent) = (0, Vec::new());
    for source in sources("src").into_iter().filter(|source| !source.name.contains("/tests/")) {
        let lines: Vec<&str> = source.lines().map(|(_, line)| line).collect();
        for (number, line) in source.code().filter(|(_, line)| strong(line) && !line.starts_with("use ")) {
            seen += 1;
            let above = &lines[number.saturating_sub(7)..number];
            let says = ["airs with", "Acquire", "Release", "SeqCst", "AcqRel"];
            let has = above
                .iter()
                .filter_map(|line| line.split_once("//"))
                .any(|(_, comment)| says.iter().any(|word| comment.contains(word)));
            if !has {
                silent.push(format!("{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    assert_eq!(silent, [""; 0], "name no partner");
    assert!(seen > 60, "{seen}");
}

/// Comments, which rustfmt does not touch.
#[test]
fn comments_are_narrow() {
    for source in everything() {
        for (number, line) in source.lines().filter(|(_, line)| line.trim_start().starts_with("//")) {
            let wide = line.chars().count();
            assert!(wide <= 128, "{}:{number} has {wide} columns, 128 are the most", source.name);
        }
    }
}

#[test]
fn functions_are_short() {
    for source in everything() {
        for (name, number, lines) in source.functions() {
            assert!(lines <= 70, "{}:{number}: {name} has {lines} lines, 70 are the most", source.name);
        }
    }
}

#[test]
fn nothing_is_left_to_be_done() {
    let marks = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!", "dbg!"];
    // This file names the marks.
    for source in everything().into_iter().filter(|source| source.name != "tests/tidy/main.rs") {
        for (number, line) in source.lines() {
            let found = marks.iter().find(|mark| line.contains(**mark));
            assert_eq!(found, None, "{}:{number}: {}", source.name, line.trim());
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    for source in everything() {
        assert!(source.text.starts_with("//! "), "{} does not begin with its documentation", source.name);
    }
}

/// A reader who looks for another crate's name finds the method, and the guide says how they differ.
#[test]
fn other_crates_names_are_in_the_guide() {
    let guide = std::fs::read_to_string(root().join("docs/guide.md")).expect("docs/guide.md");
    let elsewhere = guide.split_once("## What it is called elsewhere").expect("the guide's end").1;
    let sources = sources("src");
    let aliases = sources.iter().flat_map(|source| {
        source
            .text
            .split("doc(alias = \"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'))
            .map(|(alias, _)| alias)
    });
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
    };
    let told = words(elsewhere);
    let mut found = 0;
    for alias in aliases {
        assert!(told.iter().any(|word| word == alias), "the guide does not tell of `{alias}`");
        found += 1;
    }
    assert!(found > 20, "{found} aliases");
}

#[test]
fn an_allowance_has_its_reason() {
    for source in everything() {
        for (number, line) in source.code() {
            let allows = line.contains("allow(") || line.contains("expect(") && line.contains("#[");
            let next = source.text.lines().skip(number - 1).take(6).any(|line| line.contains("reason ="));
            assert!(
                !allows || next,
                "{}:{number}: an allowance without a reason: {}",
                source.name,
                line.trim()
            );
        }
    }
}

#[test]
fn the_checks_see_what_they_look_for() {
    assert_eq!(citations("[R2]..[R4] and [I1], not [x] or [I] or a[3]"), ["R2", "R3", "R4", "R4", "I1"]);
    assert!(
        names("use loom::sync", "loom::") && names("{loom::x", "loom::") && !names("bloom::Bloom", "loom::")
    );
    assert!(engine_rows().len() > 8 && sources("src").len() > 20 && beside_the_library().len() > 60);
    let text = "//! a\nfn short() {\n    \"}\";\n}\n\n/// doc {\nfn other(\n    a: u8,\n) -> u8 {\n    { a }\n}\nfn none();\n";
    let source = Source { name: "x.rs".into(), text: text.into() };
    let functions: Vec<_> = source.functions();
    assert_eq!(functions, [("short".to_owned(), 2, 3), ("other".to_owned(), 7, 5)]);
    assert_eq!(source::strip("let a = \"// {\"; // unsafe {"), "let a = \"\"; ");
    assert_eq!(source::strip("b'{', '\\'', 'x"), "b'', '', 'x");
}
