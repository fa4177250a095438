//! `landform tf init`: finds the providers that a folder needs, and writes down which they are, so that `tofu` could go on.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use landform_engine::native::Requirements;
use landform_engine::{Diagnostic, EngineError, Severity, Unsupported};
use landform_registry::{CliConfig, Constraints, FindError, Found, LockFile, Locked, Source};
use serde_json::json;

use super::commands::{engine, open};
use super::options::{Common, InitOptions};
use super::{Failure, diagnostics, elsewhere, screen};
use crate::inside::Inside;

const DATA: &str = ".terraform";

pub async fn init(folder: &Path, options: &InitOptions) -> Result<ExitCode, Failure> {
    if elsewhere::configuration(folder).next().is_none() {
        say(NOTHING_THERE);
        return Ok(ExitCode::SUCCESS);
    }
    let opened = open(folder, Default::default(), None)?;
    let needed = engine(folder, &Common::default()).requirements(&opened.workspace).inspect_err(|error| {
        if let EngineError::Diagnostics(_) = error {
            eprintln!("{}", screen::ink().say(UNREADABLE));
        }
    })?;
    let places = CliConfig::of_user().map_err(anyhow::Error::from)?.places(folder);
    let mut lock = LockFile::of_folder(folder).map_err(anyhow::Error::from)?;
    let mut packages = Vec::new();
    for (source, version) in &needed.providers {
        let (constraints, source): (Constraints, Source) =
            (version.parse().map_err(wrong)?, source.parse().map_err(wrong)?);
        let built_in = source.is_builtin() || inside(&source, &constraints).is_some();
        let locked = lock.version(&source).filter(|_| !options.upgrade);
        let found = match (!built_in).then(|| places.find(&source, &constraints, locked)).transpose() {
            // That is known without asking anybody.
            Err(error @ FindError::LockedOut { .. }) => Err(error),
            // A registry on the network is not asked here, but `tofu` asks it.
            Err(error) => return Err(not_here(error.to_string())),
            Ok(found) => Ok(found),
        };
        packages.push(Package { source, constraints, locked: locked.is_some(), found });
    }
    // From here on nothing is left to `tofu`, which would say all this again.
    if options.backend {
        say("\n[reset][bold]Initializing the backend...");
    }
    write_modules(folder, &needed, options.upgrade)?;
    if options.upgrade && options.lockfile.is_some() {
        eprintln!("The -upgrade flag conflicts with -lockfile=readonly.");
        return Ok(ExitCode::FAILURE);
    }
    say("\n[reset][bold]Initializing provider plugins...");
    packages.sort_by_key(|package| !matches!(package.found, Ok(None)));
    packages.iter().for_each(Package::announce);
    let before = lock.selections().next().is_some().then(|| lock.clone());
    let mut local = Vec::new();
    let mut failed = Vec::new();
    for package in packages {
        match package.found {
            Ok(None) => {}
            Ok(Some(found)) => {
                if lock.version(&found.source) == found.version.as_ref() {
                    lock.check(&found).map_err(anyhow::Error::from)?;
                }
                if install(folder, &found, package.constraints.normalised(), &mut lock)? {
                    local.push(shown(&found.source));
                }
            }
            Err(error) => failed.push(locked_out(&error)),
        }
    }
    if !failed.is_empty() {
        return Err(EngineError::Diagnostics(failed).into());
    }
    let warnings = record(folder, before.as_ref(), &lock, &local, options.lockfile.is_some())?;
    println!();
    diagnostics::diagnostics(&warnings, false, false);
    say("[reset][bold][green]OpenTofu has been successfully initialized![reset][green]");
    say(NOW_BEGIN);
    Ok(ExitCode::SUCCESS)
}

const NOTHING_THERE: &str = "[reset][bold]OpenTofu initialized in an empty directory![reset]\n\nThe directory has no OpenTofu \
    configuration files. You may begin working\nwith OpenTofu immediately by creating OpenTofu configuration files.";

const UNREADABLE: &str = "\n[reset]OpenTofu encountered problems during initialization, including problems\nwith the \
    configuration, described below.\n\nThe OpenTofu configuration must be valid before initialization so that\nOpenTofu can \
    determine which modules and providers need to be installed.";

