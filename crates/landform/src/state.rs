//! A deployment's state: read any version that is kept, and change it without a provider.

use std::io::Write;

use clap::Subcommand;
use landform_api::{Location, StateEdited, StateMove, StateRemove, StateVersion};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::show;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write the state to standard output, as any `tofu` reads it
    Pull {
        /// The deployment
        #[arg(value_name = "TENANT/NAME")]
        location: Location,
        /// An older version [default: the current one]
        #[arg(long, value_name = "N")]
        version: Option<i64>,
    },
    /// List the versions that are kept, the newest first
    Versions {
        /// The deployment
        #[arg(value_name = "TENANT/NAME")]
        location: Location,
    },
    /// Forget objects; what they stand for stays where it is, and the next run makes the object anew
    Rm {
        /// The deployment
        #[arg(value_name = "TENANT/NAME")]
        location: Location,
        /// Objects, resources or modules
        #[arg(value_name = "ADDRESS", required = true)]
        addresses: Vec<String>,
    },
    /// Give an object, a resource or a module another address
    Mv {
        /// The deployment
        #[arg(value_name = "TENANT/NAME")]
        location: Location,
        #[arg(value_name = "ADDRESS")]
        from: String,
        #[arg(value_name = "ADDRESS")]
        to: String,
    },
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    match command {
        Command::Pull { location, version } => {
            let state = match version {
                Some(version) => client.state_version(&location, version).await?,
                None => client.state(&location).await?,
            };
            let written = std::io::stdout().write_all(&state);
            let broken =
                |e| Failure::broken(format!("the state cannot be written: {e}"), "Where does standard output go?");
            written.map_err(broken)?;
        }
        Command::Versions { location } => {
            let versions = client.state_versions(&location).await?;
            if json {
                show::json(&versions);
            } else {
                show::table(&["VERSION", "GENERATION", "RUN", "CREATED", ""], versions.iter().map(row).collect());
            }
        }
        Command::Rm { location, addresses } => {
            told("removed", &client.state_remove(&location, &StateRemove { addresses }).await?, json);
        }
        Command::Mv { location, from, to } => {
            told("moved to", &client.state_move(&location, &StateMove { from, to }).await?, json);
        }
    }
    Ok(())
}

fn row(version: &StateVersion) -> Vec<String> {
    vec![
        version.version.to_string(),
        version.generation.to_string(),
        version.run.map_or("-".to_owned(), |run| run.to_string()),
        version.created_at.to_string(),
        if version.current { "current".to_owned() } else { String::new() },
    ]
}

fn told(deed: &str, edited: &StateEdited, json: bool) {
    if json {
        return show::json(edited);
    }
    for address in &edited.addresses {
        println!("{deed} {address}");
    }
    println!("version {}", edited.version);
}
