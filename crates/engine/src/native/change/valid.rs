use std::collections::BTreeMap;

use landform_cty::{Path, Step, Value};
use landform_protocol::{Attribute, AttributeKind, Block, NestedBlock, Nesting};

use super::spelled::spelled;
use super::{child, part, path_text, unrefined};

/// In what a provider's plan oversteps what it may decide: configured values are to be taken as they are, or left as
/// they were; only computed ones are the provider's. Empty means that all is well.
///
/// Messages show neither what the schema calls sensitive nor what is at the `secret` places. OpenTofu shows the latter; but these
/// messages are kept, logged and sent on.
pub fn invalid_plan(block: &Block, prior: &Value, config: &Value, planned: &Value, secret: &[Path]) -> Vec<String> {
    let mut found = Found { problems: Vec::new(), secret };
    check_object(block, prior, config, planned, &Path::new(), &mut found);
    found.problems
}

struct Found<'a> {
    problems: Vec<String>,
    secret: &'a [Path],
}

impl Found<'_> {
    /// Whether something secret is here, or this is inside of something secret.
    fn is_secret(&self, attribute: &Attribute, path: &[Step]) -> bool {
        let meets = |place: &Path| place.iter().zip(path).all(|(one, other)| one == other);
        holds_secrets(attribute) || self.secret.iter().any(meets)
    }
}

fn holds_secrets(attribute: &Attribute) -> bool {
    let inside = match &attribute.kind {
        AttributeKind::Plain(_) => false,
        AttributeKind::Nested { attributes, .. } => attributes.values().any(holds_secrets),
    };
    attribute.sensitive || inside
}

fn report(found: &mut Found<'_>, path: &[Step], problem: impl AsRef<str>) {
    let problem = format!("{}: {}", path_text(path), problem.as_ref());
    found.problems.push(problem.trim_start_matches(": ").to_owned());
}

/// Whether presence or absence alone settles the matter.
fn presence(config: &Value, planned: &Value, path: &[Step], found: &mut Found<'_>) -> bool {
    match (config.is_null(), planned.is_null()) {
        (false, true) => report(found, path, "planned for absence but config wants existence"),
        (true, false) => report(found, path, "planned for existence but config wants absence"),
        (true, true) => {}
        (false, false) => return false,
    }
    true
}

fn check_object(block: &Block, prior: &Value, config: &Value, planned: &Value, path: &[Step], found: &mut Found<'_>) {
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
    found: &mut Found<'_>,
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
    found: &mut Found<'_>,
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
    found: &mut Found<'_>,
) {
    let plain = unrefined(planned);
    let kept = plain == unrefined(prior) && !prior.is_null() && !config.is_null();
    let providers_own = attribute.computed && (!attribute.optional || config.is_null());
    if plain == unrefined(config) || kept || providers_own {
        return;
    }
    let is_secret = found.is_secret(attribute, path);
    if config.is_null() {
        return match is_secret {
            true => report(found, path, "sensitive planned value for a non-computed attribute"),
            false => report(found, path, format!("planned value {} for a non-computed attribute", spelled(planned))),
        };
    }
    if planned.is_null() && attribute.write_only {
        return;
    }
    let AttributeKind::Nested { nesting, attributes } = &attribute.kind else {
        let shown = |value: &Value| match is_secret {
            true => String::new(),
            false => format!(" {}", spelled(value)),
        };
        let secret = if is_secret { "sensitive " } else { "" };
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

#[cfg(test)]
mod tests {
    use super::*;
    use landform_cty::Type;

    #[test]
    fn what_a_configuration_calls_secret_is_in_no_message() {
        let tags = Attribute {
            kind: AttributeKind::Plain(Type::map(Type::String)),
            required: false,
            optional: true,
            computed: false,
            sensitive: false,
            write_only: false,
            description: String::new(),
            deprecated: None,
        };
        let block = Block { attributes: [("tags".to_owned(), tags)].into(), ..Block::default() };
        let object = |word: &str| Value::object([("tags", Value::map(Type::String, [("a", Value::string(word))]))]);
        let nothing = Value::null(block.implied_type());
        let said =
            |secret: &[Path]| invalid_plan(&block, &nothing, &object("hush"), &object("other"), secret).join("\n");
        assert!(said(&[]).contains("hush"));
        let whole = vec![Step::Attribute("tags".to_owned())];
        let key = vec![Step::Attribute("tags".to_owned()), Step::Key("a".to_owned())];
        for place in [whole, key] {
            let said = said(std::slice::from_ref(&place));
            assert_eq!(said, ".tags: sensitive planned value does not match config value", "{place:?}");
        }
        assert!(said(&[vec![Step::Attribute("name".to_owned())]]).contains("hush"));
    }
}
