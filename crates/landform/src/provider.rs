//! `landform provider`: the mirror that all runs share and none can write to. What is not in it cannot run.

use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use landform_registry::{Source, Version};
use serde_json::json;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::inside::Inside;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Add a provider to the mirror, from a release archive or a binary
    Add(Add),
    /// List the providers in the mirror
    List(Mirror),
    /// Serve the built-in provider for Versa Director as a plugin; OpenTofu starts it
    Versa,
}

#[derive(Args, Debug)]
pub struct Mirror {
    /// The mirror [default: `mirror` in the data folder]
    #[arg(long, env = "LANDFORM_PROVIDERS", value_name = "DIR")]
    providers: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Add {
    /// A release archive such as `terraform-provider-time_0.14.2_linux_amd64.zip`, or an executable
    #[arg(value_name = "FILE", required_unless_present = "built_in", requires = "source")]
    file: Option<PathBuf>,
    /// A provider that comes with Landform, for runs of the CLI engine; the native engine has it inside
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "source", "version"])]
    built_in: Option<Inside>,
    /// The source address, such as `hashicorp/time`
    #[arg(long, value_name = "SOURCE")]
    source: Option<Source>,
    /// The version; an archive's name tells it
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    #[command(flatten)]
    mirror: Mirror,
}

/// A provider may have hundreds of megabytes; more than this is no provider.
const LARGEST: u64 = 4 << 30;

impl Mirror {
    fn folder(&self, connection: &Connection) -> Result<PathBuf, Failure> {
        match &self.providers {
            Some(folder) => Ok(folder.clone()),
            None => Ok(connection.data_folder()?.join(DEFAULT)),
        }
    }
}

/// The mirror's name in the data folder.
pub const DEFAULT: &str = "mirror";

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    match command {
        Command::Add(add) => {
            let mirror = add.mirror.folder(connection)?;
            let package = add.package()?;
            let folder = package.put(&mirror)?;
            let (source, version) = (package.source.to_string(), package.version.to_string());
            match json {
                true => println!("{}", json!({"source": source, "version": version, "path": folder})),
                false => println!("{source} {version} is in {}", folder.display()),
            }
        }
        Command::List(mirror) => {
            let folder = mirror.folder(connection)?;
            let found = in_mirror(&folder);
            if json {
                let all: Vec<_> =
                    found.iter().map(|(source, version)| json!({"source": source, "version": version})).collect();
                println!("{}", json!({ "providers": all }));
                return Ok(());
            }
            if found.is_empty() {
                println!(
                    "none in {}; add one with `landform provider add FILE --source NAMESPACE/TYPE`",
                    folder.display()
                );
            }
            for (source, version) in found {
                println!("{source:<50} {version}");
            }
        }
        Command::Versa => return Inside::Versa.serve().await,
    }
    Ok(())
}

/// What is to be put into the mirror.
struct Package {
    file: PathBuf,
    source: Source,
    version: Version,
}

impl Add {
    fn package(&self) -> Result<Package, Failure> {
        if let Some(inside) = self.built_in {
            let file = std::env::current_exe().map_err(|e| unreadable(Path::new("this program"), e))?;
            let parsed = (inside.source().parse(), inside.version().parse());
            let (Ok(source), Ok(version)) = parsed else {
                return Err(Failure::broken("a built-in provider without a proper name", "Please report this."));
            };
            return Ok(Package { file, source, version });
        }
        let (Some(file), Some(source)) = (&self.file, &self.source) else {
            return Err(Failure::usage("a file needs its source address", "Give it with --source."));
        };
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let version = self
            .version
            .clone()
            .or_else(|| version_in(name))
            .ok_or_else(|| Failure::usage(format!("{name} does not tell a version"), "Give it with --version."))?;
        Ok(Package { file: file.clone(), source: source.clone(), version })
    }
}

