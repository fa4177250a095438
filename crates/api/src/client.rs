mod drift;
mod state;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{EventStreamError, Eventsource};
use futures::stream::{BoxStream, Stream, StreamExt};
use landform_base::secret::SecretString;
use landform_domain::{ConnectionName, DeploymentName, RunId, TemplateName, TenantName};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;

use crate::{
    Accepted, AuditEntry, AuditList, BatchResult, Connection, ConnectionList, ConnectionSpec, ConnectionTest, Delivery,
    DeliveryList, Deployment, DeploymentList, DeploymentSpec, Event, EventList, FailureGroup, FailureList, Outputs,
    Paused, ProblemBody, Recovery, Reject, ResourceList, RetryAll, Rollback, Run, RunList, RunRequest, Template,
    TemplateDetail, TemplateList, TemplatePushed, TemplateUse, TemplateUseList, TemplateVersion, Tenant, TenantList,
    TenantSpec, Timestamp, Token, TokenList, TokenMade, TokenSpec, Webhook, WebhookList, WebhookMade, WebhookSpec,
};

pub use drift::DriftFilter;

const CONNECT: Duration = Duration::from_secs(10);

/// How long an answer may take beyond the time that the server was asked to wait.
const ANSWER: Duration = Duration::from_secs(60);

/// A typed client of the REST interface.
#[derive(Clone, Debug)]
pub struct Client {
    base: String,
    token: SecretString,
    http: reqwest::Client,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no, and why.
    #[error("{0}")]
    Refused(ProblemBody),
    #[error("{server} cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("the server's answer makes no sense: {0}")]
    Garbled(String),
}

/// A deployment of a tenant, as people write it: `tenant/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
}

impl Location {
    /// What a list is narrowed to: a tenant, or one deployment.
    pub fn narrow(
        tenant: Option<TenantName>,
        deployment: Option<Location>,
    ) -> (Option<TenantName>, Option<DeploymentName>) {
        match deployment {
            Some(location) => (Some(location.tenant), Some(location.deployment)),
            None => (tenant, None),
        }
    }
}

impl std::str::FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Location, String> {
        let (tenant, deployment) = text.split_once('/').ok_or("expected TENANT/NAME")?;
        let say = |problem: landform_domain::Problem| problem.message;
        Ok(Location { tenant: tenant.parse().map_err(say)?, deployment: deployment.parse().map_err(say)? })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.deployment)
    }
}

/// How a deployment is written.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// How long to wait for the end of the run; without it the answer comes at once.
    pub wait: Option<Duration>,
    /// Sent again with the same key, a request has no further effect.
    pub idempotency_key: Option<String>,
    /// Refused unless the deployment is still at this generation.
    pub if_generation: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub tenant: Option<TenantName>,
    pub deployment: Option<DeploymentName>,
    pub status: Option<String>,
    pub template: Option<TemplateName>,
    /// The code of a failure.
    pub code: Option<String>,
    pub since: Option<Timestamp>,
    /// The last run of the page before.
    pub before: Option<RunId>,
    pub limit: Option<u32>,
}

/// Which objects of the inventory.
#[derive(Clone, Debug, Default)]
pub struct ResourceFilter {
    pub tenant: Option<TenantName>,
    pub deployment: Option<DeploymentName>,
    pub kind: Option<String>,
    /// The object's id, exactly.
    pub id: Option<String>,
    /// A part of the address or of the id.
    pub text: Option<String>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

/// What is paused, or goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Deployment(Location),
    Tenant(TenantName),
    Everything,
}

#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub tenant: Option<TenantName>,
    /// The id of a token.
    pub actor: Option<String>,
    /// An action, or all of a noun: `run.`.
    pub action: Option<String>,
    pub before: Option<i64>,
    pub limit: Option<u32>,
}

/// What became of the lines of a batch, in their order.
pub type BatchResults = BoxStream<'static, Result<BatchResult, ClientError>>;

/// A run's events as they happen. It ends when the run has, or when the connection breaks.
pub type Events = BoxStream<'static, Result<Event, ClientError>>;

impl Client {
    pub fn new(server: &str, token: SecretString) -> Result<Client, ClientError> {
        let http = reqwest::Client::builder();
        // Who speaks in clear needs no certificates, and must not depend on whether the system has any.
        let http = if server.starts_with("https://") { http } else { http.tls_certs_only([]) };
        Client::with(server, token, http)
    }

