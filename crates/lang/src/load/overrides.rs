//! Override files: what they name replaces what the other files say, part by part, and nothing else.

use hcl_edit::structure::{Attribute, Block, Body as Node, Structure};

use crate::{Body, Diagnostic};

/// The body of all files of a module, with the blocks of override files merged into those that they are about. Both come
/// from one source.
pub(super) fn merged(mut base: Node, overrides: &Body) -> (Node, Vec<Diagnostic>) {
    let mut found = Vec::new();
    for structure in &overrides.node {
        let Structure::Block(block) = structure else {
            base.push(structure.clone());
            continue;
        };
        let outcome = match block.ident.as_str() {
            "locals" => merge_locals(&mut base, block, overrides),
            "terraform" => {
                merge_terraform(&mut base, block);
                Ok(())
            }
            "provider" => merge_provider(&mut base, block),
            "variable" | "output" | "module" | "resource" | "data" => merge_block(&mut base, block, overrides),
            "moved" | "removed" | "import" | "check" => Err(cannot(block)),
            // Whatever it is, it is looked at with the rest.
            _ => {
                base.push(block.clone());
                Ok(())
            }
        };
        if let Err(problem) = outcome {
            found.push(problem.at(overrides.place(&block.ident)));
        }
    }
    (base, found)
}

fn cannot(block: &Block) -> Diagnostic {
    let kind = block.ident.as_str();
    let what = match kind {
        "moved" => "Records of moved objects",
        "removed" => "Removed blocks",
        "import" => "Import blocks",
        _ => "Check blocks",
    };
    let detail = format!("{what} can appear only in normal files, not in override files.");
    Diagnostic::new(format!("Cannot override '{kind}' blocks"), detail)
}

fn labels(block: &Block) -> Vec<&str> {
    block.labels.iter().map(|label| label.as_str()).collect()
}

fn same<'a>(base: &'a mut Node, block: &Block) -> Option<&'a mut Block> {
    base.blocks_mut().find(|other| other.ident.as_str() == block.ident.as_str() && labels(other) == labels(block))
}

fn merge_block(base: &mut Node, block: &Block, overrides: &Body) -> Result<(), Diagnostic> {
    let names = labels(block);
    let kind = block.ident.as_str();
    let Some(target) = same(base, block) else {
        let name = names.last().copied().unwrap_or_default();
        let resource_type = names.first().copied().unwrap_or_default();
        let (summary, what, which) = match kind {
            "variable" => (
                "Missing base variable declaration to override",
                format!("variable named {name:?}"),
                "a variable that was already declared",
            ),
            "output" => (
                "Missing base output definition to override",
                format!("output named {name:?}"),
                "an output that was already defined",
            ),
            "module" => (
                "Missing module call to override",
                format!("module call named {name:?}"),
                "a module call that was defined",
            ),
            "data" => (
                "Missing data resource to override",
                format!("{resource_type} data resource named {name:?}"),
                "a data block defined",
            ),
            _ => (
                "Missing resource to override",
                format!("{resource_type} resource named {name:?}"),
                "a resource block defined",
            ),
        };
        let detail =
            format!("There is no {what}. An override file can only override {which} in a primary configuration file.");
        return Err(Diagnostic::new(summary, detail));
    };
    if let Some(attribute) = block.body.get_attribute("depends_on").filter(|_| kind != "variable") {
        let problem = Diagnostic::new("Unsupported override", "The depends_on argument may not be overridden.");
        return Err(problem.at(overrides.place(&attribute.key)));
    }
    match kind {
        // Their conditions are no part of what can be overridden.
        "variable" | "output" => block.body.attributes().for_each(|attribute| set(&mut target.body, attribute)),
        _ => merge_body(&mut target.body, &block.body),
    }
    Ok(())
}

/// Arguments one by one; blocks by their kind: those of the override stand for all others of that kind.
fn merge_body(base: &mut Node, more: &Node) {
    for attribute in more.attributes() {
        set(base, attribute);
    }
    let mut replaced: Vec<String> = Vec::new();
    for block in more.blocks() {
        if block.ident.as_str() == "lifecycle" {
            merge_lifecycle(base, block);
            continue;
        }
        let kind = kind_of(block);
        if !replaced.contains(&kind) {
            remove_blocks(base, &kind);
            replaced.push(kind);
        }
        base.push(block.clone());
    }
}

