use clap::Subcommand;
use landform_api::TenantSpec;
use landform_domain::TenantName;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a tenant, or change its settings
    Put {
        #[arg(value_parser = name_of::<TenantName>)]
        name: TenantName,
        /// Whoever asked for a change must not approve it
        #[arg(long, value_name = "BOOL")]
        separate_approver: Option<bool>,
        /// Runs under way at the same time; 0 is no limit
        #[arg(long, value_name = "N")]
        slots: Option<u32>,
        /// Deployments at most; 0 is no limit
        #[arg(long, value_name = "N")]
        max_deployments: Option<u32>,
        /// Runs that wait for a worker at most; 0 is no limit
        #[arg(long, value_name = "N")]
        max_waiting_runs: Option<u32>,
    },
    /// Show one tenant
    Get {
        #[arg(value_parser = name_of::<TenantName>)]
        name: TenantName,
    },
    /// List all tenants
    List,
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let tenants = match command {
        Command::Put { name, separate_approver, slots, max_deployments, max_waiting_runs } => {
            let spec = TenantSpec { separate_approver, slots, max_deployments, max_waiting_runs };
            vec![client.tenant_put(&name, &spec).await?]
        }
        Command::Get { name } => vec![client.tenant(&name).await?],
        Command::List => {
            let tenants = client.tenants().await?;
            if json {
                show::json(&tenants);
                return Ok(());
            }
            tenants
        }
    };
    match (json, tenants.as_slice()) {
        (true, [one]) => show::json(one),
        _ => {
            let rows = tenants.iter().map(|t| vec![t.name.to_string(), t.created_at.to_string()]).collect();
            show::table(&["TENANT", "CREATED"], rows);
        }
    }
    Ok(())
}
