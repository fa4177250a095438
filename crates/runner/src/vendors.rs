//! The vendors that a template speaks to, and the check that it reaches them through the gateway alone.
//!
//! A provider takes its vendor's address from one argument of its block. That argument must be the endpoint variable and
//! nothing else: then the runner can put the gateway's address in its place, whichever engine runs the template.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use landform_domain::template::Files;
use landform_domain::{Code, Problem};
use landform_gateway::Vendor;
use landform_gateway::vendor::{self, FILE};
use landform_lang::{Module, ProviderConfig, Tree};
use landform_registry::Source;

const LONGEST_MESSAGE: usize = 2000;

/// A vendor that a template speaks to.
#[derive(Clone, Debug)]
pub(crate) struct Spoken {
    pub(crate) vendor: Arc<Vendor>,
    /// What its variables are where nobody says otherwise.
    pub(crate) defaults: BTreeMap<String, serde_json::Value>,
}

/// The vendors of a template that is unpacked in a folder. What it says about a vendor comes before what is known here.
pub(crate) fn of(files: &Files, folder: &Path) -> Result<Vec<Spoken>, Problem> {
    let own = files.iter().find(|(path, _)| *path == FILE).map(|(_, text)| vendor::parse(text)).transpose();
    let own = own.map_err(|error| invalid(error.to_string()))?.unwrap_or_default();
    let known = vendor::built_in();
    let tree = match Tree::load(folder) {
        Ok(tree) => tree,
        // Whatever cannot be read here, the CLI may be able to read.
        Err(found) => {
            let all: Vec<&Vendor> = own.iter().chain(&known).map(|vendor| &**vendor).collect();
            return match mentioned(files, &all) {
                Some(vendor) => Err(bypassed(vendor, &format!("the configuration cannot be read: {found}"))),
                None => Ok(Vec::new()),
            };
        }
    };
    let mut vendors = Vec::new();
    for vendor in &own {
        let source = source_of(vendor)?;
        for known in known.iter().filter(|known| source_of(known).is_ok_and(|of| of == source)) {
            if known.endpoint.attribute != vendor.endpoint.attribute {
                let wanted = &known.endpoint.attribute;
                return Err(invalid(format!("{FILE}: {} takes its address from `{wanted}`", vendor.provider)));
            }
        }
        if !uses(&tree, &source) {
            return Err(invalid(format!("{FILE}: the template does not use the provider {}", vendor.provider)));
        }
        check(vendor, &source, &tree)?;
        vendors.push(spoken(vendor.clone(), &tree));
    }
    for vendor in known {
        let source = source_of(&vendor)?;
        let is_own = own.iter().any(|own| source_of(own).is_ok_and(|of| of == source));
        if !is_own && uses(&tree, &source) {
            check(&vendor, &source, &tree)?;
            vendors.push(spoken(vendor, &tree));
        }
    }
    Ok(vendors)
}

fn spoken(vendor: Arc<Vendor>, tree: &Tree) -> Spoken {
    let default = |name: &String| {
        let default = tree.module.variables.get(name)?.default.as_ref()?;
        Some((name.clone(), default.to_plain_json().ok()?))
    };
    let names = vendor.account.iter().chain([&vendor.endpoint.variable]).chain(&vendor.endpoint.authority);
    let defaults = names.filter_map(default).collect();
    Spoken { vendor, defaults }
}

fn source_of(vendor: &Vendor) -> Result<Source, Problem> {
    vendor.provider.parse().map_err(|error| invalid(format!("{FILE}: {error}")))
}

/// Files that this parser does not know to the end may still be about a vendor.
fn mentioned<'v>(files: &Files, vendors: &[&'v Vendor]) -> Option<&'v Vendor> {
    let names = |vendor: &Vendor| {
        let within = |text: &[u8]| String::from_utf8_lossy(text).contains(&vendor.provider);
        files.iter().any(|(path, text)| path != FILE && within(text))
    };
    vendors.iter().copied().find(|vendor| names(vendor))
}

