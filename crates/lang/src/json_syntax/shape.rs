use super::Strings;

/// The property that is a remark, wherever a body may stand.
pub const COMMENT: &str = "//";

/// What the language itself expects in a body. What is not named here is an argument.
pub struct Shape {
    /// Blocks by name, with the number of their labels.
    blocks: &'static [(&'static str, usize, &'static Shape)],
    /// Arguments that are not evaluated but read: addresses, types and names.
    verbatim: &'static [&'static str],
    /// Arguments in which no string is a template; `*` for all.
    literal: &'static [&'static str],
}

impl Shape {
    pub fn block(&self, name: &str) -> Option<(usize, &'static Shape)> {
        self.blocks.iter().find(|(block, _, _)| *block == name).map(|(_, labels, shape)| (*labels, *shape))
    }

    pub fn strings(&self, argument: &str) -> Strings {
        if self.verbatim.contains(&argument) {
            Strings::Verbatim
        } else if self.literal.contains(&argument) || self.literal.contains(&"*") {
            Strings::Literal
        } else {
            Strings::Templates
        }
    }
}

const NONE: &[&str] = &[];

pub static ROOT: Shape = Shape {
    blocks: &[
        ("terraform", 0, &TERRAFORM),
        ("language", 0, &LANGUAGE),
        ("variable", 1, &VARIABLE),
        ("locals", 0, &PLAIN),
        ("output", 1, &OUTPUT),
        ("resource", 2, &RESOURCE),
        ("data", 2, &RESOURCE),
        ("ephemeral", 2, &RESOURCE),
        ("module", 1, &MODULE),
        ("provider", 1, &PROVIDER),
        ("moved", 0, &MOVED),
        ("removed", 0, &REMOVED),
        ("import", 0, &IMPORT),
        ("check", 1, &CHECK),
    ],
    verbatim: NONE,
    literal: NONE,
};

static PLAIN: Shape = Shape { blocks: &[], verbatim: NONE, literal: NONE };

static TERRAFORM: Shape = Shape {
    blocks: &[
        ("required_providers", 0, &REQUIRED_PROVIDERS),
        ("backend", 1, &PLAIN),
        ("cloud", 0, &PLAIN),
        ("provider_meta", 1, &PLAIN),
        ("encryption", 0, &PLAIN),
    ],
    verbatim: NONE,
    literal: &["*"],
};

static LANGUAGE: Shape = Shape { blocks: &[("compatible_with", 0, &PLAIN)], verbatim: &["edition"], literal: &["*"] };

static REQUIRED_PROVIDERS: Shape = Shape { blocks: &[], verbatim: NONE, literal: &["*"] };

static VARIABLE: Shape =
    Shape { blocks: &[("validation", 0, &PLAIN)], verbatim: &["type"], literal: &["default", "description"] };

static OUTPUT: Shape =
    Shape { blocks: &[("precondition", 0, &PLAIN)], verbatim: &["depends_on"], literal: &["description"] };

static RESOURCE: Shape = Shape {
    blocks: &[
        ("lifecycle", 0, &LIFECYCLE),
        ("provisioner", 1, &PLAIN),
        ("connection", 0, &PLAIN),
        ("dynamic", 1, &DYNAMIC),
    ],
    verbatim: &["provider", "depends_on"],
    literal: NONE,
};

static LIFECYCLE: Shape = Shape {
    blocks: &[("precondition", 0, &PLAIN), ("postcondition", 0, &PLAIN)],
    verbatim: &["ignore_changes", "replace_triggered_by"],
    literal: NONE,
};

static DYNAMIC: Shape = Shape { blocks: &[("content", 0, &CONTENT)], verbatim: &["iterator"], literal: NONE };

static CONTENT: Shape = Shape { blocks: &[("dynamic", 1, &DYNAMIC)], verbatim: NONE, literal: NONE };

static MODULE: Shape =
    Shape { blocks: &[("lifecycle", 0, &PLAIN)], verbatim: &["providers", "depends_on"], literal: NONE };

static PROVIDER: Shape = Shape { blocks: &[("dynamic", 1, &DYNAMIC)], verbatim: NONE, literal: &["alias"] };

static MOVED: Shape = Shape { blocks: &[], verbatim: &["from", "to"], literal: NONE };

static REMOVED: Shape =
    Shape { blocks: &[("lifecycle", 0, &PLAIN), ("provisioner", 1, &PLAIN)], verbatim: &["from"], literal: NONE };

static IMPORT: Shape = Shape { blocks: &[], verbatim: &["to", "provider"], literal: NONE };

static CHECK: Shape = Shape { blocks: &[("assert", 0, &PLAIN), ("data", 2, &RESOURCE)], verbatim: NONE, literal: NONE };
