use clap::Args;
use landform_api::{Location, ResourceFilter};
use landform_domain::TenantName;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{at_least_one, name_of, show};

#[derive(Args, Debug)]
pub struct List {
    /// Only those of one tenant
    #[arg(long, value_parser = name_of::<TenantName>)]
    tenant: Option<TenantName>,
    /// Only those of one deployment
    #[arg(long, value_name = "TENANT/NAME", conflicts_with = "tenant")]
    deployment: Option<Location>,
    /// Only those of one type, such as aws_vpc
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only the object with this id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = at_least_one())]
    limit: usize,
    /// A part of the address or of the id
    text: Option<String>,
}

pub async fn list(args: List, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let List { tenant, deployment, kind, id, limit, text } = args;
    let (tenant, deployment) = Location::narrow(tenant, deployment);
    let mut filter = ResourceFilter { tenant, deployment, kind, id, text, after: None };
    let mut resources = Vec::new();
    loop {
        let page = client.resources(&filter).await?;
        resources.extend(page.resources);
        filter.after = page.next;
        if filter.after.is_none() || resources.len() >= limit {
            break;
        }
    }
    if filter.after.is_some() || resources.len() > limit {
        eprintln!("only the first {limit}; --limit N shows more");
    }
    resources.truncate(limit);
    if json {
        show::json(&resources);
        return Ok(());
    }
    let row = |resource: &landform_api::Resource| {
        vec![
            resource.tenant.to_string(),
            resource.deployment.to_string(),
            resource.address.clone(),
            resource.id.clone().unwrap_or_default(),
            resource.updated_at.to_string(),
        ]
    };
    show::table(&["TENANT", "DEPLOYMENT", "ADDRESS", "ID", "CHANGED"], resources.iter().map(row).collect());
    Ok(())
}
