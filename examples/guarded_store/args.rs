//! The command line.

use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

use crate::console;

const HELP: &str = "\
Reads a redb database with and without a guard, while a writer puts and deletes.

Usage: guarded_store [--db FILE] [--keys FILE] [--requests FILE] [--seconds N]

  --db FILE        the database; made if it is missing. Its filter is kept in FILE.filter [default: a temporary one]
  --keys FILE      put these keys into it, one a line, each with a value of 100 bytes, which replaces the one that a key
                   has [default: the keys that are in it; 1,000,000 in a new database]
  --requests FILE  look these keys up, one a line [default: the database's keys and as many absent ones]
  --seconds N      length of a turn [default: 3]
  -h, --help       this text

The writer puts and deletes keys of its own, which no key and no request begins with.

Exit codes: 0 done; 1 a wrong answer, or a key that the filter misses; 2 bad input; 130 stopped by Ctrl-C.";

/// The parsed arguments.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) db: Option<PathBuf>,
    pub(crate) keys: Option<PathBuf>,
    pub(crate) requests: Option<PathBuf>,
    pub(crate) seconds: f64,
}

impl Args {
    /// Returns `None` if help was asked for and has been printed.
    pub(crate) fn parse() -> Result<Option<Self>, String> {
        let mut args = Args { db: None, keys: None, requests: None, seconds: 3.0 };
        let told = |error: lexopt::Error| format!("{error}; --help tells what there is");
        let mut parser = Parser::from_env();
        while let Some(arg) = parser.next().map_err(told)? {
            match arg {
                Arg::Long("db") => args.db = Some(parser.value().map_err(told)?.into()),
                Arg::Long("keys") => args.keys = Some(parser.value().map_err(told)?.into()),
                Arg::Long("requests") => args.requests = Some(parser.value().map_err(told)?.into()),
                Arg::Long("seconds") => {
                    let value = parser.value().map_err(told)?;
                    args.seconds =
                        value.parse().map_err(|error| told(error).replacen("", "--seconds: ", 1))?;
                    if !(0.01..=3600.0).contains(&args.seconds) {
                        return Err(format!("--seconds {}: 0.01 to 3600 are possible", args.seconds));
                    }
                }
                Arg::Short('h') | Arg::Long("help") => {
                    return console::print(&HELP).map(|()| None);
                }
                other => return Err(told(other.unexpected())),
            }
        }
        Ok(Some(args))
    }
}
