use std::path::PathBuf;

use clap::{Args, Subcommand};
use landform_api::{Connection as Shown, ConnectionSpec, ConnectionTest};
use landform_domain::{ConnectionName, DeploymentName, TenantName};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show, watch};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a connection, or rotate it: all its values are replaced
    Put {
        #[command(flatten)]
        which: Which,
        /// A JSON file with `variables` and `environment`; `-` is standard input, which no other user can see
        #[arg(long, value_name = "FILE")]
        values: PathBuf,
    },
    /// Show what a connection has values for; the values are never shown
    Get(Which),
    /// List a tenant's connections
    List {
        #[arg(value_parser = name_of::<TenantName>)]
        tenant: TenantName,
    },
    /// Try a connection: a trial of a deployment that uses it, with the newest values; it changes nothing
    Test {
        #[command(flatten)]
        which: Which,
        /// The deployment [default: the first one that uses it]
        #[arg(long, value_name = "NAME", value_parser = name_of::<DeploymentName>)]
        deployment: Option<DeploymentName>,
    },
    /// Delete a connection that no deployment uses
    Delete(Which),
}

#[derive(Args, Debug)]
pub struct Which {
    /// The connection
    #[arg(value_name = "TENANT/NAME", value_parser = which)]
    which: (TenantName, ConnectionName),
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let shown = match command {
        Command::Put { which: Which { which: (tenant, name) }, values } => {
            vec![client.connection_put(&tenant, &name, &read(&values)?).await?]
        }
        Command::Get(Which { which: (tenant, name) }) => vec![client.connection(&tenant, &name).await?],
        Command::Test { which: Which { which: (tenant, name) }, deployment } => {
            let accepted = client.connection_test(&tenant, &name, &ConnectionTest { deployment }).await?;
            return watch::to_the_end(&client, accepted.run, json).await;
        }
        Command::Delete(Which { which: (tenant, name) }) => {
            client.connection_delete(&tenant, &name).await?;
            show::done(&format!("connection {tenant}/{name} is deleted"), json);
            return Ok(());
        }
        Command::List { tenant } => {
            let connections = client.connections(&tenant).await?;
            if json {
                show::json(&connections);
                return Ok(());
            }
            connections
        }
    };
    match (json, shown.as_slice()) {
        (true, [one]) => show::json(one),
        _ => {
            let row = |c: &Shown| {
                let names: Vec<&str> = c.variables.iter().chain(&c.environment).map(String::as_str).collect();
                vec![c.name.to_string(), c.version.to_string(), names.join(" "), c.updated_at.to_string()]
            };
            show::table(&["CONNECTION", "VERSION", "VALUES FOR", "CHANGED"], shown.iter().map(row).collect());
        }
    }
    Ok(())
}

fn which(text: &str) -> Result<(TenantName, ConnectionName), String> {
    let (tenant, name) = text.split_once('/').ok_or("expected TENANT/NAME")?;
    Ok((name_of(tenant)?, name_of(name)?))
}

/// Values come from a file: what stands on a command line is seen by every user of the machine.
fn read(path: &std::path::Path) -> Result<ConnectionSpec, Failure> {
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let hint = "It holds {\"variables\": {\"name\": value}, \"environment\": {\"NAME\": \"text\"}}.";
    let bytes = bytes.map_err(|e| Failure::usage(format!("{}: {e}", path.display()), hint))?;
    landform_api::read_json(&bytes).map_err(|e| Failure::usage(format!("{}: {e}", path.display()), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_with_its_tenant() {
        assert_eq!(which("acme/aws").unwrap(), ("acme".parse().unwrap(), "aws".parse().unwrap()));
        assert!(which("aws").is_err() && which("acme/A").is_err());
    }
}
