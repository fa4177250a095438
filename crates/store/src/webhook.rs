//! Webhooks: who wants to be told about a tenant's runs, or about everybody's, and what became of it. A delivery is made by the transaction that
//! moves the run (a trigger, see the migration); sending it is a chore.

use landform_base::seal::fill_random;
use landform_base::secret::SecretString;
use landform_domain::{Actor, Code, DeploymentName, Problem, RunId, TenantName};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::db::{Row, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::tenants;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub id: String,
    pub url: String,
    /// Words of statuses; empty means all.
    pub events: Vec<String>,
    pub created_at: i64,
}

/// One message to one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: i64,
    pub event: String,
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub run: RunId,
    pub generation: i64,
    /// `pending`, `delivered` or `given_up`.
    pub status: String,
    pub attempts: i64,
    /// The HTTP status of the last answer.
    pub answer: Option<i64>,
    pub error: Option<String>,
    pub created_at: i64,
    pub ended_at: Option<i64>,
}

/// A delivery whose time has come, with what is needed to send it.
#[derive(Debug)]
pub struct DueDelivery {
    pub delivery: Delivery,
    pub url: String,
    pub secret: SecretString,
}

/// How an attempt to deliver ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Answered with success.
    Delivered(u16),
    /// Try again after so many milliseconds.
    Later {
        answer: Option<u16>,
        error: String,
        millis: i64,
    },
    GivenUp {
        answer: Option<u16>,
        error: String,
    },
}

/// So long nobody else sends a delivery that was handed out, in milliseconds.
const IN_HAND: i64 = 60_000;

const PAGE: i64 = 100;

impl Store {
    /// Makes a webhook; without a tenant it is told about the whole fleet. The secret that signs its messages is shown this
    /// once.
    pub async fn create_webhook(
        &self,
        tenant: Option<&TenantName>,
        url: &str,
        events: &[String],
        by: &Actor,
    ) -> Result<(Webhook, SecretString), StoreError> {
        let (mut id, mut secret) = ([0u8; 8], [0u8; 32]);
        fill_random(&mut id)?;
        fill_random(&mut secret)?;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (id, secret) = (hex(&id), SecretString::from(format!("whsec_{}", hex(&secret))));
        let sealed = match tenant {
            Some(tenant) => self.tenant_key(tenant).await?.seal_webhook(&id, secret.expose().as_bytes())?,
            None => self.inner.keys.installation(self.db()).await?.seal_webhook(&id, secret.expose().as_bytes())?,
        };
        let words = if events.is_empty() { String::new() } else { format!(" {} ", events.join(" ")) };
        let mut tx = self.db().begin().await?;
        let row = match tenant {
            Some(tenant) => {
                tenants::hold(&mut tx, tenant).await?;
                let sql = "INSERT INTO webhooks (id, tenant, url, events, secret, created_at)
                     VALUES ($1, $2, $3, $4, $5, {now}) RETURNING id, url, events, created_at";
                tx.exactly_one(sql, params![id.as_str(), tenant.as_str(), url, words, sealed]).await?
            }
            None => {
                let sql = "INSERT INTO fleet_webhooks (id, url, events, secret, created_at)
                     VALUES ($1, $2, $3, $4, {now}) RETURNING id, url, events, created_at";
                tx.exactly_one(sql, params![id.as_str(), url, words, sealed]).await?
            }
        };
        let detail = json!({"url": url, "events": events});
        write_down(&mut tx, by, Deed { action: "webhook.create", tenant, target: id, detail }).await?;
        tx.commit().await?;
        Ok((webhook(&row)?, secret))
    }

    pub async fn webhooks(&self, tenant: Option<&TenantName>) -> Result<Vec<Webhook>, StoreError> {
        let rows = match tenant {
            Some(tenant) => {
                self.tenant(tenant).await?;
                let sql = "SELECT id, url, events, created_at FROM webhooks WHERE tenant = $1 ORDER BY created_at, id";
                self.db().read_all(sql, params![tenant.as_str()]).await?
            }
            None => {
                let sql = "SELECT id, url, events, created_at FROM fleet_webhooks ORDER BY created_at, id";
                self.db().read_all(sql, params![]).await?
            }
        };
        rows.iter().map(webhook).collect()
    }

