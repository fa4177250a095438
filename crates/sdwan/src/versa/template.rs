use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::Schema;
use landform_provider_kit::{block, number, of, string};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::director::{Director, Trouble, segment};
use super::object::{Kind, common};
use crate::fields::{required, text, text_of, text_or_null, whole, whole_of, with};

const COLLECTION: &str = "/vnms/sdwan/workflow/templates/template";
const ROOT: &str = "versanms.sdwan-template-workflow";
const TIER: &str = "Premier-Elite-SDWAN";

/// What branches of one kind have in common. It is deployed with every change.
pub struct Template;

#[async_trait]
impl Kind for Template {
    const NAME: &'static str = "template";

    fn schema(&self) -> Schema {
        let own = [
            ("name", string().required()),
            ("organization", string().required()),
            ("controllers", of(Type::list(Type::String)).optional()),
            ("solution_tier", string().optional().computed().describe("Premier-Elite-SDWAN if left out.")),
            ("bandwidth_mbps", number().optional()),
        ];
        block(common().into_iter().chain(own))
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &["name", "organization"]
    }

    fn defaults(&self, _proposed: &Value) -> Vec<(&'static str, Value)> {
        vec![("solution_tier", TIER.into())]
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
        let controllers = object.get("controllers").and_then(Value::as_sequence).unwrap_or_default();
        let controllers: Vec<&str> = controllers.iter().filter_map(Value::as_str).collect();
        json!({ROOT: {
            "templateName": text(object, "name"),
            "templateType": "sdwan-post-staging",
            "deviceType": "SDWAN",
            "providerOrg": {"name": text(object, "organization")},
            "controllers": controllers,
            "solutionTier": text(object, "solution_tier"),
            "bandwidth": whole(object, "bandwidth_mbps"),
        }})
    }

    fn as_found(&self, body: &Json, known: Value) -> Value {
        let body = &body[ROOT];
        let names: Vec<Value> = body["controllers"].as_array().into_iter().flatten().map(text_of).collect();
        // Left out and empty are the same to the Director; what the configuration says is kept.
        let unset = names.is_empty() && known.get("controllers").is_none_or(Value::is_null);
        let controllers = Value::list(Type::String, names);
        with(
            known,
            [
                ("name", text_of(&body["templateName"])),
                ("organization", text_of(&body["providerOrg"]["name"])),
                ("controllers", if unset { Value::null(Type::list(Type::String)) } else { controllers }),
                ("solution_tier", text_or_null(&body["solutionTier"])),
                ("bandwidth_mbps", whole_of(&body["bandwidth"])),
            ],
        )
    }

    fn named(&self, id: &str, blank: Value) -> Option<Value> {
        (!id.is_empty()).then(|| with(blank, [("name", id.into())]))
    }

    async fn deploy(&self, director: &Director, object: &Value) -> Result<(), Trouble> {
        director.post(&format!("{COLLECTION}/deploy/{}", segment(&self.id(object)))).await.map(drop)
    }
}
