use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::package::{Package, unpack};
use crate::source::Source;
use crate::version::{Constraints, Version};

/// A folder of providers, in the unpacked layout (`HOST/NAMESPACE/NAME/VERSION/OS_ARCH/terraform-provider-NAME`), the
/// packed one (`HOST/NAMESPACE/NAME/terraform-provider-NAME_VERSION_OS_ARCH.zip`), or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    pub path: PathBuf,
    /// Patterns such as `hashicorp/*`; none at all includes everything.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

impl Mirror {
    pub fn new(path: impl Into<PathBuf>) -> Mirror {
        Mirror { path: path.into(), include: Vec::new(), exclude: Vec::new() }
    }

    fn serves(&self, source: &Source) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, source));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }

    /// The versions here. What has another form than a mirror's is no part of it.
    fn versions(&self, source: &Source) -> Vec<(Version, Package)> {
        let folder = self.path.join(&source.host).join(&source.namespace).join(&source.name);
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let found = entries.flatten().filter_map(|entry| {
            let (file, path) = (entry.file_name(), entry.path());
            let file = file.to_str()?;
            if path.is_dir() {
                let package = path.join(platform());
                return Some((file.parse().ok()?, Package::Folder(executable(&package, source).map(|_| package)?)));
            }
            let version = file.strip_prefix(&format!("terraform-provider-{}_", source.name))?;
            let version = version.strip_suffix(&format!("_{}.zip", platform()))?;
            Some((version.parse().ok()?, Package::Archive(path)))
        });
        found.collect()
    }
}

/// A part of a pattern is a name or `*`; the host may be left out.
fn matches(pattern: &str, source: &Source) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    let (host, namespace, name) = match parts[..] {
        [namespace, name] => ("registry.opentofu.org", namespace, name),
        [host, namespace, name] => (host, namespace, name),
        _ => return false,
    };
    let part = |pattern: &str, actual: &str| pattern == "*" || pattern.eq_ignore_ascii_case(actual);
    // `*/*` is everything on the default host, as any pattern without one is.
    part(host, &source.host) && part(namespace, &source.namespace) && part(name, &source.name)
}

/// This machine's name in mirrors.
pub fn platform() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{os}_{arch}")
}

/// The provider's executable in a package's folder: `terraform-provider-NAME`, often with `_v1.2.3` behind it.
fn executable(folder: &Path, source: &Source) -> Option<PathBuf> {
    let name = format!("terraform-provider-{}", source.name);
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter(|entry| {
            let file = entry.file_name();
            let rest = file.to_str().and_then(|file| file.strip_prefix(&name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
        .map(|entry| entry.path())
        .filter(|path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0))
        .collect();
    found.sort();
    found.into_iter().next()
}

/// All places where a provider may be, in the order of preference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Folders that hold a developer's own build. Versions do not matter there.
    pub dev_overrides: BTreeMap<Source, PathBuf>,
    pub mirrors: Vec<Mirror>,
    /// Where packed providers are unpacked to. Without it they cannot be used.
    pub unpacked: Option<PathBuf>,
}

/// A provider that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub source: Source,
    /// None for a developer's own build.
    pub version: Option<Version>,
    pub binary: PathBuf,
    /// What it was taken from; None for a developer's own build.
    pub package: Option<Package>,
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error(
        "provider {source_address} {} is not installed here; looked in {}{}",
        wanted(constraints, locked.as_deref()),
        list(looked.iter().map(|path| path.display().to_string())),
        if there.is_empty() { String::new() } else { format!("; found only {}", list(there.iter().map(ToString::to_string))) },
    )]
    Missing {
        source_address: Box<Source>,
        constraints: Constraints,
        locked: Option<Box<Version>>,
        looked: Vec<PathBuf>,
        there: Vec<Version>,
    },
    #[error("the package {} cannot be unpacked: {source}", archive.display())]
    Unpack { archive: PathBuf, source: io::Error },
    #[error("the package {} has no executable of {source_address}", archive.display())]
    EmptyPackage { source_address: Box<Source>, archive: PathBuf },
    #[error(
        "the lock file has chosen {source_address} {locked}, which the configuration does not allow ({constraints}); \
         run `tofu init -upgrade`"
    )]
    LockedOut { source_address: Box<Source>, locked: Box<Version>, constraints: Constraints },
    #[error("the override for {source_address} names {}, which has no executable of that provider", folder.display())]
    EmptyOverride { source_address: Box<Source>, folder: PathBuf },
    #[error("{0} is part of the program and has no binary")]
    Builtin(Box<Source>),
}

