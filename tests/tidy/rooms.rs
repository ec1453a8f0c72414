//! The rooms of `src`: imports from one into another point downward, and each lists its files.

use std::collections::BTreeSet;

use crate::source::{root, sources};

/// The rooms of `src`, highest first, as the table in `docs/design.md` lists them; those of one row know nothing of one
/// another.
fn rooms() -> Vec<Vec<String>> {
    let design = std::fs::read_to_string(root().join("docs/design.md")).expect("docs/design.md");
    let (_, rooms) = design.split_once("### Rooms").expect("the rooms");
    let rows = rooms.lines().skip_while(|line| !line.starts_with("| `"));
    let names = |row: &str| {
        row.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches(".rs").to_owned()).collect()
    };
    rows.map_while(|line| line.strip_prefix("| ")?.split(" | ").next()).map(names).collect()
}

#[test]
fn imports_from_other_rooms_point_downward() {
    let rooms = rooms();
    let row_of = |name: &str| rooms.iter().position(|row| row.iter().any(|other| other == name));
    assert!(rooms.len() > 8, "{rooms:?}");
    for source in sources("src") {
        let path = source.name.strip_prefix("src/").expect("in src");
        let room = path.split(['/', '.']).next().expect("a name");
        let row = row_of(room).unwrap_or_else(|| panic!("{} is in no room of docs/design.md", source.name));
        for (number, line) in source.code() {
            let at = format!("{}:{number}: {}", source.name, line.trim());
            for other in from_the_root(&line) {
                let below = row_of(other).is_none_or(|other| other > row) || other == room;
                assert!(below, "an import that points upward or sideways: {at}");
                // Names that `lib.rs` exports may be of any room.
                let is_room = !other.starts_with(char::is_uppercase) || source.name == "src/lib.rs";
                assert!(is_room, "a path that does not tell the room, as `crate::room::{other}` does: {at}");
            }
        }
    }
}

/// The names after `crate::` on a line: one, or those of a list.
fn from_the_root(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, root) in line.match_indices("crate::") {
        let rest = &line[at + root.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.push(first_name(rest));
            continue;
        };
        assert!(list.contains('}'), "a list that does not end on its line: {line}");
        let mut depth = 0_usize;
        for path in list.split(',') {
            if depth == 0 {
                found.push(first_name(path));
            }
            depth = (depth + path.matches('{').count()).saturating_sub(path.matches('}').count());
        }
    }
    found
}

/// For rooms whose `mod.rs` has a table of its files.
#[test]
fn the_tables_of_rooms_have_their_modules() {
    let mut tables = 0;
    for source in sources("src").iter().filter(|source| source.stem() == "mod") {
        let rows = source.text.lines().filter_map(|line| {
            let row = line.strip_prefix("//! | `").or_else(|| line.strip_prefix("// | `"))?;
            row.split(" | ").next()
        });
        let listed: BTreeSet<&str> = rows.flat_map(|names| names.split('`').step_by(2)).collect();
        let modules = source.text.lines().filter_map(|line| {
            let name = line.split_once("mod ")?.1.strip_suffix(';')?;
            let is_declared = line.starts_with("mod ") || line.starts_with("pub");
            (is_declared && name != "tests").then_some(name)
        });
        if !listed.is_empty() {
            tables += 1;
            assert_eq!(listed, modules.collect(), "{}", source.name);
        }
    }
    assert!(tables > 5, "{tables} tables");
}

#[test]
fn names_after_the_root_are_found_in_lists_as_well() {
    assert_eq!(from_the_root("use crate::Cache;"), ["Cache"]);
    assert_eq!(
        from_the_root("use crate::{reentry, cache::{Policy, Cause}, Xxh3};"),
        ["reentry", "cache", "Xxh3"]
    );
    assert_eq!(from_the_root("pub(in crate::map) fn of(hash: crate::hash::Digest) {"), ["map", "hash"]);
}

fn first_name(path: &str) -> &str {
    let path = path.trim_start();
    path.split(|end: char| !(end.is_alphanumeric() || end == '_')).next().expect("a name")
}
