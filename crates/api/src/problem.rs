use std::fmt;

use landform_domain::{Code, Problem};
use serde::{Deserialize, Serialize};

/// An error as it is sent: `application/problem+json` with a stable `code` and a `hint`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProblemBody {
    /// The HTTP status; absent where the problem is part of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The code as words.
    pub title: String,
    /// Text, so that a client reads the codes of a newer server, too.
    pub code: String,
    pub detail: String,
    pub hint: String,
}

impl ProblemBody {
    pub fn of(problem: &Problem) -> ProblemBody {
        ProblemBody {
            status: None,
            title: problem.code.as_str().replace('_', " "),
            code: problem.code.as_str().to_owned(),
            detail: problem.message.clone(),
            hint: problem.hint().to_owned(),
        }
    }

    pub fn is(&self, code: Code) -> bool {
        self.code == code.as_str()
    }
}

impl fmt::Display for ProblemBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}
