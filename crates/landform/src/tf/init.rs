//! `landform tf init`: finds the providers that a folder needs, and writes down which they are, so that `tofu` could go on.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use landform_engine::native::Requirements;
use landform_engine::{EngineError, Unsupported};
use landform_registry::{CliConfig, Constraints, Found, LockFile, Locked, Source};
use serde_json::json;

use super::Failure;
use super::commands::{engine, open};
use super::options::{Common, InitOptions};
use crate::inside::Inside;

const DATA: &str = ".terraform";

pub async fn init(folder: &Path, options: &InitOptions) -> Result<ExitCode, Failure> {
    let opened = open(folder, Default::default(), None)?;
    let needed = engine(folder, &Common::default()).requirements(&opened.workspace)?;
    println!("\nInitializing the backend...");
    write_modules(folder, &needed)?;
    println!("\nInitializing provider plugins...");
    let places = CliConfig::of_user().map_err(anyhow::Error::from)?.places(folder);
    let mut lock = LockFile::of_folder(folder).map_err(anyhow::Error::from)?;
    let mut changed = false;
    for (source, version) in &needed.providers {
        let (constraints, source): (Constraints, Source) =
            (version.parse().map_err(wrong)?, source.parse().map_err(wrong)?);
        if let Some(inside) = inside(&source, &constraints) {
            println!("- {source} v{inside} is built in to Landform");
            continue;
        }
        let locked = lock.version(&source).filter(|_| !options.upgrade);
        // A registry on the network is not asked here, but `tofu` asks it.
        let found = places.find(&source, &constraints, locked).map_err(|error| elsewhere(error.to_string()))?;
        if options.upgrade {
            lock.forget(&source);
        }
        lock.check(&found).map_err(anyhow::Error::from)?;
        changed |= install(folder, &found, constraints.normalised(), &mut lock)?;
    }
    if changed {
        lock.write(folder).map_err(anyhow::Error::from)?;
        println!(
            "\nLandform has made some changes to the provider dependency selections recorded\nin the .terraform.lock.hcl \
             file. Review those changes and commit them to your\nversion control system."
        );
    }
    println!("\nThis folder has been successfully initialized!");
    Ok(ExitCode::SUCCESS)
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

fn elsewhere(construct: String) -> Failure {
    Failure::Engine(EngineError::Unsupported(vec![Unsupported { construct, range: None }]))
}

/// Where OpenTofu looks for what `init` has installed. Returns whether the lock file has something new to say.
fn install(folder: &Path, found: &Found, constraints: String, lock: &mut LockFile) -> anyhow::Result<bool> {
    let (Some(version), Some(package)) = (&found.version, &found.package) else {
        println!("- {} is overridden by a developer's build", found.source);
        return Ok(false);
    };
    let unpacked = found.binary.parent().context("a provider lies in a folder")?;
    let place = folder.join(DATA).join("providers").join(found.source.to_string()).join(version.to_string());
    std::fs::create_dir_all(&place)?;
    let link = place.join(landform_registry::platform());
    if link.canonicalize().ok() != Some(unpacked.canonicalize()?) {
        if link.symlink_metadata().is_ok() {
            std::fs::remove_file(&link).with_context(|| format!("cannot replace {}", link.display()))?;
        }
        std::os::unix::fs::symlink(unpacked, &link).with_context(|| format!("cannot link {}", link.display()))?;
        println!("- Installed {} v{version}", found.source);
    } else {
        println!("- Using previously-installed {} v{version}", found.source);
    }
    let mut hashes = vec![package.known_hashes()?.content];
    if let Some(known) = lock.locked(&found.source).filter(|known| known.version == *version) {
        hashes.extend(known.hashes.iter().cloned());
        hashes.sort();
        hashes.dedup();
    }
    let locked = Locked { version: version.clone(), constraints, hashes };
    Ok(lock.choose(found.source.clone(), locked))
}

/// Which folder each module is, as OpenTofu keeps it.
fn write_modules(folder: &Path, needed: &Requirements) -> anyhow::Result<()> {
    if needed.modules.is_empty() {
        return Ok(());
    }
    println!("Initializing modules...");
    let mut modules = vec![json!({ "Key": "", "Source": "", "Dir": "." })];
    for (name, source, place) in &needed.modules {
        println!("- {name} in {place}");
        modules.push(json!({ "Key": name, "Source": source, "Dir": place }));
    }
    let place = folder.join(DATA).join("modules");
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("modules.json"), json!({ "Modules": modules }).to_string())?;
    Ok(())
}
