//! A site at Cato, where the vendor's own provider is at hand: it is in no package registry that this project uses.

use std::path::Path;

use serde_json::json;

use super::stage::Stage;
use super::vendor::Simulator;
use crate::failure::Failure;

const TEMPLATE: &str = include_str!("../../../../templates/cato-ipsec-site/main.tf");
const VENDOR: &str = include_str!("../../../../templates/cato-ipsec-site/vendor.json");
const EXAMPLE: &str = include_str!("../../../../templates/cato-ipsec-site/example.json");

pub async fn a_site(stage: &Stage, provider: Option<&Path>) -> Result<(), Failure> {
    let Some(provider) = provider.map(|path| path.display().to_string()) else {
        stage.say("Sites at Cato are left out: they need Cato's own provider (demo --cato-provider FILE).");
        return Ok(());
    };
    stage.say("A site at Cato, through the vendor's own provider: a real binary, spoken to without any CLI.");
    let cato = Simulator::start(stage, &["cato", "--limits", "published"]).await?;
    stage.write("cato-ipsec-site/main.tf", TEMPLATE)?;
    stage.write("cato-ipsec-site/vendor.json", VENDOR)?;
    stage.write("site.json", EXAMPLE)?;
    let credentials = json!({"variables":
        {"cato_url": cato.endpoint(), "cato_token": "made-up-for-the-demo", "cato_account_id": "4711"}});
    stage.write("cato.json", &credentials.to_string())?;
    stage.run(&["provider", "add", &provider, "--source", "catonetworks/cato", "--version", "0.0.1"]).await?;
    stage.run(&["template", "push", "cato-ipsec-site"]).await?;
    stage.run(&["connection", "put", "acme/cato", "--values", "cato.json"]).await?;
    let site = ["deploy", "acme/site", "--template", "cato-ipsec-site", "--connection", "cato"];
    stage.run(&[&site[..], &["--var-file", "site.json", "--engine", "native", "--wait"]].concat()).await?;
    stage.show_output("acme/site", "site_id").await?;
    stage.run(&["destroy", "acme/site", "--wait"]).await?;
    cato.expect_nothing().await
}
