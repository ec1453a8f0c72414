//! Source files, a line at a time, with and without comments.

use std::path::{Path, PathBuf};

/// The package's folder.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A source file.
pub(crate) struct Source {
    /// Relative to the package, with slashes.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// All source files below a folder of the package.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for path in files.map(|file| file.expect("a file of this package").path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path
                .strip_prefix(root())
                .expect("below the package")
                .display()
                .to_string()
                .replace('\\', "/");
            found.push(Source { name, text: std::fs::read_to_string(&path).expect("UTF-8") });
        }
    }
}

impl Source {
    /// The file's name without folder and extension.
    pub(crate) fn stem(&self) -> String {
        Path::new(&self.name).file_stem().expect("a file").to_string_lossy().into_owned()
    }

    /// All lines, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// All lines without comments and without the contents of strings.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, String)> {
        self.lines().map(|(number, line)| (number, strip(line)))
    }

    /// Name, first line and length of every function that has a body, signature included.
    pub(crate) fn functions(&self) -> Vec<(String, usize, usize)> {
        let mut functions = Vec::new();
        // The functions that are open: name, first line, and the depth of braces outside.
        let mut open: Vec<(String, usize, usize)> = Vec::new();
        let mut pending: Option<(String, usize)> = None;
        let mut depth = 0_usize;
        for (number, line) in self.code() {
            if let Some(name) = function_name(&line) {
                pending = Some((name, number));
            }
            for character in line.chars() {
                match character {
                    '{' => {
                        if let Some((name, first)) = pending.take() {
                            open.push((name, first, depth));
                        }
                        depth += 1;
                    }
                    '}' => {
                        depth = depth.saturating_sub(1);
                        if open.last().is_some_and(|(_, _, outside)| *outside == depth) {
                            let (name, first, _) = open.pop().expect("just seen");
                            functions.push((name, first, number + 1 - first));
                        }
                    }
                    // A declaration without a body.
                    ';' => pending = None,
                    _ => {}
                }
            }
        }
        functions
    }
}

/// The name of the function that is declared on a line.
fn function_name(line: &str) -> Option<String> {
    let at =
        line.find("fn ").filter(|at| line[..*at].chars().next_back().is_none_or(|before| before == ' '))?;
    let name: String = line[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// A line without its comment and without the contents of its strings and characters.
pub(crate) fn strip(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        if rest.starts_with("//") {
            break;
        }
        out.push(character);
        rest = &rest[character.len_utf8()..];
        let quoted = match character {
            '"' => string_len(rest, '"'),
            // A lifetime has no end.
            '\'' => string_len(rest, '\'').filter(|len| *len <= 3 || rest.starts_with('\\')),
            _ => continue,
        };
        if let Some(len) = quoted {
            out.push(character);
            rest = &rest[len..];
        }
    }
    out
}

/// The distance past the closing quote.
fn string_len(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if character == quote && !escaped {
            return Some(at + quote.len_utf8());
        }
        escaped = character == '\\' && !escaped;
    }
    None
}
