//! What is known about a vendor, as data: where a provider takes the vendor's address from, what identifies the account
//! that limits belong to, which operation a call is, and how many of each are allowed. It stands in a template's folder
//! as `vendor.json`; for vendors that come with Landform it is inside.

mod graphql;
mod rest;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::budget::Window;

/// The file in a template's folder.
pub const FILE: &str = "vendor.json";

const HOLD_SECONDS: u64 = 25;
const ANSWER_SECONDS: u64 = 120;
/// What no pattern fits.
const OTHER: &str = "other";

#[derive(Debug, thiserror::Error)]
#[error("{FILE}: {0}")]
pub struct VendorError(String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorsFile {
    vendors: Vec<Vendor>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// Its name in figures, and half of what a budget belongs to.
    pub vendor: String,
    /// For people: where the limits come from.
    #[serde(default)]
    pub about: String,
    /// The provider's source address, as in `required_providers`.
    pub provider: String,
    pub endpoint: Endpoint,
    /// Variables of the template whose values name the account that limits belong to.
    pub account: Vec<String>,
    operations: Operations,
    #[serde(default)]
    limits: BTreeMap<String, Vec<(usize, u64)>>,
    /// So many calls of an account at once.
    #[serde(default)]
    pub concurrency: Option<usize>,
    #[serde(default)]
    rate_limited: RateLimited,
    /// Operations that come to the same however often they are carried out; `*` at the end is any rest of a name.
    #[serde(default)]
    repeatable: Vec<String>,
    /// How long a call may wait here for its turn.
    #[serde(default = "hold_seconds")]
    hold_seconds: u64,
    /// How long the vendor may take to answer.
    #[serde(default = "answer_seconds")]
    answer_seconds: u64,
    /// The provider itself finds out what became of a call that nobody knows the end of. Otherwise what it was to make is
    /// in doubt.
    #[serde(default)]
    pub looks_up_after_silence: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The argument of the provider's block that takes the vendor's address.
    pub attribute: String,
    /// The ephemeral, sensitive variable that it must be set to.
    pub variable: String,
    /// A variable with the certificate, in PEM, of the authority that signed the vendor's.
    #[serde(default)]
    pub authority: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operations {
    /// The fields of the root; for those in `inside`, the fields within them.
    #[serde(rename = "graphql")]
    GraphQl {
        #[serde(default)]
        inside: Vec<String>,
    },
    Rest(Vec<rest::Pattern>),
}

/// What the vendor says when it has refused a call for its rate and done nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateLimited {
    #[serde(default = "too_many_requests")]
    statuses: Vec<u16>,
    /// Parts of the message of a GraphQL error, in an answer without data.
    #[serde(default)]
    errors: Vec<String>,
}

impl Default for RateLimited {
    fn default() -> RateLimited {
        RateLimited { statuses: too_many_requests(), errors: Vec::new() }
    }
}

fn too_many_requests() -> Vec<u16> {
    vec![429]
}

fn hold_seconds() -> u64 {
    HOLD_SECONDS
}

fn answer_seconds() -> u64 {
    ANSWER_SECONDS
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What the vendor will count it as.
    pub operations: Vec<String>,
    /// It is known to come to the same, once carried out or twice.
    pub repeatable: bool,
}

/// Reads a template's file.
pub fn parse(text: &[u8]) -> Result<Vec<Arc<Vendor>>, VendorError> {
    let wrong = |error: serde_json::Error| VendorError(error.to_string());
    let file: VendorsFile = serde_json::from_slice(text).map_err(wrong)?;
    for (at, vendor) in file.vendors.iter().enumerate() {
        vendor.check().map_err(|why| VendorError(format!("vendors[{at}] ({}): {why}", vendor.vendor)))?;
        if file.vendors[..at].iter().any(|other| other.provider == vendor.provider) {
            return Err(VendorError(format!("vendors[{at}]: {} is there twice", vendor.provider)));
        }
    }
    Ok(file.vendors.into_iter().map(Arc::new).collect())
}

/// The vendors that come with Landform: what their templates' files say.
pub fn built_in() -> Vec<Arc<Vendor>> {
    let files = [
        include_str!("../../../../templates/cato-ipsec-site/vendor.json"),
        include_str!("../../../../templates/versa-branch/vendor.json"),
    ];
    files.iter().flat_map(|file| parse(file.as_bytes()).expect("it is read by a test")).collect()
}

/// A name as it may stand in figures and logs, also when a client has made it up.
fn word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.len() <= 80 && text.chars().all(plain)
}

