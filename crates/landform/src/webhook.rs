use clap::Subcommand;
use landform_api::{Delivery, Webhook, WebhookSpec};
use landform_domain::TenantName;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show};

#[derive(Subcommand, Debug)]
pub enum Command {
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
        Command::Create { tenant, url, events } => {
            let made = client.webhook_create(&tenant, &WebhookSpec { url, events }).await?;
            if json {
                show::json(&made);
            } else {
                println!("{}", made.secret);
                eprintln!("webhook {}: its secret is not shown again", made.webhook.id);
            }
        }
        Command::List { tenant } => {
            let webhooks = client.webhooks(&tenant).await?;
            if json {
                show::json(&webhooks);
                return Ok(());
            }
            let events = |w: &Webhook| if w.events.is_empty() { "all".to_owned() } else { w.events.join(" ") };
            let row = |w: &Webhook| vec![w.id.clone(), w.url.clone(), events(w)];
            show::table(&["WEBHOOK", "ADDRESS", "EVENTS"], webhooks.iter().map(row).collect());
        }
        Command::Delete { tenant, id } => client.webhook_delete(&tenant, &id).await?,
        Command::Deliveries { tenant, id } => {
            let deliveries = client.deliveries(&tenant, &id).await?;
            if json {
                show::json(&deliveries);
                return Ok(());
            }
            let row = |d: &Delivery| {
                let outcome = d.error.clone().or(d.answer.map(|answer| answer.to_string())).unwrap_or_default();
                vec![d.id.to_string(), d.event.clone(), d.status.clone(), d.attempts.to_string(), outcome]
            };
            show::table(&["DELIVERY", "EVENT", "STATUS", "ATTEMPTS", "ANSWER"], deliveries.iter().map(row).collect());
        }
    }
    Ok(())
}
