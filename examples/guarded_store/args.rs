//! The command line.

use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

const HELP: &str = "\
Reads a redb database with and without a guard, while a writer puts and deletes.

  --db FILE        the database; made if it is missing [default: a temporary one]
  --keys FILE      put these keys into it, one a line [default: the keys that are in it, or 1,000,000 new ones]
  --requests FILE  look these keys up, one a line [default: the database's keys and as many absent ones]
  --seconds N      length of a turn [default: 3]

Exit codes: 0 done; 2 bad input; 130 stopped by Ctrl-C.";

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) db: Option<PathBuf>,
    pub(crate) keys: Option<PathBuf>,
    pub(crate) requests: Option<PathBuf>,
    pub(crate) seconds: f64,
}

impl Args {
    /// `None` if help was asked for, and given.
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
                    args.seconds = parser.value().and_then(|value| value.parse()).map_err(told)?;
                    if !(0.01..=3600.0).contains(&args.seconds) {
                        return Err(format!("--seconds {}: 0.01 to 3600 are possible", args.seconds));
                    }
                }
                Arg::Short('h') | Arg::Long("help") => {
                    println!("{HELP}");
                    return Ok(None);
                }
                other => return Err(told(other.unexpected())),
            }
        }
        Ok(Some(args))
    }
}
