//! Backup and restore: a folder with a copy of the database, and the master key if it is asked for.

use std::path::{Path, PathBuf};

use clap::Args;
use landform_base::file;
use landform_domain::Actor;
use landform_store::{Location, Scope, StoreError, back_up, bring_back};
use serde_json::json;

use crate::connection::{Connection, token_file};
use crate::failure::Failure;
use crate::house::{House, MASTER_KEY, broken, location, master_key};
use crate::show;

#[derive(Args, Debug)]
pub struct Backup {
    /// The folder to make; it must not exist
    folder: PathBuf,
    /// Copy the master key too; without it, keep that elsewhere: nothing can be read without it
    #[arg(long)]
    with_master_key: bool,
    /// A PostgreSQL URL [default: SQLite in the data folder]
    #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
    database: Option<String>,
}

#[derive(Args, Debug)]
pub struct Restore {
    /// A folder that `landform backup` has made
    folder: PathBuf,
    /// The URL of an empty PostgreSQL database [default: SQLite in the data folder]
    #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
    database: Option<String>,
}

pub async fn backup(args: Backup, connection: &Connection, json: bool) -> Result<(), Failure> {
    let (data, folder) = (connection.data_folder()?, &args.folder);
    let from = location(args.database.as_deref(), &data)?;
    if folder.exists() {
        let hint = "Name one that does not exist: a backup is never written over another.";
        return Err(Failure::usage(format!("{} is there already", folder.display()), hint));
    }
    let failed = |e: std::io::Error| broken(format!("{}: {e}", folder.display()));
    // Aside until it is whole: half a backup, left by a kill or a full disk, would be taken for one.
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = folder.with_file_name(name);
    if part.exists() {
        std::fs::remove_dir_all(&part).map_err(failed)?;
    }
    file::private_folder(&part).map_err(failed)?;
    let copied = back_up(&from, &part).await.map_err(|e| broken(e.to_string()));
    let whole = copied.and_then(|()| match args.with_master_key {
        false => Ok(()),
        true => {
            let key = std::fs::read(data.join(MASTER_KEY));
            key.and_then(|key| file::write_private(&part.join(MASTER_KEY), &key)).map_err(failed)
        }
    });
    if let Err(failure) = whole.and_then(|()| std::fs::rename(&part, folder).map_err(failed)) {
        let _ = std::fs::remove_dir_all(&part);
        return Err(failure);
    }
    if json {
        show::json(&json!({"folder": folder, "master_key": args.with_master_key}));
    } else {
        println!("the copy is in {}", folder.display());
        if !args.with_master_key {
            println!("the master key is not in it: keep a copy of it elsewhere, nothing can be read without it");
        }
    }
    Ok(())
}

/// Everything waits afterwards: what was applied after the backup is not known to it, so a person looks first.
pub async fn restore(args: Restore, connection: &Connection, json: bool) -> Result<(), Failure> {
    if !landform_store::is_copy(&args.folder) {
        let hint = "Name the folder that `landform backup` has made.";
        return Err(Failure::usage(format!("there is no backup in {}", args.folder.display()), hint));
    }
    let house = House::enter(connection)?;
    let database = args.database.as_deref();
    let location = location(database, &house.data)?;
    bring_key(&args.folder, &house)?;
    if let Location::Postgres(_) = location {
        // It makes the tables.
        house.open_store(database, master_key(&house.data)?).await?.close().await;
    }
    let key = master_key(&house.data)?;
    bring_back(&args.folder, &location, &key).await.map_err(|e| match e {
        StoreError::Seal(e) => Failure::broken(
            format!("the master key does not open this backup: {e}"),
            "Put the master key of the time of the backup into the data folder, or into LANDFORM_MASTER_KEY.",
        ),
        e => broken(e.to_string()),
    })?;
    // It is paused already; this is for the audit log.
    let store = house.open_store(database, key).await?;
    let paused = store.pause(&Scope::Everything, true, &Actor::local("restore")).await;
    paused.map_err(|e| broken(e.to_string()))?;
    store.close().await;
    if json {
        show::json(&json!({"data": house.data, "paused": true}));
    } else {
        println!("restored; all runs are paused");
        println!("compare what exists with what it knows, then `landform resume`");
        if !token_file(&house.data).exists() {
            println!(
                "tokens go on working, but none is in this folder: `landform token admin` makes one before you serve"
            );
        }
    }
    Ok(())
}

/// The key of the backup, unless the folder or the environment has one already.
fn bring_key(backup: &Path, house: &House) -> Result<(), Failure> {
    let (there, here) = (backup.join(MASTER_KEY), house.file(MASTER_KEY));
    if here.exists() || std::env::var_os("LANDFORM_MASTER_KEY").is_some() {
        return Ok(());
    }
    if !there.exists() {
        return Err(Failure::usage(
            "the backup has no master key, and there is none here",
            format!("Put the master key into {} (mode 0600), or into LANDFORM_MASTER_KEY.", here.display()),
        ));
    }
    let key = std::fs::read(&there);
    key.and_then(|key| file::write_private(&here, &key)).map_err(|e| broken(format!("{}: {e}", here.display())))
}