const NOW_BEGIN: &str = "[reset][green]\nYou may now begin working with OpenTofu. Try running \"tofu plan\" to see\nany changes \
    that are required for your infrastructure. All OpenTofu commands\nshould now work.\n\nIf you ever set or change modules or \
    backend configuration for OpenTofu,\nrerun this command to reinitialize your working directory. If you forget, other\ncommands \
    will detect it and remind you to do so if necessary.";

fn say(text: &str) {
    println!("{}", screen::ink().say(text));
}

/// A provider that the folder needs.
struct Package {
    source: Source,
    constraints: Constraints,
    /// By the lock file, whose choice stands.
    locked: bool,
    /// None if it is a part of this program.
    found: Result<Option<Found>, FindError>,
}

impl Package {
    fn announce(&self) {
        let source = shown(&self.source);
        match &self.found {
            Ok(None) if self.source.is_builtin() => println!("- {source} is built in to OpenTofu"),
            Ok(None) => println!("- {source} is built in to Landform"),
            _ if self.locked => println!("- Reusing previous version of {source} from the dependency lock file"),
            _ if self.constraints.is_empty() => println!("- Finding latest version of {source}..."),
            _ => println!("- Finding {source} versions matching \"{}\"...", self.constraints.normalised()),
        }
    }
}

/// Without the host that is meant where none is named.
fn shown(source: &Source) -> String {
    let whole = source.to_string();
    whole.strip_prefix("registry.opentofu.org/").map_or(whole.clone(), str::to_owned)
}

fn locked_out(error: &FindError) -> Diagnostic {
    let detail = match error {
        FindError::LockedOut { source_address, locked, constraints } => format!(
            "Could not resolve provider {}: locked provider {source_address} {locked} does not match configured version \
             constraint {}; must use tofu init -upgrade to allow selection of new versions",
            shown(source_address),
            constraints.normalised()
        ),
        other => other.to_string(),
    };
    Diagnostic::error("Failed to resolve provider packages", detail)
}

/// What a lock file says of each provider. What the configuration wanted of its version is not among it.
fn choices(lock: &LockFile) -> BTreeMap<String, (String, Vec<String>)> {
    let choice = |(source, locked): (&Source, &Locked)| {
        (source.to_string(), (locked.version.to_string(), locked.hashes.clone()))
    };
    lock.selections().map(choice).collect()
}

/// Writes the lock file, if it has something new to say. `local` are the providers whose checksums nobody but this machine has
/// said. Returns what there is to warn of.
fn record(
    folder: &Path,
    before: Option<&LockFile>,
    lock: &LockFile,
    local: &[String],
    read_only: bool,
) -> Result<Vec<Diagnostic>, Failure> {
    let known = before.map(choices).unwrap_or_default();
    let chosen = choices(lock);
    if known == chosen {
        return Ok(Vec::new());
    }
    if read_only && known.keys().eq(chosen.keys()) {
        let detail = "Changes to the provider selections were detected, but not saved in the .terraform.lock.hcl file. To \
                      record these selections, run \"tofu init\" without the \"-lockfile=readonly\" flag.";
        return Ok(vec![warning("Provider lock file not updated", detail)]);
    }
    if read_only {
        let detail = "Changes to the required provider dependencies were detected, but the lock file is read-only. To use and \
                      record these requirements, run \"tofu init\" without the \"-lockfile=readonly\" flag.";
        let problem = Diagnostic::error("Provider dependency changes detected", detail);
        return Err(EngineError::Diagnostics(vec![problem]).into());
    }
    lock.write(folder).map_err(anyhow::Error::from)?;
    match before {
        None => say(
            "\nOpenTofu has created a lock file [bold].terraform.lock.hcl[reset] to record the provider\nselections it made \
             above. Include this file in your version control repository\nso that OpenTofu can guarantee to make the same \
             selections by default when\nyou run \"tofu init\" in the future.",
        ),
        Some(_) => say(
            "\nOpenTofu has made some changes to the provider dependency selections recorded\nin the .terraform.lock.hcl file. \
             Review those changes and commit them to your\nversion control system if they represent changes you intended to \
             make.",
        ),
    }
    Ok(if local.is_empty() { Vec::new() } else { vec![incomplete(local)] })
}