fn wanted(constraints: &Constraints, locked: Option<&Version>) -> String {
    match locked {
        Some(version) => format!("{version} (chosen by the lock file)"),
        None if constraints.is_empty() => "(any version)".into(),
        None => format!("({constraints})"),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "no folder at all".into() } else { items.join(", ") }
}

impl Places {
    /// Filesystem mirrors alone.
    pub fn mirrors<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Places {
        Places { mirrors: paths.into_iter().map(Mirror::new).collect(), ..Places::default() }
    }

    /// The same, with packed providers unpacked into this folder.
    pub fn unpacking_into(self, folder: impl Into<PathBuf>) -> Places {
        Places { unpacked: Some(folder.into()), ..self }
    }

    /// The newest version that is allowed, or the locked one. Of the same version in two places, the first counts.
    pub fn find(
        &self,
        source: &Source,
        constraints: &Constraints,
        locked: Option<&Version>,
    ) -> Result<Found, FindError> {
        let source_address = || Box::new(source.clone());
        if source.is_builtin() {
            return Err(FindError::Builtin(source_address()));
        }
        if let Some(folder) = self.dev_overrides.get(source) {
            let empty = || FindError::EmptyOverride { source_address: source_address(), folder: folder.clone() };
            let binary = executable(folder, source).ok_or_else(empty)?;
            return Ok(Found { source: source.clone(), version: None, binary, package: None });
        }
        if let Some(locked) = locked.filter(|locked| !constraints.allow(locked)) {
            let (locked, constraints) = (Box::new(locked.clone()), constraints.clone());
            return Err(FindError::LockedOut { source_address: source_address(), locked, constraints });
        }
        let serving: Vec<&Mirror> = self.mirrors.iter().filter(|mirror| mirror.serves(source)).collect();
        let mut there: BTreeMap<Version, Package> = BTreeMap::new();
        for mirror in &serving {
            let mut versions = mirror.versions(source);
            // Of one mirror, what is unpacked needs no work.
            versions.sort_by_key(|(_, package)| matches!(package, Package::Archive(_)));
            for (version, package) in versions {
                there.entry(version).or_insert(package);
            }
        }
        let fits = |version: &Version| match locked {
            Some(locked) => version == locked,
            None => constraints.allow(version),
        };
        match there.iter().rev().find(|(version, _)| fits(version)) {
            Some((version, package)) => {
                let binary = self.binary(source, package)?;
                let (version, package) = (Some(version.clone()), Some(package.clone()));
                Ok(Found { source: source.clone(), version, binary, package })
            }
            None => Err(FindError::Missing {
                source_address: source_address(),
                constraints: constraints.clone(),
                locked: locked.cloned().map(Box::new),
                looked: serving.iter().map(|mirror| mirror.path.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
                there: there.into_keys().collect(),
            }),
        }
    }

    fn binary(&self, source: &Source, package: &Package) -> Result<PathBuf, FindError> {
        let folder = match package {
            Package::Folder(folder) => folder.clone(),
            Package::Archive(archive) => {
                let failed = |error| FindError::Unpack { archive: archive.clone(), source: error };
                let nowhere = || failed(io::Error::other("there is no folder to unpack it into"));
                let cache = self.unpacked.as_ref().ok_or_else(nowhere)?;
                unpack(archive, cache).map_err(failed)?
            }
        };
        let archive = package.path().to_owned();
        executable(&folder, source)
            .ok_or_else(|| FindError::EmptyPackage { source_address: Box::new(source.clone()), archive })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(mirror: &Path, address: &str, version: &str) -> PathBuf {
        let name = address.rsplit('/').next().unwrap();
        let folder = mirror.join(address).join(version).join(platform());
        std::fs::create_dir_all(&folder).unwrap();
        let binary = folder.join(format!("terraform-provider-{name}_v{version}"));
        std::fs::write(&binary, "").unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(folder.join("LICENSE.txt"), "").unwrap();
        binary
    }

    const TIME: &str = "registry.opentofu.org/hashicorp/time";

    fn find(places: &Places, constraints: &str, locked: Option<&str>) -> Result<String, FindError> {
        let locked = locked.map(|version| version.parse().unwrap());
        let found = places.find(&TIME.parse().unwrap(), &constraints.parse().unwrap(), locked.as_ref())?;
        Ok(found.version.unwrap().to_string())
    }

    #[test]
    fn the_newest_allowed_version_is_taken_and_a_lock_decides() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        install(one.path(), TIME, "0.9.0");
        install(one.path(), TIME, "0.14.2");
        install(two.path(), TIME, "0.15.0-beta.1");
        install(two.path(), TIME, "0.10.0");
        let first = install(one.path(), TIME, "0.10.0");
        let places = Places::mirrors([one.path(), two.path()]);
        assert_eq!(find(&places, "", None).unwrap(), "0.14.2");
        assert_eq!(find(&places, "~> 0.10.0", None).unwrap(), "0.10.0");
        assert_eq!(find(&places, "0.15.0-beta.1", None).unwrap(), "0.15.0-beta.1");
        assert_eq!(find(&places, ">= 0.9", Some("0.9.0")).unwrap(), "0.9.0");
        assert!(matches!(find(&places, "> 0.9.0", Some("0.9.0")), Err(FindError::LockedOut { .. })));
        let exact = places.find(&TIME.parse().unwrap(), &"0.10.0".parse().unwrap(), None).unwrap();
        assert_eq!(exact.binary, first, "the first place counts");
    }

    #[test]
    fn another_host_is_another_provider_and_the_error_says_where_it_was_looked_for() {
        let mirror = tempfile::tempdir().unwrap();
        install(mirror.path(), "registry.terraform.io/hashicorp/time", "0.14.2");
        install(mirror.path(), TIME, "0.1.0");
        let places = Places::mirrors([mirror.path()]);
        let error = find(&places, ">= 0.14", None).unwrap_err().to_string();
        let path = mirror.path().display().to_string();
        for part in ["registry.opentofu.org/hashicorp/time", ">= 0.14", &path, "found only 0.1.0"] {
            assert!(error.contains(part), "{error:?} does not say {part:?}");
        }
        let error = find(&places, "", Some("0.2.0")).unwrap_err().to_string();
        assert!(error.contains("0.2.0 (chosen by the lock file)"), "{error}");
        let error = find(&Places::default(), "", None).unwrap_err().to_string();
        assert!(error.contains("no folder at all"), "{error}");
    }

    #[test]
    fn patterns_choose_the_mirror() {
        let mirror = tempfile::tempdir().unwrap();
        install(mirror.path(), TIME, "0.14.2");
        let with = |include: &[&str], exclude: &[&str]| {
            let texts = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect();
            let mirror = Mirror { path: mirror.path().into(), include: texts(include), exclude: texts(exclude) };
            find(&Places { mirrors: vec![mirror], ..Places::default() }, "", None).is_ok()
        };
        assert!(with(&[], &[]) && with(&["hashicorp/*"], &[]) && with(&["*/*/*"], &["coder/*"]));
        assert!(!with(&["coder/*"], &[]) && !with(&[], &["hashicorp/time"]) && !with(&["example.com/*/*"], &[]));
    }

    #[test]
    fn an_override_needs_no_version() {
        let mirror = tempfile::tempdir().unwrap();
        let binary = install(mirror.path(), TIME, "0.14.2");
        let source: Source = TIME.parse().unwrap();
        let folder = binary.parent().unwrap().to_owned();
        let places = Places { dev_overrides: BTreeMap::from([(source.clone(), folder)]), ..Places::default() };
        let found = places.find(&source, &">= 99".parse().unwrap(), None).unwrap();
        assert_eq!(found, Found { source: source.clone(), version: None, binary, package: None });
        let empty = BTreeMap::from([(source.clone(), mirror.path().to_owned())]);
        let places = Places { dev_overrides: empty, ..Places::default() };
        let error = places.find(&source, &Constraints::default(), None).unwrap_err();
        assert!(matches!(error, FindError::EmptyOverride { .. }));
    }

    #[test]
    fn what_is_not_a_package_is_passed_over() {
        let mirror = tempfile::tempdir().unwrap();
        let folder = mirror.path().join(TIME);
        std::fs::create_dir_all(folder.join("not-a-version").join(platform())).unwrap();
        std::fs::create_dir_all(folder.join("1.0.0").join(platform())).unwrap();
        std::fs::write(folder.join("terraform-provider-time_1.0.0_plan9_mips.zip"), "").unwrap();
        std::fs::write(folder.join("terraform-provider-other_1.0.0_linux_amd64.zip"), "").unwrap();
        let error = find(&Places::mirrors([mirror.path()]), "", None).unwrap_err();
        assert!(matches!(error, FindError::Missing { .. }), "{error}");
        let builtin = Places::default().find(&Source::implied("terraform").unwrap(), &Constraints::default(), None);
        assert!(matches!(builtin, Err(FindError::Builtin(_))));
    }
}
