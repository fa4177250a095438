//! Finding provider binaries on this machine: what `tofu init` has installed, filesystem mirrors, and developers'
//! overrides, as the CLI's own configuration names them.
//!
//! Promises: a provider under another host name is another provider; of the versions that the constraints allow, the
//! newest is taken, or exactly the one that the lock file names, if its package has one of the checksums there; a provider
//! that cannot be found is an error that says where it was looked for; a packed provider is unpacked once, however many
//! want it at the same moment.
//! Absent on purpose: running binaries (see `plugin`), and registries on the network.

mod cli_config;
mod find;
mod lock;
mod package;
mod settings;
mod source;
mod version;

pub use cli_config::{CliConfig, ConfigError};
pub use find::{FindError, Found, Mirror, Places, platform};
pub use lock::{LockError, LockFile, Locked};
pub use package::{Hashes, Package};
pub use source::{Source, SourceError};
pub use version::{Constraints, Version, VersionError};
