use landform_base::seal::SealError;
use landform_domain::{Code, Problem};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The caller asked for something that is refused.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// The deployment's epoch is not the caller's any more: somebody else has taken over, and nothing was written.
    #[error("another worker has taken over this deployment; nothing was written")]
    Fenced,
    #[error("the store is already in use: {0}")]
    InUse(String),
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("the store holds something unexpected: {0}")]
    Corrupt(String),
    #[error("{context}: {source}")]
    Io { context: String, source: std::io::Error },
}

impl StoreError {
    /// What a caller may be told. The rest belongs into the log.
    pub fn problem(&self) -> Problem {
        match self {
            StoreError::Refused(problem) => problem.clone(),
            StoreError::Unavailable(_) | StoreError::InUse(_) => {
                Problem::new(Code::StoreUnavailable, "the store cannot be reached")
            }
            StoreError::Fenced | StoreError::Seal(_) | StoreError::Corrupt(_) | StoreError::Io { .. } => {
                Problem::new(Code::Internal, "something is wrong inside")
            }
        }
    }

    /// The same call may work later.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable(_))
    }

    pub(crate) fn migration(error: sqlx::migrate::MigrateError) -> StoreError {
        StoreError::Unavailable(format!("cannot bring the tables up to date: {error}"))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) | sqlx::Error::Decode(_) => {
                StoreError::Corrupt(error.to_string())
            }
            other => StoreError::Unavailable(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error {
            rusqlite::Error::SqliteFailure(..) => StoreError::Unavailable(error.to_string()),
            other => StoreError::Corrupt(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> StoreError {
        StoreError::Corrupt(error.to_string())
    }
}