    /// The same, for a server whose certificate was made by an authority that only these certificates (PEM) name.
    pub fn trusting(server: &str, token: SecretString, authority: &[u8]) -> Result<Client, ClientError> {
        let certificates = reqwest::Certificate::from_pem_bundle(authority);
        let certificates = certificates.map_err(|e| ClientError::Garbled(format!("the authority: {}", cause(&e))))?;
        Client::with(server, token, reqwest::Client::builder().tls_certs_only(certificates))
    }

    fn with(server: &str, token: SecretString, http: reqwest::ClientBuilder) -> Result<Client, ClientError> {
        install_cryptography();
        let http = http.connect_timeout(CONNECT).build();
        let http = http.map_err(|e| ClientError::Garbled(cause(&e)))?;
        Ok(Client { base: format!("{}/v1", server.trim_end_matches('/')), token, http })
    }

    pub async fn token_create(&self, spec: &TokenSpec) -> Result<TokenMade, ClientError> {
        self.read(self.request(Method::POST, "tokens").json(spec)).await
    }

    pub async fn tokens(&self) -> Result<Vec<Token>, ClientError> {
        self.get("tokens").await.map(|list: TokenList| list.tokens)
    }

    pub async fn token_revoke(&self, id: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("tokens/{}", segment(id)))).await
    }

    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, ClientError> {
        let mut query = Query::default();
        query.add("tenant", filter.tenant.as_ref());
        query.add("actor", filter.actor.as_ref());
        query.add("action", filter.action.as_ref());
        query.add("before", filter.before.as_ref());
        query.add("limit", filter.limit.as_ref());
        self.get(&query.of("audit")).await.map(|list: AuditList| list.entries)
    }

    pub async fn tenant_put(&self, name: &TenantName, spec: &TenantSpec) -> Result<Tenant, ClientError> {
        self.read(self.request(Method::PUT, &format!("tenants/{name}")).json(spec)).await
    }

    pub async fn tenant(&self, name: &TenantName) -> Result<Tenant, ClientError> {
        self.get(&format!("tenants/{name}")).await
    }

    pub async fn tenants(&self) -> Result<Vec<Tenant>, ClientError> {
        self.get("tenants").await.map(|list: TenantList| list.tenants)
    }

    pub async fn connection_put(
        &self,
        tenant: &TenantName,
        name: &ConnectionName,
        spec: &ConnectionSpec,
    ) -> Result<Connection, ClientError> {
        self.read(self.request(Method::PUT, &connection_path(tenant, name)).json(spec)).await
    }

    pub async fn connection(&self, tenant: &TenantName, name: &ConnectionName) -> Result<Connection, ClientError> {
        self.get(&connection_path(tenant, name)).await
    }

    pub async fn connections(&self, tenant: &TenantName) -> Result<Vec<Connection>, ClientError> {
        self.get(&format!("tenants/{tenant}/connections")).await.map(|list: ConnectionList| list.connections)
    }

    pub async fn tenant_delete(&self, name: &TenantName) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("tenants/{name}"))).await
    }

    pub async fn connection_delete(&self, tenant: &TenantName, name: &ConnectionName) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &connection_path(tenant, name))).await
    }

    /// The answer comes at once, with the run that tries it.
    pub async fn connection_test(
        &self,
        tenant: &TenantName,
        name: &ConnectionName,
        wanted: &ConnectionTest,
    ) -> Result<Accepted, ClientError> {
        let path = format!("{}/test", connection_path(tenant, name));
        self.read(self.request(Method::POST, &path).header("prefer", "wait=0").json(wanted)).await
    }

    /// Without a tenant it is about webhooks of the whole fleet; so are the following.
    pub async fn webhook_create(
        &self,
        tenant: Option<&TenantName>,
        spec: &WebhookSpec,
    ) -> Result<WebhookMade, ClientError> {
        self.read(self.request(Method::POST, &webhooks_of(tenant)).json(spec)).await
    }

    pub async fn webhooks(&self, tenant: Option<&TenantName>) -> Result<Vec<Webhook>, ClientError> {
        self.get(&webhooks_of(tenant)).await.map(|list: WebhookList| list.webhooks)
    }

    pub async fn webhook_delete(&self, tenant: Option<&TenantName>, id: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("{}/{}", webhooks_of(tenant), segment(id)))).await
    }

    pub async fn deliveries(&self, tenant: Option<&TenantName>, id: &str) -> Result<Vec<Delivery>, ClientError> {
        let path = format!("{}/{}/deliveries", webhooks_of(tenant), segment(id));
        self.get(&path).await.map(|list: DeliveryList| list.deliveries)
    }

    /// `archive` is a gzipped tar file. `upgrade` chooses providers anew, also for the same files.
    pub async fn template_push(
        &self,
        name: &TemplateName,
        archive: Vec<u8>,
        upgrade: bool,
    ) -> Result<TemplatePushed, ClientError> {
        let request = self.request(Method::PUT, &format!("templates/{name}?upgrade={upgrade}"));
        self.read(request.header("content-type", "application/gzip").body(archive)).await
    }

    pub async fn template(&self, name: &TemplateName) -> Result<Template, ClientError> {
        self.get(&format!("templates/{name}")).await
    }

    pub async fn template_version(&self, name: &TemplateName, version: i64) -> Result<TemplateDetail, ClientError> {
        self.get(&format!("templates/{name}/versions/{version}")).await
    }

    pub async fn template_version_delete(&self, name: &TemplateName, version: i64) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("templates/{name}/versions/{version}"))).await
    }

    /// Who is on which version of it.
    pub async fn template_uses(&self, name: &TemplateName) -> Result<Vec<TemplateUse>, ClientError> {
        self.get(&format!("templates/{name}/deployments")).await.map(|list: TemplateUseList| list.deployments)
    }

    pub async fn templates(&self) -> Result<Vec<TemplateVersion>, ClientError> {
        self.get("templates").await.map(|list: TemplateList| list.templates)
    }

    pub async fn deployment_put(
        &self,
        location: &Location,
        spec: &DeploymentSpec,
        write: &Write,
    ) -> Result<Accepted, ClientError> {
        let request = self.request(Method::PUT, &deployment_path(location)).json(spec);
        self.write(request, write).await
    }

    pub async fn deployment_delete(&self, location: &Location, write: &Write) -> Result<Accepted, ClientError> {
        self.write(self.request(Method::DELETE, &deployment_path(location)), write).await
    }

    /// Many writes in one request. `lines` is a body of JSON lines; the answers come as they are made, in their order.
    pub async fn batch(
        &self,
        lines: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    ) -> Result<BatchResults, ClientError> {
        let lines = reqwest::Body::wrap_stream(lines);
        let request = self.request(Method::POST, "batch").header("content-type", "application/x-ndjson").body(lines);
        let response = self.send(request).await?;
        let server = self.base.clone();
        let chunks = response.bytes_stream().map(move |chunk| {
            chunk.map_err(|e| ClientError::Unreachable { server: server.clone(), reason: cause(&e) })
        });
        Ok(json_lines(chunks.boxed()))
    }

    pub async fn deployment(&self, location: &Location) -> Result<Deployment, ClientError> {
        self.get(&deployment_path(location)).await
    }

    pub async fn deployments(&self, tenant: &TenantName) -> Result<Vec<Deployment>, ClientError> {
        self.get(&format!("tenants/{tenant}/deployments")).await.map(|list: DeploymentList| list.deployments)
    }

    pub async fn outputs(&self, location: &Location, show_sensitive: bool) -> Result<Outputs, ClientError> {
        let path = format!("{}/outputs?show_sensitive={show_sensitive}", deployment_path(location));
        self.get(&path).await
    }

    /// One page; the server decides how long it is at the most.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, ClientError> {
        let mut query = Query::default();
        query.add("tenant", filter.tenant.as_ref());
        query.add("deployment", filter.deployment.as_ref());
        query.add("status", filter.status.as_ref());
        query.add("template", filter.template.as_ref());
        query.add("code", filter.code.as_ref());
        query.add("since", filter.since.as_ref());
        query.add("before", filter.before.as_ref());
        query.add("limit", filter.limit.as_ref());
        self.get(&query.of("runs")).await.map(|list: RunList| list.runs)
    }

    /// One page of the inventory.
    pub async fn resources(&self, filter: &ResourceFilter) -> Result<ResourceList, ClientError> {
        let mut query = Query::default();
        query.add("tenant", filter.tenant.as_ref());
        query.add("deployment", filter.deployment.as_ref());
        query.add("type", filter.kind.as_ref());
        query.add("id", filter.id.as_ref());
        query.add("q", filter.text.as_ref());
        query.add("after", filter.after.as_ref());
        self.get(&query.of("resources")).await
    }

    pub async fn run(&self, id: RunId) -> Result<Run, ClientError> {
        self.get(&format!("runs/{id}")).await
    }

    pub async fn events(&self, run: RunId, after: i64) -> Result<Vec<Event>, ClientError> {
        self.get(&format!("runs/{run}/events?after={after}")).await.map(|list: EventList| list.events)
    }

    /// The events after one that was seen already (0 for all), as they happen.
    pub async fn watch(&self, run: RunId, after: i64) -> Result<Events, ClientError> {
        let request = self.request(Method::GET, &format!("runs/{run}/events"));
        let request = request.header("accept", "text/event-stream").header("last-event-id", after.to_string());
        let response = self.send(request).await?;
        let server = self.base.clone();
        let events = response.bytes_stream().eventsource().filter_map(move |message| {
            let event = match message {
                // What is not an event of the run says that the stream is alive, or that it has come to its end.
                Ok(message) if message.event != "event" => None,
                Ok(message) => {
                    Some(serde_json::from_str(&message.data).map_err(|e| ClientError::Garbled(e.to_string())))
                }
                Err(EventStreamError::Transport(e)) => {
                    Some(Err(ClientError::Unreachable { server: server.clone(), reason: cause(&e) }))
                }
                Err(error) => Some(Err(ClientError::Garbled(error.to_string()))),
            };
            futures::future::ready(event)
        });
        Ok(events.boxed())
    }

    pub async fn run_approve(&self, id: RunId) -> Result<Run, ClientError> {
        self.read(self.request(Method::POST, &format!("runs/{id}/approve"))).await
    }

    pub async fn run_reject(&self, id: RunId, reason: &str) -> Result<Run, ClientError> {
        let body = Reject { reason: reason.to_owned() };
        self.read(self.request(Method::POST, &format!("runs/{id}/reject")).json(&body)).await
    }

    pub async fn run_cancel(&self, id: RunId) -> Result<Run, ClientError> {
        self.read(self.request(Method::POST, &format!("runs/{id}/cancel"))).await
    }

    pub async fn run_retry(&self, id: RunId) -> Result<Accepted, ClientError> {
        self.read(self.request(Method::POST, &format!("runs/{id}/retry"))).await
    }

    /// The plan in the format of `tofu show -json`.
    pub async fn plan(&self, id: RunId) -> Result<serde_json::Value, ClientError> {
        self.get(&format!("runs/{id}/plan")).await
    }

    pub async fn plan_text(&self, id: RunId) -> Result<String, ClientError> {
        let request = self.request(Method::GET, &format!("runs/{id}/plan")).header("accept", "text/plain");
        let response = self.send(request.timeout(ANSWER)).await?;
        response.text().await.map_err(|e| self.unreachable(&e))
    }

    pub async fn failures(&self, tenant: Option<&TenantName>) -> Result<Vec<FailureGroup>, ClientError> {
        let mut query = Query::default();
        query.add("tenant", tenant);
        self.get(&query.of("failures")).await.map(|list: FailureList| list.failures)
    }

    pub async fn retry_all(&self, wanted: &RetryAll) -> Result<Vec<Run>, ClientError> {
        let list: RunList = self.read(self.request(Method::POST, "failures/retry").json(wanted)).await?;
        Ok(list.runs)
    }

    pub async fn run_again(&self, location: &Location, wanted: &RunRequest) -> Result<Accepted, ClientError> {
        self.read(self.request(Method::POST, &format!("{}/runs", deployment_path(location))).json(wanted)).await
    }

    pub async fn rollback(&self, location: &Location, run: RunId) -> Result<Accepted, ClientError> {
        let path = format!("{}/rollback", deployment_path(location));
        self.read(self.request(Method::POST, &path).json(&Rollback { run })).await
    }

    pub async fn forget(&self, location: &Location) -> Result<(), ClientError> {
        self.done(self.request(Method::POST, &format!("{}/forget", deployment_path(location)))).await
    }

    pub async fn pause(&self, scope: &Scope, paused: bool) -> Result<Paused, ClientError> {
        let verb = if paused { "pause" } else { "resume" };
        let path = match scope {
            Scope::Deployment(location) => format!("{}/{verb}", deployment_path(location)),
            Scope::Tenant(tenant) => format!("tenants/{tenant}/{verb}"),
            Scope::Everything => verb.to_owned(),
        };
        self.read(self.request(Method::POST, &path)).await
    }

    /// Whether all runs are paused.
    pub async fn paused(&self) -> Result<Paused, ClientError> {
        self.read(self.request(Method::GET, "pause")).await
    }

    pub async fn run_recover(&self, id: RunId, recovery: &Recovery) -> Result<Run, ClientError> {
        self.read(self.request(Method::POST, &format!("runs/{id}/recover")).json(recovery)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/{path}", self.base)).bearer_auth(self.token.expose())
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.read(self.request(Method::GET, path)).await
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        self.parse(self.send(request.timeout(ANSWER)).await?).await
    }

    /// A request whose answer has no body.
    async fn done(&self, request: RequestBuilder) -> Result<(), ClientError> {
        self.send(request.timeout(ANSWER)).await.map(drop)
    }

    async fn write(&self, mut request: RequestBuilder, write: &Write) -> Result<Accepted, ClientError> {
        if let Some(wait) = write.wait {
            request = request.header("prefer", format!("wait={}", wait.as_secs()));
        }
        if let Some(key) = &write.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(generation) = write.if_generation {
            request = request.header("if-match", format!("\"{generation}\""));
        }
        let response = self.send(request.timeout(write.wait.unwrap_or_default() + ANSWER)).await?;
        self.parse(response).await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(|e| self.unreachable(&e))?;
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(self.refused(status, response).await) }
    }

    async fn parse<T: DeserializeOwned>(&self, response: Response) -> Result<T, ClientError> {
        let bytes = response.bytes().await.map_err(|e| self.unreachable(&e))?;
        serde_json::from_slice(&bytes).map_err(|e| ClientError::Garbled(e.to_string()))
    }

    async fn refused(&self, status: StatusCode, response: Response) -> ClientError {
        match self.parse(response).await {
            Ok(problem) => ClientError::Refused(problem),
            Err(_) => ClientError::Garbled(format!("{status} without a reason; is {} a Landform server?", self.base)),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        ClientError::Unreachable { server: self.base.clone(), reason: cause(error) }
    }
}

