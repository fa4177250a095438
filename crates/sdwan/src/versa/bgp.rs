use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::{Diagnostic, Diagnostics, Schema};
use landform_provider_kit::{block, number, string};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::director::{Director, Trouble, segment};
use super::object::{Kind, common, parts};
use crate::fields::{required, text, text_of, text_or_null, whole, whole_of, with};

const ROOT: &str = "rti-bgp";
const LARGEST_AS: i64 = u32::MAX as i64;

/// A BGP instance of a device with one neighbour. The password is never told again.
pub struct BgpPeer;

#[async_trait]
impl Kind for BgpPeer {
    const NAME: &'static str = "BGP peer";

    fn schema(&self) -> Schema {
        let own = [
            ("device", string().required()),
            ("organization", string().required()),
            ("routing_instance", string().optional().computed().describe("ORGANIZATION-LAN-VR if left out.")),
            ("instance_id", number().required().describe("Its number in the routing instance.")),
            ("local_as", number().required()),
            ("peer_as", number().required()),
            ("peer_ip", string().required()),
            ("router_id", string().optional()),
            ("hold_time", number().optional().computed().describe("Seconds; 90 if left out.")),
            ("password", string().optional().sensitive()),
        ];
        block(common().into_iter().chain(own))
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &["device", "organization", "routing_instance", "instance_id"]
    }

    fn validate(&self, config: &Value) -> Diagnostics {
        let mut wrong = Vec::new();
        for name in ["peer_ip", "router_id"] {
            if text(config, name).is_some_and(|address| address.parse::<std::net::IpAddr>().is_err()) {
                wrong.push(Diagnostic::error("Not an IP address", "It must be an IP address.").at(name));
            }
        }
        for (name, largest) in [("local_as", LARGEST_AS), ("peer_as", LARGEST_AS), ("instance_id", 65_535)] {
            let given = config.get(name).filter(|value| value.is_known() && !value.is_null());
            if given.is_some() && !whole(config, name).is_some_and(|number| (1..=largest).contains(&number)) {
                let detail = format!("It must be a whole number from 1 to {largest}.");
                wrong.push(Diagnostic::error("Out of range", detail).at(name));
            }
        }
        wrong
    }

    fn defaults(&self, proposed: &Value) -> Vec<(&'static str, Value)> {
        let instance = match text(proposed, "organization") {
            Some(organization) => Value::string(format!("{organization}-LAN-VR")),
            None => Value::unknown(Type::String),
        };
        vec![("routing_instance", instance), ("hold_time", Value::number(90))]
    }

    fn id(&self, object: &Value) -> String {
        let instance = whole(object, "instance_id").unwrap_or_default();
        format!("{}/{}/{instance}", required(object, "device"), required(object, "routing_instance"))
    }

    fn birthplace(&self, object: &Value) -> (Method, String) {
        (Method::POST, self.instances(object))
    }

    fn place(&self, object: &Value) -> String {
        format!("{}/rti-bgp/{}", self.instances(object), whole(object, "instance_id").unwrap_or_default())
    }

    fn body(&self, object: &Value) -> Json {
        json!({ROOT: [{
            "instance-id": whole(object, "instance_id"),
            "local-as": {"as-number": whole(object, "local_as")},
            "router-id": text(object, "router_id").unwrap_or_default(),
            "group": [{
                "name": "landform",
                "type": if whole(object, "local_as") == whole(object, "peer_as") { "internal" } else { "external" },
                "neighbor": [{
                    "neighbor-ip": text(object, "peer_ip"),
                    "peer-as": whole(object, "peer_as"),
                    "hold-time": whole(object, "hold_time"),
                    "password": text(object, "password").unwrap_or_default(),
                }],
            }],
        }]})
    }

    fn as_found(&self, body: &Json, known: Value) -> Value {
        let body = &body[ROOT][0];
        let neighbour = &body["group"][0]["neighbor"][0];
        with(
            known,
            [
                ("local_as", whole_of(&body["local-as"]["as-number"])),
                ("peer_as", whole_of(&neighbour["peer-as"])),
                ("peer_ip", text_of(&neighbour["neighbor-ip"])),
                ("router_id", text_or_null(&body["router-id"])),
                ("hold_time", whole_of(&neighbour["hold-time"])),
            ],
        )
    }

    /// `device/routing-instance/number`, where the routing instance is named after the organization.
    fn named(&self, id: &str, blank: Value) -> Option<Value> {
        let [device, instance, number] = parts(id)?;
        let organization = instance.strip_suffix("-LAN-VR").unwrap_or(instance);
        Some(with(
            blank,
            [
                ("device", device.into()),
                ("routing_instance", instance.into()),
                ("organization", organization.into()),
                ("instance_id", Value::number(number.parse::<i64>().ok()?)),
            ],
        ))
    }

    /// It is written to the device itself, which has it at once.
    async fn deploy(&self, _director: &Director, _object: &Value) -> Result<(), Trouble> {
        Ok(())
    }
}

impl BgpPeer {
    fn instances(&self, object: &Value) -> String {
        let part = |name| segment(&required(object, name));
        format!(
            "/api/config/devices/device/{}/config/routing-instances/routing-instance/{}/protocols/bgp",
            part("device"),
            part("routing_instance")
        )
    }
}