/// Whether this is the name of an operation, or a beginning of it with a `*`.
fn fits(name: &str, operation: &str) -> bool {
    name.strip_suffix('*').map_or(name == operation, |beginning| operation.starts_with(beginning))
}

impl Vendor {
    fn check(&self) -> Result<(), String> {
        if !word(&self.vendor) {
            return Err("`vendor` is a short name of letters, digits, `.`, `-` and `_`".into());
        }
        if let Operations::Rest(patterns) = &self.operations
            && let Some(pattern) = patterns.iter().find(|pattern| !word(&pattern.operation))
        {
            return Err(format!(
                "the operation {:?} is no name of letters, digits, `.`, `-` and `_`",
                pattern.operation
            ));
        }
        if self.account.is_empty() {
            return Err("`account` names at least one variable".into());
        }
        for (operation, windows) in &self.limits {
            if windows.iter().any(|(calls, seconds)| *calls == 0 || *seconds == 0 || *seconds > 31_536_000) {
                return Err(format!("`limits.{operation}` is a list of [calls, seconds], both above zero"));
            }
        }
        if self.concurrency == Some(0) {
            return Err("`concurrency` is above zero".into());
        }
        if !(1..=120).contains(&self.hold_seconds) || !(1..=3600).contains(&self.answer_seconds) {
            return Err("`hold_seconds` is 1 to 120, `answer_seconds` 1 to 3600".into());
        }
        if self.rate_limited.statuses.iter().any(|status| !(400..600).contains(status)) {
            return Err("`rate_limited.statuses` are statuses of errors, such as 429".into());
        }
        for name in &self.repeatable {
            if !word(name.strip_suffix('*').unwrap_or(name)) {
                return Err(format!("`repeatable`: {name:?} is no operation, nor the beginning of one and a `*`"));
            }
            if let Operations::Rest(patterns) = &self.operations
                && !patterns.iter().any(|pattern| fits(name, &pattern.operation))
            {
                return Err(format!("`repeatable`: {name:?} is none of the `operations`"));
            }
        }
        Ok(())
    }

    pub fn hold(&self) -> Duration {
        Duration::from_secs(self.hold_seconds)
    }

    pub fn answer(&self) -> Duration {
        Duration::from_secs(self.answer_seconds)
    }

