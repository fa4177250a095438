use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::{Nesting, Schema};
use landform_provider_kit::{block, bool, nested, of, string};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::director::{Director, Trouble, segment};
use super::object::{Kind, common, task_patience};
use crate::fields::{required, text, text_of, text_or_null, with};

const COLLECTION: &str = "/vnms/sdwan/workflow/devices";
const ROOT: &str = "versanms.sdwan-device-workflow";
const FREE_ID: &str = "/vnms/sdwan/global/Branch/availableId/withSerialNumber";

/// The parts of a location: here, and at the Director.
const LOCATION: [(&str, &str); 6] = [
    ("country", "country"),
    ("state", "state"),
    ("city", "city"),
    ("address", "address1"),
    ("latitude", "latitude"),
    ("longitude", "longitude"),
];

/// A branch's appliance. Making it is a record; deploying it is a task.
pub struct Device;

/// A branch id that no device has, and the serial number that goes with it. It is not reserved.
pub async fn free_branch(director: &Director) -> Result<(Value, Value), Trouble> {
    let answer = director.get(FREE_ID).await?;
    let free = &answer["AvailableIDResponseModel"];
    Ok((text_of(&free["branchId"]), text_of(&free["serialNumber"])))
}

#[async_trait]
impl Kind for Device {
    const NAME: &'static str = "device";

    fn schema(&self) -> Schema {
        let part = |name: &'static str| {
            let text = string();
            (name, if name == "country" { text.required() } else { text.optional() })
        };
        let own = [
            ("name", string().required()),
            ("organization", string().required()),
            ("device_group", string().required()),
            ("template", string().required()),
            ("site_id", string().optional().computed().describe("A free branch id if left out.")),
            ("serial_number", string().optional().computed().describe("The Director's proposal if left out.")),
            ("location", nested(Nesting::Single, LOCATION.map(|(name, _)| part(name))).required()),
            ("variables", of(Type::map(Type::String)).optional().describe("Values for the template's variables.")),
            ("deployed", bool().computed().describe("Whether the appliance has its configuration.")),
        ];
        block(common().into_iter().chain(own))
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &["name", "organization", "site_id", "serial_number"]
    }

    /// What is not deployed (any more) is a change to be made.
    fn defaults(&self, _proposed: &Value) -> Vec<(&'static str, Value)> {
        vec![("deployed", true.into())]
    }

    fn id(&self, object: &Value) -> String {
        required(object, "name")
    }

    fn birthplace(&self, _object: &Value) -> (Method, String) {
        (Method::POST, format!("{COLLECTION}/device"))
    }

    fn place(&self, object: &Value) -> String {
        format!("{COLLECTION}/device/{}", segment(&self.id(object)))
    }

    fn grave(&self, object: &Value) -> String {
        format!("{COLLECTION}/{}", segment(&self.id(object)))
    }

    fn body(&self, object: &Value) -> Json {
        let location = object.get("location").cloned().unwrap_or(Value::null(Type::Dynamic));
        let location: Map<String, Json> = LOCATION
            .iter()
            .filter_map(|(name, field)| Some(((*field).to_owned(), text(&location, name)?.into())))
            .collect();
        let variables = object.get("variables").and_then(Value::as_mapping);
        let attributes: Vec<Json> = variables
            .into_iter()
            .flatten()
            .map(|(name, value)| json!({"name": name, "value": value.as_str(), "isAutogeneratable": false}))
            .collect();
        json!({ROOT: {
            "deviceName": text(object, "name"),
            "orgName": text(object, "organization"),
            "siteId": text(object, "site_id"),
            "serialNumber": text(object, "serial_number"),
            "deviceGroup": text(object, "device_group"),
            "locationInfo": location,
            "postStagingTemplateInfo": {
                "templateName": text(object, "template"),
                "templateData": {"device-template-variable": {"variable-binding": {"attrs": attributes}}},
            },
        }})
    }

    fn as_found(&self, body: &Json, known: Value) -> Value {
        let body = &body[ROOT];
        let staging = &body["postStagingTemplateInfo"];
        let pairs = &staging["templateData"]["device-template-variable"]["variable-binding"]["attrs"];
        let pairs = pairs.as_array().into_iter().flatten();
        let pairs: Vec<(String, Value)> =
            pairs.filter_map(|pair| Some((pair["name"].as_str()?.to_owned(), text_of(&pair["value"])))).collect();
        let unset = pairs.is_empty() && known.get("variables").is_none_or(Value::is_null);
        let variables = Value::map(Type::String, pairs);
        let location = LOCATION.map(|(name, field)| (name, text_or_null(&body["locationInfo"][field])));
        with(
            known,
            [
                ("name", text_of(&body["deviceName"])),
                ("organization", text_of(&body["orgName"])),
                ("device_group", text_of(&body["deviceGroup"])),
                ("template", text_of(&staging["templateName"])),
                ("site_id", text_of(&body["siteId"])),
                ("serial_number", text_of(&body["serialNumber"])),
                ("location", Value::object(location)),
                ("variables", if unset { Value::null(Type::map(Type::String)) } else { variables }),
                ("deployed", Value::bool(body["status"] == "Deployed")),
            ],
        )
    }

    fn named(&self, id: &str, blank: Value) -> Option<Value> {
        (!id.is_empty()).then(|| with(blank, [("name", id.into())]))
    }

    async fn prepare(&self, director: &Director, planned: Value) -> Result<Value, Trouble> {
        let open = |name: &str| planned.get(name).is_none_or(|value| !value.is_known());
        let (no_site, no_serial) = (open("site_id"), open("serial_number"));
        if !no_site && !no_serial {
            return Ok(planned);
        }
        let (site, serial) = free_branch(director).await?;
        let planned = if no_site { with(planned, [("site_id", site)]) } else { planned };
        Ok(if no_serial { with(planned, [("serial_number", serial)]) } else { planned })
    }

    /// Somebody was faster with the id that was free a moment ago.
    fn again(&self, planned: &Value, refused: &Trouble) -> bool {
        let chosen_here = planned.get("site_id").is_some_and(|site| !site.is_known());
        chosen_here && refused.is(StatusCode::CONFLICT) && refused.to_string().contains("site id")
    }

    async fn deploy(&self, director: &Director, object: &Value) -> Result<(), Trouble> {
        let path = format!("{COLLECTION}/device/deploy/{}", segment(&self.id(object)));
        director.task(&path, task_patience(object)).await
    }
}
