//! Sending what webhooks are to be told. An address is checked when it is connected to, not when it is written down: what
//! a name means may change in between.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use hmac::{Hmac, KeyInit, Mac};
use landform_base::address::is_public;
use landform_base::secret::SecretString;
use landform_store::{Chore, ChoreEnd, Chores, Delivery, DueDelivery, Sent, Store};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::Sha256;
use tokio::sync::OnceCell;

/// Sends what is due, once in a while.
#[derive(Clone, Serialize, Deserialize)]
struct DeliverWebhooks {}

impl Chore for DeliverWebhooks {
    const KIND: &'static str = "deliver_webhooks";
    const ATTEMPTS: u16 = 1;
}

const LOOK_EVERY: Duration = Duration::from_secs(2);
const AT_ONCE: usize = 16;
/// Few enough for one chore to end in time, even if none of them answers.
const MOST: i64 = 64;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Together some nine hours.
const MOST_ATTEMPTS: i64 = 12;
const LONGEST_PAUSE: i64 = 3 * 3600 * 1000;

/// Adds the delivery of webhooks to the chores. `allowed` names hosts that may be at an address which is otherwise
/// forbidden.
pub fn deliver_webhooks(chores: Chores, store: &Store, allowed: BTreeSet<String>) -> Chores {
    let (store, allowed) = (store.clone(), Arc::new(allowed));
    // Made when it is needed for the first time: it reads all certificates of the system.
    let sender: Arc<OnceCell<Sender>> = Arc::default();
    chores.every(LOOK_EVERY, DeliverWebhooks {}, move |_| {
        let (store, allowed, sender) = (store.clone(), allowed.clone(), sender.clone());
        async move {
            let due = store.take_deliveries(MOST).await?;
            if due.is_empty() {
                return Ok(ChoreEnd::Done);
            }
            let sender = sender.get_or_try_init(|| async { Sender::new(allowed) }).await?;
            let more = due.len() as i64 == MOST;
            let sending = futures::stream::iter(due).map(|due| {
                let store = store.clone();
                async move {
                    let sent = sender.send(&due).await;
                    if let Err(error) = store.delivery_sent(due.delivery.id, &sent).await {
                        tracing::warn!(%error, "a delivery's end could not be written down; it is sent again");
                    }
                }
            });
            sending.buffer_unordered(AT_ONCE).collect::<()>().await;
            Ok(if more { ChoreEnd::Again(Duration::ZERO) } else { ChoreEnd::Done })
        }
    })
}

struct Sender {
    http: reqwest::Client,
    allowed: Arc<BTreeSet<String>>,
}

impl Sender {
    fn new(allowed: Arc<BTreeSet<String>>) -> Result<Sender, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(ANSWER_WITHIN)
            .dns_resolver(Guard { allowed: allowed.clone() })
            .user_agent(concat!("landform/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Sender { http, allowed })
    }

    async fn send(&self, due: &DueDelivery) -> Sent {
        match self.post(due).await {
            Ok(status) if (200..300).contains(&status) => Sent::Delivered(status),
            Ok(status) => again(due, Some(status), format!("answered with {status}")),
            Err(error) => again(due, None, error),
        }
    }

    async fn post(&self, due: &DueDelivery) -> Result<u16, String> {
        let url: reqwest::Url = due.url.parse().map_err(|_| "not an address".to_owned())?;
        self.check_literal(&url)?;
        let body = body(&due.delivery);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let request = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .header("landform-webhook-id", due.delivery.id)
            .header("landform-webhook-timestamp", now)
            .header("landform-webhook-signature", signature(&due.secret, due.delivery.id, now, &body))
            .body(body);
        let answer = request.send().await.map_err(|error| innermost(&error))?;
        Ok(answer.status().as_u16())
    }

    /// An address that is written as a number is asked of no resolver.
    fn check_literal(&self, url: &reqwest::Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) if !is_public(address) && !self.allowed.contains(bare) => Err(forbidden(address)),
            _ => Ok(()),
        }
    }
}

fn again(due: &DueDelivery, answer: Option<u16>, error: String) -> Sent {
    let error: String = error.chars().take(500).collect();
    let attempt = due.delivery.attempts + 1;
    if attempt >= MOST_ATTEMPTS {
        return Sent::GivenUp { answer, error };
    }
    let millis = (1000i64 << attempt.clamp(1, 30)).min(LONGEST_PAUSE);
    Sent::Later { answer, error, millis }
}

/// Names and numbers only: whoever gets it asks for the rest with a token of its own.
fn body(delivery: &Delivery) -> String {
    json!({
        "id": delivery.id,
        "type": delivery.event,
        "at_unix_millis": delivery.created_at,
        "tenant": delivery.tenant,
        "deployment": delivery.deployment,
        "run": delivery.run,
        "generation": delivery.generation,
    })
    .to_string()
}

/// Over id, time and body, so that none of them can be exchanged.
fn signature(secret: &SecretString, id: i64, timestamp: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("any length is fine");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1={hex}")
}

/// Resolves a name and refuses it if any of its addresses is not for the public. What it answers is what is connected to.
struct Guard {
    allowed: Arc<BTreeSet<String>>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.contains(name.as_str());
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if let Some(address) = found.iter().map(SocketAddr::ip).find(|address| !allowed && !is_public(*address)) {
                return Err(forbidden(address).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn forbidden(address: IpAddr) -> String {
    format!("{address} is not a public address, and the operator has not allowed this host")
}

/// The innermost reason; the outer ones repeat the address, which may hold a secret.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_means_this_machine_is_not_connected_to() {
        let guard = |allowed: &[&str]| Guard { allowed: Arc::new(allowed.iter().map(ToString::to_string).collect()) };
        let refused = guard(&[]).resolve("localhost".parse().unwrap()).await.err().expect("refused").to_string();
        assert!(refused.contains("not a public address"), "{refused}");
        assert!(guard(&["localhost"]).resolve("localhost".parse().unwrap()).await.is_ok());
    }
}
