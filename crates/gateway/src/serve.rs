//! The HTTP side: who calls, which turn it is, and what goes back.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use landform_base::secret::SecretBytes;
use rand::TryRng;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::counts::{Outcome, Total, Totals, lock};
use crate::desk::Desk;
use crate::forward::{self, Answer, Forwarder, Said};
use crate::handover::{Calls, Handover};
use crate::once::{NoPass, Pass, Print};
use crate::past::Past;
use crate::seat::{Booking, Held, NoSeat, Seat};
use crate::vendor::Asked;

const LARGEST_BODY: usize = 16 << 20;
/// Tells our own answers from the vendor's.
pub(crate) const MARK: &str = "x-landform-gateway";
/// Beyond so many accounts, those that nobody uses are forgotten.
const MANY_ACCOUNTS: usize = 1_000;
/// No window counts so many: what another has written is not believed without bounds.
const MOST_INHERITED: usize = 100_000;

/// The gateway of this process. It serves until the last handle and the last seat are gone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    _server: Arc<Server>,
}

struct Server(JoinHandle<()>);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) struct Inner {
    pub(crate) address: SocketAddr,
    /// Makes addresses that nobody can guess.
    pub(crate) key: SecretBytes,
    pub(crate) seats: Mutex<HashMap<String, Arc<Held>>>,
    desks: Mutex<HashMap<String, Arc<Desk>>>,
    pub(crate) totals: Totals,
    forwarder: Forwarder,
    past: Arc<Past>,
}