/// Cuts what comes into lines and reads each.
fn json_lines(chunks: BoxStream<'static, Result<Bytes, ClientError>>) -> BatchResults {
    let read = |line: &[u8]| serde_json::from_slice(line).map_err(|e| ClientError::Garbled(e.to_string()));
    futures::stream::unfold((chunks, Vec::new()), move |(mut chunks, mut buffer)| async move {
        loop {
            if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let rest = buffer.split_off(end + 1);
                return Some((read(&buffer), (chunks, rest)));
            }
            match chunks.next().await {
                Some(Ok(chunk)) => buffer.extend_from_slice(&chunk),
                Some(Err(error)) => return Some((Err(error), (futures::stream::empty().boxed(), Vec::new()))),
                None => return None,
            }
        }
    })
    .boxed()
}

fn deployment_path(location: &Location) -> String {
    format!("tenants/{}/deployments/{}", location.tenant, location.deployment)
}

/// One implementation of TLS for the whole process. Whoever comes first installs it; it is always this one.
pub fn install_cryptography() {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

fn connection_path(tenant: &TenantName, name: &ConnectionName) -> String {
    format!("tenants/{tenant}/connections/{name}")
}

/// The parameters of a list, as far as they were given.
#[derive(Default)]
struct Query(Vec<String>);

impl Query {
    fn add(&mut self, name: &str, value: Option<&impl fmt::Display>) {
        self.0.extend(value.map(|value| format!("{name}={}", segment(&value.to_string()))));
    }

    fn of(&self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{}", self.0.join("&")) }
    }
}

fn webhooks_of(tenant: Option<&TenantName>) -> String {
    tenant.map_or_else(|| "webhooks".to_owned(), |tenant| format!("tenants/{tenant}/webhooks"))
}

/// A text as one part of a path or a query, whatever is in it.
fn segment(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if keep(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The innermost reason: the outer ones repeat the URL.
fn cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
