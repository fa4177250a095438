//! Every dependency must be usable under one of these licences.

use anyhow::{Context, Result, bail};
use spdx::{Expression, LicenseReq, ParseMode};

use crate::shell;

const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages that name a file instead of a licence: somebody has read it in this version.
const READ: &[(&str, &str, &str)] = &[("jsonpath-rust", "0.3.5", "MIT")];

pub fn check() -> Result<()> {
    let metadata = shell::json(shell::cargo().args(["metadata", "--format-version=1", "--locked"]))?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let read = READ.iter().find(|(read, version, _)| *read == name && package["version"] == *version);
        let Some(text) = package["license"].as_str().or(read.map(|(_, _, licence)| *licence)) else {
            wrong.push(format!("{name}: says no licence"));
            continue;
        };
        let expression = Expression::parse_mode(text, ParseMode::LAX).with_context(|| format!("{name}: {text}"))?;
        if !expression.evaluate(is_allowed) {
            wrong.push(format!("{name}: {text}"));
        }
    }
    if !wrong.is_empty() {
        bail!("licences that are not on the list:\n  {}", wrong.join("\n  "));
    }
    eprintln!("    licences: {} packages, all on the list", packages.len());
    Ok(())
}

fn is_allowed(requirement: &LicenseReq) -> bool {
    ALLOWED.contains(&requirement.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternative_is_enough_and_a_conjunction_needs_both() {
        let verdict = |text| Expression::parse(text).expect("an expression").evaluate(is_allowed);
        assert!(verdict("MIT OR GPL-3.0-only"));
        assert!(!verdict("MIT AND GPL-3.0-only"));
        assert!(verdict("Apache-2.0 WITH LLVM-exception"));
        assert!(!verdict("AGPL-3.0-only"));
    }
}
