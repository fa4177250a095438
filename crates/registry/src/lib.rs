//! Finding provider binaries on this machine: what `tofu init` has installed, filesystem mirrors, and developers'
//! overrides, as the CLI's own configuration names them.
//!
//! Promises: a provider under another host name is another provider; of the versions that the constraints allow, the
//! newest is taken, or exactly the one that the lock file names; a provider that cannot be found is an error that says
//! where it was looked for.
//! Absent on purpose: running binaries (see `plugin`, which also hashes them), and, for now, registries on the
//! network, packed mirrors and the lock file's checksums.

mod cli_config;
mod find;
mod lock;
mod settings;
mod source;
mod version;

pub use cli_config::{CliConfig, ConfigError};
pub use find::{FindError, Found, Mirror, Places};
pub use lock::{LockError, LockFile};
pub use source::{Source, SourceError};
pub use version::{Constraints, Version, VersionError};
