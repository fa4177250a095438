//! The CLI's own configuration file, as far as it says where providers are. Settings of no concern here are skipped.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::find::{Mirror, Places};
use crate::settings::{Fault, Item, parse};
use crate::source::Source;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}, line {line}: {detail}", path.display())]
    Malformed { path: PathBuf, line: usize, detail: String },
}

/// What the CLI configuration says about finding providers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CliConfig {
    /// Folders that hold a developer's own build.
    pub dev_overrides: BTreeMap<Source, PathBuf>,
    /// None: the file does not say, and the usual folders are searched.
    pub mirrors: Option<Vec<Mirror>>,
}

impl CliConfig {
    /// The file that the CLI would read: the one that `TF_CLI_CONFIG_FILE` names, or the first of the usual ones.
    pub fn of_user() -> Result<CliConfig, ConfigError> {
        if let Some(named) = std::env::var_os("TF_CLI_CONFIG_FILE").or_else(|| std::env::var_os("TERRAFORM_CONFIG")) {
            // A file that is not there is no reason to stop, for the CLI neither.
            return match CliConfig::read(Path::new(&named)) {
                Err(ConfigError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    Ok(CliConfig::default())
                }
                read => read,
            };
        }
        let home = std::env::home_dir().unwrap_or_default();
        let settings = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        let usual = [home.join(".tofurc"), home.join(".terraformrc"), settings.join("opentofu/tofurc")];
        usual.iter().find(|path| path.is_file()).map_or(Ok(CliConfig::default()), |path| CliConfig::read(path))
    }

    pub fn read(path: &Path) -> Result<CliConfig, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Io { path: path.into(), source })?;
        let malformed = |(line, detail)| ConfigError::Malformed { path: path.into(), line, detail };
        parse(&text).and_then(interpret).map_err(malformed)
    }

    /// Where providers are, for a configuration in `folder`: what was installed there first, then what this file says.
    pub fn places(&self, folder: &Path) -> Places {
        let installed = Mirror::new(folder.join(".terraform/providers"));
        let mirrors = self.mirrors.clone().unwrap_or_else(|| usual_mirrors(folder));
        Places {
            dev_overrides: self.dev_overrides.clone(),
            mirrors: std::iter::once(installed).chain(mirrors).collect(),
            unpacked: Some(folder.join(".terraform/landform")),
        }
    }
}

/// Where the CLI looks when its configuration does not say.
fn usual_mirrors(folder: &Path) -> Vec<Mirror> {
    let home = std::env::home_dir().unwrap_or_default();
    let data = std::env::var_os("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
    let shared = ["/usr/local/share", "/usr/share"].map(PathBuf::from);
    let named = |root: &PathBuf| [root.join("opentofu/plugins"), root.join("terraform/plugins")];
    [folder.join("terraform.d/plugins"), home.join(".terraform.d/plugins")]
        .into_iter()
        .chain(std::iter::once(&data).chain(&shared).flat_map(named))
        .map(Mirror::new)
        .collect()
}

fn interpret(items: Vec<Item>) -> Result<CliConfig, Fault> {
    let mut config = CliConfig::default();
    for installation in items.into_iter().filter(|item| item.key == "provider_installation") {
        let mirrors = config.mirrors.get_or_insert_default();
        for method in installation.block()? {
            match method.key.as_str() {
                "filesystem_mirror" => mirrors.push(mirror(method)?),
                "dev_overrides" => {
                    for entry in method.block()? {
                        let line = entry.line;
                        let source = entry.key.parse().map_err(|error| (line, format!("{error}")))?;
                        config.dev_overrides.insert(source, entry.text()?.into());
                    }
                }
                // Not used here; a provider that is only there is reported as missing, with the places that were.
                "direct" | "network_mirror" | "oci_mirror" => {}
                other => return Err((method.line, format!("{other:?} is not a way to install providers"))),
            }
        }
    }
    Ok(config)
}

fn mirror(method: Item) -> Result<Mirror, Fault> {
    let line = method.line;
    let (mut path, mut include, mut exclude) = (None, Vec::new(), Vec::new());
    for setting in method.block()? {
        match setting.key.as_str() {
            "path" => path = Some(setting.text()?),
            "include" => include = setting.texts()?,
            "exclude" => exclude = setting.texts()?,
            other => return Err((setting.line, format!("a filesystem_mirror has no {other:?}"))),
        }
    }
    let path = path.ok_or((line, "a filesystem_mirror needs a path".to_owned()))?;
    Ok(Mirror { path: path.into(), include, exclude })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CliConfig, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tofurc");
        std::fs::write(&path, text).unwrap();
        CliConfig::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_mirrors_and_overrides_and_skips_the_rest() {
        let config = read(
            r#"
            # a comment
            plugin_cache_dir   = "/cache" // another
            disable_checkpoint = true
            credentials "app.example.com" { token = "x" }
            provider_installation {
              dev_overrides {
                "landform/ledger" = "/home/me/build"
              }
              filesystem_mirror {
                path    = "/mirror \"1\""
                include = ["registry.opentofu.org/*/*", "coder/coder",]
                exclude = []
              }
              /* many
                 lines */
              direct { exclude = ["*/*"] }
            }
            "#,
        )
        .unwrap();
        let ledger: Source = "landform/ledger".parse().unwrap();
        assert_eq!(config.dev_overrides, BTreeMap::from([(ledger, "/home/me/build".into())]));
        let include = vec!["registry.opentofu.org/*/*".to_owned(), "coder/coder".to_owned()];
        let mirror = Mirror { path: "/mirror \"1\"".into(), include, exclude: vec![] };
        assert_eq!(config.mirrors, Some(vec![mirror]));
        assert_eq!(read("").unwrap(), CliConfig::default());
    }

    #[test]
    fn says_where_it_is_wrong() {
        for (text, wrong) in [
            ("provider_installation {", "line 1: the file ends"),
            ("a = 1\nprovider_installation = \"x\"", "line 2: \"provider_installation\" must be a block"),
            ("provider_installation {\n magic {}\n}", "line 2: \"magic\" is not a way"),
            ("provider_installation {\n filesystem_mirror {}\n}", "line 2: a filesystem_mirror needs a path"),
            ("provider_installation {\n dev_overrides {\n \"a/b/c/d\" = \"x\"\n}\n}", "line 3"),
            ("a = \"x\nb = 1", "line 1: a text does not end"),
            ("a = $x", "'$'"),
            ("}", "'}'"),
            ("/* x", "does not end"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wrong), "{error:?} does not say {wrong:?}");
        }
        assert!(read(&"a {".repeat(100_000)).unwrap_err().contains("too deeply"));
    }
}
