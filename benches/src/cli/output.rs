//! Options that name files to write, and these files.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Error;
use crate::report::{Destination, are_of_one_file};

/// Options that name files to write.
#[derive(Debug, Args, Default)]
pub struct OutputArgs {
    /// Write everything that was measured to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with charts to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The files of [`OutputArgs`], open.
#[derive(Debug, Default)]
pub struct Output {
    /// The JSON file.
    pub json: Option<Destination>,
    /// The page.
    pub html: Option<Destination>,
}

impl OutputArgs {
    /// Why they exclude one another, or conflict with the files that are read.
    pub(super) fn conflict(&self, traces: &[PathBuf]) -> Option<&'static str> {
        let outputs: Vec<_> = [&self.json, &self.html].into_iter().flatten().collect();
        if outputs.len() == 2 && name_one_file(outputs[0], outputs[1]) {
            return Some("--json and --html name one file: the page would overwrite the numbers");
        }
        let is_written = |trace: &PathBuf| outputs.iter().any(|output| name_one_file(trace, output));
        let read = traces.iter().any(is_written);
        read.then_some("--trace and a report name one file: the report would overwrite the trace")
    }

    /// Opens the files, or creates them.
    ///
    /// # Errors
    ///
    /// A message that names the file that cannot be written.
    pub fn create(&self) -> Result<Output, Error> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Destination::create).transpose();
        Ok(Output { json: create(&self.json)?, html: create(&self.html)? })
    }
}

/// Whether writing to the one would overwrite the other: they are one path after symbolic links are resolved, or hard links to
/// one file. Writing into a pipe overwrites nothing.
fn name_one_file(one: &Path, other: &Path) -> bool {
    if whole(one).is_some_and(|one| whole(other) == Some(one)) {
        return true;
    }
    let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) else { return false };
    one.is_file() && are_of_one_file(&one, &other)
}

/// The path with symbolic links resolved, as far as it exists; for a file that does not exist yet, that of its folder, and its
/// name.
fn whole(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let path = std::path::absolute(path).ok()?;
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_the_other_report_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let [json, html, hard, other] =
            ["r.json", "r.html", "hard.html", "other.html"].map(|name| folder.path().join(name));
        std::fs::write(&json, "").unwrap();
        std::os::unix::fs::symlink(&json, &html).unwrap();
        std::fs::hard_link(&json, &hard).unwrap();
        let conflict = |html| OutputArgs { json: Some(json.clone()), html: Some(html) }.conflict(&[]);
        for link in [html, hard] {
            assert!(conflict(link).unwrap().contains("the page would overwrite the numbers"));
        }
        assert_eq!(conflict(other.clone()), None);
        std::fs::write(&other, "").unwrap();
        assert_eq!(conflict(other), None, "it is as empty, and another one");
    }

    #[test]
    fn a_link_to_the_trace_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let [trace, other, report] = ["t.txt", "other.txt", "r.json"].map(|name| folder.path().join(name));
        std::fs::write(&trace, "1\n").unwrap();
        std::fs::write(&other, "1\n").unwrap();
        std::fs::hard_link(&trace, &report).unwrap();
        let output = OutputArgs { json: Some(report), html: None };
        let conflict =
            |traces: &[&PathBuf]| output.conflict(&traces.iter().copied().cloned().collect::<Vec<_>>());
        assert!(conflict(&[&other, &trace]).unwrap().contains("overwrite the trace"));
        assert_eq!(conflict(&[&other]), None);
    }
}
