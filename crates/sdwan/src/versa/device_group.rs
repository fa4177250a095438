use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::Schema;
use landform_provider_kit::{block, string};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::director::{Director, Trouble, segment};
use super::object::{Kind, common};
use crate::fields::{required, text, text_of, with};

const COLLECTION: &str = "/nextgen/deviceGroup";
const ROOT: &str = "device-group";

/// Devices that get the same template.
pub struct DeviceGroup;

#[async_trait]
impl Kind for DeviceGroup {
    const NAME: &'static str = "device group";

    fn schema(&self) -> Schema {
        let own = [
            ("name", string().required()),
            ("organization", string().required()),
            ("template", string().required().describe("The template that devices get after staging.")),
        ];
        block(common().into_iter().chain(own))
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &["name", "organization"]
    }

    fn id(&self, object: &Value) -> String {
        required(object, "name")
    }

    fn birthplace(&self, _object: &Value) -> (Method, String) {
        (Method::POST, COLLECTION.to_owned())
    }

    fn place(&self, object: &Value) -> String {
        format!("{COLLECTION}/{}", segment(&self.id(object)))
    }

    fn body(&self, object: &Value) -> Json {
        json!({ROOT: {
            "name": text(object, "name"),
            "dg:organization": text(object, "organization"),
            "dg:poststaging-template": text(object, "template"),
            "dg:enable-2factor-auth": false,
            "dg:ca-config-on-branch-notification": false,
            "dg:enable-staging-url": false,
        }})
    }

    fn as_found(&self, body: &Json, known: Value) -> Value {
        let body = &body[ROOT];
        with(
            known,
            [
                ("name", text_of(&body["name"])),
                ("organization", text_of(&body["dg:organization"])),
                ("template", text_of(&body["dg:poststaging-template"])),
            ],
        )
    }

    fn named(&self, id: &str, blank: Value) -> Option<Value> {
        (!id.is_empty()).then(|| with(blank, [("name", id.into())]))
    }

    /// A group is a record at the Director; no appliance has to hear of it.
    async fn deploy(&self, _director: &Director, _object: &Value) -> Result<(), Trouble> {
        Ok(())
    }
}
