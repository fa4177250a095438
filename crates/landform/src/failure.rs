use std::process::ExitCode;

use landform_api::{ClientError, ProblemBody};

/// How a command ends when it did not do what it was asked to. Exit codes are a contract: see `landform --help`.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    problem: ProblemBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The run ended without success.
    RunFailed = 1,
    /// The command line, or a file that it names, makes no sense.
    Usage = 2,
    /// The server refused the request.
    Refused = 3,
    Unreachable = 4,
    /// The run goes on after somebody has approved it or answered its doubts.
    WaitsForAPerson = 5,
    /// Something is broken on this machine.
    Broken = 6,
    /// Ctrl-C while watching: the run goes on.
    Interrupted = 130,
}

pub const EXIT_CODES: &str = "\
Exit codes:
  0    done; with --wait: the run succeeded
  1    the run ended without success
  2    wrong usage
  3    the server refused the request
  4    the server cannot be reached
  5    the run waits for approval or recovery
  6    something is broken on this machine
  130  interrupted while watching; the run goes on";

impl Failure {
    pub fn new(exit: Exit, code: &str, detail: impl Into<String>, hint: impl Into<String>) -> Failure {
        let problem = ProblemBody {
            status: None,
            title: code.replace('_', " "),
            code: code.to_owned(),
            detail: detail.into(),
            hint: hint.into(),
        };
        Failure { exit, problem }
    }

    pub fn usage(detail: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, "usage", detail, hint)
    }

    pub fn broken(detail: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::new(Exit::Broken, "broken", detail, hint)
    }

    pub fn detail(&self) -> &str {
        &self.problem.detail
    }

    /// Says what happened on standard error and gives the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
        if json {
            eprintln!("{}", serde_json::to_string(&self.problem).expect("a problem is plain data"));
        } else {
            eprintln!("error: {} ({})", self.problem.detail, self.problem.code);
            if !self.problem.hint.is_empty() {
                eprintln!("hint: {}", self.problem.hint);
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

impl From<ProblemBody> for Failure {
    fn from(problem: ProblemBody) -> Failure {
        Failure { exit: Exit::Refused, problem }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let text = error.to_string();
        match error {
            ClientError::Refused(problem) => problem.into(),
            ClientError::Unreachable { .. } => Failure::new(
                Exit::Unreachable,
                "unreachable",
                text,
                "Start it with `landform serve`, or name another one with --server.",
            ),
            ClientError::Garbled(_) => {
                Failure::new(Exit::Unreachable, "garbled", text, "Is it a Landform server of this version?")
            }
        }
    }
}