/// The names under which a module knows a provider.
fn local_names<'m>(module: &'m Module, source: &Source) -> Vec<&'m str> {
    let required = module.required_providers.iter().filter(|(name, required)| {
        let of = required.source.as_deref().map_or_else(|| Source::implied(name), str::parse);
        of.is_ok_and(|of| of == *source)
    });
    let mut names: Vec<&str> = required.map(|(name, _)| name.as_str()).collect();
    let used = module.resources.iter().map(|resource| resource.provider_name());
    let configured = module.providers.iter().map(|provider| provider.name.as_str());
    let implied = used.chain(configured).filter(|name| {
        !module.required_providers.contains_key(*name) && Source::implied(name).is_ok_and(|of| of == *source)
    });
    names.extend(implied);
    names
}

fn uses(tree: &Tree, source: &Source) -> bool {
    tree.all().iter().any(|tree| !local_names(&tree.module, source).is_empty())
}

fn blocks<'m>(module: &'m Module, source: &Source) -> Vec<&'m ProviderConfig> {
    let names = local_names(module, source);
    module.providers.iter().filter(|provider| names.contains(&provider.name.as_str())).collect()
}

fn check(vendor: &Vendor, source: &Source, tree: &Tree) -> Result<(), Problem> {
    let hidden = tree.unsupported().into_iter().find(|item| crate::templates::hides_variables(&item.construct));
    if let Some(item) = hidden {
        return Err(bypassed(vendor, &format!("{}: this cannot be read: {}", item.range, item.construct)));
    }
    for below in tree.children.values().flat_map(Tree::all) {
        if let Some(block) = blocks(&below.module, source).first() {
            return Err(bypassed(vendor, &format!("{}: a module configures the provider itself", block.range)));
        }
    }
    let (attribute, variable) = (&vendor.endpoint.attribute, &vendor.endpoint.variable);
    let blocks = blocks(&tree.module, source);
    if blocks.is_empty() {
        return Err(bypassed(vendor, "there is no `provider` block for it"));
    }
    for block in blocks {
        let given = block.body.argument(attribute);
        if given.as_ref().and_then(|given| given.as_variable()) != Some(variable.as_str()) {
            let range = given.map_or_else(|| block.range.clone(), |given| given.range());
            return Err(bypassed(vendor, &format!("{range}: `{attribute}` is not `var.{variable}`")));
        }
    }
    let declared = &tree.module.variables;
    match declared.get(variable) {
        Some(variable) if variable.ephemeral && variable.sensitive => {}
        Some(found) => {
            let what = format!("{}: the variable `{variable}` is not ephemeral and sensitive", found.range);
            return Err(bypassed(vendor, &what));
        }
        None => return Err(bypassed(vendor, &format!("there is no variable `{variable}`"))),
    }
    let others = vendor.account.iter().chain(&vendor.endpoint.authority);
    match others.into_iter().find(|name| !declared.contains_key(*name)) {
        Some(missing) => {
            Err(invalid(format!("the template has no variable `{missing}`, which {} has in {FILE}", vendor.vendor)))
        }
        None => Ok(()),
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Code::VendorInvalid, bounded(&message))
}

fn bypassed(vendor: &Vendor, why: &str) -> Problem {
    Problem::new(Code::VendorBypassed, bounded(&format!("{}: {why}", vendor.provider)))
}

