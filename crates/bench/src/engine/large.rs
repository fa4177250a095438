//! Plans of many objects, beside `tofu`. `terraform_data` needs no provider process in either.

use std::process::Command;

use anyhow::Result;
use landform_testkit::parts;

use crate::stage::{Cost, cost, program, tofu};
use crate::{Figure, Options};

/// All of the objects refer to one of them. Many that refer to as many others by index would take `tofu` far longer: it
/// makes the whole list anew for each reference.
fn configuration(objects: usize) -> String {
    format!(
        r#"
resource "terraform_data" "root" {{
  input = "root"
}}

resource "terraform_data" "leaf" {{
  count            = {objects} - 1
  input            = "${{terraform_data.root.output}} ${{count.index}}"
  triggers_replace = terraform_data.root.id
}}

output "root" {{
  value = terraform_data.root.id
}}
"#
    )
}

pub fn measure(options: &Options) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut costs: Vec<(usize, Cost)> = Vec::new();
    for objects in &options.objects {
        eprintln!("measuring plans of {objects} objects …");
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("main.tf"), configuration(*objects))?;
        let peer = cost(&mut tofu(folder.path(), &parts::mirror(), &["plan", "-no-color", "-input=false"])?)?;
        let mut ours = Command::new(program("landform")?);
        ours.current_dir(folder.path()).args(["tf", "plan", "-no-color", "-input=false"]);
        let ours = cost(&mut ours)?;
        let faster = peer.time.as_secs_f64() / ours.time.as_secs_f64();
        let share = ours.peak_mb / peer.peak_mb;
        figures.push(Figure {
            what: format!("plan of {objects} `terraform_data`, time"),
            measured: format!("{:.0} ms, `tofu` {:.0} ms: {faster:.1} ×", millis(&ours), millis(&peer)),
            goal: "≥ 10 × faster".to_owned(),
            held: faster >= 10.0,
        });
        figures.push(Figure {
            what: format!("plan of {objects} `terraform_data`, memory"),
            measured: format!("{:.0} MB, `tofu` {:.0} MB: {:.0} %", ours.peak_mb, peer.peak_mb, share * 100.0),
            goal: "≤ a third".to_owned(),
            held: share <= 1.0 / 3.0,
        });
        costs.push((*objects, ours));
    }
    if let [(few, small), .., (many, large)] = costs.as_slice() {
        let growth = (millis(large) / millis(small)) / (*many as f64 / *few as f64);
        figures.push(Figure {
            what: format!("time for each object, {many} against {few}"),
            measured: format!("{growth:.2} ×"),
            goal: "linear (≤ 1.3 ×)".to_owned(),
            held: growth <= 1.3,
        });
    }
    Ok(figures)
}

fn millis(cost: &Cost) -> f64 {
    cost.time.as_secs_f64() * 1000.0
}
