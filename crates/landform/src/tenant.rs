use clap::Subcommand;
use landform_api::{Tenant, TenantSpec};
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
    /// Delete a tenant that has no deployments, connections, webhooks and tokens any more
    Delete {
        #[arg(value_parser = name_of::<TenantName>)]
        name: TenantName,
    },
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let tenants = match command {
        Command::Put { name, separate_approver, slots, max_deployments, max_waiting_runs } => {
            let spec = TenantSpec { separate_approver, slots, max_deployments, max_waiting_runs };
            vec![client.tenant_put(&name, &spec).await?]
        }
        Command::Delete { name } => {
            client.tenant_delete(&name).await?;
            show::done(&format!("tenant {name} is deleted"), json);
            return Ok(());
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
            let most = |limit: Option<i64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
            let row = |tenant: &Tenant| {
                let approver = if tenant.separate_approver { "separate" } else { "anybody" };
                vec![
                    tenant.name.to_string(),
                    approver.to_owned(),
                    most(tenant.slots),
                    most(tenant.max_deployments),
                    most(tenant.max_waiting_runs),
                    if tenant.paused { "yes" } else { "no" }.to_owned(),
                    tenant.created_at.to_string(),
                ]
            };
            let heads = ["TENANT", "APPROVER", "SLOTS", "DEPLOYMENTS", "WAITING", "PAUSED", "CREATED"];
            show::table(&heads, tenants.iter().map(row).collect());
        }
    }
    Ok(())
}