fn warning(summary: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..Diagnostic::error(summary, detail) }
}

fn incomplete(local: &[String]) -> Diagnostic {
    let platform = landform_registry::platform();
    let list: String = local.iter().map(|source| format!("  - {source}\n")).collect();
    let detail = format!(
        "Due to your customized provider installation methods, OpenTofu was forced to calculate lock file checksums locally \
         for the following providers:\n{list}\nThe current .terraform.lock.hcl file only includes checksums for {platform}, so \
         OpenTofu running on another platform will fail to install these providers.\n\nTo calculate additional checksums for \
         another platform, run:\n  tofu providers lock -platform=linux_amd64\n(where linux_amd64 is the platform to generate)"
    );
    warning("Incomplete lock file information for providers", detail)
}

/// The version of a provider that comes with this program, if it is the one that is wanted.
fn inside(source: &Source, constraints: &Constraints) -> Option<&'static str> {
    let mut all = Inside::value_variants().iter();
    let found = all.find(|inside| inside.source() == source.to_string())?;
    found.version().parse().is_ok_and(|version| constraints.allow(&version)).then(|| found.version())
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Other(anyhow!("{error}"))
}

fn not_here(construct: String) -> Failure {
    Failure::Engine(EngineError::Unsupported(vec![Unsupported { construct, range: None }]))
}

/// Where OpenTofu looks for what `init` has installed. Returns whether its checksums are new to the lock file.
fn install(folder: &Path, found: &Found, constraints: String, lock: &mut LockFile) -> anyhow::Result<bool> {
    let source = shown(&found.source);
    let (Some(version), Some(package)) = (&found.version, &found.package) else {
        println!("- {source} is overridden by a developer's build");
        return Ok(false);
    };
    let known = lock.locked(&found.source).filter(|known| known.version == *version);
    let unpacked = found.binary.parent().context("a provider lies in a folder")?;
    let place = folder.join(DATA).join("providers").join(found.source.to_string()).join(version.to_string());
    std::fs::create_dir_all(&place)?;
    let link = place.join(landform_registry::platform());
    let linked = link.canonicalize().ok() == Some(unpacked.canonicalize()?);
    // What nobody has chosen yet counts as not installed, even if it is there.
    if linked && known.is_some() {
        println!("- Using previously-installed {source} v{version}");
    } else {
        println!("- Installing {source} v{version}...");
        if !linked {
            link_to(&link, unpacked).with_context(|| format!("cannot link {}", link.display()))?;
        }
        println!("- Installed {source} v{version} (unauthenticated)");
    }
    let mut hashes = vec![package.known_hashes()?.content];
    let is_new = known.is_none();
    if let Some(known) = known {
        hashes.extend(known.hashes.iter().cloned());
        hashes.sort();
        hashes.dedup();
    }
    lock.choose(found.source.clone(), Locked { version: version.clone(), constraints, hashes });
    Ok(is_new)
}

fn link_to(link: &Path, target: &Path) -> std::io::Result<()> {
    if link.symlink_metadata().is_ok() {
        std::fs::remove_file(link)?;
    }
    std::os::unix::fs::symlink(target, link)
}

/// Which folder each module is, as OpenTofu keeps it. Those that are new are told of.
fn write_modules(folder: &Path, needed: &Requirements, upgrade: bool) -> anyhow::Result<()> {
    if needed.modules.is_empty() {
        return Ok(());
    }
    say(if upgrade { "[reset][bold]Upgrading modules..." } else { "[reset][bold]Initializing modules..." });
    let place = folder.join(DATA).join("modules");
    let file = place.join("modules.json");
    let known = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(json!({}));
    let mut modules = vec![json!({ "Key": "", "Source": "", "Dir": "." })];
    for (name, source, place) in &needed.modules {
        let module = json!({ "Key": name, "Source": source, "Dir": place });
        let is_known = known["Modules"].as_array().is_some_and(|known| known.contains(&module));
        if upgrade || !is_known {
            println!("- {name} in {place}");
        }
        modules.push(module);
    }
    std::fs::create_dir_all(&place)?;
    std::fs::write(file, json!({ "Modules": modules }).to_string())?;
    Ok(())
}
