//! The engine in this process, with a journal and states on disk but neither store nor HTTP; and the floor of what a
//! process for each run must cost.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use base64::Engine;
use landform_cty::Value;
use landform_plugin::{Binary, Launch, Process, Schemas, StartError};
use landform_protocol::{Configure, Provider};
use landform_testkit::parts;

use crate::Options;
use crate::rest::{Rate, rate};
use crate::stage::Desk;

pub async fn runs(options: &Options, desk: Desk) -> Result<Rate> {
    eprintln!("measuring the native engine alone …");
    desk.run("0").await?;
    let desk = Arc::new(desk);
    rate(options, move |number| {
        let desk = desk.clone();
        async move { desk.run(&number.to_string()).await.map(drop) }
    })
    .await
}

/// A provider started, greeted, configured and ended, and nothing else.
pub async fn floor(options: &Options) -> Result<Rate> {
    eprintln!("measuring the floor …");
    let binary = Binary::at(&parts::provider("hashicorp/time"))?;
    let schemas = Arc::new(Schemas::in_memory());
    rate(options, move |_| {
        let (binary, schemas) = (binary.clone(), schemas.clone());
        async move {
            let process = Process::start(binary.clone(), Launch::new(&binary.path), schemas).await?;
            let block = process.schema().await?.provider.block.clone();
            let config = Value::object(std::iter::empty::<(String, Value)>()).convert(&block.implied_type())?;
            let call = Configure { terraform_version: "1.13.0".to_owned(), config };
            let said = process.configure(call).await?;
            ensure!(said.is_empty(), "{said:?}");
            Ok(())
        }
    })
    .await
}

/// The same provider as OpenTofu starts it: told to speak TLS, it makes a key and a certificate before it greets. Only up to
/// that greeting, so that a whole start of this kind costs more than is measured here.
pub async fn floor_with_certificate(options: &Options) -> Result<Rate> {
    eprintln!("measuring the floor with a certificate …");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(made.cert.der());
    let ours = format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n");
    let binary = Binary::at(&parts::provider("hashicorp/time"))?;
    let schemas = Arc::new(Schemas::in_memory());
    rate(options, move |_| {
        let mut launch = Launch::new(&binary.path);
        launch.surroundings.environment.insert("PLUGIN_CLIENT_CERT".to_owned(), ours.clone());
        let starting = Process::start(binary.clone(), launch, schemas.clone());
        async move {
            match starting.await {
                Err(StartError::NotAProvider { detail, .. }) if detail.contains("TLS") => Ok(()),
                other => bail!("a greeting with a certificate was expected: {other:?}"),
            }
        }
    })
    .await
}