    /// The same for the same account in every process, and nothing can be read from it.
    pub fn account_key(&self, values: &[&str]) -> String {
        let mut hash = Sha256::new();
        for value in values {
            hash.update((value.len() as u64).to_be_bytes());
            hash.update(value.as_bytes());
        }
        let hex: String = hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}:{hex}", self.vendor)
    }

    /// The vendor counts calls: one process at a time has to make an account's calls.
    pub fn counts_calls(&self) -> bool {
        !self.limits.is_empty()
    }

    /// The windows of an operation; those of `*` where it has none of its own.
    pub fn windows(&self, operation: &str) -> Vec<Window> {
        let pairs = self.limits.get(operation).or_else(|| self.limits.get("*"));
        let window = |(calls, seconds): &(usize, u64)| Window { calls: *calls, length: Duration::from_secs(*seconds) };
        pairs.into_iter().flatten().map(window).collect()
    }

    /// What a call asks for. What cannot be read is not known to be repeatable.
    pub fn classify(&self, method: &str, path: &str, body: &[u8]) -> Asked {
        let by_method = rest::is_idempotent(method);
        match &self.operations {
            Operations::Rest(patterns) => {
                let found = patterns.iter().find(|pattern| pattern.fits(method, path));
                let operation = found.map(|pattern| pattern.operation.as_str());
                let repeatable = by_method || operation.is_some_and(|operation| self.may_repeat(operation));
                Asked { operations: vec![operation.unwrap_or(OTHER).to_owned()], repeatable }
            }
            Operations::GraphQl { inside } => {
                let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
                let name = body["operationName"].as_str();
                match body["query"].as_str().and_then(|query| graphql::read(query, name, inside)) {
                    Some(graphql::Request { fields, is_mutation }) => {
                        let repeatable = !is_mutation || fields.iter().all(|field| self.may_repeat(field));
                        Asked { operations: fields, repeatable }
                    }
                    None => {
                        let name = name.filter(|name| word(name)).unwrap_or(OTHER);
                        Asked { operations: vec![name.to_owned()], repeatable: by_method }
                    }
                }
            }
        }
    }

    fn may_repeat(&self, operation: &str) -> bool {
        self.repeatable.iter().any(|name| fits(name, operation))
    }

    /// Whether the vendor has refused a call for its rate, and nothing was done.
    pub fn is_rate_limit(&self, status: u16, body: &[u8]) -> bool {
        if self.rate_limited.statuses.contains(&status) {
            return true;
        }
        if self.rate_limited.errors.is_empty() {
            return false;
        }
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return false };
        let nothing = match &body["data"] {
            serde_json::Value::Null => true,
            serde_json::Value::Object(fields) => fields.values().all(serde_json::Value::is_null),
            _ => false,
        };
        let messages = body["errors"].as_array().into_iter().flatten().filter_map(|error| error["message"].as_str());
        nothing
            && messages.into_iter().any(|message| self.rate_limited.errors.iter().any(|part| message.contains(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(more: &str) -> Result<Vec<Arc<Vendor>>, VendorError> {
        let text = format!(
            r#"{{"vendors": [{{"vendor": "v", "provider": "a/b", "endpoint": {{"attribute": "url", "variable": "u"}},
                "account": ["x"], "operations": {{"rest": [{{"method": "GET", "path": "/a/*", "operation": "a.read"}}]}}{more}}}]}}"#
        );
        parse(text.as_bytes())
    }

    #[test]
    fn the_files_of_our_templates_are_read_and_hold_the_published_limits() {
        let vendors = built_in();
        let cato = vendors.iter().find(|vendor| vendor.vendor == "cato").unwrap();
        let window = |calls, seconds| Window { calls, length: Duration::from_secs(seconds) };
        assert_eq!(cato.windows("entityLookup"), [window(30, 60), window(1_500, 18_000)]);
        assert_eq!(cato.windows("accountSnapshot"), [window(1, 1), window(30, 60)]);
        assert_eq!(cato.windows("addIpsecIkeV2Site"), [window(120, 60)]);
        let versa = vendors.iter().find(|vendor| vendor.vendor == "versa").unwrap();
        assert_eq!(versa.windows("device.create"), []);
        let operations = |method, path| versa.classify(method, path, b"").operations;
        assert_eq!(operations("GET", "/vnms/tasks/task/7"), ["task.read"]);
        assert_eq!(operations("POST", "/vnms/sdwan/workflow/devices/device/deploy/x"), ["device.deploy"]);
        assert_eq!(operations("GET", "/elsewhere"), ["other"]);
    }

    #[test]
    fn what_makes_something_is_repeatable_at_no_vendor_and_what_sets_something_is() {
        let vendors = built_in();
        let versa = vendors.iter().find(|vendor| vendor.vendor == "versa").unwrap();
        for (method, path, repeatable) in [
            ("GET", "/elsewhere", true),
            ("PUT", "/elsewhere", true),
            ("DELETE", "/nextgen/deviceGroup/x", true),
            ("POST", "/auth/token", true),
            ("POST", "/vnms/sdwan/workflow/devices/device/deploy/x", true),
            ("POST", "/vnms/template/applyTemplate/x", true),
            ("POST", "/vnms/sdwan/workflow/devices/device", false),
            ("POST", "/nextgen/deviceGroup", false),
            ("POST", "/api/config/devices/device/x", false),
            ("PATCH", "/api/config/devices/device/x", false),
            ("POST", "/elsewhere", false),
            ("BREW", "/elsewhere", false),
        ] {
            assert_eq!(versa.classify(method, path, b"").repeatable, repeatable, "{method} {path}");
        }
        let cato = vendors.iter().find(|vendor| vendor.vendor == "cato").unwrap();
        for (query, repeatable) in [
            ("{ addSite }", true),
            ("mutation { site { updateSite { id } } }", true),
            ("mutation { site { a: removeSite { id } updateSite { id } } }", true),
            ("mutation { site { updateSite { id } addSite { id } } }", false),
            ("mutation { site { updateSite: addSite { id } } }", false),
            ("mutation { policy { updateRule { id } } }", false),
            ("mutation {", false),
        ] {
            let body = serde_json::json!({"query": query, "operationName": null}).to_string();
            assert_eq!(cato.classify("POST", "/", body.as_bytes()).repeatable, repeatable, "{query}");
        }
        // A name that the client has made up says nothing.
        let made_up = br#"{"operationName": "updateSite", "query": "mutation updateSite {"}"#;
        assert!(!cato.classify("POST", "/", made_up).repeatable);
        let several = br#"[{"query": "{ look }"}, {"query": "mutation { site { addSite { id } } }"}]"#;
        assert!(!cato.classify("POST", "/", several).repeatable);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert!(with("").is_ok() && with(r#", "repeatable": ["a.read", "a.*"]"#).is_ok());
        for (more, said) in [
            (r#", "limit": {}"#, "unknown field `limit`"),
            (r#", "limits": {"a": [[0, 60]]}"#, "limits.a"),
            (r#", "limits": {"a": [[1]]}"#, "line 2"),
            (r#", "concurrency": 0"#, "concurrency"),
            (r#", "hold_seconds": 500"#, "hold_seconds"),
            (r#", "rate_limited": {"statuses": [200]}"#, "rate_limited.statuses"),
            (r#", "repeatable": "a.read""#, "expected a sequence"),
            (r#", "repeatable": ["*"]"#, r#"`repeatable`: "*" is no operation"#),
            (r#", "repeatable": ["a*d"]"#, r#"`repeatable`: "a*d" is no operation"#),
            (r#", "repeatable": ["a.read", "b.*"]"#, r#""b.*" is none of the `operations`"#),
        ] {
            let error = with(more).unwrap_err().to_string();
            assert!(error.starts_with("vendor.json: ") && error.contains(said), "{error}");
        }
    }

    #[test]
    fn only_an_answer_without_data_is_taken_for_the_rate_limit() {
        let cato = built_in().into_iter().find(|vendor| vendor.vendor == "cato").unwrap();
        let limited = |body: &str| cato.is_rate_limit(200, body.as_bytes());
        assert!(limited(r#"{"errors": [{"message": "rate limit for operation: entityLookup"}]}"#));
        assert!(limited(r#"{"errors": [{"message": "rate limit for operation: x"}], "data": {"site": null}}"#));
        assert!(cato.is_rate_limit(429, b"whatever"));
        // Done, and the words are a customer's.
        assert!(!limited(r#"{"data": {"site": {"description": "rate limit for operation: x"}}}"#));
        let half = r#"{"errors": [{"message": "rate limit for operation: x"}], "data": {"a": {"id": 1}, "b": null}}"#;
        assert!(!limited(half));
        assert!(!limited(r#"{"errors": [{"message": "no such site"}]}"#));
    }

    #[test]
    fn an_account_is_known_by_all_its_values() {
        let vendor = with("").unwrap().remove(0);
        assert_ne!(vendor.account_key(&["ab", "c"]), vendor.account_key(&["a", "bc"]));
        assert!(
            vendor.account_key(&["s3cret"]).starts_with("v:") && !vendor.account_key(&["s3cret"]).contains("s3cret")
        );
    }
}
