//! What can go wrong, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug)]
pub enum Error {
    /// A contestant gave an answer that the workload rules out.
    Check(CheckError),
    /// Input that cannot be used: a file, or a combination of options.
    Input(String),
}

/// An answer that the workload rules out: which contestant, in which workload, and what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckError {
    /// The contestant as the tables name it.
    pub contestant: String,
    /// The workload, as the tables name it; empty until the command fills it in.
    pub workload: String,
    /// What was expected and what came.
    pub detail: String,
}

impl CheckError {
    /// A failure of `contestant`; the workload is added by [`CheckError::during`].
    pub fn new(contestant: &str, detail: impl Into<String>) -> Self {
        CheckError { contestant: contestant.to_owned(), workload: String::new(), detail: detail.into() }
    }

    /// The same failure, told with the workload it happened in.
    #[must_use]
    pub fn during(self, workload: &str) -> Self {
        CheckError { workload: workload.to_owned(), ..self }
    }
}

impl Error {
    /// 1 for a failed check, 2 for bad input.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Error::Check(_) => ExitCode::from(1),
            Error::Input(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "check failed: {} in {}: {}", self.contestant, self.workload, self.detail)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Check(failure) => failure.fmt(f),
            Error::Input(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for CheckError {}

impl std::error::Error for Error {}

impl From<CheckError> for Error {
    fn from(failure: CheckError) -> Self {
        Error::Check(failure)
    }
}
