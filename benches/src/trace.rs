//! Reads key traces: plain text with one key a line, or comma-separated columns under a header that names `key`, and
//! perhaps `size`.
//!
//! Keys and sizes are unsigned 64-bit integers in decimal. Blank lines and lines that start with `#` are skipped, and so is
//! the mark by which some programs begin UTF-8.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use super::error::{Error, name_of, printable};

/// Spreadsheet programs put it before the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A line of more bytes cannot be part of a trace, and is not read to its end: it may have none, as in `/dev/zero`.
const LONGEST_LINE: usize = 1 << 20;

/// A trace: the distinct keys in order of first appearance, and the requests as indices into them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Every key once.
    pub keys: Vec<u64>,
    /// The size of each key in its first request; empty if the trace has no sizes.
    pub sizes: Vec<u64>,
    /// The requests in order; each is an index into `keys`.
    pub requests: Vec<u32>,
}

/// Reads the trace in `path`.
///
/// # Errors
///
/// A message with the file, and with the line where there is one, if the file cannot be read, holds no key, or
/// has a line that is not a key.
pub fn read(path: &Path) -> Result<Trace, Error> {
    let name = name_of(path);
    let told = |problem: &dyn std::fmt::Display| Error::Input(format!("{name}: {problem}"));
    // Checked first: not every system can open a folder.
    if path.is_dir() {
        return Err(told(&"is a folder, not a file"));
    }
    let file = File::open(path).map_err(|e| told(&e))?;
    parse(BufReader::new(file), &name)
}

