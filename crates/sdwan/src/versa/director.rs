//! The Director's REST interface: who we are, what it answers, and what silence means.

use std::sync::Arc;
use std::time::{Duration, Instant};

use landform_base::redact::Redactor;
use landform_base::secret::SecretString;
use landform_protocol::Diagnostic;
use landform_provider_kit::{Bytes, Failure, Shortcut, http};
use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use tokio::sync::Mutex;

const CONNECT: Duration = Duration::from_secs(10);
/// A request that was refused for its rate was not carried out: it is sent again this often.
const RATE_LIMITED: usize = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A task may be over at once; one that is not takes its time, and every look is a call out of the account's budget.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const SECOND_LOOK: Duration = Duration::from_millis(150);
const LAST_LOOK: Duration = Duration::from_secs(2);

pub struct Settings {
    pub url: String,
    pub login: Login,
    /// How long one request may take.
    pub patience: Duration,
    /// PEM.
    pub authority: Option<String>,
}

pub struct Login {
    pub user: String,
    pub password: SecretString,
    /// Id and secret of an API client: log in for a token.
    pub client: Option<(String, SecretString)>,
}

/// A client of one Director, as one user.
pub struct Director {
    http: reqwest::Client,
    /// Past the network, if the address is one of this program's own.
    shortcut: Option<Arc<dyn Shortcut>>,
    url: String,
    patience: Duration,
    login: Login,
    token: Mutex<Option<SecretString>>,
}

/// What went wrong, and what that says about the world.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("{status}: {message}")]
    Refused { status: StatusCode, message: String },
    /// It may have been carried out, or not.
    #[error("{0}")]
    NoAnswer(String),
}

impl Trouble {
    pub fn is(&self, wanted: StatusCode) -> bool {
        matches!(self, Trouble::Refused { status, .. } if *status == wanted)
    }

    pub fn during(self, what: &str) -> Failure {
        let summary = match &self {
            Trouble::Refused { .. } => format!("The Director refused to {what}"),
            Trouble::NoAnswer(_) => format!("No answer from the Director when asked to {what}"),
        };
        Diagnostic::error(summary, self.to_string()).into()
    }
}

impl Director {
    pub fn new(settings: Settings, shortcut: Option<Arc<dyn Shortcut>>) -> Result<Director, String> {
        let http = match &settings.authority {
            Some(pem) => reqwest::Certificate::from_pem_bundle(pem.as_bytes())
                .and_then(|certificates| client().tls_certs_only(certificates).build()),
            None if settings.url.starts_with("http://") => in_clear(),
            None => client().build(),
        };
        let http = http.map_err(|error| error.to_string())?;
        let Settings { url, login, patience, .. } = settings;
        let shortcut = shortcut.filter(|shortcut| shortcut.leads_to(&url));
        Ok(Director { http, shortcut, url, patience, login, token: Mutex::new(None) })
    }

