//! The engine in this process, with a journal and states on disk but neither store nor HTTP; and the floor of what a
//! process for each run must cost.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use base64::Engine;
use landform_cty::Value;
use landform_plugin::{Binary, Launch, Process, Schemas, StartError};
use landform_protocol::{Configure, Provider};
use landform_testkit::parts;

use crate::runs::Job;
use crate::stage::Desk;

pub async fn runs(desk: Desk) -> Result<Job> {
    desk.run("0").await?;
    let desk = Arc::new(desk);
    Ok(Box::new(move |number| {
        let desk = desk.clone();
        Box::pin(async move { desk.run(&number.to_string()).await.map(drop) })
    }))
}

/// A provider started, greeted, configured and ended, and nothing else.
pub fn floor() -> Result<Job> {
    let binary = Binary::at(&parts::provider("hashicorp/time"))?;
    let schemas = Arc::new(Schemas::in_memory());
    Ok(Box::new(move |_| {
        let (binary, schemas) = (binary.clone(), schemas.clone());
        Box::pin(async move {
            let process = Process::start(binary.clone(), Launch::new(&binary.path), schemas).await?;
            let block = process.schema().await?.provider.block.clone();
            let config = Value::object(std::iter::empty::<(String, Value)>()).convert(&block.implied_type())?;
            let call = Configure { terraform_version: "1.13.0".to_owned(), config };
            let said = process.configure(call).await?;
            ensure!(said.is_empty(), "{said:?}");
            Ok(())
        })
    }))
}

/// The same provider as OpenTofu starts it: told to speak TLS, it makes a key and a certificate before it greets. Only up to
/// that greeting, so that a whole start of this kind costs more than is measured here.
pub fn floor_with_certificate() -> Result<Job> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(made.cert.der());
    let ours = format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n");
    let binary = Binary::at(&parts::provider("hashicorp/time"))?;
    let schemas = Arc::new(Schemas::in_memory());
    Ok(Box::new(move |_| {
        let mut launch = Launch::new(&binary.path);
        launch.surroundings.environment.insert("PLUGIN_CLIENT_CERT".to_owned(), ours.clone());
        let starting = Process::start(binary.clone(), launch, schemas.clone());
        Box::pin(async move {
            match starting.await {
                Err(StartError::NotAProvider { detail, .. }) if detail.contains("TLS") => Ok(()),
                other => bail!("a greeting with a certificate was expected: {other:?}"),
            }
        })
    }))
}
