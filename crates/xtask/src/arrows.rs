//! Which crate may depend on which. The table is the house's plan; a change of it is a decision, not an accident.

use anyhow::{Result, bail};

use crate::shell;

/// A crate and all the crates of the workspace that it may name in `[dependencies]`.
/// Tests may use `testkit` and `sim` besides (dev-dependencies), and nothing else.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("domain", &["base"]),
    ("api", &["domain", "base"]),
    ("store", &["domain", "base"]),
    ("cty", &[]),
    ("lang", &["cty"]),
    ("protocol", &["cty"]),
    ("plugin", &["protocol", "cty", "base"]),
    ("provider-kit", &["protocol", "cty"]),
    ("registry", &["base"]),
    ("engine", &["lang", "plugin", "protocol", "registry", "cty", "base"]),
    ("gateway", &["base"]),
    ("runner", &["store", "engine", "gateway", "registry", "plugin", "protocol", "lang", "cty", "domain", "base"]),
    ("server", &["api", "store", "domain", "base"]),
    (
        "landform",
        &[
            "server",
            "runner",
            "sim",
            "sdwan",
            "provider-kit",
            "store",
            "engine",
            "gateway",
            "registry",
            "plugin",
            "lang",
            "cty",
            "protocol",
            "api",
            "domain",
            "base",
        ],
    ),
    ("sdwan", &["provider-kit", "protocol", "cty", "base"]),
    ("sim", &["base"]),
    ("testkit", &["provider-kit", "plugin", "protocol", "cty", "api", "base"]),
    // It drives the store and the engine as the runner does, which no test kit should be able to.
    ("bench", &["testkit", "runner", "store", "engine", "registry", "plugin", "protocol", "cty", "domain", "base"]),
    ("xtask", &[]),
];

pub fn check() -> Result<()> {
    let metadata = shell::json(shell::cargo().args(["metadata", "--format-version=1", "--no-deps", "--offline"]))?;
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = room(package["name"].as_str().unwrap_or_default());
        let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == name) else {
            wrong.push(format!("{name} is not in the table of arrows (crates/xtask/src/arrows.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["path"].is_null() {
                continue;
            }
            let target = room(dependency["name"].as_str().unwrap_or_default());
            let for_tests = dependency["kind"] == "dev";
            if !(allowed.contains(&target) || for_tests && (["testkit", "sim"].contains(&target) || name == "landform"))
            {
                wrong.push(format!("{name} must not depend on {target}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("the arrows between crates are broken:\n  {}", wrong.join("\n  "));
    }
    eprintln!("    arrows: {} crates, none out of place", ARROWS.len());
    Ok(())
}

fn room(package: &str) -> &str {
    package.strip_prefix("landform-").unwrap_or(package)
}
