//! What a template may do besides describing objects.
//!
//! A provisioner, `external` data and code from elsewhere are programs that run as Landform does. They are denied
//! unless the operator has allowed them by name, whichever engine would run them. Providers need no list of their own:
//! they come from the mirror alone, and only the operator can put one there.

use std::collections::BTreeSet;
use std::str::FromStr;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body, Structure};
use serde_json::Value;

/// Something that an operator can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    LocalExec,
    RemoteExec,
    File,
    External,
    RemoteModules,
}

impl Permission {
    pub const ALL: [Permission; 5] = [
        Permission::LocalExec,
        Permission::RemoteExec,
        Permission::File,
        Permission::External,
        Permission::RemoteModules,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Permission::LocalExec => "local-exec",
            Permission::RemoteExec => "remote-exec",
            Permission::File => "file",
            Permission::External => "external",
            Permission::RemoteModules => "remote-modules",
        }
    }
}

impl FromStr for Permission {
    type Err = String;

    fn from_str(text: &str) -> Result<Permission, String> {
        let names = || Permission::ALL.map(Permission::name).join(", ");
        let found = Permission::ALL.into_iter().find(|permission| permission.name() == text);
        found.ok_or_else(|| format!("{text} is none of {}", names()))
    }
}

/// What the operator has allowed; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    allowed: BTreeSet<Permission>,
}

/// One place in a template that the policy does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub file: String,
    /// Counts from 1; JSON syntax has no places.
    pub line: Option<usize>,
    /// For instance ``provisioner `local-exec` ``.
    pub what: String,
    /// The name under which the operator could allow it; a provisioner that nobody knows cannot be.
    pub allow: Option<Permission>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what)?,
            None => write!(f, "{}: {}", self.file, self.what)?,
        }
        match self.allow {
            Some(permission) => write!(f, " (allowed with `--allow {}`)", permission.name()),
            None => Ok(()),
        }
    }
}

impl Policy {
    pub fn allowing(permissions: impl IntoIterator<Item = Permission>) -> Policy {
        Policy { allowed: permissions.into_iter().collect() }
    }

    /// Everything in these files, by path within the template, that is not allowed.
    pub fn violations<'a>(&self, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<Violation> {
        let mut found = Vec::new();
        for (path, bytes) in files {
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            if path.ends_with(".tf") || path.ends_with(".tofu") {
                match text.parse::<Body>() {
                    Ok(body) => in_hcl(path, text, &body, &mut found),
                    Err(_) => found.extend(unreadable(path, text)),
                }
            } else if path.ends_with(".tf.json") || path.ends_with(".tofu.json") {
                match serde_json::from_str(text) {
                    Ok(root) => in_json(path, &root, &mut found),
                    Err(_) => found.extend(unreadable(path, text)),
                }
            }
        }
        found.retain(|violation| violation.allow.is_none_or(|permission| !self.allowed.contains(&permission)));
        found
    }
}

/// Most files that cannot be parsed here cannot be run either, and the engine says why. But the CLI has a parser of its
/// own, so what it might understand and we do not is denied if it could be about a program.
fn unreadable(file: &str, text: &str) -> Option<Violation> {
    let suspicious = ["provisioner", "external", "module"].iter().any(|word| text.contains(word));
    let what = "a file that the policy cannot read".to_owned();
    suspicious.then(|| Violation { file: file.to_owned(), line: None, what, allow: None })
}

fn blocks<'a>(body: &'a Body, kind: &'static str) -> impl Iterator<Item = &'a Block> {
    body.iter().filter_map(Structure::as_block).filter(move |block| block.ident.as_str() == kind)
}

fn label(block: &Block) -> &str {
    block.labels.first().map_or("", |label| label.as_str())
}

fn in_hcl(file: &str, text: &str, body: &Body, found: &mut Vec<Violation>) {
    let line = |block: &Block| block.span().map(|span| 1 + text[..span.start].matches('\n').count());
    for resource in blocks(body, "resource") {
        for provisioner in blocks(&resource.body, "provisioner") {
            found.push(provisioner_named(file, line(provisioner), label(provisioner)));
        }
        // A block can also be written as `dynamic "provisioner"`; the language refuses that, and so do we.
        for dynamic in blocks(&resource.body, "dynamic").filter(|dynamic| label(dynamic) == "provisioner") {
            found.push(provisioner_named(file, line(dynamic), "dynamic"));
        }
    }
    for data in blocks(body, "data").filter(|data| label(data) == "external") {
        found.push(external(file, line(data)));
    }
    for module in blocks(body, "module") {
        let source = module.body.get_attribute("source").map(|attribute| &attribute.value);
        if !source.is_some_and(|source: &Expression| source.as_str().is_some_and(is_local)) {
            found.push(remote_module(file, line(module)));
        }
    }
}

