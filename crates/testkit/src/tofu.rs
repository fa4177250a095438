//! The real OpenTofu in a folder, with a mirror as the only source of providers.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::parts;

#[derive(Debug)]
pub struct Tofu {
    folder: PathBuf,
    config: PathBuf,
}

impl Tofu {
    /// Makes the folder, and beside it the CLI configuration that names the mirror.
    pub fn new(folder: &Path, mirror: &Path) -> io::Result<Tofu> {
        std::fs::create_dir_all(folder)?;
        let config = folder.with_extension("tofurc");
        let mirror = mirror.display().to_string();
        std::fs::write(
            &config,
            format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror:?}\n  }}\n}}\n"),
        )?;
        Ok(Tofu { folder: folder.into(), config })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The CLI configuration, for whoever else should see the same mirror.
    pub fn config(&self) -> &Path {
        &self.config
    }

    pub fn write(&self, name: &str, content: &str) -> io::Result<()> {
        std::fs::write(self.folder.join(name), content)
    }

    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> io::Result<Output> {
        Command::new(parts::tofu())
            .args(args)
            .current_dir(&self.folder)
            .env("TF_CLI_CONFIG_FILE", &self.config)
            .env("CHECKPOINT_DISABLE", "1")
            .env_remove("TF_DATA_DIR")
            .output()
    }
}