    /// The object at a path; None if there is none.
    pub async fn find(&self, path: &str) -> Result<Option<Json>, Trouble> {
        match self.send(Method::GET, path, None).await {
            Ok(found) => Ok(Some(found)),
            Err(trouble) if trouble.is(StatusCode::NOT_FOUND) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Makes a named object. After silence it is looked up: names are unique at the Director, so what is there by that name
    /// and holds what was sent is ours.
    pub async fn make(&self, method: Method, path: &str, place: &str, body: &Json) -> Result<(), Trouble> {
        match self.send(method, path, Some(body)).await {
            Ok(_) => Ok(()),
            Err(Trouble::NoAnswer(why)) => match self.find(place).await {
                Ok(Some(found)) if holds(&found, body) => Ok(()),
                Ok(Some(_)) => Err(Trouble::NoAnswer(format!("{why}; and another object has this name"))),
                Ok(None) => Err(Trouble::NoAnswer(format!("{why}; it was looked up, and there is none by this name"))),
                Err(_) => Err(Trouble::NoAnswer(why)),
            },
            Err(trouble) => Err(trouble),
        }
    }

    pub async fn change(&self, path: &str, body: &Json) -> Result<(), Trouble> {
        self.send(Method::PUT, path, Some(body)).await.map(drop)
    }

    /// What is gone already is a success.
    pub async fn delete(&self, path: &str) -> Result<(), Trouble> {
        match self.send(Method::DELETE, path, None).await {
            Err(trouble) if trouble.is(StatusCode::NOT_FOUND) => Ok(()),
            other => other.map(drop),
        }
    }

    pub async fn get(&self, path: &str) -> Result<Json, Trouble> {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str) -> Result<Json, Trouble> {
        self.send(Method::POST, path, None).await
    }

    /// Asks for work that takes its time, and waits until it has ended well.
    pub async fn task(&self, path: &str, patience: Duration) -> Result<(), Trouble> {
        let begin = Instant::now();
        let accepted = self.post(path).await?;
        let Some(id) = accepted["TaskResponse"]["task-id"].as_str().map(str::to_owned) else {
            return Err(Trouble::NoAnswer(format!("the answer names no task: {accepted}")));
        };
        let (mut pause, place) = (FIRST_LOOK, format!("/vnms/tasks/task/{}", segment(&id)));
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).clamp(SECOND_LOOK, LAST_LOOK);
            let last = match self.get(&place).await {
                Ok(answer) => {
                    let task = &answer["versa-tasks.task"];
                    match task["versa-tasks.task-status"].as_str().unwrap_or_default() {
                        "COMPLETED" => return Ok(()),
                        "FAILED" => {
                            let message = format!("task {id} failed: {}", said(task));
                            return Err(Trouble::Refused { status: StatusCode::OK, message });
                        }
                        status => format!("task {id} is {status}"),
                    }
                }
                // A look changes nothing; the next one may get an answer.
                Err(Trouble::NoAnswer(why)) => why,
                Err(trouble) => return Err(trouble),
            };
            if begin.elapsed() > patience {
                return Err(Trouble::NoAnswer(format!("{last} after {} s", patience.as_secs())));
            }
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Json>) -> Result<Json, Trouble> {
        let mut logged_in = false;
        let mut limited = 0;
        loop {
            let request = self.http.request(method.clone(), format!("{}{path}", self.url));
            let request = self.identified(request).await?;
            let Answer { status, wait, text } = self
                .ask(match body {
                    Some(body) => request.json(body),
                    None => request,
                })
                .await?;
            if status == StatusCode::TOO_MANY_REQUESTS && limited < RATE_LIMITED {
                limited += 1;
                tokio::time::sleep(wait).await;
                continue;
            }
            if status == StatusCode::UNAUTHORIZED && self.login.client.is_some() && !logged_in {
                logged_in = true;
                *self.token.lock().await = None;
                continue;
            }
            if !status.is_success() {
                let message = self.redacted(&message_of(&text), body);
                // A server that fails may have done its work before; and 424 is the gateway's word for silence.
                return Err(match status.is_server_error() || status == StatusCode::FAILED_DEPENDENCY {
                    true => Trouble::NoAnswer(format!("{status}: {message}")),
                    false => Trouble::Refused { status, message },
                });
            }
            if text.trim().is_empty() {
                return Ok(Json::Null);
            }
            let broken = |error| Trouble::NoAnswer(format!("the answer is no JSON: {error}"));
            return serde_json::from_str(&text).map_err(broken);
        }
    }

    async fn identified(&self, request: reqwest::RequestBuilder) -> Result<reqwest::RequestBuilder, Trouble> {
        let Some((id, secret)) = &self.login.client else {
            return Ok(request.basic_auth(&self.login.user, Some(self.login.password.expose())));
        };
        let mut token = self.token.lock().await;
        if token.is_none() {
            let body = json!({"grant_type": "password", "client_id": id, "client_secret": secret.expose(),
                "username": self.login.user, "password": self.login.password.expose()});
            let request = self.http.post(format!("{}/auth/token", self.url));
            let Answer { status, text, .. } = self.ask(request.json(&body)).await?;
            let given: Option<Json> = serde_json::from_str(&text).ok();
            let given = given.as_ref().and_then(|json| json["access_token"].as_str());
            let Some(given) = given.filter(|_| status.is_success()) else {
                return Err(Trouble::Refused { status, message: self.redacted(&message_of(&text), Some(&body)) });
            };
            *token = Some(SecretString::new(given.to_owned()));
        }
        Ok(request.bearer_auth(token.as_ref().map_or("", |token| token.expose().as_str())))
    }

    /// One request, and all of its answer.
    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Answer, Trouble> {
        let Some(shortcut) = &self.shortcut else {
            let answer = request.timeout(self.patience).send().await.map_err(|error| silence(&error))?;
            let (status, wait) = (answer.status(), wait_of(answer.headers()));
            let text = answer.text().await.map_err(|error| silence(&error))?;
            return Ok(Answer { status, wait, text });
        };
        let request = request.build().map_err(|error| silence(&error))?;
        let request = by_shortcut(request).map_err(|error| Trouble::NoAnswer(error.to_string()))?;
        let answer = tokio::time::timeout(self.patience, shortcut.send(request)).await;
        let no_answer = |_| Trouble::NoAnswer(format!("no answer within {} s", self.patience.as_secs()));
        let (head, body) = answer.map_err(no_answer)?.into_parts();
        let text = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status: head.status, wait: wait_of(&head.headers), text })
    }

    /// Vendors echo what they were sent.
    fn redacted(&self, text: &str, body: Option<&Json>) -> String {
        let mut secrets = vec![self.login.password.clone()];
        secrets.extend(self.login.client.as_ref().map(|(_, secret)| secret.clone()));
        collect(body.unwrap_or(&Json::Null), &mut secrets);
        Redactor::new(&secrets).redact(text)
    }
}