impl Gateway {
    /// Listens on a free port of this machine's own address. What it sends is written into the file, and what an earlier
    /// life has sent counts.
    pub async fn start(file: Option<&Path>) -> std::io::Result<Gateway> {
        let past = file.map(Past::open).transpose()?.unwrap_or_default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut key = vec![0; 32];
        rand::rngs::SysRng.try_fill_bytes(&mut key).map_err(std::io::Error::other)?;
        let inner = Arc::new(Inner {
            address: listener.local_addr()?,
            key: SecretBytes::new(key),
            seats: Mutex::default(),
            desks: Mutex::default(),
            totals: Totals::default(),
            forwarder: Forwarder::default(),
            past: Arc::new(past),
        });
        let router = Router::new().fallback(serve).with_state(inner.clone());
        let server = tokio::spawn(async move {
            // Serving ends only with the task: errors of single connections are not reported here.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Gateway { inner, _server: Arc::new(Server(server)) })
    }

    /// A seat for a run. Its calls are the run's, and end with it.
    pub fn take_seat(&self, booking: Booking) -> Result<Seat, NoSeat> {
        Seat::take(&self.inner, booking)
    }

    /// Whether this is an address of a seat here.
    pub fn is_at(&self, url: &str) -> bool {
        let rest = url.strip_prefix("http://").and_then(|rest| rest.strip_prefix(&self.inner.address.to_string()));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// A call to a seat's address by who lives in this process: the same as through the socket, without one.
    pub async fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        answer(&self.inner, &head, body).await
    }

    /// An account's calls are counted here until then, and none is sent after that.
    pub fn owns(&self, account: &str, until: Instant) {
        self.inner.desk(account).ours_until(until);
    }

    /// What the next owner of an account has to know: calls that a window still sees. None if there are none.
    pub fn past(&self, account: &str) -> Option<Handover> {
        let desk = lock(&self.inner.desks).get(account).cloned()?;
        let calls = desk.past();
        (!calls.is_empty()).then_some(Handover(calls))
    }

    /// Calls of an account that were sent since it is counted here.
    pub fn sent(&self, account: &str) -> u64 {
        lock(&self.inner.desks).get(account).map(|desk| desk.sent()).unwrap_or_default()
    }

    /// Somebody has a seat at this account.
    pub fn is_used(&self, account: &str) -> bool {
        lock(&self.inner.seats).values().any(|held| held.booking.account == account)
    }

    /// What an account's last owner has handed on, some time ago.
    pub fn inherit(&self, account: &str, past: &Handover, ago: Duration) {
        let desk = self.inner.desk(account);
        for (operation, Calls { longest, ended }) in &past.0 {
            for (age, calls) in ended {
                desk.inherit(operation, *longest, *age + ago, (*calls).min(MOST_INHERITED));
            }
        }
    }

    /// The account's last owner went silent: how often it has called in the end, nobody knows.
    pub fn inherit_unknown(&self, account: &str) {
        self.inner.desk(account).used_by_others();
    }

    /// What was asked of vendors since the start.
    pub fn totals(&self) -> Vec<Total> {
        self.inner.totals.all()
    }
}

impl Inner {
    pub(crate) fn desk(&self, account: &str) -> Arc<Desk> {
        let mut desks = lock(&self.desks);
        if desks.len() >= MANY_ACCOUNTS && !desks.contains_key(account) {
            // One that somebody has a seat at is used.
            desks.retain(|_, desk| Arc::strong_count(desk) > 1 || !desk.is_idle());
        }
        let desk = || Arc::new(Desk::new(account, &self.past));
        desks.entry(account.to_owned()).or_insert_with(desk).clone()
    }

    fn holder(&self, secret: &str) -> Option<Arc<Held>> {
        lock(&self.seats).get(secret).cloned()
    }
}

async fn serve(State(gateway): State<Arc<Inner>>, request: axum::extract::Request) -> axum::response::Response {
    let (head, body) = request.into_parts();
    // Nobody's body is not worth reading.
    let known = gateway.holder(split(head.uri.path()).0).is_some();
    let most = if known { LARGEST_BODY } else { 0 };
    let answered = match axum::body::to_bytes(body, most).await {
        Ok(body) => answer(&gateway, &head, body).await,
        Err(_) if !known => nobody(),
        Err(_) => too_large(),
    };
    answered.map(Body::from)
}

/// What becomes of one call, however it came here.
async fn answer(gateway: &Arc<Inner>, head: &Parts, body: Bytes) -> Response<Bytes> {
    let (secret, rest) = split(head.uri.path());
    let Some(held) = gateway.holder(secret) else { return nobody() };
    if body.len() > LARGEST_BODY {
        return too_large();
    }
    let vendor = &held.booking.vendor;
    let Asked { operations, repeatable } = vendor.classify(head.method.as_str(), rest, &body);
    let url = target(held.booking.endpoint.expose(), rest, head.uri.query());
    let arrived = Instant::now();
    let deadline = arrived + vendor.hold();
    let mut call = Call { gateway, held: &held, operations: &operations, pass: None };
    if !repeatable {
        match held.once.pass(Print::of(head, rest, &body), deadline).await {
            Ok(pass) => call.pass = Some(pass),
            Err(why) => return call.not_passed(why, arrived.elapsed()),
        }
    }
    let mut waited_since = arrived;
    let Ok(mut turn) = held.ask(&operations) else {
        call.count(Outcome::Refused, waited_since.elapsed());
        return later(Duration::from_secs(1), "too many calls wait for this account");
    };
    loop {
        let come = turn.wait(deadline).await;
        let waited = waited_since.elapsed();
        if let Err(not_yet) = come {
            call.count(Outcome::Refused, waited);
            return later(not_yet.0, "the vendor's limit is used up for now");
        }
        if !held.desk.is_ours() {
            return own(StatusCode::FORBIDDEN, "elsewhere", "another worker calls this account now; nothing was sent");
        }
        // Who has lost its seat meanwhile sends nothing more.
        if gateway.holder(secret).is_none_or(|now| !Arc::ptr_eq(&now, &held)) {
            return nobody();
        }
        let mut sent = Sent { call: Some(&call), waited };
        let request = forward::Request {
            method: head.method.clone(),
            url: &url,
            headers: &head.headers,
            body: body.clone(),
            authority: held.booking.authority.as_deref(),
            patience: vendor.answer(),
        };
        let answer = gateway.forwarder.send(request).await;
        match answer {
            Answer::Said(said) if vendor.is_rate_limit(said.status.as_u16(), &said.body) => {
                sent.ended(Outcome::RateLimited);
                tracing::info!(vendor = vendor.vendor, ?operations, "the vendor's rate limit was met; the call waits");
                turn.limited(said.retry_after());
                waited_since = Instant::now();
            }
            Answer::Said(said) => {
                // What may be repeated leaves no question: it is asked again.
                let open = !repeatable && said.leaves_open();
                sent.ended(if open { Outcome::Unclear } else { Outcome::Answered });
                if open {
                    let status = said.status.as_u16();
                    tracing::warn!(
                        vendor = vendor.vendor,
                        ?operations,
                        status,
                        "the vendor's answer leaves it open whether it carried the call out"
                    );
                }
                turn.answered();
                return passed_on(said);
            }
            Answer::Unreachable(why) => {
                sent.ended(Outcome::Unreachable);
                turn.answered();
                let what = format!("the vendor cannot be reached, nothing was sent: {why}");
                return own(StatusCode::BAD_GATEWAY, "unreachable", &what);
            }
            Answer::Silence(why) => {
                sent.ended(Outcome::Silence);
                tracing::warn!(vendor = vendor.vendor, ?operations, why, "no answer from the vendor");
                let what = format!("the vendor did not answer; whether it carried the call out is not known: {why}");
                return own(NOT_AGAIN, "silence", &what);
            }
        }
    }
}

struct Call<'a> {
    gateway: &'a Inner,
    held: &'a Held,
    operations: &'a [String],
    /// For what must not be sent twice.
    pass: Option<Pass<'a>>,
}

impl Call<'_> {
    fn not_passed(&self, why: NoPass, waited: Duration) -> Response<Bytes> {
        let what = match why {
            NoPass::Busy => {
                self.count(Outcome::Refused, waited);
                return later(Duration::from_secs(1), "the same call is under way");
            }
            NoPass::Again => "the same call was sent before, and whether the vendor carried it out is not known",
            NoPass::TooManyOpen => "of too many calls before it is not known whether the vendor carried them out",
        };
        self.count(Outcome::Again, waited);
        let vendor = &self.held.booking.vendor.vendor;
        tracing::warn!(vendor, operations = ?self.operations, what, "a call was not sent");
        own(NOT_AGAIN, "again", &format!("{what}; nothing was sent"))
    }