/// Reads a trace from `input`; `name` is its name in messages.
///
/// # Errors
///
/// As [`read`].
pub fn parse(mut input: impl BufRead, name: &str) -> Result<Trace, Error> {
    let mut index_of = HashMap::new();
    let mut trace = Trace::default();
    let mut columns = None;
    let mut line = String::new();
    for number in 1_u64.. {
        let at = |problem: String| Error::Input(format!("{name}:{number}: {problem}"));
        if !read_line(&mut input, &mut line).map_err(|e| at(e.to_string()))? {
            break;
        }
        let line = if number == 1 { line.trim_start_matches(BYTE_ORDER_MARK) } else { &line };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let columns = match &columns {
            Some(columns) => columns,
            None => {
                let (found, is_header) = Columns::named_by(line).map_err(at)?;
                let found = columns.insert(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        let request = columns.request_in(line).map_err(at)?;
        push(&mut trace, &mut index_of, request).map_err(at)?;
    }
    if trace.requests.is_empty() {
        return Err(Error::Input(format!("{name}: the trace holds no key")));
    }
    Ok(trace)
}

/// Reads the next line into `line`; returns whether there is one.
fn read_line(input: &mut impl BufRead, line: &mut String) -> io::Result<bool> {
    line.clear();
    let bytes = input.take(LONGEST_LINE as u64 + 1).read_line(line)?;
    if bytes > LONGEST_LINE && !line.ends_with('\n') {
        let problem = format!("a line of more than {LONGEST_LINE} bytes");
        return Err(io::Error::new(ErrorKind::InvalidData, problem));
    }
    Ok(bytes > 0)
}

/// The columns of keys and sizes, according to the first line.
#[derive(Debug)]
struct Columns {
    /// `None`: one key per line.
    key: Option<usize>,
    size: Option<usize>,
}

impl Columns {
    /// The columns that the first line names; and whether it is a header.
    fn named_by(line: &str) -> Result<(Self, bool), String> {
        if line.parse::<u64>().is_ok() {
            return Ok((Columns { key: None, size: None }, false));
        }
        let column = |name| line.split(',').position(|field| field.trim() == name);
        match column("key") {
            Some(key) => Ok((Columns { key: Some(key), size: column("size") }, true)),
            None => Err(format!(
                "expected a key (an unsigned 64-bit integer) or a header with a column `key`, found `{}`",
                shorten(line)
            )),
        }
    }

    /// Key and size.
    fn request_in(&self, line: &str) -> Result<(u64, Option<u64>), String> {
        let size = self.size.map(|column| number_in(line, Some(column), "size")).transpose();
        Ok((number_in(line, self.key, "key")?, size?))
    }
}

fn number_in(line: &str, column: Option<usize>, what: &str) -> Result<u64, String> {
    let field = match column {
        None => line,
        Some(column) => match line.split(',').nth(column) {
            Some(field) => field.trim(),
            None => {
                return Err(format!("expected a {what} in column {}, found `{}`", column + 1, shorten(line)));
            }
        },
    };
    let problem = |_| format!("expected a {what} (an unsigned 64-bit integer), found `{}`", shorten(field));
    field.parse().map_err(problem)
}

fn push(
    trace: &mut Trace,
    index_of: &mut HashMap<u64, u32>,
    (key, size): (u64, Option<u64>),
) -> Result<(), String> {
    let next = u32::try_from(trace.keys.len()).map_err(|_| "more than 2^32 distinct keys".to_owned())?;
    let index = *index_of.entry(key).or_insert(next);
    if index == next {
        trace.keys.push(key);
        trace.sizes.extend(size);
    }
    trace.requests.push(index);
    Ok(())
}

impl Trace {
    /// A trace of these requests.
    ///
    /// # Panics
    ///
    /// If there are more than 2^32 distinct keys.
    pub fn of(requests: impl Iterator<Item = u64>) -> Self {
        let mut index_of = HashMap::new();
        let mut trace = Trace::default();
        for key in requests {
            push(&mut trace, &mut index_of, (key, None)).expect("fewer distinct keys");
        }
        trace
    }
}

/// Enough of a bad line to recognize it, with all control characters escaped, which a terminal would obey.
fn shorten(line: &str) -> String {
    match line.char_indices().nth(40) {
        Some((end, _)) => printable(&line[..end]) + "...",
        None => printable(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_str(text: &str) -> Result<Trace, String> {
        parse(text.as_bytes(), "t.txt").map_err(|e| e.to_string())
    }

    #[test]
    fn plain_lines_and_csv_give_the_same_trace() {
        let expected = Trace { keys: vec![7, 9], sizes: Vec::new(), requests: vec![0, 1, 0] };
        assert_eq!(parse_str("7\n9\n7\n"), Ok(expected.clone()));
        assert_eq!(parse_str("# a comment\n\n7\r\n9\r\n7"), Ok(expected.clone()));
        assert_eq!(parse_str("key\n7\n9\n7\n"), Ok(expected.clone()));
        assert_eq!(Trace::of([7, 9, 7].into_iter()), expected);
        let sized = Trace { sizes: vec![512, 1024], ..expected };
        // Later sizes of a key do not count.
        assert_eq!(parse_str("key,size\n7,512\n9,1024\n7,9\n"), Ok(sized.clone()));
        assert_eq!(parse_str("\u{feff}size, key\n512,7\n1024, 9\n512,7\n"), Ok(sized));
        assert_eq!(parse_str("\u{feff}7").unwrap().keys, [7]);
        assert_eq!(parse_str("18446744073709551615").unwrap().keys, [u64::MAX]);
    }

    #[test]
    fn bad_lines_are_named_with_file_and_number() {
        let message = |text: &str| parse_str(text).unwrap_err();
        assert_eq!(message(""), "t.txt: the trace holds no key");
        assert_eq!(message("key,size\n"), "t.txt: the trace holds no key");
        assert!(message("7\n9\nx1\n").starts_with("t.txt:3: "), "{}", message("7\n9\nx1\n"));
        assert!(message("7\n-9\n").starts_with("t.txt:2: "));
        assert!(message("7\n\u{feff}9\n").starts_with("t.txt:2: "), "only before all lines");
        assert!(message("7\n18446744073709551616\n").starts_with("t.txt:2: "));
        assert!(message("name,size\n7,1\n").starts_with("t.txt:1: "));
        assert!(message("size,key\n1,2\n3\n").starts_with("t.txt:3: expected a key in column 2"));
        assert!(message("7,512\n").starts_with("t.txt:1: "));
        assert!(message("key,size\n7,512\n8\n").starts_with("t.txt:3: expected a size in column 2"));
        assert!(message("key,size\n7,big\n").starts_with("t.txt:2: expected a size (an unsigned"));
        let long = message(&"y".repeat(1000));
        assert!(long.len() < 200 && long.ends_with("...`"), "{long}");
        let shown = message("7\r9\r\x1B[2J");
        assert!(shown.ends_with("found `7\\r9\\r\\u{1b}[2J`"), "{shown}");
        assert!(parse(&b"7\n\xff\xfe\n"[..], "t.txt").unwrap_err().to_string().starts_with("t.txt:2: "));
    }

    #[test]
    fn what_has_no_lines_is_not_read_to_its_end() {
        let mut endless = BufReader::new(io::repeat(b'7').take(16 * LONGEST_LINE as u64));
        let message = parse(&mut endless, "t.txt").unwrap_err().to_string();
        assert!(message.starts_with("t.txt:1: a line of more than 1048576 bytes"), "{message}");
        assert!(endless.get_ref().limit() > 0, "all was read");
        let longest = format!("key,{}\n7,1\n", "c".repeat(LONGEST_LINE - 5));
        assert_eq!(parse_str(&longest).unwrap().keys, [7]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = read(Path::new("no/such/trace.txt")).unwrap_err().to_string();
        assert!(message.starts_with("no/such/trace.txt: "), "{message}");
        let message = read(Path::new("no/such\n\x1B[31mtrace")).unwrap_err().to_string();
        assert!(message.starts_with(r"no/such\n\u{1b}[31mtrace: "), "{message}");
        let folder = std::env::temp_dir();
        assert!(!read(&folder).unwrap_err().to_string().contains(":1:"), "a folder has no lines");
    }
}
