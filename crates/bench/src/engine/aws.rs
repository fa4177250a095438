//! A plan of one object of a very large provider, warm. The provider is an optional part: a filesystem mirror that
//! `LANDFORM_TEST_AWS_MIRROR` names.

use std::time::Instant;

use anyhow::Result;
use landform_runner::known::KnownProviders;
use landform_testkit::figures::Times;
use landform_testkit::parts;

use crate::Figure;
use crate::stage::{Desk, cost, providers, tofu};

const WARM_PLANS: usize = 20;

fn configuration(source: &str) -> String {
    format!(
        r#"
terraform {{
  required_providers {{
    aws = {{
      source = "{source}"
    }}
  }}
}}

variable "event" {{
  type    = string
  default = "one"
}}

provider "aws" {{
  region                      = "eu-central-1"
  access_key                  = "none"
  secret_key                  = "none"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  skip_requesting_account_id  = true
}}

resource "aws_s3_bucket" "this" {{
  bucket = "landform-${{var.event}}"
}}
"#
    )
}

pub async fn measure() -> Result<Vec<Figure>> {
    let Some(part) = parts::aws() else {
        eprintln!("NOT MEASURED: hashicorp/aws, since LANDFORM_TEST_AWS_MIRROR names no mirror with it");
        return Ok(Vec::new());
    };
    eprintln!("measuring a plan with hashicorp/aws {} …", part.version);
    let folder = tempfile::tempdir()?;
    let text = configuration(&part.source);
    std::fs::write(folder.path().join("main.tf"), &text)?;
    cost(&mut tofu(folder.path(), &part.mirror, &["init", "-no-color", "-input=false"])?)?;
    let peer = cost(&mut tofu(folder.path(), &part.mirror, &["plan", "-no-color", "-input=false"])?)?;
    let mut known = KnownProviders::listed();
    known.share(&format!("{}@{}", part.source, part.version))?;
    let desk = Desk::new(providers(&part.mirror, known), &text)?;
    let workspace = desk.workspace("two");
    desk.plan(&workspace).await?;
    let mut times = Vec::new();
    for _ in 0..WARM_PLANS {
        let begin = Instant::now();
        desk.plan(&workspace).await?;
        times.push(begin.elapsed());
    }
    let (ours, theirs) = (Times::new(times).percentile(0.5), peer.time.as_secs_f64() * 1000.0);
    Ok(vec![Figure {
        what: format!("plan of one bucket, hashicorp/aws {}, warm", part.version),
        measured: format!("p50 {ours:.0} ms, `tofu plan` {theirs:.0} ms: {:.0} ×", theirs / ours),
        goal: "≥ 40 × faster".to_owned(),
        held: theirs / ours >= 40.0,
    }])
}
