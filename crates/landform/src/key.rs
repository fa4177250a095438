use clap::Subcommand;
use landform_base::seal::MasterKey;
use serde_json::json;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::house::{House, MASTER_KEY, NEXT_MASTER_KEY, broken, current_master_key};
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

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let Command::Rotate { database } = command;
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
    if !from_environment {
        std::fs::rename(&next, &current).map_err(|e| broken(format!("{}: {e}", current.display())))?;
    }
    if json {
        show::json(&json!({"tenants": changed, "key_file": kept_in}));
    } else {
        println!("the keys of {changed} tenants are sealed with the new master key in {}", kept_in.display());
        if from_environment {
            println!("put its content into LANDFORM_MASTER_KEY, and remove the file");
        }
    }
    Ok(())
}