impl Package {
    fn put(&self, mirror: &Path) -> Result<PathBuf, Failure> {
        let broken = |e: std::io::Error| {
            Failure::broken(
                format!("the mirror {}: {e}", mirror.display()),
                "Is there room, and may this user write there?",
            )
        };
        let Source { host, namespace, name: kind } = &self.source;
        let versions = mirror.join(host).join(namespace).join(kind).join(self.version.to_string());
        let place = versions.join(platform());
        if place.exists() {
            let hint = "A version never changes. Remove its folder first if nothing uses it.";
            return Err(Failure::usage(format!("{} {} is there already", self.source, self.version), hint));
        }
        std::fs::create_dir_all(&versions).map_err(broken)?;
        // Beside its place and then moved there: a run that starts in this moment finds all of it or nothing.
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&versions).map_err(broken)?;
        let binary = format!("terraform-provider-{kind}");
        if self.file.extension().is_some_and(|extension| extension == "zip") {
            unpack(&self.file, new.path())?;
        } else {
            let mut from = std::fs::File::open(&self.file).map_err(|e| unreadable(&self.file, e))?;
            refuse_what_cannot_run(&self.file, &mut from)?;
            write(&mut from, &new.path().join(&binary), true).map_err(broken)?;
        }
        let has_binary = std::fs::read_dir(new.path())
            .map_err(broken)?
            .flatten()
            .any(|entry| entry.file_name().to_str().is_some_and(|file| file.starts_with(&binary)));
        if !has_binary {
            let hint = "An archive holds the executable at its top; --source must name the same provider.";
            return Err(Failure::usage(format!("{} holds no {binary}", self.file.display()), hint));
        }
        std::fs::set_permissions(new.path(), std::fs::Permissions::from_mode(0o755)).map_err(broken)?;
        std::fs::rename(new.keep(), &place).map_err(broken)?;
        Ok(place)
    }
}

/// A file that was meant to be an archive, or something else altogether, would only be found out by the first run.
fn refuse_what_cannot_run(file: &Path, from: &mut std::fs::File) -> Result<(), Failure> {
    let mut begin = Vec::new();
    let read = Read::by_ref(from).take(4).read_to_end(&mut begin).and_then(|_| from.rewind());
    read.map_err(|e| unreadable(file, e))?;
    if begin == *b"\x7fELF" || begin.starts_with(b"#!") {
        return Ok(());
    }
    let hint = "Name the provider's executable for this machine, or its release archive, a file that ends with `.zip`.";
    Err(Failure::usage(format!("{} is no program", file.display()), hint))
}

/// Only plain files at the top of the archive; anything else has no business in a provider's release.
fn unpack(archive: &Path, target: &Path) -> Result<(), Failure> {
    let wrong =
        |e: String| Failure::usage(format!("{}: {e}", archive.display()), "Is it a provider's release archive?");
    let file = std::fs::File::open(archive).map_err(|e| unreadable(archive, e))?;
    let mut zip = zip::ZipArchive::new(file).map_err(|e| wrong(e.to_string()))?;
    let mut left = LARGEST;
    for number in 0..zip.len() {
        let entry = zip.by_index(number).map_err(|e| wrong(e.to_string()))?;
        let name = entry.name().map_err(|e| wrong(e.to_string()))?.into_owned();
        if !entry.is_file() || name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(wrong(format!("{name:?} is no plain file at its top")));
        }
        let is_program = name.starts_with("terraform-provider-");
        let written = write(&mut entry.take(left + 1), &target.join(&name), is_program);
        let written = written.map_err(|e| wrong(format!("{name}: {e}")))?;
        left = left.checked_sub(written).ok_or_else(|| wrong(format!("it has more than {LARGEST} bytes")))?;
    }
    Ok(())
}

fn write(from: &mut impl Read, to: &Path, is_program: bool) -> std::io::Result<u64> {
    let mut file = std::fs::File::create_new(to)?;
    let written = std::io::copy(from, &mut file)?;
    file.flush()?;
    // Nobody writes to it again, which also keeps it from being busy when it is started.
    file.set_permissions(std::fs::Permissions::from_mode(if is_program { 0o555 } else { 0o444 }))?;
    file.sync_all()?;
    Ok(written)
}

fn unreadable(file: &Path, error: std::io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", file.display()), "Name a file that this user can read.")
}

/// From `terraform-provider-NAME_VERSION_…`.
fn version_in(file: &str) -> Option<Version> {
    file.strip_prefix("terraform-provider-")?.split('_').nth(1)?.trim_end_matches(".zip").parse().ok()
}

fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}_{architecture}", std::env::consts::OS)
}

/// Source and version of everything in a mirror, in order.
pub fn in_mirror(mirror: &Path) -> Vec<(String, String)> {
    fn below(folder: &Path, depth: usize, path: &mut Vec<String>, found: &mut Vec<(String, String)>) {
        if depth == 0 {
            let version = path.last().cloned().unwrap_or_default();
            if folder.join(platform()).is_dir() {
                found.push((path[..3].join("/"), version));
            }
            return;
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            path.push(entry.file_name().to_string_lossy().into_owned());
            below(&entry.path(), depth - 1, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    below(mirror, 4, &mut Vec::new(), &mut found);
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_tells_its_version() {
        let version = |name| version_in(name).map(|version: Version| version.to_string());
        assert_eq!(version("terraform-provider-time_0.14.2_linux_amd64.zip").as_deref(), Some("0.14.2"));
        assert_eq!(version("terraform-provider-time"), None);
        assert_eq!(version("else_1.0.0.zip"), None);
    }
}
