//! The same branch through the established way: terraform-exec, with the provider as an ordinary plugin.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use landform_testkit::parts;
use serde_json::{Value, json};

use crate::branches::{credentials, inputs};
use crate::stage::{Vendor, landform};
use crate::{Figure, Options};

pub async fn measure(options: &Options, ours: Option<f64>) -> Result<Figure> {
    let vendor = Vendor::at_once()?;
    let folder = tempfile::tempdir()?;
    let mirror = folder.path().join("mirror");
    let add = ["provider", "add", "--built-in", "versa", "--providers"];
    let added = Command::new(landform()?).args(add).arg(&mirror).output()?;
    ensure!(added.status.success(), "provider add: {}", String::from_utf8_lossy(&added.stderr));
    let (config, template, variables) =
        (folder.path().join("cli.tfrc"), folder.path().join("main.tf"), folder.path().join("variables.json"));
    let text =
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", mirror.display());
    std::fs::write(&config, text)?;
    std::fs::write(&template, include_str!("../../../../templates/versa-branch/main.tf"))?;
    // The program puts the event's number in the place of `EVENT`.
    let mut all = inputs("bEVENT")?;
    for (name, value) in credentials(&vendor.endpoint, 0).as_object().context("credentials")? {
        all[name] = value.clone();
    }
    std::fs::write(&variables, json!(all).to_string())?;
    eprintln!("measuring terraform-exec …");
    let mut command = Command::new(&options.peer);
    command.arg("-tofu").arg(parts::tofu()).arg("-config").arg(&config).arg("-template").arg(&template);
    command.arg("-variables").arg(&variables).args(["-workers", "2", "-seconds", &options.seconds.to_string()]);
    let output = command.output().context("starting the terraform-exec program")?;
    ensure!(output.status.success(), "terraform-exec: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| result[name].as_f64().with_context(|| name.to_owned());
    let per_minute = number("runs")? / number("seconds")? * 60.0;
    let ratio = ours.map(|ours| ours / per_minute);
    Ok(Figure {
        what: "the same template through terraform-exec, 2 workers".to_owned(),
        measured: match ratio {
            Some(ratio) => format!("{per_minute:.0} a minute: Landform does {ratio:.0} ×"),
            None => format!("{per_minute:.0} a minute"),
        },
        goal: ratio.map(|_| "≥ 30 ×".to_owned()).unwrap_or_default(),
        held: ratio.is_some_and(|ratio| ratio >= 30.0),
    })
}
