//! What is taken out of a request. Whatever is wrong with it becomes a [`Refusal`], in bounded time and memory.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt;
use landform_domain::{Actor, Code, ConnectionName, DeploymentName, Problem, RunId, TemplateName, TenantName};
use serde::de::DeserializeOwned;

use crate::Server;
use crate::problem::Refusal;
use crate::route::gate::unknown_tenant;

/// Inputs may have a mebibyte; the rest of a body is small.
const LARGEST_JSON: usize = 2 << 20;

/// So many times what is allowed is read from a client before the connection is closed on it.
const PATIENCE: usize = 4;

/// A body that comes slower than this is given up.
const SLOWEST_BODY: Duration = Duration::from_secs(30);

const LONGEST_WAIT: u64 = 600;

/// The names in a path, checked.
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    pub fn tenant(&self) -> Result<TenantName, Refusal> {
        self.parse("tenant")
    }

    pub fn deployment(&self) -> Result<DeploymentName, Refusal> {
        self.parse("deployment")
    }

    pub fn template(&self) -> Result<TemplateName, Refusal> {
        self.parse("template")
    }

    pub fn connection(&self) -> Result<ConnectionName, Refusal> {
        self.parse("connection")
    }

    pub fn run(&self) -> Result<RunId, Refusal> {
        self.parse("run")
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A part of the path that is compared with what there is, whatever it looks like.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    fn parse<T: std::str::FromStr<Err = Problem>>(&self, name: &str) -> Result<T, Refusal> {
        Ok(self.text(name).parse::<T>()?)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Names {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Names, Refusal> {
        let names = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        names.map(|Path(names)| Names(names)).map_err(|e| Refusal::new(Code::RequestInvalid, e.body_text()))
    }
}

/// The query, with every name in it known.
pub(crate) struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Refusal> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(query)| Asked(query)).map_err(|e| Refusal::new(Code::RequestInvalid, e.body_text()))
    }
}

/// An empty parameter is one that was not given.
pub(crate) fn given<T: std::str::FromStr<Err = Problem>>(text: Option<String>) -> Result<Option<T>, Refusal> {
    Ok(text.filter(|text| !text.is_empty()).map(|text| text.parse::<T>()).transpose()?)
}

/// The tenant that a list is about: the one asked for, if the actor can see it; a bound actor's own otherwise. An empty list
/// would hide a typing mistake, so it was there once: what it did outlives it.
pub(crate) async fn narrowed(
    server: &Server,
    actor: &Actor,
    asked: Option<TenantName>,
) -> Result<Option<TenantName>, Refusal> {
    match asked {
        Some(tenant) if !actor.sees(&tenant) => Err(unknown_tenant(&tenant)),
        Some(tenant) => {
            server.store.check_tenant(&tenant).await?;
            Ok(Some(tenant))
        }
        None => Ok(actor.tenant.clone()),
    }
}

/// The template that a list is about, if it was ever pushed: what was made with it outlives its versions.
pub(crate) async fn known_template(
    server: &Server,
    asked: Option<TemplateName>,
) -> Result<Option<TemplateName>, Refusal> {
    if let Some(template) = &asked {
        server.store.check_template(template).await?;
    }
    Ok(asked)
}

/// A JSON body; an empty one stands for `{}`.
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &S) -> Result<JsonBody<T>, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| !kind.to_ascii_lowercase().contains("json")) {
            let refusal = Refusal::new(Code::RequestInvalid, "the body is not declared as `application/json`");
            return Err(refusal.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes = whole_body(request.into_body(), LARGEST_JSON).await?;
        let bytes = if bytes.is_empty() { Bytes::from_static(b"{}") } else { bytes };
        let read = landform_api::read_json(&bytes);
        read.map(JsonBody).map_err(|e| Refusal::new(Code::RequestInvalid, format!("the body cannot be read: {e}")))
    }
}

/// The body, if it has at most `largest` bytes. What is over that is thrown away as it comes, for a while: a client that
/// is still sending could not read the answer.
pub(crate) async fn whole_body(body: Body, largest: usize) -> Result<Bytes, Refusal> {
    let too_large = || Refusal::new(Code::BodyTooLarge, format!("the body has more than {largest} bytes"));
    let mut chunks = body.into_data_stream();
    let mut whole = Vec::new();
    let mut length = 0;
    let reading = async {
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Refusal::new(Code::RequestInvalid, "the body ended early"))?;
            length += chunk.len();
            if length <= largest {
                whole.extend_from_slice(&chunk);
            } else if length > PATIENCE * largest {
                return Err(too_large());
            }
        }
        if length > largest { Err(too_large()) } else { Ok(()) }
    };
    let slow = |_| Refusal::new(Code::RequestInvalid, "the body came too slowly");
    tokio::time::timeout(SLOWEST_BODY, reading).await.map_err(slow)??;
    Ok(whole.into())
}

/// `Prefer: wait=SECONDS`, as RFC 7240 has it; other preferences are not ours.
pub(crate) fn preferred_wait(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    for value in headers.get_all("prefer") {
        let text = value.to_str().unwrap_or_default();
        for preference in text.split([',', ';']) {
            let Some(seconds) = preference.trim().strip_prefix("wait=") else { continue };
            let seconds: u64 = seconds
                .trim_matches('"')
                .parse()
                .map_err(|_| Refusal::new(Code::RequestInvalid, "`Prefer: wait=` takes a whole number of seconds"))?;
            return Ok(Some(Duration::from_secs(seconds.min(LONGEST_WAIT))));
        }
    }
    Ok(None)
}

/// `If-Match` with the generation that the caller has seen.
pub(crate) fn expected_generation(headers: &HeaderMap) -> Result<Option<i64>, Refusal> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let tag = value.to_str().unwrap_or_default().trim();
    let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).and_then(|tag| tag.parse().ok());
    number.map(Some).ok_or_else(|| Refusal::new(Code::RequestInvalid, "`If-Match` takes one ETag, such as \"3\""))
}

pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    check_idempotency_key(key)?;
    Ok(Some(key.to_owned()))
}

pub(crate) fn check_idempotency_key(key: &str) -> Result<(), Refusal> {
    if (1..=200).contains(&key.len()) && !key.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Refusal::new(Code::RequestInvalid, "an Idempotency-Key has 1 to 200 printable characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn waiting_is_asked_for_among_other_preferences() {
        let wait = |text| preferred_wait(&headers("prefer", text)).map(|wait| wait.map(|w| w.as_secs()));
        assert_eq!(wait("respond-async, wait=10").unwrap(), Some(10));
        assert_eq!(wait("return=minimal").unwrap(), None);
        assert_eq!(wait("wait=99999999").unwrap(), Some(LONGEST_WAIT));
        assert!(wait("wait=soon").is_err());
    }

    #[test]
    fn a_generation_is_a_strong_tag() {
        let tag = |text| expected_generation(&headers("if-match", text));
        assert_eq!(tag("\"3\"").unwrap(), Some(3));
        assert!(tag("3").is_err() && tag("W/\"3\"").is_err() && tag("*").is_err());
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_told_apart_from_a_broken_one() {
        let long = Body::from(vec![0; 11]);
        let refusal = whole_body(long, 10).await.unwrap_err();
        assert!(format!("{refusal:?}").contains("BodyTooLarge"));
        let broken = Body::from_stream(futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
        let refusal = whole_body(broken, 10).await.unwrap_err();
        assert!(format!("{refusal:?}").contains("RequestInvalid"));
    }
}