fn in_json(file: &str, root: &Value, found: &mut Vec<Violation>) {
    for types in each(&root["resource"]) {
        for resource in each(types).flat_map(items) {
            for provisioners in items(&resource["provisioner"]).filter_map(Value::as_object) {
                found.extend(provisioners.keys().map(|name| provisioner_named(file, None, name)));
            }
        }
    }
    for data in items(&root["data"]) {
        if data.get("external").is_some() {
            found.push(external(file, None));
        }
    }
    for module in items(&root["module"]).flat_map(each).flat_map(items) {
        if !module["source"].as_str().is_some_and(is_local) {
            found.push(remote_module(file, None));
        }
    }
}

/// JSON syntax allows a list wherever a block may stand more than once.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().chain(std::iter::once(value).filter(|value| value.is_object()))
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    items(value).filter_map(Value::as_object).flat_map(|map| map.values())
}

fn is_local(source: &str) -> bool {
    source.starts_with("./") || source.starts_with("../")
}

fn provisioner_named(file: &str, line: Option<usize>, name: &str) -> Violation {
    let allow = Permission::ALL[..3].iter().copied().find(|permission| permission.name() == name);
    Violation { file: file.to_owned(), line, what: format!("provisioner `{name}`"), allow }
}

fn external(file: &str, line: Option<usize>) -> Violation {
    Violation { file: file.to_owned(), line, what: "`external` data".to_owned(), allow: Some(Permission::External) }
}

fn remote_module(file: &str, line: Option<usize>) -> Violation {
    let what = "a module that is not part of the template".to_owned();
    Violation { file: file.to_owned(), line, what, allow: Some(Permission::RemoteModules) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(policy: &Policy, path: &str, text: &str) -> Vec<String> {
        policy.violations([(path, text.as_bytes())]).iter().map(Violation::to_string).collect()
    }

    const HCL: &str = r#"
resource "x" "y" {
  provisioner "local-exec" { command = "id" }
  provisioner "chef" {}
}
data "external" "it" { program = ["id"] }
module "near" { source = "./near" }
module "far" { source = "git::https://example.org/far" }
"#;

    #[test]
    fn programs_are_denied_in_both_syntaxes_with_their_place() {
        let expected = [
            "modules/a.tf:3: provisioner `local-exec` (allowed with `--allow local-exec`)",
            "modules/a.tf:4: provisioner `chef`",
            "modules/a.tf:6: `external` data (allowed with `--allow external`)",
            "modules/a.tf:8: a module that is not part of the template (allowed with `--allow remote-modules`)",
        ];
        assert_eq!(whats(&Policy::default(), "modules/a.tf", HCL), expected);
        let json = r#"{"resource": [{"x": {"y": [{"provisioner": [{"local-exec": {}}, {"file": {}}]}]}}],
            "data": {"external": {"it": {}}}, "module": {"far": {"source": "a/b/c"}, "near": {"source": "./n"}}}"#;
        assert_eq!(whats(&Policy::default(), "a.tf.json", json).len(), 4);
        assert_eq!(whats(&Policy::default(), "notes.txt", HCL), Vec::<String>::new());
        assert_eq!(whats(&Policy::default(), "torn.tf", "resource {{{ provisioner").len(), 1);
        assert_eq!(whats(&Policy::default(), "torn.tf", "resource {{{"), Vec::<String>::new());
        assert_eq!(whats(&Policy::default(), "plain.tf", "resource \"x\" \"y\" {}"), Vec::<String>::new());
    }

    #[test]
    fn what_is_allowed_by_name_is_let_through() {
        let policy = Policy::allowing(["local-exec", "external"].map(|name| name.parse().unwrap()));
        assert_eq!(whats(&policy, "a.tf", HCL).len(), 2);
        assert!("chef".parse::<Permission>().unwrap_err().contains("remote-modules"));
    }
}
