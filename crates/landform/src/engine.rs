//! `landform engine`: which OpenTofu and Terraform there are. A template's `required_version` picks among them.

use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use landform_base::file::private_folder;
use landform_registry::Version;
use serde_json::json;

use crate::connection::Connection;
use crate::failure::Failure;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Add a `tofu` or `terraform` binary; servers use it from their next start
    Add(Add),
    /// List the engines that a server on this data folder has
    List,
}

#[derive(Args, Debug)]
pub struct Add {
    /// The binary
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// A CLI on this machine.
#[derive(Debug)]
pub struct Found {
    /// `opentofu` or `terraform`.
    pub name: String,
    pub version: Version,
    pub path: PathBuf,
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let data = connection.data_folder()?;
    match command {
        Command::Add(Add { file }) => add(&file, &data, json),
        Command::List => list(&data, json),
    }
}

fn add(file: &Path, data: &Path, json: bool) -> Result<(), Failure> {
    let found = ask(file)?;
    let folder = shelf(data).join(format!("{}-{}", found.name, found.version));
    let target = folder.join(program(&found.name));
    copy(file, &folder, &target).map_err(|e| {
        Failure::broken(format!("{}: {e}", target.display()), "Is there room, and may this user write there?")
    })?;
    match json {
        true => println!("{}", shown(&Found { path: target, ..found })),
        false => {
            println!("{} {} is at {}", found.name, found.version, target.display());
            eprintln!("a server that is running has it after its next start");
        }
    }
    Ok(())
}

fn list(data: &Path, json: bool) -> Result<(), Failure> {
    let engines = on_shelf(data)?;
    if json {
        let all: Vec<_> = engines.iter().map(shown).collect();
        println!("{}", json!({ "engines": all }));
        return Ok(());
    }
    if engines.is_empty() {
        println!("none; add one with `landform engine add FILE`, or start the server with --tofu FILE");
    }
    for engine in engines {
        println!("{:<10} {:<12} {}", engine.name, engine.version.to_string(), engine.path.display());
    }
    Ok(())
}

fn shown(engine: &Found) -> serde_json::Value {
    json!({"name": engine.name, "version": engine.version.to_string(), "path": engine.path})
}

/// Those that were added, the newest first.
pub fn on_shelf(data: &Path) -> Result<Vec<Found>, Failure> {
    let Ok(entries) = std::fs::read_dir(shelf(data)) else { return Ok(Vec::new()) };
    let mut engines: Vec<Found> = entries
        .flatten()
        .filter_map(|entry| {
            let folder = entry.file_name();
            let (name, version) = folder.to_str()?.split_once('-')?;
            let path = entry.path().join(program(name));
            let version = version.parse().ok()?;
            path.is_file().then(|| Found { name: name.to_owned(), version, path })
        })
        .collect();
    engines.sort_by(|a, b| b.version.cmp(&a.version).then_with(|| a.name.cmp(&b.name)));
    Ok(engines)
}

/// Asks a binary what it is, with an empty environment.
pub fn ask(file: &Path) -> Result<Found, Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("{}: {why}", file.display()), "Name the executable of an OpenTofu or a Terraform.")
    };
    let path = std::path::absolute(file).map_err(|e| wrong(e.to_string()))?;
    let output = std::process::Command::new(&path)
        .arg("version")
        .env_clear()
        .env("CHECKPOINT_DISABLE", "1")
        .current_dir("/")
        .output()
        .map_err(|e| wrong(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().next().unwrap_or_default();
    let Some((name, version)) = first.split_once(" v").filter(|_| output.status.success()) else {
        return Err(wrong(format!("`version` says {first:?}")));
    };
    let name = name.to_lowercase();
    if !matches!(name.as_str(), "opentofu" | "terraform") {
        return Err(wrong(format!("it is {name}")));
    }
    let version = version.trim().parse().map_err(|e| wrong(format!("{e}")))?;
    Ok(Found { name, version, path })
}

/// What a running server writes down: which engines it has. It holds the file's lock for as long as it runs, so that whoever
/// finds it free knows that this is of an earlier start.
#[derive(Debug)]
pub struct InUse {
    _held: std::fs::File,
}

const IN_USE: &str = "engines.in-use";

impl InUse {
    /// `engines` are words such as `opentofu 1.12.6`.
    pub fn write_down(data: &Path, engines: &[String]) -> std::io::Result<InUse> {
        let path = data.join(IN_USE);
        let options = std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).clone();
        let mut held = options.open(path)?;
        // Whoever looks holds it for a moment only.
        held.lock()?;
        held.set_len(0)?;
        held.write_all(json!({ "engines": engines }).to_string().as_bytes())?;
        Ok(InUse { _held: held })
    }

    /// What the server on this folder has; `None` if none is running that carries out runs.
    pub fn look(data: &Path) -> Option<Vec<String>> {
        let mut file = std::fs::File::open(data.join(IN_USE)).ok()?;
        if !matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)) {
            return None;
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let written: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(written["engines"].as_array()?.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect())
    }
}

fn shelf(data: &Path) -> PathBuf {
    data.join("engines")
}

fn program(name: &str) -> &'static str {
    if name == "terraform" { "terraform" } else { "tofu" }
}

/// Beside its place and then moved there: a server that starts in this moment finds all of it or nothing.
fn copy(file: &Path, folder: &Path, target: &Path) -> std::io::Result<()> {
    private_folder(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    std::io::copy(&mut std::fs::File::open(file)?, &mut new)?;
    new.flush()?;
    new.as_file().set_permissions(std::fs::Permissions::from_mode(0o755))?;
    new.as_file().sync_all()?;
    new.persist(target)?;
    Ok(())
}