fn bounded(text: &str) -> String {
    text.chars().take(LONGEST_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: &str = r#"
variable "versa_url" {
  type      = string
  ephemeral = true
  sensitive = true
}
"#;

    fn spoken_in(files: &[(&str, &str)]) -> Result<Vec<Spoken>, Problem> {
        let files =
            Files::new(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        crate::folders::unpack(&files, folder.path(), |_| Ok(())).unwrap();
        let found = of(&files, folder.path());
        assert!(!format!("{found:?}").contains("cannot be read"), "{found:?}");
        found
    }

    fn read(files: &[(&str, &str)]) -> Result<Vec<String>, Problem> {
        Ok(spoken_in(files)?.iter().map(|spoken| spoken.vendor.vendor.clone()).collect())
    }

    fn main(provider: &str) -> String {
        let required = "terraform {\n  required_providers {\n    versa = { source = \"landform/versa\" }\n  }\n}";
        format!("{required}\n{VARIABLES}\n{provider}\nresource \"versa_template\" \"t\" {{}}\n")
    }

    #[test]
    fn a_vendor_is_reached_through_the_endpoint_variable_alone() {
        let good = main("provider \"versa\" { url = var.versa_url }");
        assert_eq!(read(&[("main.tf", &good)]).unwrap(), ["versa"]);
        let known = good.replace("sensitive = true", "sensitive = true\n  default = \"https://known\"");
        assert_eq!(spoken_in(&[("main.tf", &known)]).unwrap()[0].defaults["versa_url"], "https://known");
        assert_eq!(read(&[("main.tf", "resource \"null_resource\" \"x\" {}")]).unwrap(), Vec::<String>::new());
        for provider in [
            "",
            "provider \"versa\" {}",
            "provider \"versa\" { url = \"https://director\" }",
            "provider \"versa\" { url = \"${var.versa_url}/x\" }",
            "provider \"versa\" { url = local.url }\nlocals { url = \"https://director\" }",
            "provider \"versa\" { url = var.versa_url }\nprovider \"versa\" {\n  alias = \"b\"\n  url = \"x\"\n}",
        ] {
            let problem = read(&[("main.tf", &main(provider))]).expect_err(provider);
            assert_eq!(problem.code, Code::VendorBypassed, "{provider}: {problem}");
        }
        let plain = good.replace("ephemeral = true", "");
        assert_eq!(read(&[("main.tf", &plain)]).unwrap_err().code, Code::VendorBypassed);
    }

    #[test]
    fn other_names_modules_and_json_do_not_lead_around_it() {
        let renamed = main("provider \"director\" { url = \"x\" }").replace("versa = {", "director = {");
        assert_eq!(read(&[("main.tf", &renamed)]).unwrap_err().code, Code::VendorBypassed);
        let inner = main("provider \"versa\" { url = var.versa_url }");
        let outer = "module \"m\" { source = \"./m\" }";
        assert_eq!(read(&[("main.tf", outer), ("m/main.tf", &inner)]).unwrap_err().code, Code::VendorBypassed);
        let json = r#"{"provider": {"versa": {"url": "https://director"}}}"#;
        assert_eq!(read(&[("main.tf", &main("")), ("p.tf.json", json)]).unwrap_err().code, Code::VendorBypassed);
        let json = r#"{"provider": {"versa": {"url": "${var.versa_url}"}}}"#;
        assert_eq!(read(&[("main.tf", &main("")), ("p.tf.json", json)]).unwrap(), ["versa"]);
        let over = "provider \"versa\" { url = \"https://director\" }";
        let good = main("provider \"versa\" { url = var.versa_url }");
        assert_eq!(read(&[("main.tf", &good), ("x_override.tf", over)]).unwrap_err().code, Code::VendorBypassed);
    }

    #[test]
    fn a_template_may_bring_a_vendor_of_its_own() {
        let template = r#"
terraform {
  required_providers {
    third = { source = "acme/third" }
  }
}
variable "third_url" {
  ephemeral = true
  sensitive = true
}
variable "customer" {}
provider "third" { host = var.third_url }
"#;
        let data = r#"{"vendors": [{"vendor": "third", "provider": "acme/third", "account": ["customer"],
            "endpoint": {"attribute": "host", "variable": "third_url"}, "operations": {"rest": []}}]}"#;
        assert_eq!(read(&[("main.tf", template), (FILE, data)]).unwrap(), ["third"]);
        for (template, data) in [
            (template.to_owned(), data.replace("\"account\"", "\"acount\"")),
            (template.to_owned(), data.replace("[\"customer\"]", "[\"nobody\"]")),
            (template.to_owned(), data.replace("acme/third", "acme/fourth")),
        ] {
            let problem = read(&[("main.tf", &template), (FILE, &data)]).unwrap_err();
            assert_eq!(problem.code, Code::VendorInvalid, "{problem}");
        }
        let around = template.replace("var.third_url", "\"https://third\"");
        assert_eq!(read(&[("main.tf", &around), (FILE, data)]).unwrap_err().code, Code::VendorBypassed);
    }
}
