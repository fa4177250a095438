//! The native engine needs no `tofu` and no `terraform`: here there is none to be found.

use std::path::Path;
use std::process::{Command, Output};

use landform_testkit::parts;

const MAIN: &str = r#"
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
variable "word" { default = "x" }
resource "time_static" "s" { triggers = { word = var.word } }
resource "terraform_data" "t" { input = time_static.s.triggers }
output "word" { value = terraform_data.t.output.word }
"#;

fn landform(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_landform"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", folder.join("nothing-here"))
        .env("HOME", folder)
        .env("TF_CLI_CONFIG_FILE", folder.join("tofurc"))
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_folder_is_planned_applied_and_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = parts::mirror().display().to_string();
    let config = format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror:?}\n  }}\n}}\n");
    std::fs::write(folder.path().join("tofurc"), config).unwrap();
    std::fs::write(folder.path().join("main.tf"), MAIN).unwrap();
    for args in [
        &["tf", "plan", "-out=p"][..],
        &["tf", "apply", "p"],
        &["tf", "apply", "-auto-approve", "-var=word=y"],
        &["tf", "show", "-json"],
        &["tf", "output", "-json", "word"],
        &["tf", "destroy", "-auto-approve"],
    ] {
        let output = landform(folder.path(), args);
        assert!(output.status.success(), "{args:?}: {}", text(&output));
        if args.contains(&"word") {
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"y\"");
        }
    }
}
