use std::path::Path;
use std::time::SystemTime;

use clap::Subcommand;
use landform_base::file;
use landform_base::seal::MasterKey;
use serde_json::json;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::house::{House, MASTER_KEY, NEXT_MASTER_KEY, broken, current_master_key, location};
use crate::show;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a new master key and seal everything with it; all servers must be stopped
    Rotate {
        /// A PostgreSQL URL [default: SQLite in the data folder]
        #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
        database: Option<String>,
    },
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The store in the data folder; or, of a PostgreSQL, the key that opens it.
fn check_there(in_folder: bool, data: &Path) -> Result<(), Failure> {
    let path = match in_folder {
        true => data.join(landform_store::SQLITE_FILE),
        false if std::env::var_os("LANDFORM_MASTER_KEY").is_some() => return Ok(()),
        false => data.join(MASTER_KEY),
    };
    if path.exists() {
        return Ok(());
    }
    Err(Failure::broken(
        format!("there is no {}: nothing was changed", path.display()),
        "Is --data (or LANDFORM_DATA) the server's folder?",
    ))
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let Command::Rotate { database } = command;
    // Before anything is made: a new key, which a server would ask about, or a store in a folder that was mistyped.
    let data = connection.data_folder()?;
    location(database.as_deref(), &data)?;
    check_there(database.is_none(), &data)?;
    let house = House::enter(connection)?;
    let (current, next) = (house.file(MASTER_KEY), house.file(NEXT_MASTER_KEY));
    let old = current_master_key(&house.data)?;
    // On disk before anything is sealed with it. If it is there already, an earlier change was interrupted, and goes on.
    let new = MasterKey::load_or_create(&next).map_err(|e| broken(e.to_string()))?;
    let store = house.open_store(database.as_deref(), old).await?;
    let changed = store.change_master_key(&new).await.map_err(|e| broken(e.to_string()))?;
    store.close().await;
    let from_environment = std::env::var_os("LANDFORM_MASTER_KEY").is_some();
    let kept_in = if from_environment { &next } else { &current };
    let mut old_file = None;
    if !from_environment {
        let failed = |e: std::io::Error| broken(format!("{}: {e}", current.display()));
        // Backups that were made until now are opened by nothing else.
        let old = house.file(&format!("{MASTER_KEY}.until-{}", seconds_since_1970()));
        std::fs::read(&current).and_then(|key| file::write_private(&old, &key)).map_err(failed)?;
        std::fs::rename(&next, &current).map_err(failed)?;
        old_file = Some(old);
    }
    if json {
        show::json(&json!({"tenants": changed, "key_file": kept_in, "old_key_file": old_file}));
    } else {
        println!("the keys of {changed} tenants are sealed with the new master key in {}", kept_in.display());
        match old_file {
            Some(old) => {
                println!("the one before is in {}", old.display());
                println!("backups made until now need it; remove it from here once it is kept elsewhere, or useless");
            }
            None => println!("put its content into LANDFORM_MASTER_KEY, and remove the file"),
        }
    }
    Ok(())
}
