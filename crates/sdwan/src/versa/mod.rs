//! The provider `landform/versa`: branches of an SD-WAN at a Versa Director.

mod bgp;
mod data;
mod device;
mod device_group;
mod director;
mod object;
mod template;
mod tunnel;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use landform_base::secret::SecretString;
use landform_cty::Value;
use landform_protocol::{Diagnostic, Schema};
use landform_provider_kit::{DataSources, Definition, Failure, Resources, Shortcut, block, number, string};

use crate::fields::{text, whole};
use director::{Director, Login, Settings};
use object::Object;

/// What templates name in `required_providers`.
pub const SOURCE: &str = "registry.opentofu.org/landform/versa";

/// The provider's own version is the program's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const REQUEST_SECONDS: i64 = 60;

/// With a way past the network to Landform's gateway, where both are one program.
#[derive(Clone, Default)]
pub struct Versa(pub Option<Arc<dyn Shortcut>>);

#[async_trait]
impl Definition for Versa {
    type Client = Director;

    fn schema(&self) -> Schema {
        block([
            ("url", string().required().describe("The Director, for instance https://director.example.net:9182.")),
            ("username", string().required()),
            ("password", string().required().sensitive()),
            ("client_id", string().optional().describe("With a client secret: log in once and use a token.")),
            ("client_secret", string().optional().sensitive()),
            ("ca_certificate", string().optional().describe("PEM of the authority that signed the Director's own.")),
            ("request_seconds", number().optional().describe("How long to wait for an answer; 60 if left out.")),
        ])
    }

    fn resources(&self) -> Resources<Director> {
        vec![
            ("versa_template", Box::new(Object(template::Template))),
            ("versa_device_group", Box::new(Object(device_group::DeviceGroup))),
            ("versa_device", Box::new(Object(device::Device))),
            ("versa_ipsec_tunnel", Box::new(Object(tunnel::Tunnel))),
            ("versa_bgp_peer", Box::new(Object(bgp::BgpPeer))),
        ]
    }

    fn data_sources(&self) -> DataSources<Director> {
        vec![
            ("versa_organizations", Box::new(data::Organizations)),
            ("versa_free_branch_id", Box::new(data::FreeBranchId)),
        ]
    }

    async fn configure(&self, config: &Value) -> Result<Director, Failure> {
        let wrong = |name: &str, why: &str| Failure::from(Diagnostic::error("The provider's settings", why).at(name));
        let secret = |name: &str| text(config, name).map(|secret| SecretString::new(secret.to_owned()));
        let url = text(config, "url").unwrap_or_default().trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(wrong("url", "The url must begin with https:// (or http://)."));
        }
        // Paths are appended to it, and must stay the paths of the request.
        if url.contains(['?', '#']) {
            return Err(wrong("url", "The url must have no query and no fragment."));
        }
        let token = match (text(config, "client_id"), secret("client_secret")) {
            (Some(id), Some(secret)) => Some((id.to_owned(), secret)),
            (None, None) => None,
            _ => return Err(wrong("client_id", "client_id and client_secret belong together.")),
        };
        let seconds = whole(config, "request_seconds").unwrap_or(REQUEST_SECONDS);
        let Some(patience) = u64::try_from(seconds).ok().filter(|seconds| (1..=3600).contains(seconds)) else {
            return Err(wrong("request_seconds", "It must be between 1 and 3600."));
        };
        let login = Login {
            user: text(config, "username").unwrap_or_default().to_owned(),
            password: secret("password").unwrap_or_else(|| SecretString::new(String::new())),
            client: token,
        };
        let settings = Settings {
            url,
            login,
            patience: Duration::from_secs(patience),
            authority: text(config, "ca_certificate").map(str::to_owned),
        };
        Director::new(settings, self.0.clone()).map_err(|why| wrong("ca_certificate", &why))
    }
}
