use clap::Subcommand;
use landform_api::{Client, Delivery, Webhook, WebhookSpec};
use landform_domain::TenantName;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show};

/// The same for the whole fleet.
#[derive(Subcommand, Debug)]
pub enum Fleet {
    /// Tell an address about everybody's runs; the secret that signs is shown this once
    Create {
        url: String,
        /// Only when a run has this status, such as `failed`; may be given several times
        #[arg(long = "event", value_name = "STATUS")]
        events: Vec<String>,
    },
    /// List the fleet's webhooks
    List,
    /// Delete a webhook
    Delete { id: String },
    /// Show what was sent to a webhook, or is to be
    Deliveries { id: String },
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Webhooks about the runs of all tenants
    #[command(subcommand)]
    Fleet(Fleet),
    /// Tell an address about a tenant's runs; the secret that signs is shown this once
    Create {
        #[arg(value_parser = name_of::<TenantName>)]
        tenant: TenantName,
        url: String,
        /// Only when a run has this status, such as `failed`; may be given several times
        #[arg(long = "event", value_name = "STATUS")]
        events: Vec<String>,
    },
    /// List a tenant's webhooks
    List {
        #[arg(value_parser = name_of::<TenantName>)]
        tenant: TenantName,
    },
    /// Delete a webhook
    Delete {
        #[arg(value_parser = name_of::<TenantName>)]
        tenant: TenantName,
        id: String,
    },
    /// Show what was sent to a webhook, or is to be
    Deliveries {
        #[arg(value_parser = name_of::<TenantName>)]
        tenant: TenantName,
        id: String,
    },
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    match command {
        Command::Create { tenant, url, events } => create(&client, Some(&tenant), url, events, json).await,
        Command::List { tenant } => list(&client, Some(&tenant), json).await,
        Command::Delete { tenant, id } => delete(&client, Some(&tenant), &id, json).await,
        Command::Deliveries { tenant, id } => deliveries(&client, Some(&tenant), &id, json).await,
        Command::Fleet(Fleet::Create { url, events }) => create(&client, None, url, events, json).await,
        Command::Fleet(Fleet::List) => list(&client, None, json).await,
        Command::Fleet(Fleet::Delete { id }) => delete(&client, None, &id, json).await,
        Command::Fleet(Fleet::Deliveries { id }) => deliveries(&client, None, &id, json).await,
    }
}

async fn create(
    client: &Client,
    tenant: Option<&TenantName>,
    url: String,
    events: Vec<String>,
    json: bool,
) -> Result<(), Failure> {
    let made = client.webhook_create(tenant, &WebhookSpec { url, events }).await?;
    if json {
        show::json(&made);
    } else {
        println!("{}", made.secret);
        eprintln!("webhook {}: its secret is not shown again", made.webhook.id);
    }
    Ok(())
}

async fn list(client: &Client, tenant: Option<&TenantName>, json: bool) -> Result<(), Failure> {
    let webhooks = client.webhooks(tenant).await?;
    if json {
        show::json(&webhooks);
        return Ok(());
    }
    let events = |w: &Webhook| if w.events.is_empty() { "all".to_owned() } else { w.events.join(" ") };
    let row = |w: &Webhook| vec![w.id.clone(), w.url.clone(), events(w)];
    show::table(&["WEBHOOK", "ADDRESS", "EVENTS"], webhooks.iter().map(row).collect());
    Ok(())
}

async fn delete(client: &Client, tenant: Option<&TenantName>, id: &str, json: bool) -> Result<(), Failure> {
    client.webhook_delete(tenant, id).await?;
    show::done(&format!("webhook {id} is deleted"), json);
    Ok(())
}

async fn deliveries(client: &Client, tenant: Option<&TenantName>, id: &str, json: bool) -> Result<(), Failure> {
    let deliveries = client.deliveries(tenant, id).await?;
    if json {
        show::json(&deliveries);
        return Ok(());
    }
    let row = |d: &Delivery| {
        let outcome = d.error.clone().or(d.answer.map(|answer| answer.to_string())).unwrap_or_default();
        let run = format!("{}/{}", d.tenant, d.deployment);
        vec![d.id.to_string(), run, d.event.clone(), d.status.clone(), d.attempts.to_string(), outcome]
    };
    let heads = ["DELIVERY", "DEPLOYMENT", "EVENT", "STATUS", "ATTEMPTS", "ANSWER"];
    show::table(&heads, deliveries.iter().map(row).collect());
    Ok(())
}
