//! The engine in this process, with a journal and states on disk but neither store nor HTTP; and the floor of what a
//! process for each run must cost.

use std::sync::Arc;

use anyhow::{Result, ensure};
use landform_cty::Value;
use landform_plugin::{Binary, Launch, Process, Schemas};
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
