//! Errors, and their exit codes.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// The exit code that shells use for a program that was ended by Ctrl-C.
pub const STOPPED: u8 = 130;

/// Why a command ended early.
#[derive(Debug)]
pub enum Error {
    /// Contestants gave answers that the workloads rule out.
    Check(Vec<CheckError>),
    /// Input that cannot be used: a file, or a combination of options.
    Input(String),
    /// Ctrl-C was pressed, or another signal asked the program to end.
    Stopped,
    /// Nobody reads the output, and no report is written.
    Unheard,
}

/// An answer that the workload rules out, or a refusal: which contestant, in which workload, and the details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckError {
    /// The contestant as the tables name it.
    pub contestant: String,
    /// The workload, as the tables name it; empty until the command fills it in.
    pub workload: String,
    /// The expected and the actual answer.
    pub detail: String,
    /// Whether it is a refusal: then nothing is wrong, but the contestant cannot do what is asked of it.
    pub is_refusal: bool,
}

impl CheckError {
    /// A failure of `contestant`; the workload is added by [`CheckError::during`].
    pub fn new(contestant: &str, detail: impl Into<String>) -> Self {
        let (contestant, workload) = (contestant.to_owned(), String::new());
        CheckError { contestant, workload, detail: detail.into(), is_refusal: false }
    }

    /// A refusal of `contestant`, and why.
    pub fn refusal(contestant: &str, why: impl Into<String>) -> Self {
        CheckError { is_refusal: true, ..CheckError::new(contestant, why) }
    }

    /// The same failure, with the workload in which it happened.
    #[must_use]
    pub fn during(self, workload: &str) -> Self {
        CheckError { workload: workload.to_owned(), ..self }
    }
}

/// Foreign text with all control characters escaped, which a terminal would obey.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// The name of a file, for messages and tables.
pub fn name_of(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

impl Error {
    /// The message, with one line for each failure.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Error::Check(failures) => failures.iter().map(CheckError::to_string).collect(),
            Error::Input(message) => vec![message.clone()],
            Error::Stopped => vec!["stopped before all was measured".to_owned()],
            Error::Unheard => vec!["nobody reads what is measured".to_owned()],
        }
    }

    /// 1 for a failed check, 2 for bad input, 130 for Ctrl-C and the like; 0 if nobody reads the output, as in `koel-bench |
    /// head`.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Error::Check(_) => ExitCode::from(1),
            Error::Input(_) => ExitCode::from(2),
            Error::Stopped => ExitCode::from(STOPPED),
            Error::Unheard => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = if self.is_refusal { "" } else { "check failed: " };
        write!(f, "{begin}{} in {}: {}", self.contestant, self.workload, self.detail)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

impl std::error::Error for CheckError {}

impl std::error::Error for Error {}

impl From<CheckError> for Error {
    fn from(failure: CheckError) -> Self {
        Error::Check(vec![failure])
    }
}
