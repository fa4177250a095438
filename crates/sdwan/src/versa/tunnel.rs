use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::{Diagnostic, Diagnostics, Schema};
use landform_provider_kit::{block, string};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::director::{Director, Trouble, segment};
use super::object::{Kind, common, joined, parts, task_patience};
use crate::fields::{required, text, text_of, text_or_null, with};

const ROOT: &str = "vpn-profile";
const SHORTEST_KEY: usize = 8;

/// An IPsec tunnel of a template's devices. It works when the template was applied to them.
///
/// The Director never tells the key again, so a change of it behind our back is not seen.
pub struct Tunnel;

const KEY: [&str; 3] = ["template", "organization", "name"];

#[async_trait]
impl Kind for Tunnel {
    const NAME: &'static str = "IPsec tunnel";

    fn schema(&self) -> Schema {
        let own = [
            ("template", string().required()),
            ("organization", string().required()),
            ("name", string().required()),
            ("peer_address", string().required().describe("The other end, an IP address.")),
            ("psk", string().required().sensitive().describe("The key that both ends share, 8 characters at least.")),
            ("local_identity", string().optional()),
            ("peer_identity", string().optional()),
            ("ike_transform", string().optional().computed().describe("aes256-sha256 if left out.")),
            ("ike_group", string().optional().computed().describe("mod14 if left out.")),
            ("esp_transform", string().optional().computed().describe("esp-aes256-sha256 if left out.")),
        ];
        block(common().into_iter().chain(own))
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &KEY
    }

    fn validate(&self, config: &Value) -> Diagnostics {
        let mut wrong = Vec::new();
        if text(config, "peer_address").is_some_and(|address| address.parse::<std::net::IpAddr>().is_err()) {
            wrong.push(Diagnostic::error("Not an IP address", "The peer's address must be one.").at("peer_address"));
        }
        if text(config, "psk").is_some_and(|key| key.chars().count() < SHORTEST_KEY) {
            let detail = format!("The shared key needs at least {SHORTEST_KEY} characters.");
            wrong.push(Diagnostic::error("The key is too short", detail).at("psk"));
        }
        wrong
    }

    fn defaults(&self, _proposed: &Value) -> Vec<(&'static str, Value)> {
        vec![
            ("ike_transform", "aes256-sha256".into()),
            ("ike_group", "mod14".into()),
            ("esp_transform", "esp-aes256-sha256".into()),
        ]
    }

    fn id(&self, object: &Value) -> String {
        joined(object, &KEY)
    }

    /// The path is the name, and a PUT makes it.
    fn birthplace(&self, object: &Value) -> (Method, String) {
        (Method::PUT, self.place(object))
    }

    fn place(&self, object: &Value) -> String {
        let part = |name| segment(&required(object, name));
        format!(
            "/api/config/devices/template/{}/config/orgs/org-services/{}/ipsec/vpn-profile/{}",
            part("template"),
            part("organization"),
            part("name")
        )
    }

    fn body(&self, object: &Value) -> Json {
        let end = |identity: &str| {
            json!({"auth-type": "psk", "id-type": "ip", "id-string": text(object, identity).unwrap_or_default(),
                "key": text(object, "psk")})
        };
        json!({ROOT: {
            "name": text(object, "name"),
            "vpn-type": "site-to-site",
            "peer": {"address": [text(object, "peer_address")]},
            "ike": {"version": "v2", "transform": text(object, "ike_transform"), "group": text(object, "ike_group")},
            "ipsec": {"transform": text(object, "esp_transform")},
            "local-auth-info": end("local_identity"),
            "peer-auth-info": end("peer_identity"),
        }})
    }

    fn as_found(&self, body: &Json, known: Value) -> Value {
        let body = &body[ROOT];
        with(
            known,
            [
                ("peer_address", text_of(&body["peer"]["address"][0])),
                ("local_identity", text_or_null(&body["local-auth-info"]["id-string"])),
                ("peer_identity", text_or_null(&body["peer-auth-info"]["id-string"])),
                ("ike_transform", text_of(&body["ike"]["transform"])),
                ("ike_group", text_of(&body["ike"]["group"])),
                ("esp_transform", text_of(&body["ipsec"]["transform"])),
            ],
        )
    }

    fn named(&self, id: &str, blank: Value) -> Option<Value> {
        let [template, organization, name] = parts(id)?;
        Some(with(blank, [("template", template.into()), ("organization", organization.into()), ("name", name.into())]))
    }

    /// A PUT would silently take over what somebody else made by this name.
    async fn prepare(&self, director: &Director, planned: Value) -> Result<Value, Trouble> {
        match director.find(&self.place(&planned)).await? {
            None => Ok(planned),
            Some(_) => {
                let message = format!("{} exists already; import it to manage it", self.id(&planned));
                Err(Trouble::Refused { status: reqwest::StatusCode::CONFLICT, message })
            }
        }
    }

    async fn deploy(&self, director: &Director, object: &Value) -> Result<(), Trouble> {
        apply_template(director, object).await
    }

    /// The devices must forget it too; a template that is gone has none.
    async fn withdraw(&self, director: &Director, object: &Value) -> Result<(), Trouble> {
        match apply_template(director, object).await {
            Err(trouble) if trouble.is(reqwest::StatusCode::NOT_FOUND) => Ok(()),
            other => other,
        }
    }
}

async fn apply_template(director: &Director, object: &Value) -> Result<(), Trouble> {
    let template = segment(&required(object, "template"));
    director.task(&format!("/vnms/template/applyTemplate/{template}"), task_patience(object)).await
}
