//! One call to a vendor, sent once.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};

use crate::counts::lock;

const CONNECT: Duration = Duration::from_secs(10);
const LARGEST_ANSWER: usize = 64 << 20;
/// Authorities that tenants bring, each at every thread that carries out runs.
const MOST_CLIENTS: usize = 256;

pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
    /// PEM.
    pub(crate) authority: Option<&'a str>,
    pub(crate) patience: Duration,
}

pub(crate) enum Answer {
    Said(Said),
    /// It may have been carried out, or not.
    Silence(String),
    /// It was not sent.
    Unreachable(String),
}

pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Said {
    /// In seconds, or a date: by the vendor's own clock, where its answer says what it shows.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let text = |name| self.headers.get(name)?.to_str().ok().map(str::trim);
        let wait = text(header::RETRY_AFTER)?;
        if let Ok(seconds) = wait.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = httpdate::parse_http_date(wait).ok()?;
        let now = text(header::DATE).and_then(|date| httpdate::parse_http_date(date).ok());
        Some(date.duration_since(now.unwrap_or_else(SystemTime::now)).unwrap_or_default())
    }

    /// Whether the call was carried out cannot be told from it: the vendor failed, maybe after its work was done, or says
    /// that it has done it in words that nobody can read to their end.
    pub(crate) fn leaves_open(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let broken = || {
            kind.to_ascii_lowercase().contains("json")
                && !self.body.is_empty()
                && serde_json::from_slice::<serde::de::IgnoredAny>(&self.body).is_err()
        };
        self.status.is_server_error() || self.status.is_success() && broken()
    }
}

/// How a vendor's identity is checked.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Trust {
    /// Speaks in clear: must not depend on whether the system has certificates.
    Nobody,
    System,
    Authority(String),
}

#[derive(Default)]
pub(crate) struct Forwarder {
    /// Connections live in a runtime, and are woken there: each has clients of its own.
    clients: Mutex<HashMap<(Trust, tokio::runtime::Id), reqwest::Client>>,
}

impl Forwarder {
    pub(crate) async fn send(&self, request: Request<'_>) -> Answer {
        let client = match self.client(request.url, request.authority) {
            Ok(client) => client,
            Err(why) => return Answer::Unreachable(why),
        };
        let begun = Instant::now();
        let mut headers = request.headers.clone();
        not_for_others(&mut headers);
        // The answer must be readable here.
        headers.remove(header::ACCEPT_ENCODING);
        headers.remove(header::HOST);
        let sending = client.request(request.method, request.url).headers(headers).body(request.body).send();
        let silent = || Answer::Silence(format!("no answer within {} s", request.patience.as_secs()));
        let answer = match tokio::time::timeout(request.patience, sending).await {
            Err(_) => return silent(),
            Ok(Err(error)) if error.is_connect() || error.is_builder() => return Answer::Unreachable(text(error)),
            Ok(Err(error)) => return Answer::Silence(text(error)),
            Ok(Ok(answer)) => answer,
        };
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        not_for_others(&mut headers);
        let left = request.patience.saturating_sub(begun.elapsed());
        match tokio::time::timeout(left, body_of(answer)).await {
            Err(_) => silent(),
            Ok(Err(why)) => Answer::Silence(why),
            Ok(Ok(body)) => Answer::Said(Said { status, headers, body }),
        }
    }

    fn client(&self, url: &str, authority: Option<&str>) -> Result<reqwest::Client, String> {
        let trust = match authority {
            _ if url.starts_with("http://") => Trust::Nobody,
            Some(pem) => Trust::Authority(pem.to_owned()),
            None => Trust::System,
        };
        let of = (trust, tokio::runtime::Handle::current().id());
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(&of) {
            return Ok(client.clone());
        }
        let client = client(&of.0).map_err(text)?;
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        clients.insert(of, client.clone());
        Ok(client)
    }
}

fn client(trust: &Trust) -> reqwest::Result<reqwest::Client> {
    // TLS needs an implementation for the whole process; the first who comes installs it.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never());
    match trust {
        Trust::Nobody => client.tls_certs_only([]),
        Trust::System => client,
        Trust::Authority(pem) => client.tls_certs_only(reqwest::Certificate::from_pem_bundle(pem.as_bytes())?),
    }
    .build()
}

async fn body_of(mut answer: reqwest::Response) -> Result<Bytes, String> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(text)? {
        if body.len() + chunk.len() > LARGEST_ANSWER {
            return Err(format!("the answer is larger than {LARGEST_ANSWER} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

/// Headers that are about a connection and not about the call.
fn not_for_others(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let always = [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ];
    for name in named.into_iter().chain(always) {
        headers.remove(name);
    }
}

/// The reason is often two causes deep. The address is the tenant's and is left out.
fn text(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_leaves_it_open_if_the_vendor_failed_or_broke_off() {
        let open = |status: u16, kind: &'static str, body: &'static str| {
            let headers = [(header::CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect();
            Said { status: StatusCode::from_u16(status).unwrap(), headers, body: body.into() }.leaves_open()
        };
        for status in [500, 502, 503, 504, 599] {
            assert!(open(status, "text/plain", ""), "{status}");
        }
        assert!(open(200, "application/json; charset=utf-8", r#"{"data": {"#));
        assert!(open(201, "application/vnd.x+JSON", "["));
        for (status, kind, body) in [
            (200, "application/json", r#"{"errors": []}"#),
            (201, "application/json", ""),
            (200, "text/html", "<p>"),
            (404, "application/json", "{"),
            (409, "text/plain", ""),
        ] {
            assert!(!open(status, kind, body), "{status} {kind} {body}");
        }
    }

    #[test]
    fn a_vendor_says_how_long_to_wait_in_seconds_or_by_a_date() {
        let wait = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs.iter().map(|(name, text)| (name.clone(), text.parse().unwrap()));
            Said { status: StatusCode::TOO_MANY_REQUESTS, headers: pairs.collect(), body: Bytes::new() }.retry_after()
        };
        assert_eq!(wait(&[(header::RETRY_AFTER, " 7")]), Some(Duration::from_secs(7)));
        let date = (header::DATE, "Tue, 17 Nov 2026 01:00:00 GMT");
        let later = (header::RETRY_AFTER, "Tue, 17 Nov 2026 01:00:30 GMT");
        assert_eq!(wait(&[later, date.clone()]), Some(Duration::from_secs(30)));
        assert_eq!(wait(&[(header::RETRY_AFTER, "Tue, 17 Nov 2026 00:59:00 GMT"), date]), Some(Duration::ZERO));
        assert_eq!(wait(&[(header::RETRY_AFTER, "soon")]), None);
        assert_eq!(wait(&[]), None);
    }
}
