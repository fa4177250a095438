//! Plans on the disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use landform_engine::native::Ink;
use landform_engine::{Diagnostic, EngineError, Plan, Unsupported, Variable};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use super::Failure;

/// A saved plan with the variables that it was made with: an apply of it takes no others, but for those that are
/// ephemeral. These are not kept, and are asked for again.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    landform_plan: u32,
    pub plan: Plan,
    pub pages: Pages,
    pub variables: BTreeMap<String, serde_json::Value>,
    pub destroying: bool,
}

/// A plan as people read it: it cannot be written again without the providers' schemas.
#[derive(Default, Serialize, Deserialize)]
pub struct Pages {
    pub plain: String,
    pub coloured: String,
}

impl Pages {
    pub fn on(&self, ink: Ink) -> &str {
        match ink {
            Ink::Plain => &self.plain,
            Ink::Coloured => &self.coloured,
        }
    }
}

/// How OpenTofu's plans begin: they are archives.
const OPENTOFU: &[u8] = b"PK";

impl Saved {
    pub fn new(
        plan: Plan,
        pages: Pages,
        variables: &BTreeMap<String, Variable>,
        ephemeral: &BTreeSet<String>,
        destroying: bool,
    ) -> Saved {
        let lasting = variables.iter().filter(|(name, _)| !ephemeral.contains(*name));
        let variables = lasting.map(|(name, variable)| (name.clone(), variable.value.clone())).collect();
        Saved { landform_plan: 3, plan, pages, variables, destroying }
    }

    /// A plan holds secrets, so nobody else may read it.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        let open = || OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        open().and_then(|mut file| file.write_all(&bytes)).with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn read(path: &Path) -> Result<Saved, Failure> {
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let name = path.display().to_string();
                let summary = format!("Failed to load {name:?} as a plan file");
                let detail = format!("Error: stat {name}: no such file or directory");
                Failure::Engine(EngineError::Diagnostics(vec![Diagnostic::error(summary, detail)]))
            }
            _ => anyhow::Error::from(error).context(format!("cannot read {}", path.display())).into(),
        })?;
        if bytes.starts_with(OPENTOFU) {
            let construct = format!("plan of OpenTofu in {}", path.display());
            return Err(EngineError::Unsupported(vec![Unsupported { construct, range: None }]).into());
        }
        let saved = serde_json::from_slice(&bytes);
        Ok(saved.with_context(|| format!("{} is not a plan of landform tf", path.display()))?)
    }

    pub fn variables(&self) -> BTreeMap<String, Variable> {
        let variable = |value: &serde_json::Value| Variable::new(value.clone(), false);
        self.variables.iter().map(|(name, value)| (name.clone(), variable(value))).collect()
    }
}