    fn count(&self, outcome: Outcome, waited: Duration) {
        self.held.count(self.gateway, self.operations, outcome, waited);
    }
}

/// A call that was sent and that the caller no longer waits for has had no answer.
struct Sent<'a> {
    call: Option<&'a Call<'a>>,
    waited: Duration,
}

impl Sent<'_> {
    fn ended(&mut self, outcome: Outcome) {
        let Some(call) = self.call.take() else { return };
        call.count(outcome, self.waited);
        if outcome.leaves_open() {
            call.pass.as_ref().inspect(|pass| pass.left_open());
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        self.ended(Outcome::Silence);
    }
}

/// Says that a call was sent and failed, to clients that would send it again after a 5xx (Cato's provider does, also what
/// makes a site): nobody knows whether it was carried out, and there would be two.
const NOT_AGAIN: StatusCode = StatusCode::FAILED_DEPENDENCY;

/// The secret, and the path below the vendor's address.
fn split(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_at(path.find('/').unwrap_or(path.len()))
}

fn target(endpoint: &str, rest: &str, query: Option<&str>) -> String {
    let base = if rest.is_empty() { endpoint } else { endpoint.trim_end_matches('/') };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{base}{rest}{query}")
}

/// Exactly what the vendor said. Only where it would send the client elsewhere, past the budget, that is not said.
fn passed_on(said: Said) -> Response<Bytes> {
    if said.status.is_redirection() && said.headers.contains_key(header::LOCATION) {
        let what = "the vendor answers with another address; set the connection's address to that one";
        return own(NOT_AGAIN, "redirect", what);
    }
    let mut response = Response::new(said.body);
    *response.status_mut() = said.status;
    *response.headers_mut() = said.headers;
    response
}

/// The same for a secret that never was and one that is over. Not 404: providers take that for an object that is gone.
fn nobody() -> Response<Bytes> {
    own(StatusCode::FORBIDDEN, "nobody", "nobody may call from here")
}

fn too_large() -> Response<Bytes> {
    own(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &format!("a call has at most {LARGEST_BODY} bytes"))
}

fn later(wait: Duration, why: &str) -> Response<Bytes> {
    let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
    let mut response = own(StatusCode::TOO_MANY_REQUESTS, "later", &format!("{why}; try again after {seconds} s"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Our own words, in the form of most vendors' errors.
fn own(status: StatusCode, mark: &'static str, message: &str) -> Response<Bytes> {
    let message = format!("Landform's gateway: {message}");
    let body = json!({"message": message, "errors": [{"message": message}]});
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(MARK, HeaderValue::from_static(mark));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_below_a_seat_is_the_path_below_the_vendor() {
        let of = |path| {
            let (secret, rest) = split(path);
            (secret.to_owned(), target("https://x/api/", rest, None))
        };
        assert_eq!(of("/s"), ("s".to_owned(), "https://x/api/".to_owned()));
        assert_eq!(of("/s/a/b%2Fc"), ("s".to_owned(), "https://x/api/a/b%2Fc".to_owned()));
        assert_eq!(target("https://x", "/a", Some("b=1")), "https://x/a?b=1");
        assert_eq!(split("/"), ("", ""));
    }
}