/// What the blocks are that a block is, or (`dynamic`) makes.
fn kind_of(block: &Block) -> String {
    let label = block.labels.first().filter(|_| block.ident.as_str() == "dynamic");
    label.map_or(block.ident.as_str(), |label| label.as_str()).to_owned()
}

fn remove_blocks(base: &mut Node, kind: &str) {
    let kept = base.iter().filter(|structure| structure.as_block().is_none_or(|block| kind_of(block) != kind));
    *base = kept.cloned().collect();
}

/// Conditions and triggers of an override have no effect in OpenTofu either.
fn merge_lifecycle(base: &mut Node, block: &Block) {
    if !base.has_blocks("lifecycle") {
        base.push(Block::new(block.ident.clone()));
    }
    let Some(target) = base.get_blocks_mut("lifecycle").next() else { return };
    for attribute in block.body.attributes() {
        if attribute.key.as_str() != "replace_triggered_by" {
            set(&mut target.body, attribute);
        }
    }
}

fn set(body: &mut Node, attribute: &Attribute) {
    body.remove_attribute(attribute.key.as_str());
    body.push(attribute.clone());
}

fn merge_locals(base: &mut Node, block: &Block, overrides: &Body) -> Result<(), Diagnostic> {
    for attribute in block.body.attributes() {
        let name = attribute.key.as_str();
        let Some(target) = base.get_blocks_mut("locals").find(|locals| locals.body.has_attribute(name)) else {
            let detail = format!(
                "There is no local value named {name:?}. An override file can only override a local value that was already \
                 defined in a primary configuration file."
            );
            let problem = Diagnostic::new("Missing base local value definition to override", detail);
            return Err(problem.at(overrides.place(&attribute.key)));
        };
        set(&mut target.body, attribute);
    }
    Ok(())
}

/// What is overridden is taken out of all other blocks, and the override stands beside them. Only one block may say which
/// providers are required: what an override says of them goes there.
fn merge_terraform(base: &mut Node, block: &Block) {
    for terraform in base.get_blocks_mut("terraform") {
        // All constraints on the version count, those of override files and the others.
        for attribute in block.body.attributes().filter(|attribute| attribute.key.as_str() != "required_version") {
            terraform.body.remove_attribute(attribute.key.as_str());
        }
        for kind in ["backend", "cloud"] {
            if block.body.has_blocks("backend") || block.body.has_blocks("cloud") {
                terraform.body.remove_blocks(kind);
            }
        }
    }
    let mut block = block.clone();
    let mut blocks: Vec<&mut Block> = base.get_blocks_mut("terraform").collect();
    let listed = blocks.iter_mut().find_map(|block| block.body.get_blocks_mut("required_providers").next());
    if let Some(listed) = listed {
        for required in block.body.remove_blocks("required_providers") {
            for structure in &required.body {
                match structure {
                    Structure::Attribute(attribute) => set(&mut listed.body, attribute),
                    Structure::Block(inner) => listed.body.push(inner.clone()),
                }
            }
        }
    }
    base.push(block);
}

fn merge_provider(base: &mut Node, block: &Block) -> Result<(), Diagnostic> {
    let alias = |block: &Block| {
        let given = block.body.get_attribute("alias");
        given.and_then(|attribute| attribute.value.as_str().map(str::to_owned))
    };
    let wanted = alias(block);
    let target = base.get_blocks_mut("provider").find(|other| labels(other) == labels(block) && alias(other) == wanted);
    match (target, wanted) {
        (Some(target), _) => merge_body(&mut target.body, &block.body),
        (None, None) => base.push(block.clone()),
        (None, Some(alias)) => {
            let detail = format!(
                "There is no provider configuration with the alias {alias:?}. An override file can only override an aliased \
                 provider configuration that was already defined in a primary configuration file."
            );
            return Err(Diagnostic::new("Missing base provider configuration for override", detail));
        }
    }
    Ok(())
}