    /// Deletes a webhook; what was still to be delivered to it is not sent.
    pub async fn delete_webhook(&self, tenant: Option<&TenantName>, id: &str, by: &Actor) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let deleted = match tenant {
            Some(tenant) => {
                let sql = "DELETE FROM webhooks WHERE tenant = $1 AND id = $2";
                tx.execute(sql, params![tenant.as_str(), id]).await?
            }
            None => tx.execute("DELETE FROM fleet_webhooks WHERE id = $1", params![id]).await?,
        };
        if deleted == 0 {
            return Err(unknown(id));
        }
        tx.execute("DELETE FROM deliveries WHERE webhook = $1", params![id]).await?;
        let deed = Deed { action: "webhook.delete", tenant, target: id.to_owned(), detail: json!({}) };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await
    }

    /// What was sent to a webhook, or is to be, the newest first.
    pub async fn deliveries(&self, tenant: Option<&TenantName>, id: &str) -> Result<Vec<Delivery>, StoreError> {
        let found = match tenant {
            Some(tenant) => {
                let sql = "SELECT id FROM webhooks WHERE tenant = $1 AND id = $2";
                self.db().read_one(sql, params![tenant.as_str(), id]).await?
            }
            None => self.db().read_one("SELECT id FROM fleet_webhooks WHERE id = $1", params![id]).await?,
        };
        found.ok_or_else(|| unknown(id))?;
        let sql = "SELECT id, event, tenant, deployment, run, generation, status, attempts, answer, error, created_at,
                ended_at
             FROM deliveries WHERE webhook = $1 ORDER BY id DESC LIMIT $2";
        self.db().read_all(sql, params![id, PAGE]).await?.iter().map(delivery).collect()
    }

    /// Hands out what is to be sent now. Nobody else gets it for a minute; if the sender dies, it is sent again then.
    pub async fn take_deliveries(&self, most: i64) -> Result<Vec<DueDelivery>, StoreError> {
        let sql = "SELECT d.id, d.event, d.tenant, d.deployment, d.run, d.generation, d.status, d.attempts, d.answer,
                d.error, d.created_at, d.ended_at, d.webhook, COALESCE(w.url, f.url) AS url, w.secret,
                f.secret AS fleet_secret
             FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook LEFT JOIN fleet_webhooks f ON f.id = d.webhook
             WHERE (w.id IS NOT NULL OR f.id IS NOT NULL) AND d.status = 'pending' AND d.next_at <= {now} ORDER BY d.next_at LIMIT $1";
        let (mut due, mut of_fleet) = (Vec::new(), None);
        for row in self.db().read_all(sql, params![most]).await? {
            let delivery = delivery(&row)?;
            let id = row.text("webhook")?;
            let secret = match row.blob_or_null("fleet_secret")? {
                Some(sealed) => {
                    if of_fleet.is_none() {
                        of_fleet = Some(self.inner.keys.installation(self.db()).await?);
                    }
                    of_fleet.as_ref().map(|key| key.open_webhook(&id, &sealed)).transpose()?.unwrap_or_default()
                }
                None => self.tenant_key(&delivery.tenant).await?.open_webhook(&id, &row.blob("secret")?)?,
            };
            let secret = String::from_utf8(secret).map_err(|_| StoreError::Corrupt("a webhook's secret".into()))?;
            due.push(DueDelivery { delivery, url: row.text("url")?, secret: SecretString::from(secret) });
        }
        if due.is_empty() {
            return Ok(due);
        }
        let mut tx = self.db().begin().await?;
        for due in &due {
            tx.execute(
                "UPDATE deliveries SET next_at = {now} + $2, attempts = attempts + 1 WHERE id = $1",
                params![due.delivery.id, IN_HAND],
            )
            .await?;
        }
        tx.commit().await?;
        Ok(due)
    }

    /// Writes down how an attempt ended.
    pub async fn delivery_sent(&self, id: i64, sent: &Sent) -> Result<(), StoreError> {
        let (status, answer, error, millis) = match sent {
            Sent::Delivered(answer) => ("delivered", Some(*answer), None, 0),
            Sent::Later { answer, error, millis } => ("pending", *answer, Some(error.as_str()), *millis),
            Sent::GivenUp { answer, error } => ("given_up", *answer, Some(error.as_str()), 0),
        };
        let mut tx = self.db().begin().await?;
        tx.execute(
            "UPDATE deliveries SET status = $2, answer = $3, error = $4, next_at = {now} + $5,
                ended_at = CASE WHEN $2 = 'pending' THEN NULL ELSE {now} END
             WHERE id = $1",
            params![id, status, answer.map(i64::from), error, millis],
        )
        .await?;
        tx.commit().await
    }
}

fn webhook(row: &Row) -> Result<Webhook, StoreError> {
    Ok(Webhook {
        id: row.text("id")?,
        url: row.text("url")?,
        events: row.text("events")?.split_whitespace().map(str::to_owned).collect(),
        created_at: row.int("created_at")?,
    })
}

fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        id: row.int("id")?,
        event: row.text("event")?,
        tenant: row.parsed("tenant")?,
        deployment: row.parsed("deployment")?,
        run: row.parsed("run")?,
        generation: row.int("generation")?,
        status: row.text("status")?,
        attempts: row.int("attempts")?,
        answer: row.int_or_null("answer")?,
        error: row.text_or_null("error")?,
        created_at: row.int("created_at")?,
        ended_at: row.int_or_null("ended_at")?,
    })
}

fn unknown(id: &str) -> StoreError {
    let shown: String = id.chars().take(40).collect();
    Problem::new(Code::WebhookUnknown, format!("there is no webhook {shown:?}")).into()
}
