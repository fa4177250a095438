use std::collections::BTreeMap;

use landform_cty::{Path, Step, Value};
use landform_protocol::{Attribute, AttributeKind, Block, NestedBlock, Nesting};

use super::spelled::spelled;
use super::{child, part, path_text, unrefined};

/// In what a provider's plan oversteps what it may decide: configured values are to be taken as they are, or left as
/// they were; only computed ones are the provider's. Empty means that all is well.
pub fn invalid_plan(block: &Block, prior: &Value, config: &Value, planned: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check_object(block, prior, config, planned, &Path::new(), &mut found);
    found
}

fn report(found: &mut Vec<String>, path: &[Step], problem: impl AsRef<str>) {
    found.push(format!("{}: {}", path_text(path), problem.as_ref()).trim_start_matches(": ").to_owned());
}

/// Whether presence or absence alone settles the matter.
fn presence(config: &Value, planned: &Value, path: &[Step], found: &mut Vec<String>) -> bool {
    match (config.is_null(), planned.is_null()) {
        (false, true) => report(found, path, "planned for absence but config wants existence"),
        (true, false) => report(found, path, "planned for existence but config wants absence"),
        (true, true) => {}
        (false, false) => return false,
    }
    true
}

fn check_object(block: &Block, prior: &Value, config: &Value, planned: &Value, path: &[Step], found: &mut Vec<String>) {
    if presence(config, planned, path, found) {
        return;
    }
    check_attributes(&block.attributes, prior, config, planned, path, found);
    for (name, nested) in &block.blocks {
        let path = child(path, Step::Attribute(name.clone()));
        check_block(nested, &part(prior, name), &part(config, name), &part(planned, name), &path, found);
    }
}

fn check_block(
    nested: &NestedBlock,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &[Step],
    found: &mut Vec<String>,
) {
    if planned == config {
        return;
    }
    if !config.is_known() {
        return report(found, path, "planned a value for an unknown dynamic block");
    }
    if !planned.is_known() {
        return report(found, path, "attribute representing nested block must not be unknown itself");
    }
    if matches!(nested.nesting, Nesting::Single | Nesting::Group) {
        return check_object(&nested.block, prior, config, planned, path, found);
    }
    if planned.is_null() {
        return report(
            found,
            path,
            "attribute representing nested blocks must be empty to indicate no blocks, not null",
        );
    }
    if planned.parts().iter().any(|(_, element)| !element.is_known()) {
        return report(found, path, "element representing nested block must not be unknown itself");
    }
    if nested.nesting == Nesting::Set {
        // Elements of a set cannot be matched for certain, so nothing more can be said.
        return;
    }
    let configured = config.parts();
    let in_plan = planned.parts();
    if in_plan.len() != configured.len() {
        let (plan, config) = (in_plan.len(), configured.len());
        return report(found, path, format!("block count in plan ({plan}) disagrees with count in config ({config})"));
    }
    for (step, planned) in in_plan {
        let path = child(path, step.clone());
        match config.at_path(std::slice::from_ref(&step)) {
            Some(config) => {
                let nothing = Value::null(nested.block.implied_type());
                let prior = prior.at_path(&[step]).unwrap_or(&nothing);
                check_object(&nested.block, prior, config, planned, &path, found);
            }
            None => report(found, &path, "block from plan is not present in config"),
        }
    }
}

fn check_attributes(
    attributes: &BTreeMap<String, Attribute>,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &[Step],
    found: &mut Vec<String>,
) {
    for (name, attribute) in attributes {
        let path = child(path, Step::Attribute(name.clone()));
        check_attribute(attribute, &part(prior, name), &part(config, name), &part(planned, name), &path, found);
    }
}

fn check_attribute(
    attribute: &Attribute,
    prior: &Value,
    config: &Value,
    planned: &Value,
    path: &[Step],
    found: &mut Vec<String>,
) {
    let plain = unrefined(planned);
    let kept = plain == unrefined(prior) && !prior.is_null() && !config.is_null();
    let providers_own = attribute.computed && (!attribute.optional || config.is_null());
    if plain == unrefined(config) || kept || providers_own {
        return;
    }
    if config.is_null() {
        return match attribute.sensitive {
            true => report(found, path, "sensitive planned value for a non-computed attribute"),
            false => report(found, path, format!("planned value {} for a non-computed attribute", spelled(planned))),
        };
    }
    if planned.is_null() && attribute.write_only {
        return;
    }
    let AttributeKind::Nested { nesting, attributes } = &attribute.kind else {
        let shown = |value: &Value| match attribute.sensitive {
            true => String::new(),
            false => format!(" {}", spelled(value)),
        };
        let secret = if attribute.sensitive { "sensitive " } else { "" };
        let mut problem =
            format!("{secret}planned value{} does not match config value{}", shown(planned), shown(config));
        if !prior.is_null() {
            problem.push_str(&format!(" nor prior value{}", shown(prior)));
        }
        return report(found, path, problem);
    };
    if presence(config, planned, path, found) {
        return;
    }
    if !planned.is_known() {
        return report(found, path, "planned unknown for configured value");
    }
    match nesting {
        Nesting::Single | Nesting::Group => check_attributes(attributes, prior, config, planned, path, found),
        // Elements may have become equal, or may turn out to be; their number is all that could be compared.
        Nesting::Set => {}
        Nesting::List | Nesting::Map => {
            let (in_plan, configured) = (planned.parts(), config.parts());
            if config.is_known() && in_plan.len() != configured.len() {
                return report(found, path, "count in plan disagrees with count in config");
            }
            for (step, planned) in in_plan {
                let path = child(path, step.clone());
                let Some(config) = config.at_path(std::slice::from_ref(&step)) else {
                    report(found, &path, "element from plan is not present in config");
                    continue;
                };
                let nothing = Value::null(planned.ty.clone());
                let prior = prior.at_path(&[step]).unwrap_or(&nothing);
                check_attributes(attributes, prior, config, planned, &path, found);
            }
        }
    }
}