struct Answer {
    status: StatusCode,
    /// How long to wait, if it was refused for its rate.
    wait: Duration,
    text: String,
}

/// An address is no secret, and the reason is often two causes deep.
fn silence(error: &reqwest::Error) -> Trouble {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    Trouble::NoAnswer(text)
}

fn by_shortcut(request: reqwest::Request) -> http::Result<http::Request<Bytes>> {
    let body = request.body().and_then(reqwest::Body::as_bytes).map(Bytes::copy_from_slice).unwrap_or_default();
    let mut built = http::Request::builder().method(request.method()).uri(request.url().as_str()).body(body)?;
    *built.headers_mut() = request.headers().clone();
    Ok(built)
}

fn client() -> reqwest::ClientBuilder {
    // TLS needs an implementation for the whole process; the first who comes installs it.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT).redirect(reqwest::redirect::Policy::none())
}

/// Who speaks in clear is told from others by nothing: all of them share their connections, to Landform's gateway as a
/// rule. They live in a runtime, so each runtime has a client of its own.
fn in_clear() -> reqwest::Result<reqwest::Client> {
    const MOST_RUNTIMES: usize = 128;
    static CLIENTS: std::sync::Mutex<Vec<(tokio::runtime::Id, reqwest::Client)>> = std::sync::Mutex::new(Vec::new());
    let here = tokio::runtime::Handle::current().id();
    let mut clients = CLIENTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(runtime, _)| *runtime == here) {
        return Ok(client.clone());
    }
    // Must not depend on whether the system has certificates.
    let client = client().tls_certs_only([]).build()?;
    if clients.len() >= MOST_RUNTIMES {
        clients.remove(0);
    }
    clients.push((here, client.clone()));
    Ok(client)
}

/// Fields of our bodies that hold secrets.
const SECRET_FIELDS: [&str; 3] = ["key", "password", "client_secret"];

fn collect(json: &Json, secrets: &mut Vec<SecretString>) {
    match json {
        Json::Object(fields) => {
            for (name, inner) in fields {
                match inner.as_str() {
                    Some(text) if SECRET_FIELDS.contains(&name.as_str()) => secrets.push(SecretString::from(text)),
                    _ => collect(inner, secrets),
                }
            }
        }
        Json::Array(elements) => elements.iter().for_each(|inner| collect(inner, secrets)),
        _ => {}
    }
}

/// The Director's own words.
fn message_of(text: &str) -> String {
    const LONGEST: usize = 2000;
    let json: Json = serde_json::from_str(text).unwrap_or_default();
    let words = ["message", "description", "error_description", "error"].iter().find_map(|name| json[*name].as_str());
    words.unwrap_or(text).chars().take(LONGEST).collect()
}

fn said(task: &Json) -> String {
    let messages = task["versa-tasks.progressmessages"]["versa-tasks.progressmessage"].as_array();
    let messages = messages.into_iter().flatten().filter_map(|message| message["versa-tasks.message"].as_str());
    messages.collect::<Vec<_>>().join("; ")
}

fn wait_of(headers: &http::HeaderMap) -> Duration {
    let seconds = headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    Duration::from_secs(seconds.unwrap_or(1)).clamp(Duration::from_millis(100), LONGEST_WAIT)
}

/// Whether everything that was sent is there; the Director adds fields of its own, and never tells a secret again.
fn holds(found: &Json, sent: &Json) -> bool {
    match (found, sent) {
        (Json::Object(found), Json::Object(sent)) => sent
            .iter()
            .filter(|(name, _)| !SECRET_FIELDS.contains(&name.as_str()))
            .all(|(name, inner)| found.get(name).is_some_and(|there| holds(there, inner))),
        (Json::Array(found), Json::Array(sent)) => {
            found.len() == sent.len() && found.iter().zip(sent).all(|(found, sent)| holds(found, sent))
        }
        (found, sent) => found == sent,
    }
}

/// A name as a part of a path.
pub fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_recognised_among_what_the_vendor_added() {
        let sent = json!({"a": {"b": [1, {"c": "x"}]}});
        assert!(holds(&json!({"a": {"b": [1, {"c": "x", "d": 1}], "e": null}}), &sent));
        assert!(!holds(&json!({"a": {"b": [1, {"c": "y"}]}}), &sent));
        assert!(!holds(&json!({"a": {"b": [1]}}), &sent));
        let (key, masked) = (json!({"name": "t", "key": "battery"}), json!({"name": "t", "key": "********"}));
        assert!(holds(&masked, &key) && holds(&json!({"name": "t"}), &key));
    }

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(segment("to cato/1 ü"), "to%20cato%2F1%20%C3%BC");
    }
}
