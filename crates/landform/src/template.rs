use std::path::{Path, PathBuf};

use clap::Subcommand;
use flate2::Compression;
use flate2::write::GzEncoder;
use landform_api::{TemplateUse, TemplateVersion};
use landform_domain::TemplateName;
use landform_domain::template::{LARGEST_TOTAL, MOST_FILES};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Push a folder of `.tf` files; a new version is made only if something in it has changed
    Push {
        folder: PathBuf,
        /// The template's name [default: the folder's name]
        #[arg(long, value_parser = name_of::<TemplateName>)]
        name: Option<TemplateName>,
        /// Choose the newest providers of the mirror, also if the files are the same as before
        #[arg(long)]
        upgrade: bool,
    },
    /// List all templates
    List,
    /// Show a version: its inputs, its files, and what is outside of the native engine's subset
    Show {
        #[arg(value_name = "NAME[@VERSION]", value_parser = crate::deployment::template)]
        template: (TemplateName, Option<i64>),
    },
    /// Delete a version that nothing depends on
    Delete {
        #[arg(value_name = "NAME@VERSION", value_parser = version_of)]
        template: (TemplateName, i64),
    },
    /// Who is on which version
    Deployments {
        #[arg(value_parser = name_of::<TemplateName>)]
        name: TemplateName,
    },
}

/// A version is named: to delete the newest one by leaving it out would be an accident.
fn version_of(text: &str) -> Result<(TemplateName, i64), String> {
    let (name, version) = crate::deployment::template(text)?;
    Ok((name, version.ok_or("name the version, as in net@3")?))
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    match command {
        Command::Push { folder, name, upgrade } => {
            let name = match name {
                Some(name) => name,
                None => name_of_folder(&folder)?,
            };
            let archive = pack(&folder)?;
            let pushed = client.template_push(&name, archive, upgrade).await?;
            if json {
                show::json(&pushed);
            } else {
                let version = &pushed.version;
                println!("{}@{} ({})", version.name, version.version, &version.digest[..version.digest.len().min(12)]);
                if let Some(why) = &pushed.not_locked {
                    eprintln!("not locked to its providers: {why}");
                    eprintln!(
                        "hint: runs need them when they begin; `landform provider add`, then push again, locks it"
                    );
                }
            }
        }
        Command::Delete { template: (name, version) } => {
            client.template_version_delete(&name, version).await?;
            show::done(&format!("{name}@{version} is deleted"), json);
        }
        Command::Show { template: (name, version) } => {
            let version = match version {
                Some(version) => version,
                None => client.template(&name).await?.versions.last().map_or(1, |newest| newest.version),
            };
            let detail = client.template_version(&name, version).await?;
            if json {
                show::json(&detail);
            } else {
                println!("{}@{} ({})", detail.name, detail.version, detail.digest);
                println!("{}", serde_json::to_string_pretty(&detail.schema).expect("a schema is plain data"));
                for file in &detail.files {
                    println!("{:>8}  {}", file.size, file.path);
                }
                for (engine, bytes) in &detail.memory {
                    println!("memory with {engine}: {} MiB", bytes >> 20);
                }
                for item in &detail.outside_native {
                    println!("only with the CLI: {item}");
                }
            }
        }
        Command::Deployments { name } => {
            let uses = client.template_uses(&name).await?;
            if json {
                show::json(&uses);
            } else {
                let row = |u: &TemplateUse| {
                    let applied = u.applied_version.map_or("-".to_owned(), |version| version.to_string());
                    vec![format!("{}/{}", u.tenant, u.deployment), u.version.to_string(), applied]
                };
                show::table(&["DEPLOYMENT", "VERSION", "APPLIED"], uses.iter().map(row).collect());
            }
        }
        Command::List => {
            let templates = client.templates().await?;
            if json {
                show::json(&templates);
            } else {
                let row =
                    |t: &TemplateVersion| vec![t.name.to_string(), t.version.to_string(), t.created_at.to_string()];
                show::table(&["TEMPLATE", "VERSION", "PUSHED"], templates.iter().map(row).collect());
            }
        }
    }
    Ok(())
}

fn name_of_folder(folder: &Path) -> Result<TemplateName, Failure> {
    let absolute = folder.canonicalize().map_err(|e| unreadable(folder, e))?;
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.parse().map_err(|problem: landform_domain::Problem| {
        Failure::usage(
            format!("{}, the folder's name, is no template's name: {}", name, problem.message),
            "Give one with --name.",
        )
    })
}

/// A gzipped tar file of the folder, the same bytes for the same files.
fn pack(folder: &Path) -> Result<Vec<u8>, Failure> {
    let mut files = Vec::new();
    collect(folder, Path::new(""), &mut files)?;
    files.sort();
    if files.len() > MOST_FILES {
        return Err(too_much());
    }
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut total = 0;
    for path in files {
        let from = folder.join(&path);
        let content = std::fs::read(&from).map_err(|e| unreadable(&from, e))?;
        total += content.len();
        if total > LARGEST_TOTAL {
            return Err(too_much());
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, &path, content.as_slice()).map_err(|e| unreadable(&from, e))?;
    }
    tar.into_inner().and_then(GzEncoder::finish).map_err(|e| unreadable(folder, e))
}

/// What a CLI or a version control system keeps beside the configuration is left out.
fn is_left_out(name: &str) -> bool {
    name == ".terraform" || name == ".git" || name.ends_with(".tfstate") || name.ends_with(".tfstate.backup")
}

fn collect(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let folder = root.join(below);
    for entry in std::fs::read_dir(&folder).map_err(|e| unreadable(&folder, e))? {
        let entry = entry.map_err(|e| unreadable(&folder, e))?;
        let path = below.join(entry.file_name());
        if is_left_out(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let kind = entry.file_type().map_err(|e| unreadable(&entry.path(), e))?;
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            files.push(path);
        } else {
            let message = format!("{} is neither a file nor a folder", entry.path().display());
            return Err(Failure::usage(message, "Links lead out of the folder: put the file itself there."));
        }
        if files.len() > MOST_FILES {
            return Err(too_much());
        }
    }
    Ok(())
}

fn too_much() -> Failure {
    let message = format!("the folder has more than {MOST_FILES} files or {LARGEST_TOTAL} bytes");
    Failure::usage(message, "Leave out what is no configuration: provider binaries, archives.")
}

fn unreadable(path: &Path, error: std::io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()), "Name a folder with `.tf` files that you may read.")
}
